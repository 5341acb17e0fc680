"""GELU and its derivative on a CPU. Shapes: M token, F hidden."""

from __future__ import annotations

import math

from mull.kernels.simd import (
    E1,
    E2,
    E3,
    E4,
    FLOATS,
    HALF,
    INTS,
    LANES,
    LEAST,
    LOG2E,
    ONE,
    _ints,
    exp,
    f32,
    intrinsic,
    jit,
    larger,
    load,
    magnitude,
    part,
    splat,
    store,
    vector,
    where_positive,
)

# Abramowitz and Stegun 7.1.26, for the normal distribution: an error below 1e-7.
P = f32(0.3275911 / math.sqrt(2))
A1, A2, A3, A4, A5 = (f32(a / 2) for a in (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429))
DENSITY = f32(1 / math.sqrt(2 * math.pi))


@jit
def gelu(hidden_MF, bias_1F, after_MF, slope_MF):
    """GELU and its derivative, which share the exponential."""
    for i in range(hidden_MF.shape[0]):
        for j in range(0, hidden_MF.shape[1], LANES):
            x = load(hidden_MF, i, j) + load(bias_1F, 0, j)
            e = exp(x * x * -HALF)
            t = ONE / (magnitude(x) * P + ONE)
            tail = ((((A5 * t + A4) * t + A3) * t + A2) * t + A1) * t * e
            share = where_positive(x, ONE - tail, tail)
            store(after_MF, i, j, x * share)
            store(slope_MF, i, j, share + x * (DENSITY * e))


@intrinsic
def _times_power(typing, a, n):
    """a 2^k, where k is in the last bits of n."""

    def generate(context, builder, signature, args):
        number, power = (builder.bitcast(arg, INTS) for arg in args)
        return builder.bitcast(builder.add(number, builder.shl(power, _ints(23))), FLOATS)

    return vector(vector, vector), generate


WHOLE = f32(1.5 * 2**23)
"""Added to a small number, it leaves no bits after the point, and the whole number in the last ones."""


@part
def roughly_exp2(x):
    """2^x for x from -125 to 127, less than 1e-37 below, with an error of 4e-5 of its size."""
    y = larger(x, splat(LEAST + ONE))
    n = y + WHOLE
    f = y - (n - WHOLE)
    return _times_power((((E4 * f + E3) * f + E2) * f + E1) * f + ONE, n)


# The normal distribution's tail beyond x >= 0 over its density there, fitted so that x times the tail is off by 3e-5.
R0, R1, R2, R3 = f32(1.25324994), f32(-0.99727373), f32(0.60779972), f32(-0.28390199)
R4, R5, R6 = f32(0.09199015), f32(-0.0175137), f32(0.00142801)
LOG2_DENSITY = f32(math.log2(DENSITY))


@jit
def gelu_for_bf16(hidden_MF, bias_1F, after_MF, slope_MF):
    """The same, as exactly as bfloat16 can tell and without a division."""
    for i in range(hidden_MF.shape[0]):
        for j in range(0, hidden_MF.shape[1], LANES):
            x = load(hidden_MF, i, j) + load(bias_1F, 0, j)
            density = roughly_exp2(x * x * (-HALF * LOG2E) + LOG2_DENSITY)
            z = magnitude(x)
            tail = ((((((R6 * z + R5) * z + R4) * z + R3) * z + R2) * z + R1) * z + R0) * density
            share = where_positive(x, ONE - tail, tail)
            store(after_MF, i, j, x * share)
            store(slope_MF, i, j, share + x * density)


@jit
def gelu_backward(grad_MF, slope_MF, sums_1F):
    """The gradient before GELU, in place, and its sum."""
    for i in range(grad_MF.shape[0]):
        for j in range(0, grad_MF.shape[1], LANES):
            grad = load(grad_MF, i, j) * load(slope_MF, i, j)
            store(grad_MF, i, j, grad)
            store(sums_1F, 0, j, load(sums_1F, 0, j) + grad)
