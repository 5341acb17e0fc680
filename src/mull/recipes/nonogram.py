"""Nonogram recipes: the paper's table of hyper-parameters, L1R16H4 trained and 32 recurrences to solve.

The paper does not say for how long; its code's default is 200 epochs of 9,000 puzzles. Its text maps a cell's hints as
numbers to a vector by one linear layer; its code and ours look up a vector for each number. `.best`: the same puzzles,
with larger initial embeddings, carried slots, feedback and injection.
"""

from __future__ import annotations

from dataclasses import replace

from mull.models.recurrent_transformer import ModelConfig
from mull.problems.nonogram import Nonogram
from mull.recipes.recipe import Data, Recipe, Training


def nonogram_7_paper() -> Recipe:
    """The paper's 7x7 puzzles in its setting: batch 16, learning rate 6e-4, dropout 0.1."""
    return Recipe(
        name="nonogram-7.paper",
        description="7x7 nonograms of the paper, L1R16H4, the paper's setting",
        problem=Nonogram(side=7),
        train=Data("nonogram7_train"),
        valid=Data("nonogram7_valid"),
        test=Data("nonogram7_test"),
        model=ModelConfig(width=128, heads=4, dropout=0.1),
        training=Training(
            updates=112_500,
            batch=16,
            recurrences=16,
            learning_rate=6e-4,
            validate_every=2_000,
            validate_steps=32,
        ),
    )


def nonogram_15_paper() -> Recipe:
    """9,000 puzzles of 15x15 in the paper's setting: as 7x7, but 320 wide."""
    base = nonogram_7_paper()
    return replace(
        base,
        name="nonogram-15.paper",
        description="15x15 nonograms (9k), L1R16H4, the paper's setting",
        problem=Nonogram(side=15),
        train=Data("nonogram15_train", 9_000),
        valid=Data("nonogram15_valid"),
        test=Data("nonogram15_test"),
        model=replace(base.model, width=320),
    )


def nonogram_7_best() -> Recipe:
    """The same 7x7 puzzles with carried slots, feedback and injection, at a batch that fills a GPU."""
    base = nonogram_7_paper()
    return replace(
        base,
        name="nonogram-7.best",
        description="7x7 nonograms of the paper, carried slots, feedback, injection",
        model=replace(base.model, embedding_std=0.5, feedback=True, inject=True),
        training=Training(
            updates=8_000,
            batch=512,
            recurrences=16,
            learning_rate=2e-3,
            warmup=500,
            carry=0.5,
            validate_every=1_000,
            validate_steps=32,
        ),
    )


def nonogram_15_best() -> Recipe:
    """All 18,000 puzzles of 15x15 with carried slots, feedback and injection."""
    base = nonogram_7_best()
    return replace(
        base,
        name="nonogram-15.best",
        description="15x15 nonograms (18k), carried slots, feedback, injection",
        problem=Nonogram(side=15),
        train=Data("nonogram15_train"),
        valid=Data("nonogram15_valid"),
        test=Data("nonogram15_test"),
        model=replace(base.model, width=256, heads=8),
        training=replace(base.training, updates=6_000, batch=128, learning_rate=1e-3),
    )
