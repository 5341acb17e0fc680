from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from safetensors.numpy import save

from mull import hub
from mull import runtime as runtimes
from mull.errors import CorruptFile, InvalidInput
from mull.export import random_inputs
from mull.graphs import complete, read_tensors
from mull.runtime import OnnxRuntime, Runtime, TorchRuntime, load_runtime
from tiny import BOARD, PROBLEM, LookupRuntime, card, members, puzzle, table, write_tiny


def inputs(*puzzles: str) -> np.ndarray:
    return np.stack([PROBLEM.parse(text).inputs for text in puzzles])


class TinyTorch(torch.nn.Module):
    """The contract of a model with the least inside: remembers how often it was stepped, and in which mode."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4, generator=torch.Generator().manual_seed(0)))
        self.modes: list[bool] = []

    def start(self, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        assert tokens.dtype == torch.uint8  # as the problem has it: embedders take any type
        embedded = tokens[:, :, None] * self.weight
        return embedded, embedded

    def tell_given(self, context: torch.Tensor) -> torch.Tensor | None:
        return None

    def step(self, state: torch.Tensor, context: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.modes.append(self.training)
        after = state + context
        return after, torch.stack([state, after])

    def advance(self, state: torch.Tensor, context: torch.Tensor, steps: int) -> tuple[torch.Tensor, torch.Tensor]:
        for _ in range(steps):
            state, logits = self.step(state, context)
        return state, logits


@pytest.mark.parametrize("context", [True, False])
def test_onnx_equals_the_same_model_in_numpy(tmp_path: Path, context: bool) -> None:
    onnx = load_runtime(write_tiny(tmp_path / "tiny.mull", context))
    assert isinstance(onnx, OnnxRuntime)
    batch = inputs(puzzle(1), puzzle(3), puzzle(5))
    state, twin = onnx.start(batch), LookupRuntime()
    expected = twin.start(batch)
    for _ in range(6):
        state, logits = onnx.step(state)
        expected, wanted = twin.step(expected)
        if context:
            np.testing.assert_allclose(logits, wanted, rtol=1e-6)
        else:
            assert PROBLEM.check(batch, logits.argmax(axis=-1)).all()
    assert logits.dtype == np.float32
    assert len(state.tensors) == (2 if context else 1)


@pytest.mark.parametrize("make", [lambda: OnnxRuntime(card(), members()), lambda: TorchRuntime(TinyTorch(), PROBLEM)])
def test_rows_do_not_depend_on_their_batch(make: object) -> None:
    runtime: Runtime = make()  # type: ignore[operator]
    batch = inputs(puzzle(1), puzzle(3), puzzle(5), puzzle(7))
    whole = runtime.start(batch)
    assert len(whole) == 4
    some = whole[np.array([3, 1])]
    _, all_logits = runtime.step(whole, 3)
    _, some_logits = runtime.step(some, 3)
    np.testing.assert_allclose(some_logits, all_logits[[3, 1]], rtol=1e-6)


def test_several_steps_at_once() -> None:
    for runtime in (OnnxRuntime(card(), members()), TorchRuntime(TinyTorch(), PROBLEM), LookupRuntime()):
        start = runtime.start(inputs(puzzle(4)))
        state = start
        for _ in range(5):
            state, logits = runtime.step(state)
        np.testing.assert_allclose(logits, runtime.step(start, 5)[1], rtol=1e-6)


@pytest.mark.parametrize("training", [True, False])
def test_torch_evaluates_without_changing_the_model(training: bool) -> None:
    model = TinyTorch().train(training)
    runtime = TorchRuntime(model, PROBLEM)
    _, logits = runtime.step(runtime.start(inputs(BOARD)))
    assert isinstance(logits, np.ndarray)
    assert logits.shape == (1, 16, 4)
    assert model.modes == [False]
    assert model.training is training


def test_torch_takes_the_last_block() -> None:
    model = TinyTorch()
    runtime = TorchRuntime(model, PROBLEM)
    state, logits = runtime.step(runtime.start(inputs(BOARD)))
    np.testing.assert_array_equal(logits, state.tensors[0].numpy())


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_torch_tells_what_is_likely_where_the_state_is(device: str) -> None:
    runtime = TorchRuntime(TinyTorch(), PROBLEM, device=device)
    start, wanted = runtime.start(inputs(puzzle(1), puzzle(3))), np.arange(32).reshape(2, 16) % 4
    values, shares = runtime.likeliest(start, 3)
    expected_values, expected_shares = Runtime.likeliest(runtime, start, 3)
    np.testing.assert_array_equal(values, expected_values)
    np.testing.assert_allclose(shares, expected_shares, rtol=1e-5)
    expected = Runtime.likelihood(runtime, start, wanted, 3)
    np.testing.assert_allclose(runtime.likelihood(start, wanted, 3), expected, rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(runtime.likelihood(start, values, 3), shares, rtol=1e-5)


@pytest.mark.gpu
def test_rows_on_the_gpu() -> None:
    runtime = TorchRuntime(TinyTorch(), PROBLEM, device="cuda")
    whole = runtime.start(inputs(puzzle(1), puzzle(3), puzzle(5)))
    assert whole.tensors[0].is_cuda
    _, some_logits = runtime.step(whole[np.flatnonzero([True, False, True])], 3)
    np.testing.assert_allclose(some_logits, runtime.step(whole, 3)[1][[0, 2]], rtol=1e-5)


def test_graphs_that_are_no_graphs(tmp_path: Path) -> None:
    for wrong in ({"step.onnx": b"garbage"}, {"start.onnx": members()["step.onnx"]}):
        hub.write_model(tmp_path / "wrong.mull", card(), {**members(), **wrong})
        with pytest.raises(CorruptFile, match="graphs"):
            load_runtime(tmp_path / "wrong.mull")


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (save({}), "graphs cannot be loaded"),
        (save({"other": table()}), "graphs cannot be loaded"),
        (save({"table": table().astype(np.float16)}), "graphs cannot be loaded"),
        (save({"table": table()})[:-1], "weights cannot be read"),
        (b"none", "weights cannot be read"),
    ],
    ids=["none", "other", "type", "short", "garbage"],
)
def test_weights_that_do_not_fit_the_graphs(tmp_path: Path, weights: bytes, message: str) -> None:
    hub.write_model(tmp_path / "wrong.mull", card(), {**members(), "weights.safetensors": weights})
    with pytest.raises(CorruptFile, match=message) as caught:
        load_runtime(tmp_path / "wrong.mull")
    assert "\n" not in str(caught.value)


def test_a_file_without_weights(tmp_path: Path) -> None:
    graphs = {name: content for name, content in members().items() if name.endswith(".onnx")}
    hub.write_model(tmp_path / "wrong.mull", card(), graphs)
    with pytest.raises(CorruptFile, match="not a usable model file"):
        load_runtime(tmp_path / "wrong.mull")


@pytest.mark.parametrize("prefix", ["", "model."])
def test_files_whose_graphs_hold_the_weights_too(tmp_path: Path, prefix: str) -> None:
    """As they were written at first: each number twice, with names of their own in the graphs."""
    found = members()
    model = onnx.load_from_string(complete(found["step.onnx"], read_tensors(found["weights.safetensors"])))
    for node in model.graph.node:
        node.input[:] = [prefix + name if name == "table" else name for name in node.input]
    for tensor in model.graph.initializer:
        tensor.name = prefix + tensor.name if tensor.name == "table" else tensor.name
    onnx.checker.check_model(model)
    hub.write_model(tmp_path / "old.mull", card(), {**found, "step.onnx": model.SerializeToString()})
    old, new = load_runtime(tmp_path / "old.mull"), load_runtime(write_tiny(tmp_path / "new.mull"))
    batch = inputs(puzzle(1), puzzle(5))
    ours, theirs = (runtime.step(runtime.start(batch), 3)[1] for runtime in (old, new))
    np.testing.assert_array_equal(ours, theirs)


def test_unknown_backend(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="auto, onnx or torch"):
        load_runtime(write_tiny(tmp_path / "tiny.mull"), "jax")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", hub.shipped())
def test_shipped_models_agree_in_torch_and_onnx(name: str) -> None:
    path = hub.shipped()[name]
    onnx, torch_runtime = load_runtime(path, "onnx"), load_runtime(path, "torch")
    inputs = random_inputs(onnx.problem, 4).numpy().astype(np.uint8)
    starts = [runtime.start(inputs) for runtime in (onnx, torch_runtime)]
    ours, theirs = (runtime.step(state, 8)[1] for runtime, state in zip((onnx, torch_runtime), starts, strict=True))
    np.testing.assert_allclose(ours, theirs, atol=1e-4 * np.abs(theirs).max())
    assert np.array_equal(starts[0].given_BV, starts[1].given_BV)  # both None where the inputs say what is given


def write_int8(path: Path, allowed: bool | None) -> Path:
    """A model file with a graph for int8 whose logits are those of the other, halved."""
    graph = onnx.load_from_string(members()["step.onnx"])
    for node in graph.graph.node:
        if node.output[0] == "logits":
            node.output[0] = "whole"
    graph.graph.node.append(onnx.helper.make_node("Mul", ["whole", "half"], ["logits"]))
    about = {} if allowed is None else {"allowed": allowed}
    content = {**members(), "step.int8.onnx": graph.SerializeToString()}
    hub.write_model(path, replace(card(), int8=about), content)
    return path


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("allowed", [True, False, None])
def test_int8_where_it_is_allowed_and_fast(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fast: bool, allowed: bool | None
) -> None:
    monkeypatch.setattr(runtimes, "has_int8_products", lambda: fast)
    path = write_int8(tmp_path / "tiny.mull", allowed)
    expected = {"auto": "int8" if fast and allowed else "fp32", "fp32": "fp32", "int8": "int8"}
    for wanted, got in expected.items():
        found = load_runtime(path, precision=wanted)  # type: ignore[arg-type]
        assert found.precision == got
        _, logits = found.step(found.start(inputs(puzzle(1))))
        assert np.abs(logits).max() == (0.5 if got == "fp32" else 0.25)


def test_files_without_int8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtimes, "has_int8_products", lambda: True)
    path = write_tiny(tmp_path / "tiny.mull")
    assert load_runtime(path, precision="auto").precision == "fp32"
    with pytest.raises(InvalidInput, match="no int8 graph"):
        load_runtime(path, precision="int8")
    with pytest.raises(InvalidInput, match="no precision 'int4'"):
        load_runtime(path, precision="int4")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="onnxruntime"):
        load_runtime(path, "torch", precision="int8")
