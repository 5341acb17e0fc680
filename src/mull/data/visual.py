"""Sets of images: the boards of other sets with an MNIST image drawn for each cell, once and for all; and MNIST itself.

Training boards have training images, test boards test images, as in the paper; validation boards have images of
their own. Which image a cell gets depends on the set and the row alone, not on a seed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mull.constraints import IntArray
from mull.data.streams import stream
from mull.problem import Batch, NumpyBatch, Problem
from mull.problems import mnist
from mull.problems.mnist_mapping import MnistMapping
from mull.problems.visual_sudoku import VisualSudoku


@dataclass(frozen=True)
class VisualSet:
    """A set of boards shown in images; without boards, the images of MNIST themselves."""

    name: str
    problem: Problem
    split: str
    """The part of MNIST that its images come from."""
    rows: int
    """Rows unless another number is asked for."""
    description: str
    boards: str = ""
    """The set that the boards come from."""
    part: tuple[int, int | None] = (0, None)
    """Which rows of it: from the first number, up to the second."""


def _sudoku(
    name: str, boards: str, split: str, rows: int, what: str, part: tuple[int, int | None] = (0, None)
) -> VisualSet:
    return VisualSet(name, VisualSudoku(), split, rows, what, boards, part)


SETS = (
    _sudoku("satnet-v_train", "satnet_train", "train", 8_500, "SATNet-V: training boards in images", (0, 8_500)),
    _sudoku("satnet-v_valid", "satnet_train", "valid", 500, "SATNet-V: boards to choose by", (8_500, 9_000)),
    _sudoku("satnet-v_test", "satnet_test", "test", 1_000, "SATNet-V: test boards in images"),
    _sudoku("rrn-v_train", "rrn_train", "train", 9_000, "RRN-V: training puzzles in images"),
    _sudoku("rrn-v_valid", "rrn_valid", "valid", 1_000, "RRN-V: validation puzzles in images"),
    _sudoku("rrn-v_test", "rrn_test", "test", 1_000, "RRN-V: test puzzles in images"),
    VisualSet("mnist_train", MnistMapping(), "train", 55_000, "MNIST with symbols: images to train on"),
    VisualSet("mnist_valid", MnistMapping(), "valid", 5_000, "MNIST with symbols: images to choose by"),
    VisualSet("mnist_test", MnistMapping(), "test", 10_000, "MNIST with symbols: test images"),
)
VISUAL = {visual.name: visual for visual in SETS}
"""Sets of images by name."""


def show(visual: VisualSet, boards: NumpyBatch, rows: IntArray) -> NumpyBatch:
    """Boards in text, which are these rows of their set, in images."""
    share = stream(0, "images of", visual.name).random((int(rows.max()) + 1, boards.inputs.shape[1]))[rows]
    inputs = mnist.write_digits(boards.inputs, share, visual.split)
    return Batch(inputs=inputs, solution=boards.solution, given=boards.given, labelled=boards.labelled)


def mapping(visual: VisualSet) -> NumpyBatch:
    """The images of a split with their symbols."""
    images, digits = mnist.load(visual.split)
    assert isinstance(visual.problem, MnistMapping)
    solution = visual.problem.symbol_of[digits][:, None]
    given = np.zeros(solution.shape, dtype=bool)
    return Batch(inputs=images[:, None], solution=solution, given=given, labelled=~given)
