"""The places of a training batch, some of which keep their puzzle and state from one update to the next.

Shapes: B batch (of this process), V variable, H width.
"""

from __future__ import annotations

import torch
from torch import Tensor

from mull.models.recurrent_transformer import Trace
from mull.problem import Batch
from mull.recipes.recipe import Training


class Slots:
    """The places of a batch. Some carry puzzle and state into the next update, so that training sees late states."""

    def __init__(self, batch: Batch[Tensor], width: int, training: Training, rank: int = 0, world: int = 1) -> None:
        """Empty slots shaped like `batch`; slot i of this process is slot `i * world + rank` of the whole batch."""
        self.training = training
        place_B = torch.arange(len(batch), device=batch.solution.device) * world + rank
        self.batch = batch.map(torch.zeros_like)
        self.state_BVH = torch.zeros(*batch.solution.shape, width, device=batch.solution.device)
        self.reset_B = torch.ones(len(batch), device=batch.solution.device)
        self.carrying_B = place_B < training.carry * len(batch) * world

    def refill(self, new: Batch[Tensor], chance_B: Tensor) -> tuple[Batch[Tensor], tuple[Tensor, Tensor]]:
        """The batch to train on, and the states to resume from: a slot takes a new puzzle with its reset chance."""
        fresh = chance_B < self.reset_B
        kept_by_name = self.batch.arrays()
        for name, drawn in new.arrays().items():
            kept = kept_by_name[name]
            kept.copy_(torch.where(fresh.view(-1, *[1] * (kept.dim() - 1)), drawn, kept))
        return self.batch, (self.state_BVH, fresh)

    def keep(self, trace: Trace, solved_B: Tensor) -> None:
        """Remember where each slot stopped, and how likely it is to be reset."""
        self.state_BVH.copy_(trace.state_BVH.detach())
        chance = torch.where(solved_B, self.training.reset_solved, self.training.reset_unsolved)
        lasting_B = self.carrying_B & self.state_BVH.isfinite().all(-1).all(-1)
        self.reset_B.copy_(torch.where(lasting_B, chance, 1.0))
