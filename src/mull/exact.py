"""The exact solver: any problem's constraints as a CP-SAT model, through CPMpy.

Used to settle what the recurrence did not, and to tell whether an answer is the only one. Needs the extra
`mull[exact]`; nothing is imported before the first call.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from mull.constraints import UNKNOWN, IntArray, Weighted
from mull.count import bounded_groups
from mull.errors import UserError

if TYPE_CHECKING:
    from mull.problem import Instance, Problem


class UndecidedError(UserError):
    """The time limit passed before the exact solver knew."""


def available() -> bool:
    """Whether the exact solver is installed."""
    try:
        return find_spec("cpmpy") is not None and find_spec("ortools") is not None
    except ImportError:
        return False


def solve(problem: Problem, instance: Instance, seconds: float | None = None) -> IntArray | None:
    """An answer (V,) that satisfies every constraint, or None if there is none."""
    return next(iter(solutions(problem, instance, limit=1, seconds=seconds)), None)


def solutions(
    problem: Problem,
    instance: Instance,
    limit: int = 2,
    seconds: float | None = None,
    hint: IntArray | None = None,
    known: IntArray | None = None,
) -> list[IntArray]:
    """Up to `limit` different answers (V,); fewer mean that there are no more. `seconds` limits each search.

    `hint`: values (V,) that the first search tries first; they need not be right. `known`: an answer that is certain
    already, and comes first; the search is for others.
    """
    search = Search(problem, instance, hint if known is None else None)
    found = [] if known is None else [known]
    if known is not None:
        search.exclude(known)
    while len(found) < limit and (values := search.run(seconds)) is not None:
        found.append(values)
        search.exclude(values)
    return found


class Search:
    """A CP-SAT model of one instance that can be asked for one answer after another."""

    def __init__(self, problem: Problem, instance: Instance, hint: IntArray | None = None) -> None:
        """State the instance; `hint` is values (V,) to try first, UNKNOWN where there is none to try."""
        if not available():
            raise UserError("the exact solver is not installed: install mull[exact]")
        import cpmpy

        variables = problem.variables()
        self.atoms_VD = cpmpy.boolvar(shape=(variables.count, variables.values))
        self.solver = cpmpy.SolverLookup.get("ortools", _model(problem, instance, self.atoms_VD))
        if hint is not None:
            told_V = hint != UNKNOWN
            self.solver.solution_hint(self.atoms_VD[told_V], np.eye(variables.values, dtype=int)[hint[told_V]])

    def run(self, seconds: float | None = None) -> IntArray | None:
        """An answer (V,), or None if there is none (any more)."""
        if self.solver.solve(time_limit=seconds, num_workers=1):
            values_V: IntArray = np.array(self.atoms_VD.value(), dtype=bool).argmax(axis=1)
            return values_V
        if self.solver.status().exitstatus.name != "UNSATISFIABLE":
            raise UndecidedError(f"the exact solver did not know after {seconds} s")
        return None

    def exclude(self, values: IntArray) -> None:
        """Ask for answers that differ from this one in at least one variable from now on, and try nothing first."""
        import cpmpy

        self.solver.solution_hint([], [])
        self.solver += cpmpy.sum(list(self.atoms_VD[np.arange(len(values)), values])) < len(values)


def _model(problem: Problem, instance: Instance, atoms_VD: Any) -> Any:
    """The problem's bounded groups, and its weighted ones, as sums of Booleans."""
    import cpmpy

    model = cpmpy.Model()
    atoms_N = atoms_VD.ravel()
    for group, lower, upper in bounded_groups(problem, instance, sums=False):
        members = list(atoms_N[group])
        if lower == upper:
            model += cpmpy.sum(members) == lower
            continue
        if lower > 0:
            model += cpmpy.sum(members) >= lower
        if upper < len(members):
            model += cpmpy.sum(members) <= upper
    for constraint in problem.rules:
        if isinstance(constraint, Weighted):
            model += _sums(constraint, atoms_VD)
    return model


def _sums(constraint: Weighted, atoms_VD: Any) -> list[Any]:
    """Every weighted sum within its bounds."""
    import cpmpy

    stated = []
    for group, scope_S in enumerate(constraint.scope_GS):
        place, value = np.nonzero(constraint.weights_GSD[group])
        total = cpmpy.sum(constraint.weights_GSD[group, place, value] * atoms_VD[scope_S[place], value])
        stated += [total >= int(constraint.lower_G[group]), total <= int(constraint.upper_G[group])]
    return stated
