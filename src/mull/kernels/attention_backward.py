"""Attention of one recurrence, backward: scores are computed again, with keys as rows, so that one transpose is enough.

Shapes: B puzzle, V variable, H width, N head.
"""

from __future__ import annotations

import triton
import triton.language as tl

from mull.kernels.common import dropout_key, hidden_zero, kept, load_rows, store_rows, watches


@triton.jit
def _tile(
    q,
    k,
    v,
    grad,
    lse,
    delta,
    pull,
    watch_ptr,
    rows,
    keys,
    start,  # the first query
    key,
    zero,
    V: tl.constexpr,
    BQ: tl.constexpr,
    END: tl.constexpr,  # keys of this tile and those before
    SCALE: tl.constexpr,
    WATCH: tl.constexpr,
    DROP: tl.constexpr,
    THRESHOLD: tl.constexpr,
    KEPT_SCALE: tl.constexpr,
):
    """What the values were weighted with, but for `KEPT_SCALE`, and the gradient of the scores, both (keys, queries).

    Queries beyond the last need no mask: they and their gradients were read as zeros.
    """
    power = tl.exp2(tl.dot(k, tl.trans(q), input_precision="ieee") * SCALE - lse[None, :])
    if END > V:
        power = tl.where(keys[:, None] < V, power, 0.0)
    toward = tl.dot(v, tl.trans(grad), input_precision="ieee")
    weight = power
    if DROP:
        stays = kept(key, rows[None, :], keys[:, None], THRESHOLD)
        weight = tl.where(stays, power, zero)
        toward = tl.where(stays, toward, 0.0) * KEPT_SCALE
    if WATCH > 0:
        watch = watches(watch_ptr, keys, rows, start, V, BQ, WATCH)
        toward += tl.where(watch, pull[None, :], 0.0)
    return weight, power * (toward - delta[None, :])


@triton.jit
def _delta(grad, mixed, watched_ptr, grad_watched_ptr, place, rows, V: tl.constexpr, WATCH: tl.constexpr):
    """Of each query, attention's gradients weighted with attention, and the gradient of what it watches."""
    delta = tl.sum(grad.to(tl.float32) * mixed.to(tl.float32), 1)
    pull = delta
    if WATCH > 0:
        pull = tl.load(grad_watched_ptr + place * V + rows, mask=rows < V, other=0.0)
        delta += pull * tl.load(watched_ptr + place * V + rows, mask=rows < V, other=0.0)
    return delta, pull


