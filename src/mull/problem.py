"""What a problem is. Read this first.

A problem states its variables, its inputs and its constraints once, as data; the checker, the losses, the graph, the
exact solver's model and the markings on a page all come from that one statement. Work through `problems/sudoku.py`
for an example, and copy `problems/TEMPLATE.py` to add a problem of your own.

Shapes: B batch, V variable, D value (a variable's domain is 0..D-1).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from importlib import import_module
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from mull.constraints import UNKNOWN, BoolArray, Constraint, IntArray, instance_bounds
from mull.errors import InvalidInput
from mull.picture import FloatArray, Picture, board, repeated


@dataclass(frozen=True)
class Variables:
    """The logical variables, laid out in a shape, all with the same number of values."""

    shape: tuple[int, ...]
    values: int

    @property
    def count(self) -> int:
        """Number of variables (V)."""
        return int(np.prod(self.shape))

    @property
    def index(self) -> IntArray:
        """Variable numbers in the layout's shape."""
        return np.arange(self.count).reshape(self.shape)


@dataclass(frozen=True)
class Tokens:
    """Each variable's input is one symbol of a vocabulary."""

    vocabulary: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one variable's input."""
        return ()


@dataclass(frozen=True)
class Hints:
    """Each variable's input is a vector of whole numbers from 0 on."""

    width: int
    largest: int
    """The largest number."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one variable's input."""
        return (self.width,)


@dataclass(frozen=True)
class Images:
    """Each variable's input is one grey image: uint8, light ink on a dark ground."""

    height: int
    width: int
    mean: float = 0.0
    """Of the pixels, on a scale from 0 to 1; the model sees them with mean 0 and deviation 1."""
    deviation: float = 1.0
    givens: bool = False
    """Whether some images show a value that is given, and others none: the model then tells which do."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one variable's input."""
        return (self.height, self.width)


InputKind = Tokens | Hints | Images


@dataclass(frozen=True)
class Symmetries:
    """Changes that turn an instance into another valid one, as tables: knowledge that only some recipes use.

    A random symmetry composes one permutation drawn from each table and, where values are interchangeable, a random
    relabelling of them.
    """

    permutations: tuple[IntArray, ...]
    """Tables (k, V): row `p` moves what stands at variable `p[i]` to variable `i`."""
    value_tokens: IntArray | None = None
    """(D,) input token of each value, if values may be relabelled; None if they may not."""


@dataclass(frozen=True)
class Instance:
    """One instance: inputs (V, ...), and, where known, the solution (V,) and which variables are given (V,)."""

    inputs: NDArray[Any]
    given: BoolArray
    solution: IntArray | None = None


Array = TypeVar("Array")
Other = TypeVar("Other")


