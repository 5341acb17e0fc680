"""Dealing the rows of one file into parts of exact sizes that share no symmetry class."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mull.constraints import IntArray
from mull.problem import Instance, NumpyBatch, Problem


def deal(
    problem: Problem, batch: NumpyBatch, sizes: Sequence[tuple[str, int]], rng: np.random.Generator
) -> dict[str, IntArray]:
    """The rows of each named part, in the order of the file; sizes add up to the length of the batch.

    Classes come in random order, each into the smallest part that has room for the whole of it.
    """
    if sum(size for _, size in sizes) != len(batch):
        raise ValueError(f"the sizes {dict(sizes)} do not add up to {len(batch)} rows")
    classes: dict[bytes, list[int]] = {}
    for row, (inputs, given, solution) in enumerate(zip(batch.inputs, batch.given, batch.solution, strict=True)):
        classes.setdefault(problem.canonical(Instance(inputs, given, solution)), []).append(row)
    members = list(classes.values())
    room = dict(sorted(sizes, key=lambda part: part[1]))
    dealt: dict[str, list[int]] = {name: [] for name in room}
    for number in rng.permutation(len(members)):
        rows = members[number]
        part = next((name for name in room if room[name] >= len(rows)), None)
        if part is None:
            raise ValueError(f"no part has room for a class of {len(rows)} rows: {room}")
        room[part] -= len(rows)
        dealt[part] += rows
    return {name: np.sort(np.array(rows, dtype=np.int64)) for name, rows in dealt.items()}
