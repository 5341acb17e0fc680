"""Solving: recur until the answer is verified, and say plainly what was not.

An answer counts as verified when it passes the problem's own checker, never because the model is confident. An
instance leaves its batch as soon as that happens, so easy puzzles cost little; the others go on to the step limit.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from mull import exact as exact_solver
from mull.constraints import UNKNOWN, BoolArray, IntArray
from mull.count import count_solutions
from mull.errors import InvalidInput, UserError
from mull.hub import find_model
from mull.pool import Found, recur, results
from mull.problem import Images, Instance, Problem
from mull.runtime import Backend, FloatArray, Precision, Runtime, load_runtime, softmax
from mull.search import Check, Search

Method = Literal["recurrence", "search", "exact", "none"]
Value = TypeVar("Value")
Result = TypeVar("Result")

DEFAULT_STEPS = 64
DIAGNOSIS_SECONDS = 2.0
"""How long to look for what is wrong with one puzzle; on 9x9 boards milliseconds do."""
PROOF_SECONDS = 0.1
"""How long to count solutions before CP-SAT is asked whether an answer is the only one."""
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


def recognised_givens(found: Found) -> IntArray | None:
    """The givens (V,) as the model reads them off images, UNKNOWN elsewhere; None where the inputs state them."""
    return None if found.given is None else np.where(found.given, found.values, UNKNOWN)


class Solver:
    """A model with the loop around it that makes its answers trustworthy."""

    exact_seconds: float | None = None
    """How long the exact solver may look for one answer; UndecidedError if it does not know by then."""

    def __init__(
        self,
        runtime: Runtime,
        steps: int | None = None,
        exact: bool | None = None,
        search: int = 0,
        hints: bool = False,
    ) -> None:
        """`exact`: True settles with CP-SAT what the model does not; None only tells why; False does neither.

        `search`: how often the model may try again with values assumed, where its recurrences end without an answer.
        `hints`: whether CP-SAT tries the model's most likely values first, which was not measured to help.
        """
        if search < 0:
            raise InvalidInput(f"search takes 0 model calls or more, not {search}")
        if steps is not None and steps < 1:
            raise InvalidInput(f"the number of recurrences must be at least 1, not {steps}")
        if exact and not exact_solver.available():
            raise InvalidInput("the exact solver is not installed: install mull[exact]")
        self.runtime, self.exact, self.search, self.hints = runtime, exact, search, hints
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
            (entry,) = self._entries(iter([Puzzle(puzzles)]))
            return self.remark(self._finish(entry, self._recur(entry)))
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
        waiting: deque[_Entry] = deque()

        def inputs() -> Iterator[NDArray[Any]]:
            for entry in self._entries(named):
                waiting.append(entry)
                yield entry.instance.inputs

        total = len(puzzles) if isinstance(puzzles, Sized) else None
        for found in results(self.runtime, self.steps, self.verified, inputs(), total):
            yield self._finish(waiting.popleft(), found)

    def history(self, puzzle: str, steps: int | None = None) -> FloatArray:
        """Probabilities (S, V, D) of every value after each recurrence, solved or not."""
        (entry,) = self._entries(iter([Puzzle(puzzle)]))
        state = self.runtime.start(entry.instance.inputs[None])
        probabilities = []
        for _ in range(steps or self.steps):
            state, logits_BVD = self.runtime.step(state)
            probabilities.append(softmax(logits_BVD[0]))
        return np.stack(probabilities)

    def read(self, puzzle: str) -> tuple[Instance, IntArray]:
        """A puzzle and its givens (V,), UNKNOWN elsewhere: as it states them, or as the model reads them off images."""
        instance = self.problem.parse(puzzle)
        if not isinstance(self.problem.input_kind(), Images):
            return instance, self.problem.given_values(instance)
        recognised = recognised_givens(self._recur(_Entry(puzzle, instance, 0.0)))
        if recognised is None:
            return instance, self.problem.given_values(instance)
        return replace(instance, given=recognised != UNKNOWN), recognised

    def _entries(self, puzzles: Iterator[Puzzle]) -> Iterator[_Entry]:
        """Puzzles, read and validated a batch at a time; an error comes after what was read before it."""
        failure: UserError | None = None
        while failure is None:
            began, entries = time.perf_counter(), list[tuple[Puzzle, Instance]]()
            try:
                for puzzle in islice(puzzles, self.runtime.batch):
                    entries.append((puzzle, self._checked(puzzle, self.problem.parse, puzzle.text)))
            except UserError as error:
                failure = error
            contradictory = self._contradictory([instance for _, instance in entries])
            seconds = (time.perf_counter() - began) / max(len(entries), 1)
            for (puzzle, instance), wrong in zip(entries, contradictory, strict=True):
                if wrong:
                    self._checked(puzzle, self.problem.validate, instance)
                yield _Entry(puzzle.text, instance, seconds)
            if len(entries) < self.runtime.batch:
                break
        if failure is not None:
            raise failure

    def _contradictory(self, instances: list[Instance]) -> BoolArray:
        """(B,): which instances contradict themselves."""
        broken = np.zeros(len(instances), dtype=bool)
        if not instances:
            return broken
        values_BV = np.stack([self.problem.given_values(instance) for instance in instances])
        inputs = np.stack([instance.inputs for instance in instances])
        for rule in self.problem.rules:
            broken |= rule.violations(values_BV, inputs).any(axis=1)
        return broken

    def _checked(self, puzzle: Puzzle, call: Callable[[Value], Result], value: Value) -> Result:
        """What the call returns; what it says of wrong input names the puzzle's place."""
        try:
            return call(value)
        except InvalidInput as error:
            raise InvalidInput(f"{puzzle.place}: {error}" if puzzle.place else str(error)) from error

    def _recur(self, entry: _Entry) -> Found:
        return recur(self.runtime, self.steps, self.verified, entry.instance.inputs)

    def verified(self, inputs: NDArray[Any], values_BV: IntArray) -> BoolArray:
        """(B,): which answers are right for certain; none of a problem that has no rule to check by."""
        if not self.problem.rules:
            return np.zeros(len(values_BV), dtype=bool)
        return self.problem.check(inputs, values_BV)

    def _stated(self, instance: Instance, recognised: IntArray | None) -> tuple[Problem, Instance]:
        """The instance for exact methods: as it stands, or with the givens that the model read."""
        return (self.problem, instance) if recognised is None else self.problem.recognised(instance, recognised)

    def _finish(self, entry: _Entry, found: Found) -> Answer:
        """The answer, settled or explained by the exact solver where that is asked for."""
        recognised = recognised_givens(found)
        problem, instance = self._stated(entry.instance, recognised)
        answer = Answer(
            puzzle=entry.text,
            solution=self.problem.write_answer(found.values),
            verified=found.verified,
            steps=found.steps,
            method="recurrence",
            ms=round(1000 * (entry.seconds + found.seconds), 3),
            givens=None if recognised is None else self.problem.write_answer(recognised),
            values=found.values,
            given_values=recognised,
        )
        if not self.problem.rules:
            return replace(self._looked(answer, entry.instance) if self.search else answer, note=NO_RULES)
        if self.search and not found.verified:
            answer = self.searched(answer, entry.instance)
            found = replace(found, verified=answer.verified)
        if self.exact is False or (found.verified and not self.exact):
            return answer if found.verified else replace(answer, note=self._not_verified())
        began = time.perf_counter()
        settled = (self._settle if self.exact else self._diagnose)(answer, problem, instance)
        return replace(settled, ms=round(answer.ms + 1000 * (time.perf_counter() - began), 3))

    def searched(self, answer: Answer, instance: Instance, check: Check | None = None) -> Answer:
        """The answer that a search finds, or the one there is; either way with the recurrences that it took.

        `check` is called instead of `verified` after each recurrence, and may raise to end the search.
        """
        began = time.perf_counter()
        result = Search(self.runtime, check or self.verified, self.search).run(instance)
        ms = round(answer.ms + 1000 * (time.perf_counter() - began), 3)
        answer = replace(answer, steps=answer.steps + result.steps, ms=ms)
        if result.values is None:
            return answer
        solution = self.problem.write_answer(result.values)
        answer = replace(answer, solution=solution, values=result.values, verified=True, method="search")
        if answer.given_values is None:
            return answer
        given_values = np.where(answer.given_values == UNKNOWN, UNKNOWN, result.values)  # as read this time
        return replace(answer, given_values=given_values, givens=self.problem.write_answer(given_values))

    def _looked(self, answer: Answer, instance: Instance) -> Answer:
        """What the model is surest of in several looks, where no rule tells a right answer from a wrong one."""
        from mull.looks import looks_within  # here, since hardly anybody needs it
        from mull.predict import Looker

        began = time.perf_counter()
        looker = Looker(self.runtime, instance.inputs[None], looks_within(self.problem, self.search))
        (values,) = looker.answers(np.zeros(1, dtype=np.int64), self.steps)
        ms = round(answer.ms + 1000 * (time.perf_counter() - began), 3)
        steps, solution = answer.steps + looker.recurrences, self.problem.write_answer(values)
        return replace(answer, solution=solution, values=values, steps=steps, method="search", ms=ms)

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
            note = f"has {what}, which the model did not find: try --search 100 or --exact"
        return replace(answer, note=note)

    def _settle(self, answer: Answer, problem: Problem, instance: Instance) -> Answer:
        """What the exact solver says: the solution where the model has none, and whether it is the only one."""
        if answer.verified:
            return replace(answer, note="" if self._only(answer, problem, instance) else SEVERAL_SOLUTIONS)
        hint = answer.values if self.hints else None
        limit = 2 if problem.one_solution else 1
        solutions = exact_solver.solutions(problem, instance, limit, self.exact_seconds, hint=hint)
        if not solutions and answer.givens is not None:
            return replace(answer, note="no solution has the givens as recognised")
        if not solutions:
            return replace(answer, solution=None, values=None, method="none", note=NO_SOLUTION)
        several = SEVERAL_SOLUTIONS if len(solutions) > 1 else ""
        values, line = solutions[0], problem.write_answer(solutions[0])
        verified = bool(problem.check(instance.inputs[None], values[None])[0])
        return replace(answer, solution=line, values=values, verified=verified, method="exact", note=several)

    def _only(self, answer: Answer, problem: Problem, instance: Instance) -> bool:
        """Whether a verified answer is the only one, where that is asked for: by counting, or by CP-SAT."""
        if not problem.one_solution:
            return True
        number = self._count(problem, instance, PROOF_SECONDS)
        if number is None:
            number = len(exact_solver.solutions(problem, instance, 2, self.exact_seconds, known=answer.values))
        return number == 1

    def _count(self, problem: Problem, instance: Instance, seconds: float = DIAGNOSIS_SECONDS) -> int | None:
        """0, 1 or 2 for several; None if that cannot be told quickly."""
        try:
            return count_solutions(problem, instance, limit=2, seconds=seconds)
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
    precision: Precision = "auto",
    search: int = 0,
    hints: bool = False,
) -> Solver:
    """A solver with a model that ships with mull, or from a model file: `mull.load("sudoku").solve("53..7....…")`.

    `precision`: fp32, int8, or auto, which is int8 where it is faster and was measured to lose nothing.
    """
    return Solver(load_runtime(find_model(name), backend, device, precision), steps, exact, search, hints)
