"""Runs of black cells: read off a picture, and as a constraint that is exact on partial answers too.

Shapes: B batch, V variable, G line (rows, then columns), N cell of a line, W number of hints of a line (padded).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mull.constraints import UNKNOWN, BoolArray, Constraint, IntArray


def runs_of(black: BoolArray) -> NDArray[np.uint8]:
    """Lengths of the runs of true cells (..., N) in order, padded with zeros on the left: (..., (N + 1) // 2)."""
    size = black.shape[-1]
    width = (size + 1) // 2
    places = np.arange(size)
    last_white = np.maximum.accumulate(np.where(black, -1, places), axis=-1)
    ends = black.copy()
    ends[..., :-1] &= ~black[..., 1:]
    after = np.cumsum(ends[..., ::-1], axis=-1)[..., ::-1]  # runs that end here or further on
    runs = np.zeros((*black.shape[:-1], width), np.uint8)
    *line, place = np.nonzero(ends)
    runs[(*line, width - after[ends])] = place - last_white[ends]
    return runs


@dataclass(frozen=True, eq=False)
class Runs(Constraint):
    """The runs of value 1 in every row and every column of a square are the line's hints, in order."""

    side: int

    def hints(self, inputs: NDArray[Any]) -> IntArray:
        """The hints (B, G, W) from inputs (B, V, 2 W), which repeat a line's hints for each of its cells."""
        grid = inputs.reshape(len(inputs), self.side, self.side, -1)
        width = grid.shape[-1] // 2
        lines = np.concatenate([grid[:, :, 0, :width], grid[:, 0, :, width:]], axis=1)
        return lines.astype(np.int64)

    def lines(self, values_BV: IntArray) -> IntArray:
        """The values (B, G, N) of rows and columns."""
        grid = values_BV.reshape(len(values_BV), self.side, self.side)
        return np.concatenate([grid, grid.swapaxes(1, 2)], axis=1)

    def violations(self, values_BV: IntArray, inputs: NDArray[Any]) -> BoolArray:
        lines, hints = self.lines(values_BV), self.hints(inputs)
        if ((values_BV == 0) | (values_BV == 1)).all():
            broken: BoolArray = (runs_of(lines == 1) != hints).any(axis=-1)
            return broken
        shape = np.broadcast_shapes(lines.shape[:2], hints.shape[:2])
        flat_lines = np.broadcast_to(lines, (*shape, self.side)).reshape(-1, self.side)
        flat_hints = np.broadcast_to(hints, (*shape, hints.shape[-1])).reshape(-1, hints.shape[-1])
        return ~can_hold(flat_lines, flat_hints).reshape(shape)

    def scopes(self) -> list[IntArray]:
        return list(self.lines(np.arange(self.side**2)[None])[0])

    def label(self, group: int) -> str:
        return f"{line_name(group, self.side)} has the runs that its hints say"


def line_name(group: int, side: int) -> str:
    """`row 3` or `column 1`: how a line is called."""
    return f"{'row' if group < side else 'column'} {group % side + 1}"


def can_hold(lines: IntArray, hints: IntArray) -> BoolArray:
    """(L,): which partial lines (L, N) can be completed so that their runs are the hints (L, W)."""
    count, size = lines.shape
    width = hints.shape[1]
    # A white cell in front lets every run be placed with a white cell before it.
    white = np.ones((count, size + 1), bool)
    white[:, 1:] = (lines == 0) | (lines == UNKNOWN)
    not_black = np.zeros((count, size + 2), np.int64)  # prefix sums
    not_black[:, 2:] = np.cumsum((lines != 1) & (lines != UNKNOWN), axis=1)
    # fits[:, i, j]: the first i cells can hold hints j' < j; padding counts as held from the start.
    fits = np.zeros((count, size + 2, width + 1), bool)
    padding = (hints == 0).sum(axis=1)
    row = np.arange(count)
    fits[row, 0, padding] = True
    rows, places = row[:, None], np.arange(width)
    for i in range(1, size + 2):
        start = i - 1 - hints  # where the white cell before the run stands, (L, W)
        placed = (hints > 0) & (start >= 0)
        start = np.maximum(start, 0)
        placed &= white[rows, start] & (not_black[:, i, None] == not_black[rows, start + 1]) & fits[rows, start, places]
        fits[:, i] = white[:, i - 1, None] & fits[:, i - 1]
        fits[:, i, 1:] |= placed
    held: BoolArray = fits[:, -1, -1]
    return held
