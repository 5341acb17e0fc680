"""The exact check as tensor operations, for answers that are on a device: what `Problem.check` says, without a copy.

Shapes: B batch, V variable, D value, N atom (V * D), G group, A atom of a group.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from mull.constraints import Cardinality, IntArray
from mull.problem import Images, Problem

LARGEST = 2**15 - 1


def supported(problem: Problem) -> bool:
    """Whether answers can be checked on a device: all rules are cardinalities, and the inputs state what is given."""
    cardinalities = [isinstance(rule, Cardinality) for rule in problem.rules]
    return bool(cardinalities) and all(cardinalities) and not isinstance(problem.input_kind(), Images)


class Checker:
    """A problem's rules as tensors; it says what `Problem.check` says of values that are in their domain."""

    def __init__(self, problem: Problem, device: torch.device) -> None:
        variables = problem.variables()
        self.rules = [rule for rule in problem.rules if isinstance(rule, Cardinality)]
        self.domain = torch.arange(variables.values, device=device)
        none = variables.count * variables.values
        self.atoms = [torch.from_numpy(np.where(r.atoms < 0, none, r.atoms).T.copy()).to(device) for r in self.rules]

    def bounds(self, inputs: NDArray[Any]) -> list[IntArray]:
        """Lower and upper bounds (B, G or 1) of each rule whose bounds depend on the instance."""
        sides = [side for rule in self.rules if rule.bounds is not None for side in rule.limits(inputs)]
        return [np.broadcast_to(_small(side), (len(inputs), side.shape[1])) for side in sides]

    def __call__(self, values_BV: Tensor, bounds: list[Tensor]) -> Tensor:
        """(B,): which answers satisfy every rule."""
        true_BN = (values_BV[:, :, None] == self.domain).flatten(1)
        padded = F.pad(true_BN.to(torch.uint8), (0, 1))
        right = torch.ones(len(values_BV), dtype=torch.bool, device=values_BV.device)
        by_instance = iter(bounds)
        for rule, atoms_AG in zip(self.rules, self.atoms, strict=True):
            size, groups = atoms_AG.shape
            taken = padded.index_select(1, atoms_AG.flatten()).view(-1, size, groups)
            count_BG = taken[:, 0].to(torch.int16) if size == 1 else taken.sum(1, dtype=torch.int16)
            lower: Tensor | int = rule.lower if rule.bounds is None else next(by_instance)
            upper: Tensor | int = rule.upper if rule.bounds is None else next(by_instance)
            right &= ((count_BG >= lower) & (count_BG <= upper)).all(1)
        return right


def _small(side: IntArray) -> IntArray:
    """Bounds in few bytes; no count is larger than what is cut off."""
    if side.dtype == np.int8:
        return side
    return side.clip(max=LARGEST).astype(np.int16)
