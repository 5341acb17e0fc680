from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mull.constraints import Constraint
from mull.errors import InvalidInput
from mull.picture import Circle, Line, Picture, Pixels, Rect, Role, Text
from mull.problem import Instance, Problem, Variables
from mull.problems import get_problem
from mull.problems.nonogram import Nonogram
from mull.problems.shortest_path import ShortestPath
from mull.problems.TEMPLATE import LatinSquare
from mull.runtime import FloatArray, Runtime, State
from mull.solve import Solver
from tiny import OTHER, LookupRuntime, puzzle

pytest.importorskip("matplotlib")

from matplotlib.image import imread

from mull import plots


def size(path: Path) -> tuple[int, int]:
    """Width and height of a PNG."""
    header = path.read_bytes()[:24]
    assert header.startswith(b"\x89PNG")
    return int.from_bytes(header[16:20], "big"), int.from_bytes(header[20:24], "big")


@pytest.mark.parametrize(("text", "columns"), [(puzzle(6), 3), (puzzle(6, OTHER), 4), (puzzle(1), 2)])
def test_recurrences(tmp_path: Path, text: str, columns: int) -> None:
    plots.recurrences(Solver(LookupRuntime(), 12), text, tmp_path / "board.png")
    assert size(tmp_path / "board.png")[0] == 300 * columns  # no empty columns


class Knowing(Runtime):
    """A model that becomes the surer of an answer, the more it recurs."""

    def __init__(self, problem: Problem, answer: NDArray[Any]) -> None:
        self.problem, self.card, self.batch, self.workers = problem, None, 1, 1
        self.truth_VD = np.eye(problem.variables().values, dtype=np.float32)[answer]
        self.doubt_V1 = np.random.default_rng(0).normal(size=(len(answer), 1)).astype(np.float32)

    def start(self, inputs: NDArray[Any]) -> State:
        return State((np.zeros((1, 1), np.float32),))

    def step(self, state: State, count: int = 1) -> tuple[State, FloatArray]:
        done = state.tensors[0] + count
        return State((done,)), ((done - 4 + self.doubt_V1) * self.truth_VD)[None]


def share(image: NDArray[Any], role: Role) -> float:
    """The share of an image's pixels that are nearly of the colour of a role."""
    code = plots.COLOURS[role].removeprefix("#")
    colour = [int(code[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    return float((np.abs(image[..., :3] - colour).max(axis=-1) < 0.1).mean())


def example(name: str) -> tuple[Problem, Instance]:
    problem = LatinSquare(5) if name == "latin" else get_problem(name)
    return problem, problem.generate(np.random.default_rng(0))


NAMES = ["latin", "nonogram", "nonogram-15", "shortest-path", "shortest-path-12", "sudoku-16x16"]


@pytest.mark.parametrize("name", NAMES)
def test_every_problem_can_be_drawn(tmp_path: Path, name: str) -> None:
    problem, instance = example(name)
    assert instance.solution is not None
    plots.recurrences(Solver(Knowing(problem, instance.solution), 12), problem.write(instance), tmp_path / "r.png")
    image = imread(tmp_path / "r.png")
    assert image.shape[1] == 1200
    assert image[..., :3].std() > 0.05
    assert share(image, "wrong") > 0.0005  # the first guesses
    for row in np.array_split(image[..., :3], 2):
        assert all(panel.std() > 0.02 for panel in np.array_split(row, 6, axis=1)[:2])
    plots.drawing(problem, instance, tmp_path / "puzzle.png")
    plots.drawing(problem, instance, tmp_path / "solved.png", instance.solution)
    before, after = imread(tmp_path / "puzzle.png"), imread(tmp_path / "solved.png")
    assert before.shape == after.shape
    assert before[..., :3].std() > 0.02
    assert np.abs(before - after).mean() > 0.002
    assert share(after, "model") > 0.005 or "nonogram" in name


def test_what_is_large_is_drawn_larger(tmp_path: Path) -> None:
    for problem, text in ((Nonogram(40), "/".join(["1"] * 80)), (ShortestPath(32), "32x32 ends=0-9")):
        plots.drawing(problem, problem.parse(text), tmp_path / "large.png")
        assert size(tmp_path / "large.png")[0] > 800


def test_all_marks_are_drawn(tmp_path: Path) -> None:
    """Each mark in a corner of its own, or in the middle."""
    marks = (
        Rect(0, 0, 4, 4, "model"),
        Line(((6, 2), (9, 2)), 2, "wrong"),
        Circle(2, 8, 2, "given"),
        Circle(8, 8, 1.5, "wrong", width=1),
        Text(5, 5, "8", 2, "model", bold=True),
        Pixels(4, 8, 2, 2, np.full((3, 3), 255, np.uint8), "wrong"),
    )
    plots._save(plots._panels([Picture(10, 10, marks)], [], 1, 2.0), tmp_path / "marks.png")
    image = imread(tmp_path / "marks.png")[10:-10, 10:-10]  # without the margin
    side = image.shape[0] / 10

    def at(x0: float, x1: float, y0: float, y1: float) -> NDArray[Any]:
        return np.asarray(image[round(y0 * side) : round(y1 * side), round(x0 * side) : round(x1 * side)])

    assert share(at(0.1, 3.9, 0.1, 3.9), "model") == 1
    assert share(at(6, 9, 1.1, 2.9), "wrong") == 1
    assert share(at(1, 3, 7, 9), "given") == 1
    assert share(at(7.5, 8.5, 7.5, 8.5), "paper") == 1
    assert share(at(6, 10, 6, 10), "wrong") > 0.2
    assert 0.1 < share(at(4, 6, 4, 6), "model") < 0.9
    assert share(at(4.5, 5.5, 8.5, 9.5), "wrong") == 1


def test_later_marks_cover_earlier_ones(tmp_path: Path) -> None:
    marks = (Text(1, 1, "8", 2), Line(((0.6, 0.6), (1.4, 1.4)), 1), Rect(0, 0, 2, 2, "model"))
    plots._save(plots._panels([Picture(2, 2, marks)], [], 1, 1.0), tmp_path / "marks.png")
    assert share(imread(tmp_path / "marks.png"), "ink") == 0


class InARow(LatinSquare):
    def variables(self) -> Variables:
        return Variables((self.side**2,), values=self.side)

    def constraints(self) -> tuple[Constraint, ...]:
        return ()


def test_what_has_no_picture_is_told(tmp_path: Path) -> None:
    problem = InARow(3)
    with pytest.raises(InvalidInput, match="cannot be drawn"):
        plots.recurrences(Solver(Knowing(problem, np.zeros(9, int)), 2), "." * 9, tmp_path / "row.png")
    assert not (tmp_path / "row.png").exists()


def test_moments() -> None:
    assert plots.moments(1, 6) == [1]
    assert plots.moments(3, 6) == [1, 2, 3]
    assert plots.moments(64, 6)[0] == 1
    assert plots.moments(64, 6)[-1] == 64


def test_curves(tmp_path: Path) -> None:
    plots.learning_curve(
        [{"step": 1.0, "loss": 2.0}, {"step": 2.0, "loss": 1.0, "valid_board": 0.5}], tmp_path / "l.png"
    )
    accuracy = {"whole_board": 0.5, "whole_cell": 0.9}
    plots.accuracy_by_steps({"steps": {"16": accuracy, "32": accuracy}}, tmp_path / "a.png")
    assert size(tmp_path / "l.png")[0] == 1200
    assert size(tmp_path / "a.png")[0] == 720
