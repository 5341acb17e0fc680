"""Products of small float32 matrices that lie in panels, in code that numba compiles.

A panel is sixteen columns of a matrix, one row after the other; a matrix is one panel after the other, an array
(panels * rows, 16). So a tile of sixteen rows of a panel is a kilobyte in one piece, whatever the matrix's size, and
the product of two tiles is straight code with sums in registers. Rows and columns come in sixteens, the last ones zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from mull.kernels.simd import FLOATS, INT, INTS, LANES, _call, _place, _repeat, intrinsic, part


@part
def zeros(rows, columns):
    """An array that starts where a cache line does, as numba's own do not: vectors across two lines take longer."""
    whole = np.zeros(rows * columns + LANES, np.float32)
    skip = -(whole.ctypes.data // 4) % LANES
    return whole[skip : skip + rows * columns].reshape(rows, columns)


@intrinsic
def fetch(typing, array, row, column):
    """Ask for a cache line, into the second cache; beyond the end of an array nothing happens."""

    def generate(context, builder, signature, args):
        place = _place(context, builder, signature.args[0], args, ir.IntType(8))
        kind = ir.FunctionType(ir.VoidType(), [place.type, INT, INT, INT])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [place, *(ir.Constant(INT, value) for value in (0, 2, 1))])
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp), generate


@intrinsic
def turn(typing, source, row, column, to, to_row, to_column):
    """Sixteen rows of sixteen numbers of an array become columns of another; both of float32."""

    def generate(context, builder, signature, args):
        def place(first, i):
            at = builder.add(args[first + 1], ir.Constant(args[first + 1].type, i))
            kind = signature.args[first]
            return _place(context, builder, kind, (args[first], at, args[first + 2]), FLOATS)

        rows = [builder.load(place(0, i), align=4) for i in range(LANES)]
        for apart in (8, 4, 2, 1):  # squares of that side change places across the diagonal
            left = [j + LANES - apart if j & apart else j for j in range(LANES)]
            right = [j + LANES if j & apart else j + apart for j in range(LANES)]
            for i in (i for i in range(LANES) if not i & apart):
                pair = rows[i], rows[i + apart]
                rows[i] = builder.shuffle_vector(*pair, ir.Constant(INTS, left))
                rows[i + apart] = builder.shuffle_vector(*pair, ir.Constant(INTS, right))
        for i in range(LANES):
            builder.store(rows[i], place(3, i), align=4)
        return context.get_dummy_value()

    return types.void(source, types.intp, types.intp, to, types.intp, types.intp), generate


def _tile_product(turned: bool, onto: bool) -> Any:
    """c = a b of tiles that start in rows i, j and k; with `turned` a's transpose, with `onto` added to what c is."""

    @intrinsic
    def product(typing, a, i, b, j, c, k):
        def generate(context, builder, signature, args):
            def start(place):
                kind = signature.args[place]
                array = context.make_array(kind)(context, builder, args[place])
                row = [args[place + 1], ir.Constant(args[place + 1].type, 0)]
                return cgutils.get_item_pointer(context, builder, kind, array, row, wraparound=False)

            def at(pointer, number):
                return builder.gep(pointer, [ir.Constant(ir.IntType(64), number)])

            def row(pointer, number):
                return builder.bitcast(at(pointer, LANES * number), FLOATS.as_pointer())

            left, right, out = start(0), start(2), start(4)
            sums = [ir.Constant(FLOATS, [0.0] * LANES)] * LANES
            if onto:
                sums = [builder.load(row(out, r), align=4) for r in range(LANES)]
            for t in range(LANES):
                factor = builder.load(row(right, t), align=4)
                for r in range(LANES):
                    number = builder.load(at(left, LANES * t + r if turned else LANES * r + t))
                    sums[r] = _call(builder, "fma", FLOATS, _repeat(builder, number, FLOATS), factor, sums[r])
            for r in range(LANES):
                builder.store(sums[r], row(out, r), align=4)
            return context.get_dummy_value()

        return types.void(a, types.intp, b, types.intp, c, types.intp), generate

    return product


_first, _next = _tile_product(False, False), _tile_product(False, True)
_first_turned, _next_turned = _tile_product(True, False), _tile_product(True, True)


@part
def product(a, i0, b, j0, c, k0, rows, inner, columns):
    """c = a b, of matrices that start in rows i0, j0 and k0 of arrays."""
    for j in range(columns // LANES):
        for i in range(0, rows, LANES):
            to = k0 + j * rows + i
            _first(a, i0 + i, b, j0 + j * inner, c, to)
            for t in range(LANES, inner, LANES):
                _next(a, i0 + t // LANES * rows + i, b, j0 + j * inner + t, c, to)


@part
def product_turned(a, i0, b, j0, c, k0, rows, inner, columns):
    """c = a^T b, of matrices that start in rows i0, j0 and k0 of arrays."""
    for j in range(columns // LANES):
        for i in range(0, rows, LANES):
            source, to = i0 + i // LANES * inner, k0 + j * rows + i
            _first_turned(a, source, b, j0 + j * inner, c, to)
            for t in range(LANES, inner, LANES):
                _next_turned(a, source + t, b, j0 + j * inner + t, c, to)


@part
def transpose(a, i0, to, rows, columns):
    """A matrix that starts in row i0 of an array, turned."""
    for i in range(0, rows, LANES):
        for j in range(0, columns, LANES):
            turn(a, i0 + j // LANES * rows + i, 0, to, i // LANES * columns + j, 0)
