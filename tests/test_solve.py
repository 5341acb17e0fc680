from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull import exact, hub, solve
from mull.errors import InvalidInput, UserError
from mull.pool import AHEAD
from mull.runtime import load_runtime
from mull.solve import NO_SOLUTION, SEVERAL_SOLUTIONS, Answer, Puzzle, Solver, load
from tiny import BOARD, OTHER, PROBLEM, STEPS, LookupRuntime, puzzle, write_tiny

NONE_FITS = "12.....3........"  # the first row lacks 3 and 4 where the last column forbids one of them
MANY_FIT = "." * 16


def solver(exact: bool | None = False, batch: int = 8, workers: int = 2) -> Solver:
    return Solver(LookupRuntime(batch, workers), STEPS, exact)


def without_time(answer: Answer) -> tuple[object, ...]:
    return answer.puzzle, answer.solution, answer.verified, answer.steps, answer.method, answer.note


def test_one_puzzle_leaves_as_soon_as_it_is_verified() -> None:
    runtime = LookupRuntime()
    answer = Solver(runtime, STEPS).solve(puzzle(5, seed=1))
    assert answer.solution == BOARD
    assert answer.verified
    assert (answer.steps, answer.method, answer.note) == (5, "recurrence", "")
    assert answer.ms > 0
    assert answer.values is not None
    assert PROBLEM.write_answer(answer.values) == BOARD
    assert runtime.sizes == [1] * 5


def test_solved_puzzles_leave_the_batch() -> None:
    runtime = LookupRuntime(batch=4, workers=1)
    Solver(runtime, STEPS).solve([puzzle(2), puzzle(4), puzzle(1), puzzle(4)])
    assert runtime.sizes == [4, 3, 2, 2]


@given(
    empty=st.lists(st.integers(0, 12), max_size=40),
    known=st.randoms(use_true_random=False),
    batch=st.integers(1, 9),
    workers=st.integers(1, 3),
)
def test_order_and_answers_do_not_depend_on_batches(empty: list[int], known: object, batch: int, workers: int) -> None:
    boards = [known.choice([BOARD, OTHER]) for _ in empty]  # type: ignore[attr-defined]
    puzzles = [puzzle(number, board, seed) for seed, (number, board) in enumerate(zip(empty, boards, strict=True))]
    alone = [without_time(solver().solve(text)) for text in puzzles]
    together = [without_time(answer) for answer in solver(batch=batch, workers=workers).solve(puzzles)]
    assert together == alone


def test_ten_thousand_in_one_call() -> None:
    puzzles = [puzzle(1 + number % 3, seed=number % 7) for number in range(10_000)]
    answers = solver(batch=64, workers=1).solve(puzzles)
    assert [answer.puzzle for answer in answers] == puzzles
    assert all(answer.verified and answer.solution == BOARD for answer in answers)


def test_times_add_up() -> None:
    answers = solver().solve([puzzle(3)] * 50)
    assert all(0 < answer.ms < 1000 for answer in answers)


def test_streaming_reads_only_a_little_ahead() -> None:
    read = []

    def endless() -> Iterator[str]:
        for number in count():
            read.append(number)
            yield puzzle(2)

    assert len(list(islice(solver(batch=4, workers=2).solve_many(endless()), 10))) == 10
    assert len(read) <= 10 + 4 * 2 * AHEAD + 2 * 4


def test_what_is_not_verified_is_said_to_be() -> None:
    answer = solver().solve(puzzle(5, OTHER))
    assert not answer.verified
    assert answer.steps == STEPS
    assert answer.solution is not None
    assert answer.note == "no verified answer after 20 recurrences"


def test_verified_comes_from_the_checker_alone() -> None:
    # A full board that the model does not know: its answer is a valid board, but not this one's.
    assert not solver().solve(OTHER).verified


@pytest.mark.parametrize("wrong", ["11" + "." * 14, "1...1" + "." * 11])
def test_contradictions_name_the_puzzle(wrong: str) -> None:
    with pytest.raises(InvalidInput, match=r"^the givens contradict each other"):
        solver().solve(wrong)
    with pytest.raises(InvalidInput, match=r"^puzzle 3: the givens contradict"):
        solver().solve([puzzle(2), puzzle(3), wrong])


def test_answers_before_a_bad_puzzle_are_given() -> None:
    puzzles = [*[puzzle(2)] * 11, Puzzle("123", "puzzles.txt:12"), puzzle(2)]
    answers = solver(batch=4).solve_many(puzzles)
    assert len(list(islice(answers, 11))) == 11
    with pytest.raises(InvalidInput, match=r"^puzzles.txt:12: expected 16 characters, got 3"):
        next(answers)


def test_nothing_in_nothing_out() -> None:
    assert solver().solve([]) == []


def test_steps_must_be_positive() -> None:
    with pytest.raises(InvalidInput, match="at least 1"):
        Solver(LookupRuntime(), steps=0)


def test_history() -> None:
    probabilities = solver().history(puzzle(3), 6)
    assert probabilities.shape == (6, 16, 4)
    np.testing.assert_allclose(probabilities.sum(axis=-1), 1.0, rtol=1e-6)
    assert PROBLEM.write_answer(probabilities[-1].argmax(axis=-1)) == BOARD
    assert solver().history(puzzle(3)).shape == (STEPS, 16, 4)


