"""Model files from trainings: checked against torch, scored, and refused when something does not fit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

from mull import export
from mull.errors import CorruptFile, InvalidInput
from mull.hub import Card, read_card
from mull.models.recurrent_transformer import ModelConfig, RecurrentTransformer
from mull.problem import Problem
from mull.problems.nonogram import Nonogram
from mull.problems.sudoku import Sudoku
from mull.problems.visual_sudoku import VisualSudoku
from mull.recipes import get_recipe, override
from mull.runtime import OnnxRuntime, TorchRuntime, load_runtime
from mull.train import train

TINY = ["train.count=64", "valid.count=8", "width=32", "batch=8", "recurrences=2", "updates=6", "validate_steps=2"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    recipe = override(get_recipe("sudoku-4x4"), TINY)
    return train(recipe, tmp_path_factory.mktemp("run") / "run", "cpu")


CARD = Card("x", Sudoku(2), {}, 0, 4)


@pytest.mark.parametrize(
    "config",
    [ModelConfig(width=32), ModelConfig(width=32, blocks=2, feedback=True, inject=True)],
    ids=["paper", "best"],
)
def test_onnx_agrees_with_torch(config: ModelConfig) -> None:
    torch.manual_seed(0)
    model = RecurrentTransformer(Sudoku(2), config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    members = export.members(model, Sudoku(2))
    assert export.members(model, Sudoku(2)) == members  # the same model gives the same bytes
    runtime = OnnxRuntime(CARD, members)
    assert export.difference(model, runtime, steps=32) < export.TOLERANCE


def test_a_model_that_magnifies_rounding_can_be_exported() -> None:
    torch.manual_seed(0)
    problem = Sudoku(2)
    model = RecurrentTransformer(problem, ModelConfig(width=32, feedback=True, inject=True)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(3 * torch.randn_like(parameter))
    reference, runtime = TorchRuntime(model, problem), OnnxRuntime(CARD, export.members(model, problem))
    inputs = export.random_inputs(problem, 64).numpy()
    wanted, found = (one.step(one.start(inputs), 48)[1] for one in (reference, runtime))
    assert np.abs(wanted - found).max() > 10 * export.TOLERANCE * np.abs(wanted).max()  # each on its own way
    assert export.difference(model, runtime, steps=48) < export.TOLERANCE
    with torch.no_grad():
        model.output.weight[0] += 0.1
    assert export.difference(model, runtime) > export.TOLERANCE


@pytest.mark.parametrize("problem", [Sudoku(2), VisualSudoku(), Nonogram()], ids=lambda problem: type(problem).__name__)
def test_graphs_hold_no_weights_and_no_paths(problem: Problem, root: Path) -> None:
    model = RecurrentTransformer(problem, ModelConfig(width=32, feedback=True, inject=True)).eval()
    members = export.members(model, problem)
    taken = set()
    for name in ("start.onnx", "step.onnx"):
        graph = onnx.load_from_string(members[name]).graph
        assert sum(len(tensor.raw_data) for tensor in graph.initializer) < 4096  # shapes and scales
        taken |= {name for node in graph.node for name in node.input}
        assert str(root).encode() not in members[name] and b"forward" not in members[name]
    assert taken >= model.state_dict().keys()


def test_a_run_becomes_a_model_file(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "mine.mull"
    export.export_model(run, out)
    card = read_card(out)
    assert (card.name, card.problem, card.steps) == ("mine", Sudoku(2), 2)
    assert card.provenance["recipe"] == "sudoku-4x4" and card.provenance["commit"]
    onnx, plain = load_runtime(out, "onnx"), load_runtime(out, "torch")
    inputs = export.random_inputs(Sudoku(2), 3).numpy()
    np.testing.assert_allclose(onnx.step(onnx.start(inputs), 4)[1], plain.step(plain.start(inputs), 4)[1], atol=1e-4)


def test_scores_go_onto_the_card(run: Path, tmp_path: Path) -> None:
    result = {"data": "some", "instances": 3, "steps": {"16": {"right": 0.5}}}
    (tmp_path / "scores.json").write_text(json.dumps(result))
    export.export_model(run, tmp_path / "a.mull", tmp_path / "scores.json")
    assert read_card(tmp_path / "a.mull").scores == {"some": {"instances": 3, "right": {"16": 0.5}}}
    export.export_model(tmp_path / "a.mull", tmp_path / "b.mull")  # a model file again, its card kept
    assert read_card(tmp_path / "b.mull").scores["some"]["instances"] == 3
    export.export_model(tmp_path / "a.mull", tmp_path / "b.mull", steps=7)
    assert read_card(tmp_path / "b.mull").steps == 7
    with pytest.raises(InvalidInput, match="at least 1"):
        export.export_model(run, tmp_path / "c.mull", steps=0)
    (tmp_path / "scores.json").write_text("[]")
    with pytest.raises(InvalidInput, match="mull eval"):
        export.export_model(run, tmp_path / "c.mull", tmp_path / "scores.json")
    assert not (tmp_path / "c.mull").exists()


def test_a_graph_that_differs_is_not_written(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "difference", lambda *_: float("nan"))
    with pytest.raises(CorruptFile, match="differs"):
        export.export_model(run, tmp_path / "a.mull")
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_weights_file(run: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="not been validated"):
        export.export_model(tmp_path, tmp_path / "a.mull")
    with pytest.raises(InvalidInput, match="no weights file"):
        export.export_model(run / "checkpoint.safetensors", tmp_path / "a.mull")
