"""Pictures as data: marks in roles, not colours, so that a figure and a web page can draw the same thing.

A cell of a board is one unit wide; x goes to the right and y down, from the upper left corner. Later marks cover
earlier ones. Lines at the border reach over it by half their width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mull.constraints import UNKNOWN, BoolArray, IntArray

FloatArray = NDArray[np.floating[Any]]

Role = Literal["ink", "faint", "paper", "given", "model", "wrong"]
"""What a mark is: the puzzle itself, its quieter lines, its ground; given values, the model's, and those at fault."""

TEXT = 0.72
"""Size of a single character in a cell."""
TINT, GHOST = 0.14, 0.14
"""Opacity of the ground of a cell that is at fault, and of an image behind the value that was read from it."""


@dataclass(frozen=True)
class Rect:
    """A filled rectangle."""

    x: float
    y: float
    width: float
    height: float
    role: Role = "ink"
    opacity: float = 1.0


@dataclass(frozen=True)
class Line:
    """Straight strokes from point (x, y) to point, with round ends."""

    points: tuple[tuple[float, float], ...]
    width: float
    role: Role = "ink"
    opacity: float = 1.0


@dataclass(frozen=True)
class Circle:
    """A disc around (x, y); or, if it has an outline `width`, a ring around paper."""

    x: float
    y: float
    radius: float
    role: Role = "ink"
    opacity: float = 1.0
    width: float = 0.0


@dataclass(frozen=True)
class Text:
    """A few characters, centred at (x, y); the size is that of the font."""

    x: float
    y: float
    text: str
    size: float = TEXT
    role: Role = "ink"
    opacity: float = 1.0
    bold: bool = False


@dataclass(frozen=True, eq=False)
class Pixels:
    """An image (h, w) of bytes in a rectangle: how much ink each pixel has, from 0 (paper) to 255."""

    x: float
    y: float
    width: float
    height: float
    grey: NDArray[np.uint8]
    role: Role = "ink"
    opacity: float = 1.0

    def __eq__(self, other: object) -> bool:
        mine = (getattr(self, field.name) for field in fields(self))
        return isinstance(other, Pixels) and all(
            np.array_equal(value, getattr(other, field.name)) for value, field in zip(mine, fields(self), strict=True)
        )


Mark = Rect | Line | Circle | Text | Pixels


@dataclass(frozen=True)
class Picture:
    """Marks on a sheet of `width` times `height` units."""

    width: float
    height: float
    marks: tuple[Mark, ...]


def board(
    shape: tuple[int, int],
    names: Sequence[str],
    values: IntArray,
    given: BoolArray,
    sure: FloatArray | None = None,
    wrong: BoolArray | None = None,
    scopes: Sequence[IntArray] = (),
    images: NDArray[Any] | None = None,
) -> Picture:
    """A board with a value in each cell: given ones stand out, the model's are the larger the surer it is.

    `names` has a text for each value; `scopes` are the variables of each rule, for the lines. A cell that has an image
    (V, h, w; 0 is paper, and 255 or 1.0 ink) shows it until its value is known; a given one keeps it as its ground.
    """
    height, width = shape
    ground: list[Mark] = []
    texts: list[Mark] = []
    size = TEXT * min(1.0, 1.45 / max(map(len, names)))
    for cell, value in enumerate(values.tolist()):
        y, x = divmod(cell, width)
        bad, share = wrong is not None and bool(wrong[cell]), 1.0 if sure is None else float(sure[cell])
        if bad:
            ground.append(Rect(x, y, 1, 1, "wrong", TINT))
        if images is not None and (given[cell] or value == UNKNOWN):
            ground.append(Pixels(x, y, 1, 1, _ink(images[cell]), opacity=1.0 if value == UNKNOWN else GHOST))
        if value != UNKNOWN:
            role: Role = "wrong" if bad else "given" if given[cell] else "model"
            grown, opacity = size * (0.45 + 0.55 * share), 0.25 + 0.75 * share
            texts.append(Text(x + 0.5, y + 0.5, names[value], grown, role, opacity, bold=bool(given[cell])))
    return Picture(width, height, (*ground, *_lines(shape, scopes), *texts))


def _ink(image: NDArray[Any]) -> NDArray[np.uint8]:
    return (255 * np.clip(image, 0, 1) if image.dtype.kind == "f" else image).astype(np.uint8)


def hairline(side: float) -> float:
    """The width of a thin line on a board of that many cells: the same share of every board."""
    return side / 270


def frame(x: float, y: float, width: float, height: float, stroke: float) -> Line:
    """The outline of a rectangle."""
    right, below = x + width, y + height
    return Line(((x, y), (right, y), (right, below), (x, below), (x, y)), stroke)


def _lines(shape: tuple[int, int], scopes: Sequence[IntArray]) -> list[Line]:
    """Lines between cells, thick ones where neighbours share fewer scopes than others do, and the frame."""
    height, width = shape
    member = np.zeros((len(scopes), height, width), dtype=bool)
    for group, scope in enumerate(scopes):
        member[group].flat[scope] = True
    upright = (member[:, :, :-1] & member[:, :, 1:]).sum(axis=0)
    level = (member[:, :-1] & member[:, 1:]).sum(axis=0)
    most = max(upright.max(initial=0), level.max(initial=0))
    thin = hairline(max(shape))
    thick = 2.25 * thin
    edges = [(((x + 1, y), (x + 1, y + 1)), upright[y, x]) for y, x in np.ndindex(upright.shape)]
    edges += [(((x, y + 1), (x + 1, y + 1)), level[y, x]) for y, x in np.ndindex(level.shape)]
    lines = [Line(points, thin, "faint") for points, shared in edges if shared == most]
    lines += [Line(points, thick) for points, shared in edges if shared < most]
    return [*lines, frame(0, 0, width, height, thick)]


def repeated(scopes: Sequence[IntArray], values: IntArray) -> BoolArray:
    """(V,): which variables have a value that another variable of the same scope has too, or a scope of their own."""
    found = np.zeros(len(values), dtype=bool)
    for scope in scopes:
        same = (values[scope][:, None] == values[scope]).sum(axis=1)
        found[scope] |= (values[scope] != UNKNOWN) & ((same > 1) | (len(scope) == 1))
    return found
