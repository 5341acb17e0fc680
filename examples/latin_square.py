"""Latin squares as a class of your own: all of `Problem`, for what CPMpy cannot say or for a faster generator.

    mull train examples/latin_square.py:LatinSquare --out runs/latin
    mull export runs/latin --out latin.mull --problem examples/latin_square.py:LatinSquare
    mull solve --model latin.mull --problem examples/latin_square.py:LatinSquare "12.....3.4......"

A model file names the class and never runs code; so each command is told where the class is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mull.constraints import BoolArray, Constraint, IntArray, each_value_once, fixed_values
from mull.problem import Instance, NumpyBatch, Problem, Tokens, Variables
from mull.problems.cells import draw_cells, read_cells, write_cells


@dataclass(frozen=True)
class LatinSquare(Problem):
    """Fill an n x n square so that every row and every column holds each value exactly once."""

    side: int = 4
    empty: float = 0.5
    """Share of the cells that `generate` leaves empty; there may be other ways to fill them."""
    one_solution = False

    @property
    def name(self) -> str:
        return f"latin-{self.side}x{self.side}"

    def variables(self) -> Variables:
        return Variables((self.side, self.side), values=self.side)

    def input_kind(self) -> Tokens:
        return Tokens(vocabulary=self.side + 1)  # 0 is an empty cell

    def constraints(self) -> tuple[Constraint, ...]:
        cells = self.variables().index
        rows, columns = each_value_once(cells, self.side, "row"), each_value_once(cells.T, self.side, "column")
        return rows, columns, fixed_values(cells.size, self.side, lambda tokens: tokens.astype(np.int64) - 1)

    def given_values(self, instance: Instance) -> IntArray:
        return instance.inputs.astype(np.int64) - 1

    def generate(self, rng: np.random.Generator) -> Instance:
        """A shuffled cyclic square with cells left empty."""
        cyclic = np.add.outer(rng.permutation(self.side), rng.permutation(self.side)) % self.side
        solution = rng.permutation(self.side)[cyclic].ravel()
        given = rng.random(solution.size) >= self.empty
        return Instance(np.where(given, solution + 1, 0).astype(np.uint8), given, solution)

    def right(self, batch: NumpyBatch, answers_BV: IntArray) -> BoolArray:
        return self.check(batch.inputs, answers_BV)  # any square that keeps the givens, not the label alone

    def parse(self, text: str) -> Instance:
        tokens = read_cells(text, self.side**2, 1, self.side)
        return Instance(tokens, given=tokens > 0)

    def write(self, instance: Instance) -> str:
        return write_cells(instance.inputs, 1, self.side)

    def write_answer(self, values: IntArray) -> str:
        return write_cells(np.asarray(values) + 1, 1, self.side)

    def render(self, values: IntArray, given: BoolArray | None = None) -> str:
        cells = draw_cells(values, given, 1, self.side)
        return "\n".join(" ".join(cells[row : row + self.side]) for row in range(0, len(cells), self.side))


if __name__ == "__main__":
    square = LatinSquare()
    print(square.write(square.generate(np.random.default_rng())))
