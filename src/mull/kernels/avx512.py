"""Tiles of matrix products on x86 processors with AVX-512: 8-bit integers (VNNI), bfloat16 and float32, for numba.

One factor is read row by row, in units of four bytes: four uint8, two bfloat16 (as uint16) or one float32. The other
one holds such units, int8 for uint8, of sixteen columns side by side: `b[k, 4 * j : 4 * j + 4]` as bytes is unit `k` of
column `j` (see `units_of` in `rounded.py`). Nine rows times 32 columns keep their sums in registers.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from llvmlite.binding import llvm_version_info
from numba import types
from numba.core import cgutils

from mull.kernels.simd import FAST, FLOAT, FLOATS, INT, INTS, LANES, _BFloat, _call, _place, _repeat, intrinsic, vector

ROWS, COLUMNS = 9, 2 * LANES
"""Of a tile: as many sums as leave registers for the factors."""
BYTE, LONG = ir.IntType(8), ir.IntType(64)
BYTES = ir.VectorType(BYTE, LANES)
HALVES_32 = ir.VectorType(ir.IntType(16), 2 * LANES)
PAIRS = ir.VectorType(_BFloat(), 2 * LANES) if llvm_version_info[0] >= 16 else INTS
"""Sixteen units of bfloat16, as LLVM's function wants them."""


def _add_products(builder: Any, kind: Any, sums: Any, a: Any, b: Any) -> Any:
    """Sixteen sums, each with the products of a unit added."""
    if kind == types.float32:
        a, b = builder.bitcast(a, FLOATS), builder.bitcast(b, FLOATS)
        return builder.fadd(sums, builder.fmul(a, b, flags=FAST), flags=FAST)
    if kind == types.uint8:
        name, numbers = "avx512.vpdpbusd.512", INTS
    else:
        name, numbers = "avx512bf16.dpbf16ps.512", PAIRS
    signature = ir.FunctionType(sums.type, [sums.type, numbers, numbers])
    function = cgutils.get_or_insert_function(builder.module, signature, f"llvm.x86.{name}")
    return builder.call(function, [sums, builder.bitcast(a, numbers), builder.bitcast(b, numbers)])


def _loop(
    builder: Any, kind: Any, rows: list[Any], apart: Any, b: Any, stride: Any, count: Any, first: list[list[Any]]
) -> list[list[Any]]:
    """The sums of all rows, sixteen columns at a time, over `count` units, which are `apart` units apart in a row."""
    before, loop = builder.block, builder.append_basic_block("units")
    after = builder.append_basic_block("sums")
    builder.branch(loop)
    builder.position_at_end(loop)
    k, place = builder.phi(LONG), builder.phi(b.type)
    sums = [[builder.phi(start.type) for start in row] for row in first]
    units, at = builder.bitcast(place, INTS.as_pointer()), builder.mul(k, apart)
    columns = [builder.load(builder.gep(units, [ir.Constant(INT, n)]), align=1) for n in range(len(first[0]))]
    new = []
    for row, old in zip(rows, sums, strict=True):
        unit = _repeat(builder, builder.load(builder.gep(row, [at]), align=1), INTS)
        new.append([_add_products(builder, kind, *pair) for pair in zip(old, [unit] * len(old), columns, strict=True)])
    more = builder.add(k, LONG(1))
    for phi, begin, step in [(k, LONG(0), more), (place, b, builder.gep(place, [stride]))] + [
        found for rows_of in zip(sums, first, new, strict=True) for found in zip(*rows_of, strict=True)
    ]:
        phi.add_incoming(begin, before)
        phi.add_incoming(step, loop)
    builder.cbranch(builder.icmp_signed("<", more, count), loop, after)
    builder.position_at_end(after)
    return new


