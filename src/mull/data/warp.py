"""How far images may be turned, scaled, sheared, shifted and bent, and the same with numpy alone, to look at them so.

Trainings distort their batches on their own device (`distort.py`).

Shapes: N images, h and w pixels.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mull.processor import usable_cores

TURN = math.radians(12)
STRETCH = 0.12
SHEAR = 0.12
SHIFT = 0.14
"""Largest angle, change of each side's length, shear and shift (as a share of half the image) at strength 1."""
BEND, KNOTS = 0.12, 5
"""Largest shift (as above) of each of 5 x 5 points, with everything between them in proportion, at strength 1."""
CHUNK = 256
"""Images at a time: what belongs to them should fit into a cache."""


def rows(drawn_6N: Any, cos: Any, sin: Any) -> list[Any]:
    """The six numbers of each affine map, row by row, by six numbers between -1 and 1 (times a strength) each."""
    turn, wide, high, shear, right, down = drawn_6N
    cosine, sine = cos(TURN * turn), sin(TURN * turn)
    wide, high, shear = 1 + STRETCH * wide, 1 + STRETCH * high, SHEAR * shear
    first = [wide * cosine, shear * cosine - high * sine, SHIFT * right]
    return [*first, wide * sine, shear * sine + high * cosine, SHIFT * down]


def warp(images_Nhw: NDArray[np.uint8], drawn_6N: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Every image under the affine map that its six numbers say; what comes from outside is background (0)."""
    found = np.empty_like(images_Nhw)

    def run(begin: int) -> None:
        part = slice(begin, begin + CHUNK)
        found[part] = _warp(images_Nhw[part], drawn_6N[:, part])

    with ThreadPoolExecutor(usable_cores()) as pool:
        list(pool.map(run, range(0, len(images_Nhw), CHUNK)))
    return found


def _warp(images_Nhw: NDArray[np.uint8], drawn_6N: NDArray[np.float32]) -> NDArray[np.uint8]:
    count, height, width = images_Nhw.shape
    across = (2 * np.arange(width, dtype=np.float32) + 1) / width - 1  # middles of pixels, from -1 to 1
    down = ((2 * np.arange(height, dtype=np.float32) + 1) / height - 1)[:, None]
    a, b, c, d, e, f = (number[:, None, None] for number in rows(drawn_6N, np.cos, np.sin))
    # Where each pixel comes from, counted from the corner of a frame of one pixel of background.
    x, y = a * across + b * down, d * across + e * down
    for place, shift, side in ((x, c, width), (y, f, height)):
        place += shift + 1
        place *= side / 2
        place += 0.5
        np.clip(place, 0, side + 0.999, out=place)
    left, top = x.astype(np.intp), y.astype(np.intp)
    x -= left
    y -= top
    framed = np.zeros((count, height + 2, width + 2), np.float32)
    framed[:, 1:-1, 1:-1] = images_Nhw
    line, flat = width + 2, framed.reshape(-1)
    top *= line
    top += left
    top += np.arange(count)[:, None, None] * ((height + 2) * line)
    upper, lower = (_mixed(flat.take(top + below), flat.take(top + below + 1), x) for below in (0, line))
    found: NDArray[np.uint8] = np.rint(_mixed(upper, lower, y)).astype(np.uint8)
    return found


def _mixed(first: NDArray[np.float32], second: NDArray[np.float32], share: NDArray[np.float32]) -> NDArray[np.float32]:
    """The first where the share is 0, the second where it is 1."""
    second -= first
    second *= share
    second += first
    return second
