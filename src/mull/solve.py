"""Solving: recur until the answer is verified, and say plainly what was not.

An answer counts as verified when it passes the problem's own checker, never because the model is confident. An
instance leaves its batch as soon as that happens, so easy puzzles cost little; the others go on to the step limit.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from mull import exact as exact_solver
from mull.constraints import UNKNOWN, BoolArray, IntArray
from mull.count import count_solutions
from mull.errors import InvalidInput, UserError
from mull.hub import find_model
from mull.problem import Images, Instance, Problem
from mull.runtime import Backend, FloatArray, Runtime, load_runtime

Method = Literal["recurrence", "exact", "none"]

DEFAULT_STEPS = 64
DIAGNOSIS_SECONDS = 2.0
"""How long to look for what is wrong with one puzzle; on 9x9 boards milliseconds do."""
NO_SOLUTION = "has no solution"
SEVERAL_SOLUTIONS = "has several solutions"
NO_RULES = "no rule to verify an answer by"


@dataclass(frozen=True)
class Answer:
    """What became of one puzzle."""

    puzzle: str
    solution: str | None
    """The answer, or, where `verified` is false, the model's best guess; None if there is no solution."""
    verified: bool
    """Whether the solution satisfies every constraint."""
    steps: int
    """Recurrences spent on it."""
    method: Method
    ms: float
    """Time of one core spent on it: in a batch, each recurrence's time is shared by the puzzles still in it."""
    note: str = ""
    """What else there is to say, such as "has several solutions"."""
    givens: str | None = None
    """What the model read off images as given, written like an answer; None where the puzzle says it itself."""
    values: IntArray | None = field(default=None, repr=False, compare=False)
    """The solution as values (V,)."""
    given_values: IntArray | None = field(default=None, repr=False, compare=False)
    """What was read off images as values (V,)."""


@dataclass(frozen=True)
class Puzzle:
    """A puzzle's text and where it came from, for error messages."""

    text: str
    place: str = ""


@dataclass(frozen=True)
class _Entry:
    """A puzzle on its way through the solver."""

    text: str
    instance: Instance
    seconds: float


@dataclass(frozen=True)
class _Found:
    """What the recurrence made of a puzzle."""

    entry: _Entry
    values: IntArray
    verified: bool
    steps: int
    seconds: float
    given: BoolArray | None
    """Which variables the model takes for given, where the inputs do not say that themselves."""

    def recognised(self) -> IntArray | None:
        """The givens (V,) as the model reads them."""
        return None if self.given is None else np.where(self.given, self.values, UNKNOWN)


