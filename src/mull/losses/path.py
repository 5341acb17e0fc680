"""L_path: the edges that a shortest path has at each node.

Shapes: S step, L block, B batch, V variable (nodes, then edges), N node, E edge; O output (S * L).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from mull.errors import InvalidInput
from mull.losses.straight_through import binarise
from mull.problem import Batch, Problem
from mull.problems.shortest_path import END, ShortestPath


def path(
    logits_SLBVD: Tensor,
    batch: Batch[Tensor],
    problem: Problem,
    label_free: bool = False,
    estimator: str = "identity",
) -> Tensor:
    """L_path, averaged over outputs, instances and all nodes, as in the paper's code (its text sums).

    An end node has one edge in the path: (degree - 1)^2. In the paper's form another node has two, (degree - 2)^2, if
    it is in the label's path, and any number elsewhere; nodes of instances without labels count if they are end nodes.

    `label_free`: another node has none or two, min(degree^2, (degree - 2)^2). At degree 1 both are equally far: the
    gradient goes towards two edges if the model holds the node itself to be in the path, else towards none. This is 0
    exactly if all degrees are those of a path between the end nodes, which may have cycles apart from it.
    """
    if not isinstance(problem, ShortestPath):
        raise InvalidInput(f"the path loss is for shortest paths, not for {problem.name}")
    nodes = problem.grid.nodes
    truth_OBV = binarise(logits_SLBVD.float().softmax(-1)[..., 1], estimator).flatten(0, 1)
    incident_EN = incidence(problem, logits_SLBVD.device)
    degree_OBN = truth_OBV[..., nodes:] @ incident_EN
    is_end_BN = batch.inputs[:, :nodes] == END
    if label_free:
        target = _nearest(degree_OBN.detach(), truth_OBV[..., :nodes].detach())
        counts = torch.ones_like(is_end_BN)
    else:
        in_path_BE = (batch.solution[:, nodes:] == 1) & batch.labelled[:, nodes:]
        counts = is_end_BN | (in_path_BE.float() @ incident_EN > 0)
        target = torch.full_like(degree_OBN, 2)
    squares_OBN = (degree_OBN - torch.where(is_end_BN, 1.0, target)).square()
    return torch.where(counts, squares_OBN, 0.0).mean()


def _nearest(degree: Tensor, in_path: Tensor) -> Tensor:
    """0 or 2, whichever the degree is nearer to; at 1 what the node's own variable says."""
    return torch.where(degree == 1, 2 * in_path, torch.where(degree > 1, 2.0, 0.0))


@lru_cache(maxsize=16)
def incidence(problem: ShortestPath, device: torch.device) -> Tensor:
    """(E, N): 1 where an edge has a node (the paper's M, transposed)."""
    grid = problem.grid
    table = np.zeros((grid.edges, grid.nodes), dtype=np.float32)
    table[np.arange(grid.edges)[:, None], grid.ends] = 1
    return torch.from_numpy(table).to(device)
