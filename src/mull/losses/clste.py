"""CL-STE (Yang, Lee and Park, 2022), which the cardinality loss is compared with: constraints as a CNF.

At least l of k atoms: of every k - l + 1 of them one is true. At most u: of every u + 1 one is false. For "exactly one
of nine" that makes 1 + 36 clauses, for a 9x9 Sudoku 243 * 37 = 8,991. With L the truth values of a clause's literals,

    L_unsat  = mean over clauses that are false of prod(1 - L)
    L_sat    = mean over clauses that are true of sum(1[L = 1] (1 - L) + 1[L = 0] L)        (0, but for its gradient)
    L_deduce = sum over false clauses with one literal left open by the facts, of prod(1 - L)

where means are over all clauses, and atoms that the instance states outright (givens) keep that value. In a false
clause all L are 0, so that prod(1 - L) has the value and the gradient of 1 - sum(L): no products are needed.

Shapes: S step, L block, B batch, V variable, D value, N atom (V * D), M clause, C literal of a clause;
O output (S * L).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from mull.constraints import Cardinality, IntArray, by_instance
from mull.errors import InvalidInput
from mull.losses.cardinality import atoms, stated_bounds
from mull.problem import Batch, Problem

LARGEST = 1_000_000
"""The most clauses; cardinalities have exponentially many."""


@dataclass(frozen=True)
class Clauses:
    """Clauses of equal length whose literals are all positive or all negative."""

    atoms_MC: Tensor
    positive: bool


def clste(
    logits_SLBVD: Tensor,
    batch: Batch[Tensor],
    problem: Problem,
    first_step: bool = True,
    estimator: str = "identity",
) -> Tensor:
    """L_deduce + L_unsat + L_sat, averaged over outputs and instances."""
    logits_SLBVD = logits_SLBVD[:1] if first_step else logits_SLBVD
    facts_BN = _facts(batch, problem)
    truth_OBN = atoms(logits_SLBVD, estimator)
    truth_OBN = torch.where(facts_BN == 0, truth_OBN, (facts_BN > 0).to(truth_OBN.dtype))
    cnf = compile_cnf(problem, logits_SLBVD.device)
    clauses = sum(len(part.atoms_MC) for part in cnf)
    total = sum((_part(truth_OBN, facts_BN, part, clauses) for part in cnf), truth_OBN.new_zeros(()))
    return total / (truth_OBN.shape[0] * truth_OBN.shape[1])


def _part(truth_OBN: Tensor, facts_BN: Tensor, part: Clauses, clauses: int) -> Tensor:
    """The three losses of some clauses, summed over outputs and instances."""
    taken = truth_OBN[..., part.atoms_MC]
    literals = taken if part.positive else 1 - taken
    now = literals.detach()
    known_false = facts_BN[:, part.atoms_MC] == (-1 if part.positive else 1)
    deduced_BM = known_false.sum(-1) == part.atoms_MC.shape[1] - 1
    is_false = (now == 0).all(-1)
    unsat = torch.where(is_false, 1 - literals.sum(-1), 0.0)
    keep = torch.where(is_false, 0.0, ((1 - 2 * now) * literals + now).sum(-1))
    return (unsat + keep).sum() / clauses + torch.where(deduced_BM, unsat, 0.0).sum()


def _facts(batch: Batch[Tensor], problem: Problem) -> Tensor:
    """(B, N): 1 and -1 where the instance says that an atom is true or false, 0 elsewhere."""
    places_N = fact_places(problem, batch.solution.device)
    if places_N is None:
        variables = problem.variables()
        return torch.zeros(len(batch), variables.count * variables.values, device=batch.solution.device)
    lower, upper = stated_bounds(batch, problem).unbind(1)
    facts = (lower >= 1).float() - (upper <= 0).float()
    return F.pad(facts, (0, 1)).index_select(-1, places_N)


@lru_cache(maxsize=16)
def fact_places(problem: Problem, device: torch.device) -> Tensor | None:
    """(N,): where a batch's bounds state an atom outright; the place after the last where they do not."""
    rules = by_instance(problem.rules)
    if not rules:
        return None
    variables, atoms_G = problem.variables(), np.concatenate([rule.atoms[:, 0] for rule in rules])
    places = np.full(variables.count * variables.values, len(atoms_G))
    places[atoms_G] = np.arange(len(atoms_G))
    return torch.from_numpy(places).to(device)


@lru_cache(maxsize=16)
def compile_cnf(problem: Problem, device: torch.device) -> tuple[Clauses, ...]:
    """The clauses of a problem's cardinality constraints, compiled once."""
    found: dict[tuple[int, bool], list[IntArray]] = defaultdict(list)
    rules = [rule for rule in problem.rules if isinstance(rule, Cardinality)]
    for rule in rules:
        if rule.bounds is not None and rule.atoms.shape[1] > 1:
            raise InvalidInput(f"{problem.name} has counts that depend on the instance: CL-STE has no clauses for them")
    fixed = [(rule, group[group >= 0]) for rule in rules if rule.bounds is None for group in rule.atoms]
    sizes = [(max(0, len(group) - rule.lower + 1), rule.upper + 1, len(group)) for rule, group in fixed]
    if sum(comb(size, most) + comb(size, least) for least, most, size in sizes) > LARGEST:
        raise InvalidInput(f"the constraints of {problem.name} have more than {LARGEST:,} clauses: too many for CL-STE")
    for (_, group), (least, most, size) in zip(fixed, sizes, strict=True):
        for length, positive in ((least, True), (most, False)):
            if 0 < length <= size:
                found[length, positive].append(np.array(list(combinations(group.tolist(), length))))
    if not found:
        raise InvalidInput(f"{problem.name} states no constraints that have clauses: leave the weight of CL-STE at 0")
    return tuple(
        Clauses(torch.from_numpy(np.concatenate(parts)).to(device), positive) for (_, positive), parts in found.items()
    )
