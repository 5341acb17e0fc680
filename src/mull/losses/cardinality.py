"""The cardinality loss: count the true atoms of each group, and square how far the count is out of bounds.

    L_[l,u](x) = 1[c < l] (c - l)^2 + 1[c > u] (c - u)^2,   c = number of atoms with x >= 0.5;   L_[n] = L_[n,n]

All groups with as many atoms are counted by one gather and one sum; the gradient is a gather too, by a table of each
atom's groups, so nothing is scattered and the result does not depend on the order of threads.

Shapes: S step, L block, B batch, V variable, D value, N atom (V * D), G group, A atom of a group, K group of an atom;
O output (S * L).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from mull.constraints import Cardinality, IntArray
from mull.errors import InvalidInput
from mull.losses.straight_through import binarise
from mull.problem import Batch, Problem


@dataclass(frozen=True)
class Places:
    """A table (k, to) of places among `total`, on a device; `total` itself stands for none."""

    index: Tensor
    count: int
    filled: bool
    """Whether there is a place that stands for none."""
    same: bool
    """Whether the table leaves everything where it is."""

    @staticmethod
    def of(table: IntArray, total: int, device: torch.device) -> Places:
        """From numbers."""
        same = table.shape == (1, total) and bool((table[0] == np.arange(total)).all())
        index = torch.from_numpy(table.ravel().copy()).to(device)
        return Places(index, len(table), bool((table == total).any()), same)


@dataclass(frozen=True)
class Bundle:
    """The groups of one or more constraints, all with as many atoms, as tensors on a device."""

    atoms_AG: Places
    """Atoms of each group."""
    groups_KN: Places
    """Groups of each atom."""
    share_G: Tensor
    """1 / number of groups of the constraint that a group belongs to."""
    lower_G: Tensor | None
    upper_G: Tensor | None
    """Bounds, if they are the same for all instances."""
    places: Tensor | None
    """Otherwise: where a batch's bounds have those of these groups."""


def cardinality(
    logits_SLBVD: Tensor,
    batch: Batch[Tensor],
    problem: Problem,
    estimator: str = "identity",
    fixed_bounds_only: bool = False,
) -> Tensor:
    """L_[l,u], averaged over outputs, instances and the groups of a constraint, and summed over constraints.

    So Sudoku has the terms of the paper's code, a mean each for rows, columns and boxes; the paper's text has sums,
    which are 81 times as large for each output. Besides, we count the groups whose bounds depend on the instance (for
    Sudoku: given cells keep their values), unless `fixed_bounds_only`.
    """
    atoms_OBN = atoms(logits_SLBVD, estimator)
    total = atoms_OBN.new_zeros(())
    for bundle in bundles(problem, logits_SLBVD.device, fixed_bounds_only):
        lower, upper = _bounds(bundle, batch, problem)
        total = total + _OutOfBounds.apply(count(atoms_OBN, bundle), lower, upper, bundle.share_G)  # type: ignore[no-untyped-call]
    return total / (atoms_OBN.shape[0] * atoms_OBN.shape[1])


def atoms(logits_SLBVD: Tensor, estimator: str = "identity") -> Tensor:
    """(S * L, B, N): which atoms are true, with the estimator's gradient."""
    probability = logits_SLBVD.float().softmax(-1)
    return binarise(probability, estimator).flatten(3).flatten(0, 1)


def count(atoms_OBN: Tensor, bundle: Bundle) -> Tensor:
    """(S * L, B, G): how many atoms of each group are true."""
    counts: Tensor = _Count.apply(atoms_OBN, bundle.atoms_AG, bundle.groups_KN)  # type: ignore[no-untyped-call]
    return counts


class _OutOfBounds(torch.autograd.Function):
    """The sum of squares of how far counts are out of bounds, each times its share; in few passes over memory."""

    @staticmethod
    def forward(ctx: Any, counts_OBG: Tensor, lower: Tensor, upper: Tensor, share_G: Tensor) -> Tensor:
        over_OBG, under_OBG = (counts_OBG - upper).clamp_(min=0), (lower - counts_OBG).clamp_(min=0)
        squares_G = over_OBG.square().addcmul_(under_OBG, under_OBG).sum((0, 1))
        ctx.save_for_backward(over_OBG.sub_(under_OBG), share_G)
        return (squares_G * share_G).sum()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        beyond_OBG, share_G = ctx.saved_tensors
        return beyond_OBG * (2 * gradients[0] * share_G), None, None, None


