"""A user's file of examples as data sets: `FILE.csv@train`, `FILE.csv@valid` and `FILE.csv@test`.

The file has the columns `problem` (or `puzzle`) and `solution`. Which part a row belongs to follows from a hash of its
problem, about eight tenths, one and one: the same problem is never in two of them, and nothing depends on the order.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from mull.data.generated import SPLITS, split_of
from mull.data.tables import Table, checked, read_table
from mull.errors import InvalidInput
from mull.problem import NumpyBatch, Problem
from mull.problems.examples import Examples, UnevenError, infer


def is_examples(name: str) -> bool:
    """Whether a data set's name is a file with a part."""
    path, _, part = name.rpartition("@")
    return bool(path) and part in SPLITS


def problem_of(name: str, own: Problem | None = None) -> Problem:
    """The problem that a file's examples are of: the user's own, or what can be inferred from them."""
    return own or _inferred(name.rpartition("@")[0])


def load(name: str, own: Problem | None = None) -> NumpyBatch:
    """The rows of a part of a file."""
    path, _, part = name.rpartition("@")
    batch = _batch(path, problem_of(name, own))
    rows = [row for row, inputs in enumerate(batch.inputs) if split_of(inputs.tobytes()) == part]
    if not rows:
        raise InvalidInput(f"{path}: its {len(batch)} examples are too few to keep some for the part {part!r}")
    return batch[np.array(rows)]


@lru_cache(maxsize=2)
def _table(path: str) -> Table:
    table = read_table(Path(path))
    if "problem" in table.columns:
        table = Table(table.path, {**table.columns, "puzzle": table.columns["problem"]}, table.lines)
    return table


@lru_cache(maxsize=2)
def _batch(path: str, problem: Problem) -> NumpyBatch:
    """The examples as instances, checked by what rules there are."""
    return checked(_table(path), problem)


@lru_cache(maxsize=2)
def _inferred(path: str) -> Examples:
    table = _table(path)
    pairs = list(zip(table.column("puzzle"), table.column("solution"), strict=True))
    try:
        return infer(Path(path).name.partition(".")[0].replace(" ", "-") or "examples", pairs)
    except UnevenError as error:
        raise table.error(error.row, error.reason) from error
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from error
