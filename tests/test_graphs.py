"""Graphs are completed with the tensors that they take, and what is no safetensors file is refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import save

from mull.errors import CorruptFile
from mull.graphs import _varint, complete, read_tensors

ARRAYS = {
    "weight": np.arange(6, dtype=np.float32).reshape(2, 3),
    "blocks.0.bias": np.arange(300, dtype=np.float16),
    "double": np.array([[[0.5]]]),
    "long": np.array([-1, 2**40]),
    "int": np.array([3, -3], dtype=np.int32),
    "flag": np.array([True, False]),
    "scalar": np.array(1.5, dtype=np.float32),
    "empty": np.zeros((0, 4), dtype=np.float32),
}


def graph(*names: str, held: dict[str, Any] | None = None) -> bytes:
    """A graph whose nodes take some tensors and hold some themselves."""
    nodes = [helper.make_node("Identity", [name], [f"out.{name}"]) for name in names]
    outputs = [helper.make_tensor_value_info(f"out.{name}", TensorProto.FLOAT, ARRAYS[name].shape) for name in names]
    tensors = [numpy_helper.from_array(array, name) for name, array in (held or {}).items()]
    body = helper.make_graph(nodes, "graph", [], outputs, tensors)
    return bytes(helper.make_model(body, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString())


def initializers(content: bytes) -> dict[str, np.ndarray]:
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load_from_string(content).graph.initializer}


def test_tensors_are_read() -> None:
    found = read_tensors(save(ARRAYS, metadata={"who": "somebody"}))
    assert found.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert found[name].shape == array.shape
        assert bytes(found[name].content) == array.tobytes()


def test_a_graph_gets_the_tensors_that_it_takes() -> None:
    tensors = read_tensors(save({**ARRAYS, "weight2": ARRAYS["weight"], "eight": ARRAYS["weight"]}))
    content = complete(graph(*ARRAYS), tensors)
    found = initializers(content)
    assert found.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(found[name], array, strict=True)
    onnx.checker.check_model(onnx.load_from_string(complete(graph("weight", "scalar"), tensors)))


def test_a_graph_that_holds_its_tensors_stays_as_it_is() -> None:
    tensors = read_tensors(save(ARRAYS))
    held = graph("weight", held={"weight": np.ones(2, dtype=np.float32)})
    assert complete(held, tensors) == held
    mixed = complete(graph("weight", "long", held={"long": np.array([7])}), tensors)
    assert initializers(mixed)["long"].tolist() == [7]
    assert initializers(mixed).keys() == {"weight", "long"}
    assert complete(mixed, tensors) == mixed


@given(value=st.integers(0, 2**63 - 1))
def test_varint(value: int) -> None:
    tensor = TensorProto.FromString(_varint(1 << 3) + _varint(value))
    assert tensor.dims == [value]


@given(length=st.floats(0, 1, exclude_max=True))
def test_truncated(length: float) -> None:
    content = save(ARRAYS)
    with pytest.raises(CorruptFile, match="weights cannot be read"):
        read_tensors(content[: int(length * len(content))])


@given(content=st.binary(max_size=100))
def test_random_bytes(content: bytes) -> None:
    for prefix in (b"", len(content).to_bytes(8, "little")):
        try:
            assert read_tensors(prefix + content) == {}
        except CorruptFile:
            continue


GOOD = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
WRONG = {
    "shape": [[3], [-1, -2], [2.5], "2", None],
    "data_offsets": [[8, 16], [-8, 0], [0, 4], [8], "08", None],
    "dtype": ["F16", "X", None, []],
}


@pytest.mark.parametrize(
    "header",
    [
        *([], 1, None, "x", {"a": 1}, {"a": {}}),
        *({"a": {**GOOD, field: value}} for field, values in WRONG.items() for value in values),
    ],
)
def test_wrong_headers(header: object) -> None:
    text = json.dumps(header).encode()
    with pytest.raises(CorruptFile, match="weights cannot be read"):
        read_tensors(len(text).to_bytes(8, "little") + text + bytes(8))


def test_a_right_header() -> None:
    text = json.dumps({"a": GOOD}).encode()
    assert read_tensors(len(text).to_bytes(8, "little") + text + bytes(8))["a"].shape == (2,)
