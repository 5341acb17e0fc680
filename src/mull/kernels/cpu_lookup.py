"""Rows of small tables for many tokens on a CPU: what a token and its place decide is computed once for each pair.

Shapes: B puzzle, V variable, M = B V token, K row of a table, H width.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from mull.kernels.cpu_threads import everybody, shares_of
from mull.kernels.simd import LANES, jit, load, store


def look_up(rows_BV: Tensor, *tables_KH: Tensor) -> tuple[Tensor, ...]:
    """The rows (B, V, H) of each table, in float32."""
    found: tuple[Tensor, ...] = _LookUp.apply(rows_BV, *tables_KH)
    return found


class _LookUp(torch.autograd.Function):
    """See the top of this file."""

    @staticmethod
    def forward(ctx: Any, rows_BV: Tensor, *tables_KH: Tensor) -> tuple[Tensor, ...]:
        """One tensor for each table."""
        ctx.rows, ctx.shapes = rows_BV.flatten().numpy(), [table.shape for table in tables_KH]
        ctx.shares = shares_of(rows_BV.numel(), rows_BV.shape[1])
        found = [torch.empty(*rows_BV.shape, table.shape[1]) for table in tables_KH]

        def go(number: int) -> None:
            share = ctx.shares[number]
            for table, out in zip(tables_KH, found, strict=True):
                np.take(table.detach().numpy(), ctx.rows[share], 0, out.flatten(0, 1).numpy()[share], mode="clip")

        everybody(go, len(ctx.shares))
        return tuple(found)

    @staticmethod
    def backward(ctx: Any, *grads_BVH: Tensor) -> tuple[Tensor | None, ...]:
        """Each table's gradient: the sum over the tokens that took a row."""
        sums = [[torch.zeros(shape) for shape in ctx.shapes] for _ in ctx.shares]

        def go(number: int) -> None:
            share = ctx.shares[number]
            for grad, table in zip(grads_BVH, sums[number], strict=True):
                add_rows(grad.flatten(0, 1).contiguous().numpy()[share], ctx.rows[share], table.numpy())

        everybody(go, len(ctx.shares))
        return None, *(torch.stack(parts).sum(0) for parts in zip(*sums, strict=True))


@jit
def add_rows(grad_MH, rows_M, sums_KH):
    """Add each token's gradient to its row."""
    for i in range(grad_MH.shape[0]):
        for j in range(0, grad_MH.shape[1], LANES):
            store(sums_KH, rows_M[i], j, load(sums_KH, rows_M[i], j) + load(grad_MH, i, j))
