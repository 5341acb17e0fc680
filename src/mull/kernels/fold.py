"""Weights as the kernels want them: the affine maps of layer norms are folded into the matrices that follow.

    (x g + b) W^T + c  =  x (W g)^T + (W b + c)

Plain torch, so that autograd undoes it. Shapes: H width, D value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class BlockWeights:
    """One block's weights, in float32."""

    qkv_w: Tensor
    qkv_b: Tensor
    gain: Tensor
    """The first layer norm's, for models that add a context after it, which rules out folding."""
    mix_w: Tensor
    mix_b: Tensor
    expand_w: Tensor
    expand_b: Tensor
    contract_w: Tensor
    contract_b: Tensor

    def __iter__(self) -> Iterator[Tensor]:
        return (getattr(self, field.name) for field in fields(self))


FIELDS = len(fields(BlockWeights))
MATRICES = {"qkv_w": (3, 1), "mix_w": (1, 1), "expand_w": (4, 1), "contract_w": (1, 4)}
"""The sides of a block's matrices, in widths."""


@dataclass(frozen=True)
class Weights:
    """All weights of a recurrence."""

    blocks: tuple[BlockWeights, ...]
    out_w: Tensor
    out_b: Tensor
    feedback: Tensor | None


def fold(norm: nn.LayerNorm, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor]:
    """Matrix and bias that give the same without the layer norm's affine map."""
    shift = torch.mv(weight, norm.bias)
    return weight * norm.weight, shift if bias is None else shift + bias


def fold_model(
    blocks: Iterable[nn.Module], norm_out: nn.LayerNorm, output: Tensor, feedback: Tensor | None, inject: bool
) -> Weights:
    """The weights of a model whose blocks have the layers that `fold_block` reads."""
    return Weights(tuple(fold_block(block, inject) for block in blocks), *fold(norm_out, output, None), feedback)


def fold_block(block: Any, inject: bool) -> BlockWeights:
    """One block's weights; with `inject` a context comes after the first layer norm, so only its bias is folded."""
    norm, qkv, mix, expand, contract = block.norm_attention, block.qkv, block.project, block.expand, block.contract
    qkv_w, qkv_b = fold(norm, qkv.weight, qkv.bias)
    expand_w, expand_b = fold(block.norm_mlp, expand.weight, expand.bias)
    if inject:
        qkv_w = qkv.weight
    return BlockWeights(
        qkv_w, qkv_b, norm.weight, mix.weight, mix.bias, expand_w, expand_b, contract.weight, contract.bias
    )
