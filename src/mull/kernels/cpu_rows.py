"""What `cpu_recur.py` does with the rows of a tile: layer norms, exponentials, GELU, and bytes instead of numbers."""

from __future__ import annotations

from mull.kernels.avx512 import ROWS, largest, nearest, store_bytes, times_power
from mull.kernels.cpu_token import statistics
from mull.kernels.rounded import LOW
from mull.kernels.simd import (
    E1,
    E2,
    E3,
    E4,
    HALF,
    LANES,
    ONE,
    ZERO,
    f32,
    larger,
    load,
    magnitude,
    part,
    smaller,
    splat,
    store,
    total,
)

TINY = f32(1e-30)
MOST, MOST_POSITIVE, MIDDLE = f32(255), f32(127), f32(128.5)
EDGE = f32(4.312)
"""Beyond it the normal distribution is taken to be 0 or 1; up to it, it is 1/2 + x (G0 + G1 x^2 + ...)."""
G0, G1, G2 = f32(0.39880207), f32(-0.066155583), f32(0.0096951397)
G3, G4, G5 = f32(-0.0010713838), f32(8.7117245e-05), f32(-5.006128e-06)
G6, G7, G8 = f32(1.9022167e-07), f32(-4.2489274e-09), f32(4.1973567e-11)


@part
def power(y):
    """2^y, with an error below 6e-5 of it."""
    n = nearest(y)
    f = y - n
    return times_power((((E4 * f + E3) * f + E2) * f + E1) * f + ONE, n)


@part
def gelu(x):
    """With an error below 8e-5 up to 10; beyond that far below 0 it is above 0, so never below -LOW."""
    near = larger(smaller(x, splat(EDGE)), splat(-EDGE))
    t = near * near
    p = ((((((((G8 * t + G7) * t + G6) * t + G5) * t + G4) * t + G3) * t + G2) * t + G1) * t + G0) * near
    return x * (p + HALF)


@part
def to_bytes(source, i, width, to, r):
    """A row in bytes around 128, and its scale."""
    most = splat(TINY)
    for j in range(0, width, LANES):
        most = larger(most, magnitude(load(source, i, j)))
    scale = largest(most) / MOST_POSITIVE
    share = ONE / scale
    for j in range(0, width, LANES):
        store_bytes(to, r, j, load(source, i, j) * share + MIDDLE)
    return scale


@part
def hidden_to_bytes(hidden_RF, r, to):
    """The same for numbers that are not below -LOW, in bytes from 0 on."""
    most = splat(TINY)
    for j in range(0, hidden_RF.shape[1], LANES):
        most = larger(most, load(hidden_RF, r, j))
    scale = (largest(most) + LOW) / MOST
    share = ONE / scale
    shift = LOW * share + HALF
    for j in range(0, hidden_RF.shape[1], LANES):
        store_bytes(to, r, j, load(hidden_RF, r, j) * share + shift)
    return scale


@part
def normed(x_PH, first, to_RH):
    """Nine layer norms."""
    for r in range(ROWS):
        mean, scale = statistics(x_PH, first + r)
        for j in range(0, x_PH.shape[1], LANES):
            store(to_RH, r, j, (load(x_PH, first + r, j) - mean) * scale)


@part
def exponentials(scores, factor, shares, first, scale_P):
    """2^(factor (x - max)) of nine rows; what makes shares of them goes to `scale`."""
    for r in range(ROWS):
        most = load(scores, r, 0)
        for j in range(LANES, scores.shape[1], LANES):
            most = larger(most, load(scores, r, j))
        most, sums = splat(largest(most)), splat(ZERO)
        for j in range(0, scores.shape[1], LANES):
            e = power((load(scores, r, j) - most) * factor)
            store(shares, r, j, e)
            sums = sums + e
        scale_P[first + r] = ONE / total(sums)
