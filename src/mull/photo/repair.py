"""Mending a reading by the rules: a printed Sudoku has exactly one solution, and its givens contradict nothing.

Where the likeliest reading does not have that, others are tried, likeliest first, until one does. Which cells were
changed is always told.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mull.count import count_solutions
from mull.errors import UserError
from mull.problem import Instance
from mull.problems.sudoku import Sudoku

Tokens = NDArray[np.int64]

PLAUSIBLE = 1e-3
"""A value is an alternative if it is at least this likely, compared with the likeliest."""
ALTERNATIVES = 24
"""The likeliest alternatives of a board that are combined."""
SECONDS = 2.0
"""How long to try."""
FEWEST_GIVENS = 17
"""No Sudoku with fewer has one solution."""


@dataclass(frozen=True)
class Change:
    """A cell that was not taken as its likeliest value; 0 is empty. Rows and columns count from 1."""

    row: int
    column: int
    read: int
    taken: int

    def __str__(self) -> str:
        read, taken = (str(value) if value else "empty" for value in (self.read, self.taken))
        return f"row {self.row} column {self.column}: {taken} instead of {read}"


def repair(probabilities: NDArray[np.float32], seconds: float = SECONDS) -> tuple[Tokens, int | None]:
    """The likeliest tokens (81,) that have exactly one solution, or else the likeliest of all.

    With them comes how many solutions they have: 0, 1, 2 for several; None if that could not be told in time.
    """
    problem, end = Sudoku(), time.monotonic() + seconds
    likeliest = probabilities.argmax(axis=1).astype(np.int64)
    first = _solutions(problem, likeliest, seconds)
    if first == 1:
        return likeliest, 1
    for tokens in _others(probabilities, likeliest):
        left = end - time.monotonic()
        if left <= 0:
            break
        if _solutions(problem, tokens, min(left, seconds / 4)) == 1:
            return tokens, 1
    return likeliest, first


def changes(probabilities: NDArray[np.float32], tokens: Tokens) -> tuple[Change, ...]:
    """Where tokens (81,) are not the likeliest ones."""
    likeliest = probabilities.argmax(axis=1)
    return tuple(
        Change(int(cell) // 9 + 1, int(cell) % 9 + 1, int(likeliest[cell]), int(tokens[cell]))
        for cell in np.flatnonzero(likeliest != tokens)
    )


def _solutions(problem: Sudoku, tokens: Tokens, seconds: float) -> int | None:
    """0, 1 or 2 for several; None if that cannot be told in time."""
    instance = Instance(inputs=tokens.astype(np.uint8), given=tokens > 0)
    if problem.conflicts(instance.inputs, tokens - 1):
        return 0
    if (tokens > 0).sum() < FEWEST_GIVENS:
        return 2
    try:
        return count_solutions(problem, instance, limit=2, seconds=seconds)
    except UserError:
        return None


def _others(probabilities: NDArray[np.float32], likeliest: Tokens) -> Iterator[Tokens]:
    """Tokens (81,) with one or more alternatives, likeliest first: sets of alternatives in the order of their cost."""
    share = probabilities / probabilities.max(axis=1, keepdims=True)
    cells, values = np.nonzero((share >= PLAUSIBLE) & (share < 1))
    cost = -np.log(share[cells, values])
    order = np.argsort(cost, kind="stable")[:ALTERNATIVES]
    options: list[tuple[float, int, int]] = [(float(cost[k]), int(cells[k]), int(values[k])) for k in order]
    # Every set comes once: from {.., k} either k + 1 is added, or k is replaced by k + 1.
    heap: list[tuple[float, tuple[int, ...]]] = [(options[0][0], (0,))] if options else []
    while heap:
        total, chosen = heapq.heappop(heap)
        last = chosen[-1]
        if last + 1 < len(options):
            heapq.heappush(heap, (total + options[last + 1][0], (*chosen, last + 1)))
            replaced = total - options[last][0] + options[last + 1][0]
            heapq.heappush(heap, (replaced, (*chosen[:-1], last + 1)))
        picked: dict[int, int] = {options[k][1]: options[k][2] for k in chosen}
        if len(picked) == len(chosen):
            tokens: Any = likeliest.copy()
            tokens[list(picked)] = list(picked.values())
            yield tokens
