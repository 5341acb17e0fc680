"""Cross entropy: each recurrence and block counts, and unknown labels do not.

Shapes: S step, L block, B batch, V variable, D value.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from mull.problem import Batch


def supervised(logits_SLBVD: Tensor, batch: Batch[Tensor], fused: bool = False) -> Tensor:
    """Cross entropy, averaged over outputs and labelled variables.

    The paper's text sums, its code averages; we average, so that the learning rate does not depend on R or the batch.
    `fused`: by the kernel for CPUs, if the logits are from there.
    """
    if fused:
        from mull.kernels.cpu_loss import cross_entropy

        return cross_entropy(logits_SLBVD, batch.solution.long(), batch.labelled)
    labels = batch.solution.long().clamp(min=0).expand(logits_SLBVD.shape[:-1])
    nll = -_log_probability(logits_SLBVD.float(), labels)
    count = batch.labelled.sum().clamp(min=1) * nll.shape[0] * nll.shape[1]
    return torch.where(batch.labelled, nll, 0.0).sum() / count


def _log_probability(logits_SLBVD: Tensor, labels_SLBV: Tensor) -> Tensor:
    """Of the labels. On a CPU, softmax over few neighbours takes four times as long as over rows that lie apart."""
    if logits_SLBVD.device.type != "cpu":
        return F.log_softmax(logits_SLBVD, dim=-1).gather(-1, labels_SLBV.unsqueeze(-1)).squeeze(-1)
    turned = F.log_softmax(logits_SLBVD.flatten(0, -2).t().contiguous(), dim=0)
    return turned.gather(0, labels_SLBV.flatten()[None]).view_as(labels_SLBV)
