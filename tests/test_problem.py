"""Instances, batches and what Problem derives from a statement."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

from mull.constraints import UNKNOWN
from mull.errors import InvalidInput
from mull.problem import Hints, Images, Instance, Tokens, Variables, stack
from mull.problems import CLASSES, PROBLEMS, get_problem, problem_from_dict, problem_to_dict
from mull.problems.sudoku import Sudoku
from mull.problems.TEMPLATE import LatinSquare

SQUARE = LatinSquare(side=3)
SOLVED = np.array([0, 1, 2, 1, 2, 0, 2, 0, 1])


def instance(text: str = "1........", solution: np.ndarray | None = SOLVED) -> Instance:
    return dataclasses.replace(SQUARE.parse(text), solution=solution)


def test_variables_are_numbered_in_their_layout() -> None:
    variables = Variables((2, 3), values=4)
    assert variables.count == 6
    np.testing.assert_array_equal(variables.index, [[0, 1, 2], [3, 4, 5]])


def test_input_kinds_know_the_shape_of_one_variable() -> None:
    assert (Tokens(5).shape, Hints(3, 9).shape, Images(28, 20).shape) == ((), (3,), (28, 20))


def test_stack_makes_a_batch_with_every_variable_labelled() -> None:
    batch = stack([instance(), instance("123......")])
    assert len(batch) == 2
    assert batch.inputs.shape == batch.solution.shape == batch.given.shape == (2, 9)
    assert batch.labelled.all()
    np.testing.assert_array_equal(batch.given.sum(axis=1), [1, 3])


def test_a_batch_is_indexed_by_rows() -> None:
    batch = stack([instance(), instance("123......"), instance(".........")])
    part = batch[np.array([2, 0])]
    assert len(part) == 2
    np.testing.assert_array_equal(part.given.sum(axis=1), [0, 1])


def test_stack_needs_solutions() -> None:
    with pytest.raises(ValueError, match="needs a solution"):
        stack([instance(solution=None)])


def test_check_wants_complete_answers_in_the_domain() -> None:
    answers = np.stack([SOLVED] * 4)
    answers[1, 8], answers[2, 8], answers[3, 8] = UNKNOWN, 3, 0
    inputs = np.zeros((4, 9), dtype=np.uint8)
    np.testing.assert_array_equal(SQUARE.check(inputs, answers), [True, False, False, False])


def test_check_wants_the_givens_kept() -> None:
    inputs = np.stack([instance("1........").inputs, instance("2........").inputs])
    np.testing.assert_array_equal(SQUARE.check(inputs, np.stack([SOLVED, SOLVED])), [True, False])


def test_conflicts_name_the_demand_and_its_variables() -> None:
    puzzle = instance("1.1......")
    (label, scope), *rest = SQUARE.conflicts(puzzle.inputs, SQUARE.given_values(puzzle))
    assert label == "row 1 holds 1 once"
    assert scope.tolist() == [0, 1, 2]
    assert not rest


def test_validate_says_what_the_givens_break() -> None:
    SQUARE.validate(instance("1........"))
    with pytest.raises(InvalidInput, match="row 1 holds 1 once"):
        SQUARE.validate(instance("1.1......"))


def test_adjacency_joins_rows_and_columns() -> None:
    np.testing.assert_array_equal(np.flatnonzero(SQUARE.adjacency()[4]), [1, 3, 4, 5, 7])


@pytest.mark.parametrize("name", PROBLEMS)
def test_registered_problems_have_their_name_and_survive_a_file(name: str) -> None:
    problem = get_problem(name)
    levels = "-(regular-)?(simple|medium|tough|hard|mixed)$"  # of one problem: what is generated
    assert problem.name == re.sub(levels, "", name)
    assert problem_from_dict(problem_to_dict(problem)) == problem
    assert type(problem).__name__ in CLASSES


def test_options_survive_a_file() -> None:
    problem = Sudoku(box=2, givens=(5, 6))
    data = problem_to_dict(problem)
    data["givens"] = list(data["givens"])  # what JSON makes of a tuple
    assert problem_from_dict(data) == problem


def test_unknown_problems_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"did you mean 'sudoku'\?.*sudoku-4x4"):
        get_problem("sudoko")
