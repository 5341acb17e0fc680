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

    There may be several sets of places that take turns, so that a puzzle comes back only after some updates on others:
    a model that sees the same ones again and again learns them by heart for as long as that lasts, and little else.
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
        device = batch.solution.device
        self.place_B = torch.arange(len(batch), device=device)
        self.carrying_B = self.place_B * world + rank < training.carry * len(batch) * world
        self.turn = torch.zeros((), dtype=torch.long, device=device)
        sets = training.carry_turns
        self.batch = batch[self.place_B.repeat(sets)].map(torch.zeros_like)
        self.state_BVH = torch.zeros(*self.batch.solution.shape, width if tokens_D is None else 0, device=device)
        self.reset_B = torch.ones(len(self.batch), device=device)

    def refill(self, new: Batch[Tensor], chance_B: Tensor) -> tuple[Batch[Tensor], tuple[Tensor, Tensor] | None]:
        """The batch to train on, and the states to resume from, if any; a slot takes a new puzzle by its chance."""
        rows_B = self._rows()
        fresh = chance_B < self.reset_B[rows_B]
        drawn_by_name, taken = new.arrays(), {}
        for name, kept in self.batch.arrays().items():
            mask = fresh.view(-1, *[1] * (kept.dim() - 1))
            taken[name] = torch.where(mask, drawn_by_name[name], kept[rows_B])
            kept.index_copy_(0, rows_B, taken[name])
        return Batch(**taken), (self.state_BVH[rows_B], fresh) if self.tokens_D is None else None

    def keep(self, trace: Trace, solved_B: Tensor) -> None:
        """Remember where each slot stopped, and how likely it is to be reset."""
        rows_B, state_BVH = self._rows(), trace.state_BVH.detach()
        if self.tokens_D is None:
            self.state_BVH.index_copy_(0, rows_B, state_BVH.to(self.state_BVH.dtype))
        else:
            self._give(rows_B, trace.logits_SLBVD[-1, -1].detach().float(), self.tokens_D)
        chance = torch.where(solved_B, self.training.reset_solved, self.training.reset_unsolved)
        lasting_B = self.carrying_B & state_BVH.isfinite().all(-1).all(-1)
        self.reset_B.index_copy_(0, rows_B, torch.where(lasting_B, chance, 1.0))
        self.turn.copy_((self.turn + 1) % self.training.carry_turns)

    def _rows(self) -> Tensor:
        """The places whose turn it is."""
        return self.turn * len(self.place_B) + self.place_B

    def _give(self, rows_B: Tensor, logits_BVD: Tensor, tokens_D: Tensor) -> None:
        """What is sure and right becomes a given."""
        before = self.batch[rows_B]
        share_BV, value_BV = logits_BVD.softmax(-1).max(-1)
        after = stated(before, (share_BV >= SURE) & (value_BV == before.solution), tokens_D)
        self.batch.inputs.index_copy_(0, rows_B, after.inputs)
        self.batch.given.index_copy_(0, rows_B, after.given)
