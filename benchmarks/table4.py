"""Table 4, the ablations: blocks and recurrences, heads and what they look at, positions, vanilla and recurrent
Transformers with the loss on all outputs or the last, grounded and ungrounded images.

Their figures, and that of accuracy against T by number of givens (from table 1), are drawn by `report.py`.

    python benchmarks/table4.py --resume                                    # writes benchmarks/results/table4.json
    python benchmarks/table4.py --resume --only L1R32,L64R1                 # a part of it
    python benchmarks/table4.py --quick                                     # seconds, 4x4 boards; for the tests
"""

from __future__ import annotations

from collections.abc import Sequence

from tables.attention import maps
from tables.command import main as run
from tables.rows import Row

NINE, SATNET = "sudoku-rrn-9k.paper", "sudoku-satnet.paper"
EIGHT = ("train.count=8000", "updates=4000", "validate_every=250")
SIZES = ((1, 16), (1, 32), (2, 16), (2, 32), (4, 16), (64, 1))
"""Blocks and recurrences of six models. The paper names L1R32 and L64R1 in its text; the others are our guess."""
HEADS = ("width=120", "updates=4000", "validate_every=250")
"""A width that 1, 2, 3 and 4 heads can share."""
VANILLA = ("blocks=32", "recurrences=1", "validate_steps=1", "last_step_only=true")
LAST = ("last_step_only=true",)
THREE = ("train.count=3000",)


def lr(blocks: int, recurrences: int) -> Row:
    """One of the six models; a single recurrence in training is a single one in testing."""
    once = ("validate_steps=1",) if recurrences == 1 else ()
    return Row(f"L{blocks}R{recurrences}", NINE, (*EIGHT, f"blocks={blocks}", f"recurrences={recurrences}", *once))


ROWS = [
    *(lr(blocks, recurrences) for blocks, recurrences in SIZES),
    *(Row(f"H{heads}", SATNET, (*HEADS, f"heads={heads}"), extra=maps) for heads in (1, 2, 3, 4)),
    Row("no-positions", SATNET, ("positions=false", "updates=4000")),
    Row("satnet-vanilla", SATNET, VANILLA),
    Row("satnet-last", SATNET, LAST),
    Row(SATNET, SATNET),
    Row("rrn-9k-vanilla", NINE, VANILLA),
    Row("rrn-9k-last", NINE, LAST),
    Row(NINE, NINE),
    Row("rrn-3k-vanilla", NINE, (*THREE, *VANILLA)),
    Row("rrn-3k-last", NINE, (*THREE, *LAST)),
    Row("rrn-3k-all", NINE, THREE),
    Row("visual-sudoku-rrn.paper", "visual-sudoku-rrn.paper"),
    Row("visual-sudoku-rrn-grounded.paper", "visual-sudoku-rrn-grounded.paper"),
]


def main(argv: Sequence[str] | None = None) -> None:
    """Train, measure and write the file."""
    run(ROWS, "table4", __doc__ or "", argv)


if __name__ == "__main__":
    main()
