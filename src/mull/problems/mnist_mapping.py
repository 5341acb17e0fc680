"""MNIST mapping: one image of a digit, one of ten symbols; the plainest test of symbol grounding.

A model sees pairs of image and symbol and has to learn which digit each symbol stands for. The symbols are the letters
A to K without I, and which digit gets which is fixed but says nothing:

    >>> MnistMapping().symbol_of.tolist()
    [7, 2, 9, 4, 0, 6, 3, 8, 1, 5]

A puzzle is the name of an image file, or the image itself as a `data:` address. There is no rule by which an answer
could be verified.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mull.constraints import UNKNOWN, BoolArray, Constraint, IntArray
from mull.errors import InvalidInput
from mull.images import cut, join, read_image, write_image
from mull.problem import Images, Instance, Problem, Variables
from mull.problems import mnist

SYMBOLS = "ABCDEFGHJK"


@dataclass(frozen=True)
class MnistMapping(Problem):
    """Name the symbol that stands for the digit in an image."""

    text_format: ClassVar[str] = (
        "the name of an image of one handwritten digit, or the image itself, data:image/png;base64,... Answer: a "
        "letter from A to K."
    )

    split: str = "train"
    """The part of MNIST whose images `generate` takes."""

    @property
    def name(self) -> str:
        return "mnist-mapping"

    @property
    def symbol_of(self) -> IntArray:
        """(10,): the symbol of each digit, a fixed bijection."""
        return np.array([7, 2, 9, 4, 0, 6, 3, 8, 1, 5])

    def variables(self) -> Variables:
        return Variables((1, 1), values=len(SYMBOLS))

    def input_kind(self) -> Images:
        return Images(mnist.SIDE, mnist.SIDE, mnist.MEAN, mnist.DEVIATION)

    def constraints(self) -> tuple[Constraint, ...]:
        return ()

    def part(self, split: str) -> MnistMapping:
        """Splits share no image."""
        return replace(self, split=split)

    def generate(self, rng: np.random.Generator) -> Instance:
        """Any image of the split."""
        images, digits = mnist.load(self.split)
        place = int(rng.integers(len(images)))
        return self.instance(images[place], int(digits[place]))

    def instance(self, image: np.ndarray[tuple[int, ...], np.dtype[np.uint8]], digit: int) -> Instance:
        """An image with the symbol of its digit."""
        return Instance(image[None], np.zeros(1, dtype=bool), self.symbol_of[[digit]])

    def parse(self, text: str) -> Instance:
        image = cut(read_image(text), 1, 1, mnist.SIDE, mnist.SIDE)
        return Instance(image, np.zeros(1, dtype=bool))

    def write(self, instance: Instance) -> str:
        return write_image(join(instance.inputs, 1, 1))

    def parse_answer(self, text: str) -> IntArray:
        symbol = text.strip()
        if len(symbol) != 1 or symbol not in SYMBOLS:
            raise InvalidInput(f"expected one of the symbols {SYMBOLS}, got {symbol[:20]!r}")
        return np.array([SYMBOLS.index(symbol)])

    def write_answer(self, values: IntArray) -> str:
        return "?" if values[0] == UNKNOWN else SYMBOLS[int(values[0])]

    def render(self, values: IntArray, given: BoolArray | None = None) -> str:
        return self.write_answer(values)
