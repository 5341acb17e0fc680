"""Counting solutions by propagation and search, against brute force and the fast Sudoku search."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.constraints import BoolArray, Cardinality, Constraint, IntArray
from mull.count import count_solutions
from mull.errors import UserError
from mull.problem import Instance, Problem, Tokens, Variables
from mull.problems.sudoku import Sudoku


class Loose(Problem):
    """A few variables under any cardinalities; only what counting needs."""

    def __init__(self, variables: int, values: int, constraints: tuple[Constraint, ...]) -> None:
        self._shape, self._given = Variables((variables,), values), constraints

    name = "loose"

    def variables(self) -> Variables:
        return self._shape

    def input_kind(self) -> Tokens:
        return Tokens(1)

    def constraints(self) -> tuple[Constraint, ...]:
        return self._given

    def generate(self, rng: np.random.Generator) -> Instance:
        raise NotImplementedError

    def parse(self, text: str) -> Instance:
        raise NotImplementedError

    def write(self, instance: Instance) -> str:
        raise NotImplementedError

    def write_answer(self, values: IntArray) -> str:
        raise NotImplementedError

    def render(self, values: IntArray, given: BoolArray | None = None) -> str:
        raise NotImplementedError


EMPTY = Instance(np.zeros(4, dtype=np.uint8), np.zeros(4, dtype=bool))


@given(st.data())
def test_equals_enumeration_under_any_cardinalities(data: st.DataObject) -> None:
    variables, values = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 3))
    constraints = []
    for _ in range(data.draw(st.integers(0, 4))):
        atoms = data.draw(st.lists(st.integers(0, variables * values - 1), min_size=1, max_size=6, unique=True))
        lower = data.draw(st.integers(0, 3))
        constraints.append(Cardinality(values, np.array([atoms]), lower, lower + data.draw(st.integers(0, 2))))
    problem = Loose(variables, values, tuple(constraints))
    answers = np.array(list(product(range(values), repeat=variables)))
    expected = int(problem.check(np.zeros((len(answers), variables)), answers).sum())
    assert count_solutions(problem, EMPTY, limit=100) == expected
    assert count_solutions(problem, EMPTY, limit=2) == min(expected, 2)


@given(st.lists(st.integers(0, 4), min_size=16, max_size=16))
def test_equals_the_fast_search_on_small_boards(tokens: list[int]) -> None:
    from mull.problems.sudoku_search import count_solutions as fast

    array = np.array(tokens, dtype=np.uint8) * (np.arange(16) % 3 == 0)
    array = array.astype(np.uint8)
    assert count_solutions(Sudoku(2), Instance(array, array > 0), limit=50) == fast(2, array, 50)


def test_hard_boards_are_told_in_time() -> None:
    sudoku = Sudoku()
    hard = "002000010000050600000000000560090000400000002000600080700201000030000900000800000"
    assert count_solutions(sudoku, sudoku.parse(hard), seconds=30) == 1
    assert count_solutions(sudoku, sudoku.parse(hard.replace("1", "0")), seconds=30) == 2
    assert count_solutions(sudoku, sudoku.parse("." * 81), seconds=30) == 2


def test_gives_up_when_the_time_is_over() -> None:
    sudoku = Sudoku()
    assert count_solutions(sudoku, sudoku.parse("." * 81), seconds=-1) is None


def test_other_constraints_are_refused() -> None:
    class Odd(Constraint):
        def violations(self, values_BV: IntArray, inputs: np.ndarray) -> BoolArray:
            raise NotImplementedError

        def scopes(self) -> list[IntArray]:
            return []

        def label(self, group: int) -> str:
            return ""

    with pytest.raises(UserError, match="Odd constraint"):
        count_solutions(Loose(2, 2, (Odd(),)), EMPTY)
