"""Random symmetries for every row of a batch, on the device that trains.

This is knowledge about the problem that the paper's models do not get: a recipe that uses it says so.

Shapes: B batch, V variable, D value. All shapes are static and nothing is read back from the device, so the whole
call can be captured in a CUDA graph; random numbers then come from the device's default generator.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from mull.constraints import IntArray
from mull.data.groups import GroupMoves
from mull.errors import InvalidInput
from mull.problem import Batch, Problem

TABLE_ENTRIES = 1 << 19
"""Tables are multiplied out while a product has no more entries: fewer, larger look-ups."""


class Augment:
    """Applies an independent random symmetry of the problem to every row of a batch."""

    def __init__(
        self, problem: Problem, device: torch.device | str, geometric_only: bool = False, bounds: bool = False
    ) -> None:
        """`geometric_only` moves variables but leaves the values' names alone; `bounds`: batches carry them."""
        symmetries = problem.symmetries()
        if symmetries is None:
            raise InvalidInput(f"{problem.name} states no symmetries to augment with")
        self.tables = [torch.as_tensor(table, device=device) for table in multiply_out(symmetries.permutations)]
        """(k, V) each: where the content of every variable comes from."""
        self.value_tokens: Tensor | None = None
        """(D,) token of each value, if values may be relabelled."""
        if symmetries.value_tokens is not None and not geometric_only:
            self.value_tokens = torch.as_tensor(np.asarray(symmetries.value_tokens), device=device)
            vocabulary = int(np.max(symmetries.value_tokens)) + 1
            self.tokens = torch.arange(vocabulary, device=device)
        self.moves = GroupMoves(problem, device, self.value_tokens is not None) if bounds else None

    def __call__(self, batch: Batch[Tensor], generator: torch.Generator | None = None) -> Batch[Tensor]:
        """The batch under fresh random symmetries; `generator` None means the device's default one."""
        source_BV = self._sources(len(batch.solution), generator)
        rename_BD = self._renames(len(batch.solution), generator)
        bounds = batch.bounds
        if bounds is not None:
            if self.moves is None:
                raise InvalidInput("these batches carry bounds: make the augmentation with `bounds=True`")
            bounds = self.moves(bounds, source_BV, rename_BD)
        moved = Batch(
            inputs=_take(batch.inputs, source_BV),
            solution=batch.solution.gather(1, source_BV),
            given=batch.given.gather(1, source_BV),
            labelled=batch.labelled.gather(1, source_BV),
            bounds=bounds,
        )
        return moved if rename_BD is None else self._relabel(moved, rename_BD)

    def _sources(self, rows: int, generator: torch.Generator | None) -> Tensor:
        """(B, V): the variable whose content each variable gets, composed of one random draw from every table."""
        source_BV: Tensor | None = None
        for table in self.tables:
            choice_B = torch.randint(len(table), (rows,), device=table.device, generator=generator)
            step_BV = table[choice_B]
            source_BV = step_BV if source_BV is None else source_BV.gather(1, step_BV)
        if source_BV is None:
            raise InvalidInput("the problem's symmetries have no permutations")
        return source_BV

    def _renames(self, rows: int, generator: torch.Generator | None) -> Tensor | None:
        """(B, D): a random new name for each value, if values may be relabelled."""
        if self.value_tokens is None:
            return None
        values, device = len(self.value_tokens), self.value_tokens.device
        return torch.rand(rows, values, device=device, generator=generator).argsort(dim=1)

    def _relabel(self, batch: Batch[Tensor], rename_BD: Tensor) -> Batch[Tensor]:
        """Rename the values of each row, in the inputs and in the solution; bounds are moved already."""
        assert self.value_tokens is not None
        rows, value_tokens = len(batch.solution), self.value_tokens
        tokens_BT = self.tokens.expand(rows, -1).scatter(1, value_tokens.expand(rows, -1), value_tokens[rename_BD])
        # A solution may hold UNKNOWN (negative) where nothing is labelled; that stays.
        renamed_BV = rename_BD.gather(1, batch.solution.clamp(min=0).long()).to(batch.solution.dtype)
        return replace(
            batch,
            inputs=tokens_BT.gather(1, batch.inputs.long()).to(batch.inputs.dtype),
            solution=torch.where(batch.solution < 0, batch.solution, renamed_BV),
        )


def multiply_out(tables: tuple[IntArray, ...]) -> list[IntArray]:
    """Tables (k, V) with neighbours combined into one table of all their products where that stays small."""
    merged: list[IntArray] = []
    for table in tables:
        if merged and merged[-1].shape[0] * table.size <= TABLE_ENTRIES:
            first = merged.pop()
            merged.append(first[:, table].reshape(-1, table.shape[1]))
        else:
            merged.append(np.asarray(table, dtype=np.int64))
    return merged


def _take(inputs: Tensor, source_BV: Tensor) -> Tensor:
    """Inputs (B, V, ...) with variables moved."""
    index = source_BV.reshape(*source_BV.shape, *([1] * (inputs.dim() - 2))).expand(inputs.shape)
    return inputs.gather(1, index)
