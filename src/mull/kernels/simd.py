"""Sixteen float32 numbers at once, in code that numba compiles for the processor at hand.

numba's own vectorising gives up on short loops over several arrays, and attention of a puzzle is nothing else. Arrays
have two dimensions; those of uint16 hold bfloat16 numbers, the upper half of a float32, which come and go as float32.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import extending, njit, types
from numba.core import cgutils
from numba.core.datamodel.models import PrimitiveModel
from numba.core.typing.templates import ConcreteTemplate, infer_global
from numba.extending import lower_builtin, register_model


class _BFloat(ir.Type):  # type: ignore[misc]
    """LLVM's bfloat16, which llvmlite does not name."""

    def __str__(self) -> str:
        return "bfloat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _BFloat)

    def __hash__(self) -> int:
        return hash(_BFloat)


LANES = 16
FLOAT, INT = ir.FloatType(), ir.IntType(32)
FLOATS, INTS = ir.VectorType(FLOAT, LANES), ir.VectorType(INT, LANES)
HALVES, BFLOATS = ir.VectorType(ir.IntType(16), LANES), ir.VectorType(_BFloat(), LANES)
FAST = ("contract", "nsz", "arcp")
"""Freedoms of the compiler: a product and a sum may become one instruction."""

intrinsic: Any = extending.intrinsic  # its types do not say what it makes of a function
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": set(FAST)}
INLINE: dict[str, Any] = {"forceinline": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
jit: Any = njit(cache=True, **OPTIONS)
part: Any = njit(**OPTIONS, **INLINE)
"""For what other functions consist of: a call between them costs more than it looks. Python cannot call these."""


class Vector(types.Type):
    """The type of sixteen numbers, as numba sees it."""

    def __init__(self) -> None:
        super().__init__("Vector")


vector = Vector()


@register_model(Vector)
class _Model(PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, FLOATS)


def _ints(value: int) -> Any:
    return ir.Constant(INTS, [value] * LANES)


def _place(context: Any, builder: Any, kind: Any, args: Any, content: Any) -> Any:
    """A pointer to sixteen numbers of an array, from (array, row, column)."""
    array = context.make_array(kind)(context, builder, args[0])
    place = cgutils.get_item_pointer(context, builder, kind, array, list(args[1:3]), wraparound=False)
    return builder.bitcast(place, content.as_pointer())


@intrinsic
def load(typing, array, row, column):
    """Sixteen numbers of a row, from a column on."""

    def generate(context, builder, signature, args):
        kind = signature.args[0]
        if kind.dtype == types.float32:
            return builder.load(_place(context, builder, kind, args, FLOATS), align=4)
        bits = builder.load(_place(context, builder, kind, args, HALVES), align=2)
        return builder.bitcast(builder.shl(builder.zext(bits, INTS), _ints(16)), FLOATS)

    return vector(array, types.intp, types.intp), generate


@intrinsic
def store(typing, array, row, column, values):
    """Put sixteen numbers into a row, from a column on; to bfloat16 rounded to the nearest, or even."""

    def generate(context, builder, signature, args):
        kind, value = signature.args[0], args[3]
        if kind.dtype == types.float32:
            builder.store(value, _place(context, builder, kind, args, FLOATS), align=4)
        else:
            bits = builder.bitcast(builder.fptrunc(value, BFLOATS), HALVES)
            builder.store(bits, _place(context, builder, kind, args, HALVES), align=2)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, vector), generate


def _repeat(builder: Any, value: Any, kind: Any) -> Any:
    nothing = ir.Constant(kind, ir.Undefined)
    one = builder.insert_element(nothing, value, ir.Constant(INT, 0))
    return builder.shuffle_vector(one, nothing, _ints(0))


@intrinsic
def splat(typing, x):
    """The same number sixteen times."""
    return vector(types.float32), lambda context, builder, signature, args: _repeat(builder, args[0], FLOATS)


def _arithmetic(symbol: Callable[..., Any], name: str) -> None:
    """Python's operator for two vectors, or a vector and a number, with no function to compile for each."""

    def generate(context, builder, signature, args):
        pairs = zip(signature.args, args, strict=True)
        a, b = (value if kind is vector else _repeat(builder, value, FLOATS) for kind, value in pairs)
        return getattr(builder, name)(a, b, flags=FAST)

    pairs = (vector, vector), (vector, types.float32), (types.float32, vector)
    cases = [vector(*pair) for pair in pairs]
    infer_global(symbol)(type(f"Vector_{name}", (ConcreteTemplate,), {"cases": cases}))
    for pair in pairs:
        lower_builtin(symbol, *pair)(generate)


