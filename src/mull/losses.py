"""Losses on a trace: each recurrence and block counts, and unknown labels do not.

Shapes: S step, L block, B batch, V variable, D value.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from mull.models.recurrent_transformer import Trace
from mull.problem import Batch, Problem


@dataclass(frozen=True)
class LossWeights:
    """How the terms of the loss add up."""

    supervised: float = 1.0
    """Weight of the cross entropy against known labels."""
    last_step_only: bool = False
    """Count the last output alone instead of all recurrences and blocks (the paper's ablation)."""


def supervised(logits_SLBVD: Tensor, batch: Batch[Tensor], last_step_only: bool = False) -> Tensor:
    """Cross entropy, averaged over outputs and labelled variables.

    The paper's text sums, its code averages; we average, so that the learning rate does not depend on R or the batch.
    """
    if last_step_only:
        logits_SLBVD = logits_SLBVD[-1:, -1:]
    log_probability = F.log_softmax(logits_SLBVD.float(), dim=-1)
    labels = batch.solution.long().clamp(min=0).expand(logits_SLBVD.shape[:-1]).unsqueeze(-1)
    nll = -log_probability.gather(-1, labels).squeeze(-1)
    count = batch.labelled.sum().clamp(min=1) * nll.shape[0] * nll.shape[1]
    return torch.where(batch.labelled, nll, 0.0).sum() / count


def total_loss(
    trace: Trace, batch: Batch[Tensor], problem: Problem, weights: LossWeights
) -> tuple[Tensor, dict[str, Tensor]]:
    """The weighted sum to minimise, and its terms by name."""
    terms = {"supervised": supervised(trace.logits_SLBVD, batch, weights.last_step_only)}
    total = weights.supervised * terms["supervised"]
    if trace.given_BV is not None:  # reaches the layer that tells it alone, so its weight would change nothing
        terms["given"] = F.binary_cross_entropy_with_logits(trace.given_BV.float(), batch.given.float())
        total = total + terms["given"]
    return total, terms
