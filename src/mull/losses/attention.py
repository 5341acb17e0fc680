"""The attention loss: every variable should attend to those that it shares a constraint with (and to itself).

Shapes: S step, L block, B batch, N head, V variable.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from mull.losses.straight_through import binarise
from mull.problem import Problem


@lru_cache(maxsize=16)
def adjacency(problem: Problem, device: torch.device) -> Tensor:
    """(V, V): 1 where two variables share a constraint. What a model has to watch for this loss."""
    return torch.from_numpy(problem.adjacency()).to(device, torch.float32)


def attention(watched_SLBNV: Tensor, at_once: bool = False, estimator: str = "identity") -> Tensor:
    """From the share of each variable's attention that adjacent ones get, averaged over all but what is counted.

    As in the paper's code, L_[1] of each variable and head: (b(share) - 1)^2. With `at_once`, as in its text, L_[V] of
    all variables together: (sum of b(share) - V)^2, which is up to V^2 = 6,561 times as large on a 9x9 board.
    """
    attentive = binarise(watched_SLBNV.float(), estimator)
    if at_once:
        return (attentive.sum(-1) - attentive.shape[-1]).square().mean()
    return (attentive - 1).square().mean()