@triton.jit(do_not_specialize=["step"], do_not_specialize_on_alignment=["watch_ptr", "watched_ptr", "grad_watched_ptr"])
def attention_backward(
    qkv_ptr,  # (B, V, 3H)
    mixed_ptr,  # (B, V, H), and its gradient
    grad_ptr,
    lse_ptr,  # (B, N, V)
    watch_ptr,  # (V, WATCH): which queries watch each key, in bits
    watched_ptr,  # (B, N, V), and its gradient
    grad_watched_ptr,
    grad_qkv_ptr,  # (B, V, 3H)
    seed_ptr,
    step,
    V: tl.constexpr,
    WIDTH: tl.constexpr,
    HEADS: tl.constexpr,
    HEAD: tl.constexpr,
    HEAD_P: tl.constexpr,
    SCALE: tl.constexpr,  # of the scores, log2(e) included
    SLOPE: tl.constexpr,  # of the scores, without
    BQ: tl.constexpr,
    BK: tl.constexpr,
    TAIL: tl.constexpr,  # if not 0, there are BK and TAIL keys in all, in two tiles
    BLOCKS: tl.constexpr,  # of keys; with more than one, as many programs again do the queries
    WATCH: tl.constexpr,  # if not 0, words in a row of `watch`
    DROP: tl.constexpr,
    THRESHOLD: tl.constexpr,
    KEPT_SCALE: tl.constexpr,
):
    """Gradients of queries, keys and values of one puzzle and head."""
    place = tl.program_id(0)
    part = tl.program_id(1)
    base = (place // HEADS) * V
    head = (place % HEADS) * HEAD
    cols = tl.arange(0, HEAD_P)
    W: tl.constexpr = 3 * WIDTH
    q_ptr, g_ptr, o_ptr, d_ptr = qkv_ptr + head, grad_ptr + head, mixed_ptr + head, grad_qkv_ptr + head
    key, zero = 0, 0.0
    if DROP:
        key, zero = dropout_key(seed_ptr, step, 0, place), hidden_zero(seed_ptr)
    if part < BLOCKS:
        keys = part * BK + tl.arange(0, BK)
        k = load_rows(q_ptr + WIDTH, base, keys, cols, V, HEAD, W)
        v = load_rows(q_ptr + 2 * WIDTH, base, keys, cols, V, HEAD, W)
        grad_k = tl.zeros([BK, HEAD_P], tl.float32)
        grad_v = tl.zeros([BK, HEAD_P], tl.float32)
        if TAIL > 0:
            tail_keys = BK + tl.arange(0, TAIL)
            tail_k = load_rows(q_ptr + WIDTH, base, tail_keys, cols, V, HEAD, W)
            tail_v = load_rows(q_ptr + 2 * WIDTH, base, tail_keys, cols, V, HEAD, W)
            tail_grad_k = tl.zeros([TAIL, HEAD_P], tl.float32)
            tail_grad_v = tl.zeros([TAIL, HEAD_P], tl.float32)
        for start in range(0, V, BQ):
            rows = start + tl.arange(0, BQ)
            q = load_rows(q_ptr, base, rows, cols, V, HEAD, W)
            grad = load_rows(g_ptr, base, rows, cols, V, HEAD, WIDTH)
            mixed = load_rows(o_ptr, base, rows, cols, V, HEAD, WIDTH)
            delta, pull = _delta(grad, mixed, watched_ptr, grad_watched_ptr, place, rows, V, WATCH)
            lse = tl.load(lse_ptr + place * V + rows, mask=rows < V, other=0.0)
            weight, slope = _tile(
                q, k, v, grad, lse, delta, pull, watch_ptr, rows, keys, start, key, zero, V, BQ, BK * BLOCKS, SCALE,
                WATCH, DROP, THRESHOLD, KEPT_SCALE,
            )  # fmt: skip
            grad_v = tl.dot(weight.to(grad.dtype), grad, grad_v, input_precision="ieee")
            slope = slope.to(q.dtype)
            grad_k = tl.dot(slope, q, grad_k, input_precision="ieee")
            if BLOCKS == 1:
                grad_q = tl.dot(tl.trans(slope), k, input_precision="ieee")
                if TAIL > 0:
                    weight, slope = _tile(
                        q, tail_k, tail_v, grad, lse, delta, pull, watch_ptr, rows, tail_keys, start, key, zero, V, BQ,
                        BK + TAIL, SCALE, WATCH, DROP, THRESHOLD, KEPT_SCALE,
                    )  # fmt: skip
                    tail_grad_v = tl.dot(weight.to(grad.dtype), grad, tail_grad_v, input_precision="ieee")
                    slope = slope.to(q.dtype)
                    tail_grad_k = tl.dot(slope, q, tail_grad_k, input_precision="ieee")
                    grad_q = tl.dot(tl.trans(slope), tail_k, grad_q, input_precision="ieee")
                store_rows(d_ptr, grad_q * SLOPE, base, rows, cols, V, HEAD, W)
        store_rows(d_ptr + WIDTH, grad_k * SLOPE, base, keys, cols, V, HEAD, W)
        store_rows(d_ptr + 2 * WIDTH, grad_v * KEPT_SCALE, base, keys, cols, V, HEAD, W)
        if TAIL > 0:
            store_rows(d_ptr + WIDTH, tail_grad_k * SLOPE, base, tail_keys, cols, V, HEAD, W)
            store_rows(d_ptr + 2 * WIDTH, tail_grad_v * KEPT_SCALE, base, tail_keys, cols, V, HEAD, W)
    elif BLOCKS > 1:
        first = (part - BLOCKS) * BQ
        rows = first + tl.arange(0, BQ)
        q = load_rows(q_ptr, base, rows, cols, V, HEAD, W)
        grad = load_rows(g_ptr, base, rows, cols, V, HEAD, WIDTH)
        mixed = load_rows(o_ptr, base, rows, cols, V, HEAD, WIDTH)
        delta, pull = _delta(grad, mixed, watched_ptr, grad_watched_ptr, place, rows, V, WATCH)
        lse = tl.load(lse_ptr + place * V + rows, mask=rows < V, other=0.0)
        grad_q = tl.zeros([BQ, HEAD_P], tl.float32)
        for start in range(0, V, BK):
            keys = start + tl.arange(0, BK)
            k = load_rows(q_ptr + WIDTH, base, keys, cols, V, HEAD, W)
            v = load_rows(q_ptr + 2 * WIDTH, base, keys, cols, V, HEAD, W)
            weight, slope = _tile(
                q, k, v, grad, lse, delta, pull, watch_ptr, rows, keys, first, key, zero, V, BQ, BK * BLOCKS, SCALE,
                WATCH, DROP, THRESHOLD, KEPT_SCALE,
            )  # fmt: skip
            grad_q = tl.dot(tl.trans(slope.to(k.dtype)), k, grad_q, input_precision="ieee")
        store_rows(d_ptr, grad_q * SLOPE, base, rows, cols, V, HEAD, W)
