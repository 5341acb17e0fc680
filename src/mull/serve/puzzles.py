"""Puzzles to try: from a small set made in advance, changed by the problem's symmetries, or from its generator.

The set comes first because it is there at once: generators of Sudoku and nonograms compile themselves for seconds, and
need the extra `train`. A symmetry keeps the number of solutions, so each set stands for very many puzzles.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from mull.errors import UserError
from mull.problem import Instance, Problem
from mull.problems.mnist_mapping import MnistMapping
from mull.problems.visual_sudoku import VisualSudoku
from mull.serve import digits

FOLDER = Path(__file__).parent / "puzzles"
"""One file a problem; its first line is the command that made it."""


def make(problem: Problem, rng: np.random.Generator) -> str:
    """The text of a puzzle; raises UserError where none can be made."""
    if isinstance(problem, VisualSudoku):
        tokens = problem.board.parse(make(problem.board, rng)).inputs
        return problem.write(replace(_blank(problem), inputs=_images(tokens.tolist(), rng)))
    if isinstance(problem, MnistMapping):
        return problem.write(replace(_blank(problem), inputs=_images([int(rng.integers(10))], rng)))
    lines = prepared(problem.name)
    if lines:
        return problem.write(_changed(problem, problem.parse(lines[rng.integers(len(lines))]), rng))
    try:
        return problem.write(problem.generate(rng))
    except ModuleNotFoundError as error:
        raise UserError(f"making puzzles of {problem.name} needs {error.name}: install mull[train]") from error
    except NotImplementedError as error:
        raise UserError(f"{problem.name} has no generator") from error


@cache
def prepared(name: str) -> tuple[str, ...]:
    """The puzzles of a problem that were made in advance."""
    path = FOLDER / f"{name}.txt"
    if name not in {file.stem for file in FOLDER.glob("*.txt")}:
        return ()
    return tuple(line for line in path.read_text().splitlines() if line and not line.startswith("#"))


def _changed(problem: Problem, instance: Instance, rng: np.random.Generator) -> Instance:
    """The instance under a random symmetry."""
    symmetries, inputs = problem.symmetries(), instance.inputs
    if symmetries is None:
        return instance
    for table in symmetries.permutations:
        inputs = inputs[table[rng.integers(len(table))]]
    if symmetries.value_tokens is not None:
        tokens = np.arange(int(symmetries.value_tokens.max()) + 1)
        tokens[symmetries.value_tokens] = rng.permutation(symmetries.value_tokens)
        inputs = tokens[inputs].astype(inputs.dtype)
    return replace(instance, inputs=inputs)


def _blank(problem: Problem) -> Instance:
    count, kind = problem.variables().count, problem.input_kind()
    return Instance(np.zeros((count, *kind.shape), np.uint8), np.zeros(count, dtype=bool))


def _images(tokens: list[int], rng: np.random.Generator) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    return np.stack([digits.draw(token, rng) for token in tokens])
