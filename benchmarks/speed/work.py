"""What the work amounts to, by formula: operations, bytes through device memory, launches, and memory held.

The kernels as they are (`mull.kernels.function`), a token and an application of a block at a time; s is the bytes of a
number of a state, H the width, V the variables, P the values padded for products, bfloat16 elsewhere:

    forward    operations  24 H^2 + 4 V H + 2 H P     bytes  attention 8 H; the rest: state twice s H, 2 H, 6 H, logits
    backward   operations  34 H^2 + 10 V H + 4 H P    bytes  attention 16 H; the rest: states 2 s H, gradient 8 H,
                           (10 H^2 and 2 V H again)          6 H + 2 H read, 26 H written for the matrices' gradients
    matrices   operations  24 H^2                     bytes  32 H

What is compiled from the plain path moves about 290 H bytes: each elementwise stretch between two products reads and
writes its tensors once. Weights and what is smaller than a state are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

COMPILED_BYTES = 290
"""Times the width: an estimate for the plain path, forward and backward."""
LAUNCHES = {"kernels": 5, "compiled": 35}
"""Kernels of one application of a block, forward and backward."""


@dataclass(frozen=True)
class Shape:
    """A model, a batch and how its numbers are kept."""

    puzzles: int
    variables: int
    values: int
    width: int
    heads: int
    blocks: int
    steps: int
    inject: bool = False
    feedback: bool = False
    state_bytes: int = 4
    keeps_qkv: bool = True
    split: bool = False
    """Whether the backward pass over tokens is two kernels: the second reads again what the first wrote."""
    operand_bytes: int = 2 << 30
    """Most that operands of the matrices' gradients may take."""

    @property
    def tokens(self) -> int:
        """Rows of everything that is treated token by token."""
        return self.puzzles * self.variables

    @property
    def applications(self) -> int:
        """Of a block, to one token."""
        return self.blocks * self.steps

    @property
    def padded(self) -> int:
        """Values as products need them."""
        return max(16, 1 << (self.values - 1).bit_length())


@dataclass(frozen=True)
class Work:
    """What one update, or one batch, takes."""

    operations: float
    needed_operations: float
    """Without what is computed twice to save memory."""
    bytes: float
    launches: float


def training(shape: Shape, path: str = "kernels") -> Work:
    """One update."""
    h, v, s, times = shape.width, shape.variables, shape.state_bytes, shape.tokens * shape.applications
    outputs = 2 * h * shape.padded * (2 if shape.feedback else 1)
    needed = 72 * h * h + 12 * v * h + 3 * outputs
    repeated = 0 if path == "compiled" else 10 * h * h + 2 * v * h + (0 if shape.keeps_qkv else 6 * h * h)
    moved = COMPILED_BYTES * h
    if path == "kernels":
        context = (2 * s + 8) * h if shape.inject else 0  # shown twice; its gradient is read and written
        forward, backward = 8 * h + (2 * s + 8) * h, 16 * h + (2 * s + 8 + 8 + 26 + 12 * shape.split) * h
        again = 0 if shape.keeps_qkv else (s + 6) * h
        moved = forward + backward + 32 * h + context + again
    moved += 4 * shape.values * 6 + 8 * shape.heads  # logits and their gradients, through the loss; sums of attention
    launches = (LAUNCHES[path] + (path == "kernels" and shape.split)) * shape.applications
    return Work(times * (needed + repeated), times * needed, times * moved, launches)


def inference(shape: Shape) -> Work:
    """A batch, with kernels; logits of the last recurrence alone."""
    h, v, s, times = shape.width, shape.variables, shape.state_bytes, shape.tokens * shape.applications
    needed = 24 * h * h + 4 * v * h + 2 * h * shape.padded * (2 if shape.feedback else 1)
    moved = 8 * h + (2 * s + 8) * h + (s * h if shape.inject else 0)
    return Work(times * needed, times * needed, times * moved, 2 * shape.applications)


def memory(shape: Shape) -> float:
    """Bytes that an update with kernels holds at its peak, about."""
    h, times = shape.width, shape.tokens * shape.applications
    kept = shape.state_bytes * h + 2 * h + (6 * h if shape.keeps_qkv else 0) + 4 * shape.heads + 4 * 4 * shape.values
    each = 30.0 * h * shape.tokens * shape.blocks
    return times * kept + each * max(1, min(shape.steps, shape.operand_bytes // each))


def fit(table: NDArray[np.float64], seconds: NDArray[np.float64]) -> tuple[float, float, float]:
    """Shares of the two rates and seconds a launch with the least squares of relative errors; by trying."""
    operations, moved, launches = (table / seconds[:, None]).T
    best, found = np.inf, (1.0, 1.0, 0.0)
    for share, other in product(np.arange(0.02, 1.001, 0.01), repeat=2):
        slower = np.maximum(operations / share, moved / other)
        launch = max(0.0, float(launches @ (1 - slower) / (launches @ launches)))
        error = float(((slower + launches * launch - 1) ** 2).sum())
        if error < best:
            best, found = error, (float(share), float(other), launch)
    return found


def explain(rows: list[dict[str, Any]], flops: float, bandwidth: float) -> dict[str, Any]:
    """What share of the machine's rates explains the times of rows on one path; adds `predicted_s` to each.

    Time = the larger of operations / (e1 rate) and bytes / (e2 bandwidth), + launches * c.
    """
    table = np.array([[row["operations"] / flops, row["bytes"] / bandwidth, row["launches"]] for row in rows])
    seconds = np.array([row["seconds_per_update"] for row in rows])
    operations, moved, launch = fit(table, seconds)
    predicted = np.maximum(table[:, 0] / operations, table[:, 1] / moved) + table[:, 2] * launch
    for row, guess in zip(rows, predicted, strict=True):
        row["predicted_s"] = float(guess)
    return {
        "share_of_matmul_rate": operations,
        "share_of_bandwidth": moved,
        "seconds_per_launch": launch,
        "mean_error": float(np.abs(predicted / seconds - 1).mean()),
        "largest_error": float(np.abs(predicted / seconds - 1).max()),
    }
