"""Threads for the kernels for CPUs: each takes a share of the tokens, and multiplies matrices on its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache, partial
from itertools import pairwise
from threading import Barrier

import torch

LEAST_TOKENS = 512
"""Of a thread: with fewer, calls from Python cost more than the work."""
MOST_THREADS = 8
"""Between calls of compiled code only one thread runs at a time, so many would wait."""

_lent = 0
"""How many threads torch leaves to the kernels: see `kernels_alone`."""


@contextmanager
def kernels_alone() -> Iterator[None]:
    """Here only the kernels use torch's threads. Its own, which small operations need not, spin for a while when done.

    They would take the processor away from the kernels' threads.
    """
    global _lent
    before, _lent = _lent, _lent or torch.get_num_threads()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        _lent = before


def shares_of(tokens: int, variables: int) -> list[slice]:
    """Which tokens each thread takes: whole puzzles."""
    puzzles = tokens // variables
    count = max(1, min(_lent or torch.get_num_threads(), MOST_THREADS, puzzles, tokens // LEAST_TOKENS))
    ends = [puzzles * number // count * variables for number in range(count + 1)]
    return [slice(begin, end) for begin, end in pairwise(ends)]


def everybody(go: Callable[[int], None], count: int) -> None:
    """Call with each number at the same time, each on one thread; the first on this one, which is awake already."""
    if count == 1:
        go(0)
        return
    threads, go = torch.get_num_threads(), torch.no_grad()(go)  # gradients are on in a new thread
    others = [_helpers(count - 1).submit(go, number) for number in range(1, count)]
    torch.set_num_threads(1)
    try:
        go(0)
    finally:
        wait(others)
        torch.set_num_threads(threads)
    for other in others:
        other.result()


@cache
def _helpers(count: int) -> ThreadPoolExecutor:
    pool = ThreadPoolExecutor(count, "mull-cpu", partial(torch.set_num_threads, 1))
    together = Barrier(count)
    list(pool.map(lambda _: together.wait(), range(count)))  # all have started
    return pool
