"""Sudoku recipes.

`.paper`: the paper's data and model and no other knowledge; `.best`: anything honest on the same puzzles.
"""

from __future__ import annotations

from dataclasses import replace

from mull.losses import LossWeights
from mull.models.recurrent_transformer import ModelConfig
from mull.problems.sudoku import Sudoku
from mull.recipes.recipe import Data, Recipe, Training

PAPER = Training(updates=5_000, batch=128, optimiser="muon", learning_rate=5e-3, weight_decay=1.0, validate_every=500)
"""For the paper's model on a few thousand puzzles: Muon, and as much decay as keeps it from learning them by heart."""


def sudoku_4x4() -> Recipe:
    """4x4 boards from our own generator: two minutes on two CPU cores."""
    return Recipe(
        name="sudoku-4x4",
        description="4x4 boards, all symmetries; two minutes on two CPU cores",
        problem=Sudoku(box=2),
        train=Data("sudoku-4x4_train", 4_000),
        valid=Data("sudoku-4x4_valid", 500),
        test=Data("sudoku-4x4_test", 1_000),
        model=ModelConfig(width=64, heads=4, dropout=0.0, feedback=True, inject=True),
        training=Training(
            updates=800,
            batch=128,
            recurrences=8,
            learning_rate=3e-3,
            warmup=50,
            ema=0.98,
            augment="all",
            validate_every=100,
            validate_steps=32,
        ),
    )


def sudoku_4x4_no_labels() -> Recipe:
    """4x4 boards without their solutions: only what is given, and that the rules count as one expects."""
    base = sudoku_4x4()
    return replace(
        base,
        name="sudoku-4x4.no-labels",
        description="4x4 boards without solutions: givens and constraints alone",
        train=replace(base.train, labels="given"),
        loss=LossWeights(cardinality=1, estimator="soft"),
    )


def sudoku_satnet_paper() -> Recipe:
    """The SATNet boards: the paper's model, data and dropout; our optimiser, batch and initial embeddings."""
    return Recipe(
        name="sudoku-satnet.paper",
        description="SATNet boards (9k), L1R32H4, no augmentation",
        problem=Sudoku(),
        train=Data("satnet_train"),
        valid=Data("rrn_valid", 1_800),  # harder boards: the SATNet split has no validation set of its own
        test=Data("satnet_test"),
        model=ModelConfig(embedding_std=0.5),
        training=replace(PAPER, updates=6_000),
    )


def sudoku_rrn_paper() -> Recipe:
    """180k RRN puzzles without augmentation, at a batch that fills a GPU."""
    return Recipe(
        name="sudoku-rrn.paper",
        description="RRN puzzles (180k), L1R32H4, no augmentation",
        problem=Sudoku(),
        train=Data("rrn_train"),
        valid=Data("rrn_valid", 3_600),
        test=Data("rrn_test"),
        model=ModelConfig(embedding_std=0.5),  # the paper's 0.02 and 0 learn several times more slowly: see docs/log.md
        training=replace(PAPER, updates=20_000, batch=256, weight_decay=0.3, validate_every=1_000),
    )


def sudoku_rrn_9k_paper() -> Recipe:
    """9k RRN puzzles without augmentation."""
    return replace(
        sudoku_rrn_paper(),
        name="sudoku-rrn-9k.paper",
        description="RRN puzzles (9k), L1R32H4, no augmentation",
        train=Data("rrn_train", 9_000),
        training=PAPER,
    )


def sudoku_rrn_best() -> Recipe:
    """180k RRN puzzles with all symmetries, windows of 16 recurrences, carried slots, feedback and injection."""
    base = sudoku_rrn_paper()
    return replace(
        base,
        name="sudoku-rrn.best",
        description="RRN puzzles (180k), all symmetries, carried slots, feedback, injection",
        model=ModelConfig(dropout=0.0, embedding_std=0.5, feedback=True, inject=True),
        training=Training(
            updates=20_000,
            batch=1024,
            recurrences=16,
            optimiser="muon",
            learning_rate=5e-3,
            warmup=500,
            ema=0.995,
            augment="all",
            carry=0.5,
            validate_every=1_000,
        ),
    )


