"""Everything of one recurrence that treats each token alone, backward, for a tile of tokens.

What the forward pass did not keep is computed again. Gradients of large matrices are left to one product over the
tokens of several recurrences (`mull.kernels.weights`), for which both operands are written; those of the output layer
are summed over a tile here, into a row of `sums` that belongs to this tile alone, so that the result does not depend on
the order of programs: H gain | D bias of output | H D output | H D feedback.

What is named without `_ptr` is a tensor descriptor.
Shapes: M token (puzzles times variables), H width, D value (padded to a power of two, at least 16).
"""

from __future__ import annotations

import triton
import triton.language as tl

from mull.kernels.common import alike, dropout_key, hidden_zero, kept, mix, normal_cdf, normalise, normalise_backward


@triton.jit
def _add(ptr, value):
    tl.store(ptr, tl.load(ptr) + value)


@triton.jit
def _project_backward(
    x,
    grad,
    w,
    gain_ptr,
    context,
    grad_context,
    grad_qkv,
    normed_qkv,
    sums_ptr,
    row,
    WIDTH: tl.constexpr,
    INJECT: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
):
    """The state's gradient, with what comes through queries, keys and values added."""
    cols = tl.arange(0, WIDTH)
    toward = tl.zeros([BM, WIDTH], tl.float32)
    for start in range(0, 3 * WIDTH, BN):
        part = grad_qkv.load([row, start])
        toward = tl.dot(part, w.load([start, 0]), toward, input_precision="ieee")
    normed, scale = normalise(alike(x.load([row, 0]).to(tl.float32), toward), WIDTH)
    shown = normed
    if INJECT:
        gain = tl.load(gain_ptr + cols)[None, :]
        shown = normed * gain + context.load([row, 0]).to(tl.float32)
        grad_context.store([row, 0], grad_context.load([row, 0]) + toward)
        _add(sums_ptr + cols, tl.sum(toward * normed, 0))
        toward = toward * gain
    normed_qkv.store([row, 0], shown.to(normed_qkv.dtype))
    return normalise_backward(toward, normed, scale, WIDTH) + grad.load([row, 0])


@triton.jit
def project_backward(
    x,  # (M, H), and its gradient, which changes in place
    grad,
    w,  # (3H, H)
    gain_ptr,
    context,
    grad_context,
    grad_qkv,  # (M, 3H)
    normed_qkv,  # (M, H) an operand for the gradient of `w`
    sums_ptr,
    WIDTH: tl.constexpr,
    SUMS: tl.constexpr,
    INJECT: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
):
    """The first state's gradient."""
    row = tl.program_id(0) * BM
    sums_ptr += tl.program_id(0) * SUMS
    toward = _project_backward(
        x, grad, w, gain_ptr, context, grad_context, grad_qkv, normed_qkv, sums_ptr, row, WIDTH, INJECT, BM, BN
    )
    grad.store([row, 0], toward)


@triton.jit
def _output_backward(
    x,
    grad,
    logits_ptr,
    grad_logits_ptr,
    out_w_ptr,
    feedback_ptr,
    sums_ptr,
    rows,
    M,
    WIDTH: tl.constexpr,
    VALUES: tl.constexpr,
    VALUES_P: tl.constexpr,
    FEEDBACK: tl.constexpr,
):
    """The gradient of the state before feedback, with the output layer's added."""
    dtype = out_w_ptr.dtype.element_ty
    cols = tl.arange(0, WIDTH)[:, None]
    values = tl.arange(0, VALUES_P)[None, :]
    there = (rows < M) & (values < VALUES)
    toward = tl.load(grad_logits_ptr + rows * VALUES + values, mask=there, other=0.0)
    start = sums_ptr + WIDTH + VALUES_P + cols * VALUES_P + values
    if FEEDBACK:
        logits = tl.load(logits_ptr + rows * VALUES + values, mask=there, other=-1e30)
        power = tl.exp(logits - tl.max(logits, 1)[:, None])
        power = power / tl.sum(power, 1)[:, None]
        w = tl.load(feedback_ptr + cols * VALUES + values, mask=values < VALUES, other=0.0)
        shown, back = power.to(dtype), grad.to(dtype)
        x -= tl.dot(shown, w.T, input_precision="ieee")
        along = tl.dot(back, w, input_precision="ieee")
        toward += power * (along - tl.sum(along * power, 1)[:, None])
        _add(start + WIDTH * VALUES_P, tl.dot(back.T, shown, input_precision="ieee"))
    normed, scale = normalise(x, WIDTH)
    _add(sums_ptr + WIDTH + tl.arange(0, VALUES_P), tl.sum(toward, 0))
    toward = toward.to(dtype)
    _add(start, tl.dot(normed.to(dtype).T, toward, input_precision="ieee"))
    w = tl.load(out_w_ptr + values.T * WIDTH + cols.T, mask=values.T < VALUES, other=0.0)
    toward = tl.dot(toward, w, input_precision="ieee")
    return grad + normalise_backward(toward, normed, scale, WIDTH)


