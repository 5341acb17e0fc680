"""A template for a problem of your own: completing a Latin square. Copy this file and follow the numbers.

Say here what the problem is and work one small example. `1..2.3..` is the top half of a 4x4 square: every row and
every column of the whole must hold each of 1..4 once, and the cells that are given stay.

When done: add the class to `problems/__init__.py`, and to the tests the one line `check_problem(LatinSquare())`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mull.constraints import UNKNOWN, BoolArray, Constraint, IntArray, each_value_once, fixed_values
from mull.errors import InvalidInput
from mull.problem import Instance, Problem, Symmetries, Tokens, Variables


@dataclass(frozen=True)
class LatinSquare(Problem):
    """Fill an n x n square so that every row and every column holds each value exactly once."""

    # 1. Options are fields with defaults and a sentence each. Say no to what cannot work.
    side: int = 5
    """Rows of the square, which is also the number of values."""
    empty: float = 0.5
    """Share of the cells that `generate` leaves empty."""

    def __post_init__(self) -> None:
        if not 2 <= self.side <= 9:
            raise InvalidInput(f"a Latin square has side 2 to 9, not {self.side}")

    # 2. The statement: a name, the variables, what the model sees of each, and what every answer must satisfy.
    @property
    def name(self) -> str:
        return f"latin-square-{self.side}x{self.side}"

    def variables(self) -> Variables:
        return Variables((self.side, self.side), values=self.side)

    def input_kind(self) -> Tokens:
        return Tokens(vocabulary=self.side + 1)  # 0 is an empty cell, t the value t - 1

    def constraints(self) -> tuple[Constraint, ...]:
        cells = self.variables().index
        rows, columns = each_value_once(cells, self.side, "row"), each_value_once(cells.T, self.side, "column")
        return rows, columns, fixed_values(cells.size, self.side, lambda tokens: tokens.astype(np.int64) - 1)

    def given_values(self, instance: Instance) -> IntArray:
        return instance.inputs.astype(np.int64) - 1

    def give(self, inputs: NDArray[Any], values_BV: IntArray) -> NDArray[Any]:
        # Leave this method and the one above out if inputs state no values outright. UNKNOWN + 1 is an empty cell.
        return np.where(inputs == 0, values_BV + 1, inputs).astype(inputs.dtype)

    # 3. Examples. Draw from `rng` alone: then the same seed makes the same data anywhere.
    def generate(self, rng: np.random.Generator) -> Instance:
        """A shuffled cyclic square with some cells left empty; there may be other ways to complete it."""
        cyclic = np.add.outer(rng.permutation(self.side), rng.permutation(self.side)) % self.side
        solution = rng.permutation(self.side)[cyclic].ravel()
        given = rng.random(solution.size) >= self.empty
        return Instance(np.where(given, solution + 1, 0).astype(np.uint8), given, solution)

    # 4. Text in and out. `parse` meets whatever users type: anything wrong is an InvalidInput of one line.
    def parse(self, text: str) -> Instance:
        line, cells = text.strip(), self.side**2
        if len(line) != cells:
            raise InvalidInput(f"expected {cells} characters, got {len(line)}")
        symbols = "0123456789"[: self.side + 1]
        for place, symbol in enumerate(line):
            if symbol not in symbols and symbol != ".":
                raise InvalidInput(f"cell {place + 1} is {symbol!r}: expected one of {symbols}, or . for an empty cell")
        tokens = np.array([0 if symbol == "." else int(symbol) for symbol in line], dtype=np.uint8)
        return Instance(tokens, given=tokens > 0)

    def write(self, instance: Instance) -> str:
        return "".join(str(token) for token in instance.inputs)

    def write_answer(self, values: IntArray) -> str:
        return "".join(str(value + 1) for value in values)

    def render(self, values: IntArray, given: BoolArray | None = None) -> str:
        cells = ["." if value == UNKNOWN else str(value + 1) for value in values]
        if given is not None:
            cells = [f"\x1b[1m{cell}\x1b[0m" if fixed else cell for cell, fixed in zip(cells, given, strict=True)]
        return "\n".join(" ".join(cells[row : row + self.side]) for row in range(0, len(cells), self.side))

    # 5. Optional: symmetries for augmentation, and a key that all instances they turn into each other share.
    def symmetries(self) -> Symmetries:
        """Transpose; relabel the values."""
        cells = self.variables().index
        return Symmetries((np.stack([cells.ravel(), cells.T.ravel()]),), value_tokens=np.arange(1, self.side + 1))

    def canonical(self, instance: Instance) -> bytes:
        """The lesser of the square and its transpose, with values renamed in the order in which they appear."""
        square = instance.inputs.reshape(self.side, self.side)
        keys = []
        for tokens in (square.ravel().tolist(), square.T.ravel().tolist()):
            names = {0: 0}
            keys.append(bytes(names.setdefault(token, len(names)) for token in tokens))
        return min(keys)
