"""Nonograms with exactly one solution: line solving and exact search, the numba side of `problems/nonogram.py`.

A line is solved by two tables, which part of its runs fits into which part of its cells from the left and from the
right; together they tell which cells are black or white in all ways to fill it. Lines are solved in turn until nothing
changes. Where that leaves cells open, one is tried both ways.

Import this module only where it is needed: numba is not part of the base install and takes a while to start.

Cells: 1 black, 0 white, UNKNOWN. Hints: (2, side, width), those of the rows and those of the columns, padded with zeros
on the left.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mull.constraints import UNKNOWN, BoolArray, IntArray
from mull.errors import InvalidInput
from mull.problems.compiled import jit
from mull.problems.nonogram_runs import runs_of

BROKEN, OPEN, DONE = -1, 0, 1
ATTEMPTS = 100_000
"""Pictures drawn before a kind counts as out of reach."""
NODES = 2_000
"""Branches that one proof of uniqueness may take; a picture that needs more is not used."""
Cells = NDArray[np.int8]


@jit
def _fitting(cells: Cells, runs: IntArray) -> BoolArray:
    """(n + 1, k + 1): whether the first i cells can hold the first j runs, and nothing else that is black."""
    size, count = len(cells), len(runs)
    fits = np.zeros((size + 1, count + 1), np.bool_)
    fits[0, 0] = True
    open_run = 0  # cells up to here that may all be black
    for i in range(1, size + 1):
        white = cells[i - 1] != 1
        open_run = 0 if cells[i - 1] == 0 else open_run + 1
        for j in range(count + 1):
            ok = white and fits[i - 1, j]
            if not ok and j > 0 and runs[j - 1] <= open_run:
                start = i - runs[j - 1]
                ok = j == 1 if start == 0 else cells[start - 1] != 1 and fits[start - 1, j - 1]
            fits[i, j] = ok
    return fits


@jit
def solve_line(cells: Cells, hints: IntArray) -> int:
    """Fill in the cells that are the same in all ways to complete a line; how many, or BROKEN if there is no way."""
    size = len(cells)
    runs = hints[hints > 0]
    count = len(runs)
    left = _fitting(cells, runs)
    if not left[size, count]:
        return BROKEN
    right = _fitting(cells[::-1].copy(), runs[::-1].copy())  # [i, j]: the last i cells hold the last j runs
    black = np.zeros(size + 1, np.int64)  # differences: how many placed runs cover a cell
    for j in range(count):
        open_run = 0
        for end in range(1, size + 1):
            open_run = 0 if cells[end - 1] == 0 else open_run + 1
            start = end - runs[j]
            if runs[j] > open_run:
                continue
            before = j == 0 if start == 0 else cells[start - 1] != 1 and left[start - 1, j]
            rest = count - j - 1
            after = rest == 0 if end == size else cells[end] != 1 and right[size - end - 1, rest]
            if before and after:
                black[start] += 1
                black[end] -= 1
    filled, covered = 0, 0
    for i in range(size):
        covered += black[i]
        if cells[i] != UNKNOWN:
            continue
        white = False
        for j in range(count + 1):
            white = white or (left[i, j] and right[size - i - 1, count - j])
        if not (white and covered > 0):
            black_now = 1 if covered > 0 else 0
            cells[i] = -black_now - 2  # marked, so that the tables above are not contradicted on the way
            filled += 1
    for i in range(size):
        if cells[i] < UNKNOWN:
            cells[i] = -cells[i] - 2
    return filled


@jit
def propagate(board: Cells, hints: IntArray) -> int:
    """Solve rows and columns in turn until nothing changes: BROKEN, OPEN or DONE."""
    side = len(board)
    dirty = np.ones((2, side), np.bool_)
    while dirty.any():
        for axis in range(2):
            for place in range(side):
                if not dirty[axis, place]:
                    continue
                dirty[axis, place] = False
                line = board[place].copy() if axis == 0 else board[:, place].copy()
                filled = solve_line(line, hints[axis, place])
                if filled == BROKEN:
                    return BROKEN
                if filled == 0:
                    continue
                for i in range(side):
                    old = board[place, i] if axis == 0 else board[i, place]
                    if line[i] != old:
                        dirty[1 - axis, i] = True
                if axis == 0:
                    board[place] = line
                else:
                    board[:, place] = line
    return OPEN if (board == UNKNOWN).any() else DONE


@jit
def _open_cell(board: Cells) -> tuple[int, int]:
    """An open cell in the row with the fewest of them."""
    best, row = len(board) + 1, 0
    for place in range(len(board)):
        count = (board[place] == UNKNOWN).sum()
        if 0 < count < best:
            best, row = count, place
    column = 0
    while board[row, column] != UNKNOWN:
        column += 1
    return row, column


@jit
def _count(hints: IntArray, most: int, nodes: int) -> int:
    """Number of solutions, at most `most`; -1 if more than `nodes` branches would be needed to tell."""
    side = hints.shape[1]
    stack = np.full((side * side + 2, side, side), UNKNOWN, np.int8)
    height, found = 1, 0
    while height > 0:
        height -= 1
        board = stack[height].copy()
        state = propagate(board, hints)
        if state == DONE:
            found += 1
            if found == most:
                return found
        elif state == OPEN:
            nodes -= 1
            if nodes < 0:
                return -1
            row, column = _open_cell(board)
            for value in range(2):
                stack[height] = board
                stack[height, row, column] = value
                height += 1
    return found


def count_solutions(hints: IntArray, most: int = 2) -> int:
    """The number of solutions of hints (2, side, width), counted up to `most`."""
    return int(_count(np.asarray(hints, dtype=np.int64), most, 1 << 60))


def line_solvable(hints: IntArray) -> bool:
    """Whether looking at one line at a time is enough to solve hints (2, side, width)."""
    side = hints.shape[1]
    board = np.full((side, side), UNKNOWN, np.int8)
    return bool(propagate(board, np.asarray(hints, dtype=np.int64)) == DONE)


def draw_picture(side: int, rng: np.random.Generator) -> Cells:
    """A random picture with 40 to 60 % black cells, from noise to blots."""
    noise = rng.integers(1 << 20, size=(side, side))  # whole numbers: the same picture on any machine
    framed = np.pad(noise, 1, mode="edge")
    around = sum(framed[y : y + side, x : x + side] for y in range(3) for x in range(3))
    weight = int(rng.integers(17))
    score = weight * noise * 3 + (16 - weight) * around  # the sum of nine has three times the deviation of one
    black = int(rng.integers(round(0.4 * side**2), round(0.6 * side**2) + 1))
    picture = np.zeros(side**2, np.int8)
    picture[np.argsort(score, axis=None, kind="stable")[:black]] = 1
    return picture.reshape(side, side)


def generate(side: int, kind: str, rng: np.random.Generator) -> tuple[IntArray, Cells]:
    """Hints (2, side, width) with one solution, solved line by line, by search or either way; and that solution."""
    for _ in range(ATTEMPTS):
        picture = draw_picture(side, rng)
        hints = runs_of(np.stack([picture, picture.T]) == 1)
        if line_solvable(hints):
            if kind != "search":
                return hints, picture
        elif kind != "line" and _count(hints.astype(np.int64), 2, NODES) == 1:
            return hints, picture
    raise InvalidInput(f"{ATTEMPTS:,} random pictures of side {side} gave no nonogram of the kind {kind!r}")
