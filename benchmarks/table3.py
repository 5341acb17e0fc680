"""Table 3: 16x16 boards by level, and the hardest 9x9 puzzles there are, by recurrences alone and with search.

16x16 boards are generated, which needs numba: `--prepare` does that beforehand and keeps them in the data folder.

    python benchmarks/table3.py --prepare                                    # a quarter of an hour on two cores
    python benchmarks/table3.py --resume --total 9                           # writes benchmarks/results/table3.json
    python benchmarks/table3.py --quick                                      # seconds, 4x4 boards; for the tests
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hardest import STEPS, measure_all
from mull.looks import Looks
from mull.recipes import Data, Recipe
from mull.runtime import TorchRuntime
from tables.command import main as run
from tables.rows import STEPS as SHORT
from tables.rows import Row

LATE = (*SHORT, 512)
"""16x16 boards take more recurrences than others."""
LOOKS = (Looks(rounds=16), Looks(rounds=160), Looks(rounds=16, tries=1024))
"""For models that are trained to solve in rounds: 160 give one value after the other. Many tries of few rounds find
more than a few of many (docs/log.md)."""
SINGLES = tuple(Data(f"sudoku-16x16-{level}_test", 1_000) for level in ("simple", "regular-simple", "regular-medium"))
"""Boards without a guess, for a model that is trained on such boards."""
LEVELS = (
    Data("sudoku-16x16-medium_test", 1_000),
    Data("sudoku-16x16-tough_test", 1_000),
    Data("sudoku-16x16-hard_test", 500),
    Data("sudoku16-basic", 1_000),  # of 6,000
    *(Data(f"sudoku16-{level}") for level in ("intermediate", "advanced")),
)
"""Boards of all levels, for a model that is trained on a mixture; the last three are others' and for tests alone."""


def searched(runtime: TorchRuntime, recipe: Recipe, quick: bool) -> dict[str, Any]:
    """What the trained model solves with more recurrences, and with search."""
    steps, count, calls = ((2, 4), 2, 10) if quick else (STEPS, 200, 300)
    return {"hardest": measure_all(runtime, recipe.test.load(recipe.seed), steps, count, calls)}


ROWS = [
    Row("sudoku-16x16-simple.paper", "sudoku-16x16-simple.paper", steps=LATE),
    Row("sudoku-16x16-medium.paper", "sudoku-16x16-medium.paper", steps=LATE),
    Row("sudoku-16x16-simple-rounds.paper", "sudoku-16x16-simple-rounds.paper", steps=LATE, looks=LOOKS),
    Row("sudoku-16x16-medium-rounds.paper", "sudoku-16x16-medium-rounds.paper", steps=LATE, looks=LOOKS),
    Row("sudoku-16x16-regular-simple.paper", "sudoku-16x16-regular-simple.paper", steps=LATE),
    Row("sudoku-16x16-regular-medium.paper", "sudoku-16x16-regular-medium.paper", steps=LATE),
    Row("sudoku-16x16.best", "sudoku-16x16.best", steps=LATE, tests=LEVELS),
    Row("sudoku-16x16-singles.best", "sudoku-16x16-singles.best", steps=LATE, tests=SINGLES),
    Row("sudoku-extreme.best", "sudoku-extreme.best", steps=STEPS, sides=1, extra=searched),
]


def main(argv: Sequence[str] | None = None) -> None:
    """Train, measure and write the file."""
    run(ROWS, "table3", __doc__ or "", argv)


if __name__ == "__main__":
    main()
