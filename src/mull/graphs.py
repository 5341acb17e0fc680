"""ONNX graphs whose numbers lie beside them: a graph names its parameters, and `weights.safetensors` holds each once.

Protocol buffers merge what is concatenated: a model followed by one that has only initializers is the model with these
initializers. So a graph is completed by appending to it, with neither `onnx` nor `safetensors` installed, and
onnxruntime sees a model like any other. (Its own ways to take tensors from memory need a newer version than we ask for,
or the tensors to outlive the session.)
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mull.errors import CorruptFile

TYPES = {"F32": (1, 4), "F16": (10, 2), "BF16": (16, 2), "F64": (11, 8), "I64": (7, 8), "I32": (6, 4), "BOOL": (9, 1)}
"""What safetensors calls a type -> its number in ONNX, and the bytes of an element."""

# The numbers of fields in onnx.proto.
MODEL_GRAPH, GRAPH_INITIALIZER, NODE_INPUT = 7, 5, 1
TENSOR_DIMENSIONS, TENSOR_TYPE, TENSOR_NAME, TENSOR_DATA = 1, 2, 8, 9


@dataclass(frozen=True)
class Stored:
    """A tensor as it lies in a file: row by row, the lowest byte of an element first, as ONNX wants it too."""

    type: str
    shape: tuple[int, ...]
    content: memoryview


def read_tensors(content: bytes) -> dict[str, Stored]:
    """The tensors of a safetensors file, not copied: it is a header's length, the header in JSON, and the numbers."""
    start = 8 + int.from_bytes(content[:8], "little")
    try:
        header = json.loads(content[8:start])
        header.pop("__metadata__", None)
        return {name: _stored(entry, memoryview(content)[start:]) for name, entry in header.items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise CorruptFile("the model file's weights cannot be read") from error


def complete(graph: bytes, tensors: Mapping[str, Stored]) -> bytes:
    """The graph with the tensors that its nodes take; one that holds all its numbers itself comes back as it is."""
    pieces: list[bytes | memoryview] = []
    for name, tensor in tensors.items():
        if _field(NODE_INPUT, name.encode()) in graph and _field(TENSOR_NAME, name.encode()) not in graph:
            pieces += _initializer(name, tensor)
    return b"".join([graph, _head(MODEL_GRAPH, sum(map(len, pieces))), *pieces]) if pieces else graph


def load_session(graph: bytes, threads: int = 1) -> Any:
    """An onnxruntime session for a graph, on the CPU."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 4  # what goes wrong is raised, and told in one line
    try:
        return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's exceptions share no base class of their own
        raise CorruptFile("the model file's graphs cannot be loaded") from error


def session(graph: bytes, threads: int, inputs: set[str], outputs: set[str]) -> Any:
    """A graph in onnxruntime, with some inputs and outputs that it must have."""
    made = load_session(graph, threads)
    missing = inputs - {node.name for node in made.get_inputs()}
    missing |= outputs - {node.name for node in made.get_outputs()}
    if missing:
        raise CorruptFile(f"the model file's graphs lack {', '.join(sorted(missing))}")
    return made


def _stored(entry: dict[str, Any], data: memoryview) -> Stored:
    begin, end = entry["data_offsets"]
    shape, (_, size) = tuple(entry["shape"]), TYPES[entry["dtype"]]
    if min(begin, *shape, 0) < 0 or end > len(data) or end - begin != size * math.prod(shape):
        raise ValueError("a tensor that is not in the file, or not of its shape")
    return Stored(entry["dtype"], shape, data[begin:end])


def _initializer(name: str, tensor: Stored) -> list[bytes | memoryview]:
    """A field of a graph, in pieces, so that the numbers are copied once."""
    about = b"".join(_varint(TENSOR_DIMENSIONS << 3) + _varint(side) for side in tensor.shape)
    about += _varint(TENSOR_TYPE << 3) + _varint(TYPES[tensor.type][0]) + _field(TENSOR_NAME, name.encode())
    about += _head(TENSOR_DATA, len(tensor.content))
    return [_head(GRAPH_INITIALIZER, len(about) + len(tensor.content)), about, tensor.content]


def _field(number: int, content: bytes) -> bytes:
    return _head(number, len(content)) + content


def _head(number: int, length: int) -> bytes:
    """What comes before the bytes of a field: 2 is the wire type of those that have a length."""
    return _varint(number << 3 | 2) + _varint(length)


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; the eighth says that more follow."""
    groups = [value >> shift & 127 for shift in range(0, max(value.bit_length(), 1), 7)]
    return bytes([*(group | 128 for group in groups[:-1]), groups[-1]])
