"""What treats each token alone on a CPU, apart from matrix products: layer norms, residuals, the output layer.

Products with matrices write and read arrays of the operand type (bfloat16 or float32); a state is float32. Affine maps
of layer norms are folded into the matrices (see `fold.py`). Arrays (1, n) are biases, or sums over tokens. Dropout is
a function of a seed and of where a number stands, counted from this thread's first token, `begin`.
Shapes: M token, H width, F hidden, D value.
"""

from __future__ import annotations

import math

import numpy as np

from mull.kernels.simd import (
    LANES,
    ONE,
    ZERO,
    exp,
    f32,
    jit,
    larger,
    load,
    part,
    random_keep,
    splat,
    store,
    total,
)

EPSILON = f32(1e-5)


@part
def statistics(x, i):
    """Mean and 1 / deviation of a row, as nn.LayerNorm has them."""
    width = x.shape[1]
    sums = splat(ZERO)
    for j in range(0, width, LANES):
        sums = sums + load(x, i, j)
    mean = total(sums) / f32(width)
    sums = splat(ZERO)
    for j in range(0, width, LANES):
        apart = load(x, i, j) - mean
        sums = sums + apart * apart
    return mean, ONE / f32(math.sqrt(total(sums) / f32(width) + EPSILON))


@jit
def enter_block(x_MH, gain_1H, context_MH, normed_MH, read_MH, scale_M, inject):
    """The layer norm before attention; with `inject` what attention reads is something else: scaled, plus context."""
    for i in range(x_MH.shape[0]):
        mean, scale = statistics(x_MH, i)
        scale_M[i] = scale
        for j in range(0, x_MH.shape[1], LANES):
            normed = (load(x_MH, i, j) - mean) * scale
            store(normed_MH, i, j, normed)
            if inject:
                store(read_MH, i, j, normed * load(gain_1H, 0, j) + load(context_MH, i, j))


@part
def _add(x, y, bias, i, seed, threshold, keep_scale, begin):
    """A branch's result, plus its bias, after dropout, onto a row of the state."""
    width = x.shape[1]
    for j in range(0, width, LANES):
        value = load(y, i, j) + load(bias, 0, j)
        if threshold:
            value = value * random_keep(seed, np.uint32((begin + i) * width + j), threshold, keep_scale)
        store(x, i, j, load(x, i, j) + value)


@jit
def after_attention(x_MH, y_MH, bias_1H, normed_MH, scale_M, seed, threshold, keep_scale, begin):
    """The state with what attention adds, and its layer norm."""
    for i in range(x_MH.shape[0]):
        _add(x_MH, y_MH, bias_1H, i, seed, threshold, keep_scale, begin)
        mean, scale = statistics(x_MH, i)
        scale_M[i] = scale
        for j in range(0, x_MH.shape[1], LANES):
            store(normed_MH, i, j, (load(x_MH, i, j) - mean) * scale)


@part
def _softmax(logits_DT, p_DT):
    """The distributions of sixteen tokens over their values."""
    most, sums = load(logits_DT, 0, 0), splat(ZERO)
    for d in range(1, logits_DT.shape[0]):
        most = larger(most, load(logits_DT, d, 0))
    for d in range(logits_DT.shape[0]):
        e = exp(load(logits_DT, d, 0) - most)
        store(p_DT, d, 0, e)
        sums = sums + e
    for d in range(logits_DT.shape[0]):
        store(p_DT, d, 0, load(p_DT, d, 0) / sums)


@jit
def after_mlp(
    x_MH,
    z_MH,
    bias_1H,
    normed_MH,
    scale_M,
    out_DH,
    out_b_1D,
    logits_MD,
    feedback_DH,
    feed,
    seed,
    threshold,
    keep_scale,
    begin,
):
    """The state with what the MLP adds, the logits, and the prediction fed back into the state."""
    width, values, tokens = x_MH.shape[1], out_DH.shape[0], x_MH.shape[0]
    row = np.empty((1, width), np.float32)
    logits_DT, p_DT = np.zeros((values, LANES), np.float32), np.zeros((values, LANES), np.float32)
    for first in range(0, tokens, LANES):
        for i in range(first, min(first + LANES, tokens)):
            _add(x_MH, z_MH, bias_1H, i, seed, threshold, keep_scale, begin)
            mean, scale = statistics(x_MH, i)
            scale_M[i] = scale
            for j in range(0, width, LANES):
                normed = (load(x_MH, i, j) - mean) * scale
                store(row, 0, j, normed)
                store(normed_MH, i, j, normed)
            for d in range(values):
                sums = splat(ZERO)
                for j in range(0, width, LANES):
                    sums = sums + load(row, 0, j) * load(out_DH, d, j)
                logits_MD[i, d] = logits_DT[d, i - first] = total(sums) + out_b_1D[0, d]
        if feed:
            _softmax(logits_DT, p_DT)
            for i in range(first, min(first + LANES, tokens)):
                for j in range(0, width, LANES):
                    state = load(x_MH, i, j)
                    for d in range(values):
                        state = state + p_DT[d, i - first] * load(feedback_DH, d, j)
                    store(x_MH, i, j, state)


