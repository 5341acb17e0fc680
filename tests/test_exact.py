from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mull import exact
from mull.constraints import UNKNOWN, BoolArray, Cardinality, Constraint, IntArray
from mull.errors import UserError
from mull.problem import Instance
from mull.problems.sudoku import Sudoku
from tiny import BOARD, PROBLEM

pytest.importorskip("cpmpy")


@cache
def all_boards() -> NDArray[Any]:
    """The 288 boards of 4x4 Sudoku, by trying every choice of rows."""
    rows = list(permutations(range(4)))
    bands = [(top, low) for top, low in product(rows, rows) if set(top[:2]) == set(low[2:])]
    boards = (np.array([*upper, *lower]) for upper, lower in product(bands, bands))
    return np.stack([board.ravel() for board in boards if all(len(set(column)) == 4 for column in board.T.tolist())])


def test_brute_force_is_right() -> None:
    assert len(all_boards()) == 288


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 15), st.integers(1, 4)), max_size=7))
def test_counts_agree_with_brute_force(givens: list[tuple[int, int]]) -> None:
    tokens = np.zeros(16, dtype=np.uint8)
    for cell, value in givens:
        tokens[cell] = value
    boards = all_boards()
    fitting = {board.tobytes() for board in boards[((tokens == 0) | (boards + 1 == tokens)).all(axis=1)]}
    found = exact.solutions(PROBLEM, Instance(tokens, tokens > 0), limit=5)
    assert len(found) == min(5, len(fitting))
    keys = {values.astype(boards.dtype).tobytes() for values in found}
    assert len(keys) == len(found)
    assert keys <= fitting


def test_every_solution_once() -> None:
    empty = PROBLEM.parse("12" + "." * 14)
    found = exact.solutions(PROBLEM, empty, limit=1000)
    assert len({tuple(values.tolist()) for values in found}) == len(found) == 288 // 12


def test_solve() -> None:
    values = exact.solve(PROBLEM, PROBLEM.parse("." + BOARD[1:]))
    assert values is not None
    assert PROBLEM.write_answer(values) == BOARD
    assert exact.solve(PROBLEM, PROBLEM.parse("11" + "." * 14)) is None


def test_hints_need_not_be_right() -> None:
    text = "." + BOARD[1:8] + "." * 8
    wanted = {tuple(values.tolist()) for values in exact.solutions(PROBLEM, PROBLEM.parse(text), limit=100)}
    assert len(wanted) > 1
    for hint in [*all_boards()[::96], np.zeros(16, dtype=int), np.full(16, UNKNOWN)]:
        found = exact.solutions(PROBLEM, PROBLEM.parse(text), limit=100, hint=hint)
        assert {tuple(values.tolist()) for values in found} == wanted and len(found) == len(wanted)
    board = [int(value) - 1 for value in BOARD]  # a hint that is a solution is found; with symmetries it may not be
    assert exact.solutions(PROBLEM, PROBLEM.parse(BOARD[:4] + "." * 12), hint=np.array(board))[0].tolist() == board


def test_an_answer_that_is_known() -> None:
    board = np.array([int(value) - 1 for value in BOARD])
    (only,) = exact.solutions(PROBLEM, PROBLEM.parse("." + BOARD[1:]), known=board)
    assert only is board
    first, second = exact.solutions(PROBLEM, PROBLEM.parse("." * 16), known=board)
    assert first is board and second.tolist() != board.tolist()


def test_hard_9x9() -> None:
    sudoku = Sudoku()
    text = "000000010400000000020000000000050407008000300001090000300400200050100000000806000"
    (values,) = exact.solutions(sudoku, sudoku.parse(text))
    assert sudoku.check(sudoku.parse(text).inputs[None], values[None]).all()


@dataclass(frozen=True)
class Picky(Sudoku):
    """A Sudoku with other bounds: at least two and at most three ones on the diagonal, by instance or not."""

    by_instance: bool = False

    def constraints(self) -> tuple[Constraint, ...]:
        atoms = np.array([[0, 20, 40, 60, -1]])

        def bounds(inputs: NDArray[Any]) -> tuple[IntArray, IntArray]:
            return np.full((len(inputs), 1), 2), np.full((len(inputs), 1), 3)

        extra = Cardinality(4, atoms, bounds=bounds) if self.by_instance else Cardinality(4, atoms, lower=2, upper=3)
        return (*super().constraints(), extra)


@pytest.mark.parametrize("by_instance", [False, True])
def test_any_cardinality(by_instance: bool) -> None:
    problem = Picky(box=2, by_instance=by_instance)
    boards = all_boards()
    ones = (boards[:, [0, 5, 10, 15]] == 0).sum(axis=1)
    found = exact.solutions(problem, problem.parse("." * 16), limit=1000)
    assert len(found) == ((ones >= 2) & (ones <= 3)).sum() > 0


class Odd(Constraint):
    """Something that is no cardinality."""

    def violations(self, values_BV: IntArray, inputs: NDArray[Any]) -> BoolArray:
        return np.zeros((len(values_BV), 1), dtype=bool)

    def scopes(self) -> list[IntArray]:
        return [np.arange(2)]

    def label(self, group: int) -> str:
        return "odd"


def test_other_constraints_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sudoku, "constraints", lambda self: (Odd(),))
    fresh = Sudoku(box=2)  # a problem makes its constraints once
    with pytest.raises(UserError, match="Odd constraint cannot be stated"):
        exact.solve(fresh, fresh.parse("." * 16))


def test_time_limit() -> None:
    large = Sudoku(box=5)
    with pytest.raises(exact.UndecidedError, match="did not know after"):
        exact.solutions(large, large.parse("0 " * 625), seconds=1e-3)


def test_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"install mull\[exact\]"):
        exact.solve(PROBLEM, PROBLEM.parse("." * 16))
