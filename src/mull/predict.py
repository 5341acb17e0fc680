"""A model's answers to a whole set: from one look at each instance, or from several that differ.

Looks differ by the side that an instance is seen from (`mull.views`), or by noise on the state that they start from;
the answer that the model is surest of counts. In R rounds, the values that it is surest of, all looks taken together,
are given the next time, and it starts again: in the first round one R-th of those that are not given, and so on until
all are. So a long chain of deductions becomes short ones.

All of that can be tried several times, each time otherwise (`mull.looks.KINDS`); then the answer counts that supports
itself best: a part of it is taken back, and the model asked for it, given the rest. In a wrong answer some values
contradict others, or what was stated. No rule of the problem is looked at in any of this.

Shapes: N instances in all, B batch, V variable, D value, A tries, W ways to part an answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mull.candidates import Candidates
from mull.constraints import UNKNOWN, IntArray
from mull.data.streams import stream
from mull.errors import InvalidInput
from mull.looks import KINDS, ONE, PARTS, Looks, can_give, kind
from mull.problem import Instance
from mull.runtime import FloatArray, Runtime, State, softmax
from mull.search import NOISE
from mull.views import View, certainty, views

LEAST = 1e-9
"""Smallest share whose logarithm is taken."""


@dataclass
class Seen:
    """What some looks at the same instances came to."""

    answers_BV: IntArray
    """The surest look's."""
    sure_B: NDArray[np.float32]
    shares_BVD: FloatArray | None
    """How likely each value is, summed over the looks; where that is asked for."""

    def merge(self, other: Seen) -> Seen:
        """This and another look; of two that are equally sure, the first counts."""
        surer = other.sure_B > self.sure_B
        answers_BV = np.where(surer[:, None], other.answers_BV, self.answers_BV)
        shares_BVD = self.shares_BVD
        if shares_BVD is not None and other.shares_BVD is not None:
            shares_BVD = shares_BVD + other.shares_BVD
        return Seen(answers_BV, np.maximum(other.sure_B, self.sure_B), shares_BVD)


def predict(
    runtime: Runtime, inputs: NDArray[Any], steps: Sequence[int], batch_size: int = 256, looks: Looks = ONE
) -> IntArray:
    """The answers (len(steps), B, V) after each number of recurrences: all from the same pass, where one is enough."""
    many = runtime.many()
    if many is not None and len(inputs) * max(steps) * looks.calls >= many:
        runtime = runtime.for_many()
    looker = Looker(runtime, inputs, looks)

    def run(begin: int) -> IntArray:
        rows = np.arange(begin, min(begin + batch_size, len(inputs)))
        if not looks.at_once:
            return np.stack([looker.answers(rows, step) for step in steps])
        seen = looker.look(inputs[rows], rows, steps)
        return np.stack([seen[step].answers_BV for step in steps])

    with ThreadPoolExecutor(runtime.workers) as pool:
        return np.concatenate(list(pool.map(run, range(0, len(inputs), batch_size))), axis=1)


