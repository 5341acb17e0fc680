"""Gradients of matrices: products over the tokens of several recurrences.

Shapes: K token (of several recurrences), S share of the tokens.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["K"])
def weight_gradient(
    left_ptr,  # (K, LEFT)
    right_ptr,  # (K, RIGHT)
    out_ptr,  # (S, LEFT, RIGHT)
    K,
    LEFT: tl.constexpr,
    RIGHT: tl.constexpr,
    SHARES: tl.constexpr,
    BL: tl.constexpr,
    BR: tl.constexpr,
    BK: tl.constexpr,
    ROUNDS: tl.constexpr,  # K / (SHARES * BK), rounded up: the interpreter's loops need a constant
    ADD: tl.constexpr,
):
    """`left^T right`, over one share of the tokens, added to what earlier calls found or written over it."""
    tile = tl.program_id(0)
    share = tl.program_id(1)
    lefts = (tile // (RIGHT // BR)) * BL + tl.arange(0, BL)
    rights = (tile % (RIGHT // BR)) * BR + tl.arange(0, BR)
    total = tl.zeros([BL, BR], tl.float32)
    for turn in range(ROUNDS):
        rows = ((turn * SHARES + share) * BK + tl.arange(0, BK)).to(tl.int64)[:, None]
        inside = rows < K
        left = tl.load(left_ptr + rows * LEFT + lefts[None, :], mask=inside, other=0.0)
        right = tl.load(right_ptr + rows * RIGHT + rights[None, :], mask=inside, other=0.0)
        total = tl.dot(tl.trans(left), right, total, input_precision="ieee")
    at = out_ptr + share * (LEFT * RIGHT) + lefts[:, None] * RIGHT + rights[None, :]
    if ADD:
        total += tl.load(at)
    tl.store(at, total)
