"""Recurring on a device gives what the plain pools give."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mull.adaptive import Adaptive
from mull.data import sets
from mull.errors import InvalidInput
from mull.hub import find_model
from mull.pool import recur
from mull.problem import Instance, Problem
from mull.problems import PROBLEMS
from mull.runtime import TorchRuntime, load_runtime
from mull.solve import Solver
from mull.tensor_check import Checker, supported

NAMES = ["sudoku-4x4", "sudoku", "shortest-path"]


@pytest.mark.parametrize("name", NAMES)
def test_the_checker_says_what_the_problem_says(name: str) -> None:
    problem: Problem = PROBLEMS[name]()
    assert supported(problem)
    rng = np.random.default_rng(0)
    instances = [problem.generate(rng) for _ in range(4)]
    inputs = np.stack([instance.inputs for instance in instances])
    right = np.stack([instance.solution for instance in instances])
    check = Checker(problem, torch.device("cpu"))
    for changes in (0, 1, 2, 5):
        values = right.copy()
        for row in values:
            row[rng.integers(0, len(row), changes)] = rng.integers(0, problem.variables().values, changes)
        found = check(torch.from_numpy(values), [torch.from_numpy(side.copy()) for side in check.bounds(inputs)])
        np.testing.assert_array_equal(found.numpy(), problem.check(inputs, values))
    swapped = check(torch.from_numpy(right), [torch.from_numpy(s.copy()) for s in check.bounds(inputs[::-1])])
    np.testing.assert_array_equal(swapped.numpy(), problem.check(inputs[::-1], right))


@pytest.fixture(scope="module")
def runtime() -> TorchRuntime:
    loaded = load_runtime(find_model("sudoku-4x4"), "torch")
    assert isinstance(loaded, TorchRuntime)
    return loaded


@pytest.mark.parametrize("capacity", [64, 11])
def test_checked_after_every_recurrence_it_does_what_pools_do(runtime: TorchRuntime, capacity: int) -> None:
    inputs = sets.load("sudoku-4x4_test", 40).inputs
    found = Adaptive(runtime.model, runtime.problem, 3, batch=8, chunk=1, capacity=capacity)(inputs)
    wanted = [recur(runtime, 3, runtime.problem.check, each) for each in inputs]
    np.testing.assert_array_equal(found.values_CV, [each.values for each in wanted])
    np.testing.assert_array_equal(found.verified_C, [each.verified for each in wanted])
    np.testing.assert_array_equal(found.steps_C, [each.steps for each in wanted])
    assert 0 < found.verified_C.mean() < 1  # three recurrences are not enough for all


def test_batches_shrink_and_nothing_is_lost(runtime: TorchRuntime) -> None:
    inputs = sets.load("sudoku-4x4_test", 300).inputs
    solve = Adaptive(runtime.model, runtime.problem, 6, batch=256, chunk=4)  # 4 does not divide 6: three at a time
    assert [places.size for places in solve.batches] == [256, 64]
    for rows in (inputs, inputs[:3], inputs[:70]):
        found = solve(rows)
        assert set(found.steps_C.tolist()) <= {3, 6}
        np.testing.assert_array_equal(found.verified_C, runtime.problem.check(rows, found.values_CV))
        assert found.verified_C.mean() > 0.9


def test_problems_it_is_not_for() -> None:
    assert not supported(PROBLEMS["visual-sudoku"]())  # the model says what is given
    assert not supported(PROBLEMS["nonogram"]())  # its rules are no cardinalities


def test_a_solver_takes_it_where_its_runtime_offers_it(runtime: TorchRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = sets.load("sudoku-4x4_test", 30)
    puzzles = [runtime.problem.write(Instance(*row)) for row in zip(batch.inputs, batch.given, strict=True)]
    solver = Solver(runtime, steps=3, exact=False)
    wanted = solver.solve(puzzles)
    on_device = Adaptive(runtime.model, runtime.problem, 3, batch=8, chunk=1)
    monkeypatch.setattr(runtime, "adaptive", lambda steps: on_device)
    monkeypatch.setattr(runtime, "batch", 2)  # so groups of eight
    found = solver.solve(puzzles)
    assert [(each.solution, each.verified, each.steps) for each in found] == [
        (each.solution, each.verified, each.steps) for each in wanted
    ]
    stream = solver.solve_many([*puzzles[:9], "nonsense"])
    assert len([next(stream) for _ in range(9)]) == 9
    with pytest.raises(InvalidInput, match="puzzle 10"):
        next(stream)
