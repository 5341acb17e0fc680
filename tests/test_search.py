"""Search: what it finds is right, its budget holds, and it needs no luck that another seed would not have."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mull
from mull.data import sets
from mull.data.generated import generate
from mull.errors import InvalidInput
from mull.problem import Instance
from mull.search import Search, broken
from mull.solve import NO_SOLUTION, Solver


@pytest.fixture(scope="module")
def hasty() -> Solver:
    """The 4x4 model with one recurrence only, which is seldom enough."""
    return mull.load("sudoku-4x4", steps=1, exact=False)


def puzzles(solver: Solver, count: int) -> list[Instance]:
    batch = generate(solver.problem, "test", count)
    return [Instance(batch.inputs[row], batch.given[row], batch.solution[row]) for row in range(count)]


def test_assumptions_make_up_for_recurrences(hasty: Solver) -> None:
    instances = puzzles(hasty, 20)
    search = Search(hasty.runtime, hasty.verified, calls=60, steps=1)
    results = [search.run(instance) for instance in instances]
    alone = [Search(hasty.runtime, hasty.verified, calls=1, steps=1).run(instance) for instance in instances]
    found = [result.values is not None for result in results]
    assert sum(found) > 2 * sum(result.values is not None for result in alone)
    assert sum(found) >= 10
    for instance, result in zip(instances, results, strict=True):
        assert 1 <= result.calls <= 60 and result.steps == result.calls
        if result.values is not None:
            assert (result.values == instance.solution).all()
    assert [search.run(instance).calls for instance in instances] == [result.calls for result in results]


def test_a_budget_that_is_used_up(hasty: Solver) -> None:
    nothing = Search(hasty.runtime, lambda inputs, values: np.zeros(len(values), dtype=bool), calls=20, steps=2)
    result = nothing.run(puzzles(hasty, 1)[0])
    assert result.values is None and result.calls == 20 and result.steps == 40


def test_a_puzzle_without_a_solution_runs_out_of_nodes(hasty: Solver) -> None:
    instance = hasty.problem.parse("12.....3........")
    assert Search(hasty.runtime, hasty.verified, calls=500, steps=1).run(instance).values is None


def test_problems_with_hints_restart() -> None:
    solver = mull.load("nonogram", steps=1, exact=False)
    instance = solver.problem.generate(np.random.default_rng(0))
    assert solver.problem.assume(instance, 0, 0) is None
    result = Search(solver.runtime, solver.verified, calls=8, steps=16).run(instance)
    assert result.calls == 8
    if result.values is not None:
        assert solver.problem.check(instance.inputs[None], result.values[None]).all()


def test_images_are_looked_at_again() -> None:
    solver = mull.load("visual-sudoku", exact=False)
    batch = sets.load("visual-sudoku_test", 1)
    instance = Instance(batch.inputs[0], batch.given[0], batch.solution[0])
    assert solver.problem.assume(instance, 0, 0) is None
    asked = list[np.ndarray]()

    def check(inputs: np.ndarray, values: np.ndarray) -> np.ndarray:
        np.testing.assert_array_equal(inputs, np.repeat(instance.inputs[None], len(inputs), axis=0))
        asked.append(values)
        return solver.verified(inputs, values)

    result = Search(solver.runtime, check, calls=6).run(instance)
    assert result.values is not None and (result.values == instance.solution).all()
    first = asked[0]  # after one recurrence nothing is solved yet, and each side has its own guesses
    assert len(first) == 6 and len(np.unique(first, axis=0)) > 1


def test_other_sides_make_up_for_recurrences(hasty: Solver) -> None:
    instances = puzzles(hasty, 30)
    tries = [Search(hasty.runtime, hasty.verified, calls, 2, assuming=False) for calls in (1, 16)]
    found = [[search.run(instance).values for instance in instances] for search in tries]
    for values, instance in zip(found[1], instances, strict=True):
        assert values is None or (values == instance.solution).all()
    few, many = (sum(values is not None for values in one) for one in found)
    assert many > few


def test_restarts_differ(hasty: Solver) -> None:
    inputs = np.repeat(puzzles(hasty, 1)[0].inputs[None], 2, axis=0)
    state = hasty.runtime.start(inputs)
    disturbed = hasty.runtime.disturb(state, 0.3, np.random.default_rng(0))
    first, second = disturbed.tensors[0]
    assert not np.array_equal(first, second)
    assert np.array_equal(disturbed.tensors[1], state.tensors[1])
    assert 0.2 < (first - state.tensors[0][0]).std() / state.tensors[0].std() < 0.4


def test_broken_counts_groups(hasty: Solver) -> None:
    (instance,) = puzzles(hasty, 1)
    assert instance.solution is not None
    wrong = instance.solution.copy()
    cell = int(np.flatnonzero(~instance.given)[0])
    wrong[cell] = (wrong[cell] + 1) % 4
    counts = broken(hasty.problem, np.stack([instance.solution, wrong]), np.repeat(instance.inputs[None], 2, axis=0))
    assert counts.tolist() == [0, 6]  # two values are counted wrong in the cell's row, column and box


def test_a_solver_that_searches_says_so() -> None:
    instances = puzzles(mull.load("sudoku-4x4", exact=False), 20)
    solver = mull.load("sudoku-4x4", steps=1, search=100)
    answers = solver.solve([solver.problem.write(instance) for instance in instances])
    by_search = [answer for answer in answers if answer.method == "search"]
    assert by_search and all(answer.verified and answer.note == "" and answer.steps > 1 for answer in by_search)
    assert solver.solve("12.....3........").note == NO_SOLUTION
    with pytest.raises(InvalidInput, match="0 model calls or more"):
        mull.load("sudoku-4x4", search=-1)


def test_the_command_line(capfd: pytest.CaptureFixture[str]) -> None:
    command = [
        sys.executable,
        "-m",
        "mull",
        "solve",
        "--model",
        "sudoku-4x4",
        "--steps",
        "1",
        "--search",
        "50",
        "--json",
    ]
    result = subprocess.run([*command, "1......4..2....."], capture_output=True, text=True, check=False)
    answer = json.loads(result.stdout)
    assert answer["method"] in ("recurrence", "search", "none")


def test_the_benchmark_runs(root: Path, tmp_path: Path) -> None:
    out = tmp_path / "search.json"
    command = [sys.executable, "benchmarks/search.py", "--quick", "--out", str(out)]
    subprocess.run(command, cwd=root, check=True, capture_output=True)
    rows = json.loads(out.read_text())["rows"]
    assert {row["how"] for row in rows} == {"assumptions", "sides"}
