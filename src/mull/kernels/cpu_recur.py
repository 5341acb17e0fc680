"""Recurrences without gradients on a CPU: a puzzle stays in the nearest caches from its first to its last.

Products with the blocks' matrices are made in 8-bit integers. A token's numbers get a scale of their own each time, so
that nothing has to be calibrated and no answer depends on another: `x = s (q - 128)` with `s = max|x| / 127`, and after
GELU, which is never below -LOW, `x = s q - LOW`. Attention multiplies in bfloat16. All else, the state and the output
layer above all, is float32. What follows the products for attention treats nine tokens, the rows of a tile, at a time.
Shapes: see `rounded.py`.
"""

from __future__ import annotations

from mull.kernels.avx512 import COLUMNS, ROWS, narrow_tile, store_pairs, tile
from mull.kernels.cpu_rows import exponentials, gelu, hidden_to_bytes, normed, to_bytes
from mull.kernels.cpu_token import statistics
from mull.kernels.simd import LANES, LOG2E, ONE, ZERO, jit, load, part, splat, store


@part
def _rows_to_bytes(first, room):
    """Nine rows of numbers in bytes."""
    for r in range(ROWS):
        room.scale_P[first + r] = to_bytes(room.mixed_RH, r, room.x_PH.shape[1], room.bytes_RF, r)


@part
def _read(context_MH, token, variables, inject, gain_LH, block, room):
    """The layer norm before attention, plus the context, as bytes."""
    x_PH, row, width = room.x_PH, room.floats_RF, room.x_PH.shape[1]
    for i in range(variables):
        mean, scale = statistics(x_PH, i)
        for j in range(0, width, LANES):
            value = (load(x_PH, i, j) - mean) * scale
            if inject:
                value = value * load(gain_LH, block, j) + load(context_MH, token + i, j)
            store(row, 0, j, value)
        room.scale_P[i] = to_bytes(row, 0, width, room.read_PH, i)


@part
def _queries_keys_values(matrix, block, room):
    """Products of all tokens with one panel of the matrix after the other."""
    read_PH, qkv_P3H, found = room.read_PH, room.qkv_P3H, room.floats_RF
    units, panels = read_PH.shape[1] // 4, qkv_P3H.shape[1] // COLUMNS
    for panel in range(panels):
        at, c = (block * panels + panel) * units, panel * COLUMNS
        for i in range(0, read_PH.shape[0], ROWS):
            tile(read_PH, i, 0, matrix.units, at, 0, units, matrix.start_LN, block, c, found, 0, 0)
            for j in range(0, COLUMNS, LANES):
                scale, bias = load(matrix.scale_LN, block, c + j), load(matrix.bias_LN, block, c + j)
                for r in range(ROWS):
                    store(qkv_P3H, i + r, c + j, load(found, r, j) * room.scale_P[i + r] * scale + bias)