class Solver:
    """A model with the loop around it that makes its answers trustworthy."""

    def __init__(self, runtime: Runtime, steps: int | None = None, exact: bool | None = None) -> None:
        """`exact`: True settles with CP-SAT what the model does not; None only tells why; False does neither."""
        if steps is not None and steps < 1:
            raise InvalidInput(f"the number of recurrences must be at least 1, not {steps}")
        if exact and not exact_solver.available():
            raise InvalidInput("the exact solver is not installed: install mull[exact]")
        self.runtime, self.exact = runtime, exact
        self.steps = steps or (runtime.card.steps if runtime.card else DEFAULT_STEPS)

    @property
    def problem(self) -> Problem:
        """The problem that the model was trained on."""
        return self.runtime.problem

    @overload
    def solve(self, puzzles: str) -> Answer: ...
    @overload
    def solve(self, puzzles: list[str]) -> list[Answer]: ...
    def solve(self, puzzles: str | list[str]) -> Answer | list[Answer]:
        """Solve one puzzle, or any number of them; answers come in the order of the puzzles."""
        if isinstance(puzzles, str):
            return self.remark(self._finish(self._recur([self._parse(Puzzle(puzzles))])[0]))
        return list(self.solve_many(puzzles))

    def remark(self, answer: Answer) -> Answer:
        """A verified answer with a note if it is not the only one; a puzzle alone is worth that look."""
        if not (answer.verified and self.exact is None):
            return answer
        problem, instance = self._stated(self.problem.parse(answer.puzzle), answer.given_values)
        if not problem.one_solution:
            return answer
        return replace(answer, note=SEVERAL_SOLUTIONS) if self._count(problem, instance) == 2 else answer

    def explain(self, answer: Answer) -> Answer:
        """What the exact solver makes of an answer, where it is asked for; else why the answer is not verified."""
        problem, instance = self._stated(self.problem.parse(answer.puzzle), answer.given_values)
        began = time.perf_counter()
        settled = (self._settle if self.exact else self._diagnose)(answer, problem, instance)
        return replace(settled, ms=round(answer.ms + 1000 * (time.perf_counter() - began), 3))

    def solve_many(self, puzzles: Iterable[str | Puzzle]) -> Iterator[Answer]:
        """Answers in the order of the puzzles, while they are being read: memory does not grow with their number.

        A puzzle that cannot be read raises InvalidInput, after the answers to those before it.
        """
        named = (
            puzzle if isinstance(puzzle, Puzzle) else Puzzle(puzzle, f"puzzle {number}")
            for number, puzzle in enumerate(puzzles, start=1)
        )
        for chunk in self._in_order(self._chunks(named)):
            yield from map(self._finish, chunk)

    def history(self, puzzle: str, steps: int | None = None) -> FloatArray:
        """Probabilities (S, V, D) of every value after each recurrence, solved or not."""
        state = self.runtime.start(self._parse(Puzzle(puzzle)).instance.inputs[None])
        probabilities = []
        for _ in range(steps or self.steps):
            state, logits_BVD = self.runtime.step(state)
            exponent = np.exp(logits_BVD[0] - logits_BVD[0].max(axis=-1, keepdims=True))
            probabilities.append(exponent / exponent.sum(axis=-1, keepdims=True))
        return np.stack(probabilities)

    def read(self, puzzle: str) -> tuple[Instance, IntArray]:
        """A puzzle and its givens (V,), UNKNOWN elsewhere: as it states them, or as the model reads them off images."""
        instance = self.problem.parse(puzzle)
        if not isinstance(self.problem.input_kind(), Images):
            return instance, self.problem.given_values(instance)
        recognised = self._recur([_Entry(puzzle, instance, 0.0)])[0].recognised()
        if recognised is None:
            return instance, self.problem.given_values(instance)
        return replace(instance, given=recognised != UNKNOWN), recognised

    def _parse(self, puzzle: Puzzle) -> _Entry:
        began = time.perf_counter()
        try:
            instance = self.problem.parse(puzzle.text)
            self.problem.validate(instance)
        except InvalidInput as error:
            raise InvalidInput(f"{puzzle.place}: {error}" if puzzle.place else str(error)) from error
        return _Entry(puzzle.text, instance, time.perf_counter() - began)

    def _chunks(self, puzzles: Iterator[Puzzle]) -> Iterator[list[_Entry]]:
        """Puzzles in lists of the runtime's batch size; an error comes after what was read before it."""
        chunk: list[_Entry] = []
        try:
            for puzzle in puzzles:
                chunk.append(self._parse(puzzle))
                if len(chunk) == self.runtime.batch:
                    yield chunk
                    chunk = []
        except UserError:
            if chunk:
                yield chunk
            raise
        if chunk:
            yield chunk

    def _in_order(self, chunks: Iterable[list[_Entry]]) -> Iterator[list[_Found]]:
        """Step the chunks in the runtime's workers, a few ahead of what was asked for; results keep their order."""
        waiting: deque[Future[list[_Found]]] = deque()
        failure: UserError | None = None
        executor = ThreadPoolExecutor(self.runtime.workers)
        try:
            try:
                for chunk in chunks:
                    waiting.append(executor.submit(self._recur, chunk))
                    if len(waiting) > 2 * self.runtime.workers:
                        yield waiting.popleft().result()
            except UserError as error:
                failure = error  # what was read before it is still answered
            while waiting:
                yield waiting.popleft().result()
        finally:
            executor.shutdown(wait=True, cancel_futures=True)
        if failure is not None:
            raise failure

    def _recur(self, entries: list[_Entry]) -> list[_Found]:
        """Recur on a batch until each answer is verified or the step limit is reached."""
        clock = time.perf_counter()
        inputs = np.stack([entry.instance.inputs for entry in entries])
        active, state = np.arange(len(entries)), self.runtime.start(inputs)
        found: dict[int, _Found] = {}
        spent = 0.0  # by each puzzle that is still active
        for step in range(1, self.steps + 1):
            state, logits_BVD = self.runtime.step(state)
            values = logits_BVD.argmax(axis=-1)
            solved = self.verified(inputs[active], values)
            now = time.perf_counter()
            spent, clock = spent + (now - clock) / len(active), now
            last = step == self.steps
            for row in np.flatnonzero(solved | last):
                entry = entries[active[row]]
                given = None if state.given_BV is None else state.given_BV[row]
                seconds = entry.seconds + spent
                found[int(active[row])] = _Found(entry, values[row], bool(solved[row]), step, seconds, given)
            if solved.any():
                active = active[~solved]
                if not len(active):
                    break
                state = state[np.flatnonzero(~solved)]
        return [found[place] for place in range(len(entries))]

    def verified(self, inputs: NDArray[Any], values_BV: IntArray) -> BoolArray:
        """(B,): which answers are right for certain; none of a problem that has no rule to check by."""
        if not self.problem.rules:
            return np.zeros(len(values_BV), dtype=bool)
        return self.problem.check(inputs, values_BV)

    def _stated(self, instance: Instance, recognised: IntArray | None) -> tuple[Problem, Instance]:
        """The instance for exact methods: as it stands, or with the givens that the model read."""
        return (self.problem, instance) if recognised is None else self.problem.recognised(instance, recognised)

    def _finish(self, found: _Found) -> Answer:
        """The answer, settled or explained by the exact solver where that is asked for."""
        recognised = found.recognised()
        problem, instance = self._stated(found.entry.instance, recognised)
        answer = Answer(
            puzzle=found.entry.text,
            solution=self.problem.write_answer(found.values),
            verified=found.verified,
            steps=found.steps,
            method="recurrence",
            ms=round(1000 * found.seconds, 3),
            givens=None if recognised is None else self.problem.write_answer(recognised),
            values=found.values,
            given_values=recognised,
        )
        if not self.problem.rules:
            return replace(answer, note=NO_RULES)
        if self.exact is False or (found.verified and not self.exact):
            return answer if found.verified else replace(answer, note=self._not_verified())
        began = time.perf_counter()
        settled = (self._settle if self.exact else self._diagnose)(answer, problem, instance)
        return replace(settled, ms=round(answer.ms + 1000 * (time.perf_counter() - began), 3))

    def _diagnose(self, answer: Answer, problem: Problem, instance: Instance) -> Answer:
        """Why there is no verified answer: no solution, several, or one that the model did not find."""
        number = self._count(problem, instance)
        if number == 0 and answer.givens is not None:
            return replace(answer, note=f"{self._not_verified()}; the givens as recognised have no solution")
        if number == 0:
            return replace(answer, solution=None, values=None, method="none", note=NO_SOLUTION)
        if number is None:
            note = f"{self._not_verified()}; it may have no solution" + " or several" * problem.one_solution
        elif number > 1 and problem.one_solution:
            note = SEVERAL_SOLUTIONS
        else:
            what = "exactly one solution" if problem.one_solution else "a solution"
            note = f"has {what}, which the model did not find: try --steps {4 * self.steps} or --exact"
        return replace(answer, note=note)

    def _settle(self, answer: Answer, problem: Problem, instance: Instance) -> Answer:
        """What the exact solver says: the solution where the model has none, and whether it is the only one."""
        solutions = exact_solver.solutions(problem, instance, 2)
        if not solutions and answer.givens is not None:
            return replace(answer, note="no solution has the givens as recognised")
        if not solutions:
            return replace(answer, solution=None, values=None, method="none", note=NO_SOLUTION)
        several = SEVERAL_SOLUTIONS if len(solutions) > 1 and problem.one_solution else ""
        if answer.verified:
            return replace(answer, note=several)
        values, line = solutions[0], problem.write_answer(solutions[0])
        verified = bool(problem.check(instance.inputs[None], values[None])[0])
        return replace(answer, solution=line, values=values, verified=verified, method="exact", note=several)

    def _count(self, problem: Problem, instance: Instance) -> int | None:
        """0, 1 or 2 for several; None if that cannot be told quickly."""
        try:
            return count_solutions(problem, instance, limit=2, seconds=DIAGNOSIS_SECONDS)
        except UserError:  # a constraint that is no cardinality
            return None

    def _not_verified(self) -> str:
        return f"no verified answer after {self.steps} recurrences"


def load(
    name: str | Path = "sudoku",
    backend: Backend = "auto",
    steps: int | None = None,
    exact: bool | None = None,
    device: str | None = None,
) -> Solver:
    """A solver with a model that ships with mull, or from a model file: `mull.load("sudoku").solve("53..7....…")`."""
    return Solver(load_runtime(find_model(name), backend, device), steps, exact)
