"""A model's weights as `cpu_recur.py` wants them, rounded to 8 bits, and the memory that it works in.

Whatever surrounds a product becomes part of its matrix and bias: affine maps of layer norms,

    (x g + b) W^T + c  =  x (W g)^T + (W b + c)

the scale of attention's scores, whose exponentials are powers of two, and the offsets of bytes.
Shapes: M token of any puzzle, V variable, P variables in nines, K variables in 32s, R row of a tile, H width, F hidden,
D value, L block, N column of a product, I its inner side.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mull.kernels.avx512 import COLUMNS, ROWS
from mull.kernels.simd import LANES

Array = NDArray[Any]
Tensors = Mapping[str, Array]

LOW = np.float32(0.17)
"""GELU's least value is -0.16997."""
NEVER = -1e30
"""A score or logit whose exponential is 0."""


class Matrix(NamedTuple):
    """One matrix of every block, rounded: the sums of a product begin with `start`; `scale` and `bias` follow them."""

    units: Array
    start_LN: Array
    scale_LN: Array
    bias_LN: Array


class Weights(NamedTuple):
    """All that a recurrence multiplies by."""

    qkv: Matrix
    mix: Matrix
    expand: Matrix
    contract: Matrix
    gain_LH: Array
    out_HD: Array
    out_b_1D: Array
    feedback_DH: Array


class Room(NamedTuple):
    """Memory of one thread; `pairs` is `qkv` as numbers of four bytes."""

    x_PH: Array
    read_PH: Array
    scale_P: Array
    qkv_P3H: Array
    pairs: Array
    keys: Array
    values: Array
    mask_1K: Array
    scores_RK: Array
    shares_RK: Array
    mixed_RH: Array
    bytes_RF: Array
    floats_RF: Array
    logits_RD: Array
    shares_RD: Array
    none_1F: Array