class Looker:
    """A model and instances, and the looks that it takes at some of them."""

    def __init__(self, runtime: Runtime, inputs: NDArray[Any], looks: Looks) -> None:
        """All instances (B, V, ...) that there are to look at."""
        self.runtime, self.problem, self.inputs, self.looks = runtime, runtime.problem, inputs, looks
        others = views(self.problem, len(inputs), looks.sides - 1, looks.distort)
        self.sides: list[View | None] = [None, *others]
        self.recurrences = 0
        """Of all looks at all instances so far."""
        if not looks.at_once and not can_give(self.problem):
            raise InvalidInput(f"{self.problem.name} is done in one round and one try: its inputs cannot state values")

    @cached_property
    def stated(self) -> IntArray:
        """The values (N, V) that the inputs of all instances state, UNKNOWN elsewhere."""
        none = np.zeros(self.inputs.shape[1], dtype=bool)
        return np.stack([self.problem.given_values(Instance(one, none)) for one in self.inputs])

    @cached_property
    def bare(self) -> NDArray[Any]:
        """What is most often the input of a variable that states no value."""
        kinds, counts = np.unique(self.inputs[self.stated == UNKNOWN], axis=0, return_counts=True)
        found: NDArray[Any] = kinds[counts.argmax()]
        return found

    def answers(self, rows: IntArray, steps: int) -> IntArray:
        """The answers (B, V) to some instances, in the first try after so many recurrences in each round."""
        if self.looks.tries == 1:
            return self._answers(rows, steps)

        def support(places: IntArray, answers_BV: IntArray, ways_B: IntArray) -> FloatArray:
            return self.support(rows[places], answers_BV, ways_B, steps)

        found, done = Candidates(len(rows)), 0
        left: IntArray = np.arange(len(rows))
        while done < self.looks.tries and len(left):
            until = min(done + self._at_once(len(left), done), self.looks.tries)
            found.add(left, self._attempts(rows[left], steps, range(done, until)), support)
            left, done = found.open(), until
        return np.stack([candidate.answer_V for candidate in found.best()])

    def _at_once(self, count: int, done: int) -> int:
        """Tries of so many instances to take together: as many as fill a batch of each kind, but no more than half of
        what is done, so that few are taken that turn out to be needless."""
        return max(1, min(done // 2, len(KINDS) * self.runtime.batch // count))

    def _attempts(self, rows: IntArray, steps: int, attempts: range) -> IntArray:
        """The answers (A, B, V) of some tries, those of a kind taken together."""
        found_ABV = np.empty((len(attempts), len(rows), self.inputs.shape[1]), dtype=np.int64)
        for first in attempts[: len(KINDS)]:
            alike = range(first, attempts.stop, len(KINDS))
            answers = self._answers(np.tile(rows, len(alike)), steps, first)
            found_ABV[first - attempts.start :: len(KINDS)] = answers.reshape(len(alike), len(rows), -1)
        return found_ABV

    def support(self, rows: IntArray, answers_BV: IntArray, ways_B: IntArray, steps: int) -> FloatArray:
        """How well the model finds the values of answers (B, V) again (B,), from 0 for all of them downwards.

        One part after the other is taken back; the rest is given. The sum of the logarithms of the values' shares. What
        the inputs state is taken back as well: a wrong answer may agree with itself and with all of that but one value.
        `ways_B` numbers ways to part them, which are random.
        """
        found_B, stated_BV = np.zeros(len(rows)), self.stated[rows] != UNKNOWN
        values_BV = np.where(stated_BV, self.stated[rows], answers_BV)
        part_WV = [
            stream(0, "support", way).permutation(answers_BV.shape[1]) % PARTS for way in range(ways_B.max() + 1)
        ]
        part_BV = np.stack(part_WV)[ways_B]
        parts = [~stated_BV & (part_BV == part) for part in range(PARTS)]
        if (self.stated == UNKNOWN).any():  # else nothing shows what states no value
            parts += [stated_BV & (part_BV == part) for part in range(PARTS)]
        for hidden_BV in parts:
            given = self._given(rows, np.where(hidden_BV, UNKNOWN, values_BV), hidden_BV & stated_BV)
            share_BV = self.runtime.likelihood(self.runtime.start(given), values_BV, steps)
            self.recurrences += steps * len(rows)
            found_B += np.where(hidden_BV, np.log(np.maximum(share_BV, LEAST)), 0.0).sum(axis=1)
        return found_B

    def _given(self, rows: IntArray, values_BV: IntArray, hidden_BV: NDArray[np.bool_]) -> NDArray[Any]:
        """Inputs of instances that state these values besides their own, without their own that are hidden."""
        inputs = self.inputs[rows]
        if hidden_BV.any():
            inputs[hidden_BV] = self.bare
        given = self.problem.give(inputs, np.where(hidden_BV, UNKNOWN, values_BV))
        assert given is not None
        return given

    def _answers(self, rows: IntArray, steps: int, attempt: int = 0) -> IntArray:
        """The answers (B, V) of one try; all but the first start with noise."""
        way = kind(attempt)
        steps, rounds = way.steps(steps), way.times(self.looks.rounds)
        if rounds == 1:
            return self.look(self.inputs[rows], rows, [steps], attempt=attempt)[steps].answers_BV
        stated_BV = self.stated[rows]
        decided_BV, rng = stated_BV.copy(), stream(0, "try", attempt, int(rows[0]))
        for number in range(rounds):
            left = np.flatnonzero((decided_BV == UNKNOWN).any(axis=1))
            if not len(left):
                break
            hidden_BV = stated_BV[left] != UNKNOWN
            hidden_BV &= rng.random(hidden_BV.shape) < way.hide if way.hide else False
            given = self._given(rows[left], decided_BV[left], hidden_BV)
            value_BV, share_BV = self._likeliest(given, rows[left], steps, number, attempt)
            if way.shuffle:
                share_BV = _log_odds(share_BV) + way.shuffle * rng.gumbel(size=share_BV.shape)
            decided_BV[left] = _surest(value_BV, share_BV, decided_BV[left], rounds - number)
        return decided_BV

    def _likeliest(
        self, inputs: NDArray[Any], rows: IntArray, steps: int, number: int, attempt: int
    ) -> tuple[IntArray, FloatArray]:
        """The likeliest value (B, V) of each variable and how likely it is, all looks of a round taken together."""
        if self.looks.count == 1:  # nothing is to be added up: only this has to leave the device
            self.recurrences += steps * len(rows)
            return self.runtime.likeliest(self._begin(inputs, rows, number, attempt), steps)
        shares_BVD = self.look(inputs, rows, [steps], number, attempt)[steps].shares_BVD
        assert shares_BVD is not None
        shares_BVD = shares_BVD / self.looks.count
        return shares_BVD.argmax(axis=-1), shares_BVD.max(axis=-1)

    def _begin(self, inputs: NDArray[Any], rows: IntArray, number: int, start: int) -> State:
        """The state that a round begins with: with noise of its own, but for the first start."""
        state = self.runtime.start(inputs)
        if not start:
            return state
        return self.runtime.disturb(state, NOISE, stream(0, "start", start, number, int(rows[0])))

    def look(
        self, inputs: NDArray[Any], rows: IntArray, steps: Sequence[int], number: int = 0, attempt: int = 0
    ) -> dict[int, Seen]:
        """What all looks at some instances come to, after each number of recurrences, in a round of a try."""
        found: dict[int, Seen] = {}
        for side in self.sides:
            shown = inputs if side is None else side.show(inputs, rows)
            for start in range(attempt * self.looks.starts, (attempt + 1) * self.looks.starts):
                state = self._begin(shown, rows, number, start)
                for step, seen in self._recur(state, rows, steps, side).items():
                    found[step] = found[step].merge(seen) if step in found else seen
        return found

    def _recur(self, state: State, rows: IntArray, steps: Sequence[int], side: View | None) -> dict[int, Seen]:
        """One look, after each number of recurrences."""
        found, done = dict[int, Seen](), 0
        self.recurrences += max(steps) * len(rows)
        for step in sorted(set(steps)):
            state, logits_BVD = self.runtime.step(state, step - done)
            found[step], done = self._seen(logits_BVD, rows, side), step
        return found

    def _seen(self, logits_BVD: FloatArray, rows: IntArray, side: View | None) -> Seen:
        answers_BV, shares_BVD = logits_BVD.argmax(axis=-1), None
        choosing = self.looks.count > 1 and self.looks.rounds == 1
        sure_B = certainty(logits_BVD) if choosing else np.zeros(len(rows), np.float32)
        if self.looks.rounds > 1:
            shares_BVD = softmax(logits_BVD)
        if side is not None:
            answers_BV = side.back(answers_BV, rows)
            shares_BVD = None if shares_BVD is None else side.back_shares(shares_BVD, rows)
        return Seen(answers_BV, sure_B, shares_BVD)


def _log_odds(share_BV: FloatArray) -> FloatArray:
    """The logarithm of how much likelier than not each value is; a share of 1 stays finite."""
    share_BV = np.clip(share_BV.astype(np.float64), LEAST, 1 - 1e-6)
    found: FloatArray = np.log(share_BV / (1 - share_BV))
    return found


def _surest(value_BV: IntArray, share_BV: FloatArray, decided_BV: IntArray, parts: int) -> IntArray:
    """The decided values, and of the others the surest: one part of so many."""
    open_BV = decided_BV == UNKNOWN
    order_BV = np.argsort(np.where(open_BV, -share_BV, np.inf), axis=1, kind="stable")
    count_B1 = np.ceil(open_BV.sum(axis=1, keepdims=True) / parts)
    more_BV = np.zeros_like(open_BV)
    np.put_along_axis(more_BV, order_BV, np.arange(order_BV.shape[1]) < count_B1, axis=1)
    return np.where(more_BV, value_BV, decided_BV)
