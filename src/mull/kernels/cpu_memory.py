"""What the kernels for CPUs compute in: a plan, weights as they want them, memory, and sums of gradients.

Shapes: S recurrence, L block, T = S L, M token, H width, D value.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mull.kernels.cpu_gradients import fits, make_units, usable
from mull.kernels.fold import FIELDS, MATRICES, BlockWeights
from mull.kernels.simd import LANES

Array = NDArray[Any]


@dataclass(frozen=True)
class Plan:
    """What a run depends on, apart from tensors."""

    variables: int
    width: int
    values: int
    heads: int
    blocks: int
    steps: int
    feedback: bool
    inject: bool
    dropout: float
    bf16: bool

    @property
    def dtype(self) -> torch.dtype:
        """Of the factors of matrix products."""
        return torch.bfloat16 if self.bf16 else torch.float32

    def drop(self, seed: int, index: int, place: int, begin: int) -> tuple[np.uint32, np.uint32, np.float32, int]:
        """What decides on dropout at one place of a block's application, for tokens from `begin` on."""
        mixed = (seed + 0x9E3779B9 * (3 * index + place)) & 0xFFFFFFFF
        return np.uint32(mixed), np.uint32(int(self.dropout * 2**32)), np.float32(1 / (1 - self.dropout)), begin


def array(tensor: Tensor) -> Array:
    """The same memory for numba; bfloat16 as uint16."""
    tensor = tensor.view(torch.uint16) if tensor.dtype == torch.bfloat16 else tensor
    return tensor.numpy()


class Room:
    """Memory for one thread's share of the tokens: tensors, and by the same names arrays of the same memory."""

    def __init__(self, plan: Plan, tokens: int) -> None:
        times, width = plan.steps * plan.blocks, plan.width
        kept = {"normed_qkv": 1, "qkv": 3, "mixed": 1, "normed_mlp": 1, "hidden": 4, "slope": 4, "normed_out": 1}
        if plan.inject:
            kept["read"] = 1
        passing = {"branch": 1, "expanded": 4, "grad_qkv": 3, "grad_hidden": 4, "grad_branch": 1, "grad_read": 1}
        whole = {n: torch.empty(times, tokens, w * width, dtype=plan.dtype) for n, w in kept.items()}
        panels = -(-plan.variables // LANES)
        keys = tokens // plan.variables * plan.heads * panels * panels * LANES
        whole["shares"] = torch.empty(times, keys, LANES, dtype=plan.dtype)
        if not plan.inject:
            whole["read"] = whole["normed_qkv"]
        self.passing = {n: torch.empty(tokens, w * width, dtype=plan.dtype) for n, w in passing.items()}
        self.kept = {name: list(tensor.unbind()) for name, tensor in whole.items()}
        """By name, one of each block of each recurrence; what is made anew each time is `passing`."""
        sizes = {name: (left * width, right * width) for name, (left, right) in MATRICES.items()}
        self.units = {name: make_units(*size) for name, size in sizes.items() if plan.bf16 and fits(*size) and usable()}
        """Memory for gradients of matrices: where a kernel computes them, and where torch does."""
        self.products = {
            name: torch.empty(size, dtype=plan.dtype) for name, size in sizes.items() if name not in self.units
        }
        self.arrays = {name: array(tensor) for name, tensor in {**whole, **self.passing}.items()}
        self.scales = np.empty((3, times, tokens), np.float32)
        self.tokens = tokens


@dataclass(frozen=True)
class Prepared:
    """Weights for all threads: matrices in the type of the products, the rest as float32 arrays (1, n) or (D, H)."""

    matrices: list[dict[str, Tensor]]
    vectors: list[dict[str, Array]]
    out_w: Array
    out_b: Array
    feedback: Array

    @staticmethod
    def of(plan: Plan, out_w: Tensor, out_b: Tensor, feedback: Tensor | None, flat: list[Tensor]) -> Prepared:
        """From the weights' tensors; `flat` has each block's in turn."""
        blocks = [BlockWeights(*flat[at : at + FIELDS]) for at in range(0, len(flat), FIELDS)]
        vectors = ("qkv_b", "gain", "mix_b", "expand_b", "contract_b")
        fed = out_w if feedback is None else feedback.t()
        return Prepared(
            [{name: getattr(block, name).to(plan.dtype) for name in MATRICES} for block in blocks],
            [{name: getattr(block, name)[None].numpy() for name in vectors} for block in blocks],
            out_w.contiguous().numpy(),
            out_b[None].numpy(),
            fed.contiguous().numpy(),
        )


class Sums:
    """One thread's gradients of all weights."""

    def __init__(self, plan: Plan) -> None:
        width = plan.width
        sizes = {"qkv_b": 3, "gain": 1, "mix_b": 1, "expand_b": 4, "contract_b": 1}
        self.vectors = [
            {name: torch.zeros(1, size * width).numpy() for name, size in sizes.items()} for _ in range(plan.blocks)
        ]
        self.matrices = [
            {name: torch.zeros(left * width, right * width) for name, (left, right) in MATRICES.items()}
            for _ in range(plan.blocks)
        ]
        self.out_w = torch.zeros(plan.values, width).numpy()
        self.out_b = torch.zeros(1, plan.values).numpy()
        self.feedback = torch.zeros(plan.values, width).numpy()
        self.zero = torch.zeros(1, 3 * width).numpy()

    def add(self, other: Sums) -> None:
        """Another thread's."""
        for block in range(len(self.vectors)):
            for name, array in other.vectors[block].items():
                self.vectors[block][name] += array
            for name, tensor in other.matrices[block].items():
                self.matrices[block][name] += tensor
        for name in ("out_w", "out_b", "feedback"):
            getattr(self, name)[:] += getattr(other, name)

    def gradients(self, plan: Plan) -> list[Tensor | None]:
        """In the order of the parameters: output layer, feedback, then each block's."""
        found: list[Tensor | None] = [torch.from_numpy(self.out_w), torch.from_numpy(self.out_b[0])]
        found.append(torch.from_numpy(self.feedback).t() if plan.feedback else None)
        for vectors, matrices in zip(self.vectors, self.matrices, strict=True):
            for name in (field.name for field in fields(BlockWeights)):
                if name == "gain" and not plan.inject:
                    found.append(None)
                else:
                    found.append(matrices[name] if name in matrices else torch.from_numpy(vectors[name][0]))
        return found


_free: dict[tuple[Plan, int], list[Room]] = {}


def take_room(plan: Plan, tokens: int) -> Room:
    """Memory that an update before left, or new."""
    waiting = _free.get((plan, tokens), [])
    return waiting.pop() if waiting else Room(plan, tokens)


def give_back(plan: Plan, room: Room) -> None:
    """Keep memory for the next update of the same size, and none of other sizes."""
    key = plan, room.tokens
    for other in [other for other in _free if other[0] != plan]:
        del _free[other]
    _free.setdefault(key, []).append(room)
