"""Sudoku of any box size: 4x4, 9x9, 16x16, 25x25.

A 4x4 puzzle `4..1..2..1.2....` is 16 variables of 4 values. Its input tokens are `4 0 0 1 0 0 2 ...` (0 is an empty
cell) and its solution, as values that start at 0, `3 1 2 0 0 2 1 ...`:

    >>> sudoku = Sudoku(box=2)
    >>> instance = sudoku.parse("4..1..2..1.2....")
    >>> sudoku.given_values(instance).tolist()[:6]
    [3, -1, -1, 0, -1, -1]

Boards with more than nine values are written as numbers with spaces between them, `0` for an empty cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mull.constraints import BoolArray, Constraint, IntArray, each_value_once, fixed_values
from mull.errors import InvalidInput
from mull.problem import Instance, Problem, Symmetries, Tokens, Variables
from mull.problems.cells import draw_cells, read_cells, write_cells

LEVELS_16X16 = {
    "simple": (106, 116),
    "medium": (90, 100),
    "tough": (90, 116),
    "hard": (80, 89),
    "mixed": (90, 130),
    "regular-simple": (106, 116),
    "regular-medium": (90, 100),
}
"""Numbers of givens on 16x16 boards. The means of simple and medium ones, 111 and 95, are those of the paper's data;
mixed ones are for training, from boards that fill themselves to `medium` and `tough` ones."""
SINGLES_16X16 = {"simple": 1.0, "medium": 1.0, "mixed": 0.5, "regular-simple": 1.0, "regular-medium": 1.0}
"""Share of boards at a level that are made to be solved without a guess, as those for people are; of others none is."""
REGULAR_16X16 = ("regular-simple", "regular-medium")
"""Levels whose solved grids are all one pattern."""
DEFAULT_GIVENS = {2: (4, 8), 3: (24, 34), 4: LEVELS_16X16["simple"], 5: (280, 320)}
"""Numbers of givens that `generate` draws from, by box size."""


@dataclass(frozen=True)
class Sudoku(Problem):
    """Fill an n x n board so that every row, column and box holds each value exactly once."""

    text_format: ClassVar[str] = (
        "81 characters (4x4: 16), row by row, 0 or . for an empty cell; 16x16 and 25x25: numbers with spaces between "
        "them. Answers alike."
    )

    box: int = 3
    """Side of a box; the board has box**2 rows."""
    givens: tuple[int, int] | None = None
    """Fewest and most givens of generated puzzles; by box size if not set."""
    singles: float | None = None
    """Share of generated puzzles that are made to be solved without a guess, by naked and hidden singles alone; the
    others just have one solution. If not set: none, but all 16x16 boards whose `givens` are not set either."""
    regular: bool = False
    """Whether the solved grids of generated puzzles are one regular pattern under random symmetries, as the simplest
    programs make them. All of them are of one class, whose regularity can be learned."""

    def __post_init__(self) -> None:
        if self.box not in DEFAULT_GIVENS:
            raise InvalidInput(f"a Sudoku box has side 2, 3, 4 or 5, not {self.box}")
        if self.singles is not None and not 0 <= self.singles <= 1:
            raise InvalidInput(f"singles is a share between 0 and 1, not {self.singles}")

    @property
    def side(self) -> int:
        """Rows of the board, which is also the number of values."""
        return self.box**2

    @property
    def name(self) -> str:
        return "sudoku" if self.box == 3 else f"sudoku-{self.side}x{self.side}"

    def variables(self) -> Variables:
        return Variables((self.side, self.side), values=self.side)

    def input_kind(self) -> Tokens:
        return Tokens(vocabulary=self.side + 1)

    def constraints(self) -> tuple[Constraint, ...]:
        cells = self.variables().index
        boxes = cells.reshape(self.box, self.box, self.box, self.box).swapaxes(1, 2).reshape(self.side, self.side)
        groups = {"row": cells, "column": cells.T, "box": boxes}
        once = [each_value_once(scopes, self.side, name) for name, scopes in groups.items()]
        return (*once, fixed_values(cells.size, self.side, lambda tokens: tokens.astype(np.int64) - 1))

    def given_values(self, instance: Instance) -> IntArray:
        return instance.inputs.astype(np.int64) - 1

    def give(self, inputs: NDArray[Any], values_BV: IntArray) -> NDArray[Any]:
        return np.where(inputs == 0, values_BV + 1, inputs).astype(inputs.dtype)  # UNKNOWN + 1 is an empty cell

    def symmetries(self) -> Symmetries:
        """Permute bands, rows in a band, stacks, columns in a stack; transpose; relabel the digits."""
        cells, box = self.variables().index, self.box
        orders = np.array(list(permutations(range(box))))
        rows = [(orders[:, :, None] * box + np.arange(box)).reshape(-1, self.side)]  # whole bands
        for band in range(box):
            order = np.tile(np.arange(self.side), (len(orders), 1))
            order[:, band * box : (band + 1) * box] = orders + band * box
            rows.append(order)
        tables = [cells[order].reshape(len(order), -1) for order in rows]
        tables += [cells.T[order].swapaxes(1, 2).reshape(len(order), -1) for order in rows]
        tables.append(np.stack([cells.ravel(), cells.T.ravel()]))
        return Symmetries(tuple(tables), value_tokens=np.arange(1, self.side + 1))

    def generate(self, rng: np.random.Generator) -> Instance:
        """A puzzle with exactly one solution."""
        from mull.problems import sudoku_search  # numba, kept off the import path of solving

        low, high = self.givens or DEFAULT_GIVENS[self.box]
        givens, seed = int(rng.integers(low, high + 1)), int(rng.integers(2**63))
        share = self.singles
        if share is None:
            share = SINGLES_16X16["simple"] if self.box == 4 and self.givens is None else 0.0
        singles = share > 0 and rng.random() < share
        tokens, solution = sudoku_search.generate(self.box, givens, seed, singles, self.regular)
        return self._instance(tokens, solution)

    def canonical(self, instance: Instance) -> bytes:
        """The least form of the solved grid under all symmetries; see `sudoku_search.canonical`.

        Regular grids have only one, so there it is the grid itself, whatever its values are called.
        """
        from mull.problems import sudoku_search

        if instance.solution is None:
            raise ValueError("the canonical form of a Sudoku is that of its solved grid")
        if self.regular:
            names = instance.solution[: self.side].argsort()  # the first row becomes 0, 1, 2, ...
            return names[instance.solution].astype(np.uint8).tobytes()
        return sudoku_search.canonical(self.box, instance.inputs, instance.solution)

    def parse(self, text: str) -> Instance:
        return self._instance(read_cells(text, self.side**2, 1, self.side))

    def write(self, instance: Instance) -> str:
        return write_cells(instance.inputs, 1, self.side)

    def write_answer(self, values: IntArray) -> str:
        return write_cells(np.asarray(values) + 1, 1, self.side)

    def render(self, values: IntArray, given: BoolArray | None = None) -> str:
        """The board with lines between boxes; `.` for unknown cells, given cells bold where `given` is passed."""
        width, cells = len(str(self.side)), draw_cells(values, given, 1, self.side)
        lines = []
        for row in range(self.side):
            if row and row % self.box == 0:
                lines.append("-+-".join(["-" * (self.box * (width + 1) - 1)] * self.box))
            line = [cells[row * self.side + stack * self.box :][: self.box] for stack in range(self.box)]
            lines.append(" | ".join(" ".join(part) for part in line))
        return "\n".join(lines)

    def _instance(self, tokens: NDArray[Any], solution: IntArray | None = None) -> Instance:
        return Instance(inputs=tokens.astype(np.uint8), given=tokens > 0, solution=solution)
