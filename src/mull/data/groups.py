"""Bounds of groups of atoms under symmetries: a group that moves takes its bounds along.

A symmetry sends atoms to atoms, and has to send each group of a constraint to a group of the same constraint. Which one
that is, is found by a sum of random numbers, one for each atom: two groups with the same sum are the same group (or a
coincidence of 64 bits). Like the rest of an augmentation, this has static shapes and reads nothing back.

Shapes: B batch, V variable, D value, N atom (V * D), G group, A atom of a group.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from mull.constraints import Cardinality, by_instance
from mull.data.streams import stream
from mull.errors import InvalidInput
from mull.problem import Problem


class GroupMoves:
    """Moves the bounds that `instance_bounds` made, along with the variables and values of each row."""

    def __init__(self, problem: Problem, device: torch.device | str, relabels: bool) -> None:
        """`relabels`: values may get new names. Says no if a symmetry does not keep the groups together."""
        variables = problem.variables()
        self.values = variables.values
        drawn = stream(0, "group moves").integers(2**62, size=variables.count * variables.values)
        self.keys_N = torch.from_numpy(drawn).to(device)
        rules = by_instance(problem.rules)
        self.atoms_GA = [_padded(rule, len(drawn)).to(device) for rule in rules]
        ordered = [_sums(self.keys_N[None], atoms)[0].sort() for atoms in self.atoms_GA]
        self.sorted_G = [sums_G for sums_G, _ in ordered]
        self.order_G = [order_G for _, order_G in ordered]
        self._check(problem, relabels)

    def __call__(self, bounds_B2G: Tensor, source_BV: Tensor, rename_BD: Tensor | None) -> Tensor:
        """The bounds after what stood at `source[i]` moved to variable i and value d became `rename[d]`."""
        keys_BN = self._moved_keys(source_BV, rename_BD)
        moved, first = [], 0
        for family, order_G in enumerate(self.order_G):
            came_from_BG = order_G[self._places(keys_BN, family)]
            part = bounds_B2G[:, :, first : first + len(order_G)]
            moved.append(part.gather(2, came_from_BG[:, None].expand(-1, 2, -1)))
            first += len(order_G)
        return torch.cat(moved, dim=2)

    def _moved_keys(self, source_BV: Tensor, rename_BD: Tensor | None) -> Tensor:
        """(B, N): the key of the atom that each atom was before."""
        rows = len(source_BV)
        if rename_BD is None:
            was_BD = torch.arange(self.values, device=source_BV.device).expand(rows, -1)
        else:
            was_BD = rename_BD.argsort(dim=1)
        return self.keys_N[(source_BV[:, :, None] * self.values + was_BD[:, None, :]).flatten(1)]

    def _places(self, keys_BN: Tensor, family: int) -> Tensor:
        """(B, G): where the sums of what the groups were before stand in the sorted sums."""
        atoms_GA, sorted_G = self.atoms_GA[family], self.sorted_G[family]
        sums_BG = _sums(keys_BN, atoms_GA)
        return torch.searchsorted(sorted_G, sums_BG).clamp(max=len(sorted_G) - 1)

    def _check(self, problem: Problem, relabels: bool) -> None:
        """Try the symmetries that all others are made of: the tables, a swap of two values, a turn of all."""
        symmetries = problem.symmetries()
        if any((ordered[1:] == ordered[:-1]).any() for ordered in self.sorted_G):
            raise InvalidInput(f"{problem.name} has two groups with the same atoms: bounds cannot follow symmetries")
        if symmetries is None:
            raise InvalidInput(f"{problem.name} states no symmetries to augment with")
        device, names = self.keys_N.device, np.arange(self.values)
        sources = np.concatenate([np.asarray(table) for table in symmetries.permutations])
        cases: list[tuple[Tensor, Tensor | None]] = [(torch.from_numpy(sources).to(device), None)]
        if relabels:
            renames = np.stack([np.roll(names, 1), np.concatenate([names[:2][::-1], names[2:]])])
            stay = np.arange(sources.shape[1])[None].repeat(2, axis=0)
            cases.append((torch.from_numpy(stay).to(device), torch.from_numpy(renames).to(device)))
        for source_BV, rename_BD in cases:
            keys_BN = self._moved_keys(source_BV, rename_BD)
            for family, (atoms_GA, sorted_G) in enumerate(zip(self.atoms_GA, self.sorted_G, strict=True)):
                sums_BG = _sums(keys_BN, atoms_GA)
                if not torch.equal(sorted_G[self._places(keys_BN, family)], sums_BG):
                    raise InvalidInput(
                        f"a symmetry of {problem.name} tears a group of atoms apart: its bounds cannot follow"
                    )


def _sums(keys_BN: Tensor, atoms_GA: Tensor) -> Tensor:
    """(B, G): the sum of the keys of each group's atoms."""
    taken = F.pad(keys_BN, (0, 1)).index_select(1, atoms_GA.flatten())
    return taken.view(len(keys_BN), *atoms_GA.shape).sum(-1)


def _padded(rule: Cardinality, total: int) -> Tensor:
    """(G, A) atoms with `total` instead of -1."""
    return torch.from_numpy(np.where(rule.atoms >= 0, rule.atoms, total))
