"""Solving many puzzles on a CPU: whether and when the kernel of `cpu_recur.py` is worth its start, and how to call it.

It needs numba, and an x86 processor with AVX-512 and its products of 8-bit and of bfloat16 numbers. Importing numba
takes half a second, and compiling several, once for each installation; nothing here does so before `load`.
`MULL_KERNELS=0` in the environment switches it off.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from threading import local
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mull.processor import has_avx512_products

Tensors = Mapping[str, NDArray[Any]]
"""A model's parameters, by name."""

NORMS = "norm_attention", "norm_mlp"
WORTH = 2.5e11
"""Products of two numbers from which on starting it pays: about four seconds of one core in onnxruntime."""
WORTH_COMPILING = 2e12
"""The same where it was not compiled yet."""
BLOCK = {
    "norm_attention": (1,),
    "qkv": (3, 1),
    "project": (1, 1),
    "norm_mlp": (1,),
    "expand": (4, 1),
    "contract": (1, 4),
}
"""A block's layers: the sides of their weights, in widths."""


def worth_from(config: Mapping[str, Any], tensors: Tensors, variables: int) -> int | None:
    """The number of recurrences, of all puzzles together, from which on it pays; None where it cannot run."""
    if os.environ.get("MULL_KERNELS", "1") == "0" or not has_avx512_products() or find_spec("numba") is None:
        return None
    if not supported(config, tensors):
        return None
    products = 12 * int(config["blocks"]) * int(config["width"]) ** 2 * variables
    return math.ceil((WORTH if _compiled() else WORTH_COMPILING) / products)


def supported(config: Mapping[str, Any], tensors: Tensors) -> bool:
    """Whether these are the parameters of a Recurrent Transformer, of sizes that the kernel can take."""
    width, heads, blocks = (config.get(name, 0) for name in ("width", "heads", "blocks"))
    if not (width and heads and blocks) or width % 32 or width % (2 * heads):
        return False
    shapes: dict[str, tuple[int, ...]] = {"norm_out.weight": (width,), "norm_out.bias": (width,)}
    for number in range(blocks):
        for name, sides in BLOCK.items():
            shape = tuple(side * width for side in sides)
            shapes |= {f"blocks.{number}.{name}.weight": shape, f"blocks.{number}.{name}.bias": shape[:1]}
    values = len(tensors.get("output.weight", ()))
    shapes["output.weight"] = (values, width)
    if config.get("feedback"):
        shapes["feedback.weight"] = (width, values)
    there = {name: (tensors[name].shape, tensors[name].dtype) for name in shapes if name in tensors}
    return values > 0 and there == {name: (shape, np.dtype(np.float32)) for name, shape in shapes.items()}


def _compiled() -> bool:
    """Whether numba has a compiled kernel at hand, as far as can be told without asking it."""
    return any((Path(__file__).parent / "__pycache__").glob("cpu_recur.recur-*.nbi"))


def load(config: Mapping[str, Any], tensors: Tensors, variables: int) -> Fused | None:
    """The kernel, compiled; None, with a warning, where the compiler fails."""
    try:
        return Fused(config, tensors, variables)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        warnings.warn(f"the kernel for CPUs cannot run here ({reason}): going on without it", stacklevel=3)
        return None


class Fused:
    """Recurrences of a model, on the thread that calls, with the lock of Python released."""

    def __init__(self, config: Mapping[str, Any], tensors: Tensors, variables: int) -> None:
        """Round the weights, and compile the kernel."""
        check_compiler()
        from mull.kernels.cpu_recur import recur
        from mull.kernels.rounded import make_room, round_weights

        self._recur, self._make_room = recur, make_room
        self._heads, self._inject, self._feed = (
            config["heads"],
            bool(config.get("inject")),
            bool(config.get("feedback")),
        )
        self._weights = round_weights(tensors, config["blocks"], config["heads"], self._inject, self._feed)
        self._variables, self._values = variables, len(tensors["output.weight"])
        self._rooms = local()
        nothing = np.zeros((0, variables, config["width"]), np.float32)
        self(nothing, nothing, 1)

    def __call__(
        self, state_BVH: NDArray[Any], context_BVH: NDArray[Any] | None, count: int
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """The state after `count` recurrences, and the last logits (B, V, D)."""
        after_BVH = np.array(state_BVH, np.float32, order="C")
        context = after_BVH if context_BVH is None else np.require(context_BVH, np.float32, ["C", "W"])
        logits_BVD = np.empty((*after_BVH.shape[:2], self._values), np.float32)
        flat = [array.reshape(-1, array.shape[-1]) for array in (after_BVH, context, logits_BVD)]
        options = self._variables, self._heads, count, self._inject, self._feed
        self._recur(*flat, self._weights, self._room(), *options)
        return after_BVH, logits_BVD

    def _room(self) -> Any:
        """This thread's memory: new pages would cost more than what is written into them."""
        room = getattr(self._rooms, "room", None)
        if room is None:
            room = self._rooms.room = self._make_room(self._variables, *self._weights.out_HD.shape)
        return room


def check_compiler() -> None:
    """LLVM ends the process where it has no instruction for what it is asked for."""
    from llvmlite.binding import get_host_cpu_features
    from numba.core import config

    settings: dict[str, Any] = vars(config)
    found = get_host_cpu_features()
    wanted = all(found.get(name) for name in ("avx512f", "avx512bw", "avx512vnni", "avx512bf16"))
    if settings["CPU_NAME"] or settings["CPU_FEATURES"] or not settings["ENABLE_AVX"] or not wanted:
        raise RuntimeError("numba compiles for another processor")
