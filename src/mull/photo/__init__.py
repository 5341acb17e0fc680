"""Photographs of printed Sudoku boards: find the board, flatten it, read its digits.

    >>> from mull import photo
    >>> reading = photo.read("newspaper.jpg")
    >>> reading.givens, reading.certainty.min(), reading.changes

Needs the extra `mull[photo]`, which brings OpenCV; nothing of it is imported before the first call.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mull.errors import InvalidInput, UserError
from mull.images import read_photo
from mull.photo.repair import Change, changes, repair

__all__ = ["Change", "Reading", "read"]

UPRIGHT = 2.0
"""By how much (in logarithms) another side has to read better before the photograph counts as lying on its side."""
UNREADABLE = 0.5
"""Below this mean certainty of the cells that are not empty, nothing was read."""


@dataclass(frozen=True)
class Reading:
    """What was read off a photograph. Cells come row by row; a board's corners clockwise from its upper left one."""

    givens: str
    """81 characters, 0 for an empty cell: the likeliest reading, or the likeliest with exactly one solution."""
    changes: tuple[Change, ...]
    """Where `givens` is not the likeliest reading."""
    solutions: int | None
    """How many solutions the givens have: 0, 1, 2 for several; None if that could not be told in time."""
    certainty: NDArray[np.float32] = field(repr=False, compare=False)
    """(81,): the reader's probability of each cell of `givens`."""
    probabilities: NDArray[np.float32] = field(repr=False, compare=False)
    """(81, 10): of empty, 1, ..., 9."""
    corners: NDArray[np.float32] = field(repr=False, compare=False)
    """(4, 2): x and y in the photograph."""
    flat: NDArray[np.uint8] = field(repr=False, compare=False)
    """The board seen from above, upright, without a margin: grey, (height, width)."""
    score: float = 0.0
    """How grid-like it is, from 0 to 1."""

    @property
    def as_read(self) -> str:
        """The likeliest reading, whatever the rules say."""
        return "".join(map(str, self.probabilities.argmax(axis=1)))


def read(photo: str | Path | NDArray[Any], mend: bool = True) -> Reading:
    """Read the board in a photograph: a file, or an image (height, width) or (height, width, RGB) of bytes.

    With `mend`, a reading that contradicts the rules or has several solutions gives way to the likeliest one that has
    one solution, if there is a plausible one. Raises InvalidInput where there is no image, no
    board, or nothing to read.
    """
    if find_spec("cv2") is None:
        raise UserError("reading photographs needs OpenCV: install mull[photo]")
    from mull.photo.find import ENOUGH, FLAT, MARGIN, find_board, flatten

    grey, name = _grey(photo)
    corners, score = find_board(grey)
    if score < ENOUGH:
        raise InvalidInput(
            f"{name}: no Sudoku board found; the whole board should be in the picture, and fill most of it"
        )
    flat = flatten(grey, corners)
    turns, probabilities = _upright(flat)
    shown = probabilities.argmax(axis=1) > 0
    if not shown.any() or probabilities.max(axis=1)[shown].mean() < UNREADABLE:
        raise InvalidInput(f"{name}: a board was found, but no digits could be read in it; try a sharper picture")
    tokens, solutions = repair(probabilities) if mend else (probabilities.argmax(axis=1).astype(np.int64), None)
    edge = round(MARGIN * FLAT)
    return Reading(
        givens="".join(map(str, tokens)),
        changes=changes(probabilities, tokens),
        solutions=solutions,
        certainty=probabilities[np.arange(len(tokens)), tokens],
        probabilities=probabilities,
        corners=np.roll(corners, -turns, axis=0),
        flat=np.ascontiguousarray(np.rot90(flat[edge:-edge, edge:-edge], turns)),
        score=score,
    )


def _grey(photo: str | Path | NDArray[Any]) -> tuple[NDArray[np.uint8], str]:
    """A photograph in grey, and how to call it in a message."""
    if isinstance(photo, str | Path):
        return read_photo(str(photo)), str(photo)
    if photo.dtype != np.uint8 or photo.ndim not in (2, 3) or (photo.ndim == 3 and photo.shape[2] != 3):
        raise InvalidInput("a photograph is an array of bytes (height, width), or (height, width, 3)")
    if photo.ndim == 3:
        photo = (photo @ np.array([0.299, 0.587, 0.114])).round().astype(np.uint8)
    return np.ascontiguousarray(photo), "the photograph"


def _upright(flat: NDArray[np.uint8]) -> tuple[int, NDArray[np.float32]]:
    """Quarter turns (against the clock) that make the board upright, and probabilities (81, 10) read that way."""
    from mull.photo.reader import cut_cells, read_cells

    cells = cut_cells(flat)
    board = cells.reshape(9, 9, *cells.shape[1:])
    best = None
    for turns in range(4):
        turned = np.rot90(np.rot90(board, turns, (0, 1)), turns, (2, 3))
        probabilities = read_cells(np.ascontiguousarray(turned.reshape(cells.shape)))
        sure = float(np.log(probabilities.max(axis=1)).sum()) + UPRIGHT * (turns == 0)
        if best is None or sure > best[0]:
            best = sure, turns, probabilities
    assert best is not None
    return best[1], best[2]
