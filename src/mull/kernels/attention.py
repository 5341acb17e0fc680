"""Attention of one recurrence, forward: one program for some queries of one puzzle and head.

Shapes: B puzzle, V variable, H width, N head.
"""

from __future__ import annotations

import triton
import triton.language as tl

from mull.kernels.common import dropout_keys, kept


@triton.jit(do_not_specialize=["step"])
def attention_forward(
    qkv_ptr,  # (B, V, 3H)
    mixed_ptr,  # (B, V, H)
    lse_ptr,  # (B, N, V): log2 of the sum of powers, for the backward pass
    seed_ptr,
    step,
    V: tl.constexpr,
    WIDTH: tl.constexpr,
    HEADS: tl.constexpr,
    HEAD: tl.constexpr,  # numbers of one head, and the same as a power of two, at least 16
    HEAD_P: tl.constexpr,
    SCALE: tl.constexpr,  # of the scores, log2(e) included
    BQ: tl.constexpr,
    BK: tl.constexpr,
    SAVE: tl.constexpr,
    DROP: tl.constexpr,
    THRESHOLD: tl.constexpr,
    KEPT_SCALE: tl.constexpr,
):
    """`softmax(q k^T) v`; the keys of all variables in one tile, or block by block with a running maximum."""
    place = tl.program_id(0)
    base = (place // HEADS) * V
    head = place % HEADS
    cols = tl.arange(0, HEAD_P)
    rows = tl.program_id(1) * BQ + tl.arange(0, BQ)
    asked = (rows[:, None] < V) & (cols[None, :] < HEAD)
    q = tl.load(qkv_ptr + (base + rows[:, None]) * (3 * WIDTH) + head * HEAD + cols[None, :], mask=asked, other=0.0)
    if DROP:
        first, second = dropout_keys(seed_ptr, step, 0, place)
    top = tl.full([BQ], float("-inf"), tl.float32)
    total = tl.zeros([BQ], tl.float32)
    mixed = tl.zeros([BQ, HEAD_P], tl.float32)
    for start in range(0, V, BK):
        keys = start + tl.arange(0, BK)
        at = qkv_ptr + (base + keys[:, None]) * (3 * WIDTH) + head * HEAD + cols[None, :]
        inside = (keys[:, None] < V) & (cols[None, :] < HEAD)
        k = tl.load(at + WIDTH, mask=inside, other=0.0)
        v = tl.load(at + 2 * WIDTH, mask=inside, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * SCALE
        scores = tl.where(keys[None, :] < V, scores, float("-inf"))
        new_top = tl.maximum(top, tl.max(scores, 1))
        power = tl.exp2(scores - new_top[:, None])
        if BK < V:
            fade = tl.exp2(top - new_top)
            mixed = mixed * fade[:, None]
            total = total * fade
        top = new_top
        total += tl.sum(power, 1)
        if DROP:
            stays = kept(first, second, rows[:, None], keys[None, :], THRESHOLD)
            power = tl.where(stays, power, 0.0)
        mixed = tl.dot(power.to(v.dtype), v, mixed, input_precision="ieee")
    mixed = mixed * (KEPT_SCALE / total)[:, None] if DROP else mixed * (1.0 / total)[:, None]
    to = mixed_ptr + (base + rows[:, None]) * WIDTH + head * HEAD + cols[None, :]
    tl.store(to, mixed.to(mixed_ptr.dtype.element_ty), mask=asked)
    if SAVE:
        tl.store(lse_ptr + place * V + rows, top + tl.log2(total), mask=rows < V)
