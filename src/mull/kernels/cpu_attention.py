"""Attention of all puzzles and heads on a CPU, forward and backward.

A head's numbers are copied into arrays that stay in the nearest cache, in panels of sixteen columns (see `tiles.py`).
Scores lie there as (key, query), so that softmax adds up and compares whole vectors of queries. The shares that it
gives are kept for the backward pass. Shapes: M token, V variable, P = V in sixteens, H width, and for shares
K = all panels of all heads' keys, one puzzle after the other.
"""

from __future__ import annotations

import math

import numpy as np

from mull.kernels.simd import LANES, ONE, ZERO, exp, f32, jit, larger, load, part, random_keep, splat, store
from mull.kernels.tiles import fetch, product, product_turned, transpose, zeros


@part
def _read(source, bias, first, variables, padded, to):
    """A puzzle's rows of all heads, plus a bias, into panels: in the order in which they lie in memory."""
    for i in range(variables):
        for c in range(source.shape[1] // LANES):
            store(to, c * padded + i, 0, load(source, first + i, c * LANES) + load(bias, 0, c * LANES))


@part
def _write(source, first, variables, padded, to):
    """A puzzle's rows of all heads."""
    for i in range(variables):
        for c in range(to.shape[1] // LANES):
            store(to, first + i, c * LANES, load(source, c * padded + i, 0))


@part
def _add_up(source, variables, padded, sums):
    """Add the rows of all heads to sums."""
    for c in range(sums.shape[1] // LANES):
        column = load(sums, 0, c * LANES)
        for i in range(c * padded, c * padded + variables):
            column = column + load(source, i, 0)
        store(sums, 0, c * LANES, column)


@part
def _softmax(scores, variables, padded, scale, shares, first):
    """Over keys, for all queries, in place and into `shares`, from a row on."""
    for panel in range(0, scores.shape[0], padded):
        most = load(scores, panel, 0)
        for i in range(panel + 1, panel + variables):
            most = larger(most, load(scores, i, 0))
        sums = splat(ZERO)
        for i in range(panel, panel + variables):
            e = exp((load(scores, i, 0) - most) * scale)
            store(scores, i, 0, e)
            sums = sums + e
        one = ONE / sums
        for i in range(panel, panel + variables):
            share = load(scores, i, 0) * one
            store(scores, i, 0, share)
            store(shares, first + i, 0, share)


@part
def _softmax_backward(scores, grad, variables, padded, scale):
    """In place: gradients of scores before softmax, from those after it."""
    for panel in range(0, scores.shape[0], padded):
        sums = splat(ZERO)
        for i in range(panel, panel + variables):
            sums = sums + load(scores, i, 0) * load(grad, i, 0)
        for i in range(panel, panel + variables):
            store(grad, i, 0, load(scores, i, 0) * (load(grad, i, 0) - sums) * scale)


@part
def _drop(source, to, head, seed, threshold, scale):
    """Dropout of attention: the same for a head and a seed whenever it is asked for."""
    for i in range(source.shape[0]):
        at = np.uint32((head * source.shape[0] + i) * LANES)
        store(to, i, 0, load(source, i, 0) * random_keep(seed, at, threshold, scale))


@part
def _keys(shares, first, variables, padded, to):
    """Shares of a head as floats."""
    for panel in range(0, to.shape[0], padded):
        for i in range(panel, panel + variables):
            store(to, i, 0, load(shares, first + i, 0))


@jit
def attention_forward(qkv_M3H, bias_13H, mixed_MH, shares_K, variables, heads, seed, threshold, keep_scale, begin):
    """What attention mixes, from queries, keys and values, to which their bias is added here."""
    width, padded = mixed_MH.shape[1], (variables + LANES - 1) // LANES * LANES
    size = width // heads
    scale, keys, part_rows = f32(1 / math.sqrt(size)), padded // LANES * padded, width // LANES * padded
    qkv, mixed, scores = zeros(3 * part_rows, LANES), zeros(part_rows, LANES), zeros(keys, LANES)
    turned = zeros(size // LANES * padded, LANES)
    for puzzle in range(qkv_M3H.shape[0] // variables):
        _read(qkv_M3H, bias_13H, puzzle * variables, variables, padded, qkv)
        for head in range(heads):
            number, q = puzzle * heads + head, head * (part_rows // heads)
            k, v = q + part_rows, q + 2 * part_rows
            transpose(qkv, q, turned, padded, size)
            product(qkv, k, turned, 0, scores, 0, padded, size, padded)
            _softmax(scores, variables, padded, scale, shares_K, number * keys)
            if threshold:
                _drop(scores, scores, begin // variables * heads + number, seed, threshold, keep_scale)
            product_turned(scores, 0, qkv, v, mixed, q, padded, padded, size)
        _write(mixed, puzzle * variables, variables, padded, mixed_MH)


@part
def _fetch(array, begin, end):
    """Rows of a later puzzle, which come from memory; a few at a time, since no more than that can be under way."""
    for i in range(begin, end):
        for j in range(0, array.shape[1], 2 * LANES):
            fetch(array, i, j)


@jit
def attention_backward(
    qkv_M3H, bias_13H, shares_K, grad_mixed_MH, grad_qkv_M3H, sums_13H, none_13H, variables, heads, seed, threshold,
    keep_scale, begin,
):  # fmt: skip
    """Gradients of queries, keys and values, and their sums over tokens, which are added to `sums`."""
    width, padded = grad_mixed_MH.shape[1], (variables + LANES - 1) // LANES * LANES
    size = width // heads
    scale, keys, part_rows = f32(1 / math.sqrt(size)), padded // LANES * padded, width // LANES * padded
    qkv, grad_qkv, grad = zeros(3 * part_rows, LANES), zeros(3 * part_rows, LANES), zeros(part_rows, LANES)
    turned, scores = zeros(size // LANES * padded, LANES), zeros(keys, LANES)
    dropped, grad_scores = zeros(keys, LANES), zeros(keys, LANES)
    for puzzle in range(qkv_M3H.shape[0] // variables):
        later = (puzzle + 1) * variables
        _read(qkv_M3H, bias_13H, puzzle * variables, variables, padded, qkv)
        _read(grad_mixed_MH, none_13H, puzzle * variables, variables, padded, grad)
        for head in range(heads):
            number, q = puzzle * heads + head, head * (part_rows // heads)
            k, v = q + part_rows, q + 2 * part_rows
            _fetch(qkv_M3H, later + variables * head // heads, later + variables * (head + 1) // heads)
            _keys(shares_K, number * keys, variables, padded, scores)
            transpose(grad, q, turned, padded, size)
            product(qkv, v, turned, 0, grad_scores, 0, padded, size, padded)
            if threshold:
                _drop(scores, dropped, begin // variables * heads + number, seed, threshold, keep_scale)
                _drop(grad_scores, grad_scores, begin // variables * heads + number, seed, threshold, keep_scale)
                product(dropped, 0, grad, q, grad_qkv, v, padded, padded, size)
            else:
                product(scores, 0, grad, q, grad_qkv, v, padded, padded, size)
            _softmax_backward(scores, grad_scores, variables, padded, scale)
            product_turned(grad_scores, 0, qkv, k, grad_qkv, q, padded, padded, size)
            product(grad_scores, 0, qkv, q, grad_qkv, k, padded, padded, size)
        _write(grad_qkv, puzzle * variables, variables, padded, grad_qkv_M3H)
        _add_up(grad_qkv, variables, padded, sums_13H)
