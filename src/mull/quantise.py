"""The step graph in 8-bit integers, for processors that multiply those faster.

Products with a large weight matrix become onnxruntime's `DynamicQuantizeMatMul`: the matrix as `round(W / s)` with one
scale `s = max|W| / 127`, the other factor with the scale and zero point of what it holds in that moment; sums are exact
in 32 bits. All else (attention, norms, the output layer, whose rounding errors would be fed back) stays in float32.

The graph names the same float32 weights as the one that it was made from, and says how to round them: onnxruntime does
that once, when it loads the graph. So a model file holds no number twice, and this graph takes a few kilobytes.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

DOMAIN = "com.microsoft"
STEP = "int8.step"
"""The constant 1/127 in the graph: the largest weight becomes 127."""


def quantise(graph: bytes, weights: Collection[str]) -> bytes:
    """The graph with every product by one of the weights in int8; `weights` are parameters of linear layers."""
    model = ModelProto.FromString(graph)
    body = model.graph
    matrices = {node.output[0] for node in body.node if node.op_type == "Transpose" and node.input[0] in weights}
    products = [node for node in body.node if node.op_type == "MatMul" and node.input[1] in matrices]
    biases = {product.output[0]: _bias(product, body) for product in products}
    added = {bias.output[0] for bias in biases.values() if bias is not None}
    nodes: list[NodeProto] = []
    for node in body.node:
        if node.output[0] in biases:
            nodes += [*_rounded(node.input[1]), _product(node, biases[node.output[0]])]
        elif node.output[0] not in added:
            nodes.append(node)
    del body.node[:]
    body.node.extend(nodes)
    body.initializer.append(numpy_helper.from_array(np.array(1 / 127, np.float32), STEP))
    model.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    content: bytes = model.SerializeToString()
    return content


def _rounded(matrix: str) -> list[NodeProto]:
    """`matrix.int8` and its `matrix.scale`, from nodes that onnxruntime replaces by their values."""
    return [
        helper.make_node("Abs", [matrix], [f"{matrix}.absolute"]),
        helper.make_node("ReduceMax", [f"{matrix}.absolute"], [f"{matrix}.largest"], keepdims=0),
        helper.make_node("Mul", [f"{matrix}.largest", STEP], [f"{matrix}.scale"]),
        helper.make_node("Div", [matrix, f"{matrix}.scale"], [f"{matrix}.scaled"]),
        helper.make_node("Round", [f"{matrix}.scaled"], [f"{matrix}.whole"]),
        helper.make_node("Cast", [f"{matrix}.whole"], [f"{matrix}.int8"], to=TensorProto.INT8),
    ]


def _product(node: NodeProto, bias: NodeProto | None) -> NodeProto:
    """The product in int8, with the addition of its bias."""
    factor, matrix = node.input
    addend, output = ("", node.output[0]) if bias is None else (bias.input[1], bias.output[0])
    inputs = [factor, f"{matrix}.int8", f"{matrix}.scale", "", addend]  # no zero point: the scale is symmetric
    return helper.make_node("DynamicQuantizeMatMul", inputs, [output], domain=DOMAIN)


def _bias(product: NodeProto, body: GraphProto) -> NodeProto | None:
    """The addition of a parameter to a product, if nothing else takes the product."""
    takers = [node for node in body.node if product.output[0] in node.input]
    if len(takers) != 1 or takers[0].op_type != "Add" or takers[0].input[0] != product.output[0]:
        return None
    computed = {name for node in body.node for name in node.output} | {value.name for value in body.input}
    return None if takers[0].input[1] in computed else takers[0]
