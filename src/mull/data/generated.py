"""Seeded generation with splits that are disjoint up to symmetry, by construction.

A symmetry class belongs to exactly one split, chosen by a hash of its canonical key, so no list of used puzzles is kept
and the same split can be made in any order, by any number of processes, today and later.

Inside a split an instance, or one equivalent to it, may come twice: draws are independent. That hardly happens on 9x9
boards and larger ones; on 4x4 boards it often does, since there are only so many classes of puzzles, and all
their solutions fall into two classes, which every split shares.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from typing import Any, cast

from mull.data.streams import stream
from mull.errors import InvalidInput, UserError, unknown
from mull.problem import Instance, NumpyBatch, Problem, stack

SPLITS = ("train", "valid", "test")
REDRAWS = 10_000
"""Draws for one instance before the split counts as empty for this problem."""


def split_of(key: bytes) -> str:
    """The split of a symmetry class, from its canonical key: a tenth each for test and valid, the rest for train."""
    tenth = int.from_bytes(hashlib.sha256(key).digest(), "big") % 10
    return {0: "test", 1: "valid"}.get(tenth, "train")


def draw(problem: Problem, split: str, number: int, seed: int = 0) -> Instance:
    """Instance `number` of a split, from a random stream of its own."""
    rng, source = stream(seed, problem.name, split, number), problem.part(split)
    for _ in range(REDRAWS):
        instance = source.generate(rng)
        if split_of(problem.canonical(instance)) == split:
            return instance
    raise UserError(f"{problem.name}: {REDRAWS} draws gave no instance for the split {split!r}")


def generate(problem: Problem, split: str, count: int, seed: int = 0, workers: int = 1) -> NumpyBatch:
    """The first `count` instances of a split; the number of worker processes does not change them."""
    if split not in SPLITS:
        raise unknown("split", split, SPLITS)
    if count < 1 or workers < 1:
        raise InvalidInput(f"a set has at least 1 row and 1 worker, not {count} and {workers}")
    if workers == 1:
        return stack([draw(problem, split, number, seed) for number in range(count)])
    # A fresh copy: what a used problem has cached (its compiled constraints) cannot be sent to another process.
    bare = cast(Problem, replace(cast(Any, problem)))
    jobs = [(bare, split, chunk, seed) for chunk in _chunks(count, workers)]
    with ProcessPoolExecutor(min(workers, len(jobs)), mp_context=get_context("spawn")) as pool:
        return stack([instance for part in pool.map(_draw_all, jobs) for instance in part])


def _chunks(count: int, workers: int) -> Iterator[range]:
    """Ranges of instance numbers in order, several for each worker so that slow ones even out."""
    size = max(1, -(-count // (workers * 4)))
    return (range(start, min(start + size, count)) for start in range(0, count, size))


def _draw_all(job: tuple[Problem, str, range, int]) -> list[Instance]:
    problem, split, numbers, seed = job
    return [draw(problem, split, number, seed) for number in numbers]
