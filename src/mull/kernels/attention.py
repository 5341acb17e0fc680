"""Attention of one recurrence, forward: one program for some or all queries of one puzzle and head.

Shapes: B puzzle, V variable, H width, N head.
"""

from __future__ import annotations

import triton
import triton.language as tl

from mull.kernels.common import dropout_key, hidden_zero, kept, load_rows, store_rows, watches


@triton.jit
def _scores(q, k, keys, V: tl.constexpr, END: tl.constexpr):
    """`q k^T`, and minus infinity where a tile whose keys go up to `END` has more keys than there are."""
    scores = tl.dot(q, tl.trans(k), input_precision="ieee")
    return tl.where(keys[None, :] < V, scores, float("-inf")) if END > V else scores


@triton.jit
def _watched(power, watch_ptr, rows, keys, start, V: tl.constexpr, SPAN: tl.constexpr, WATCH: tl.constexpr):
    """What watched keys have of the powers, by query."""
    return tl.sum(tl.where(watches(watch_ptr, rows, keys, start, V, SPAN, WATCH), power, 0.0), 1)


@triton.jit(do_not_specialize=["step"], do_not_specialize_on_alignment=["watch_ptr", "watched_ptr"])
def attention_forward(
    qkv_ptr,  # (B, V, 3H)
    mixed_ptr,  # (B, V, H)
    lse_ptr,  # (B, N, V): log2 of the sum of powers, for the backward pass
    watch_ptr,  # (V, WATCH): which keys each query watches, in bits
    watched_ptr,  # (B, N, V): the share of attention, before dropout, that watched keys get
    seed_ptr,
    step,
    V: tl.constexpr,
    WIDTH: tl.constexpr,
    HEADS: tl.constexpr,
    HEAD: tl.constexpr,  # numbers of one head, and the same as a power of two, at least 16
    HEAD_P: tl.constexpr,
    SCALE: tl.constexpr,  # of the scores, log2(e) included
    BQ: tl.constexpr,
    TURNS: tl.constexpr,  # blocks of queries of one program
    BK: tl.constexpr,  # keys at a time
    TAIL: tl.constexpr,  # if not 0, there are BK and TAIL keys in all, in two tiles
    SAVE: tl.constexpr,
    WATCH: tl.constexpr,  # if not 0, words in a row of `watch`
    DROP: tl.constexpr,
    THRESHOLD: tl.constexpr,
    KEPT_SCALE: tl.constexpr,
):
    """`softmax(q k^T) v`; the keys of all variables at once, or block by block with a running maximum."""
    place = tl.program_id(0)
    base = (place // HEADS) * V
    head = (place % HEADS) * HEAD
    cols = tl.arange(0, HEAD_P)
    W: tl.constexpr = 3 * WIDTH
    q_ptr = qkv_ptr + head
    key = 0
    if DROP:
        key, zero = dropout_key(seed_ptr, step, 0, place), hidden_zero(seed_ptr)
    if BK + TAIL >= V:  # read once for all queries
        keys = tl.arange(0, BK)
        k = load_rows(q_ptr + WIDTH, base, keys, cols, V, HEAD, W)
        v = load_rows(q_ptr + 2 * WIDTH, base, keys, cols, V, HEAD, W)
        if TAIL > 0:
            tail_keys = BK + tl.arange(0, TAIL)
            tail_k = load_rows(q_ptr + WIDTH, base, tail_keys, cols, V, HEAD, W)
            tail_v = load_rows(q_ptr + 2 * WIDTH, base, tail_keys, cols, V, HEAD, W)
    for turn in range(TURNS):
        rows = (tl.program_id(1) * TURNS + turn) * BQ + tl.arange(0, BQ)
        q = load_rows(q_ptr, base, rows, cols, V, HEAD, W)
        if BK + TAIL >= V:
            scores = _scores(q, k, keys, V, BK)
            top = tl.max(scores, 1) * SCALE
            if TAIL > 0:
                tail_scores = _scores(q, tail_k, tail_keys, V, BK + TAIL)
                top = tl.maximum(top, tl.max(tail_scores, 1) * SCALE)
            power = tl.exp2(scores * SCALE - top[:, None])
            total = tl.sum(power, 1)
            if WATCH > 0:
                share = _watched(power, watch_ptr, rows, keys, 0, V, BK, WATCH)
            if DROP:
                power = tl.where(kept(key, rows[:, None], keys[None, :], THRESHOLD), power, zero)
            mixed = tl.dot(power.to(v.dtype), v, input_precision="ieee")
            if TAIL > 0:
                tail_power = tl.exp2(tail_scores * SCALE - top[:, None])
                total += tl.sum(tail_power, 1)
                if WATCH > 0:
                    share += _watched(tail_power, watch_ptr, rows, tail_keys, BK, V, TAIL, WATCH)
                if DROP:
                    stays = kept(key, rows[:, None], tail_keys[None, :], THRESHOLD)
                    tail_power = tl.where(stays, tail_power, zero)
                mixed = tl.dot(tail_power.to(v.dtype), tail_v, mixed, input_precision="ieee")
        else:
            top = tl.full([BQ], float("-inf"), tl.float32)
            total = tl.zeros([BQ], tl.float32)
            share = tl.zeros([BQ], tl.float32)
            mixed = tl.zeros([BQ, HEAD_P], tl.float32)
            for start in range(0, V, BK):
                keys = start + tl.arange(0, BK)
                k = load_rows(q_ptr + WIDTH, base, keys, cols, V, HEAD, W)
                v = load_rows(q_ptr + 2 * WIDTH, base, keys, cols, V, HEAD, W)
                scores = _scores(q, k, keys, V, V + 1)
                new_top = tl.maximum(top, tl.max(scores, 1) * SCALE)
                power = tl.exp2(scores * SCALE - new_top[:, None])
                fade = tl.exp2(top - new_top)
                mixed = mixed * fade[:, None]
                total = total * fade + tl.sum(power, 1)
                if WATCH > 0:
                    share = share * fade + _watched(power, watch_ptr, rows, keys, start, V, BK, WATCH)
                top = new_top
                if DROP:
                    power = tl.where(kept(key, rows[:, None], keys[None, :], THRESHOLD), power, zero)
                mixed = tl.dot(power.to(v.dtype), v, mixed, input_precision="ieee")
        mixed = mixed * ((KEPT_SCALE if DROP else 1.0) / total)[:, None]
        store_rows(mixed_ptr + head, mixed, base, rows, cols, V, HEAD, WIDTH)
        if SAVE:
            tl.store(lse_ptr + place * V + rows, top + tl.log2(total), mask=rows < V)
        if WATCH > 0:
            tl.store(watched_ptr + place * V + rows, share / total, mask=rows < V)