@part
def _norm_backward(grad, i, row, normed, scale):
    """Add to a row of `grad` the gradient before a layer norm, from `row` (1, H), the one after it."""
    width = grad.shape[1]
    sums, products = splat(ZERO), splat(ZERO)
    for j in range(0, width, LANES):
        after = load(row, 0, j)
        sums = sums + after
        products = products + after * load(normed, i, j)
    mean, slope = total(sums) / f32(width), total(products) / f32(width)
    for j in range(0, width, LANES):
        before = (load(row, 0, j) - mean - load(normed, i, j) * slope) * scale
        store(grad, i, j, load(grad, i, j) + before)


@part
def _leave(grad, i, out, sums, seed, threshold, keep_scale, begin):
    """A row's gradient for a branch's last product, and its sum."""
    width = grad.shape[1]
    for j in range(0, width, LANES):
        value = load(grad, i, j)
        if threshold:
            value = value * random_keep(seed, np.uint32((begin + i) * width + j), threshold, keep_scale)
        store(out, i, j, value)
        store(sums, 0, j, load(sums, 0, j) + value)


@jit
def after_mlp_backward(
    grad_MH, normed_MH, scale_M, logits_MD, grad_logits_MD, out_DH, feedback_DH, feed, grad_z_MH, sums_1H,
    out_sums_DH, out_b_sums_1D, feedback_sums_DH, seed, threshold, keep_scale, begin,
):  # fmt: skip
    """Back through feedback, output layer and its layer norm; `grad` is that of the state."""
    width, values, tokens = grad_MH.shape[1], out_DH.shape[0], grad_MH.shape[0]
    row, back_DT = np.empty((1, width), np.float32), np.zeros((values, LANES), np.float32)
    logits_DT, p_DT = np.zeros((values, LANES), np.float32), np.zeros((values, LANES), np.float32)
    for first in range(0, tokens, LANES):
        end = min(first + LANES, tokens)
        for i in range(first, end):
            for d in range(values):
                logits_DT[d, i - first] = logits_MD[i, d]
                back_DT[d, i - first] = grad_logits_MD[i, d]
        if feed:
            _softmax(logits_DT, p_DT)
            _feedback_backward(grad_MH, first, end, p_DT, feedback_DH, back_DT, logits_DT, feedback_sums_DH)
        for i in range(first, end):
            for j in range(0, width, LANES):
                normed, after = load(normed_MH, i, j), splat(ZERO)
                for d in range(values):
                    after = after + back_DT[d, i - first] * load(out_DH, d, j)
                    store(out_sums_DH, d, j, load(out_sums_DH, d, j) + back_DT[d, i - first] * normed)
                store(row, 0, j, after)
            for d in range(values):
                out_b_sums_1D[0, d] += back_DT[d, i - first]
            _norm_backward(grad_MH, i, row, normed_MH, scale_M[i])
            _leave(grad_MH, i, grad_z_MH, sums_1H, seed, threshold, keep_scale, begin)


@part
def _feedback_backward(grad_MH, first, end, p_DT, feedback_DH, back_DT, grad_p_DT, sums_DH):
    """Add to `back` the gradients of logits through feedback, and to `sums` those of its matrix."""
    width, values = grad_MH.shape[1], feedback_DH.shape[0]
    for i in range(first, end):
        for d in range(values):
            sums = splat(ZERO)
            for j in range(0, width, LANES):
                grad = load(grad_MH, i, j)
                sums = sums + grad * load(feedback_DH, d, j)
                store(sums_DH, d, j, load(sums_DH, d, j) + p_DT[d, i - first] * grad)
            grad_p_DT[d, i - first] = total(sums)
    mean = splat(ZERO)
    for d in range(values):
        mean = mean + load(p_DT, d, 0) * load(grad_p_DT, d, 0)
    for d in range(values):
        store(back_DT, d, 0, load(back_DT, d, 0) + load(p_DT, d, 0) * (load(grad_p_DT, d, 0) - mean))


@jit
def after_attention_backward(
    grad_MH, grad_normed_MH, normed_MH, scale_M, grad_y_MH, sums_1H, seed, threshold, keep_scale, begin
):
    """Back through the layer norm before the MLP."""
    row = np.empty((1, grad_MH.shape[1]), np.float32)
    for i in range(grad_MH.shape[0]):
        for j in range(0, grad_MH.shape[1], LANES):
            store(row, 0, j, load(grad_normed_MH, i, j))
        _norm_backward(grad_MH, i, row, normed_MH, scale_M[i])
        _leave(grad_MH, i, grad_y_MH, sums_1H, seed, threshold, keep_scale, begin)


@jit
def enter_block_backward(grad_MH, grad_read_MH, normed_MH, scale_M, gain_1H, grad_context_MH, gain_sums_1H, inject):
    """Back through the layer norm before attention, and what came after it."""
    row = np.empty((1, grad_MH.shape[1]), np.float32)
    for i in range(grad_MH.shape[0]):
        for j in range(0, grad_MH.shape[1], LANES):
            after = load(grad_read_MH, i, j)
            if inject:
                store(grad_context_MH, i, j, load(grad_context_MH, i, j) + after)
                store(gain_sums_1H, 0, j, load(gain_sums_1H, 0, j) + after * load(normed_MH, i, j))
                after = after * load(gain_1H, 0, j)
            store(row, 0, j, after)
        _norm_backward(grad_MH, i, row, normed_MH, scale_M[i])
