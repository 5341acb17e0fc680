"""A problem that its user stated: as data, so that a model file holds all of it and no code is run to read it.

`Problem.from_cpmpy` makes one from a CPMpy model (`stated_compile.py`). Two cells that differ, and their sum of at most
one, over the values 0..2, are groups of atoms (variable * 3 + value) with bounds:

    >>> differ = tuple(Group("a != b", (value, 3 + value), 0, 1) for value in range(3))
    >>> budget = Group("a + b <= 1", (1, 2, 4, 5), 0, 1, weights=(1, 2, 1, 2), learned=False)
    >>> problem = Stated("pair", shape=(2,), values=3, groups=(*differ, budget))
    >>> problem.check(problem.parse("..").inputs[None], np.array([[0, 1]]))
    array([ True])
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mull.constraints import BoolArray, Cardinality, Constraint, IntArray, Weighted, fixed_values
from mull.errors import InvalidInput
from mull.problem import Instance, NumpyBatch, Problem, Tokens, Variables
from mull.problems.cells import draw_cells, read_cells, write_cells

if TYPE_CHECKING:
    from mull.problems.stated_search import Search

MOST_VALUES = 255
MOST_ATOMS = 1_000_000


@dataclass(frozen=True)
class Group:
    """lower <= number (or sum of the weights) of the true atoms <= upper."""

    label: str
    """What it demands, in the words of its statement."""
    atoms: tuple[int, ...]
    lower: int
    upper: int
    weights: tuple[int, ...] = ()
    """What each atom counts; empty if each counts one."""
    learned: bool = True
    """Whether it is a cardinality for the losses; else it is only checked."""


@dataclass(frozen=True)
class Stated(Problem):
    """What the user of a model stated: groups of atoms with bounds over variables with common values."""

    text_format: ClassVar[str] = (
        "a digit a cell, . for an empty one; with values below 0 or above 9: numbers with spaces between them. "
        "Answers alike."
    )

    title: str
    shape: tuple[int, ...]
    values: int
    first: int = 0
    """The least value; the others follow it."""
    groups: tuple[Group, ...] = ()
    givens: tuple[int, int] | None = None
    """Fewest and most givens of generated instances; about half of the variables if not set."""
    one_solution: bool = True
    """Whether generated instances have exactly one solution; else any answer that satisfies the rules is right."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", tuple(map(_group, self.groups)))  # a file has them as objects of JSON
        object.__setattr__(self, "shape", tuple(self.shape))
        if not isinstance(self.title, str) or not re.fullmatch(r"[A-Za-z0-9][\w.-]{0,63}", self.title, re.ASCII):
            raise InvalidInput(f"a problem's name is letters, digits, - and _, not {self.title!r}")
        if not _whole(*self.shape, self.values, self.first) or not self.shape or min(self.shape) < 1:
            raise InvalidInput(f"{self.title}: a problem needs at least one variable, not the shape {self.shape}")
        if not 1 <= self.values <= MOST_VALUES:
            raise InvalidInput(f"{self.title}: a variable has 1 to {MOST_VALUES} values, not {self.values}")
        atoms = int(np.prod(self.shape, dtype=object)) * self.values
        if atoms > MOST_ATOMS:
            raise InvalidInput(f"{self.title}: {atoms:,} atoms are more than {MOST_ATOMS:,}")
        for group in self.groups:
            _check_group(group, atoms)
        low, high = self.range_of_givens
        if not (_whole(low, high) and 0 <= low <= high <= atoms // self.values):
            raise InvalidInput(f"{self.title}: there are no {low} to {high} givens of {atoms // self.values} variables")

    @property
    def name(self) -> str:
        return self.title

    @property
    def last(self) -> int:
        """The greatest value."""
        return self.first + self.values - 1

    @property
    def range_of_givens(self) -> tuple[int, int]:
        """Fewest and most givens of generated instances."""
        count = int(np.prod(self.shape, dtype=object))
        return self.givens or (2 * count // 5, -(-3 * count // 5))

    def variables(self) -> Variables:
        return Variables(self.shape, self.values)

    def canonical(self, instance: Instance) -> bytes:
        """The solution, where there is only one: no two splits share a solved board, however much of it is given."""
        if self.one_solution and instance.solution is not None:
            return instance.solution.astype(np.int16).tobytes()
        return super().canonical(instance)

    def input_kind(self) -> Tokens:
        return Tokens(vocabulary=self.values + 1)

    def constraints(self) -> tuple[Constraint, ...]:
        made: list[Constraint] = []
        learned = sorted((group for group in self.groups if group.learned), key=_bounds)
        for (lower, upper), same in groupby(learned, _bounds):
            members = list(same)
            atoms = _filled([group.atoms for group in members])
            made.append(Cardinality(self.values, atoms, lower, upper, labels=tuple(group.label for group in members)))
        checked = [group for group in self.groups if not group.learned]
        if checked:
            made.append(self._weighted(checked))
        count = self.variables().count
        return (*made, fixed_values(count, self.values, lambda tokens: tokens.astype(np.int64) - 1))

    def _weighted(self, groups: list[Group]) -> Weighted:
        """Groups by variable: what each value of a variable weighs in each."""
        scopes = [sorted({atom // self.values for atom in group.atoms}) for group in groups]
        scope_GS = _filled(scopes)
        weights_GSD = np.zeros((*scope_GS.shape, self.values), dtype=np.int64)
        for number, group in enumerate(groups):
            places = np.searchsorted(scopes[number], np.array(group.atoms) // self.values)
            weights_GSD[number, places, np.array(group.atoms) % self.values] = group.weights or 1
        lower_G, upper_G = (np.array([getattr(group, side) for group in groups]) for side in ("lower", "upper"))
        return Weighted(scope_GS, weights_GSD, lower_G, upper_G, tuple(group.label for group in groups))

    def given_values(self, instance: Instance) -> IntArray:
        return instance.inputs.astype(np.int64) - 1

    def give(self, inputs: NDArray[Any], values_BV: IntArray) -> NDArray[Any]:
        return np.where(inputs == 0, values_BV + 1, inputs).astype(inputs.dtype)

    def right(self, batch: NumpyBatch, answers_BV: IntArray) -> BoolArray:
        return super().right(batch, answers_BV) if self.one_solution else self.check(batch.inputs, answers_BV)

    def report(self) -> str:
        """Which rules losses can use, and which are checked alone: one of each form, and how many groups it has."""
        lines = []
        for learned, title in ((True, "in the loss"), (False, "checked, not in the loss")):
            forms: dict[str, list[str]] = {}
            for group in self.groups:
                if group.learned == learned:
                    forms.setdefault(re.sub(r"\[[^]]*\]?", "[]", group.label), []).append(group.label)
            rules = [f"{labels[0]} ({len(labels)} groups)" for labels in forms.values()]
            lines.append(f"{title}: {'; '.join(rules) or 'nothing'}")
        return "\n".join(lines)

    def generate(self, rng: np.random.Generator) -> Instance:
        """A random solution of which so many variables are given, or as few as leave it the only one."""
        low, high = self.range_of_givens
        target = int(rng.integers(low, high + 1))
        solution, given = self._search.make(target, self.one_solution, int(rng.integers(2**63)))
        return Instance(np.where(given, solution + 1, 0).astype(np.uint8), given, solution)

    @cached_property
    def _search(self) -> Search:
        from mull.problems.stated_search import Search  # numba, kept off the import path of solving

        free = Group("", tuple(range(self.values)), 0, 1, learned=False)  # so that there is always a group
        return Search.of(self.title, self.variables().count, self.values, self._weighted([*self.groups, free]))

    def parse(self, text: str) -> Instance:
        tokens = read_cells(text, self.variables().count, self.first, self.last)
        return Instance(tokens, given=tokens > 0)

    def write(self, instance: Instance) -> str:
        return write_cells(instance.inputs, self.first, self.last, empty=".")

    def write_answer(self, values: IntArray) -> str:
        return write_cells(np.asarray(values) + 1, self.first, self.last, empty=".")

    def render(self, values: IntArray, given: BoolArray | None = None) -> str:
        cells, width = draw_cells(values, given, self.first, self.last), self.shape[-1]
        return "\n".join(" ".join(cells[row : row + width]) for row in range(0, len(cells), width))


def _bounds(group: Group) -> tuple[int, int]:
    return group.lower, group.upper


def _filled(rows: list[Any]) -> IntArray:
    """Rows of different lengths as one array, filled up with -1."""
    filled = np.full((len(rows), max(len(row) for row in rows)), -1, dtype=np.int64)
    for number, row in enumerate(rows):
        filled[number, : len(row)] = row
    return filled


def _whole(*numbers: Any) -> bool:
    return all(isinstance(number, int) and abs(number) < 2**31 for number in numbers)


def _group(data: Any) -> Group:
    """A group as it is, or from the JSON of a file."""
    if isinstance(data, Group):
        return data
    if not isinstance(data, dict) or data.keys() != {field.name for field in fields(Group)}:
        raise InvalidInput("a group of a stated problem has wrong fields")
    options: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in data.items()}
    return Group(**options)


def _check_group(group: Group, atoms: int) -> None:
    """Whatever a file says, a group is about atoms there are."""
    lists = isinstance(group.atoms, tuple) and isinstance(group.weights, tuple) and isinstance(group.label, str)
    if not lists or not _whole(*group.atoms, *group.weights, group.lower, group.upper):
        raise InvalidInput("a group of a stated problem is not made of numbers")
    known = group.atoms and min(group.atoms) >= 0 and max(group.atoms) < atoms
    if not known or len(set(group.atoms)) < len(group.atoms) or len(group.weights) not in (0, len(group.atoms)):
        raise InvalidInput(f"the group {group.label[:80]!r} names atoms that there are not")
    if not isinstance(group.learned, bool) or (group.learned and group.weights):
        raise InvalidInput(f"the group {group.label[:80]!r} cannot be learned")