@dataclass(frozen=True)
class Batch(Generic[Array]):
    """Many instances as arrays (numpy) or tensors (torch) with a leading batch axis."""

    inputs: Array
    """(B, V, ...) in the problem's input kind."""
    solution: Array
    """(B, V) values; only meaningful where `labelled`."""
    given: Array
    """(B, V) true where the variable's value is part of the input."""
    labelled: Array
    """(B, V) true where the solution may be used as a label."""
    bounds: Array | None = None
    """(B, 2, G) lower and upper bounds of the groups of atoms where they depend on the instance; see `with_bounds`."""

    def __len__(self) -> int:
        return len(self.inputs)  # type: ignore[arg-type]

    def __getitem__(self, rows: Any) -> Batch[Array]:
        return self.map(lambda array: array[rows])  # type: ignore[index]

    def arrays(self) -> dict[str, Array]:
        """The arrays that are there, by name."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: array for name, array in found.items() if array is not None}

    def map(self, change: Callable[[Array], Other]) -> Batch[Other]:
        """The batch with every array changed."""
        return Batch(**{name: change(array) for name, array in self.arrays().items()})


NumpyBatch = Batch[NDArray[Any]]


def stack(instances: list[Instance]) -> NumpyBatch:
    """Instances with solutions as one batch, every variable labelled."""
    solutions = [instance.solution for instance in instances]
    if any(solution is None for solution in solutions):
        raise ValueError("every instance needs a solution to become part of a batch")
    given = np.stack([instance.given for instance in instances])
    return Batch(
        inputs=np.stack([instance.inputs for instance in instances]),
        solution=np.stack([s for s in solutions if s is not None]),
        given=given,
        labelled=np.ones_like(given),
    )


def with_bounds(problem: Problem, batch: NumpyBatch) -> NumpyBatch:
    """The batch with the bounds that its instances set, which constraint losses read: made once, for a data set."""
    return replace(batch, bounds=instance_bounds(problem.rules, batch.inputs))


class Problem(ABC):
    """A family of constraint satisfaction problems over fixed variables; subclasses are frozen dataclasses."""

    one_solution: bool = True
    """Whether a proper instance has exactly one solution, so that having several is worth a remark."""
    text_format: ClassVar[str] = ""
    """How `parse` wants a puzzle, and `write_answer` writes an answer, for the help of commands."""

    @property
    @abstractmethod
    def name(self) -> str:
        """How commands and files call it."""

    @abstractmethod
    def variables(self) -> Variables:
        """The logical variables."""

    @abstractmethod
    def input_kind(self) -> InputKind:
        """What the model sees of each variable."""

    @abstractmethod
    def constraints(self) -> tuple[Constraint, ...]:
        """What every answer must satisfy, the givens included."""

    @abstractmethod
    def generate(self, rng: np.random.Generator) -> Instance:
        """A random instance with its solution."""

    @staticmethod
    def from_cpmpy(
        model: Any,
        variables: Any,
        name: str,
        givens: tuple[int, int] | None = None,
        one_solution: bool = True,
    ) -> Problem:
        """The problem that a CPMpy model states over an array of variables: see `problems/stated.py`."""
        stated = import_module("mull.problems.stated_compile")  # by name: it stands below this file, and needs CPMpy
        problem: Problem = stated.from_cpmpy(model, variables, name, givens, one_solution)
        return problem

    def part(self, split: str) -> Problem:
        """The problem that a split's instances are generated from, where splits differ in more than their draws."""
        return self

    @abstractmethod
    def parse(self, text: str) -> Instance:
        """An instance from one line of text; raises InvalidInput with what is wrong."""

    @abstractmethod
    def write(self, instance: Instance) -> str:
        """The line that `parse` reads."""

    @abstractmethod
    def write_answer(self, values: IntArray) -> str:
        """An answer (V,) as one line."""

    @abstractmethod
    def render(self, values: IntArray, given: BoolArray | None = None) -> str:
        """A (partial) answer (V,) as a drawing in text; given variables stand out where asked for."""

    def parse_answer(self, text: str) -> IntArray:
        """The answer (V,) that `write_answer` wrote; as it stands, for problems that write answers like puzzles."""
        return self.given_values(self.parse(text))

    def draw(self, instance: Instance, values: IntArray, styled: bool = False) -> str:
        """A (partial) answer (V,) with all that there is to see of its instance; givens stand out where `styled`."""
        return self.render(values, instance.given if styled else None)

    def picture(
        self,
        instance: Instance,
        values: IntArray,
        sure: FloatArray | None = None,
        wrong: BoolArray | None = None,
    ) -> Picture:
        """A (partial) answer (V,) as marks to draw; as it stands, for problems whose variables form a board.

        `sure` (V,) is the model's probability of each value, `wrong` (V,) what to point out: if not given, what breaks
        a rule. `write_answer` of a single value is how a cell shows it.
        """
        variables, stated = self.variables(), self.given_values(instance)
        if len(variables.shape) != 2:
            raise InvalidInput(f"{self.name} cannot be drawn: it is no board and has no picture of its own")
        height, width = variables.shape
        known = stated != UNKNOWN
        if wrong is None:
            broken = [scope for _, scope in self.conflicts(instance.inputs, values)]
            wrong = np.where(known, values != stated, repeated(broken, values))
        return board(
            (height, width),
            [self.write_answer(np.array([value])) for value in range(variables.values)],
            values,
            instance.given,
            None if sure is None else np.where(known, 1.0, sure),
            wrong,
            [scope for rule in self.rules for scope in rule.scopes()],
            instance.inputs if isinstance(self.input_kind(), Images) else None,
        )

    def symmetries(self) -> Symmetries | None:
        """Symmetries for data augmentation, if the problem has any."""
        return None

    def canonical(self, instance: Instance) -> bytes:
        """A key that all instances of one symmetry class share; splits keep classes whole."""
        return np.ascontiguousarray(instance.inputs).tobytes()

    def given_values(self, instance: Instance) -> IntArray:
        """The values (V,) that the inputs state outright, UNKNOWN elsewhere."""
        return np.full(self.variables().count, UNKNOWN)

    def give(self, inputs: NDArray[Any], values_BV: IntArray) -> NDArray[Any] | None:
        """Inputs (B, V, ...) that state these values besides, UNKNOWN ones left out; what they state already stays.

        None where inputs cannot state values.
        """
        return None

    def assume(self, instance: Instance, variable: int, value: int) -> Instance | None:
        """The instance with one more value given, as search assumes it; None where inputs cannot state values."""
        values = np.full(self.variables().count, UNKNOWN)
        values[variable] = value
        inputs = self.give(instance.inputs[None], values[None])
        return None if inputs is None else replace(instance, inputs=inputs[0], given=instance.given | (values >= 0))

    def recognised(self, instance: Instance, values: IntArray) -> tuple[Problem, Instance]:
        """The problem in which these values (V,), UNKNOWN elsewhere, are given: a model reads them from images."""
        return self, instance

    @cached_property
    def rules(self) -> tuple[Constraint, ...]:
        """The constraints, made once: what everything derived from them reads."""
        return self.constraints()

    def check(self, inputs: NDArray[Any], values_BV: IntArray) -> BoolArray:
        """(B,): which complete answers satisfy every constraint. This, never the model, says "verified"."""
        domain = self.variables().values
        ok: BoolArray = np.all((values_BV >= 0) & (values_BV < domain), axis=1)
        for constraint in self.rules:
            rows = np.flatnonzero(ok)  # most answers on the way break the first rule, and need no second look
            if not len(rows):
                break
            ok[rows] = ~constraint.violations(values_BV[rows], inputs[rows]).any(axis=1)
        return ok

    def right(self, batch: NumpyBatch, answers_BV: IntArray) -> BoolArray:
        """(B,): which answers count as right: those that equal the label, unless a problem has several right ones."""
        return np.asarray((answers_BV == batch.solution).all(axis=1), dtype=bool)

    def metrics(self, batch: NumpyBatch, answers_BV: IntArray) -> dict[str, float]:
        """Accuracies of the problem's own, besides those that every problem has."""
        return {}

    def conflicts(self, inputs: NDArray[Any], values: IntArray) -> list[tuple[str, IntArray]]:
        """The groups that a (partial) answer (V,) breaks for good: what each demands, and its variables."""
        found = []
        for constraint in self.rules:
            broken = constraint.violations(values[None], inputs[None])[0]
            if broken.any():
                scopes = constraint.scopes()
                found += [(constraint.label(int(group)), scopes[group]) for group in np.flatnonzero(broken)]
        return found

    def validate(self, instance: Instance) -> None:
        """Raise InvalidInput if the given values already contradict the constraints."""
        conflicts = self.conflicts(instance.inputs, self.given_values(instance))
        if conflicts:
            raise InvalidInput(f"the givens contradict each other: they break {conflicts[0][0]!r}")

    def adjacency(self) -> BoolArray:
        """(V, V): which variables share a constraint."""
        count = self.variables().count
        adjacent = np.eye(count, dtype=bool)
        for constraint in self.rules:
            adjacent |= constraint.adjacency(count)
        return adjacent
