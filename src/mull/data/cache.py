"""Generated sets that took long to make, kept in the data folder: a file for each problem, split and seed.

A file holds the first rows of a split; fewer are read from it, more replace it. It is only a cache: without it, or
where the folder cannot be written, the same rows are made again.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path

import numpy as np

from mull.errors import UserError
from mull.fetch import data_folder
from mull.files import write_bytes
from mull.problem import Batch, NumpyBatch, Problem

VERSION = 1
"""To be raised when a generator makes other instances than before."""
WORTHWHILE_SECONDS = 5.0
PARTS = ("inputs", "solution", "given")


def path_of(problem: Problem, split: str, seed: int) -> Path:
    """The file of a split: its name tells all that the rows depend on, besides their number."""
    key = hashlib.sha256(repr((VERSION, problem, split, seed)).encode()).hexdigest()[:12]
    return data_folder() / "generated" / f"{problem.name}_{split}-{seed}-{key}.npz"


def read(problem: Problem, split: str, seed: int, count: int) -> NumpyBatch | None:
    """The first `count` rows, if they are here and whole."""
    try:
        content = io.BytesIO(path_of(problem, split, seed).read_bytes())
        with np.load(content, allow_pickle=False) as file:
            inputs, solution, given = (file[name] for name in PARTS)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    variables = problem.variables().count
    fits = inputs.shape[1:] == (variables, *problem.input_kind().shape) and solution.shape == given.shape
    if not fits or len(inputs) < count or not problem.check(inputs[:count], solution[:count]).all():
        return None
    solution, given = solution[:count].astype(np.int64), given[:count]
    return Batch(inputs=inputs[:count], solution=solution, given=given, labelled=np.ones_like(given))


def write(problem: Problem, split: str, seed: int, batch: NumpyBatch) -> None:
    """Keep rows for next time, if the folder can be written."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, inputs=batch.inputs, solution=batch.solution.astype(np.int16), given=batch.given)
    try:
        write_bytes(path_of(problem, split, seed), buffer.getvalue())
    except UserError:
        return