def _stride(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    """Bytes from one row of an array to the next."""
    return builder.extract_value(context.make_array(kind)(context, builder, array).strides, 0)


def _make_tile(vectors: int) -> Any:
    """A function for tiles of so many times sixteen columns."""

    @intrinsic
    def tile(typing, a, i, s, b, k, j, count, start, u, v, out, r, c):
        def generate(context, builder, signature, args):
            a, i, s, b, k, j, count, start, u, v, out, r, c = args
            a_kind, b_kind, start_kind, out_kind = (signature.args[n] for n in (0, 3, 7, 10))
            numbers = INTS if a_kind.dtype == types.uint8 else FLOATS

            def rows(kind, array, first, column, content):
                places = [(array, builder.add(first, LONG(n)), column) for n in range(ROWS)]
                return [_place(context, builder, kind, place, content) for place in places]

            begin = _place(context, builder, start_kind, (start, u, v), numbers)
            first = [builder.load(builder.gep(begin, [ir.Constant(INT, n)]), align=4) for n in range(vectors)]
            stride = _stride(context, builder, b_kind, b)
            b = _place(context, builder, b_kind, (b, k, j), BYTE)
            places = rows(a_kind, a, i, s, INT)
            sums = _loop(builder, a_kind.dtype, places, LONG(1), b, stride, count, [first] * ROWS)
            for place, row in zip(rows(out_kind, out, r, c, FLOATS), sums, strict=True):
                for n, value in enumerate(row):
                    value = value if numbers is FLOATS else builder.sitofp(value, FLOATS)
                    builder.store(value, builder.gep(place, [ir.Constant(INT, n)]), align=4)
            return context.get_dummy_value()

        n = types.intp
        return types.void(a, n, n, b, n, n, n, start, n, n, out, n, n), generate

    return tile


tile = _make_tile(COLUMNS // LANES)
"""out[r:, c:] = start[u, v:] + a[i:, s:] b[k:, j:], nine rows, 32 columns, over `count` units; sums become float32."""
narrow_tile = _make_tile(1)
"""The same with sixteen columns."""


TALL = 8
"""Rows of a tile of `add_tile`: a divisor of what matrices have."""


@intrinsic
def add_tile(typing, a, n, b, j, count, out):
    """out[n:, j:] += the sum over `count` rows of a[:, n:]^T b[:, j:], eight rows, 32 columns; units of bfloat16."""

    def generate(context, builder, signature, args):
        a, n, b, j, count, out = args
        a_kind, b_kind, out_kind = (signature.args[place] for place in (0, 2, 5))
        apart = builder.udiv(_stride(context, builder, a_kind, a), LONG(4))
        rows = [builder.add(n, LONG(row)) for row in range(TALL)]
        places = [_place(context, builder, out_kind, (out, row, j), FLOATS) for row in rows]
        parts = [[builder.gep(place, [ir.Constant(INT, part)]) for part in range(2)] for place in places]
        first = [[builder.load(part, align=4) for part in row] for row in parts]
        units = [_place(context, builder, a_kind, (a, LONG(0), row), INT) for row in rows]
        start, stride = _place(context, builder, b_kind, (b, LONG(0), j), BYTE), _stride(context, builder, b_kind, b)
        sums = _loop(builder, types.uint16, units, apart, start, stride, count, first)
        for row, values in zip(parts, sums, strict=True):
            for part, value in zip(row, values, strict=True):
                builder.store(value, part, align=4)
        return context.get_dummy_value()

    n = types.intp
    return types.void(a, n, b, n, n, out), generate


@intrinsic
def pair_rows(typing, array, row, column, out, unit):
    """Units of two rows' bfloat16 numbers, 32 of them, from `row` and `column` on, to row `unit` of `out` (uint32)."""

    def generate(context, builder, signature, args):
        array, row, column, out, unit = args
        rows = [(array, row, column), (array, builder.add(row, LONG(1)), column)]
        both = [builder.load(_place(context, builder, signature.args[0], at, HALVES_32), align=2) for at in rows]
        for half in range(2):
            order = [half * LANES + n // 2 + (n % 2) * 2 * LANES for n in range(2 * LANES)]
            pairs = builder.shuffle_vector(*both, ir.Constant(ir.VectorType(INT, 2 * LANES), order))
            at = out, unit, builder.add(column, LONG(half * LANES))
            builder.store(pairs, _place(context, builder, signature.args[3], at, HALVES_32), align=4)
        return context.get_dummy_value()

    n = types.intp
    return types.void(array, n, n, out, n), generate


@intrinsic
def store_bytes(typing, array, row, column, values):
    """Put sixteen numbers from 0 to 255 into a row, without their fractions."""

    def generate(context, builder, signature, args):
        whole = builder.trunc(builder.fptosi(args[3], INTS), BYTES)
        builder.store(whole, _place(context, builder, signature.args[0], args, BYTES), align=1)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, vector), generate


@intrinsic
def store_pairs(typing, array, row, column, first, second):
    """Put sixteen pairs of bfloat16 numbers into a row; each number is one already."""

    def generate(context, builder, signature, args):
        first, second = (builder.bitcast(values, INTS) for values in args[3:])
        both = builder.or_(builder.lshr(first, ir.Constant(INTS, [16] * LANES)), second)
        builder.store(both, _place(context, builder, signature.args[0], args, INTS), align=2)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, vector, vector), generate


@intrinsic
def largest(typing, a):
    """The largest of the sixteen."""

    def generate(context, builder, signature, args):
        signature = ir.FunctionType(FLOAT, [FLOATS])
        function = cgutils.get_or_insert_function(builder.module, signature, f"llvm.vector.reduce.fmax.v{LANES}f32")
        return builder.call(function, args, fastmath=("nnan",))

    return types.float32(vector), generate


@intrinsic
def nearest(typing, a):
    """The nearest whole numbers."""
    return vector(vector), lambda context, builder, signature, args: _call(builder, "rint", FLOATS, *args)


@intrinsic
def times_power(typing, a, n):
    """a 2^n for whole numbers n of any size."""

    def generate(context, builder, signature, args):
        rest = [ir.Constant(FLOATS, ir.Undefined), ir.Constant(ir.IntType(16), -1), ir.Constant(INT, 4)]
        kinds = [FLOATS, FLOATS, *(each.type for each in rest)]
        name = "llvm.x86.avx512.mask.scalef.ps.512"
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(FLOATS, kinds), name)
        return builder.call(function, [*args, *rest])

    return vector(vector, vector), generate
