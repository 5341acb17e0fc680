"""Digits as a hand would draw them: a few strokes, shaken a little, in the size and place that MNIST has them.

Boards for visual Sudoku are made of these, so that the server needs no data set, and a cell without a drawing can show
the 0 that stands for "empty".
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from mull.images import Grey

SIDE, SCALE = 28, 8
"""Pixels of an image, and how much finer it is drawn."""
INNER = 20
"""Pixels of the square that holds the ink."""

# Strokes in a box from (0, 0) to (1, 1), y down: points of smooth curves.
STROKES: dict[int, list[list[tuple[float, float]]]] = {
    0: [[(0.5, 0.0), (0.2, 0.15), (0.12, 0.5), (0.22, 0.87), (0.5, 1.0), (0.8, 0.86), (0.88, 0.5), (0.8, 0.14), (0.5, 0.0)]],
    1: [[(0.58, 0.0), (0.53, 0.5), (0.45, 1.0)]],
    2: [[(0.15, 0.22), (0.35, 0.02), (0.7, 0.05), (0.8, 0.3), (0.55, 0.62), (0.2, 0.95)], [(0.2, 0.95), (0.5, 0.92), (0.92, 0.95)]],
    3: [[(0.2, 0.1), (0.5, 0.0), (0.8, 0.15), (0.7, 0.4), (0.42, 0.47)], [(0.42, 0.47), (0.78, 0.56), (0.85, 0.8), (0.55, 1.0), (0.15, 0.9)]],
    4: [[(0.25, 0.02), (0.2, 0.3), (0.18, 0.52)], [(0.18, 0.52), (0.5, 0.53), (0.85, 0.48)], [(0.78, 0.05), (0.72, 0.5), (0.66, 1.0)]],
    5: [[(0.85, 0.02), (0.55, 0.03), (0.3, 0.04)], [(0.3, 0.04), (0.27, 0.25), (0.24, 0.43)], [(0.24, 0.43), (0.55, 0.38), (0.8, 0.55), (0.78, 0.85), (0.5, 1.0), (0.15, 0.93)]],
    6: [[(0.68, 0.0), (0.38, 0.22), (0.2, 0.6), (0.28, 0.92), (0.55, 1.0), (0.8, 0.82), (0.7, 0.58), (0.45, 0.55), (0.24, 0.75)]],
    7: [[(0.12, 0.06), (0.5, 0.05), (0.85, 0.04)], [(0.85, 0.04), (0.62, 0.45), (0.42, 1.0)]],
    8: [[(0.75, 0.15), (0.5, 0.0), (0.25, 0.12), (0.32, 0.38), (0.62, 0.58), (0.75, 0.83), (0.5, 1.0), (0.25, 0.83), (0.38, 0.58), (0.68, 0.36), (0.75, 0.15)]],
    9: [[(0.75, 0.2), (0.5, 0.02), (0.24, 0.2), (0.3, 0.45), (0.55, 0.48), (0.74, 0.24)], [(0.75, 0.2), (0.72, 0.6), (0.62, 1.0)]],
}  # fmt: skip


def draw(digit: int, rng: np.random.Generator) -> Grey:
    """An image (28, 28) of a digit, light ink on a dark ground."""
    from PIL import Image, ImageDraw, ImageFilter

    size = SIDE * SCALE
    canvas = Image.new("L", (size, size))
    pen = ImageDraw.Draw(canvas)
    width = rng.uniform(2.0, 2.8) * SCALE
    tilt, narrow = rng.uniform(-0.12, 0.12), rng.uniform(0.72, 0.9)
    for stroke in STROKES[digit]:
        points = _smooth(np.array(stroke) + rng.normal(0, 0.012, (len(stroke), 2)))
        x = (points[:, 0] - 0.5) * narrow - tilt * (points[:, 1] - 0.5)
        placed = (np.stack([x, points[:, 1] - 0.5], axis=1) * (INNER - 2.5) + SIDE / 2) * SCALE
        line = [(float(a), float(b)) for a, b in placed]
        pen.line(line, fill=255, width=int(width), joint="curve")
        for a, b in (line[0], line[-1]):
            pen.ellipse((a - width / 2, b - width / 2, a + width / 2, b + width / 2), fill=255)
    blurred = canvas.filter(ImageFilter.GaussianBlur(0.35 * SCALE))
    image = np.asarray(blurred.resize((SIDE, SIDE), Image.Resampling.BOX), dtype=np.float32)
    return np.clip(image * 255 / max(image.max(), 1), 0, 255).astype(np.uint8)


@cache
def examples() -> tuple[Grey, ...]:
    """One image of each digit."""
    return tuple(draw(digit, np.random.default_rng(0)) for digit in range(10))


def _smooth(points: NDArray[np.float64], parts: int = 8) -> NDArray[np.float64]:
    """Points on a curve through the given ones (Catmull and Rom's spline)."""
    closed = bool(np.linalg.norm(points[0] - points[-1]) < 0.1) and len(points) > 4
    before, after = (points[-2], points[1]) if closed else (2 * points[0] - points[1], 2 * points[-1] - points[-2])
    around = np.concatenate([[before], points, [after]])
    share = np.linspace(0, 1, parts, endpoint=False)[:, None]
    pieces = []
    for a, b, c, d in zip(around, around[1:], around[2:], around[3:], strict=False):
        pieces.append(
            0.5
            * (2 * b + (c - a) * share + (2 * a - 5 * b + 4 * c - d) * share**2 + (3 * b - a - 3 * c + d) * share**3)
        )
    return np.concatenate([*pieces, points[-1:]])
