"""Table 2: constraint losses on 9k puzzles, and 4k labelled puzzles with more that have no labels; textual and visual.

Counts are expected ones, from the first update on; `tables/constraints.py` compares them with the paper's estimator and
with a late start, on short trainings.

    python benchmarks/table2.py --resume                                    # writes benchmarks/results/table2.json
    python benchmarks/table2.py --resume --only sudoku-rrn-semi.paper       # a part of it
    python benchmarks/table2.py --quick                                     # seconds, 4x4 boards; for the tests
"""

from __future__ import annotations

from collections.abc import Sequence

from tables.command import main as run
from tables.rows import Row, paper_and_best

ALONE = ("train.count=4000", "train.labelled_rows=none", "labelled_share=none")
"""The labelled puzzles without the others."""
EIGHT = ("train.count=8000", "labelled_share=0.5")
"""As many puzzles without labels as with."""


def rows(kind: str) -> list[Row]:
    """The paper's two tables for `sudoku-rrn` or `visual-sudoku-rrn`; recipes in the paper's setting are some of it."""
    nine, semi = "sudoku-rrn-9k" if kind == "sudoku-rrn" else kind, f"{kind}-semi.paper"
    return [
        Row(f"{nine}.paper", f"{nine}.paper"),
        Row(f"{nine}-cardinality", f"{nine}-both.paper", ("attention=0",)),
        Row(f"{nine}-attention", f"{nine}-both.paper", ("cardinality=0",)),
        Row(f"{nine}-both.paper", f"{nine}-both.paper"),
        Row(f"{kind}-4k", semi, (*ALONE, "cardinality=0")),
        Row(f"{kind}-4k-counts", semi, ALONE),
        Row(f"{kind}-4k-4k", semi, EIGHT),
        Row(semi, semi),
        Row(f"{kind}-semi.best", f"{kind}-semi.best"),
    ]


ROWS = [
    *rows("sudoku-rrn"),
    *paper_and_best("sudoku-rrn-9k.best"),
    *rows("visual-sudoku-rrn"),
    *paper_and_best("visual-sudoku-rrn-both.best"),
]


def main(argv: Sequence[str] | None = None) -> None:
    """Train, measure and write the file."""
    run(ROWS, "table2", __doc__ or "", argv)


if __name__ == "__main__":
    main()
