"""Constraints as plain data: exact violations and adjacency, for whole batches at once.

An *atom* is "variable i has value j" and has the number `i * values + j`. The paper's constraint is a cardinality,
`lower <= number of true atoms in a group <= upper`. Groups are fixed for a problem; bounds may depend on the instance
(then they are made from its inputs), so that one batch can hold different instances.

Shapes: B batch, V variable, D value, G group, A atom of a group, N atoms in all (V * D).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.integer[Any]]
BoolArray = NDArray[np.bool_]

UNKNOWN = -1
"""The value of a variable that is not assigned yet, in a partial answer."""


class Constraint(ABC):
    """A family of conditions ("groups") over the variables, checked exactly."""

    @abstractmethod
    def violations(self, values_BV: IntArray, inputs: NDArray[Any]) -> BoolArray:
        """Which groups (B, G) are broken. Variables may be UNKNOWN: then only what no completion can repair counts."""

    @abstractmethod
    def scopes(self) -> list[IntArray]:
        """The variables of each group."""

    @abstractmethod
    def label(self, group: int) -> str:
        """What a group demands, as a sentence."""

    def adjacency(self, variables: int) -> BoolArray:
        """(V, V): which variables share a group (the diagonal is true)."""
        adjacent = np.eye(variables, dtype=bool)
        for scope in self.scopes():
            adjacent[np.ix_(scope, scope)] = True
        return adjacent


Bounds = Callable[[NDArray[Any]], tuple[IntArray, IntArray]]
"""Lower and upper bounds (B, G) from the inputs of a batch."""


@dataclass(frozen=True, eq=False)
class Cardinality(Constraint):
    """lower <= number of true atoms of each group <= upper."""

    values: int
    """Size of a variable's domain (D)."""
    atoms: IntArray
    """(G, A) atom numbers, each at most once in a group; -1 fills up shorter groups."""
    lower: int = 0
    upper: int = 1
    bounds: Bounds | None = None
    """Bounds by instance; replaces `lower` and `upper`."""
    labels: Sequence[str] = ()
    """What each group demands, as a sentence."""

    def limits(self, inputs: NDArray[Any]) -> tuple[IntArray, IntArray]:
        """Lower and upper bounds, each broadcastable to (B, G)."""
        if self.bounds is not None:
            return self.bounds(inputs)
        return np.array([[self.lower]]), np.array([[self.upper]])

    def counts(self, atoms_BN: BoolArray) -> IntArray:
        """How many atoms of each group are true: (B, N) -> (B, G)."""
        padded = np.concatenate([atoms_BN, np.zeros((len(atoms_BN), 1), dtype=bool)], axis=1)
        gathered: IntArray = padded[:, self.atoms].view(np.uint8).sum(axis=-1, dtype=np.int32)
        return gathered

    def violations(self, values_BV: IntArray, inputs: NDArray[Any]) -> BoolArray:
        lower, upper = self.limits(inputs)
        least = most = self.counts(atoms_of(values_BV, self.values))
        unknown_BV = values_BV == UNKNOWN
        if unknown_BV.any():
            # An unknown variable makes at most one atom of a group true, and surely one if all its atoms are in it.
            members, whole = self._members
            padded = np.concatenate([unknown_BV, np.zeros((len(unknown_BV), 1), dtype=bool)], axis=1)
            open_BGA = padded[:, members]
            least = least + (open_BGA & whole).sum(axis=-1, dtype=np.int32)
            most = most + open_BGA.sum(axis=-1, dtype=np.int32)
        broken: BoolArray = (least > upper) | (most < lower) | (lower > upper)
        return broken

    @cached_property
    def _members(self) -> tuple[IntArray, BoolArray]:
        """(G, A): each group's variables once, -1 elsewhere; and whether all atoms of it are in the group."""
        variables = np.sort(np.where(self.atoms >= 0, self.atoms // self.values, -1), axis=1)
        first = variables >= 0
        first[:, 1:] &= variables[:, 1:] != variables[:, :-1]
        whole = np.zeros_like(first)
        reach = self.values - 1  # in sorted order, a variable with all its atoms stands here and `reach` places on
        if reach < variables.shape[1]:
            whole[:, : variables.shape[1] - reach] = variables[:, : variables.shape[1] - reach] == variables[:, reach:]
        return np.where(first, variables, -1), first & whole

    def scopes(self) -> list[IntArray]:
        return [np.unique(group[group >= 0] // self.values) for group in self.atoms]

    @cached_property
    def size(self) -> int:
        """Number of groups."""
        return len(self.atoms)

    def label(self, group: int) -> str:
        return self.labels[group] if self.labels else f"group {group}"


def by_instance(rules: Sequence[Constraint]) -> list[Cardinality]:
    """The cardinalities whose bounds depend on the instance."""
    return [rule for rule in rules if isinstance(rule, Cardinality) and rule.bounds is not None]


def instance_bounds(rules: Sequence[Constraint], inputs: NDArray[Any]) -> IntArray | None:
    """(B, 2, G): lower and upper bounds of all groups of `by_instance`, in their order; None if there are none.

    They are in the smallest type of whole numbers that holds them, since a data set has many.
    """
    found = by_instance(rules)
    if not found:
        return None
    sides = zip(*(rule.limits(inputs) for rule in found), strict=True)
    shapes = [(len(inputs), rule.size) for rule in found]
    stacked = np.stack([np.concatenate(list(map(np.broadcast_to, side, shapes)), axis=1) for side in sides], axis=1)
    smallest: IntArray = stacked.astype(np.min_scalar_type(-int(stacked.max(initial=0)) - 1))
    return smallest


@dataclass(frozen=True, eq=False)
class Weighted(Constraint):
    """lower <= sum of what the variables' values weigh <= upper: checked exactly, but no part of a loss.

    Shapes: S variable of a group, otherwise as above.
    """

    scope_GS: IntArray
    """Variables of each group, each at most once; -1 fills up shorter groups."""
    weights_GSD: IntArray
    """What each value of a variable weighs; 0 where the scope is filled up."""
    lower_G: IntArray
    upper_G: IntArray
    labels: Sequence[str] = ()
    """What each group demands, as a sentence."""

    def violations(self, values_BV: IntArray, inputs: NDArray[Any]) -> BoolArray:
        values_BGS = np.where(self.scope_GS >= 0, values_BV[:, self.scope_GS], 0)
        groups, places = np.ogrid[: self.scope_GS.shape[0], : self.scope_GS.shape[1]]
        weight_BGS = self.weights_GSD[groups, places, np.clip(values_BGS, 0, self.weights_GSD.shape[2] - 1)]
        # An unknown variable may take its lightest or its heaviest value.
        unknown = values_BGS == UNKNOWN
        least = np.where(unknown, self.weights_GSD.min(axis=-1), weight_BGS).sum(axis=-1)
        most = np.where(unknown, self.weights_GSD.max(axis=-1), weight_BGS).sum(axis=-1)
        broken: BoolArray = (least > self.upper_G) | (most < self.lower_G)
        return broken

    def scopes(self) -> list[IntArray]:
        return [np.unique(scope[scope >= 0]) for scope in self.scope_GS]

    def label(self, group: int) -> str:
        return self.labels[group] if self.labels else f"sum {group}"


def atoms_of(values_BV: IntArray, values: int) -> BoolArray:
    """The atoms (B, V * D) that are true; an UNKNOWN variable has none, nor has one that is out of its domain."""
    return np.take(_atoms_of_values(values), values_BV + 1, axis=0, mode="clip").reshape(len(values_BV), -1)


@cache
def _atoms_of_values(values: int) -> BoolArray:
    """(D + 2, D): the atoms of every value, and none around them; looking up is several times as fast as comparing."""
    return np.pad(np.eye(values, dtype=bool), ((1, 1), (0, 0)))


def each_value_once(scopes: IntArray, values: int, name: str) -> Cardinality:
    """In every scope (G, A variables) each value occurs exactly once."""
    atoms = scopes[:, None, :] * values + np.arange(values)[None, :, None]
    labels = [f"{name} {scope + 1} holds {value + 1} once" for scope in range(len(scopes)) for value in range(values)]
    return Cardinality(values, atoms.reshape(-1, scopes.shape[1]), lower=1, upper=1, labels=labels)


def fixed_values(variables: int, values: int, read: Callable[[NDArray[Any]], IntArray]) -> Cardinality:
    """Given variables keep their values; `read` turns inputs into values (B, V), UNKNOWN where nothing is given."""

    def bounds(inputs: NDArray[Any]) -> tuple[IntArray, IntArray]:
        given = atoms_of(read(inputs), values)
        return given.view(np.int8), np.ones((1, 1), dtype=np.int8)

    atoms = np.arange(variables * values)[:, None]
    labels = [f"variable {v + 1} keeps its given {d + 1}" for v in range(variables) for d in range(values)]
    return Cardinality(values, atoms, bounds=bounds, labels=labels)