@part
def _pack(variables, room):
    """Keys and values as units: of two numbers of a key, and of a number of two tokens' values."""
    qkv_P3H, pairs, keys, width = room.qkv_P3H, room.pairs, room.keys, room.x_PH.shape[1]
    for i in range(variables):
        for c in range(width // 2):
            keys[c, i] = pairs[i, width // 2 + c]
    for i in range(0, variables, 2):
        for j in range(0, width, LANES):
            first, second = load(qkv_P3H, i, 2 * width + j), splat(ZERO)
            if i + 1 < variables:
                second = load(qkv_P3H, i + 1, 2 * width + j)
            store_pairs(room.values, i // 2, 2 * j, first, second)


@part
def _attend(first, heads, room):
    """What nine tokens mix, of all heads; a tile wider than a head reaches into the next, which comes later."""
    scores, shares, mixed, none = room.scores_RK, room.shares_RK, room.mixed_RH, room.none_1F
    size = room.x_PH.shape[1] // heads
    for head in range(heads):
        at = head * size
        for j in range(0, scores.shape[1], COLUMNS):
            tile(room.qkv_P3H, first, at, room.keys, at // 2, j, size // 2, room.mask_1K, 0, j, scores, 0, j)
        exponentials(scores, ONE, shares, first, room.scale_P)
        for j in range(0, size, COLUMNS):
            tile(shares, 0, 0, room.values, 0, 2 * (at + j), room.values.shape[0], none, 0, 0, mixed, 0, at + j)
        for r in range(ROWS):
            for j in range(at, at + size, LANES):
                store(mixed, r, j, load(mixed, r, j) * room.scale_P[first + r])


@part
def _add(matrix, block, first, room):
    """The product of nine rows of bytes and a matrix, onto the state."""
    x_PH, found, panels = room.x_PH, room.floats_RF, room.x_PH.shape[1] // COLUMNS
    units = matrix.units.shape[0] // (matrix.start_LN.shape[0] * panels)
    for panel in range(panels):
        at, c = (block * panels + panel) * units, panel * COLUMNS
        tile(room.bytes_RF, 0, 0, matrix.units, at, 0, units, matrix.start_LN, block, c, found, 0, 0)
        for j in range(0, COLUMNS, LANES):
            scale, bias = load(matrix.scale_LN, block, c + j), load(matrix.bias_LN, block, c + j)
            for r in range(ROWS):
                i = first + r
                store(x_PH, i, c + j, load(x_PH, i, c + j) + (load(found, r, j) * room.scale_P[i] * scale + bias))


@part
def _mlp(expand, contract, block, first, room):
    """The MLP of nine tokens, onto the state."""
    hidden = room.floats_RF
    units, panels = room.x_PH.shape[1] // 4, hidden.shape[1] // COLUMNS
    normed(room.x_PH, first, room.mixed_RH)
    _rows_to_bytes(first, room)
    for panel in range(panels):
        at, c = (block * panels + panel) * units, panel * COLUMNS
        tile(room.bytes_RF, 0, 0, expand.units, at, 0, units, expand.start_LN, block, c, hidden, 0, c)
        for j in range(c, c + COLUMNS, LANES):
            scale, bias = load(expand.scale_LN, block, j), load(expand.bias_LN, block, j)
            for r in range(ROWS):
                store(hidden, r, j, gelu(load(hidden, r, j) * room.scale_P[first + r] * scale + bias))
    for r in range(ROWS):
        room.scale_P[first + r] = hidden_to_bytes(hidden, r, room.bytes_RF)
    _add(contract, block, first, room)


@part
def _predict(weights, first, room, token, variables, logits_MD):
    """Logits of nine tokens."""
    logits = room.logits_RD
    normed(room.x_PH, first, room.mixed_RH)
    for d in range(0, logits.shape[1], LANES):
        units = weights.out_HD.shape[0]
        narrow_tile(room.mixed_RH, 0, 0, weights.out_HD, 0, d, units, weights.out_b_1D, 0, d, logits, 0, d)
    for i in range(first, min(first + ROWS, variables)):
        for d in range(logits_MD.shape[1]):
            logits_MD[token + i, d] = logits[i - first, d]


@part
def _feed_back(feedback_DH, first, room):
    """The prediction for nine tokens into the state."""
    x_PH, fed, shares = room.x_PH, room.floats_RF, room.shares_RD
    exponentials(room.logits_RD, LOG2E, shares, first, room.scale_P)
    for c in range(0, x_PH.shape[1], COLUMNS):
        tile(shares, 0, 0, feedback_DH, 0, c, feedback_DH.shape[0], room.none_1F, 0, 0, fed, 0, 0)
        for r in range(ROWS):
            i = first + r
            for j in range(0, COLUMNS, LANES):
                store(x_PH, i, c + j, load(x_PH, i, c + j) + load(fed, r, j) * room.scale_P[i])


@part
def _copy(source, first, to, begin, count):
    """Rows of numbers."""
    for i in range(count):
        for j in range(0, to.shape[1], LANES):
            store(to, begin + i, j, load(source, first + i, j))


@jit
def recur(state_MH, context_MH, logits_MD, weights, room, variables, heads, count, inject, feed):
    """`count` recurrences of each puzzle: its state changes in place, and the last logits are written."""
    x_PH, blocks = room.x_PH, weights.gain_LH.shape[0]
    for token in range(0, state_MH.shape[0], variables):
        _copy(state_MH, token, x_PH, 0, variables)
        for _ in range(count):
            for block in range(blocks):
                _read(context_MH, token, variables, inject, weights.gain_LH, block, room)
                _queries_keys_values(weights.qkv, block, room)
                _pack(variables, room)
                for first in range(0, x_PH.shape[0], ROWS):
                    _attend(first, heads, room)
                    _rows_to_bytes(first, room)
                    _add(weights.mix, block, first, room)
                    _mlp(weights.expand, weights.contract, block, first, room)
                    if block == blocks - 1:
                        _predict(weights, first, room, token, variables, logits_MD)
                        if feed:
                            _feed_back(weights.feedback_DH, first, room)
        _copy(x_PH, 0, state_MH, token, variables)
