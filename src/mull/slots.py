"""The places of a training batch, some of which keep their puzzle and state from one update to the next.

Shapes: B batch (of this process), V variable, H width, D value.
"""

from __future__ import annotations

import torch
from torch import Tensor

from mull.givens import stated
from mull.models.recurrent_transformer import Trace
from mull.problem import Batch
from mull.recipes.recipe import Training

SURE = 0.9
"""Probability from which on a right value becomes a given of a slot that carries givens on."""


class Slots:
    """The places of a batch. Some carry puzzle and state into the next update, so that training sees late states.

    With `tokens_D`, which state values in inputs, they carry on what the model was sure of and had right instead, as
    givens, and begin anew: what it will see where boards are solved in rounds (`mull.predict`).
    """

    def __init__(
        self,
        batch: Batch[Tensor],
        width: int,
        training: Training,
        rank: int = 0,
        world: int = 1,
        tokens_D: Tensor | None = None,
    ) -> None:
        """Empty slots shaped like `batch`; slot i of this process is slot `i * world + rank` of the whole batch."""
        self.training, self.tokens_D = training, tokens_D
        place_B = torch.arange(len(batch), device=batch.solution.device) * world + rank
        self.batch = batch.map(torch.zeros_like)
        self.state_BVH = torch.zeros(*batch.solution.shape, width, device=batch.solution.device)
        self.reset_B = torch.ones(len(batch), device=batch.solution.device)
        self.carrying_B = place_B < training.carry * len(batch) * world

    def refill(self, new: Batch[Tensor], chance_B: Tensor) -> tuple[Batch[Tensor], tuple[Tensor, Tensor] | None]:
        """The batch to train on, and the states to resume from, if any; a slot takes a new puzzle by its chance."""
        fresh = chance_B < self.reset_B
        kept_by_name = self.batch.arrays()
        for name, drawn in new.arrays().items():
            kept = kept_by_name[name]
            kept.copy_(torch.where(fresh.view(-1, *[1] * (kept.dim() - 1)), drawn, kept))
        return self.batch, (self.state_BVH, fresh) if self.tokens_D is None else None

    def keep(self, trace: Trace, solved_B: Tensor) -> None:
        """Remember where each slot stopped, and how likely it is to be reset."""
        if self.tokens_D is not None:
            self._give(trace.logits_SLBVD[-1, -1].detach().float(), self.tokens_D)
        self.state_BVH.copy_(trace.state_BVH.detach())
        chance = torch.where(solved_B, self.training.reset_solved, self.training.reset_unsolved)
        lasting_B = self.carrying_B & self.state_BVH.isfinite().all(-1).all(-1)
        self.reset_B.copy_(torch.where(lasting_B, chance, 1.0))

    def _give(self, logits_BVD: Tensor, tokens_D: Tensor) -> None:
        """What is sure and right becomes a given."""
        share_BV, value_BV = logits_BVD.softmax(-1).max(-1)
        after = stated(self.batch, (share_BV >= SURE) & (value_BV == self.batch.solution), tokens_D)
        self.batch.inputs.copy_(after.inputs)
        self.batch.given.copy_(after.given)
