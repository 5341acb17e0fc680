"""Everything of one recurrence that treats each token alone, forward, for a tile of tokens.

Layer norms have no affine map here: it is folded into the matrix that follows (see `mull.kernels.fold`). What is named
without `_ptr` is a tensor descriptor: whole tiles move between memory and shared memory without registers.
Shapes: M token (puzzles times variables), H width, D value.
"""

from __future__ import annotations

import triton
import triton.language as tl

from mull.kernels.common import dropout_key, kept, mix, normal_cdf, normalise, rounded


@triton.jit
def _project(x, w, b_ptr, gain_ptr, context, qkv, row, WIDTH: tl.constexpr, INJECT: tl.constexpr, BN: tl.constexpr):
    """Queries, keys and values for the next attention."""
    normed, _ = normalise(x, WIDTH)
    if INJECT:
        normed = normed * tl.load(gain_ptr + tl.arange(0, WIDTH))[None, :] + context.load([row, 0]).to(tl.float32)
    normed = normed.to(qkv.dtype)
    for start in range(0, 3 * WIDTH, BN):
        part = tl.dot(normed, w.load([start, 0]).T, input_precision="ieee")
        part += tl.load(b_ptr + start + tl.arange(0, BN))[None, :]
        qkv.store([row, start], part.to(qkv.dtype))


@triton.jit
def project_forward(
    x,  # (M, H)
    w,  # (3H, H), (3H)
    b_ptr,
    gain_ptr,
    context,
    qkv,  # (M, 3H)
    WIDTH: tl.constexpr,
    INJECT: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
):
    """Queries, keys and values from the first state."""
    row = tl.program_id(0) * BM
    _project(x.load([row, 0]).to(tl.float32), w, b_ptr, gain_ptr, context, qkv, row, WIDTH, INJECT, BN)


@triton.jit(do_not_specialize=["M", "step"], do_not_specialize_on_alignment=["logits_ptr"])
def token_forward(
    x,  # (M, H) the state
    mixed,  # (M, H) what attention mixed
    mix_w,  # (H, H), (H): the projection after attention
    mix_b_ptr,
    expand_w,  # (4H, H), (4H)
    expand_b_ptr,
    contract_w,  # (H, 4H), (H)
    contract_b_ptr,
    out_w_ptr,  # (D, H), (D)
    out_b_ptr,
    feedback_ptr,  # (H, D)
    qkv_w,  # (3H, H), (3H): of the block that comes next
    qkv_b_ptr,
    gain_ptr,  # (H), (M, H): what `inject` needs
    context,
    after,  # (M, H) the next state
    logits_ptr,  # (M, D)
    qkv,  # (M, 3H)
    seed_ptr,
    M,
    step,
    WIDTH: tl.constexpr,
    VALUES: tl.constexpr,
    VALUES_P: tl.constexpr,
    BM: tl.constexpr,
    BH: tl.constexpr,  # hidden numbers of the MLP at a time
    BN: tl.constexpr,  # columns of queries, keys and values at a time
    BC: tl.constexpr,  # numbers that attention mixed at a time
    LOGITS: tl.constexpr,
    FEEDBACK: tl.constexpr,
    INJECT: tl.constexpr,
    NEXT: tl.constexpr,
    CDF: tl.constexpr,
    DROP: tl.constexpr,
    THRESHOLD: tl.constexpr,
    KEPT_SCALE: tl.constexpr,
):
    """From attention's output to the next recurrence's queries, keys and values."""
    row = tl.program_id(0) * BM
    rows = row + tl.arange(0, BM)[:, None]
    cols = tl.arange(0, WIDTH)[None, :]
    dtype: tl.constexpr = mixed.dtype
    y = mix(mixed, mix_w, row, WIDTH, BM, BC) + tl.load(mix_b_ptr + cols)
    if DROP:
        key = dropout_key(seed_ptr, step, 1, 0)
        y = tl.where(kept(key, rows, cols, THRESHOLD), y * KEPT_SCALE, 0.0)
    y += x.load([row, 0]).to(tl.float32)
    normed = normalise(y, WIDTH)[0].to(dtype)
    y = rounded(y, after.dtype)  # as precise as what is stored, in half the registers if that is 16 bits
    z = tl.zeros([BM, WIDTH], tl.float32)
    for start in range(0, 4 * WIDTH, BH):
        hidden = tl.dot(normed, expand_w.load([start, 0]).T, input_precision="ieee")
        hidden += tl.load(expand_b_ptr + start + tl.arange(0, BH))[None, :]
        hidden = (hidden * normal_cdf(hidden, CDF)).to(dtype)
        z = tl.dot(hidden, contract_w.load([0, start]).T, z, input_precision="ieee")
    z += tl.load(contract_b_ptr + cols)
    if DROP:
        key = dropout_key(seed_ptr, step, 2, 0)
        z = tl.where(kept(key, rows, cols, THRESHOLD), z * KEPT_SCALE, 0.0)
    z += y.to(tl.float32)
    if LOGITS or FEEDBACK:
        values = tl.arange(0, VALUES_P)
        there = values[:, None] < VALUES
        out_w = tl.load(out_w_ptr + values[:, None] * WIDTH + cols, mask=there, other=0.0)
        logits = tl.dot(normalise(z, WIDTH)[0].to(dtype), out_w.T, input_precision="ieee")
        logits += tl.load(out_b_ptr + values, mask=values < VALUES, other=0.0)[None, :]
        values = values[None, :]
        if LOGITS:
            tl.store(logits_ptr + rows * VALUES + values, logits, mask=(rows < M) & (values < VALUES))
        if FEEDBACK:
            logits = tl.where(values < VALUES, logits, float("-inf"))
            power = tl.exp(logits - tl.max(logits, 1)[:, None])
            power = power / tl.sum(power, 1)[:, None]
            feedback = tl.load(feedback_ptr + cols.T * VALUES + values, mask=values < VALUES, other=0.0)
            z = tl.dot(power.to(dtype), feedback.T, z, input_precision="ieee")
    after.store([row, 0], rounded(z, after.dtype))
    if NEXT:
        _project(z, qkv_w, qkv_b_ptr, gain_ptr, context, qkv, row, WIDTH, INJECT, BN)
