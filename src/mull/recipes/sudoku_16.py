"""16x16 Sudoku: L1R32H8, 256 wide, 9,000 boards of our own generator for the paper's, whose generator is gone.

The paper's came from a web page for people to play on; ours of the levels `simple` and `medium` have as many givens and
need no guess, as such boards do (docs/problems/sudoku.md).
"""

from __future__ import annotations

from dataclasses import replace

from mull.models.recurrent_transformer import ModelConfig
from mull.problems.sudoku import Sudoku
from mull.recipes.recipe import Data, Recipe, Training


def sudoku_16_simple_paper() -> Recipe:
    """Boards with about 111 givens; our optimiser, decay and batch (docs/log.md)."""
    return Recipe(
        name="sudoku-16x16-simple.paper",
        description="16x16 boards with about 111 givens (9k), L1R32H8 d=256, no augmentation",
        problem=Sudoku(box=4),
        train=Data("sudoku-16x16-simple_train", 9_000),
        valid=Data("sudoku-16x16-simple_valid", 500),
        test=Data("sudoku-16x16-simple_test", 1_000),
        model=ModelConfig(width=256, heads=8, embedding_std=0.5),
        training=Training(
            updates=5_000,
            batch=64,
            optimiser="muon",
            learning_rate=3e-3,
            weight_decay=1.0,
            validate_every=500,
        ),
    )


def sudoku_16_medium_paper() -> Recipe:
    """Boards with about 95 givens."""
    base = sudoku_16_simple_paper()
    return replace(
        base,
        name="sudoku-16x16-medium.paper",
        description="16x16 boards with about 95 givens (9k), L1R32H8 d=256, no augmentation",
        train=Data("sudoku-16x16-medium_train", 9_000),
        valid=Data("sudoku-16x16-medium_valid", 500),
        test=Data("sudoku-16x16-medium_test", 1_000),
        training=replace(base.training, updates=9_000, learning_rate=5e-3, validate_every=1_000),
    )


def sudoku_16_regular_simple_paper() -> Recipe:
    """Boards with about 111 givens whose grids are one pattern: nearer to the log published with the paper."""
    base = sudoku_16_simple_paper()
    return replace(
        base,
        name="sudoku-16x16-regular-simple.paper",
        description="16x16 boards of regular grids with about 111 givens (9k), L1R32H8 d=256, no augmentation",
        train=Data("sudoku-16x16-regular-simple_train", 9_000),
        valid=Data("sudoku-16x16-regular-simple_valid", 500),
        test=Data("sudoku-16x16-regular-simple_test", 1_000),
        training=replace(base.training, updates=3_000, learning_rate=5e-3, validate_every=50),
    )


def sudoku_16_regular_medium_paper() -> Recipe:
    """Boards with about 95 givens whose grids are one pattern."""
    base = sudoku_16_regular_simple_paper()
    return replace(
        base,
        name="sudoku-16x16-regular-medium.paper",
        description="16x16 boards of regular grids with about 95 givens (9k), L1R32H8 d=256, no augmentation",
        train=Data("sudoku-16x16-regular-medium_train", 9_000),
        valid=Data("sudoku-16x16-regular-medium_valid", 500),
        test=Data("sudoku-16x16-regular-medium_test", 1_000),
        training=replace(base.training, updates=4_000, validate_every=100),
    )


def sudoku_16_best() -> Recipe:
    """Boards of all levels with all symmetries, carried slots, feedback and injection."""
    base = sudoku_16_medium_paper()
    return replace(
        base,
        name="sudoku-16x16.best",
        description="16x16 boards with 90 to 130 givens (18k), all symmetries, carried slots, feedback, injection",
        train=Data("sudoku-16x16-mixed_train", 18_000),  # as many as both of the paper's sets have
        valid=Data("sudoku-16x16-mixed_valid", 500),
        test=Data("sudoku-16x16-simple_test", 1_000),
        # half as wide as the paper's: there are kernels for that, and it learns more in the same time
        model=replace(base.model, width=128, heads=4, dropout=0.0, feedback=True, inject=True),
        training=Training(
            updates=12_000,
            batch=128,
            recurrences=16,
            optimiser="muon",
            learning_rate=5e-3,
            warmup=500,
            augment="all",
            carry=0.5,
            validate_every=1_000,
        ),
    )


def sudoku_16_singles_best() -> Recipe:
    """Both sets of boards without a guess; what taught the hardest 9x9 puzzles: two blocks, slots that stay longer."""
    base = sudoku_16_best()
    return replace(
        base,
        name="sudoku-16x16-singles.best",
        description="16x16 boards with about 111 and 95 givens (18k), two blocks, all symmetries, carried slots, "
        "feedback, injection",
        train=Data("sudoku-16x16-simple_train+sudoku-16x16-medium_train"),
        valid=Data("sudoku-16x16-medium_valid", 500),
        test=Data("sudoku-16x16-medium_test", 1_000),
        model=replace(base.model, blocks=2),
        training=replace(base.training, updates=16_000, carry=0.75, reset_unsolved=0.03, validate_steps=256),
    )
