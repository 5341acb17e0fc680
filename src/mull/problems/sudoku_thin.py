"""Take givens from a Sudoku while its solution stays the only one: in one pass, and by local search for fewer.

One pass in random order (`thin_out`) ends at a puzzle from which no given can go; on a 16x16 board that is at 95 givens
or so. Below that, `reduce` puts a given back that lets others go, again and again. Trying all of them would be slow. So
every other solution that a failed test met is kept, as the set of cells in which it differs from ours: a puzzle with
one solution has a given in each such set (an unavoidable set), and a given that is the only one in some set has to
stay. The sets also tell which cell, put back, frees the most givens.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mull.constraints import BoolArray, IntArray
from mull.problems.compiled import draw, jit, shuffle
from mull.problems.sudoku_solver import count, propagate, search, start

SETS = 4000
"""Unavoidable sets that are kept; then the oldest is replaced."""
REST = 10
"""Moves for which a cell that was emptied is not filled again: the search would go in circles."""
WAIT = 20
"""Moves for which a given is not tried again after an undecided test."""
ENOUGH = 5
"""Freeing more givens than this counts no more: which of them can really go is yet to be tested."""


class Sets(NamedTuple):
    """Unavoidable sets, and what the givens of the moment have in common with each."""

    member: NDArray[np.uint8]
    """(S, V), whether a cell is in a set."""
    hits: IntArray
    """(S,), number of givens in a set."""
    total: IntArray
    """(S,), sum of the cells of these givens: where there is one, it is that one."""
    known: IntArray
    """(1,), sets met so far."""


@jit
def another_solution(
    tokens: IntArray,
    cell: int,
    nodes: int,
    likely: IntArray,
    stack: IntArray,
    out: IntArray,
    peers: IntArray,
    units: IntArray,
) -> int:
    """Whether a board with one solution has another (left in `out`) without this given: 1 or 0; -1 if undecided.

    Our own values are tried first: a solution that differs in few cells is found soon, and says more than others.
    """
    value = tokens[cell]
    tokens[cell] = 0
    queue = np.empty(len(tokens) + 1, np.int32)
    length = start(tokens, stack[0], queue)
    tokens[cell] = value
    c = stack[0, cell] ^ (1 << (value - 1))
    stack[0, cell] = c
    if c & (c - 1) == 0:
        queue[length] = cell
        length += 1
    if not propagate(stack[0], queue, length, peers, units):
        return 0
    return search(stack, queue, out, 1, nodes, likely, np.zeros(1, np.uint64), False, peers, units)


@jit
def thin_out(
    tokens: IntArray,
    order: IntArray,
    givens: int,
    nodes: int,
    stack: IntArray,
    out: IntArray,
    peers: IntArray,
    units: IntArray,
) -> bool:
    """Empty cells of a full board in this order, each if the solution stays unique; False if `givens` is not reached.

    With no branches allowed (`nodes` 0), the solution also stays within reach of singles alone.

    More givens never add solutions, so when a whole run of cells can go at once, each could have gone one by one:
    the runs below only save tests.
    """
    left, place, run = len(tokens), 0, len(tokens) // 2
    likely = 1 << (tokens - 1)
    while left > givens:
        run = min(run, left - givens, len(tokens) - place)
        if run > 1:
            trial = tokens.copy()
            trial[order[place : place + run]] = 0
            if count(trial, 2, nodes, stack, out, peers, units) == 1:
                tokens[:] = trial
                left -= run
                place += run
            else:
                run //= 2
        else:
            if left - (len(tokens) - place) > givens:
                return False
            cell = order[place]
            value, tokens[cell] = tokens[cell], 0
            if nodes == 0:
                goes = count(tokens, 1, 0, stack, out, peers, units) == 1
            else:
                tokens[cell] = value
                goes = another_solution(tokens, cell, nodes, likely, stack, out, peers, units) == 0
            tokens[cell] = 0 if goes else value
            left -= goes
            place += 1
            run = 1
    return True


@jit
def _learn(sets: Sets, tokens: IntArray, solution: IntArray, other: IntArray) -> None:
    """Add the cells in which another solution differs."""
    s = sets.known[0] % len(sets.hits)
    sets.known[0] += 1
    sets.hits[s] = sets.total[s] = 0
    for cell in range(len(tokens)):
        differs = solution[cell] != other[cell]
        sets.member[s, cell] = differs
        if differs and tokens[cell]:
            sets.hits[s] += 1
            sets.total[s] += cell


@jit
def _set_given(sets: Sets, tokens: IntArray, cell: int, token: int) -> None:
    """Fill a cell, or empty it (token 0)."""
    tokens[cell] = token
    step = 1 if token else -1
    for s in range(min(sets.known[0], len(sets.hits))):
        if sets.member[s, cell]:
            sets.hits[s] += step
            sets.total[s] += step * cell


@jit
def _needed(sets: Sets, cell: int) -> bool:
    """Whether a given is the only one in some set."""
    for s in range(min(sets.known[0], len(sets.hits))):  # noqa: SIM110 (numba has no generator expressions)
        if sets.hits[s] == 1 and sets.total[s] == cell:
            return True
    return False


@jit
def _best_addition(sets: Sets, tokens: IntArray, rested: BoolArray, state: NDArray[np.uint64]) -> int:
    """The empty cell that frees the most givens when it is filled, counting rested cells only; -1 if none frees any."""
    cells = len(tokens)
    frees = np.ones((cells, cells), np.uint8)  # whether all sets that need the first cell hold the second
    for s in range(min(sets.known[0], len(sets.hits))):
        if sets.hits[s] == 1:
            frees[sets.total[s]] &= sets.member[s]
    freed = np.zeros(cells, np.int64)
    for cell in range(cells):
        if tokens[cell] and rested[cell]:
            freed += frees[cell]
    best, most, ties = -1, 1, 0
    for cell in range(cells):
        if tokens[cell] or not rested[cell] or min(freed[cell], ENOUGH) < most:
            continue
        if min(freed[cell], ENOUGH) > most:
            most, ties = min(freed[cell], ENOUGH), 0
        ties += 1
        if draw(state, ties) == 0:
            best = cell
    return best


@jit
def _drop(
    sets: Sets,
    tokens: IntArray,
    solution: IntArray,
    order: IntArray,
    givens: int,
    nodes: int,
    again: IntArray,
    move: int,
    stack: IntArray,
    out: IntArray,
    peers: IntArray,
    units: IntArray,
) -> int:
    """Empty the cells that may go, in this order, down to `givens`; how many went.

    `again` (V,) has the move from which on a cell may be tried (a given) or chosen (an empty cell) again.
    """
    likely = 1 << solution
    left, gone = np.count_nonzero(tokens), 0
    for cell in order:
        if left - gone == givens:
            break
        if tokens[cell] == 0 or again[cell] > move or _needed(sets, cell):
            continue
        others = another_solution(tokens, cell, nodes, likely, stack, out, peers, units)
        if others == 0:
            _set_given(sets, tokens, cell, 0)
            again[cell] = move + REST
            gone += 1
        elif others == 1:
            _learn(sets, tokens, solution, out)
        else:
            again[cell] = move + WAIT
    return gone


@jit
def reduce(
    tokens: IntArray,
    solution: IntArray,
    givens: int,
    nodes: int,
    moves: int,
    state: NDArray[np.uint64],
    stack: IntArray,
    out: IntArray,
    peers: IntArray,
    units: IntArray,
) -> bool:
    """Local search for a puzzle with so many givens, from `tokens` and in place; False after `moves` moves without one.

    A move puts a given back, empties what can then go, and is undone if nothing can: the number of givens never grows.
    """
    cells = len(tokens)
    sets = Sets(
        np.zeros((SETS, cells), np.uint8), np.zeros(SETS, np.int64), np.zeros(SETS, np.int64), np.zeros(1, np.int64)
    )
    again, order = np.zeros(cells, np.int64), np.arange(cells)
    shuffle(state, order)
    left = np.count_nonzero(tokens)
    left -= _drop(sets, tokens, solution, order, givens, nodes, again, 0, stack, out, peers, units)
    for move in range(1, moves):
        if left == givens:
            break
        added = _best_addition(sets, tokens, again <= move, state)
        if added < 0:
            continue  # until a cell has rested
        _set_given(sets, tokens, added, solution[added] + 1)
        again[added] = move + 1
        shuffle(state, order)
        gone = _drop(sets, tokens, solution, order, givens, nodes, again, move, stack, out, peers, units)
        left += 1 - gone
        if gone == 0:
            _set_given(sets, tokens, added, 0)
            again[added] = move + REST
            left -= 1
    return bool(left == givens)
