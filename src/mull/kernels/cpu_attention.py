"""Attention of all puzzles and heads on a CPU, forward and backward.

A head's numbers are copied into arrays that stay in the nearest cache. Scores lie there as (key, query), so that
softmax adds up and compares whole vectors of queries. Shapes: M token, V variable, H width, C number of a head.
"""

from __future__ import annotations

import math

import numpy as np

from mull.kernels.simd import LANES, ONE, ZERO, exp, f32, jit, larger, load, part, random_keep, splat, store


@part
def _product(a, b, c, rows, columns, inner):
    """c = a b, for rows in eights and columns in sixteens."""
    for i in range(0, rows, 8):
        for j in range(0, columns, LANES):
            s0 = splat(ZERO)
            s1, s2, s3, s4, s5, s6, s7 = s0, s0, s0, s0, s0, s0, s0
            for t in range(inner):
                r = load(b, t, j)
                s0, s1 = s0 + a[i, t] * r, s1 + a[i + 1, t] * r
                s2, s3 = s2 + a[i + 2, t] * r, s3 + a[i + 3, t] * r
                s4, s5 = s4 + a[i + 4, t] * r, s5 + a[i + 5, t] * r
                s6, s7 = s6 + a[i + 6, t] * r, s7 + a[i + 7, t] * r
            for k, s in enumerate((s0, s1, s2, s3, s4, s5, s6, s7)):
                store(c, i + k, j, s)


@part
def _read(source, bias, first, at, variables, to):
    """One head's rows, plus a bias."""
    for i in range(variables):
        for c in range(0, to.shape[1], LANES):
            store(to, i, c, load(source, first + i, at + c) + load(bias, 0, at + c))


@part
def _write(source, first, at, variables, to, sums):
    """One head's rows into an array of all heads; they are added up too."""
    for c in range(0, source.shape[1], LANES):
        column = load(sums, 0, at + c)
        for i in range(variables):
            value = load(source, i, c)
            store(to, first + i, at + c, value)
            column = column + value
        store(sums, 0, at + c, column)


@part
def _turn(a, rows, to):
    for i in range(rows):
        for c in range(a.shape[1]):
            to[c, i] = a[i, c]


@part
def _softmax(scores, variables, scale):
    """Over keys, for all queries, in place."""
    for j in range(0, scores.shape[1], LANES):
        most = load(scores, 0, j)
        for i in range(1, variables):
            most = larger(most, load(scores, i, j))
        sums = splat(ZERO)
        for i in range(variables):
            e = exp((load(scores, i, j) - most) * scale)
            store(scores, i, j, e)
            sums = sums + e
        share = ONE / sums
        for i in range(variables):
            store(scores, i, j, load(scores, i, j) * share)


@part
def _drop(source, to, variables, head, seed, threshold, scale):
    """Dropout of attention: the same for a head and a seed whenever it is asked for."""
    for i in range(variables):
        for j in range(0, source.shape[1], LANES):
            at = np.uint32((head * variables + i) * source.shape[1] + j)
            store(to, i, j, load(source, i, j) * random_keep(seed, at, threshold, scale))


@jit
def attention_forward(qkv_M3H, bias_13H, mixed_MH, variables, heads, seed, threshold, keep_scale, begin):
    """What attention mixes, from queries, keys and values, to which their bias is added here."""
    width = mixed_MH.shape[1]
    size, padded = width // heads, (variables + LANES - 1) // LANES * LANES
    scale = f32(1 / math.sqrt(size))
    q, k = np.zeros((padded, size), np.float32), np.zeros((padded, size), np.float32)
    v = np.zeros((padded, size), np.float32)
    mixed, turned = np.zeros((padded, size), np.float32), np.zeros((size, padded), np.float32)
    scores, unused = np.zeros((padded, padded), np.float32), np.zeros((1, width), np.float32)
    for puzzle in range(qkv_M3H.shape[0] // variables):
        first = puzzle * variables
        for head in range(heads):
            at = head * size
            _read(qkv_M3H, bias_13H, first, at, variables, q)
            _read(qkv_M3H, bias_13H, first, width + at, variables, k)
            _read(qkv_M3H, bias_13H, first, 2 * width + at, variables, v)
            _turn(q, variables, turned)
            _product(k, turned, scores, padded, padded, size)
            _softmax(scores, variables, scale)
            if threshold:
                _drop(
                    scores, scores, variables, (begin // variables + puzzle) * heads + head, seed, threshold, keep_scale
                )
            _product(scores.T, v, mixed, padded, size, variables)
            _write(mixed, first, at, variables, mixed_MH, unused)


@jit
def attention_backward(
    qkv_M3H, bias_13H, grad_mixed_MH, grad_qkv_M3H, sums_13H, none_13H, variables, heads, seed, threshold, keep_scale,
    begin,
):  # fmt: skip
    """Gradients of queries, keys and values, and their sums over tokens, which are added to `sums`."""
    width = grad_mixed_MH.shape[1]
    size, padded = width // heads, (variables + LANES - 1) // LANES * LANES
    scale = f32(1 / math.sqrt(size))
    q, k = np.zeros((padded, size), np.float32), np.zeros((padded, size), np.float32)
    v = np.zeros((padded, size), np.float32)
    grad, found = np.zeros((padded, size), np.float32), np.zeros((padded, size), np.float32)
    turned, kept = np.zeros((size, padded), np.float32), np.zeros((padded, padded), np.float32)
    scores, grad_scores = np.zeros((padded, padded), np.float32), np.zeros((padded, padded), np.float32)
    for puzzle in range(qkv_M3H.shape[0] // variables):
        first = puzzle * variables
        for head in range(heads):
            at = head * size
            _read(qkv_M3H, bias_13H, first, at, variables, q)
            _read(qkv_M3H, bias_13H, first, width + at, variables, k)
            _read(qkv_M3H, bias_13H, first, 2 * width + at, variables, v)
            _read(grad_mixed_MH, none_13H, first, at, variables, grad)
            _turn(q, variables, turned)
            _product(k, turned, scores, padded, padded, size)
            _softmax(scores, variables, scale)
            _turn(grad, variables, turned)
            _product(v, turned, grad_scores, padded, padded, size)
            if threshold:
                number = (begin // variables + puzzle) * heads + head
                _drop(scores, kept, variables, number, seed, threshold, keep_scale)
                _drop(grad_scores, grad_scores, variables, number, seed, threshold, keep_scale)
                _product(kept, grad, found, padded, size, variables)
            else:
                _product(scores, grad, found, padded, size, variables)
            _write(found, first, 2 * width + at, variables, grad_qkv_M3H, sums_13H)
            _softmax_backward(scores, grad_scores, variables, scale)
            _product(grad_scores.T, k, found, padded, size, variables)
            _write(found, first, at, variables, grad_qkv_M3H, sums_13H)
            _product(grad_scores, q, found, padded, size, variables)
            _write(found, first, width + at, variables, grad_qkv_M3H, sums_13H)


@part
def _softmax_backward(scores, grad, variables, scale):
    """In place: gradients of scores before softmax, from those after it."""
    for j in range(0, scores.shape[1], LANES):
        sums = splat(ZERO)
        for i in range(variables):
            sums = sums + load(scores, i, j) * load(grad, i, j)
        for i in range(variables):
            store(grad, i, j, load(scores, i, j) * (load(grad, i, j) - sums) * scale)
