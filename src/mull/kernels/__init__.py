"""Fused kernels for all recurrences of a model: Triton's on CUDA devices, numba's for training on CPUs (`cpu.py`).

The plain path is the reference. Nothing here imports Triton or numba before it is used: without them, or where a model
is not supported, the plain path runs.
`MULL_KERNELS=0` in the environment switches the kernels off.
"""

from __future__ import annotations

import os
from importlib.util import find_spec

import torch

WIDTHS: tuple[int, ...] = (16, 32, 64, 128)
MAX_VARIABLES = 1024


def usable(width: int, heads: int, puzzles: int, variables: int, device: torch.device) -> bool:
    """Whether the kernels can run a model of this size here, now: on CUDA, in bfloat16."""
    return (
        device.type == "cuda"
        and os.environ.get("MULL_KERNELS", "1") != "0"
        and torch.is_autocast_enabled("cuda")
        and torch.get_autocast_dtype("cuda") == torch.bfloat16
        and supported(width, heads, puzzles, variables)
        and find_spec("triton") is not None
        and torch.cuda.get_device_capability(device) >= (9, 0)  # tensor descriptors are slow or missing before
    )


def supported(width: int, heads: int, puzzles: int, variables: int) -> bool:
    """Whether there are kernels for a model of this size."""
    few = puzzles * variables * 4 * width < 2**31  # offsets are 32 bits wide
    return width in WIDTHS and width // heads <= 128 and variables <= MAX_VARIABLES and few and puzzles > 0


def usable_on_cpu(width: int, heads: int, values: int, state: torch.Tensor) -> bool:
    """Whether a model of this size can be trained by the kernels for CPUs: rows of sixteen float32 numbers."""
    return (
        state.device.type == "cpu"
        and state.dtype == torch.float32
        and torch.is_grad_enabled()
        and os.environ.get("MULL_KERNELS", "1") != "0"
        and width % 16 == 0
        and width // heads % 16 == 0
        and values <= width
        and state.numel() > 0
        and find_spec("numba") is not None
    )
