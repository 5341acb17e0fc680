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
CHUNK = 2048
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
    x = np.clip(((a * across + b * down + c) + 1) * (width / 2) + 0.5, 0, width + 1)
    y = np.clip(((d * across + e * down + f) + 1) * (height / 2) + 0.5, 0, height + 1)
    left, top = np.minimum(x.astype(np.int32), width), np.minimum(y.astype(np.int32), height)
    right, below = x - left, y - top
    framed = np.pad(images_Nhw, ((0, 0), (1, 1), (1, 1))).astype(np.float32).reshape(-1)
    line = width + 2
    place = np.arange(count, dtype=np.int32)[:, None, None] * ((height + 2) * line) + top * line + left
    upper = framed[place] * (1 - right) + framed[place + 1] * right
    lower = framed[place + line] * (1 - right) + framed[place + line + 1] * right
    mixed: NDArray[np.uint8] = np.rint(upper * (1 - below) + lower * below).clip(0, 255).astype(np.uint8)
    return mixed