def make_room(variables: int, width: int, values: int) -> Room:
    """Memory for puzzles of this size, `values` of them in sixteens; zero where nobody writes."""
    padded, keys, pairs = _ceil(variables, ROWS), _ceil(variables, COLUMNS), _ceil(variables, 2) // 2
    mask_1K, qkv_P3H = _zeros((1, keys), np.float32), _zeros((padded, 3 * width), np.uint16)
    mask_1K[:, variables:] = NEVER
    return Room(
        x_PH=_zeros((padded, width), np.float32),
        read_PH=_zeros((padded, width), np.uint8),
        scale_P=_zeros((padded,), np.float32),
        qkv_P3H=qkv_P3H,
        pairs=qkv_P3H.view(np.uint32),
        keys=_zeros((width // 2, keys), np.uint32),
        values=_zeros((pairs, 2 * (width + COLUMNS)), np.uint16),
        mask_1K=mask_1K,
        scores_RK=_zeros((ROWS, keys), np.float32),
        shares_RK=_zeros((ROWS, keys), np.uint16),
        mixed_RH=_zeros((ROWS, width + COLUMNS), np.float32),
        bytes_RF=_zeros((ROWS, 4 * width), np.uint8),
        floats_RF=_zeros((ROWS, 4 * width), np.float32),
        logits_RD=_zeros((ROWS, values), np.float32),
        shares_RD=_zeros((ROWS, values), np.float32),
        none_1F=_zeros((1, 4 * width), np.float32),
    )


def _zeros(shape: tuple[int, ...], kind: type) -> Array:
    """An array that begins with a line of the cache: vectors across two lines take longer."""
    size = math.prod(shape) * np.dtype(kind).itemsize
    content = np.zeros(size + 64, np.uint8)
    begin = -content.ctypes.data % 64
    return content[begin : begin + size].view(kind).reshape(shape)


def _ceil(number: int, step: int) -> int:
    return -(-number // step) * step


def round_weights(tensors: Tensors, blocks: int, heads: int, inject: bool, feedback: bool) -> Weights:
    """From the parameters of a model, by their names."""
    found: dict[str, list[tuple[Array, Array]]] = {"qkv": [], "mix": [], "expand": [], "contract": []}
    for number in range(blocks):
        start = f"blocks.{number}."
        block = {name.removeprefix(start): array for name, array in tensors.items() if name.startswith(start)}
        found["qkv"].append(_read_by_attention(block, heads, inject))
        found["mix"].append((block["project.weight"], block["project.bias"]))
        found["expand"].append(_fold(block, "norm_mlp", "expand"))
        found["contract"].append((block["contract.weight"], block["contract.bias"]))
    out_HD, out_b_1D = _output(tensors)
    fed = tensors["feedback.weight"].T if feedback else np.zeros((1, len(out_HD)), np.float32)
    return Weights(
        **{name: _rounded(pairs, name == "contract") for name, pairs in found.items()},
        gain_LH=np.stack([tensors[f"blocks.{number}.norm_attention.weight"] for number in range(blocks)]),
        out_HD=out_HD,
        out_b_1D=out_b_1D,
        feedback_DH=np.array(fed, order="C"),
    )


def _fold(block: Tensors, norm: str, layer: str, gain: bool = True) -> tuple[Array, Array]:
    """A layer's matrix and bias that do without the affine map of the layer norm before it."""
    weight_NI = block[f"{layer}.weight"]
    bias_N = block[f"{layer}.bias"] + weight_NI @ block[f"{norm}.bias"]
    return weight_NI * block[f"{norm}.weight"] if gain else weight_NI, bias_N


def _read_by_attention(block: Tensors, heads: int, inject: bool) -> tuple[Array, Array]:
    """Queries, keys and values; the product of query and key is an exponent of two."""
    weight_NI, bias_N = _fold(block, "norm_attention", "qkv", gain=not inject)
    width = weight_NI.shape[1]
    factor_N = np.ones(3 * width, np.float32)
    factor_N[:width] = math.log2(math.e) / math.sqrt(width // heads)
    return weight_NI * factor_N[:, None], bias_N * factor_N


def _output(tensors: Tensors) -> tuple[Array, Array]:
    """The output layer, with values that never are to make sixteens of them."""
    weight_DH = tensors["output.weight"]
    values, width = weight_DH.shape
    out_HD = np.zeros((width, _ceil(values, LANES)), np.float32)
    out_b_1D = np.full((1, out_HD.shape[1]), NEVER, np.float32)
    out_HD[:, :values] = (weight_DH * tensors["norm_out.weight"]).T
    out_b_1D[0, :values] = weight_DH @ tensors["norm_out.bias"]
    return out_HD, out_b_1D


def _rounded(pairs: list[tuple[Array, Array]], positive: bool) -> Matrix:
    """Matrices and biases of all blocks; with `positive` bytes stand for numbers from -LOW on."""
    units, starts, scales, biases = [], [], [], []
    for weight_NI, bias_N in pairs:
        scale_N = np.maximum(np.abs(weight_NI).max(axis=1), np.float32(1e-30)) / np.float32(127)
        whole_NI = np.rint(weight_NI / scale_N[:, None]).astype(np.int8)
        sums_N = whole_NI.sum(axis=1, dtype=np.int32)
        units.append(units_of(whole_NI))
        starts.append(0 * sums_N if positive else -128 * sums_N)
        scales.append(scale_N)
        biases.append(bias_N - LOW * scale_N * sums_N if positive else bias_N)
    together = np.concatenate(units)
    aligned = _zeros(together.shape, np.int8)
    aligned[:] = together
    return Matrix(
        aligned,
        np.stack(starts),
        np.stack(scales).astype(np.float32),
        np.stack(biases).astype(np.float32),
    )


def units_of(whole_NI: Array) -> Array:
    """Panels of 32 columns: rows of units, four numbers of each column."""
    columns, inner = whole_NI.shape
    panels = whole_NI.reshape(columns // COLUMNS, COLUMNS, inner // 4, 4).swapaxes(1, 2)
    return panels.reshape(-1, 4 * COLUMNS).copy()
