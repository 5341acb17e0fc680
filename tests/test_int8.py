"""int8: the graph is close to the other, answers do not depend on their batch, and cards say whether it may be used."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

from mull import export, int8
from mull.errors import InvalidInput
from mull.graphs import complete, load_session, read_tensors
from mull.hub import Card, read_card, read_members, write_model
from mull.models.recurrent_transformer import ModelConfig, RecurrentTransformer
from mull.problem import NumpyBatch, stack
from mull.problems.sudoku import Sudoku
from mull.quantise import factors, quantise
from mull.runtime import OnnxRuntime, load_runtime
from mull.terminal import int8_verdict

PROBLEM = Sudoku(2)
CONFIGS = {
    "paper": ModelConfig(width=32),
    "best": ModelConfig(width=32, blocks=2, feedback=True, inject=True),
}


@pytest.fixture(scope="module")
def batch() -> NumpyBatch:
    rng = np.random.default_rng(0)
    return stack([PROBLEM.generate(rng) for _ in range(80)])


@pytest.fixture(scope="module", params=CONFIGS)
def exported(request: pytest.FixtureRequest, batch: NumpyBatch) -> tuple[ModelConfig, Card, dict[str, bytes]]:
    """A model whose weights are as large as those of trained ones, and what its file would hold."""
    torch.manual_seed(0)
    model = RecurrentTransformer(PROBLEM, CONFIGS[request.param]).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    card = Card("x", PROBLEM, {}, 0, 4)
    members = export.members(model, PROBLEM)
    return model.config, card, {**members, OnnxRuntime.INT8: int8.calibrated(card, members, batch[:32])}


Exported = tuple[ModelConfig, Card, dict[str, bytes]]


def test_int8_is_close_to_fp32(exported: Exported, batch: NumpyBatch) -> None:
    _, card, members = exported
    plain, rounded = OnnxRuntime(card, members), OnnxRuntime(card, members, precision="int8")
    assert (plain.precision, rounded.precision) == ("fp32", "int8")
    (_, wanted), (_, found) = (runtime.step(runtime.start(batch.inputs[32:64])) for runtime in (plain, rounded))
    error = np.abs(found - wanted).max() / np.abs(wanted).max()
    assert 0 < error < 0.05


def test_answers_do_not_depend_on_their_batch(exported: Exported, batch: NumpyBatch) -> None:
    _, card, members = exported
    runtime = OnnxRuntime(card, members, precision="int8")
    _, together = runtime.step(runtime.start(batch.inputs[:8]), 4)
    for row in range(8):
        _, alone = runtime.step(runtime.start(batch.inputs[row : row + 1]), 4)
        np.testing.assert_allclose(alone[0], together[row], atol=1e-5)


def test_the_graph_rounds_the_blocks_alone_and_holds_no_weights(exported: Exported) -> None:
    config, _, members = exported
    graph = onnx.load_from_string(members[OnnxRuntime.INT8]).graph
    products = [node for node in graph.node if node.op_type == "MatMulIntegerToFloat"]
    assert len(products) == 4 * config.blocks
    assert all(node.input[6] for node in products)  # with their biases
    assert sum(len(tensor.raw_data) for tensor in graph.initializer) < 4096
    assert len(members[OnnxRuntime.INT8]) < 20_000


def test_onnxruntime_rounds_the_weights_once(exported: Exported, tmp_path: Path) -> None:
    import onnxruntime

    _, _, members = exported
    content = complete(members[OnnxRuntime.INT8], read_tensors(members["weights.safetensors"]))
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    options.log_severity_level = 4
    onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    kinds = {node.op_type for node in onnx.load(options.optimized_model_filepath).graph.node}
    assert "MatMulIntegerToFloat" in kinds and not kinds & {"Round", "Cast", "ReduceMax", "Abs"}


@pytest.mark.parametrize(("least", "largest"), [(0.5, 2.0), (-3.0, -1.0), (0.0, 0.0), (-1.0, 1.0)])
def test_any_range(exported: Exported, least: float, largest: float) -> None:
    _, _, members = exported
    step = members["step.onnx"]
    graph = quantise(step, dict.fromkeys(factors(step), (least, largest)))
    load_session(complete(graph, read_tensors(members["weights.safetensors"])))


@pytest.fixture
def path(exported: Exported, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: NumpyBatch) -> Path:
    """A model file without int8, on a machine that has it, with data."""
    _, card, members = exported
    monkeypatch.setattr(int8, "has_int8_products", lambda: True)
    monkeypatch.setattr(int8, "load_data", lambda *_: batch)
    write_model(tmp_path / "x.mull", card, {name: members[name] for name in OnnxRuntime.MEMBERS})
    return tmp_path / "x.mull"


def test_a_card_says_what_was_measured(path: Path, exported: Exported) -> None:
    about = int8.add_int8(path, "some")
    assert about["data"] == "some" and about["instances"] == 16 and about["steps"] == 4
    assert about["allowed"] == all(row["fp32"] - row["int8"] <= 0.001 for row in (about["right"], about["verified"]))
    assert read_card(path).int8 == about
    assert load_runtime(path, precision="int8").precision == "int8"
    assert read_members(path, ["step.onnx"])["step.onnx"] == exported[2]["step.onnx"]


@pytest.mark.parametrize("lost", [0.0, 0.01])
def test_int8_that_loses_is_not_allowed(path: Path, lost: float, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = {"instances": 16, "steps": 4, "right": {"fp32": 0.9, "int8": 0.95}}
    measured = {**scores, "verified": {"fp32": 0.9, "int8": 0.9 - lost}}
    monkeypatch.setattr(int8, "compare", lambda *_: measured)
    about = int8.add_int8(path, "some")
    assert about["allowed"] is (lost == 0)
    verdict = int8_verdict(about)
    assert ("will be used" in verdict) is (lost == 0) and "right 90.00 % in fp32 and 95.00 % in int8" in verdict


def test_int8_cannot_be_measured(path: Path, monkeypatch: pytest.MonkeyPatch, batch: NumpyBatch) -> None:
    before = path.read_bytes()
    monkeypatch.setattr(int8, "load_data", lambda *_: batch[:64])
    with pytest.raises(InvalidInput, match="too few"):
        int8.add_int8(path, "some")
    monkeypatch.setattr(int8, "has_int8_products", lambda: False)
    with pytest.raises(InvalidInput, match="this processor"):
        int8.add_int8(path, "some")
    assert path.read_bytes() == before