@triton.jit(do_not_specialize=["M", "step"], do_not_specialize_on_alignment=["logits_ptr", "grad_logits_ptr"])
def token_backward(
    x,  # (M, H) the state before, and after, this recurrence
    after,
    mixed,  # (M, H) what attention mixed
    logits_ptr,  # (M, D), and their gradient
    grad_logits_ptr,
    grad,  # (M, H) gradient of the state after; becomes that of the state before, without its part by attention
    grad_qkv,  # (M, 3H) of the next recurrence
    mix_w,  # (H, H), (H)
    mix_b_ptr,
    expand_w,  # (4H, H), (4H)
    expand_b_ptr,
    contract_w,  # (H, 4H)
    out_w_ptr,  # (D, H)
    feedback_ptr,  # (H, D)
    qkv_w,  # (3H, H): of the block that comes next
    gain_ptr,  # (H), (M, H), (M, H): what `inject` needs
    context,
    grad_context,
    grad_mixed,  # (M, H)
    normed_qkv,  # (M, H) operands for the gradients of the matrices
    normed_mlp,
    grad_y,
    grad_z,
    hidden,  # (M, 4H)
    grad_hidden,
    sums_ptr,  # one row for each tile: of this block, and of the next
    next_sums_ptr,
    scale_ptr,  # (M), from `FIRST` to `SECOND`
    seed_ptr,
    M,
    step,
    FIRST: tl.constexpr,
    SECOND: tl.constexpr,
    WIDTH: tl.constexpr,
    VALUES: tl.constexpr,
    VALUES_P: tl.constexpr,
    SUMS: tl.constexpr,
    BM: tl.constexpr,
    BH: tl.constexpr,
    BN: tl.constexpr,
    BC: tl.constexpr,
    FEEDBACK: tl.constexpr,
    INJECT: tl.constexpr,
    NEXT: tl.constexpr,
    CDF: tl.constexpr,
    DROP: tl.constexpr,
    THRESHOLD: tl.constexpr,
    KEPT_SCALE: tl.constexpr,
):
    """From the gradients of logits and of the next recurrence's queries, keys and values to attention's gradient.

    In one kernel, or in two, `FIRST` up to the MLP's output and then `SECOND`, each of which needs fewer registers.
    """
    tile = tl.program_id(0)
    row = tile * BM
    rows = row + tl.arange(0, BM)[:, None]
    cols = tl.arange(0, WIDTH)[None, :]
    dtype: tl.constexpr = mixed.dtype
    if DROP:
        key, zero = dropout_key(seed_ptr, step, 1, 0), hidden_zero(seed_ptr)
    if FIRST:
        sums_ptr += tile * SUMS
        if NEXT:
            toward = _project_backward(
                after, grad, qkv_w, gain_ptr, context, grad_context, grad_qkv, normed_qkv,
                next_sums_ptr + tile * SUMS, row, WIDTH, INJECT, BM, BN,
            )  # fmt: skip
        else:
            toward = grad.load([row, 0])
        at_z = _output_backward(
            alike(after.load([row, 0]).to(tl.float32), toward), toward, logits_ptr, grad_logits_ptr, out_w_ptr,
            feedback_ptr, sums_ptr, rows, M, WIDTH, VALUES, VALUES_P, FEEDBACK,
        )  # fmt: skip
        toward = at_z
        if DROP:
            other_key = dropout_key(seed_ptr, step, 2, 0)
            toward = tl.where(kept(other_key, rows, cols, THRESHOLD), toward * KEPT_SCALE, zero)
        back = toward.to(dtype)
        grad_z.store([row, 0], back)
        if not SECOND:
            grad.store([row, 0], at_z)

        y = mix(mixed, mix_w, row, WIDTH, BM, BC) + tl.load(mix_b_ptr + cols)
        if DROP:
            y = tl.where(kept(key, rows, cols, THRESHOLD), y * KEPT_SCALE, 0.0)
        y += x.load([row, 0]).to(tl.float32)
        normed, scale = normalise(y, WIDTH)
        normed = normed.to(dtype)
        normed_mlp.store([row, 0], normed)
        if not SECOND:
            tl.store(scale_ptr + row + tl.arange(0, BM), scale, mask=row + tl.arange(0, BM) < M)
    else:
        back = grad_z.load([row, 0])
        normed = normed_mlp.load([row, 0])
    if SECOND:
        toward = tl.zeros([BM, WIDTH], tl.float32)
        for start in range(0, 4 * WIDTH, BH):
            w = expand_w.load([start, 0])
            a = tl.dot(normed, w.T, input_precision="ieee") + tl.load(expand_b_ptr + start + tl.arange(0, BH))[None, :]
            cdf = normal_cdf(a, CDF)
            slope = tl.dot(back, contract_w.load([0, start]), input_precision="ieee")
            slope *= cdf + a * (0.3989422804014327 * tl.exp2(a * a * -0.7213475204444817))
            hidden.store([row, start], (a * cdf).to(dtype))
            slope = slope.to(dtype)
            grad_hidden.store([row, start], slope)
            toward = tl.dot(slope, w, toward, input_precision="ieee")
        if not FIRST:  # read only now: registers are scarce in the loop
            at_z = alike(grad.load([row, 0]), toward)
            scale = tl.load(scale_ptr + row + tl.arange(0, BM), mask=row + tl.arange(0, BM) < M, other=0.0)
            normed = normed_mlp.load([row, 0])
        normed = alike(normed.to(tl.float32), toward)
        toward = at_z + normalise_backward(toward, normed, scale, WIDTH)
        grad.store([row, 0], toward)
        if DROP:
            toward = tl.where(kept(key, rows, cols, THRESHOLD), toward * KEPT_SCALE, zero)
        back = toward.to(dtype)
        grad_y.store([row, 0], back)
        for start in range(0, WIDTH, BC):
            part = tl.dot(back, mix_w.load([0, start]), input_precision="ieee")
            grad_mixed.store([row, start], part.to(dtype))
