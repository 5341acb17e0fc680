"""What turns gradients into steps: AdamW, or Muon for the matrices of the blocks and AdamW for everything else.

Learning rates are tensors, and all state is there from the start: a captured CUDA graph reads the one anew in each
update, and a checkpoint can name the other.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from mull.models.embed import ImageEmbedder
from mull.recipes.recipe import Training


def decay_groups(model: nn.Module, weight_decay: float, embeddings: float = 0.0) -> list[dict[str, Any]]:
    """Weight decay on the matrices of linear and convolutional layers, and a share of it, `embeddings`, on those of
    tokens and positions."""
    matrices = {id(m.weight) for m in model.modules() if isinstance(m, nn.Linear | nn.Conv2d)}
    names = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding)}
    names |= {id(p) for name, p in model.named_parameters() if name == "positions"}
    groups: dict[float, list[nn.Parameter]] = {weight_decay: [], 0.0: []}
    for parameter in model.parameters():
        share = 1.0 if id(parameter) in matrices else embeddings if id(parameter) in names else 0.0
        groups.setdefault(share * weight_decay, []).append(parameter)
    return [{"params": parameters, "weight_decay": decay} for decay, parameters in groups.items()]


class Rates:
    """Learning rates as tensors: of Muon's matrices, of the same while they are AdamW's, of images, and of the rest."""

    def __init__(self, device: torch.device) -> None:
        self.rest, self.images, self.muon, self.before = (torch.zeros((), device=device) for _ in range(4))

    def fill(self, rate: float, training: Training, step: int) -> None:
        """Set all of them for the next step."""
        slow, since = rate * training.image_rate, step - training.muon_start
        waiting = training.optimiser == "muon" and since < 0
        rising = min(1.0, (since + 1) / max(1, training.warmup)) if training.muon_start else 1.0
        self.images.fill_(slow)
        self.rest.fill_(slow if waiting else slow + (rate - slow) * rising)
        self.muon.fill_(0.0 if waiting else rate * rising)
        self.before.fill_(slow if waiting else 0.0)


def optimisers(
    model: nn.Module, training: Training, rates: Rates, broken: Tensor, graphed: bool
) -> list[torch.optim.Optimizer]:
    """One for each part of the model that has its own rule; `graphed` if their steps are captured in a CUDA graph.

    Where `broken` is 1, a gradient is not finite, and steps change nothing.
    """
    groups = decay_groups(model, training.weight_decay, training.decay_embeddings)
    found: list[torch.optim.Optimizer] = []
    if training.optimiser == "muon":
        inner = {id(p) for name, p in model.named_parameters() if name.startswith("blocks.") and p.dim() == 2}
        matrices = [p for p in groups[0]["params"] if id(p) in inner]
        groups[0]["params"] = [p for p in groups[0]["params"] if id(p) not in inner]
        found.append(Muon(matrices, rates.muon, broken, training.weight_decay))
    groups = by_rate(groups, model, rates)
    if found and training.muon_start:
        groups.append({"params": matrices, "weight_decay": training.weight_decay, "lr": rates.before})
    adam = torch.optim.AdamW(groups, lr=rates.rest, betas=(0.9, 0.95), fused=True, capturable=graphed)
    adam.found_inf = broken  # type: ignore[attr-defined]  # as torch's own scaler of gradients does it
    for group in adam.param_groups:
        for parameter in group["params"]:
            adam.state[parameter] = {
                "step": torch.zeros((), device=parameter.device),
                "exp_avg": torch.zeros_like(parameter),
                "exp_avg_sq": torch.zeros_like(parameter),
            }
    return [*found, adam]


def by_rate(groups: list[dict[str, Any]], model: nn.Module, rates: Rates) -> list[dict[str, Any]]:
    """The groups, with the network that reads images, if there is one, in groups of its own."""
    reading = {id(p) for m in model.modules() if isinstance(m, ImageEmbedder) for p in m.parameters()}
    found = []
    for group in groups:
        for apart, rate in ((False, rates.rest), (True, rates.images)):
            members = [p for p in group["params"] if (id(p) in reading) == apart]
            found += [{**group, "params": members, "lr": rate}] if members else []
    return found


class Muon(torch.optim.Optimizer):
    """Steps along the momentum with all its singular values set to about 1 (Jordan et al., 2024).

    Steps are scaled to the size of AdamW's (0.2 for each weight on average; Liu et al., 2025), so that learning rate
    and decay mean the same for both. A matrix of several square ones, such as that of queries, keys and values, counts
    as those.
    """

    def __init__(
        self, matrices: list[nn.Parameter], lr: Tensor, broken: Tensor, weight_decay: float, momentum: float = 0.95
    ) -> None:
        """For matrices of linear layers, (out, in); no step where `broken` is 1."""
        super().__init__(matrices, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum})
        self.broken = broken
        for matrix in matrices:
            self.state[matrix] = {"momentum": torch.zeros_like(matrix)}

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """One step for all matrices that have a gradient."""
        for group in self.param_groups:
            whole, fade = self.broken == 0, group["momentum"]
            lr = group["lr"] * whole
            matrices = [matrix for matrix in group["params"] if matrix.grad is not None]
            if not matrices:
                continue
            averages = [self.state[matrix]["momentum"] for matrix in matrices]
            pairs = zip(matrices, averages, strict=True)
            gradients = [torch.where(whole, matrix.grad, average) for matrix, average in pairs]
            torch._foreach_lerp_(averages, gradients, 1 - fade)
            moves = _moves(list(torch._foreach_lerp(gradients, averages, fade)))
            torch._foreach_mul_(moves, lr)
            torch._foreach_mul_(matrices, 1 - lr * group["weight_decay"])
            torch._foreach_sub_(matrices, moves)


def _moves(wanted: list[Tensor]) -> list[Tensor]:
    """Each matrix made orthogonal and scaled; those of equal shape, or of equal shape when turned, in one batch."""
    parts_NOI, alike = list[Tensor](), dict[tuple[int, int], list[int]]()
    for index, matrix in enumerate(wanted):
        out, into = matrix.shape
        parts = matrix.view(3, into, into) if out == 3 * into else matrix[None]
        parts_NOI.append(parts if parts.shape[1] <= into else parts.transpose(1, 2))
        alike.setdefault((parts_NOI[-1].shape[1], parts_NOI[-1].shape[2]), []).append(index)
    found = list(wanted)
    for (_, longer), members in alike.items():
        batch = orthogonal(torch.cat([parts_NOI[index] for index in members])) * (0.2 * longer**0.5)
        pieces = batch.split([len(parts_NOI[index]) for index in members])
        for index, piece in zip(members, pieces, strict=True):
            turned = piece.shape[2] != wanted[index].shape[1]
            piece = piece.transpose(1, 2).contiguous() if turned else piece
            found[index] = piece.view_as(wanted[index])
    return found


def orthogonal(matrices_NOI: Tensor, rounds: int = 5) -> Tensor:
    """Each matrix with its singular values between about 0.7 and 1.2, by Newton and Schulz's iteration in bfloat16."""
    tall = matrices_NOI.shape[1] > matrices_NOI.shape[2]
    x = (matrices_NOI.transpose(1, 2) if tall else matrices_NOI).bfloat16()
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(rounds):
        square = x @ x.transpose(1, 2)
        factor = torch.baddbmm(square, square, square, beta=-4.7750, alpha=2.0315)
        x = torch.baddbmm(x, factor, x, beta=3.4445)
    found: Tensor = x.transpose(1, 2) if tall else x
    return found.to(matrices_NOI.dtype)
