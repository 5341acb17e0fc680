"""A problem that is known from examples alone: lines of symbols, and their solutions, symbol for symbol.

Two rows of a file with the columns `problem` and `solution` may be `1..2,1342` and `.3.1,2341`: four variables, the
input symbols `.`, `1`, `2`, `3`, and the values `1` to `4`. A symbol that always stands in the solution where it stands
in the problem (here `1`, `2` and `3`) is a given. Symbols are characters, or words where lines have spaces in them.

No rule is known, so no answer is ever called verified; see `docs/own_problem.md` for how to state rules.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mull.constraints import UNKNOWN, BoolArray, Constraint, IntArray
from mull.errors import InvalidInput
from mull.problem import Instance, Problem, Tokens, Variables

MOST_SYMBOLS = 255


@dataclass(frozen=True)
class Examples(Problem):
    """Find the solution that goes with a line of symbols, as examples have shown it."""

    label: str
    """What it is called."""
    length: int
    """Symbols in a line, which is also the number of variables."""
    symbols: tuple[str, ...]
    """Symbols of problems, in the order of their tokens."""
    answers: tuple[str, ...]
    """Symbols of solutions, in the order of the values."""
    copied: tuple[str, ...] = ()
    """Symbols that a solution repeats wherever its problem has them: the givens."""
    separator: str = ""
    """What stands between symbols: nothing, or a space."""

    def __post_init__(self) -> None:
        if self.length < 1 or not self.symbols or not self.answers:
            raise InvalidInput("a problem has at least one variable and one symbol")
        if max(len(self.symbols), len(self.answers)) > MOST_SYMBOLS:
            raise InvalidInput(f"{max(len(self.symbols), len(self.answers))} symbols; the most is {MOST_SYMBOLS}")

    @property
    def name(self) -> str:
        return self.label

    def variables(self) -> Variables:
        """A square where the number of variables is one, so that it can be drawn as a board; else one row."""
        side = math.isqrt(self.length)
        shape = (side, side) if side * side == self.length else (1, self.length)
        return Variables(shape, values=len(self.answers))

    def input_kind(self) -> Tokens:
        return Tokens(vocabulary=len(self.symbols))

    def constraints(self) -> tuple[Constraint, ...]:
        return ()

    def generate(self, rng: np.random.Generator) -> Instance:
        raise InvalidInput(f"{self.name} is known from examples alone: there is nothing to generate others by")

    def given_values(self, instance: Instance) -> IntArray:
        return self._stated[instance.inputs.astype(np.int64)]

    def give(self, inputs: NDArray[Any], values_BV: IntArray) -> NDArray[Any] | None:
        if not self.copied:
            return None
        token_of = {value: token for token, value in enumerate(self._stated.tolist())}
        tokens = np.array([token_of.get(value, UNKNOWN) for value in range(len(self.answers))] + [UNKNOWN])[values_BV]
        changed = (self._stated[inputs.astype(np.int64)] == UNKNOWN) & (tokens != UNKNOWN)
        return np.where(changed, tokens, inputs).astype(inputs.dtype)

    @property
    def _stated(self) -> IntArray:
        """The value that each token states, UNKNOWN where it states none."""
        value_of = {symbol: value for value, symbol in enumerate(self.answers)}
        return np.array([value_of[symbol] if symbol in self.copied else UNKNOWN for symbol in self.symbols])

    def parse(self, text: str) -> Instance:
        tokens = self._read(text, self.symbols).astype(np.uint8)
        copied = np.array([symbol in self.copied for symbol in self.symbols])
        return Instance(inputs=tokens, given=copied[tokens])

    def write(self, instance: Instance) -> str:
        return self.separator.join(self.symbols[token] for token in instance.inputs.tolist())

    def parse_answer(self, text: str) -> IntArray:
        return self._read(text, self.answers)

    def write_answer(self, values: IntArray) -> str:
        """Symbols of values; `?` for those that are unknown."""
        return self.separator.join("?" if v == UNKNOWN else self.answers[v] for v in np.ravel(values).tolist())

    def render(self, values: IntArray, given: BoolArray | None = None) -> str:
        width = max(map(len, (*self.answers, "?")))
        cells = ["?" if v == UNKNOWN else self.answers[v] for v in np.ravel(values).tolist()]
        cells = [cell.rjust(width) for cell in cells]
        if given is not None:
            cells = [f"\x1b[1m{cell}\x1b[0m" if fixed else cell for cell, fixed in zip(cells, given, strict=True)]
        rows, columns = self.variables().shape
        return "\n".join(" ".join(cells[row * columns : (row + 1) * columns]) for row in range(rows))

    def _read(self, text: str, symbols: tuple[str, ...]) -> IntArray:
        parts = split(text, self.separator)
        if len(parts) != self.length:
            raise InvalidInput(f"expected {self.length} symbols, got {len(parts)}")
        place = {symbol: number for number, symbol in enumerate(symbols)}
        for number, part in enumerate(parts, start=1):
            if part not in place:
                raise InvalidInput(f"symbol {number} is {part[:20]!r}: expected one of {' '.join(symbols)[:80]}")
        return np.array([place[part] for part in parts])


class UnevenError(InvalidInput):
    """An example of another length than the others; knows which one."""

    def __init__(self, row: int, reason: str) -> None:
        super().__init__(f"example {row + 1}: {reason}")
        self.row, self.reason = row, reason


def split(text: str, separator: str) -> list[str]:
    """The symbols of a line."""
    return text.split() if separator else list(text.strip())


def infer(name: str, pairs: Sequence[tuple[str, str]]) -> Examples:
    """The problem that lines and their solutions are examples of; raises InvalidInput if their lengths differ."""
    if not pairs:
        raise InvalidInput("no examples")
    separator = " " if any(" " in text.strip() for pair in pairs for text in pair) else ""
    length = len(split(pairs[0][0], separator))
    symbols: dict[str, set[str]] = {}
    answers: set[str] = set()
    for row, pair in enumerate(pairs):
        problem, solution = (split(text, separator) for text in pair)
        for what, parts in (("problem", problem), ("solution", solution)):
            if len(parts) != length:
                raise UnevenError(row, f"the {what} has {len(parts)} symbols, but the first problem has {length}")
        for symbol, answer in zip(problem, solution, strict=True):
            symbols.setdefault(symbol, set()).add(answer)
        answers.update(solution)
    copied = sorted(symbol for symbol, seen in symbols.items() if seen == {symbol})
    return Examples(name, length, _ordered(symbols), _ordered(answers), tuple(copied), separator)


def _ordered(symbols: Sequence[str] | set[str] | dict[str, set[str]]) -> tuple[str, ...]:
    """Numbers by size, then the rest by alphabet."""
    return tuple(sorted(symbols, key=lambda symbol: (not symbol.isdecimal(), len(symbol) * symbol.isdecimal(), symbol)))