def sudoku_satnet_best() -> Recipe:
    """The SATNet boards with what makes `sudoku-rrn.best` learn fast."""
    base, paper = sudoku_rrn_best(), sudoku_satnet_paper()
    return replace(
        base,
        name="sudoku-satnet.best",
        description="SATNet boards (9k), all symmetries, carried slots, feedback, injection",
        train=paper.train,
        valid=paper.valid,
        test=paper.test,
        training=replace(base.training, updates=3_000),
    )


def sudoku_rrn_9k_best() -> Recipe:
    """9k RRN puzzles with what makes `sudoku-rrn.best` learn fast."""
    base = sudoku_rrn_best()
    return replace(
        base,
        name="sudoku-rrn-9k.best",
        description="RRN puzzles (9k), all symmetries, carried slots, feedback, injection",
        train=Data("rrn_train", 9_000),
        training=replace(base.training, updates=6_000, weight_decay=1.0),
    )


def sudoku_extreme_best() -> Recipe:
    """The hardest puzzles there are: two blocks, and slots that stay longer with what they have not solved."""
    base = sudoku_rrn_best()
    return replace(
        base,
        name="sudoku-extreme.best",
        description="puzzles rated 11 and more (40k) and easier ones, two blocks, all symmetries, carried slots, "
        "feedback, injection",
        train=Data("extreme_train+rated+rrn_train:40000"),  # the easier ones teach what the others build on
        valid=Data("extreme_valid"),
        test=Data("extreme_test"),
        model=replace(base.model, blocks=2),
        training=replace(
            base.training, updates=24_000, carry=0.75, reset_unsolved=0.03, validate_every=2_000, validate_steps=256
        ),
    )


BOTH = LossWeights(cardinality=1, attention=0.1, estimator="soft", fixed_bounds_only=True)
"""Both losses on constraints; counts are expected ones, since the paper's estimator teaches less (docs/losses.md)."""
COUNTS = LossWeights(cardinality=1, estimator="soft", fixed_bounds_only=True)


def sudoku_rrn_9k_both_paper() -> Recipe:
    """9k RRN puzzles with both losses on constraints; that on attention starts late."""
    base = sudoku_rrn_9k_paper()
    return replace(
        base,
        name="sudoku-rrn-9k-both.paper",
        description="RRN puzzles (9k), L1R32H4, cardinality and attention losses, no augmentation",
        training=replace(base.training, attention_start=1_000),
        loss=BOTH,
    )


def sudoku_rrn_semi_paper() -> Recipe:
    """4k RRN puzzles with solutions and 8k without; on both, the cardinality loss, with expected counts."""
    base = sudoku_rrn_9k_paper()
    return replace(
        base,
        name="sudoku-rrn-semi.paper",
        description="RRN puzzles (4k labelled, 8k unlabelled), L1R32H4, cardinality loss, no augmentation",
        train=Data("rrn_train", 12_000, labelled_rows=4_000),
        training=replace(base.training, labelled_share=1 / 3),
        loss=COUNTS,
    )


def sudoku_rrn_semi_best() -> Recipe:
    """The same puzzles with expected counts, all symmetries, carried slots, feedback and injection."""
    base = sudoku_rrn_best()
    return replace(
        base,
        name="sudoku-rrn-semi.best",
        description="RRN puzzles (4k labelled, 8k unlabelled), all symmetries, carried slots, feedback, injection",
        train=Data("rrn_train", 12_000, labelled_rows=4_000),
        training=replace(
            base.training, updates=6_000, batch=512, weight_decay=1.0, labelled_share=1 / 2, validate_every=500
        ),
        loss=LossWeights(cardinality=1, estimator="soft"),
    )


def sudoku_rrn_no_labels() -> Recipe:
    """RRN puzzles without their solutions, otherwise as in `sudoku-rrn.best`."""
    base = sudoku_rrn_best()
    return replace(
        base,
        name="sudoku-rrn.no-labels",
        description="RRN puzzles (180k) without solutions: givens and constraints alone, all symmetries",
        train=replace(base.train, labels="given"),
        training=replace(base.training, updates=6_000, optimiser="adamw", learning_rate=1e-3, validate_every=500),
        loss=LossWeights(cardinality=1, estimator="soft"),
    )
