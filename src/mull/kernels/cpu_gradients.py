"""Gradients of matrices on a CPU: sums over all tokens of products in bfloat16, added up in float32.

Two tokens at a time make units of two numbers, as the processor's products want them. Some hundred tokens are turned
into units at once, few enough for the nearest caches.
Shapes: M token, N rows of a matrix, I its columns.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from mull.kernels.avx512 import COLUMNS, TALL, add_tile, pair_rows
from mull.kernels.fused import check_compiler
from mull.kernels.simd import jit
from mull.processor import has_avx512_products

UNITS = 80_000
"""Units of both factors that are made at once: a third of a megabyte."""


@cache
def usable() -> bool:
    """Whether the processor has the instructions, and numba compiles for it."""
    if not has_avx512_products():
        return False
    try:
        check_compiler()
    except RuntimeError:
        return False
    return True


def fits(rows: int, columns: int) -> bool:
    """Whether a matrix of this size consists of whole tiles, and of whole vectors when it is turned into units."""
    return rows % COLUMNS == 0 and columns % COLUMNS == 0


def make_units(rows: int, columns: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Memory for the units of both factors of a matrix's gradient."""
    pairs = max(32, UNITS // (rows + columns))
    return np.empty((pairs, rows), np.uint32), np.empty((pairs, columns), np.uint32)


@jit
def add_products(left_MN, right_MI, out_NI, left, right):
    """out += left^T right; the factors are bfloat16, and `left` and `right` memory from `make_units`."""
    tokens, rows, columns, pairs = left_MN.shape[0], left_MN.shape[1], right_MI.shape[1], left.shape[0]
    for begin in range(0, tokens, 2 * pairs):
        count = min(pairs, (tokens - begin + 1) // 2)
        _units(left_MN, begin, count, left)
        _units(right_MI, begin, count, right)
        for j in range(0, columns, COLUMNS):
            for n in range(0, rows, TALL):
                add_tile(left, n, right, j, count, out_NI)


@jit
def _units(tokens_MN, begin, count, out):
    """Units of two tokens each, from `begin` on; a last one alone has a zero beside it."""
    whole = min(count, (tokens_MN.shape[0] - begin) // 2)
    for unit in range(whole):
        for j in range(0, tokens_MN.shape[1], COLUMNS):
            pair_rows(tokens_MN, begin + 2 * unit, j, out, unit)
    if whole < count:
        for j in range(tokens_MN.shape[1]):
            out[whole, j] = tokens_MN[begin + 2 * whole, j]
