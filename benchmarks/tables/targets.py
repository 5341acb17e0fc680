"""What the tables have to reach: the paper's numbers, ours for its setting and for the best one, and what is left."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """One row of what was asked for; accuracies are shares of whole boards, in %."""

    what: str
    table: str
    test: str
    """The test set that counts."""
    paper: float | None
    """What the paper has, at T=64."""
    rows: tuple[str, ...] = ()
    """Rows of the table in the paper's setting; of several, the best on validation data counts."""
    must: float | None = None
    best: tuple[str, ...] = ()
    """Rows in the best setting."""
    must_best: float | None = None
    givens: str | None = None
    """Only boards with so many givens."""
    idea: str = ""
    """What to try next if it misses."""


ROUNDS = "more tries, of more kinds (`mull.looks.KINDS`); windows of 24 recurrences for medium boards, too"
"""For 16x16 boards of random grids in the paper's setting."""
TARGETS = (
    Target("SATNet boards, 9k", "table1", "satnet_test", 100, ("sudoku-satnet.paper",), 100,
           ("sudoku-satnet.best",), 100,
           idea="choose among the last checkpoints by harder boards (`rrn_valid`), more updates"),
    Target("RRN, 180k", "table1", "rrn_test", 99.5, ("sudoku-rrn.paper",), 99.5,
           ("sudoku-rrn.best",), 99.9,
           idea="two blocks, more puzzles with 17 to 19 givens in a batch, 40,000 updates"),
    Target("RRN-hardest (17 givens)", "table1", "rrn_test", 96.7, ("sudoku-rrn.paper",), 96.7,
           ("sudoku-rrn.best",), 99.5, givens="17",
           idea="two blocks, more puzzles with 17 to 19 givens in a batch, T=256 and more"),
    Target("SATNet-V ungrounded, 9k", "table1", "satnet-v_test", 93.5, ("visual-sudoku-satnet.paper",), 93.5,
           ("visual-sudoku-satnet.best",), 98,
           idea="dropout in the embedder, `image_rate` 0.3"),
    Target("RRN-V ungrounded, 9k", "table1", "rrn-v_test", 75.6, ("visual-sudoku-rrn.paper",), 75.6,
           ("visual-sudoku-rrn.best",), 90,
           idea="a longer or shorter rise of the learning rate (`warmup`), more dropout where images are read"),
    Target("RRN-V ungrounded, 180k", "table1", "rrn-v_test", 89.5, ("visual-sudoku-rrn-180k.paper",), 89.5,
           ("visual-sudoku-rrn-180k.best",), 97,
           idea="new images for every batch instead of one for each cell, more updates"),
    Target("RRN 9k, no constraint loss", "table2", "rrn_test", 81.9, ("sudoku-rrn-9k.paper",), 87,
           ("sudoku-rrn-9k.best",), None,
           idea="weight decay 0.5 or 2: it overfits"),
    Target("RRN 9k, both losses", "table2", "rrn_test", 87.0, ("sudoku-rrn-9k-both.paper",), 92,
           idea="attention 0.5 or 0.02, weight decay 1, cardinality 2"),
    Target("RRN-V 9k, both losses", "table2", "rrn-v_test", 83.6, ("visual-sudoku-rrn-both.paper",), 83.6,
           ("visual-sudoku-rrn-both.best",), 92,
           idea="counts from update 2,000 on, when digits are told apart; weight decay 0.3"),
    Target("4k labelled, 8k unlabelled, textual", "table2", "rrn_test", 73.3, ("sudoku-rrn-semi.paper",), 75,
           ("sudoku-rrn-semi.best",), 90,
           idea="a larger share of unlabelled boards, a little of the binarised loss at the end"),
    Target("4k labelled, 8k unlabelled, visual", "table2", "rrn-v_test", 64.4, ("visual-sudoku-rrn-semi.paper",), 66,
           ("visual-sudoku-rrn-semi.best",), 80,
           idea="labelled boards alone at first (a later `constraint_start`), weight decay 0.3"),
    Target("16x16 simple", "table3", "sudoku-16x16-simple_test", 99.9,
           ("sudoku-16x16-simple.paper", "sudoku-16x16-simple-rounds.paper"), 99.9,
           ("sudoku-16x16-singles.best",), 100, idea=ROUNDS),
    Target("16x16 medium", "table3", "sudoku-16x16-medium_test", 99.9,
           ("sudoku-16x16-medium.paper", "sudoku-16x16-medium-rounds.paper"), 99.9,
           ("sudoku-16x16-singles.best",), 100, idea=ROUNDS),
    Target("16x16 simple, regular grids", "table3", "sudoku-16x16-regular-simple_test", 99.9,
           ("sudoku-16x16-regular-simple.paper",), 99.9, ("sudoku-16x16-singles.best",), 100,
           idea="more updates"),
    Target("16x16 medium, regular grids", "table3", "sudoku-16x16-regular-medium_test", 99.9,
           ("sudoku-16x16-regular-medium.paper",), 99.9, ("sudoku-16x16-singles.best",), 100,
           idea="more updates: trainings of some thousand updates take off sooner or later"),
    Target("16x16 tough (90 to 116 givens)", "table3", "sudoku-16x16-tough_test", None, best=("sudoku-16x16.best",)),
    Target("16x16 hard (under 90 givens)", "table3", "sudoku-16x16-hard_test", None, best=("sudoku-16x16.best",)),
    *(
        Target(f"16x16, `sudoku16-{level}`", "table3", f"sudoku16-{level}", None, best=("sudoku-16x16.best",))
        for level in ("basic", "intermediate", "advanced")
    ),
)  # fmt: skip
AIM_RECURRENCE, AIM_SEARCH = 90, 99.9
"""For `extreme_test`, in %."""
