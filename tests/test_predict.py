"""Several looks at an instance: noisy starts, and rounds in which what is sure is given the next time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mull.data import sets
from mull.errors import InvalidInput
from mull.looks import Looks, looks_within
from mull.predict import Looker, predict
from mull.problems.nonogram import Nonogram
from mull.problems.sudoku import Sudoku
from mull.runtime import Runtime, State

BOARDS = sets.load("sudoku-4x4_test", 60)
GROUPS = [(cell // 4, 4 + cell % 4, (8, cell // 8, cell % 4 // 2)) for cell in range(16)]
PEERS = [[b for b in range(16) if b != a and set(GROUPS[a]) & set(GROUPS[b])] for a in range(16)]


def candidates(tokens: NDArray[Any]) -> NDArray[np.float64]:
    """(V, D): 1 for each value of a 4x4 board that no given in the same row, column or box has."""
    allowed = np.ones((16, 4))
    for cell, token in enumerate(tokens):
        if token:
            allowed[cell] = np.eye(4)[token - 1]
        else:
            allowed[cell, [tokens[peer] - 1 for peer in PEERS[cell] if tokens[peer]]] = 0
    return allowed


class Deduces(Runtime):
    """Is sure of what one look at the givens tells, and knows nothing of the rest."""

    problem, card, batch, workers = Sudoku(2), None, 8, 2

    def start(self, inputs: NDArray[Any]) -> State:
        return State((inputs.astype(np.int64),))

    def step(self, state: State, count: int = 1) -> tuple[State, NDArray[Any]]:
        return state, 9 * np.stack([candidates(tokens) for tokens in state.tensors[0]])


@pytest.mark.parametrize("looks", [Looks(rounds=16), Looks(rounds=30), Looks(sides=3, rounds=16)], ids=str)
def test_rounds_give_what_the_model_is_surest_of(looks: Looks) -> None:
    (answers,) = predict(Deduces(), BOARDS.inputs, [1], 7, looks)
    np.testing.assert_array_equal(answers, BOARDS.solution)  # one value after the other, all follow


def test_more_rounds_solve_more() -> None:
    found = [predict(Deduces(), BOARDS.inputs, [1, 2], 7, Looks(rounds=rounds)) for rounds in (1, 2, 16)]
    shares = [(answers[1] == BOARDS.solution).all(axis=1).mean() for answers in found]
    assert shares[0] < shares[1] < shares[2]
    np.testing.assert_array_equal(found[2][0], found[2][1])


class Lucky(Runtime):
    """Reads the answer off a full board, rightly and surely only if noise has moved its state far enough."""

    problem, card, batch, workers = Sudoku(2), None, 8, 2

    def start(self, inputs: NDArray[Any]) -> State:
        return State((np.tile([-1.0, 1.0], (len(inputs), 8)), inputs.astype(np.int64)))

    def step(self, state: State, count: int = 1) -> tuple[State, NDArray[Any]]:
        moved, board = state.tensors
        knows = (moved[:, :1] > -0.9) == (board[:, :1] > 0)
        return state, np.where(knows, 5.0, 2.0)[:, :, None] * np.eye(4)[np.where(knows, board - 1, board % 4)]


def test_the_surest_start_decides() -> None:
    full = BOARDS.solution + 1
    found = [predict(Lucky(), full, [1], 7, Looks(starts=starts))[0] for starts in (1, 4, 16)]
    shares = [(answers == BOARDS.solution).all(axis=1).mean() for answers in found]
    assert shares[0] == 0 < shares[1] < shares[2] and shares[2] > 0.95
    np.testing.assert_array_equal(found[1], predict(Lucky(), full, [1], 7, Looks(starts=4))[0])


class Wavers(Lucky):
    """Is sure of the value 0; of the last eight variables with noise of 1."""

    def __init__(self) -> None:
        self.seen: list[NDArray[Any]] = []

    def step(self, state: State, count: int = 1) -> tuple[State, NDArray[Any]]:
        moved, board = state.tensors
        self.seen.append(board)
        return state, 9 * np.eye(4)[np.where((abs(moved) != 1) & (np.arange(16) >= 8), 1, 0)]


def test_what_looks_agree_on_is_given_first() -> None:
    runtime, empty = Wavers(), np.zeros((5, 16), dtype=np.int64)
    predict(runtime, empty, [1], 5, Looks(starts=2, rounds=2))
    assert len(runtime.seen) == 4 and (runtime.seen[0] == 0).all() and (runtime.seen[1] == 0).all()
    for board in runtime.seen[2:]:
        assert (board[:, :8] == 1).all() and (board[:, 8:] == 0).all()


class Errs(Runtime):
    """Deduces as `Deduces` does, and is surer of one wrong value in an empty cell, unless noise tells it better."""

    problem, card, batch, workers = Sudoku(2), None, 8, 2

    def __init__(self) -> None:
        self.seen = 0

    def start(self, inputs: NDArray[Any]) -> State:
        self.seen += len(inputs)
        return State((np.tile([-1.0, 1.0], (len(inputs), 8)), inputs.astype(np.int64)))

    def step(self, state: State, count: int = 1) -> tuple[State, NDArray[Any]]:
        moved, board = state.tensors
        logits = 9 * np.stack([candidates(tokens) for tokens in board])
        few = (board > 0).sum(axis=1) < 9  # early on, not when an answer is looked at again
        for row in np.flatnonzero(few & ((moved[:, 0] == -1) | (moved[:, 0] < -1.3))):
            logits[row, np.flatnonzero(board[row] == 0)[0]] = 20 * np.eye(4)[3]
        return state, logits


def test_the_try_that_supports_itself_best_counts() -> None:
    errs = [Errs() for _ in range(3)]
    tries = zip(errs, (1, 4, 24), strict=True)
    found = [predict(one, BOARDS.inputs, [1], 7, Looks(rounds=16, tries=count))[0] for one, count in tries]
    shares = [(answers == BOARDS.solution).all(axis=1).mean() for answers in found]
    assert shares[0] < 0.5 < shares[1] < 0.95 < shares[2]
    np.testing.assert_array_equal(found[1], predict(Errs(), BOARDS.inputs, [1], 7, Looks(rounds=16, tries=4))[0])
    assert errs[2].seen < 0.6 * 24 / 4 * errs[1].seen  # what several tries agree on is left alone


class Recorded(Deduces):
    """As `Deduces`, whatever noise there is; remembers what it was asked."""

    def __init__(self) -> None:
        self.counts: list[int] = []
        self.seen: list[NDArray[Any]] = []

    def start(self, inputs: NDArray[Any]) -> State:
        self.seen.append(inputs)
        return super().start(inputs)

    def disturb(self, state: State, scale: float, rng: np.random.Generator) -> State:
        return state

    def step(self, state: State, count: int = 1) -> tuple[State, NDArray[Any]]:
        self.counts.append(count)
        return super().step(state, count)


class Doubts(Looker):
    """Holds no answer for supported well enough, without a look at it."""

    def support(self, rows: NDArray[Any], *_: Any) -> NDArray[Any]:
        return np.full(len(rows), -1.0)


def test_tries_differ_in_turn() -> None:
    for steps, counts in ((4, [4, 4, 6, 6, 4, 4, 2, 2, 2, 2, 4, 4, 6, 6]), (1, [1] * 14)):
        runtime = Recorded()
        Doubts(runtime, BOARDS.inputs, Looks(rounds=2, tries=6)).answers(np.arange(1), steps)
        assert runtime.counts == counts


def test_a_try_leaves_some_givens_out_and_another_gives_what_is_less_sure() -> None:
    runtime = Recorded()
    Doubts(runtime, BOARDS.inputs, Looks(rounds=2, tries=5)).answers(np.arange(60), 1)
    first, then, longer, then_too, shuffled, then_others, half, _, _, _, hidden, _ = runtime.seen
    for plain in (first, longer, shuffled):
        np.testing.assert_array_equal(plain, BOARDS.inputs)
    np.testing.assert_array_equal(then, then_too)
    assert (then_others != then).any() and (then_others == BOARDS.inputs)[BOARDS.given].all()
    for some in (half, hidden):
        missing = some != BOARDS.inputs
        assert 0.01 < missing[BOARDS.given].mean() < 0.12 and not missing[~BOARDS.given].any()
        assert not some[missing].any()


def test_tries_are_taken_together_by_their_kind() -> None:
    class Coded(Looker):
        def _answers(self, rows: NDArray[Any], steps: int, attempt: int = 0) -> NDArray[Any]:
            return np.tile((100 * attempt + rows)[:, None], 16)

    looker = Coded(Deduces(), BOARDS.inputs, Looks(rounds=2, tries=20))
    found = looker._attempts(np.array([7, 9]), 4, range(3, 13))
    assert found[:, :, 0].tolist() == [[100 * attempt + row for row in (7, 9)] for attempt in [3, 4, 5, 6] * 2 + [3, 4]]
    batches = [looker._at_once(*numbers) for numbers in ((60, 1), (60, 50), (4, 6), (4, 50), (1, 50))]
    assert batches == [1, 1, 3, 8, 25]  # batches of eight, four kinds; no more than half of what is done


def test_answers_are_supported_if_their_values_follow_from_one_another() -> None:
    looker = Looker(Deduces(), BOARDS.inputs, Looks(rounds=2, tries=2))
    rows = np.arange(len(BOARDS))

    def support(answers: NDArray[Any]) -> NDArray[Any]:
        return np.stack([looker.support(rows, answers, np.full(len(rows), way), 1) for way in range(5)])

    right = support(BOARDS.solution)
    wrong = BOARDS.solution.copy()
    for row, given in enumerate(BOARDS.given):
        cell = np.flatnonzero(~given)[0]
        wrong[row, cell] = (wrong[row, cell] + 1) % 4
    assert (right <= 0).all() and (right.min(axis=0) < right.max(axis=0) - 0.5).any()  # ambiguous in some parts
    assert (np.median(support(wrong), axis=0) < np.median(right, axis=0) - 1).all()
    full = Looker(Deduces(), BOARDS.solution + 1, Looks(rounds=2))
    stated = full.support(rows, BOARDS.solution, np.zeros_like(rows), 1)
    assert (stated == 0).all()  # there is nothing to take back


def test_stated_values_are_to_support_an_answer_too() -> None:
    class Knows(Deduces):
        def step(self, state: State, count: int = 1) -> tuple[State, NDArray[Any]]:
            return state, 9 * np.eye(4)[BOARDS.solution]

    inputs = BOARDS.inputs.copy()
    cell = np.flatnonzero(BOARDS.given[0])[0]
    inputs[0, cell] = inputs[0, cell] % 4 + 1
    answers = BOARDS.solution.copy()
    answers[0, cell] = inputs[0, cell] - 1
    rows = np.arange(len(BOARDS))
    support = Looker(Knows(), inputs, Looks(rounds=2, tries=2)).support(rows, answers, np.zeros_like(rows), 1)
    assert support[0] < -8 and (support[1:] > -0.1).all()


def test_tries_go_on_where_an_answer_is_supported_less_than_most() -> None:
    asked = list[list[int]]()

    class Scripted(Looker):
        def _answers(self, rows: NDArray[Any], steps: int, attempt: int = 0) -> NDArray[Any]:
            asked.append(rows.tolist())
            found = BOARDS.solution[rows].copy()
            found[rows == 0, 0] = (found[rows == 0, 0] + (attempt < 5)) % 4
            return found

        def support(self, rows: NDArray[Any], answers_BV: NDArray[Any], *_: Any) -> NDArray[Any]:
            return np.where((answers_BV == BOARDS.solution[rows]).all(axis=1), -0.01, -0.1)

    looker = Scripted(Deduces(), BOARDS.inputs, Looks(rounds=2, tries=20))
    every = list(range(len(BOARDS)))
    np.testing.assert_array_equal(looker.answers(np.arange(len(BOARDS)), 1), BOARDS.solution)
    assert asked == [every] * 3 + [[0]] * (1 + 2 + 3)  # tries at once; it is right in the sixth of all, then agrees


def test_what_cannot_be() -> None:
    class Hinted(Deduces):
        problem = Nonogram(3)  # type: ignore[assignment]

    for looks in (Looks(rounds=2), Looks(tries=2)):
        with pytest.raises(InvalidInput, match="one round and one try"):
            predict(Hinted(), np.zeros((1, 9, 4), dtype=np.uint8), [1], looks=looks)
    for wrong in ({"sides": 0}, {"starts": 0}, {"rounds": 0}, {"tries": 0}, {"distort": 0.5}):
        with pytest.raises(InvalidInput):
            Looks(**wrong)  # type: ignore[arg-type]


def test_looks_say_what_they_are() -> None:
    looks = Looks(sides=4, distort=0.5, starts=2, rounds=3, tries=5)
    assert looks.count == 8 and looks.calls == 5 * (24 + 8) and Looks(starts=2, rounds=3).calls == 6
    assert looks.told() == "from 4 sides, images distorted by 0.5, 2 starts, 3 rounds, 5 tries"
    assert looks.about() == {"sides": 4, "starts": 2, "rounds": 3, "tries": 5, "distort": 0.5}
    assert Looks().about() == {} and Looks().told() == ""


def test_looks_are_rounds_first_and_then_tries() -> None:
    assert looks_within(Sudoku(2), 5) == Looks(rounds=5)
    assert looks_within(Sudoku(2), 47) == Looks(rounds=47)
    assert looks_within(Sudoku(2), 48) == Looks(rounds=16, tries=2)
    assert looks_within(Sudoku(2), 128) == Looks(rounds=17, tries=5)
    assert looks_within(Nonogram(3), 20) == Looks(starts=20)
    for calls in range(1, 300):  # no more than allowed, and hardly any left over
        looks = looks_within(Sudoku(2), calls)
        assert calls - looks.tries < looks.calls <= calls