_arithmetic(operator.add, "fadd")
_arithmetic(operator.sub, "fsub")
_arithmetic(operator.mul, "fmul")
_arithmetic(operator.truediv, "fdiv")


def _call(builder: Any, name: str, kind: Any, *args: Any, fast: tuple[str, ...] = ()) -> Any:
    """One of LLVM's own functions."""
    signature = ir.FunctionType(kind, [arg.type for arg in args])
    function = cgutils.get_or_insert_function(builder.module, signature, f"llvm.{name}.v{LANES}f32")
    return builder.call(function, args, fastmath=fast)


@intrinsic
def total(typing, a):
    """The sum of the sixteen."""

    def generate(context, builder, signature, args):
        return _call(builder, "vector.reduce.fadd", FLOAT, ir.Constant(FLOAT, 0.0), *args, fast=("reassoc",))

    return types.float32(vector), generate


@intrinsic
def magnitude(typing, a):
    """Without the sign."""
    return vector(vector), lambda context, builder, signature, args: _call(builder, "fabs", FLOATS, *args)


@intrinsic
def _floor(typing, a):
    return vector(vector), lambda context, builder, signature, args: _call(builder, "floor", FLOATS, *args)


@intrinsic
def larger(typing, a, b):
    """The larger of each pair."""

    def generate(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered(">", *args), *args)

    return vector(vector, vector), generate


@intrinsic
def smaller(typing, a, b):
    """The smaller of each pair."""

    def generate(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered("<", *args), *args)

    return vector(vector, vector), generate


@intrinsic
def where_positive(typing, x, a, b):
    """`a` where `x` is positive, else `b`."""

    def generate(context, builder, signature, args):
        positive = builder.fcmp_ordered(">", args[0], ir.Constant(FLOATS, [0.0] * LANES))
        return builder.select(positive, *args[1:])

    return vector(vector, vector, vector), generate


@intrinsic
def _power_of_two(typing, a):
    """2^a for whole numbers: they go into the exponents."""

    def generate(context, builder, signature, args):
        exponent = builder.add(builder.fptosi(args[0], INTS), _ints(127))
        return builder.bitcast(builder.shl(exponent, _ints(23)), FLOATS)

    return vector(vector), generate


@intrinsic
def random_keep(typing, seed, at, threshold, scale):
    """`scale`, or 0 with a chance of threshold / 2^32: a hash of the seed and of where a number stands."""

    def generate(context, builder, signature, args):
        seed, at, threshold, scale = args
        places = builder.add(_repeat(builder, at, INTS), ir.Constant(INTS, list(range(LANES))))
        bits = builder.xor(places, _repeat(builder, seed, INTS))
        for factor, shift in ((0x7FEB352D, 16), (0x846CA68B, 15), (0x9E3779B1, 16)):  # lowbias32, and one round more
            bits = builder.mul(builder.xor(bits, builder.lshr(bits, _ints(shift))), _ints(factor))
        bits = builder.xor(bits, builder.lshr(bits, _ints(16)))
        kept = builder.icmp_unsigned(">=", bits, _repeat(builder, threshold, INTS))
        return builder.select(kept, _repeat(builder, scale, FLOATS), ir.Constant(FLOATS, [0.0] * LANES))

    return vector(types.uint32, types.uint32, types.uint32, types.float32), generate


f32 = np.float32
ZERO, HALF, ONE = f32(0), f32(0.5), f32(1)
LOG2E, LEAST = f32(math.log2(math.e)), f32(-126)
E1, E2, E3, E4, E5, E6 = (f32(math.log(2) ** k / math.factorial(k)) for k in range(1, 7))


@part
def exp(x):
    """e^x for x up to 88, with an error of a few units in the last place."""
    y = larger(x * LOG2E, splat(LEAST))
    n = _floor(y + HALF)
    f = y - n
    return ((((((E6 * f + E5) * f + E4) * f + E3) * f + E2) * f + E1) * f + ONE) * _power_of_two(n)
