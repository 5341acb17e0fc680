"""Models that need no training: they know one 4x4 board, and find it after as many recurrences as cells are empty."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import save

from mull.hub import Card, write_model
from mull.problems.sudoku import Sudoku
from mull.runtime import FloatArray, Runtime, State

PROBLEM = Sudoku(box=2)
BOARD = "1234341221434321"
OTHER = "4321214334121234"
"""A board that the models do not know."""
STEPS = 20


def puzzle(empty: int, board: str = BOARD, seed: int = 0) -> str:
    """The board with some empty cells."""
    cells = np.random.default_rng(seed).permutation(len(board))[:empty]
    return "".join("." if cell in cells else value for cell, value in enumerate(board))


def table() -> FloatArray:
    """Logits (V, D) of the board: times a positive number they state it, times a negative one they do not."""
    values = np.array([int(value) - 1 for value in BOARD])
    return (2.0 * np.eye(4)[values] - 1.0).astype(np.float32)


class LookupRuntime(Runtime):
    """The model in numpy; remembers the size of every batch that it stepped."""

    def __init__(self, batch: int = 8, workers: int = 2) -> None:
        self.problem, self.card = PROBLEM, None
        self.batch, self.workers = batch, workers
        self.sizes: list[int] = []

    def start(self, inputs: NDArray[Any]) -> State:
        empty = (inputs == 0).sum(axis=1, keepdims=True).astype(np.float32)
        return State((np.zeros_like(empty), empty))

    def step(self, state: State, count: int = 1) -> tuple[State, FloatArray]:
        done, empty = state.tensors
        self.sizes.append(len(state))
        done = done + count
        return State((done, empty)), (done - empty + 0.5)[:, :, None] * table()


def members(context: bool = True) -> dict[str, bytes]:
    """The same model as ONNX graphs and a table; without a context it is right from the first recurrence on."""
    start_nodes = [
        helper.make_node("Equal", ["inputs", "zero"], ["is_empty"]),
        helper.make_node("Cast", ["is_empty"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["mask", "axis"], ["context"], keepdims=1),
        helper.make_node("Sub", ["context", "context"], ["state"]),
    ]
    constants = {"zero": np.array(0), "axis": np.array([1])}
    column = {"state": ["batch", 1], "context": ["batch", 1]}
    start = _graph(start_nodes, {"inputs": ["batch", 16]}, column, constants, TensorProto.INT64)
    step_nodes = [
        helper.make_node("Add", ["state", "one"], ["next_state"]),
        helper.make_node("Sub", ["next_state", "context" if context else "half"], ["ahead"]),
        helper.make_node("Add", ["ahead", "half"], ["sign"]),
        helper.make_node("Unsqueeze", ["sign", "axis"], ["sign3"]),
        helper.make_node("Mul", ["sign3", "table"], ["logits"]),
    ]
    constants = {"one": np.float32(1.0), "half": np.float32(0.5), "axis": np.array([2])}
    inputs = column if context else {"state": ["batch", 1]}
    outputs: dict[str, list[str | int]] = {"next_state": ["batch", 1], "logits": ["batch", 16, 4]}
    step = _graph(step_nodes, inputs, outputs, constants, TensorProto.FLOAT)
    return {"start.onnx": start, "step.onnx": step, "weights.safetensors": save({"table": table()})}


def card(name: str = "tiny") -> Card:
    return Card(name, PROBLEM, {"width": 4}, parameters=64, steps=STEPS, provenance={"recipe": "by hand"})


def write_tiny(path: Path, context: bool = True) -> Path:
    """A model file with the model."""
    write_model(path, card(path.stem), members(context))
    return path


def _graph(nodes: Any, inputs: Any, outputs: Any, constants: dict[str, Any], input_type: int) -> bytes:
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(name, input_type, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    return bytes(model.SerializeToString())
