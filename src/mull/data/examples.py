"""A user's file of examples as data sets: `FILE.csv@train`, `FILE.csv@valid` and `FILE.csv@test`.

The file has the columns `problem` (or `puzzle`) and `solution`. Which part a row belongs to follows from a hash of its
problem, about eight tenths, one and one: the same problem is never in two of them, and nothing depends on the order.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from mull.data.generated import SPLITS, split_of
from mull.data.tables import Table, read_table, to_batch
from mull.errors import InvalidInput
from mull.problem import NumpyBatch
from mull.problems.examples import Examples, UnevenError, infer


def is_examples(name: str) -> bool:
    """Whether a data set's name is a file with a part."""
    path, _, part = name.rpartition("@")
    return bool(path) and part in SPLITS


def problem_of(name: str) -> Examples:
    """The problem that a file's examples are of."""
    return _read(name.rpartition("@")[0])[0]


def load(name: str) -> NumpyBatch:
    """The rows of a part of a file."""
    path, _, part = name.rpartition("@")
    batch = _read(path)[1]
    rows = [row for row, inputs in enumerate(batch.inputs) if split_of(inputs.tobytes()) == part]
    if not rows:
        raise InvalidInput(f"{path}: its {len(batch)} examples are too few to keep some for the part {part!r}")
    return batch[np.array(rows)]


@lru_cache(maxsize=2)
def _read(path: str) -> tuple[Examples, NumpyBatch]:
    table = read_table(Path(path))
    if "problem" in table.columns:
        table = Table(table.path, {**table.columns, "puzzle": table.columns["problem"]}, table.lines)
    pairs = list(zip(table.column("puzzle"), table.column("solution"), strict=True))
    try:
        problem = infer(Path(path).name.partition(".")[0].replace(" ", "-") or "examples", pairs)
    except UnevenError as error:
        raise table.error(error.row, error.reason) from error
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from error
    return problem, to_batch(table, problem)
