"""Several sides of an instance: what they show is valid, answers come back, and the surest one counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from mull.data import sets
from mull.data.distort import distort
from mull.data.warp import warp
from mull.errors import InvalidInput
from mull.evaluate import evaluate
from mull.looks import Looks
from mull.predict import predict
from mull.problems import PROBLEMS
from mull.problems.nonogram import Nonogram
from mull.problems.sudoku import Sudoku
from mull.runtime import Runtime, State
from mull.views import certainty, views


@pytest.mark.parametrize("name", ["sudoku-4x4", "sudoku", "shortest-path"])
def test_what_a_side_shows_is_valid_and_its_answer_comes_back(name: str) -> None:
    problem, batch = PROBLEMS[name](), sets.load(f"{name}_test" if name == "sudoku-4x4" else TESTS[name], 6)
    rows = slice(1, 5)
    for view in views(problem, len(batch), 3):
        shown = view.show(batch.inputs[rows], rows)
        solution = np.take_along_axis(batch.solution[rows], view.source_BV[rows], axis=1)
        if view.rename_BD is not None:
            solution = np.take_along_axis(view.rename_BD[rows], solution, axis=1)
        assert (shown != batch.inputs[rows]).any()
        assert problem.check(shown, solution).all()
        np.testing.assert_array_equal(view.back(solution, rows), batch.solution[rows])


TESTS = {"sudoku": "rrn_test", "shortest-path": "sp4_test"}


def test_images_move_and_keep_their_digits() -> None:
    batch = sets.load("visual-sudoku-4x4_test", 4)
    (view,) = views(PROBLEMS["visual-sudoku-4x4"](), len(batch), 1)
    assert view.rename_BD is None
    shown = view.show(batch.inputs, slice(0, 4))
    for row in range(4):
        np.testing.assert_array_equal(shown[row], batch.inputs[row][view.source_BV[row]])


def test_images_are_turned_a_little_on_other_sides() -> None:
    batch = sets.load("visual-sudoku-4x4_test", 4)
    problem = PROBLEMS["visual-sudoku-4x4"]()
    straight, turned = views(problem, 4, 1)[0], views(problem, 4, 1, distort=0.5)[0]
    shown, changed = (view.show(batch.inputs, slice(0, 4)) for view in (straight, turned))
    np.testing.assert_array_equal(straight.source_BV, turned.source_BV)
    assert changed.dtype == np.uint8 and (shown != changed).any(axis=(2, 3)).all()
    part = turned.show(batch.inputs[1:3], slice(1, 3))  # batches do not matter
    np.testing.assert_array_equal(part, changed[1:3])
    with pytest.raises(InvalidInput, match="no images"):
        views(Sudoku(2), 4, 1, distort=0.5)


@pytest.mark.parametrize("shape", [(28, 28), (20, 31)])
def test_numpy_and_torch_distort_alike(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (3000, *shape)).astype(np.uint8)  # more than one chunk
    drawn = torch.rand(6, len(images), generator=torch.Generator().manual_seed(1)).numpy() * 2 - 1
    found = distort(torch.from_numpy(images)[:, None], 2.0, torch.Generator().manual_seed(1))[:, 0]
    apart = np.abs(warp(images, 2 * drawn).astype(int) - found.numpy())
    assert (apart <= 1).all() and (apart > 0).mean() < 0.01  # rounding


class OneSided(Runtime):
    """Reads the answer off a full board, rightly and surely if it begins with a 1, wrongly and unsurely if not."""

    problem, card, batch, workers = Sudoku(2), None, 8, 2

    def start(self, inputs: NDArray[Any]) -> State:
        return State((inputs.astype(np.int64),))

    def step(self, state: State, count: int = 1) -> tuple[State, NDArray[Any]]:
        board = state.tensors[0] - 1
        knows = board[:, :1] == 0
        answers = np.where(knows, board, (board + 1) % 4)
        return state, np.where(knows, 5.0, 2.0)[:, :, None] * np.eye(4)[answers]


def test_the_surest_side_decides() -> None:
    batch = sets.load("sudoku-4x4_test", 60)
    full = batch.solution + 1
    first = predict(OneSided(), full, [1, 2], 7)
    share = (first[0] == batch.solution).all(axis=1).mean()
    assert share == (full[:, 0] == 1).mean() < 0.5
    found = [predict(OneSided(), full, [2], 7, Looks(sides))[0] for sides in (4, 16)]
    shares = [(answers == batch.solution).all(axis=1).mean() for answers in found]
    assert share < shares[0] < shares[1] and shares[1] > 0.95
    again = predict(OneSided(), full, [2], 11, Looks(4))[0]  # batches do not matter
    assert (again == batch.solution).all(axis=1).mean() == shares[0]


def test_evaluating_from_several_sides() -> None:
    batch = sets.load("sudoku-4x4_test", 40)
    full = type(batch)(batch.solution + 1, batch.solution, batch.given, batch.labelled)
    found = [evaluate(OneSided(), full, [2], 8, Looks(sides))["steps"]["2"]["right"] for sides in (1, 12)]
    assert found[1] > found[0]


def test_certainty_is_the_probability_of_the_answer() -> None:
    logits = np.random.default_rng(0).normal(size=(3, 5, 4))
    shares = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    np.testing.assert_allclose(certainty(logits), np.log(shares.max(-1)).sum(-1), rtol=1e-5)


def test_a_problem_without_symmetries_has_one_side() -> None:
    problem = Nonogram(3)
    assert views(problem, 4, 0) == []
    with pytest.raises(InvalidInput, match="one side"):
        views(problem, 4, 1)