class _Count(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, atoms_OBN: Tensor, atoms_AG: Places, groups_KN: Places) -> Tensor:
        ctx.groups_KN = groups_KN
        found = _gather_sum(atoms_OBN, atoms_AG)
        return found.view_as(found)  # not the argument itself

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        return _gather_sum(gradients[0], ctx.groups_KN), None, None


def _gather_sum(values: Tensor, places: Places) -> Tensor:
    """(..., from) -> (..., to): the sum over the places (k, to) of each; a place beyond the end holds 0."""
    values = F.pad(values, (0, 1)) if places.filled else values
    taken = values if places.same else values.index_select(-1, places.index)
    return taken if places.count == 1 else taken.view(*taken.shape[:-1], places.count, -1).sum(-2)


@lru_cache(maxsize=16)
def bundles(problem: Problem, device: torch.device, fixed_bounds_only: bool = False) -> tuple[Bundle, ...]:
    """The cardinality constraints of a problem, compiled once; other constraints have no such loss."""
    rules = [rule for rule in problem.rules if isinstance(rule, Cardinality)]
    if not [rule for rule in rules if rule.bounds is None or not fixed_bounds_only]:
        of_what = "cardinality constraints with fixed bounds" if fixed_bounds_only else "cardinality constraints"
        raise InvalidInput(f"{problem.name} states no {of_what} to count: leave the weight of this loss at 0")
    alike: dict[tuple[int, bool], list[tuple[Cardinality, int]]] = defaultdict(list)
    seen = 0
    for rule in rules:
        alike[rule.atoms.shape[1], rule.bounds is not None].append((rule, seen))
        seen += rule.size if rule.bounds is not None else 0
    total = problem.variables().count * problem.variables().values
    members = [group for (_, varies), group in alike.items() if not (varies and fixed_bounds_only)]
    return tuple(_compile(group, total, device) for group in members)


def _compile(rules: list[tuple[Cardinality, int]], total: int, device: torch.device) -> Bundle:
    """Constraints with as many atoms a group, each with the place of its first bounds in a batch."""
    atoms_GA = np.concatenate([rule.atoms for rule, _ in rules])
    sizes = [rule.size for rule, _ in rules]

    def each(values: list[Any], kind: torch.dtype = torch.float32) -> Tensor:
        return torch.from_numpy(np.repeat(np.array(values), sizes)).to(device, kind)

    varies = rules[0][0].bounds is not None
    places = np.concatenate([first + np.arange(rule.size) for rule, first in rules])
    return Bundle(
        atoms_AG=Places.of(np.where(atoms_GA >= 0, atoms_GA, total).T, total, device),
        groups_KN=Places.of(_groups_of(atoms_GA, total), len(atoms_GA), device),
        share_G=each([1 / size for size in sizes]),
        lower_G=None if varies else each([rule.lower for rule, _ in rules]),
        upper_G=None if varies else each([rule.upper for rule, _ in rules]),
        places=torch.from_numpy(places).to(device) if varies else None,
    )


def _groups_of(atoms_GA: IntArray, total: int) -> IntArray:
    """(K, N): the groups that each atom is in, filled up with G."""
    groups, places = np.nonzero(atoms_GA >= 0)
    members = atoms_GA[groups, places]
    order = np.argsort(members, kind="stable")
    members, groups = members[order], groups[order]
    rank = np.arange(len(members)) - np.searchsorted(members, members)  # which of its groups this is
    table = np.full((rank.max(initial=0) + 1, total), len(atoms_GA))
    table[rank, members] = groups
    return table


def _bounds(bundle: Bundle, batch: Batch[Tensor], problem: Problem) -> tuple[Tensor, Tensor]:
    """Lower and upper bounds, each (G,) or (B, G)."""
    if bundle.lower_G is not None and bundle.upper_G is not None:
        return bundle.lower_G, bundle.upper_G
    assert bundle.places is not None
    lower, upper = stated_bounds(batch, problem).index_select(-1, bundle.places).float().unbind(1)
    return lower, upper


def stated_bounds(batch: Batch[Tensor], problem: Problem) -> Tensor:
    """(B, 2, G): the bounds that the instances set, which a batch carries if it was asked to."""
    if batch.bounds is None:
        raise InvalidInput(f"bounds of {problem.name} depend on the instance: a batch gets them from `with_bounds`")
    return batch.bounds
