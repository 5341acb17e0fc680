"""The paper's accuracies against loops, on a runtime whose answers are known."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mull.evaluate import evaluate, metrics
from mull.predict import predict
from mull.problem import Batch, NumpyBatch
from mull.problems.sudoku import Sudoku
from mull.runtime import Runtime, State


def example(rows: int = 7) -> NumpyBatch:
    rng = np.random.default_rng(0)
    solution = rng.integers(0, 4, (rows, 16))
    given = rng.random((rows, 16)) < 0.4
    return Batch(np.where(given, solution + 1, 0), solution, given, np.ones_like(given))


class Counting(Runtime):
    """Answers every variable with (first input + recurrences so far) modulo 4."""

    problem, card, batch, workers = Sudoku(2), None, 2, 2

    def start(self, inputs: NDArray[Any]) -> State:
        return State((inputs.astype(np.int64),))

    def step(self, state: State, count: int = 1) -> tuple[State, NDArray[Any]]:
        after = state.tensors[0] + count
        return State((after,)), np.eye(4)[after % 4]


def test_predictions_come_in_the_order_asked_for() -> None:
    inputs = np.arange(5 * 16).reshape(5, 16)
    answers = predict(Counting(), inputs, [3, 1, 6], batch_size=2)
    for row, step in enumerate([3, 1, 6]):
        np.testing.assert_array_equal(answers[row], (inputs + step) % 4)


def test_metrics_equal_loops() -> None:
    batch = example()
    answers = batch.solution.copy()
    answers[0, np.flatnonzero(batch.given[0])[0]] += 1  # a wrong given: the solution board is still right
    answers[1, np.flatnonzero(~batch.given[1])[0]] += 1
    got = metrics(Sudoku(2), answers, batch)
    cells = [(b, v) for b in range(7) for v in range(16)]
    right = {cell: answers[cell] == batch.solution[cell] for cell in cells}
    blank = [cell for cell in cells if not batch.given[cell]]
    given = [cell for cell in cells if batch.given[cell]]
    assert got["whole_board"] == 5 / 7
    assert got["solution_board"] == 6 / 7
    assert got["whole_cell"] == sum(right.values()) / len(cells)
    assert got["solution_cell"] == sum(right[cell] for cell in blank) / len(blank)
    assert got["givens_cell"] == sum(right[cell] for cell in given) / len(given)


def test_by_givens_adds_up_to_the_whole() -> None:
    batch = example(40)
    result = evaluate(Counting(), batch, [4, 8], batch_size=3)
    assert result["instances"] == 40 and list(result["steps"]) == ["4", "8"]
    counts = [row["count"] for row in result["by_givens"].values()]
    assert sum(counts) == 40
    mean = sum(row["count"] * row["4"] for row in result["by_givens"].values()) / 40
    assert abs(mean - result["steps"]["4"]["whole_board"]) < 1e-12
