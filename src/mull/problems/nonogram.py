"""Nonograms: colour the cells of a square so that the runs of black cells in every row and column are its hints.

A puzzle is one line of text: the hints of the columns from left to right, then those of the rows from top to bottom,
`/` between lines and `.` between numbers (an empty line is `0` or nothing). The hints `1.1/1/2/1/2/1.1` of a 3x3
puzzle have one solution, which is written as bits, row by row:

    >>> nonogram = Nonogram(side=3)
    >>> instance = nonogram.parse("1.1/1/2/1/2/1.1")
    >>> print(nonogram.draw(instance, nonogram.parse_answer("100011101")))
         1
         1 1 2
      1 ██ · ·
      2  ·████
    1 1 ██ ·██

What the model sees of each cell are the hints of its row and then those of its column, padded with zeros on the left.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mull.constraints import UNKNOWN, BoolArray, Cardinality, Constraint, IntArray
from mull.errors import InvalidInput
from mull.picture import TINT, FloatArray, Line, Mark, Picture, Rect, Role, Text, frame, hairline
from mull.problem import Hints, Instance, NumpyBatch, Problem, Variables
from mull.problems.nonogram_runs import Runs, line_name

KINDS = ("unique", "line", "search")
LARGEST = 64
SYMBOLS = {UNKNOWN: "?", 0: "·", 1: "█"}
HINT = 0.6
"""Size of the hints in a picture, in cells."""


@dataclass(frozen=True)
class Nonogram(Problem):
    """Colour the cells of a square so that the runs of black cells in each row and column are its hints."""

    text_format: ClassVar[str] = (
        "the hints of the columns, then of the rows, / between lines and . between numbers: 1.1/1/2/1/2/1.1 is 3x3. "
        "Answer: bits, row by row, 1 for black."
    )

    side: int = 7
    """Rows, and columns, of the square."""
    kind: str = "unique"
    """What `generate` makes: any puzzle with one solution (`unique`), one that can be solved by looking at one line
    at a time (`line`), or one that cannot (`search`)."""

    def __post_init__(self) -> None:
        if not 2 <= self.side <= LARGEST:
            raise InvalidInput(f"a nonogram has side 2 to {LARGEST}, not {self.side}")
        if self.kind not in KINDS:
            raise InvalidInput(f"a nonogram is of the kind {', '.join(KINDS[:-1])} or {KINDS[-1]}, not {self.kind!r}")

    @property
    def name(self) -> str:
        size = "" if self.side == 7 else f"-{self.side}"
        return f"nonogram{size}" + ("" if self.kind == "unique" else f"-{self.kind}")

    @property
    def width(self) -> int:
        """The most hints that a line can have."""
        return (self.side + 1) // 2

    def variables(self) -> Variables:
        return Variables((self.side, self.side), values=2)

    def input_kind(self) -> Hints:
        return Hints(2 * self.width, largest=self.side)

    def constraints(self) -> tuple[Constraint, ...]:
        """The runs; and what follows from them as a cardinality, which losses and exact solvers understand."""
        runs = Runs(self.side)

        def bounds(inputs: NDArray[Any]) -> tuple[IntArray, IntArray]:
            blacks: IntArray = runs.hints(inputs).sum(axis=-1)
            return blacks, blacks

        labels = [f"{line_name(g, self.side)} has as many black cells as its hints say" for g in range(2 * self.side)]
        return runs, Cardinality(2, np.stack(runs.scopes()) * 2 + 1, bounds=bounds, labels=labels)

    def right(self, batch: NumpyBatch, answers_BV: IntArray) -> BoolArray:
        """Every answer that fits the hints is right, also where there are several."""
        return self.check(batch.inputs, answers_BV)

    def metrics(self, batch: NumpyBatch, answers_BV: IntArray) -> dict[str, float]:
        """Share of the boards, and of the rows and columns, whose runs are their hints."""
        fits_BG = ~Runs(self.side).violations(answers_BV, batch.inputs)
        return {"fitting_board": float(fits_BG.all(axis=1).mean()), "fitting_line": float(fits_BG.mean())}

    def generate(self, rng: np.random.Generator) -> Instance:
        """A random picture that is the only solution of its hints."""
        from mull.problems import nonogram_search  # numba, kept off the import path of solving

        hints, picture = nonogram_search.generate(self.side, self.kind, rng)
        return self._instance(hints, picture.ravel().astype(np.int64))

    def canonical(self, instance: Instance) -> bytes:
        """The least hints among the eight turned and mirrored puzzles; the solution need not be known."""
        rows, columns = self._hints(instance)
        rows_back, columns_back = _backwards(rows), _backwards(columns)
        images = [
            (rows, columns),
            (rows[::-1], columns_back),  # upside down
            (rows_back, columns[::-1]),  # left to right
            (rows_back[::-1], columns_back[::-1]),  # both
        ]
        keys: list[tuple[bytes, bytes]] = [(one.tobytes(), other.tobytes()) for one, other in images]
        return min(min(one + other, other + one) for one, other in keys)  # and the same with rows and columns swapped

    def parse(self, text: str) -> Instance:
        clues = text.strip().split("/")
        if len(clues) != 2 * self.side:
            raise InvalidInput(
                f"expected the hints of {self.side} columns and {self.side} rows with / between them, got {len(clues)}"
            )
        lines = []
        for place, clue in enumerate(clues):
            try:
                lines.append(_numbers(clue, self.side))
            except InvalidInput as error:
                raise InvalidInput(f"{line_name((place + self.side) % len(clues), self.side)}: {error}") from error
        columns, rows = lines[: self.side], lines[self.side :]
        of_columns, of_rows = sum(map(sum, columns)), sum(map(sum, rows))
        if of_columns != of_rows:
            raise InvalidInput(f"the columns have {of_columns} black cells, but the rows have {of_rows}")
        return self._instance(np.array([rows, columns], dtype=np.uint8))

    def write(self, instance: Instance) -> str:
        rows, columns = self._hints(instance)
        return "/".join(".".join(str(n) for n in line if n) or "0" for line in [*columns.tolist(), *rows.tolist()])

    def parse_answer(self, text: str) -> IntArray:
        bits, cells = text.strip(), self.side**2
        if len(bits) != cells:
            raise InvalidInput(f"expected {cells} bits, got {len(bits)} characters")
        if bits.strip("01"):
            raise InvalidInput(f"expected bits 0 and 1 alone, got {bits.strip('01')[0]!r}")
        return np.frombuffer(bits.encode(), np.uint8).astype(np.int64) - ord("0")

    def write_answer(self, values: IntArray) -> str:
        """Bits, row by row; `?` where a cell is unknown."""
        return "".join("?" if value == UNKNOWN else str(value) for value in np.ravel(values).tolist())

    def render(self, values: IntArray, given: BoolArray | None = None) -> str:
        """The picture alone; nothing is ever given. `draw` knows the hints too."""
        cells = {v: symbol * self._cell if v == 1 else symbol.rjust(self._cell) for v, symbol in SYMBOLS.items()}
        rows = np.reshape(values, (self.side, self.side)).tolist()
        return "\n".join("".join(cells[value] for value in row) for row in rows)

    def draw(self, instance: Instance, values: IntArray, styled: bool = False) -> str:
        """The picture with the hints of the rows on the left and those of the columns above."""
        rows, columns = self._hints(instance)
        above = columns[:, (columns > 0).any(axis=0)].T.tolist()
        left = [" ".join(str(n) for n in row if n) for row in rows.tolist()]
        margin = max(map(len, left))
        lines = [" " * (margin + 1) + "".join(f"{n or '':>{self._cell}}" for n in line) for line in above]
        picture = self.render(values).split("\n")
        lines += [f"{hints:>{margin}} {cells}" for hints, cells in zip(left, picture, strict=True)]
        return "\n".join(line.rstrip() for line in lines)

    def picture(
        self,
        instance: Instance,
        values: IntArray,
        sure: FloatArray | None = None,
        wrong: BoolArray | None = None,
    ) -> Picture:
        """The square with its hints; a cell is as black as it is likely to be, and hints that are not met are red."""
        rows, columns = self._hints(instance)
        beside, above = _places(rows, 0.24, 0.38), _places(columns, 0.7, 0.0)
        left, top = (max(away for _, away, _ in hints) + 0.4 for hints in (beside, above))
        share = np.ones(len(values)) if sure is None else sure
        likely = np.select([values == 1, values == 0], [share, 1.0 - share], 0.0)
        marks: list[Mark] = []
        for cell, black in enumerate(likely.tolist()):
            y, x = divmod(cell, self.side)
            if wrong is not None and wrong[cell]:
                marks.append(Rect(left + x, top + y, 1, 1, "wrong", max(black, TINT)))
            elif black:
                marks.append(Rect(left + x, top + y, 1, 1, "ink", black))
        marks += self._lines(left, top)
        broken = Runs(self.side).violations(values[None], instance.inputs[None])[0]
        roles: list[Role] = ["wrong" if line else "ink" for line in broken]
        marks += [Text(left - away, top + y + 0.5, hint, HINT, roles[y]) for y, away, hint in beside]
        marks += [Text(left + x + 0.5, top - away, hint, HINT, roles[self.side + x]) for x, away, hint in above]
        return Picture(left + self.side, top + self.side, tuple(marks))

    def _lines(self, left: float, top: float) -> list[Line]:
        """The lines of the square, thicker after every fifth cell of a large one, and its frame."""
        side, thin = self.side, hairline(self.side)
        lines: list[Line] = []
        for place in range(1, side):
            width = 2.5 * thin if side >= 10 and place % 5 == 0 else thin
            x, y = left + place, top + place
            lines.append(Line(((x, top), (x, top + side)), width, "faint"))  # seen on white and on black
            lines.append(Line(((left, y), (left + side, y)), width, "faint"))
        return [*lines, frame(left, top, side, side, 2.25 * thin)]

    @property
    def _cell(self) -> int:
        """Characters for one cell: two look square, three leave room between numbers of two digits."""
        return 2 if self.side < 10 else 3

    def _hints(self, instance: Instance) -> NDArray[Any]:
        """(2, side, width): the hints of the rows, and of the columns."""
        cells = instance.inputs.reshape(self.side, self.side, 2, self.width)
        return np.stack([cells[:, 0, 0], cells[0, :, 1]])

    def _instance(self, hints: NDArray[Any], solution: IntArray | None = None) -> Instance:
        """Each cell's input from hints (2, side, width)."""
        cells = np.empty((self.side, self.side, 2, self.width), np.uint8)
        cells[:, :, 0], cells[:, :, 1] = hints[0][:, None], hints[1][None]
        count = self.side**2
        return Instance(cells.reshape(count, -1), np.zeros(count, dtype=bool), solution)


