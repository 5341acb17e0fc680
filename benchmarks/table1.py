"""Table 1: whole boards right, textual and ungrounded visual Sudoku, in the paper's setting and in the best one.

RRN-hardest is the part of the RRN test boards with 17 givens: no training of its own.

    python benchmarks/table1.py --resume                                      # writes benchmarks/results/table1.json
    python benchmarks/table1.py --resume --only sudoku-rrn.paper --minutes 8  # a part of it; to be called again
    python benchmarks/table1.py --only sudoku-rrn.paper --try decay-1 --set weight_decay=1   # validated, not tested
    python benchmarks/table1.py --quick                                       # seconds, 4x4 boards; for the tests
"""

from __future__ import annotations

from collections.abc import Sequence

from tables.command import main as run
from tables.rows import paper_and_best

ROWS = paper_and_best(
    "sudoku-satnet.paper",
    "sudoku-satnet.best",
    "sudoku-rrn.paper",
    "sudoku-rrn.best",
    "visual-sudoku-satnet.paper",
    "visual-sudoku-satnet.best",
    "visual-sudoku-rrn.paper",
    "visual-sudoku-rrn.best",
    "visual-sudoku-rrn-180k.paper",
    "visual-sudoku-rrn-180k.best",
)


def main(argv: Sequence[str] | None = None) -> None:
    """Train, measure and write the file."""
    run(ROWS, "table1", __doc__ or "", argv)


if __name__ == "__main__":
    main()
