"""Telling whether an instance has no solution, one, or several, with numpy and Python alone.

It serves to say what is wrong with a puzzle, so it may give up: propagation and depth-first search over the
cardinalities, within a time limit. To solve hard instances exactly there is CP-SAT (`exact.py`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from mull.constraints import Cardinality, Weighted
from mull.errors import UserError
from mull.problem import Instance, Problem

Group = tuple[list[int], int, int]
"""Atoms, and the least and greatest number of them that may be true."""


def bounded_groups(problem: Problem, instance: Instance, sums: bool = True) -> Iterator[Group]:
    """All that an answer must satisfy: every variable has one value, and every group keeps its bounds.

    Without `sums`, what is stated by weights is left to the caller.
    """
    variables = problem.variables()
    for row in np.arange(variables.count * variables.values).reshape(variables.count, -1).tolist():
        yield row, 1, 1
    for constraint in problem.rules:
        if isinstance(constraint, Weighted):
            yield from _unit_groups(constraint, variables.values) if sums else ()
            continue
        if not isinstance(constraint, Cardinality):
            raise UserError(f"a {type(constraint).__name__} constraint cannot be stated exactly")
        limits = constraint.limits(instance.inputs[None])
        lower_G, upper_G = (np.broadcast_to(side, (1, constraint.size))[0].tolist() for side in limits)
        for atoms, lower, upper in zip(constraint.atoms.tolist(), lower_G, upper_G, strict=True):
            members = [atom for atom in atoms if atom >= 0]
            if lower > 0 or upper < len(members):
                yield members, lower, upper


def _unit_groups(constraint: Weighted, values: int) -> Iterator[Group]:
    """The groups of weighted sums where every atom weighs 0 or 1, as clauses do; others cannot be counted."""
    if constraint.weights_GSD.min() < 0 or constraint.weights_GSD.max() > 1:
        raise UserError("a sum of different weights cannot be stated as a count")
    for group, scope_S in enumerate(constraint.scope_GS):
        place, value = np.nonzero(constraint.weights_GSD[group])
        members = (scope_S[place] * values + value).tolist()
        yield members, int(constraint.lower_G[group]), int(constraint.upper_G[group])


def count_solutions(problem: Problem, instance: Instance, limit: int = 2, seconds: float = 1.0) -> int | None:
    """How many solutions there are, `limit` at the most; None if the time did not suffice to tell."""
    search = _Search(list(bounded_groups(problem, instance)), problem.variables().values, limit, seconds)
    try:
        return search.count()
    except TimeoutError:
        return search.found if search.found >= limit else None


class _Search:
    """Atoms that are true, false or open; what follows from them; and a trail to take decisions back."""

    def __init__(self, groups: list[Group], values: int, limit: int, seconds: float) -> None:
        self.groups, self.values, self.limit = groups, values, limit
        self.deadline = time.monotonic() + seconds
        atoms = 1 + max(max(members) for members, _, _ in groups)
        self.truth: list[bool | None] = [None] * atoms
        self.groups_of: list[list[int]] = [[] for _ in range(atoms)]
        for number, (members, _, _) in enumerate(groups):
            for atom in members:
                self.groups_of[atom].append(number)
        self.true = [0] * len(groups)
        self.open = [len(members) for members, _, _ in groups]
        self.trail: list[int] = []
        self.found = 0

    def count(self) -> int:
        """The number of solutions, up to the limit."""
        if self._propagate(range(len(self.groups))):
            self._branch()
        return self.found

    def _branch(self) -> None:
        """Try the values of the variable that has the fewest left."""
        choice: list[int] = []
        for first in range(0, len(self.truth), self.values):
            left = [atom for atom in range(first, first + self.values) if self.truth[atom] is None]
            if left and (not choice or len(left) < len(choice)):
                choice = left
                if len(choice) == 2:
                    break
        if not choice:
            self.found += 1
            return
        if time.monotonic() > self.deadline:
            raise TimeoutError
        for atom in choice:
            mark = len(self.trail)
            if self._set(atom, True) and self._propagate(self.groups_of[atom]):
                self._branch()
            self._undo(mark)
            if self.found >= self.limit:
                return

    def _propagate(self, touched: Iterator[int] | range | list[int]) -> bool:
        """Everything that follows by counting; False if a group cannot keep its bounds any more."""
        waiting = list(touched)
        while waiting:
            number = waiting.pop()
            members, lower, upper = self.groups[number]
            true, free = self.true[number], self.open[number]
            if true > upper or true + free < lower:
                return False
            if not free or not (true == upper or true + free == lower):
                continue
            truth = true != upper
            for atom in members:
                if self.truth[atom] is None:
                    if not self._set(atom, truth):
                        return False
                    waiting += self.groups_of[atom]
        return True

    def _set(self, atom: int, truth: bool) -> bool:
        """Decide an atom; False if a group of it is broken thereby."""
        self.truth[atom] = truth
        self.trail.append(atom)
        fits = True
        for number in self.groups_of[atom]:
            self.open[number] -= 1
            self.true[number] += truth
            _, lower, upper = self.groups[number]
            fits = fits and self.true[number] <= upper and self.true[number] + self.open[number] >= lower
        return fits

    def _undo(self, mark: int) -> None:
        """Take back every decision since the trail was `mark` long."""
        while len(self.trail) > mark:
            atom = self.trail.pop()
            for number in self.groups_of[atom]:
                self.open[number] += 1
                self.true[number] -= bool(self.truth[atom])
            self.truth[atom] = None