def test_model_file(tmp_path: Path) -> None:
    ready = load(write_tiny(tmp_path / "tiny.mull"), exact=False)
    assert ready.steps == STEPS
    assert [answer.steps for answer in ready.solve([puzzle(number) for number in (9, 1, 5)])] == [9, 1, 5]
    assert load(tmp_path / "tiny.mull", steps=3, exact=False).solve(puzzle(9)).verified is False


class TestWithExactSolver:
    @pytest.fixture(autouse=True)
    def _installed(self) -> None:
        pytest.importorskip("cpmpy")

    def test_settles_what_the_model_does_not(self) -> None:
        answer = solver(exact=True).solve(puzzle(3, OTHER))
        assert (answer.solution, answer.verified, answer.method, answer.note) == (OTHER, True, "exact", "")
        assert answer.steps == STEPS

    def test_proves_that_an_answer_is_the_only_one(self) -> None:
        assert solver(exact=True).solve(puzzle(3)).note == ""
        answer = solver(exact=True).solve(puzzle(14))
        assert answer.verified
        assert answer.method == "recurrence"
        assert answer.note == SEVERAL_SOLUTIONS

    def test_proves_it_by_cp_sat_where_counting_does_not_end(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(solve, "count_solutions", lambda *_, **__: None)
        self.test_proves_that_an_answer_is_the_only_one()

    def test_hints_are_the_models_values(self, monkeypatch: pytest.MonkeyPatch) -> None:
        hints = []
        search = exact.solutions
        monkeypatch.setattr(exact, "solutions", lambda *a, hint=None, **k: hints.append(hint) or search(*a, hint=hint))
        for wanted in (False, True):
            answer = Solver(LookupRuntime(), STEPS, exact=True, hints=wanted).solve(puzzle(3, OTHER))
            assert (answer.solution, answer.verified, answer.method) == (OTHER, True, "exact")
        assert hints[0] is None and PROBLEM.write_answer(hints[1]) == BOARD

    def test_tells_that_there_is_no_solution(self) -> None:
        answer = solver(exact=True).solve(NONE_FITS)
        assert (answer.solution, answer.verified, answer.method, answer.note) == (None, False, "none", NO_SOLUTION)
        assert answer.values is None


class TestWithoutExactSolver:
    @pytest.fixture(autouse=True)
    def _missing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(exact, "available", lambda: False)

    def test_says_what_to_install(self) -> None:
        with pytest.raises(UserError, match=r"mull\[exact\]"):
            solver(exact=True)

    def test_tells_that_there_is_no_solution(self) -> None:
        answer = solver(exact=None).solve(NONE_FITS)
        assert (answer.solution, answer.verified, answer.method, answer.note) == (None, False, "none", NO_SOLUTION)
        assert answer.values is None

    def test_tells_what_the_model_missed(self) -> None:
        answer = solver(exact=None).solve(puzzle(3, OTHER))
        assert not answer.verified
        assert answer.method == "recurrence"
        assert answer.note.startswith("has exactly one solution, which the model did not find: try --search")

    def test_tells_that_there_are_several(self) -> None:
        assert Solver(LookupRuntime(), 2).solve(MANY_FIT).note == SEVERAL_SOLUTIONS
        answer = solver(exact=None).solve(puzzle(14))  # solved, and alone: worth a look whether it is the only one
        assert answer.verified and answer.note == SEVERAL_SOLUTIONS
        assert solver(exact=None).solve([puzzle(14)])[0].note == ""
        assert solver(exact=None).solve(puzzle(3)).note == ""

    def test_too_slow_to_tell(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(solve, "count_solutions", lambda *_, **__: None)
        note = solver(exact=None).solve(puzzle(3, OTHER)).note
        assert note == "no verified answer after 20 recurrences; it may have no solution or several"


HARD = "000000010400000000020000000000050407008000300001090000300400200050100000000806000"


@pytest.mark.skipif("sudoku" not in hub.shipped(), reason="the model does not ship yet")
def test_the_model_that_ships_solves_hard_puzzles() -> None:
    easy = "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79"
    answers = load("sudoku", exact=False).solve([easy, HARD])
    assert answers[0].verified
    assert answers[0].solution == "534678912672195348198342567859761423426853791713924856961537284287419635345286179"
    assert answers[1].verified


@pytest.mark.skipif("sudoku-4x4" not in hub.shipped(), reason="the model does not ship yet")
@pytest.mark.parametrize("backend", ["onnx", "torch"])
def test_the_4x4_model_that_ships(backend: str) -> None:
    ready = Solver(load_runtime(hub.shipped()["sudoku-4x4"], backend), exact=False)  # type: ignore[arg-type]
    puzzles = [text for seed in range(200) if unique(text := puzzle(9, (BOARD, OTHER)[seed % 2], seed))]
    answers = ready.solve(puzzles)
    assert sum(answer.verified for answer in answers) >= 0.99 * len(puzzles)


def unique(text: str) -> bool:
    return len(exact.solutions(PROBLEM, PROBLEM.parse(text))) == 1
