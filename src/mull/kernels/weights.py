"""Gradients of matrices and biases: products over the tokens of several recurrences.

Shapes: K token (of several recurrences), S share of the tokens.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["K"])
def weight_gradient(
    left_ptr,  # (K, LEFT)
    right_ptr,  # (K, RIGHT)
    out_ptr,  # (S, LEFT, RIGHT), (S, LEFT)
    bias_ptr,
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
    """`left^T right` and the sum of `left` over one share of the tokens; with `ADD`, on top of what is there."""
    tile = tl.program_id(0)
    share = tl.program_id(1)
    lefts = (tile // (RIGHT // BR)) * BL + tl.arange(0, BL)
    rights = (tile % (RIGHT // BR)) * BR + tl.arange(0, BR)
    first = tile % (RIGHT // BR) == 0
    total = tl.zeros([BL, BR], tl.float32)
    column = tl.zeros([BL, 16], tl.float32)
    ones = (tl.zeros([BK, 16], tl.float32) + (tl.arange(0, 16)[None, :] == 0)).to(left_ptr.dtype.element_ty)
    for turn in range(ROUNDS):
        rows = ((turn * SHARES + share) * BK + tl.arange(0, BK)).to(tl.int64)[:, None]
        inside = rows < K
        left = tl.load(left_ptr + rows * LEFT + lefts[None, :], mask=inside, other=0.0)
        right = tl.load(right_ptr + rows * RIGHT + rights[None, :], mask=inside, other=0.0)
        total = tl.dot(left.T, right, total, input_precision="ieee")
        column = tl.dot(left.T, ones, column, input_precision="ieee")  # the bias's, cheaper than sums over columns
    at = out_ptr + share * (LEFT * RIGHT) + lefts[:, None] * RIGHT + rights[None, :]
    if ADD:
        total += tl.load(at)
    tl.store(at, total)
    if first:
        bias = tl.sum(column, 1)
        spots = bias_ptr + share * LEFT + lefts
        if ADD:
            bias += tl.load(spots)
        tl.store(spots, bias)
