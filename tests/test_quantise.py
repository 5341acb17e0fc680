from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from mull import export
from mull.graphs import complete, read_tensors
from mull.hub import Card
from mull.models.recurrent_transformer import ModelConfig, RecurrentTransformer
from mull.problems.sudoku import Sudoku
from mull.runtime import OnnxRuntime

CONFIGS = {
    "paper": ModelConfig(width=32),
    "best": ModelConfig(width=32, blocks=2, feedback=True, inject=True),
}


@pytest.fixture(scope="module", params=CONFIGS)
def exported(request: pytest.FixtureRequest) -> tuple[ModelConfig, dict[str, bytes]]:
    """A model whose weights are as large as those of trained ones, and what its file would hold."""
    torch.manual_seed(0)
    model = RecurrentTransformer(Sudoku(2), CONFIGS[request.param]).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model.config, export.members(model, Sudoku(2))


def test_int8_is_close_to_fp32(exported: tuple[ModelConfig, dict[str, bytes]]) -> None:
    _, members = exported
    card = Card("x", Sudoku(2), {}, 0, 4)
    plain, int8 = OnnxRuntime(card, members), OnnxRuntime(card, members, precision="int8")
    assert (plain.precision, int8.precision) == ("fp32", "int8")
    inputs = export.random_inputs(Sudoku(2), 8).numpy()
    (_, wanted), (_, found) = (runtime.step(runtime.start(inputs)) for runtime in (plain, int8))
    error = np.abs(found - wanted).max() / np.abs(wanted).max()
    assert 0 < error < 0.05


def test_the_graph_rounds_the_blocks_alone_and_holds_no_weights(exported: tuple[ModelConfig, dict[str, bytes]]) -> None:
    config, members = exported
    graph = onnx.load_from_string(members["step.int8.onnx"]).graph
    kinds = [node.op_type for node in graph.node]
    assert kinds.count("DynamicQuantizeMatMul") == 4 * config.blocks
    assert all(node.input[4] for node in graph.node if node.op_type == "DynamicQuantizeMatMul")  # with their biases
    assert sum(len(tensor.raw_data) for tensor in graph.initializer) < 4096
    assert len(members["step.int8.onnx"]) < 20_000


def test_onnxruntime_rounds_the_weights_once(exported: tuple[ModelConfig, dict[str, bytes]], tmp_path: Path) -> None:
    _, members = exported
    content = complete(members["step.int8.onnx"], read_tensors(members["weights.safetensors"]))
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = f"{tmp_path}/optimised.onnx"
    options.log_severity_level = 4
    onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    kinds = {node.op_type for node in onnx.load(options.optimized_model_filepath).graph.node}
    assert "DynamicQuantizeMatMul" in kinds and not kinds & {"Round", "Cast", "ReduceMax", "Abs"}
