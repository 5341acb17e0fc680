"""Timing things against each other: in rounds that take turns, so that a slow moment of the machine hits all alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Time:
    """The best of some rounds, in seconds."""

    wall: float
    processor: float
    """Of all threads of this process: what other processes do changes it less."""


def race(tasks: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Time]:
    """The best time of each task; what it does first, such as compiling, is not counted."""
    for task in tasks.values():
        task()
    best: dict[str, Time] = {}
    for _ in range(rounds):
        for name, task in tasks.items():
            wall, processor = time.perf_counter(), time.process_time()
            task()
            taken = Time(time.perf_counter() - wall, time.process_time() - processor)
            last = best.get(name, taken)
            best[name] = Time(min(last.wall, taken.wall), min(last.processor, taken.processor))
    return best
