"""The place where reading photographs is plugged in: `mull.photo`, where it is installed."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from mull.serve.schemas import Reading

NEEDS = ("mull.photo", "cv2")


def available() -> bool:
    """Whether photographs can be read here."""
    return all(find_spec(name) is not None for name in NEEDS)


def read(content: bytes) -> Reading:
    """The puzzle on a photograph, for a person to look over; raises UserError if no board is found."""
    puzzle = import_module("mull.photo").read(content)
    return Reading(model="sudoku", puzzle=str(puzzle))
