"""Boards as one line of text: a character a cell where every value is one digit, else numbers with spaces between."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mull.constraints import UNKNOWN, BoolArray, IntArray
from mull.errors import InvalidInput

Tokens = NDArray[np.uint8]
"""0 is an empty cell, `t` the value `first + t - 1`."""


def one_character(first: int, last: int) -> bool:
    """Whether values from `first` to `last` are written without spaces."""
    return first >= 0 and last <= 9


@cache
def _tokens(first: int, last: int) -> dict[str, int]:
    """The token of each cell that is written as it should be."""
    empty = {".": 0, "0": 0} if first > 0 else {".": 0}
    return empty | {str(value): value - first + 1 for value in range(first, last + 1)}


def read_cells(text: str, cells: int, first: int, last: int) -> Tokens:
    """The tokens of a line; `.` is an empty cell, and so is `0` where that is no value."""
    single, zero = one_character(first, last), first > 0
    parts = list(text.strip()) if single else text.split()
    if len(parts) != cells:
        unit = "characters" if single else "numbers with spaces between them"
        raise InvalidInput(f"expected {cells} {unit}, got {len(parts)}")
    known = _tokens(first, last)
    if all(part in known for part in parts):
        return np.array([known[part] for part in parts], dtype=np.uint8)
    tokens = np.zeros(cells, dtype=np.uint8)
    for place, part in enumerate(parts):
        if part == "." or (zero and re.fullmatch("0{1,2}", part)):
            continue
        value = int(part) if re.fullmatch("-?[0-9]{1,9}", part) else first - 1
        if not first <= value <= last:
            what = f"a {'digit' if single else 'number'} {first}-{last}" if first >= 0 else f"{first} to {last}"
            empty = "0 or . for an empty cell" if zero else ". for an empty cell"
            raise InvalidInput(f"cell {place + 1} is {part[:8]!r}: expected {what}, or {empty}")
        tokens[place] = value - first + 1
    return tokens


def write_cells(tokens: NDArray[Any], first: int, last: int, empty: str = "0") -> str:
    """The line that `read_cells` reads."""
    parts = (str(first + token - 1) if token else empty for token in np.asarray(tokens).tolist())
    return ("" if one_character(first, last) else " ").join(parts)


def draw_cells(values: IntArray, given: BoolArray | None, first: int, last: int) -> list[str]:
    """Each cell (V,) at equal width: `.` for unknown ones, given ones bold where `given` is passed."""
    width = max(len(str(first)), len(str(last)))
    cells = [("." if value == UNKNOWN else str(first + value)).rjust(width) for value in np.ravel(values).tolist()]
    if given is None:
        return cells
    return [f"\x1b[1m{cell}\x1b[0m" if fixed else cell for cell, fixed in zip(cells, given, strict=True)]
