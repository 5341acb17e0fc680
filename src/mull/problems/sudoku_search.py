"""Sudoku puzzles with exactly one solution, and keys of their symmetry classes: the numba side of `problems/sudoku.py`.

How a puzzle is made: draw a full grid, then take away its values in random order, each only if the solution stays
unique, until the asked number of givens is left. Where a 16x16 or 25x25 board is to have fewer givens than that leaves,
a local search goes on (`sudoku_thin.py`). If that fails, another grid is drawn. A puzzle for people, which needs no
guess, is made in the same way: a value goes only if naked and hidden singles still lead to the solution.

Neither grids nor puzzles are drawn uniformly from all there are. Grids up to 9x9 come from a randomised search that
starts with random boxes on the diagonal. For 16x16 and 25x25 such a search can stall, so a regular pattern under a
random symmetry is stirred: all cells of half of the values, or of a band or a stack, are emptied and filled again at
random, many times over. Regular puzzles, on request, leave out the stirring. On these large boards, puzzles that are
hard for our solver are rarer than they should be: a test for uniqueness that takes too many branches counts as failed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mull.constraints import IntArray
from mull.errors import InvalidInput
from mull.problems.compiled import draw, jit, shuffle
from mull.problems.sudoku_canonical import canonical, canonical_many
from mull.problems.sudoku_solver import (
    count_solutions,
    propagate,
    search,
    solve,
    start,
    tables,
    workspace,
)
from mull.problems.sudoku_thin import reduce, thin_out

__all__ = ["canonical", "canonical_many", "count_solutions", "full_grid", "generate", "solve"]

FEWEST = {2: 4, 3: 17}
"""Fewest givens with which a puzzle can have one solution, where that is known."""
ATTEMPTS = {2: 1000, 3: 5000, 4: 20, 5: 3}
"""Full grids tried before a number of givens counts as out of reach; ten times as many where no guess is allowed."""
UNLIMITED = 1 << 60
NODES = {2: UNLIMITED, 3: UNLIMITED, 4: 50, 5: 50}
"""Branches that one test for uniqueness may take; an undecided test keeps the given."""
ONE_PASS = {4: 106, 5: 300}
"""Givens that one pass over the cells reaches on any grid, and at which local search for fewer begins.

