"""Reading the cells of a flattened board: a small network, run by onnxruntime alone."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from mull.graphs import complete, read_tensors, session
from mull.photo.find import MARGIN, SIDE, ink

PIXELS = 32
"""Side of a cell as the network sees it."""
HERE = Path(__file__).parent
GRAPH, WEIGHTS = HERE / "reader.onnx", HERE / "reader.safetensors"


def cut_cells(flat: NDArray[np.uint8]) -> NDArray[np.float32]:
    """The 81 cells (81, PIXELS, PIXELS) of a flattened board with its margin: ink, 1 where it is as dark as print."""
    side = round((SIDE + 2 * MARGIN) * PIXELS)
    if flat.shape != (side, side):
        flat = np.asarray(cv2.resize(flat, (side, side), interpolation=cv2.INTER_AREA), np.uint8)
    sheet, edge = ink(flat, PIXELS), round(MARGIN * PIXELS)
    board = sheet[edge:-edge, edge:-edge]
    board = np.clip(board / max(float(np.quantile(board, 0.97)), 0.05), 0, 1.5)
    cells = board.reshape(SIDE, PIXELS, SIDE, PIXELS).swapaxes(1, 2).reshape(SIDE * SIDE, PIXELS, PIXELS)
    return np.ascontiguousarray(cells, np.float32)


def read_cells(cells: NDArray[np.float32]) -> NDArray[np.float32]:
    """Probabilities (cells, 10) of: empty, 1, ..., 9."""
    logits: NDArray[Any] = _network().run(["logits"], {"cells": cells[:, None]})[0]
    exponent = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(exponent / exponent.sum(axis=-1, keepdims=True), np.float32)


@lru_cache(maxsize=1)
def _network() -> Any:
    graph = complete(GRAPH.read_bytes(), read_tensors(WEIGHTS.read_bytes()))
    return session(graph, 1, {"cells"}, {"logits"})
