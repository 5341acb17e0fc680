"""Cross entropy: each recurrence and block counts, and unknown labels do not.

Shapes: S step, L block, B batch, V variable, D value.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from mull.problem import Batch


def supervised(logits_SLBVD: Tensor, batch: Batch[Tensor]) -> Tensor:
    """Cross entropy, averaged over outputs and labelled variables.

    The paper's text sums, its code averages; we average, so that the learning rate does not depend on R or the batch.
    """
    log_probability = F.log_softmax(logits_SLBVD.float(), dim=-1)
    labels = batch.solution.long().clamp(min=0).expand(logits_SLBVD.shape[:-1]).unsqueeze(-1)
    nll = -log_probability.gather(-1, labels).squeeze(-1)
    count = batch.labelled.sum().clamp(min=1) * nll.shape[0] * nll.shape[1]
    return torch.where(batch.labelled, nll, 0.0).sum() / count
