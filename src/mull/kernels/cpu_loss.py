"""Cross entropy and its gradient in one go on a CPU, for sixteen tokens at a time.

Shapes: S recurrence, L block, T = S L, B puzzle, V variable, M = B V token, D value.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mull.kernels.cpu_threads import everybody, shares_of
from mull.kernels.simd import LANES, ZERO, exp, jit, larger, load, splat, store
from mull.kernels.tiles import zeros


def cross_entropy(logits_SLBVD: Tensor, labels_BV: Tensor, labelled_BV: Tensor) -> Tensor:
    """Averaged over outputs and labelled variables; labels are int64, and any number where nothing is labelled."""
    found: Tensor = _CrossEntropy.apply(logits_SLBVD, labels_BV.flatten(), labelled_BV.flatten())
    return found


class _CrossEntropy(torch.autograd.Function):
    """See the top of this file."""

    @staticmethod
    def forward(ctx: Any, logits_SLBVD: Tensor, labels_M: Tensor, labelled_M: Tensor) -> Tensor:
        """The loss; its gradient is kept."""
        logits = logits_SLBVD.detach().contiguous()
        ctx.gradient, tokens = torch.empty_like(logits), len(labels_M)
        shape = logits.shape[0] * logits.shape[1], tokens, logits.shape[4]
        arrays = [t.numpy() for t in (logits.view(shape), labels_M, labelled_M, ctx.gradient.view(shape))]
        scale = 1 / (max(int(labelled_M.sum()), 1) * shape[0])
        shares = shares_of(tokens, logits.shape[3])
        sums = np.zeros(len(shares))

        def go(number: int) -> None:
            share = shares[number]
            sums[number] = sum_and_gradient(*arrays, share.start, share.stop, np.float32(scale))

        everybody(go, len(shares))
        return logits.new_tensor(sums.sum() * scale)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """The gradient of the logits, which is there already."""
        return ctx.gradient if float(grad) == 1 else ctx.gradient * grad, None, None


@jit
def sum_and_gradient(logits_TMD, labels_M, labelled_M, gradient_TMD, begin, end, scale):
    """The sum over labelled tokens from `begin` to `end`; its gradient, scaled, is written."""
    steps, _, values = logits_TMD.shape
    logits_DT, p_DT, most_1T, sums_1T = (
        zeros(values, LANES), zeros(values, LANES), zeros(1, LANES), zeros(1, LANES),
    )  # fmt: skip
    found = 0.0
    for step in range(steps):
        for first in range(begin, end, LANES):
            here = min(LANES, end - first)
            for i in range(here):
                for d in range(values):
                    logits_DT[d, i] = logits_TMD[step, first + i, d]
            most, sums = load(logits_DT, 0, 0), splat(ZERO)
            for d in range(1, values):
                most = larger(most, load(logits_DT, d, 0))
            for d in range(values):
                e = exp(load(logits_DT, d, 0) - most)
                store(p_DT, d, 0, e)
                sums = sums + e
            share = splat(scale) / sums
            for d in range(values):
                store(p_DT, d, 0, load(p_DT, d, 0) * share)
            store(most_1T, 0, 0, most)
            store(sums_1T, 0, 0, sums)
            product = 1.0  # of sums between 1 and D: one logarithm for sixteen
            for i in range(here):
                token = first + i
                known = labelled_M[token]
                for d in range(values):
                    gradient_TMD[step, token, d] = p_DT[d, i] if known else ZERO
                if known:
                    label = max(labels_M[token], 0)
                    gradient_TMD[step, token, label] -= scale
                    found += most_1T[0, i] - logits_DT[label, i]
                    product *= sums_1T[0, i]
            found += math.log(product)
    return found
