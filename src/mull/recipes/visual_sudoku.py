"""Visual Sudoku recipes. Ungrounded: no label of a given cell is there to learn from; grounded: all labels are.

The paper's model with its dropout; what is not the paper's: larger initial embeddings (see docs/log.md), a batch that
fills a GPU better than its 16, and 500 of SATNet's 9,000 training boards, and other images, to choose models by.
"""

from __future__ import annotations

from dataclasses import replace

from mull.models.recurrent_transformer import ModelConfig
from mull.problems.visual_sudoku import VisualSudoku
from mull.recipes.recipe import Data, Recipe, Training


def visual_sudoku_satnet_paper() -> Recipe:
    """SATNet-V, ungrounded."""
    return Recipe(
        name="visual-sudoku-satnet.paper",
        description="SATNet-V (8.5k boards in images), ungrounded, L1R32H4, no augmentation",
        problem=VisualSudoku(),
        train=Data("satnet-v_train", labels="unknown"),
        valid=Data("satnet-v_valid"),
        test=Data("satnet-v_test"),
        model=ModelConfig(embedding_std=0.5),
        training=Training(updates=6_000, batch=128, learning_rate=1e-3, validate_every=500),
    )


def visual_sudoku_rrn_paper() -> Recipe:
    """RRN-V, ungrounded."""
    return replace(
        visual_sudoku_satnet_paper(),
        name="visual-sudoku-rrn.paper",
        description="RRN-V (9k puzzles in images), ungrounded, L1R32H4, no augmentation",
        train=Data("rrn-v_train", 9_000, labels="unknown"),
        valid=Data("rrn-v_valid"),
        test=Data("rrn-v_test"),
    )


def visual_sudoku_rrn_grounded_paper() -> Recipe:
    """RRN-V, grounded: what the labels of the givens are worth."""
    base = visual_sudoku_rrn_paper()
    return replace(
        base,
        name="visual-sudoku-rrn-grounded.paper",
        description="RRN-V (9k puzzles in images), grounded, L1R32H4, no augmentation",
        train=replace(base.train, labels="all"),
    )


def visual_sudoku_best() -> Recipe:
    """RRN-V, ungrounded, with what makes `sudoku-rrn.best` learn fast; symmetries move cells and no more."""
    base = visual_sudoku_rrn_paper()
    return replace(
        base,
        name="visual-sudoku.best",
        description="RRN-V (36k puzzles in images), ungrounded, cells moved, carried slots, feedback, injection",
        train=replace(base.train, count=36_000),
        model=ModelConfig(dropout=0.0, embedding_std=0.5, feedback=True, inject=True),
        training=Training(
            updates=12_000,
            batch=256,
            recurrences=16,
            learning_rate=1.5e-3,
            warmup=500,
            augment="geometric",
            carry=0.5,
            validate_every=1_000,
        ),
    )