Smaller boards do without it.
"""
MOVES = 1000
"""Moves of that search on one grid."""
STIRS = {4: 40, 5: 60}
"""How often a shuffled pattern grid is stirred; smaller grids are searched for."""
SEARCHED = -1
STIR_NODES = 400
"""Branches that refilling may take before the stir is given up (the grid stays as it was)."""


@jit
def _search_grid(
    box: int, state: NDArray[np.uint64], stack: IntArray, out: IntArray, peers: IntArray, units: IntArray
) -> None:
    """A full grid (values from 0) by randomised search from random boxes on the diagonal."""
    side = box * box
    tokens = np.zeros(side * side, np.int64)
    digits = np.arange(1, side + 1)
    queue, nothing = np.empty(len(tokens) + 1, np.int32), np.zeros(len(tokens), np.int64)
    while True:  # on a 4x4 board, some diagonals have no completion
        for b in range(box):
            shuffle(state, digits)
            for k in range(side):
                tokens[(b * box + k // box) * side + b * box + k % box] = digits[k]
        consistent = propagate(stack[0], queue, start(tokens, stack[0], queue), peers, units)
        if consistent and search(stack, queue, out, 1, UNLIMITED, nothing, state, True, peers, units) == 1:
            return


@jit
def _line_order(box: int, state: NDArray[np.uint64]) -> IntArray:
    """A random order of rows (or columns) that keeps bands together."""
    bands, inner = np.arange(box), np.arange(box)
    shuffle(state, bands)
    order = np.empty(box * box, np.int64)
    for b in range(box):
        shuffle(state, inner)
        order[b * box : (b + 1) * box] = bands[b] * box + inner
    return order


@jit
def _pattern_grid(box: int, state: NDArray[np.uint64], out: IntArray) -> None:
    """The regular pattern grid under a random symmetry."""
    side = box * box
    digits = np.arange(side)
    shuffle(state, digits)
    rows, columns = _line_order(box, state), _line_order(box, state)
    turn = draw(state, 2)
    for i in range(side):
        for j in range(side):
            r, c = rows[i], columns[j]
            value = digits[(box * (r % box) + r // box + c) % side]
            out[j * side + i if turn else i * side + j] = value


@jit
def _stir(
    box: int, state: NDArray[np.uint64], stack: IntArray, out: IntArray, peers: IntArray, units: IntArray
) -> None:
    """Empty all cells of some values, or of a band or a stack, and fill them again at random, if that is quick."""
    side = box * box
    tokens = out + 1
    kind = draw(state, 3)
    band = draw(state, box)
    digits = np.arange(side)
    shuffle(state, digits)
    chosen = digits[: side // 2]
    for cell in range(len(tokens)):
        line = cell // side if kind == 0 else cell % side
        if (kind < 2 and line // box == band) or (kind == 2 and (chosen == out[cell]).any()):
            tokens[cell] = 0
    queue, nothing = np.empty(len(tokens) + 1, np.int32), np.zeros(len(tokens), np.int64)
    found = np.empty_like(out)
    consistent = propagate(stack[0], queue, start(tokens, stack[0], queue), peers, units)
    if consistent and search(stack, queue, found, 1, STIR_NODES, nothing, state, True, peers, units) == 1:
        out[:] = found


@jit
def _grid(
    box: int,
    stirs: int,
    state: NDArray[np.uint64],
    stack: IntArray,
    out: IntArray,
    peers: IntArray,
    units: IntArray,
) -> None:
    """A random full grid: a pattern that is stirred so many times, or one that is searched for."""
    if stirs == SEARCHED:
        _search_grid(box, state, stack, out, peers, units)
        return
    _pattern_grid(box, state, out)
    for _ in range(stirs):
        _stir(box, state, stack, out, peers, units)


@jit
def _generate(
    box: int,
    givens: int,
    state: NDArray[np.uint64],
    attempts: int,
    nodes: int,
    stirs: int,
    one_pass: int,
    moves: int,
    stack: IntArray,
    out: IntArray,
    peers: IntArray,
    units: IntArray,
) -> tuple[bool, IntArray, IntArray]:
    """A puzzle and its solution; False if no attempt reached the number of givens."""
    order = np.arange(box**4)
    for _ in range(attempts):
        _grid(box, stirs, state, stack, out, peers, units)
        solution = out.copy()
        tokens = solution + 1
        shuffle(state, order)
        if not thin_out(tokens, order, max(givens, one_pass), nodes, stack, out, peers, units):
            continue
        if one_pass <= givens or reduce(tokens, solution, givens, nodes, moves, state, stack, out, peers, units):
            return True, tokens, solution
    return False, order, order


@lru_cache
def _workspace(box: int) -> tuple[NDArray[np.int32], IntArray]:
    """One workspace for all calls: making it anew would cost more than a small puzzle."""
    return workspace(box)


def full_grid(box: int, seed: int) -> IntArray:
    """A random full grid (V,), as values that start at 0."""
    stack, out = workspace(box)
    _grid(box, STIRS.get(box, SEARCHED), np.array([seed], np.uint64), stack, out, *tables(box))
    return out


def generate(
    box: int, givens: int, seed: int, singles: bool = False, regular: bool = False
) -> tuple[NDArray[np.uint8], NDArray[Any]]:
    """A puzzle (V,) with exactly `givens` givens (0 is empty) and one solution, and that solution, values from 0.

    With `singles`, it can be solved without a guess: some cell has one value left, or some value one cell in its row,
    column or box, until the board is full. With `regular`, its grid is a regular pattern under a random symmetry.
    """
    cells = box**4
    if not FEWEST.get(box, 1) <= givens <= cells:
        raise InvalidInput(
            f"a {box**2}x{box**2} Sudoku with one solution has {FEWEST.get(box, 1)} to {cells} givens, not {givens}"
        )
    state = np.array([seed], np.uint64)
    if box in ONE_PASS:  # levels of one size share their streams of seeds, but should not share their grids
        state ^= np.uint64((givens + 1000 * singles + 2000 * regular) << 32)
    nodes, one_pass = (0, 0) if singles else (NODES[box], ONE_PASS.get(box, 0))
    attempts = ATTEMPTS[box] * (10 if singles else 1)  # an attempt is soon over then
    limits = (attempts, nodes, 0 if regular else STIRS.get(box, SEARCHED), one_pass, MOVES)
    found, tokens, solution = _generate(box, givens, state, *limits, *_workspace(box), *tables(box))
    if not found:
        raise InvalidInput(
            f"found no {box**2}x{box**2} Sudoku with {givens} givens{' and without a guess' * singles} in "
            f"{attempts} attempts; ask for more givens"
        )
    return tokens.astype(np.uint8), solution
