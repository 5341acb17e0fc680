"""What the heads of a trained model look at: mean attention of the last recurrence, as small numbers in text.

Shapes: B batch, N head, V variable.
"""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from mull.recipes import Recipe
from mull.runtime import TorchRuntime

BOARDS = 32


def maps(runtime: TorchRuntime, recipe: Recipe, quick: bool) -> dict[str, Any]:
    """Attention (N, V, V) on validation boards in bytes, and each head's share for every kind of group."""
    boards = recipe.valid.load(recipe.seed)[slice(2 if quick else BOARDS)]
    device = next(runtime.model.parameters()).device
    with torch.no_grad():
        inputs = torch.as_tensor(boards.inputs, device=device)
        trace = runtime.model(inputs, recipe.training.recurrences, attention=True)
    assert trace.attention_SLBNVV is not None
    seen_NVV = trace.attention_SLBNVV[-1, -1].mean(dim=0).float().cpu().numpy()
    peaks = seen_NVV.max(axis=(1, 2), keepdims=True)
    share = {name: (seen_NVV * peers).sum(axis=(1, 2)) / len(peers) for name, peers in groups(recipe).items()}
    text = base64.b64encode(np.round(255 * seen_NVV / peaks).astype(np.uint8).tobytes()).decode()
    found = {"heads": len(seen_NVV), "variables": seen_NVV.shape[1], "bytes": text, "boards": len(boards)}
    return {"attention": {**found, "share": {name: one.tolist() for name, one in share.items()}}}


def groups(recipe: Recipe) -> dict[str, NDArray[np.bool_]]:
    """For each kind of group (V, V) whether two variables share one."""
    count, rules = recipe.problem.variables().count, recipe.problem.constraints()
    return {name: rule.adjacency(count) for name, rule in zip(("row", "column", "box"), rules, strict=False)}


def pictures(attention: dict[str, Any]) -> NDArray[np.uint8]:
    """The maps (N, V, V) that `maps` wrote."""
    values = np.frombuffer(base64.b64decode(attention["bytes"]), dtype=np.uint8)
    return values.reshape(attention["heads"], attention["variables"], attention["variables"])
