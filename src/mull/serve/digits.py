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

# Strokes in a box of 100 x 100, y down: points of smooth curves, `;` between strokes.
STROKES = {
    0: "50,0 20,15 12,50 22,87 50,100 80,86 88,50 80,14 50,0",
    1: "58,0 53,50 45,100",
    2: "15,22 35,2 70,5 80,30 55,62 20,95; 20,95 50,92 92,95",
    3: "20,10 50,0 80,15 70,40 42,47; 42,47 78,56 85,80 55,100 15,90",
    4: "25,2 20,30 18,52; 18,52 50,53 85,48; 78,5 72,50 66,100",
    5: "85,2 55,3 30,4; 30,4 27,25 24,43; 24,43 55,38 80,55 78,85 50,100 15,93",
    6: "68,0 38,22 20,60 28,92 55,100 80,82 70,58 45,55 24,75",
    7: "12,6 50,5 85,4; 85,4 62,45 42,100",
    8: "75,15 50,0 25,12 32,38 62,58 75,83 50,100 25,83 38,58 68,36 75,15",
    9: "75,20 50,2 24,20 30,45 55,48 74,24; 75,20 72,60 62,100",
}


def draw(digit: int, rng: np.random.Generator) -> Grey:
    """An image (28, 28) of a digit, light ink on a dark ground."""
    from PIL import Image, ImageDraw, ImageFilter

    size = SIDE * SCALE
    canvas = Image.new("L", (size, size))
    pen = ImageDraw.Draw(canvas)
    width = rng.uniform(2.0, 2.8) * SCALE
    tilt, narrow = rng.uniform(-0.12, 0.12), rng.uniform(0.72, 0.9)
    for stroke in STROKES[digit].split(";"):
        corners = np.array([[int(number) / 100 for number in point.split(",")] for point in stroke.split()])
        points = _smooth(corners + rng.normal(0, 0.012, corners.shape))
        x = (points[:, 0] - 0.5) * narrow - tilt * (points[:, 1] - 0.5)
        placed = (np.stack([x, points[:, 1] - 0.5], axis=1) * (INNER - 2.5) + SIDE / 2) * SCALE
        line = [(float(a), float(b)) for a, b in placed]
        pen.line(line, fill=255, width=int(width), joint="curve")
        for a, b in (line[0], line[-1]):
            pen.ellipse((a - width / 2, b - width / 2, a + width / 2, b + width / 2), fill=255)
    blurred = canvas.filter(ImageFilter.GaussianBlur(0.35 * SCALE))
    image = np.asarray(blurred.resize((SIDE, SIDE), Image.Resampling.BOX), dtype=np.float32)
    ink: Grey = np.clip(image * 255 / max(image.max(), 1), 0, 255).astype(np.uint8)
    return ink


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
