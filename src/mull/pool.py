"""Recurring on a stream of instances: pools of slots that solved instances leave and new ones enter.

Each worker thread has a pool of its own. After every recurrence, whoever is verified or out of steps leaves its slot,
and the next instance takes it over in place: the batch stays full, and no recurrence is spent on what is solved.
Results come in the order of the instances; how far reading may run ahead of them is bounded.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from threading import Condition, Thread
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from mull.constraints import BoolArray, IntArray
from mull.errors import UserError
from mull.runtime import Runtime, State

Check = Callable[[NDArray[Any], IntArray], BoolArray]
"""Which answers (B, V) to inputs (B, V, ...) are right for certain: (B,)."""

AHEAD = 8
"""Instances that may be under way, in pools. A puzzle that takes all 64 steps holds up those behind it for as long as
others take to pass eight to a slot, so results must wait for one another that far, or slots stay empty."""

EASY = 8
"""Recurrences that an instance takes until it is verified, more or less."""

GROUP = 4
"""Batches that are read before a device gets them: between two groups it waits for the slowest of the first."""


@dataclass(frozen=True)
class Found:
    """What the recurrence made of an instance."""

    values: IntArray
    verified: bool
    steps: int
    seconds: float
    """Its share of the time of every recurrence that it took part in."""
    given: BoolArray | None
    """Which variables the model takes for given, where the inputs do not say that themselves."""


class Pool:
    """Slots of one batch, stepped together by one thread."""

    def __init__(self, runtime: Runtime, steps: int, check: Check) -> None:
        """An empty pool, for instances that recur `steps` times at most."""
        self.runtime, self.steps, self.check = runtime, steps, check
        self._state: State | None = None
        self._about = State(())  # number, inputs, recurrences so far, and `_spent` on entering, of each slot
        self._leaving: IntArray = np.zeros(0, dtype=np.int64)
        self._spent, self._clock = 0.0, 0.0

    def __len__(self) -> int:
        """Instances that still recur."""
        return 0 if self._state is None else len(self._state) - len(self._leaving)

    def enter(self, new: list[tuple[int, NDArray[Any]]]) -> None:
        """Take in new instances, a number and the inputs of each: first into the slots of those that left."""
        if not len(self):
            self._state, self._clock = None, time.perf_counter()
        if new:
            numbers, inputs = np.array([number for number, _ in new]), np.stack([inputs for _, inputs in new])
            started = self.runtime.start(inputs)
            about = State((numbers, inputs, np.zeros(len(new), dtype=np.int64), np.full(len(new), self._spent)))
        elif self._state is not None and len(self._leaving):
            started, about = self._state[:0], self._about[:0]
        else:
            return
        if self._state is None:
            self._state, self._about = started, about
        else:
            self._state = self.runtime.fill(self._state, self._leaving, started)
            self._about = self._about.fill(self._leaving, about)
        self._leaving = self._leaving[:0]

    def step(self) -> dict[int, Found]:
        """One recurrence of all: those that are done, by number. They leave when others enter."""
        assert self._state is not None
        self._state, logits_BVD = self.runtime.step(self._state)
        values_BV = logits_BVD.argmax(axis=-1)
        number_B, inputs, age_B, since_B = self._about.tensors
        solved_B = self.check(inputs, values_BV)
        now = time.perf_counter()
        self._spent, self._clock = self._spent + (now - self._clock) / len(self), now
        age_B += 1
        self._leaving = np.flatnonzero(solved_B | (age_B >= self.steps))
        given_BV = self._state.given_BV
        return {
            int(number_B[row]): Found(
                values=values_BV[row].copy(),
                verified=bool(solved_B[row]),
                steps=int(age_B[row]),
                seconds=float(self._spent - since_B[row]),
                given=None if given_BV is None else given_BV[row].copy(),
            )
            for row in self._leaving
        }


def recur(runtime: Runtime, steps: int, check: Check, inputs: NDArray[Any]) -> Found:
    """One instance, recurred on by this thread until its answer passes the check, or for `steps` recurrences."""
    pool = Pool(runtime, steps, check)
    pool.enter([(0, inputs)])
    while not (found := pool.step()):
        pass
    return found[0]


@final
class Crew:
    """As many pools as the runtime has workers, each with a thread, and the line of instances that they share."""

    def __init__(self, runtime: Runtime, steps: int, check: Check) -> None:
        """No thread runs before `results` is asked for some."""
        self.runtime, self.steps, self.check = runtime, steps, check
        self._size = runtime.batch * runtime.workers
        self._changed = Condition()
        self._waiting: deque[tuple[int, NDArray[Any]]] = deque()
        self._found: dict[int, Found] = {}
        self._ended = False  # no more instances will wait
        self._stopped = False  # nobody wants the results
        self._error: BaseException | None = None

    def results(self, instances: Iterator[NDArray[Any]]) -> Iterator[Found]:
        """What becomes of each instance, in order; an error of the iterator comes after what was read before it.

        The calling thread reads instances, a few ahead of what it is asked for, while the others step.
        """
        threads = [Thread(target=self._work, daemon=True) for _ in range(self.runtime.workers)]
        for thread in threads:
            thread.start()
        try:
            yield from self._in_order(instances)
        finally:
            with self._changed:
                self._ended = self._stopped = True
                self._changed.notify_all()
            for thread in threads:
                thread.join()

    def _in_order(self, instances: Iterator[NDArray[Any]]) -> Iterator[Found]:
        read = given = 0
        failure: UserError | None = None

        def wanted() -> bool:
            """Whether more should be read."""
            return not self._ended and len(self._waiting) < self._size and read < given + AHEAD * self._size

        while True:
            with self._changed:
                over = self._ended and given == read
                self._changed.wait_for(lambda: over or given in self._found or self._error or wanted())  # noqa: B023
                if self._error is not None:
                    raise self._error
                if over:
                    break
                found, more = self._found.pop(given, None), wanted()
            if more:
                group, failure = _read(instances, self.runtime.batch)
                with self._changed:
                    self._waiting.extend(enumerate(group, start=read))
                    self._ended = failure is not None or len(group) < self.runtime.batch
                    self._changed.notify_all()
                read += len(group)
            if found is not None:
                given += 1
                yield found
        if failure is not None:
            raise failure

    def _work(self) -> None:
        """What a thread does: step its pool, and let others enter, until nobody waits any more."""
        pool = Pool(self.runtime, self.steps, self.check)
        try:
            while (new := self._take(pool)) or len(pool):
                pool.enter(new)
                found = pool.step()
                if found or self._stopped:
                    with self._changed:
                        if self._stopped:
                            return
                        self._found.update(found)
                        self._changed.notify_all()
        except BaseException as error:
            with self._changed:
                self._error = error
                self._changed.notify_all()

    def _take(self, pool: Pool) -> list[tuple[int, NDArray[Any]]]:
        """Instances for a pool's free slots, and no more than its fair share of those that wait."""
        with self._changed:
            if not len(pool):
                self._changed.wait_for(lambda: self._waiting or self._ended)
            count = min(self.runtime.batch - len(pool), -(-len(self._waiting) // self.runtime.workers))
            new = [self._waiting.popleft() for _ in range(count)]
            if new:
                self._changed.notify_all()
            return new


def results(
    runtime: Runtime, steps: int, check: Check, instances: Iterator[NDArray[Any]], total: int | None = None
) -> Iterator[Found]:
    """What becomes of each instance, in order: by pools, or, where the runtime can, on its device in large groups.

    `total`: how many instances there will be, if that is known.
    """
    solve = runtime.adaptive(steps)
    if solve is None:
        yield from _by_pools(runtime, steps, check, instances, total)
        return
    count, failure = GROUP * runtime.batch, None
    group: list[NDArray[Any]] = [np.zeros(0)] * count
    while failure is None and len(group) == count:
        group, failure = _read(instances, count)
        if not group:
            break
        began = time.perf_counter()
        outcome = solve(np.stack(group))
        share = (time.perf_counter() - began) / len(group)
        for values, verified, taken in zip(outcome.values_CV, outcome.verified_C, outcome.steps_C, strict=True):
            yield Found(values, bool(verified), int(taken), share, None)
    if failure is not None:
        raise failure


def _by_pools(
    runtime: Runtime, steps: int, check: Check, instances: Iterator[NDArray[Any]], total: int | None
) -> Iterator[Found]:
    """By a crew; where so many instances come that it pays, those after the first of them, or all, by `for_many`."""
    many = runtime.many()
    few = None if many is None else -(-many // min(EASY, steps))
    if few is not None and total is None:
        yield from Crew(runtime, steps, check).results(islice(instances, few))
        after = list(islice(instances, 1))
        if not after:
            return
        instances = chain(after, instances)
    if few is not None and (total is None or total >= few):
        runtime = runtime.for_many()
    yield from Crew(runtime, steps, check).results(instances)


def _read(instances: Iterator[NDArray[Any]], count: int) -> tuple[list[NDArray[Any]], UserError | None]:
    """The next instances, and what went wrong with the one after them."""
    group: list[NDArray[Any]] = []
    try:
        for inputs in islice(instances, count):
            group.append(inputs)
    except UserError as error:
        return group, error
    return group, None
