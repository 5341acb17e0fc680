"""What is done for a puzzle after its recurrences: a search, the exact solver, or a word on what is missing.

Each runs in a thread that asyncio cannot end, so each ends by itself: when its time is up, and a search also when its
client is gone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from mull.constraints import BoolArray, IntArray
from mull.errors import UserError
from mull.problem import Instance
from mull.solve import Answer, Solver

Watcher = Callable[[int, IntArray], None]
"""Told now and then how many recurrences a search has spent, and the values (V,) that it has before it."""
PAUSE = 0.08
"""Seconds between two such words."""


class _EndedError(Exception):
    """The search is to end now."""


def search(
    solver: Solver, answer: Answer, instance: Instance, seconds: float, stop: threading.Event, watcher: Watcher | None
) -> Answer:
    """The answer that a search with `solver.search` model calls finds, or the one there is with a word on that."""
    began = told = time.monotonic()
    spent = 0

    def check(inputs: NDArray[Any], values_BV: IntArray) -> BoolArray:
        nonlocal spent, told
        now = time.monotonic()
        if stop.is_set() or now > began + seconds:
            raise _EndedError
        spent += len(inputs)
        if watcher is not None and now > told + PAUSE:
            told = now
            watcher(answer.steps + spent, values_BV[0])
        return solver.verified(inputs, values_BV)

    try:
        found = solver.searched(answer, instance, check)
    except _EndedError:
        ms = round(answer.ms + 1000 * (time.monotonic() - began), 3)
        note = f"{answer.note}, nor by a search of {seconds:g} s"
        return replace(answer, steps=answer.steps + spent, ms=ms, note=note)
    note = "" if found.verified else f"{answer.note}, nor by a search with {solver.search} model calls"
    return replace(found, note=note)


def settle(solver: Solver, answer: Answer) -> Answer:
    """What the exact solver makes of it, if it knows in time and can be told the rules."""
    try:
        return solver.explain(answer)
    except UserError as error:
        return replace(answer, note=f"{answer.note}; {error}" if answer.note else str(error))


def explain(solver: Solver, answer: Answer) -> Answer:
    """Why it is not verified, or whether a verified one is the only one."""
    return solver.remark(answer) if answer.verified else solver.explain(answer)
