"""The yardstick of the speed benchmarks: the Recurrent Transformer written down plainly, in the paper's shape.

Separate layers for query, key and value; attention matrices computed one by one and kept for every recurrence, like all
logits; float32, eager, AdamW with its defaults, and `loss.item()` after every update. It is here to compare with, and
for nothing else. It computes what `mull.models.recurrent_transformer` does (the tests compare), options beyond the
paper included, so that a ratio of times says how well the same work is done.

Shapes: S step, B batch, V variable, D value, H width, N head.
"""

from __future__ import annotations

import math
import sys

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mull.models.recurrent_transformer import ModelConfig, RecurrentTransformer
from mull.problem import Problem, Tokens

PAPER = ModelConfig()
"""L1H4, width 128, dropout 0.1."""


class NaiveBlock(nn.Module):
    """Pre-norm attention and MLP."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width, self.heads = config.width, config.heads
        self.norm_attention, self.norm_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)
        self.project = nn.Linear(width, width)
        self.drop_attention, self.drop_project = nn.Dropout(config.dropout), nn.Dropout(config.dropout)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(config.dropout)
        )

    def forward(self, x: Tensor, context: Tensor | None) -> tuple[Tensor, Tensor]:
        """The next state, and the attention matrices (B, N, V, V)."""
        batch, variables, width = x.size()
        normed = self.norm_attention(x)
        if context is not None:
            normed = normed + context
        shape = (batch, variables, self.heads, width // self.heads)
        query = self.query(normed).view(shape).transpose(1, 2)
        key = self.key(normed).view(shape).transpose(1, 2)
        value = self.value(normed).view(shape).transpose(1, 2)
        attention = query @ key.transpose(-2, -1) * (1.0 / math.sqrt(key.size(-1)))
        attention = F.softmax(attention, dim=-1)
        mixed = self.drop_attention(attention) @ value
        mixed = mixed.transpose(1, 2).contiguous().view(batch, variables, width)
        x = x + self.drop_project(self.project(mixed))
        return x + self.mlp(self.norm_mlp(x)), attention


class Naive(nn.Module):
    """The whole model, for problems whose inputs are tokens."""

    def __init__(self, problem: Problem, config: ModelConfig = PAPER) -> None:
        super().__init__()
        variables, kind = problem.variables(), problem.input_kind()
        if not isinstance(kind, Tokens):
            raise TypeError("the yardstick takes tokens")
        self.config = config
        self.embed = nn.Embedding(kind.vocabulary, config.width)
        self.positions = nn.Parameter(torch.zeros(1, variables.count, config.width))
        self.drop = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList([NaiveBlock(config) for _ in range(config.blocks)])
        self.norm_out, self.output = nn.LayerNorm(config.width), nn.Linear(config.width, variables.values, bias=False)
        self.feedback = nn.Linear(variables.values, config.width, bias=False) if config.feedback else None
        self.norm_context = nn.LayerNorm(config.width) if config.inject else None
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.02)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)

    def forward(self, inputs: Tensor, steps: int) -> tuple[list[Tensor], list[Tensor]]:
        """Logits (B, V, D) and attention (B, N, V, V) of every block in every recurrence."""
        embedded = self.embed(inputs) + self.positions
        context = None if self.norm_context is None else self.norm_context(embedded)
        x = self.drop(embedded)
        logits, attentions = [], []
        for _ in range(steps):
            for block in self.blocks:
                x, attention = block(x, context)
                attentions.append(attention)
                logits.append(self.output(self.norm_out(x)))
            if self.feedback is not None:
                x = x + self.feedback(F.softmax(logits[-1], dim=-1))
        return logits, attentions


def make(problem: Problem, config: ModelConfig = PAPER, device: str | torch.device = "cpu") -> Naive:
    """A new model on a device."""
    return Naive(problem, config).to(device)


def from_ours(ours: RecurrentTransformer, problem: Problem, device: str | torch.device = "cpu") -> Naive:
    """The yardstick with the weights of one of our models: it gives the same answers."""
    weights = dict(ours.state_dict())
    for number in range(ours.config.blocks):
        for kind in ("weight", "bias"):
            parts = weights.pop(f"blocks.{number}.qkv.{kind}").chunk(3)
            for name, part in zip(("query", "key", "value"), parts, strict=True):
                weights[f"blocks.{number}.{name}.{kind}"] = part
            for name, place in (("expand", 0), ("contract", 2)):
                weights[f"blocks.{number}.mlp.{place}.{kind}"] = weights.pop(f"blocks.{number}.{name}.{kind}")
    weights["positions"] = weights["positions"][None]
    naive = Naive(problem, ours.config)
    naive.load_state_dict(weights)
    return naive.to(device).eval()


@torch.no_grad()
def answer(model: Naive, inputs: Tensor, steps: int) -> Tensor:
    """The answers (B, V) after some recurrences."""
    logits, _ = model(inputs, steps)
    return logits[-1].argmax(-1)


def optimiser(model: Naive, learning_rate: float = 6e-4, weight_decay: float = 0.1) -> torch.optim.AdamW:
    """AdamW with decay on the matrices of linear layers."""
    decayed = [module.weight for module in model.modules() if isinstance(module, nn.Linear)]
    others = [p for p in model.parameters() if all(p is not other for other in decayed)]
    groups = [{"params": decayed, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=learning_rate, betas=(0.9, 0.95))


def train_step(model: Naive, optimise: torch.optim.AdamW, inputs: Tensor, solution: Tensor, steps: int) -> float:
    """One update on inputs and labels (B, V): the loss."""
    model.train()
    logits, _ = model(inputs, steps)
    loss = torch.stack([F.cross_entropy(each.flatten(0, 1), solution.flatten()) for each in logits]).mean()
    model.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimise.step()
    return loss.item()


def shipped(name: str, device: str | torch.device = "cpu") -> tuple[Naive, Problem]:
    """The yardstick with the weights of a model that ships, and its problem."""
    from mull.checkpoint import model_from_weights
    from mull.hub import find_model, read_model

    card, members = read_model(find_model(name), ("weights.safetensors",))
    ours = model_from_weights(card.problem, dict(card.model), members["weights.safetensors"])
    return from_ours(ours, card.problem, device), card.problem


def main() -> None:
    """Print the answer to one puzzle: what `mull solve` does, from a cold start."""
    model, problem = shipped("sudoku")
    inputs = torch.from_numpy(problem.parse(sys.argv[1]).inputs).long()[None]
    print(problem.write_answer(answer(model, inputs, 64)[0].numpy()))


if __name__ == "__main__":
    main()
