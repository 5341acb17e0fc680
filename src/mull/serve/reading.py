"""Puzzles from requests: nothing in them is ever taken for the name of a file."""

from __future__ import annotations

import base64
import binascii

import numpy as np

from mull.constraints import UNKNOWN, IntArray
from mull.errors import InvalidInput
from mull.images import PREFIX
from mull.picture import repeated
from mull.problem import Images, Instance, Problem
from mull.serve.schemas import Check, Conflict

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def parse(problem: Problem, text: str, image_side: int) -> Instance:
    """The instance that a text states; raises InvalidInput with what is wrong."""
    if isinstance(problem.input_kind(), Images):
        _guard_image(text, image_side)
    return problem.parse(text)


def read(problem: Problem, text: str, image_side: int, place: str = "") -> Instance:
    """The same, and its givens do not contradict each other."""
    try:
        instance = parse(problem, text, image_side)
        problem.validate(instance)
    except InvalidInput as error:
        raise InvalidInput(f"{place}: {error}" if place else str(error)) from error
    return instance


def check(problem: Problem, text: str, image_side: int) -> Check:
    """What is wrong with a puzzle that may be incomplete."""
    try:
        instance = parse(problem, text, image_side)
    except InvalidInput as error:
        return Check(readable=False, error=str(error), givens=[], conflicts=[], wrong=[])
    values = problem.given_values(instance)
    conflicts = broken(problem, instance, values)
    why = f"the givens contradict each other: they break {conflicts[0].rule!r}" if conflicts else None
    givens = [None if value == UNKNOWN else value for value in values.tolist()]
    wrong = at_fault(conflicts, values)
    return Check(readable=True, error=why, givens=givens, conflicts=conflicts, wrong=wrong)


def at_fault(conflicts: list[Conflict], values: IntArray) -> list[int]:
    """The variables to mark: of each broken rule, those whose value is there twice."""
    return [int(cell) for cell in np.flatnonzero(repeated([np.array(one.cells) for one in conflicts], values))]


def broken(problem: Problem, instance: Instance, values: IntArray) -> list[Conflict]:
    """The rules that values (V,) break."""
    return [
        Conflict(rule=rule, cells=[int(cell) for cell in scope if cell >= 0])
        for rule, scope in problem.conflicts(instance.inputs, values)
    ]


def _guard_image(text: str, side: int) -> None:
    """Only an image in the text itself, only PNG, and not larger than allowed before it is decoded."""
    text = text.strip()
    if not text.startswith(PREFIX):
        raise InvalidInput(f"expected an image in the text: {PREFIX}...")
    try:
        head = base64.b64decode(text[len(PREFIX) : len(PREFIX) + 44], validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidInput("the image in the text is not base64") from error
    if not head.startswith(SIGNATURE) or len(head) < 24:
        raise InvalidInput("the image in the text is no PNG")
    width, height = int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")
    if max(width, height) > side:
        raise InvalidInput(f"the image is {width}x{height} pixels; the most is {side} a side")
