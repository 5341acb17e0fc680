"""Weights as the kernels want them: the affine maps of layer norms are folded into the matrices that follow.

    (x g + b) W^T + c  =  x (W g)^T + (W b + c)

Plain torch, so that autograd undoes it. Shapes: H width, D value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class BlockWeights:
    """One block's weights, in float32."""

    qkv_w: Tensor
    qkv_b: Tensor
    gain: Tensor
    """The first layer norm's, which cannot be folded where a context is added after it; then the bias is in there."""
    mix_w: Tensor
    mix_b: Tensor
    expand_w: Tensor
    expand_b: Tensor
    contract_w: Tensor
    contract_b: Tensor

    def __iter__(self) -> Iterator[Tensor]:
        return (getattr(self, field.name) for field in fields(self))


@dataclass(frozen=True)
class Weights:
    """All weights of a recurrence."""

    blocks: tuple[BlockWeights, ...]
    out_w: Tensor
    out_b: Tensor
    feedback: Tensor | None
    heads: int


def fold(norm: nn.LayerNorm, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor]:
    """Matrix and bias that give the same without the layer norm's affine map."""
    shift = torch.mv(weight, norm.bias)
    return weight * norm.weight, shift if bias is None else shift + bias


def fold_block(
    norm_attention: nn.LayerNorm,
    qkv: nn.Linear,
    project: nn.Linear,
    norm_mlp: nn.LayerNorm,
    expand: nn.Linear,
    contract: nn.Linear,
    inject: bool,
) -> BlockWeights:
    """One block's weights; with `inject` the first layer norm is left to the kernels (see `shifted_context`)."""
    qkv_w, qkv_b = (qkv.weight, qkv.bias) if inject else fold(norm_attention, qkv.weight, qkv.bias)
    if inject:  # the layer norm's bias reaches queries, keys and values like a constant context
        qkv_b = qkv_b + torch.mv(qkv.weight, norm_attention.bias)
    expand_w, expand_b = fold(norm_mlp, expand.weight, expand.bias)
    return BlockWeights(
        qkv_w, qkv_b, norm_attention.weight, project.weight, project.bias, expand_w, expand_b, contract.weight, contract.bias
    )  # fmt: skip
