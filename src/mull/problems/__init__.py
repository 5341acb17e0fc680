"""The problems that come with mull, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

from mull.errors import CorruptFile, unknown
from mull.problem import Problem
from mull.problems.examples import Examples
from mull.problems.mnist_mapping import MnistMapping
from mull.problems.nonogram import Nonogram
from mull.problems.shortest_path import ShortestPath
from mull.problems.stated import Stated
from mull.problems.sudoku import LEVELS_16X16, REGULAR_16X16, SINGLES_16X16, Sudoku
from mull.problems.visual_sudoku import VisualSudoku

PROBLEMS: dict[str, Callable[[], Problem]] = {
    "sudoku": Sudoku,
    "sudoku-4x4": lambda: Sudoku(box=2),
    "sudoku-16x16": lambda: Sudoku(box=4),
    **{  # the first of them, simple, is what `sudoku-16x16` generates
        f"sudoku-16x16-{level}": partial(
            Sudoku, box=4, givens=givens, singles=SINGLES_16X16.get(level, 0.0), regular=level in REGULAR_16X16
        )
        for level, givens in LEVELS_16X16.items()
    },
    "sudoku-25x25": lambda: Sudoku(box=5),
    "shortest-path": ShortestPath,
    "shortest-path-12": lambda: ShortestPath(side=12),
    "nonogram": Nonogram,
    "nonogram-15": lambda: Nonogram(side=15),
    "visual-sudoku": VisualSudoku,
    "visual-sudoku-4x4": lambda: VisualSudoku(box=2),
    "mnist-mapping": MnistMapping,
}
CLASSES: dict[str, type[Problem]] = {
    cls.__name__: cls for cls in (Examples, MnistMapping, Nonogram, ShortestPath, Stated, Sudoku, VisualSudoku)
}
"""What a weights file may name; nothing else is ever constructed from a file."""


def get_problem(name: str) -> Problem:
    """A problem by its name."""
    if name not in PROBLEMS:
        raise unknown("problem", name, PROBLEMS)
    return PROBLEMS[name]()


def problem_to_dict(problem: Problem) -> dict[str, Any]:
    """A problem as JSON data."""
    return {"class": type(problem).__name__, **asdict(problem)}  # type: ignore[call-overload]


def problem_from_dict(data: dict[str, Any]) -> Problem:
    """The problem that `problem_to_dict` described."""
    options = {key: tuple(value) if isinstance(value, list) else value for key, value in data.items()}
    name = options.pop("class", None)
    if name not in CLASSES:
        hint = "if it is your own, add --problem FILE:NAME"
        raise CorruptFile(f"the file names a problem {name!r}, which this version does not have; {hint}")
    return CLASSES[name](**options)
