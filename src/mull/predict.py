"""A model's answers to a whole set: from one look at each instance, or from several that differ.

Looks differ by the side that an instance is seen from (`mull.views`), or by noise on the state that they start from;
the answer that the model is surest of counts. In R rounds, the values that it is surest of, all looks taken together,
are given the next time, and it starts again: in the first round one R-th of those that are not given, and so on until
all are. So a long chain of deductions becomes short ones.

All of that can be tried several times, with other noise each time and half more recurrences every other time; then
the answer counts that supports itself best: a part of it is taken back, and the model asked for it, given the rest. In
a wrong answer some values contradict others, or what was stated. No rule of the problem is looked at in any of this.

Shapes: N instances in all, B batch, V variable, D value.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mull.constraints import UNKNOWN, IntArray
from mull.data.streams import stream
from mull.errors import InvalidInput
from mull.problem import Instance, Problem
from mull.runtime import FloatArray, Runtime, State, softmax
from mull.search import NOISE
from mull.views import View, certainty, views

PARTS = 4
"""Parts of what an answer adds that are taken back, one at a time, to see whether the model finds them again; as many
of what the inputs state."""
CHECKS = 2 * PARTS
"""Calls of the model that this takes."""


@dataclass(frozen=True)
class Looks:
    """How often each instance is looked at, and how the looks differ: once and plainly, if nothing else is said."""

    sides: int = 1
    """As so many symmetries show it."""
    distort: float = 0.0
    """How much images are turned and shifted besides, on all sides but the first."""
    starts: int = 1
    """From each side so often: the first time as it is, then from states with noise."""
    rounds: int = 1
    """So many times over; what the model is surest of is given the next time."""
    tries: int = 1
    """All of it at most so often, with noise but once, and every other time with half more recurrences; the answer
    counts that supports itself best."""

    def __post_init__(self) -> None:
        if min(self.sides, self.starts, self.rounds, self.tries) < 1:
            raise InvalidInput(f"there is at least 1 side, start, round and try, not {self}")
        if self.distort and self.sides == 1:
            raise InvalidInput("--distort changes what other sides show: add --sides")

    @property
    def count(self) -> int:
        """Looks in one round."""
        return self.sides * self.starts

    @property
    def at_once(self) -> bool:
        """Whether one pass is enough, which may be looked at after several numbers of recurrences."""
        return self.rounds == self.tries == 1

    @property
    def calls(self) -> int:
        """Calls of the model in all, at most."""
        return self.count * self.rounds if self.tries == 1 else self.tries * (self.count * self.rounds + CHECKS)

    def about(self) -> dict[str, float]:
        """What differs from a single plain look, by name: for result files."""
        found = {"sides": self.sides, "starts": self.starts, "rounds": self.rounds, "tries": self.tries}
        distort = {"distort": self.distort} if self.sides > 1 else {}
        return {name: number for name, number in found.items() if number > 1} | distort

    def told(self) -> str:
        """The same in words."""
        parts = [f"from {self.sides} sides"] if self.sides > 1 else []
        parts += [f"images distorted by {self.distort:g}"] if self.distort else []
        parts += [f"{self.starts} starts"] if self.starts > 1 else []
        parts += [f"{self.rounds} rounds"] if self.rounds > 1 else []
        parts += [f"{self.tries} tries"] if self.tries > 1 else []
        return ", ".join(parts)


ONE = Looks()
AGREED = 3
"""Tries with the same answer after which no other is looked for, if it is supported well enough."""
LIKELY = float(np.log(0.5))
"""Support of an answer that the model holds for likelier than not, all of its values together: too little otherwise."""
USUAL = 1.25
"""Less than so many times the support of most answers of a batch (a logarithm, so below it) is too little, too: right
answers have nearly the same support, and wrong ones may have hardly less (docs/log.md)."""
LEAST = 1e-9
"""Smallest share whose logarithm is taken."""
ROUNDS = 16
"""Fewest rounds of a try: rounds bring more than starts do (docs/own_problem.md)."""


def looks_within(problem: Problem, calls: int) -> Looks:
    """All looks that so many calls of the model allow: rounds first, where there can be several, then tries."""
    if not can_give(problem):
        return Looks(starts=calls)
    tries = max(1, calls // (ROUNDS + CHECKS))
    return Looks(rounds=calls // tries - (CHECKS if tries > 1 else 0), tries=tries)


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


def can_give(problem: Problem) -> bool:
    """Whether inputs can state values that were not given at first."""
    variables, shape = problem.variables().count, problem.input_kind().shape
    return problem.give(np.zeros((0, variables, *shape), np.uint8), np.full((0, variables), UNKNOWN)) is not None


class Looker:
    """A model and instances, and the looks that it takes at some of them."""

    def __init__(self, runtime: Runtime, inputs: NDArray[Any], looks: Looks) -> None:
        """All instances (B, V, ...) that there are to look at."""
        self.runtime, self.problem, self.inputs, self.looks = runtime, runtime.problem, inputs, looks
        others = views(self.problem, len(inputs), looks.sides - 1, looks.distort)
        self.sides: list[View | None] = [None, *others]
        self.recurrences = 0
        """Of all looks so far, in as many threads as there were."""
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
        """The answers (B, V) to some instances after so many recurrences, in each round; half more in every other try.

        What a model gets wrong after so many it may get right after more, and the other way round.
        """
        answers_BV = self._answers(rows, steps)
        if self.looks.tries == 1:
            return answers_BV
        support_B = self.support(rows, answers_BV, steps)
        times_B = np.ones(len(rows), dtype=np.int64)
        for attempt in range(1, self.looks.tries):
            enough = max(LIKELY, USUAL * float(np.median(support_B)))
            left = np.flatnonzero((times_B < AGREED) | (support_B <= enough))
            if not len(left):
                break
            other_BV = self._answers(rows[left], steps + attempt % 2 * (steps // 2), attempt)
            other_B = self.support(rows[left], other_BV, steps)
            same_B = (other_BV == answers_BV[left]).all(axis=1)
            better_B = (other_B > support_B[left]) & ~same_B
            times_B[left[same_B]] += 1
            better = left[better_B]
            answers_BV[better], support_B[better], times_B[better] = other_BV[better_B], other_B[better_B], 1
        return answers_BV

    def support(self, rows: IntArray, answers_BV: IntArray, steps: int) -> FloatArray:
        """How well the model finds the values of answers (B, V) again (B,), from 0 for all of them downwards.

        One part after the other is taken back; the rest is given. The sum of the logarithms of the values' shares. What
        the inputs state is taken back as well: a wrong answer may agree with itself and with all of that but one value.
        """
        found_B, stated_BV = np.zeros(len(rows)), self.stated[rows] != UNKNOWN
        values_BV = np.where(stated_BV, self.stated[rows], answers_BV)
        place_V = stream(0, "support").permutation(answers_BV.shape[1])
        parts = [~stated_BV & (place_V % PARTS == part) for part in range(PARTS)]
        if (self.stated == UNKNOWN).any():  # else nothing shows what states no value
            parts += [stated_BV & (place_V % PARTS == part) for part in range(PARTS)]
        for hidden_BV in parts:
            inputs, taken_BV = self.inputs[rows], hidden_BV & stated_BV
            if taken_BV.any():
                inputs[taken_BV] = self.bare
            given = self.problem.give(inputs, np.where(hidden_BV, UNKNOWN, values_BV))
            assert given is not None
            share_BV = self.runtime.likelihood(self.runtime.start(given), values_BV, steps)
            self.recurrences += steps
            found_B += np.where(hidden_BV, np.log(np.maximum(share_BV, LEAST)), 0.0).sum(axis=1)
        return found_B

    def _answers(self, rows: IntArray, steps: int, attempt: int = 0) -> IntArray:
        """The answers (B, V) of one try; all but the first start with noise."""
        inputs, rounds = self.inputs[rows], self.looks.rounds
        if rounds == 1:
            return self.look(inputs, rows, [steps], attempt=attempt)[steps].answers_BV
        decided_BV = self.stated[rows]
        for number in range(rounds):
            left = np.flatnonzero((decided_BV == UNKNOWN).any(axis=1))
            if not len(left):
                break
            given = self.problem.give(inputs[left], decided_BV[left])
            assert given is not None
            value_BV, share_BV = self._likeliest(given, rows[left], steps, number, attempt)
            decided_BV[left] = _surest(value_BV, share_BV, decided_BV[left], rounds - number)
        return decided_BV

    def _likeliest(
        self, inputs: NDArray[Any], rows: IntArray, steps: int, number: int, attempt: int
    ) -> tuple[IntArray, FloatArray]:
        """The likeliest value (B, V) of each variable and how likely it is, all looks of a round taken together."""
        if self.looks.count == 1:  # nothing is to be added up: only this has to leave the device
            self.recurrences += steps
            return self.runtime.likeliest(self._begin(inputs, rows, number, attempt), steps)
        shares_BVD = self.look(inputs, rows, [steps], number, attempt)[steps].shares_BVD
        assert shares_BVD is not None
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
        self.recurrences += max(steps)
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


def _surest(value_BV: IntArray, share_BV: FloatArray, decided_BV: IntArray, parts: int) -> IntArray:
    """The decided values, and of the others the surest: one part of so many."""
    open_BV = decided_BV == UNKNOWN
    order_BV = np.argsort(np.where(open_BV, -share_BV, np.inf), axis=1, kind="stable")
    count_B1 = np.ceil(open_BV.sum(axis=1, keepdims=True) / parts)
    more_BV = np.zeros_like(open_BV)
    np.put_along_axis(more_BV, order_BV, np.arange(order_BV.shape[1]) < count_B1, axis=1)
    return np.where(more_BV, value_BV, decided_BV)
