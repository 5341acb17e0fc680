"""Sudoku whose cells are images of handwritten digits; an empty cell is an image of 0.

A puzzle is an image of the whole board, 252x252 pixels for 9x9 cells of 28x28 (any other size is cut evenly): the name
of its file, or the image itself as a `data:` address, which is what data sets in text hold. Nothing in it says which
cells are given, so the model tells that too, and prints the givens as it recognised them.

What can be verified is that the board is a Sudoku; that its givens are those of the image is the model's word. Digits
are not relabelled to make more training boards: that takes knowing what the images show, and would leak the grounding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mull.constraints import UNKNOWN, BoolArray, Constraint, IntArray
from mull.errors import InvalidInput
from mull.images import cut, join, read_image, write_image
from mull.problem import Images, Instance, Problem, Symmetries, Variables
from mull.problems import mnist
from mull.problems.sudoku import Sudoku


@dataclass(frozen=True)
class VisualSudoku(Problem):
    """Fill a Sudoku board whose givens are images of digits, and whose empty cells are images of 0."""

    text_format: ClassVar[str] = (
        "the name of an image of the whole board, any size (it is cut evenly), handwritten digits, 0 for an empty "
        "cell; or the image itself, data:image/png;base64,... Answer: as for Sudoku."
    )

    box: int = 3
    """Side of a box, 2 or 3; the board has box**2 rows."""
    givens: tuple[int, int] | None = None
    """Fewest and most givens of generated puzzles; by box size if not set."""
    split: str = "train"
    """The part of MNIST whose images `generate` takes."""

    one_solution = False  # that depends on givens which only the model reads

    def __post_init__(self) -> None:
        if self.box not in (2, 3):
            raise InvalidInput(f"a Sudoku board of digits has boxes of side 2 or 3, not {self.box}")

    @property
    def name(self) -> str:
        return f"visual-{self.board.name}"

    @property
    def board(self) -> Sudoku:
        """The same puzzle with its digits in text."""
        return Sudoku(self.box, self.givens)

    def variables(self) -> Variables:
        return self.board.variables()

    def input_kind(self) -> Images:
        return Images(mnist.SIDE, mnist.SIDE, mnist.MEAN, mnist.DEVIATION, givens=True)

    def constraints(self) -> tuple[Constraint, ...]:
        """Rows, columns and boxes; what is given only the model reads."""
        return self.board.constraints()[:3]

    def symmetries(self) -> Symmetries:
        """Those that move cells; digits keep their names."""
        return replace(self.board.symmetries(), value_tokens=None)

    def part(self, split: str) -> VisualSudoku:
        """Splits share no image."""
        return replace(self, split=split)

    def generate(self, rng: np.random.Generator) -> Instance:
        return self.show(self.board.generate(rng), rng)

    def show(self, instance: Instance, rng: np.random.Generator) -> Instance:
        """A board in text with an image drawn for each cell."""
        share = rng.random(instance.inputs.shape)
        return replace(instance, inputs=mnist.write_digits(instance.inputs, share, self.split))

    def canonical(self, instance: Instance) -> bytes:
        """That of the board in the images, not of the images."""
        if instance.solution is None:
            raise ValueError("the canonical form of a Sudoku is that of its solved grid")
        tokens = np.where(instance.given, instance.solution + 1, 0).astype(np.uint8)
        return self.board.canonical(replace(instance, inputs=tokens))

    def recognised(self, instance: Instance, values: IntArray) -> tuple[Problem, Instance]:
        """The board in text that the model read from the images."""
        tokens = (values - UNKNOWN).astype(np.uint8)
        return self.board, Instance(inputs=tokens, given=tokens > 0)

    def parse(self, text: str) -> Instance:
        cells = self.variables().count
        images = cut(read_image(text), self.board.side, self.board.side, mnist.SIDE, mnist.SIDE)
        return Instance(inputs=images, given=np.zeros(cells, dtype=bool))

    def write(self, instance: Instance) -> str:
        return write_image(join(instance.inputs, self.board.side, self.board.side))

    def parse_answer(self, text: str) -> IntArray:
        return self.board.parse_answer(text)

    def write_answer(self, values: IntArray) -> str:
        return self.board.write_answer(values)

    def render(self, values: IntArray, given: BoolArray | None = None) -> str:
        return self.board.render(values, given)
