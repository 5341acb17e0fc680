"""The step graph in 8-bit integers, for processors that multiply those faster.

Products with the weight matrices of the blocks are computed in int8, with exact sums in 32 bits: a matrix as
`round(W / s)` with a scale `s = max|w| / 127` for each column `w`, the other factor with the scale and zero point of
the range that it was seen in. That range is fixed, so an answer does not depend on what else is in its batch. All else
(attention, norms, the output layer, whose rounding errors would be fed back) stays in float32.

The graph names the same float32 weights as the one that it was made from, and says how to round them: onnxruntime does
that once, when it loads the graph. So a model file holds no number twice, and this graph takes a few kilobytes.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

DOMAIN = "com.microsoft"
MATRICES = "blocks."
"""How the names of the matrices begin."""
STEP, ROWS = "int8.step", "int8.rows"
"""Constants in the graph: 1/127, since the largest weight becomes 127; and the axis along which it is looked for."""

Ranges = Mapping[str, tuple[float, float]]
"""Least and largest value of a tensor, by its name in the graph."""


def factors(graph: bytes) -> list[str]:
    """What the graph multiplies by a weight matrix: the tensors whose ranges `quantise` has to know."""
    return list(dict.fromkeys(product.input[0] for product in _products(ModelProto.FromString(graph).graph)))


def watched(graph: bytes, names: list[str]) -> bytes:
    """The graph with some of its tensors as further outputs."""
    model = ModelProto.FromString(graph)
    model.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names)
    content: bytes = model.SerializeToString()
    return content


def quantise(graph: bytes, ranges: Ranges) -> bytes:
    """The graph with every product by a weight matrix in int8."""
    model = ModelProto.FromString(graph)
    body = model.graph
    biases = {product.output[0]: _bias(product, body) for product in _products(body)}
    added = {bias.output[0] for bias in biases.values() if bias is not None}
    nodes: list[NodeProto] = []
    for node in body.node:
        if node.output[0] in biases:
            nodes += [*_rounded_matrix(node.input[1]), *_product(node, biases[node.output[0]])]
        elif node.output[0] not in added:
            nodes.append(node)
    del body.node[:]
    body.node.extend(nodes)
    constants = {STEP: np.array(1 / 127, np.float32), ROWS: np.array([0])}
    for name in factors(graph):
        constants[f"{name}.scale"], constants[f"{name}.zero"] = _scale_and_zero(*ranges[name])
    body.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items())
    model.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    content: bytes = model.SerializeToString()
    return content


def _products(body: GraphProto) -> list[NodeProto]:
    """The products with a weight matrix."""
    turned = [node for node in body.node if node.op_type == "Transpose" and node.input[0].startswith(MATRICES)]
    matrices = {node.output[0] for node in turned}
    return [node for node in body.node if node.op_type == "MatMul" and node.input[1] in matrices]


def _scale_and_zero(least: float, largest: float) -> tuple[np.ndarray, np.ndarray]:
    """How numbers of a range become 0 to 255, with a whole number for 0.0."""
    least, largest = min(least, 0.0), max(largest, 0.0)
    scale = (largest - least) / 255 or 1.0
    return np.array(scale, np.float32), np.array(round(-least / scale), np.uint8)


def _rounded_matrix(matrix: str) -> list[NodeProto]:
    """`matrix.int8` and its `matrix.scale`, from nodes that onnxruntime replaces by their values."""
    return [
        helper.make_node("Abs", [matrix], [f"{matrix}.absolute"]),
        helper.make_node("ReduceMax", [f"{matrix}.absolute", ROWS], [f"{matrix}.largest"], keepdims=0),
        helper.make_node("Mul", [f"{matrix}.largest", STEP], [f"{matrix}.scale"]),
        helper.make_node("Div", [matrix, f"{matrix}.scale"], [f"{matrix}.scaled"]),
        helper.make_node("Round", [f"{matrix}.scaled"], [f"{matrix}.whole"]),
        helper.make_node("Cast", [f"{matrix}.whole"], [f"{matrix}.int8"], to=TensorProto.INT8),
    ]


def _product(node: NodeProto, bias: NodeProto | None) -> list[NodeProto]:
    """The other factor rounded, and the product, with the addition of its bias."""
    factor, matrix = node.input
    addend, output = ("", node.output[0]) if bias is None else (bias.input[1], bias.output[0])
    scales = [f"{factor}.scale", f"{matrix}.scale", f"{factor}.zero", ""]  # the matrix needs no zero point
    rounded = f"{output}.factor"
    return [
        helper.make_node("QuantizeLinear", [factor, f"{factor}.scale", f"{factor}.zero"], [rounded]),
        helper.make_node("MatMulIntegerToFloat", [rounded, f"{matrix}.int8", *scales, addend], [output], domain=DOMAIN),
    ]


def _bias(product: NodeProto, body: GraphProto) -> NodeProto | None:
    """The addition of a parameter to a product, if nothing else takes the product."""
    takers = [node for node in body.node if product.output[0] in node.input]
    if len(takers) != 1 or takers[0].op_type != "Add" or takers[0].input[0] != product.output[0]:
        return None
    computed = {name for node in body.node for name in node.output} | {value.name for value in body.input}
    return None if takers[0].input[1] in computed else takers[0]
