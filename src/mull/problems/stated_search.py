"""Instances of a stated problem, compiled with numba: a random solution, then givens taken away while it stays unique.

A group is a sum of what its variables' values weigh, within bounds. Propagation removes every value that no choice of
the group's other variables can bring within them. Searches stop after so many nodes, never after so much time: the
same seed makes the same instance anywhere.

Shapes: V variable, D value, G group, S variable of a group.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mull.constraints import BoolArray, IntArray, Weighted
from mull.errors import UserError
from mull.problems.compiled import jit, shuffle

FIRST_NODES = 200
"""Nodes of the first search for a solution; every restart may take half as many again."""
RESTARTS = 24
UNIQUE_NODES = 2_000
"""Nodes to look for a second solution; a given that would take more stays."""

FOUND, NONE, UNDECIDED = 1, 0, -1
HUGE = 1 << 60

Groups = tuple[IntArray, IntArray, IntArray, IntArray, IntArray, IntArray]
"""scope_GS, weights_GSD, lower_G, upper_G; and the groups of variable v: `groups[first[v]:first[v + 1]]`."""


@dataclass(frozen=True, eq=False)
class Search:
    """A stated problem's groups as the arrays that the compiled functions take."""

    name: str
    variables: int
    values: int
    groups: Groups

    @classmethod
    def of(cls, name: str, variables: int, values: int, rules: Weighted) -> Search:
        """The arrays for some rules."""
        group, place = np.nonzero(rules.scope_GS >= 0)
        members = rules.scope_GS[group, place]
        order = np.argsort(members, kind="stable")
        first = np.searchsorted(members[order], np.arange(variables + 1))
        arrays = (rules.scope_GS, rules.weights_GSD, rules.lower_G, rules.upper_G, first, group[order])
        lists = [np.ascontiguousarray(array, dtype=np.int64) for array in arrays]
        return cls(name, variables, values, (lists[0], lists[1], lists[2], lists[3], lists[4], lists[5]))

    def make(self, givens: int, unique: bool, seed: int) -> tuple[IntArray, BoolArray]:
        """A random solution (V,), and which of its values are given (V,)."""
        state = np.array([seed], dtype=np.uint64)
        solution = self._solution(state)
        order = np.arange(self.variables)
        shuffle(state, order)
        if unique:
            return solution, thin(solution, self.values, order, givens, UNIQUE_NODES, self.groups)
        given = np.zeros(self.variables, dtype=np.bool_)
        given[order[:givens]] = True
        return solution, given

    def _solution(self, state: NDArray[np.uint64]) -> IntArray:
        free = np.ones((self.variables, self.values), dtype=np.bool_)
        order, values_VD = np.arange(self.variables), np.tile(np.arange(self.values), (self.variables, 1))
        solution, nodes = np.zeros(self.variables, dtype=np.int64), float(FIRST_NODES)
        for _ in range(RESTARTS):
            shuffle(state, order)
            for row in values_VD:
                shuffle(state, row)
            found = search(free, order, values_VD, int(nodes), solution, self.groups)
            if found == FOUND:
                return solution
            if found == NONE:
                raise UserError(f"{self.name} has no solution at all")
            nodes *= 1.5
        raise UserError(f"{self.name}: {RESTARTS} searches found no solution to make an instance from")


@jit
def propagate(alive_VD: BoolArray, queue: IntArray, queued: BoolArray, length: int, groups: Groups) -> bool:
    """Remove what the queued groups rule out, and what follows; False if a variable or a group has nothing left."""
    scope_GS, _, lower_G, upper_G, first, groups_of = groups
    reach_S2 = np.zeros((scope_GS.shape[1] + 1, 2), np.int64)
    fits = True
    while length:
        length -= 1
        group = queue[length]
        queued[group] = False
        if not fits or not reaches(alive_VD, group, reach_S2, groups):  # go on, but only to empty the queue
            fits = False
            continue
        if reach_S2[-1, 0] >= lower_G[group] and reach_S2[-1, 1] <= upper_G[group]:
            continue  # whatever its variables become
        for place in range(scope_GS.shape[1]):
            variable = scope_GS[group, place]
            if variable < 0:
                break
            removed, left = prune(alive_VD, group, place, reach_S2, groups)
            fits = fits and left > 0
            if not removed:
                continue
            for number in range(first[variable], first[variable + 1]):
                other = groups_of[number]
                if not queued[other]:
                    queue[length] = other
                    queued[other] = True
                    length += 1
    return fits


