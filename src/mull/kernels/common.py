"""Pieces that the kernels share: normalisation, GELU, and masks for dropout that the backward pass makes again."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def alike(x, product):
    """The same, but with the registers laid out like a product's, in which sums over rows need fewer shuffles."""
    return x + product * 0.0


@triton.jit
def load_rows(ptr, base, rows, cols, V: tl.constexpr, HEAD: tl.constexpr, STRIDE: tl.constexpr):
    """Some variables' part of one head, zeros beyond the last."""
    inside = (rows[:, None] < V) & (cols[None, :] < HEAD)
    return tl.load(ptr + (base + rows[:, None]) * STRIDE + cols[None, :], mask=inside, other=0.0)


@triton.jit
def store_rows(ptr, value, base, rows, cols, V: tl.constexpr, HEAD: tl.constexpr, STRIDE: tl.constexpr):
    """The way back."""
    inside = (rows[:, None] < V) & (cols[None, :] < HEAD)
    at = ptr + (base + rows[:, None]) * STRIDE + cols[None, :]
    tl.store(at, value.to(ptr.dtype.element_ty), mask=inside)


@triton.jit
def watches(watch_ptr, rows, cols, start, V: tl.constexpr, SPAN: tl.constexpr, WORDS: tl.constexpr):
    """Whether variables `rows` and `cols`, `SPAN` of them from `start` on, go together, by `launch.packed_watch`.

    A row's bits take few registers. In the layouts of products, bits 1 and 2 of a column are a thread's, and the
    others are known when this is compiled: a test is one operation then.
    """
    rows, cols, place = rows[:, None], cols[None, :], start // 32
    at = watch_ptr + rows * WORDS + place
    word = tl.load(at, mask=rows < V, other=0)
    for more in tl.static_range(1, SPAN // 32):
        found = tl.load(at + more, mask=(rows < V) & (place + more < WORDS), other=0)
        word = tl.where(cols // 32 == place + more, found, word)
    word = word >> (cols & 6)
    return (word & (1 << (cols & 25))) != 0


@triton.jit
def mix(mixed, w, row, WIDTH: tl.constexpr, BM: tl.constexpr, BC: tl.constexpr):
    """The projection after attention, without its bias."""
    y = tl.zeros([BM, WIDTH], tl.float32)
    for start in range(0, WIDTH, BC):
        y = tl.dot(mixed.load([row, start]), w.load([0, start]).T, y, input_precision="ieee")
    return y


@triton.jit
def rounded(x, dtype: tl.constexpr):
    """In another type; beyond float16's range, its largest number and not infinity."""
    if dtype == tl.float16:
        x = tl.minimum(tl.maximum(x, -65504.0), 65504.0)
    return x.to(dtype)


@triton.jit
def normalise(x, WIDTH: tl.constexpr):
    """Rows to mean 0 and variance 1 (layer norm without its affine map), and one over their deviation."""
    mean = tl.sum(x, 1) * (1.0 / WIDTH)
    centred = x - mean[:, None]
    scale = tl.rsqrt(tl.sum(centred * centred, 1) * (1.0 / WIDTH) + 1e-5)
    return centred * scale[:, None], scale


@triton.jit
def normalise_backward(grad, normed, scale, WIDTH: tl.constexpr):
    """Gradient of the rows from that of the normalised ones."""
    mean = tl.sum(grad, 1) * (1.0 / WIDTH)
    along = tl.sum(grad * normed, 1) * (1.0 / WIDTH)
    return (grad - mean[:, None] - normed * along[:, None]) * scale[:, None]


@triton.jit
def normal_cdf(a, CDF: tl.constexpr):
    """The normal distribution function: "exact", or off by less than bfloat16 shows.

    An odd polynomial ("polynomial", 8e-5 at most), or the hardware's tanh of one ("tanh", 3e-4), in fewer steps.
    """
    if CDF == "exact":
        return 0.5 + 0.5 * tl.erf(a * 0.7071067811865476)
    if CDF == "tanh":
        s = tl.minimum(a * a, 50.0)
        p = (-3.15807077e-04 * s + 0.0367982561) * s + 0.797717834
        t = tl.inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=f,f", [a * p], tl.float32, is_pure=True, pack=1)
        return 0.5 * t + 0.5
    c = tl.minimum(tl.maximum(a, -4.2), 4.2)
    s = c * c
    p = -9.52762798875044e-10 * s + 8.314595978807058e-08
    p = p * s - 3.1495171431871398e-06
    p = p * s + 6.864046281509746e-05
    p = p * s - 0.0009660013064412258
    p = p * s + 0.009372129957371016
    p = p * s - 0.06570452319421918
    p = p * s + 0.3986202244674818
    return c * p + 0.5


@triton.jit
def dropout_key(seed_ptr, step, site, place):
    """A 32-bit key for the masks of one recurrence, site and place."""
    return tl.philox(tl.load(seed_ptr), step, site, place, 0)[0]


@triton.jit
def hidden_zero(seed_ptr):
    """A zero that the compiler does not know (seeds are below 2**62): knowing it, it rounds before it drops elements,
    and packs halves of registers one by one."""
    return (tl.load(seed_ptr) >> 62).to(tl.float32)


@triton.jit
def kept(key, rows, cols, THRESHOLD: tl.constexpr):
    """Which elements stay: a hash of their row and column, much cheaper than Philox for each element.

    Four elements that differ in bit 3 of row and column share all but the last multiplication: in the layouts of
    products, transposed ones too, one thread holds all four, so that the compiler does the rest once.
    """
    spots = (rows & -9).to(tl.uint32) * (1024 * 0x9E3779B9 & 0xFFFFFFFF) + (cols & -9).to(tl.uint32) * 0x9E3779B9
    x = spots + key
    x = (x ^ (x >> 16)) * 0x21F0AAAD
    x = x ^ (x >> 15)
    lower = tl.where((cols & 8) == 0, 0x735A2D97, 0x9E3779B9).to(tl.uint32)
    upper = tl.where((cols & 8) == 0, 0xC2B2AE3D, 0xD35A2D67).to(tl.uint32)
    return x * tl.where((rows & 8) == 0, lower, upper) >= THRESHOLD