@lru_cache(maxsize=1 << 16)
def _numbers(clue: str, side: int) -> tuple[int, ...]:
    """The hints of one line, padded on the left; the cache is for files, where the same ones come again and again."""
    parts = [] if clue.strip() in ("", "0") else [part.strip() for part in clue.split(".")]
    if len(parts) > side:
        raise InvalidInput(f"{len(parts)} numbers do not fit into {side} cells")
    for part in parts:
        if not (part.isascii() and part.isdigit() and len(part) < 4 and int(part) > 0):
            raise InvalidInput(f"{part[:8]!r} is no hint: expected numbers from 1 on with . between them")
    numbers = [int(part) for part in parts]
    if sum(numbers) + len(numbers) - 1 > side:
        raise InvalidInput(f"{'.'.join(parts)} does not fit into {side} cells")
    return (0,) * ((side + 1) // 2 - len(numbers)) + tuple(numbers)


def _places(lines: NDArray[Any], room: float, digit: float) -> list[tuple[int, float, str]]:
    """Each hint of lines (side, width): its line, how far from the square its middle is, and its text.

    A hint takes up `room`, and `digit` more for every character. A line without hints has a 0.
    """
    places = []
    for line, numbers in enumerate(lines.tolist()):
        away = 0.1
        for hint in reversed([str(n) for n in numbers if n] or ["0"]):
            length = room + digit * len(hint)
            places.append((line, away + length / 2, hint))
            away += length
    return places


def _backwards(hints: NDArray[Any]) -> NDArray[Any]:
    """Hints (side, width) of lines read from the other end, padded on the left again."""
    turned = hints[:, ::-1]
    return np.take_along_axis(turned, np.argsort(turned > 0, axis=1, kind="stable"), axis=1)
