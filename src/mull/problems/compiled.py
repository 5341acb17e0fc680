"""What all code that numba compiles shares: the compiler itself, and random numbers that are the same everywhere.

Neither numpy's nor numba's generators are used: the random numbers are splitmix64, so that a seed gives the same
instance with any version of either.

Import this module only where it is needed: numba is not part of the base install and takes a while to start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

from mull.constraints import IntArray

F = TypeVar("F", bound=Callable[..., Any])


def jit(function: F) -> F:
    """`numba.njit` with a cache on disk, typed as the function it compiles.

    The cache does not notice a change in a function of another file: after editing one here that other modules call,
    remove `__pycache__`.
    """
    return cast(F, numba.njit(cache=True)(function))


@jit
def draw(state: NDArray[np.uint64], below: int) -> int:
    """The next splitmix64 number, scaled to 0..below-1."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return int(((z >> np.uint64(32)) * np.uint64(below)) >> np.uint64(32))


@jit
def shuffle(state: NDArray[np.uint64], items: IntArray) -> None:
    """Fisher-Yates, in place."""
    for i in range(len(items) - 1, 0, -1):
        j = draw(state, i + 1)
        items[i], items[j] = items[j], items[i]
