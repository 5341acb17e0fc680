"""Truth values with gradients: a probability is binarised, and the gradient passes straight through.

b(x) is 1 if x >= 0.5, else 0. Its own gradient is 0 almost everywhere, so an estimator takes its place:

- `identity`: 1 everywhere (the paper's).
- `clipped`: 1 where the log-odds log(x / (1 - x)) are between -1 and 1, that is 0.27 <= x <= 0.73, and 0 elsewhere.
  This is the saturated estimator of CL-STE, clip(z, -1, 1) for a raw output z that is true if z >= 0, with the log-odds
  as the raw output. It leaves alone what the model is sure of; but of nine equally likely values none gets a gradient.
- `soft`: nothing is binarised; b(x) is x itself, so that counts are expected ones. Not in the paper.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

ESTIMATORS = ("identity", "clipped", "soft")
CLIP = 1 / (1 + math.exp(-1)) - 0.5
"""How far from 1/2 a probability may be for the clipped estimator: log-odds of 1."""


def binarise(probability: Tensor, estimator: str = "identity") -> Tensor:
    """b(x), with the gradient of the estimator."""
    if estimator == "soft":
        return probability
    truth: Tensor = _Binarise.apply(probability, estimator == "clipped")  # type: ignore[no-untyped-call]
    return truth


class _Binarise(torch.autograd.Function):
    # `hard + x - x.detach()` would not be exact: the loss of a right answer would not be zero.

    @staticmethod
    def forward(ctx: Any, probability: Tensor, clipped: bool) -> Tensor:
        ctx.passes = (probability - 0.5).abs() <= CLIP if clipped else None
        return (probability >= 0.5).to(probability.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (gradient,) = gradients
        return (gradient if ctx.passes is None else gradient * ctx.passes), None
