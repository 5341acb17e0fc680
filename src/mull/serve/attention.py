"""What each head looks at, computed with numpy from a model file's weights: no torch needed.

The attention of a recurrence follows from the state before it: layer norm, queries, keys, softmax (see
`models/recurrent_transformer.py`). Of a model with several blocks, it is that of the first.

Shapes: S step, V variable, H width, N head.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mull.errors import UserError
from mull.graphs import Stored, read_tensors
from mull.hub import read_model
from mull.runtime import FloatArray, Runtime

NAMES = ("norm_attention.weight", "norm_attention.bias", "qkv.weight", "qkv.bias")
DTYPES = {"F32": np.float32, "F16": np.float16, "F64": np.float64}
EPSILON = 1e-5
"""That of torch's layer norm."""


class Heads:
    """The attention of a model's first block."""

    def __init__(self, path: Path) -> None:
        """Read what is needed of a model file; raises UserError for a model that has no such block."""
        card, members = read_model(path, ("weights.safetensors",))
        tensors = read_tensors(members["weights.safetensors"])
        names = [f"blocks.0.{name}" for name in NAMES]
        if not {"heads", "width"} <= card.model.keys() or any(name not in tensors for name in names):
            raise UserError(f"the model {card.name} has no attention to show")
        self.heads, self._inject = int(card.model["heads"]), bool(card.model.get("inject"))
        self._scale, self._shift, self._weight, self._bias = (_array(tensors[name]) for name in names)

    def maps(self, state_VH: FloatArray, context_VH: FloatArray | None, cell: int) -> FloatArray:
        """(N, V): how much of a variable's attention goes to each variable, by head."""
        centred = state_VH - state_VH.mean(axis=-1, keepdims=True)
        normed = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + EPSILON) * self._scale + self._shift
        if self._inject and context_VH is not None:
            normed = normed + context_VH
        width = normed.shape[-1]
        query = (normed[cell] @ self._weight[:width].T + self._bias[:width]).reshape(self.heads, -1)
        key = normed @ self._weight[width : 2 * width].T + self._bias[width : 2 * width]
        scores_NV = np.einsum("nd,vnd->nv", query, key.reshape(len(normed), self.heads, -1)) / np.sqrt(query.shape[-1])
        exponent = np.exp(scores_NV - scores_NV.max(axis=-1, keepdims=True))
        return np.asarray(exponent / exponent.sum(axis=-1, keepdims=True))


def states(runtime: Runtime, inputs: NDArray[Any], steps: int) -> tuple[FloatArray, FloatArray | None]:
    """The states (S, V, H) before each of the recurrences, and the context (V, H) of all of them."""
    state = runtime.start(inputs[None])
    found = [_plain(state.tensors[0])]
    for _ in range(steps - 1):
        state, _ = runtime.step(state)
        found.append(_plain(state.tensors[0]))
    return np.stack(found), _plain(state.tensors[1]) if len(state.tensors) > 1 else None


def _plain(tensor: Any) -> FloatArray:
    """The first of a batch, as an array of its own: a runtime may use its memory again."""
    row = tensor[0]
    return np.array(row if isinstance(row, np.ndarray) else row.cpu().numpy(), dtype=np.float32)


def _array(tensor: Stored) -> FloatArray:
    if tensor.type not in DTYPES:
        raise UserError(f"weights of the type {tensor.type} cannot be read without torch")
    return np.frombuffer(tensor.content, DTYPES[tensor.type]).reshape(tensor.shape).astype(np.float32)
