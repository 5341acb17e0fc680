"""Keys of Sudoku symmetry classes, compiled with numba.

The symmetries of a Sudoku relabel the values, permute the bands and the rows of a band, the stacks and the columns of a
stack, and transpose. Splits keep symmetry classes whole, so each board needs a key that its whole class shares:

- 9x9: the least form of the *solution* in the order of reading, so puzzles whose solutions are equivalent share it.
- 4x4: there are but two classes of solutions, so the least form of the *puzzle*.
- 16x16, 25x25: a least form is out of reach. The key is an invariant of the solution, equal for equivalent grids and
  possibly for others too, which only makes splits stricter.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import permutations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mull.constraints import IntArray
from mull.problems.compiled import jit

ORDERS = np.array(list(permutations(range(3))), np.int64)


@jit
def _second_row(first: IntArray, second: IntArray, stack: int, order: IntArray, place: IntArray, row: IntArray) -> None:
    """The least second row once the top row reads 1..9 and begins with the columns `order` of `stack`.

    A column gets its place when the second row first asks for it: the least label still free for it. Where the second
    row comes to a place that no value has asked for, the column with the least value takes it. `place` (9,) becomes
    the new place of each column and `row` the second row, values from 0.
    """
    column_of = np.empty(9, np.int64)
    for c in range(9):
        column_of[first[c]] = c
        place[c] = -1
    stack_at = np.full(3, -1, np.int64)  # which third of the new board a stack goes to
    used = np.zeros(3, np.int64)  # columns of each old stack that have a place
    column_at = np.full(9, -1, np.int64)
    stack_at[stack] = 0
    used[stack] = 3
    for k in range(3):
        place[stack * 3 + order[k]] = k
        column_at[k] = stack * 3 + order[k]
    stacks = 1
    for i in range(9):
        if column_at[i] < 0:  # two columns of this third are left: the values below them are of the other two
            least = -1
            for c in range(9):
                here = place[c] < 0 and stack_at[c // 3] == i // 3
                if here and (least < 0 or place[column_of[second[c]]] < place[column_of[second[least]]]):
                    least = c
            place[least], column_at[i] = i, least
            used[least // 3] += 1
        column = column_of[second[column_at[i]]]
        if place[column] < 0:
            old = column // 3
            if stack_at[old] < 0:
                stack_at[old] = stacks
                stacks += 1
            place[column] = stack_at[old] * 3 + used[old]
            column_at[place[column]] = column
            used[old] += 1
            if used[old] == 2:  # the last column of a stack has no choice
                for k in range(3):
                    if place[old * 3 + k] < 0:
                        place[old * 3 + k] = stack_at[old] * 3 + 2
                        column_at[stack_at[old] * 3 + 2] = old * 3 + k
                used[old] = 3
        row[i] = place[column]


@jit
def _write(grid: IntArray, top: int, second: int, place: IntArray, out: IntArray) -> None:
    """The whole grid with these two rows on top and these column places, other rows in their least order."""
    label = np.empty(9, np.int64)
    column_at = np.empty(9, np.int64)
    for c in range(9):
        label[grid[top, c]] = place[c]
        column_at[place[c]] = c
    rows = np.empty(9, np.int64)
    band = top // 3
    rows[0], rows[1], rows[2] = top, second, band * 9 + 3 - top - second
    low = np.empty(3, np.int64)
    for b in range(3):
        low[b] = min(label[grid[b * 3, column_at[0]]], label[grid[b * 3 + 1, column_at[0]]])
        low[b] = min(low[b], label[grid[b * 3 + 2, column_at[0]]])
    b1, b2 = (band + 1) % 3, (band + 2) % 3
    if low[b1] > low[b2]:
        b1, b2 = b2, b1
    for k in range(3):
        rows[3 + k], rows[6 + k] = b1 * 3 + k, b2 * 3 + k
    for base in (3, 6):
        for i in range(base + 1, base + 3):  # insertion sort by first entry
            j = i
            while j > base and label[grid[rows[j], column_at[0]]] < label[grid[rows[j - 1], column_at[0]]]:
                rows[j], rows[j - 1] = rows[j - 1], rows[j]
                j -= 1
    for r in range(9):
        for c in range(9):
            out[r * 9 + c] = label[grid[rows[r], column_at[c]]] + 1


@jit
def _less(a: IntArray, b: IntArray) -> int:
    """-1, 0 or 1 as a is before, equal to or after b."""
    for i in range(len(a)):
        if a[i] != b[i]:
            return -1 if a[i] < b[i] else 1
    return 0


@jit
def _least_grid(solution: IntArray, orders: IntArray, best: IntArray) -> None:
    """The least of all equivalent 9x9 grids, values from 1; 648 candidates, since the second row fixes the columns."""
    place, row, best_row = np.empty(9, np.int64), np.empty(9, np.int64), np.full(9, 9, np.int64)
    candidate = np.empty(81, np.int64)
    grid = solution.reshape(9, 9)
    best[:] = 10
    for turn in range(2):
        if turn:
            grid = grid.T.copy()
        for top in range(9):
            for other in range(1, 3):
                second = top // 3 * 3 + (top + other) % 3
                for stack in range(3):
                    for k in range(6):
                        _second_row(grid[top], grid[second], stack, orders[k], place, row)
                        sign = _less(row, best_row)
                        if sign > 0:
                            continue
                        best_row[:] = row
                        _write(grid, top, second, place, candidate)
                        if sign < 0 or _less(candidate, best) < 0:
                            best[:] = candidate


@jit
def _least_puzzle(tokens: IntArray, moves: IntArray, best: IntArray) -> None:
    """The least of all equivalent puzzles: every geometric symmetry, values numbered as they appear."""
    candidate = np.empty(len(tokens), np.int64)
    best[:] = len(tokens)
    for m in range(len(moves)):
        label = np.zeros(len(tokens), np.int64)
        fresh = 0
        for i in range(len(tokens)):
            token = tokens[moves[m, i]]
            if token and label[token] == 0:
                fresh += 1
                label[token] = fresh
            candidate[i] = label[token]
        if _less(candidate, best) < 0:
            best[:] = candidate


@jit
def _cycle_type(a: IntArray, b: IntArray) -> int:
    """A number for the cycle lengths of the permutation that takes row a to row b (a hash, the same for b to a)."""
    image = np.empty(len(a), np.int64)
    for i in range(len(a)):
        image[a[i]] = b[i]
    seen = np.zeros(len(a), np.bool_)
    total = 0
    for first in range(len(a)):
        length, at = 0, first
        while not seen[at]:
            seen[at] = True
            at = image[at]
            length += 1
        if length:
            total += length * length * length * 7919 + length * 31
    return total


@jit
def _invariant(solution: IntArray, box: int, out: IntArray) -> None:
    """Sorted cycle types of the pairs of rows in each band and of columns in each stack; the lesser side first."""
    side = box * box
    grid = solution.reshape(side, side)
    half = len(out) // 2
    for turn in range(2):
        lines = grid if turn == 0 else grid.T.copy()
        at = turn * half
        for band in range(box):
            for i in range(band * box, band * box + box):
                for j in range(i + 1, band * box + box):
                    out[at] = _cycle_type(lines[i], lines[j])
                    at += 1
        out[turn * half : (turn + 1) * half].sort()
    if _less(out[:half], out[half:]) > 0:
        rows = out[:half].copy()
        out[:half] = out[half:]
        out[half:] = rows


@lru_cache
def _moves(box: int) -> IntArray:
    """All geometric symmetries (k, V): which cell comes to each place. Only for boards with few of them."""
    side = box * box
    cells = np.arange(side * side).reshape(side, side)
    orders = list(permutations(range(box)))
    lines = [
        [band * box + row for band, order in zip(bands, inner, strict=True) for row in order]
        for bands in orders
        for inner in product(orders, repeat=box)
    ]
    moved = [cells[np.ix_(rows, columns)] for rows in lines for columns in lines]
    return np.stack([board.ravel() for board in moved] + [board.T.ravel() for board in moved])


@jit
def _least_grids(solutions: IntArray, orders: IntArray, out: IntArray) -> None:
    for i in range(len(solutions)):
        _least_grid(solutions[i], orders, out[i])


@jit
def _least_puzzles(tokens: IntArray, moves: IntArray, out: IntArray) -> None:
    for i in range(len(tokens)):
        _least_puzzle(tokens[i], moves, out[i])


@jit
def _invariants(solutions: IntArray, box: int, out: IntArray) -> None:
    for i in range(len(solutions)):
        _invariant(solutions[i], box, out[i])


def canonical_many(box: int, tokens: NDArray[Any], solutions: NDArray[Any]) -> NDArray[np.uint8]:
    """Keys (B, k) of many boards: tokens (B, V) with 0 for empty cells, solutions (B, V) with values from 0.

    Boards of one symmetry class have equal rows; see the module's text for what each size compares.
    """
    tokens, solutions = np.ascontiguousarray(tokens, np.int64), np.ascontiguousarray(solutions, np.int64)
    if box == 2:
        out = np.empty(tokens.shape, np.int64)
        _least_puzzles(tokens, _moves(box), out)
        return out.astype(np.uint8)
    if box == 3:
        out = np.empty(solutions.shape, np.int64)
        _least_grids(solutions, ORDERS, out)
        return out.astype(np.uint8)
    pairs = box * box * (box - 1)  # box bands of box * (box - 1) / 2 pairs, for rows and for columns
    codes = np.empty((len(solutions), pairs), np.int64)
    _invariants(solutions, box, codes)
    return codes.astype("<i8").view(np.uint8)


def canonical(box: int, tokens: NDArray[Any], solution: NDArray[Any]) -> bytes:
    """The key of one board's symmetry class; see `canonical_many`."""
    key: bytes = canonical_many(box, tokens[None], solution[None])[0].tobytes()
    return key