@jit
def reaches(alive_VD: BoolArray, group: int, reach_S2: IntArray, groups: Groups) -> bool:
    """Whether a group's sum can be within its bounds; `reach_S2` gets what each variable adds at least and at most.

    Its last row is the sum of the others.
    """
    scope_GS, weights_GSD, lower_G, upper_G, _, _ = groups
    least, most = 0, 0
    for place in range(scope_GS.shape[1]):
        variable = scope_GS[group, place]
        if variable < 0:
            break
        low, high = HUGE, -HUGE
        for value in range(alive_VD.shape[1]):
            if alive_VD[variable, value]:
                low = min(low, weights_GSD[group, place, value])
                high = max(high, weights_GSD[group, place, value])
        reach_S2[place, 0], reach_S2[place, 1] = low, high
        least, most = least + low, most + high
    reach_S2[-1, 0], reach_S2[-1, 1] = least, most
    return bool(least <= upper_G[group] and most >= lower_G[group])


@jit
def prune(alive_VD: BoolArray, group: int, place: int, reach_S2: IntArray, groups: Groups) -> tuple[int, int]:
    """Remove the values of a variable that the others of its group cannot make up for: how many, and how many stay."""
    scope_GS, weights_GSD, lower_G, upper_G, _, _ = groups
    variable = scope_GS[group, place]
    least, most = reach_S2[-1, 0] - reach_S2[place, 0], reach_S2[-1, 1] - reach_S2[place, 1]
    removed, left = 0, 0
    for value in range(alive_VD.shape[1]):
        if alive_VD[variable, value]:
            weight = weights_GSD[group, place, value]
            if least + weight > upper_G[group] or most + weight < lower_G[group]:
                alive_VD[variable, value] = False
                removed += 1
            else:
                left += 1
    return removed, left


@jit
def choose(alive_VD: BoolArray, order: IntArray) -> int:
    """The variable with the fewest values left, but more than one; the first in order among equals; -1 if none."""
    best, fewest = -1, alive_VD.shape[1] + 1
    for variable in order:
        left = alive_VD[variable].sum()
        if 1 < left < fewest:
            best, fewest = variable, left
            if left == 2:
                break
    return best


@jit
def search(
    free_VD: BoolArray, order: IntArray, values_VD: IntArray, nodes: int, solution: IntArray, groups: Groups
) -> int:
    """Depth-first search for one solution within the values that are free; it is written into `solution`."""
    count, values = free_VD.shape
    queue, queued = np.arange(len(groups[0])), np.ones(len(groups[0]), np.bool_)
    stack = np.zeros((count + 1, count, values), np.bool_)
    choice, tried = np.full(count + 1, -1), np.zeros(count + 1, np.int64)
    stack[0] = free_VD
    if not propagate(stack[0], queue, queued, len(queue), groups):
        return NONE
    depth = 0
    choice[0] = choose(stack[0], order)
    while choice[depth] >= 0:
        variable = choice[depth]
        while tried[depth] < values and not stack[depth, variable, values_VD[variable, tried[depth]]]:
            tried[depth] += 1
        if tried[depth] == values:
            depth -= 1
            if depth < 0:
                return NONE
            continue
        value = values_VD[variable, tried[depth]]
        tried[depth] += 1
        nodes -= 1
        if nodes < 0:
            return UNDECIDED
        stack[depth + 1] = stack[depth]
        stack[depth + 1, variable] = False
        stack[depth + 1, variable, value] = True
        length = 0
        for number in range(groups[4][variable], groups[4][variable + 1]):
            queue[length] = groups[5][number]
            queued[groups[5][number]] = True
            length += 1
        if propagate(stack[depth + 1], queue, queued, length, groups):
            depth += 1
            choice[depth], tried[depth] = choose(stack[depth], order), 0
    for variable in range(count):
        solution[variable] = stack[depth, variable].argmax()
    return FOUND


@jit
def thin(solution: IntArray, values: int, order: IntArray, givens: int, nodes: int, groups: Groups) -> BoolArray:
    """Take givens away in order, each only if no other value fits there then, until so many are left."""
    count = len(solution)
    given, left = np.ones(count, np.bool_), count
    values_VD = np.zeros((count, values), np.int64)
    values_VD[:] = np.arange(values)
    other = np.zeros(count, np.int64)
    alive_VD = np.zeros((count, values), np.bool_)
    for variable in range(count):
        alive_VD[variable, solution[variable]] = True
    for variable in order:
        if left <= givens:
            break
        alive_VD[variable] = True
        alive_VD[variable, solution[variable]] = False
        if search(alive_VD, order, values_VD, nodes, other, groups) == NONE:
            given[variable] = False
            left -= 1
            alive_VD[variable] = True
        else:
            alive_VD[variable] = False
            alive_VD[variable, solution[variable]] = True
    return given
