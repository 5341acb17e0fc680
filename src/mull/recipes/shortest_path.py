"""Shortest path recipes: SP4 and SP12 with the paper's model, batch, learning rate and dropout.

What is not the paper's: labels for the nodes besides those for the edges; larger initial embeddings, without which
hardly anything is learned in the first hundreds of updates; the optimiser's schedule and the averaged weights, as
everywhere here; and the lengths of the trainings, which the paper states for SP12 alone (2,000 epochs). `.best`: the
same instances under the symmetries of the square, carried slots, feedback and injection.
"""

from __future__ import annotations

from dataclasses import replace

from mull.models.recurrent_transformer import ModelConfig
from mull.problems.shortest_path import ShortestPath
from mull.recipes.recipe import Data, Recipe, Training


def shortest_path_paper() -> Recipe:
    """SP4: 1,610 instances, 60/20/20; 2,000 epochs, as the paper has them for SP12."""
    return Recipe(
        name="shortest-path.paper",
        description="SP4 (4x4 grids, 966 to train on), L1R32H4, no constraint loss; labels on nodes too, 2,000 epochs",
        problem=ShortestPath(side=4),
        train=Data("sp4_train"),
        valid=Data("sp4_valid"),
        test=Data("sp4_test"),
        model=ModelConfig(embedding_std=0.5),
        training=Training(updates=15_000, batch=128, learning_rate=6e-4, validate_every=500),
    )


def shortest_path_12_paper() -> Recipe:
    """SP12: 20k/1k/1k instances from our generator, since the paper's file is not public; 160 epochs of its 2,000."""
    return Recipe(
        name="shortest-path-12.paper",
        description="SP12 (12x12 grids, 20k generated), L1R32H4, no constraint loss; labels on nodes too, 160 epochs",
        problem=ShortestPath(side=12),
        train=Data("shortest-path-12_train", 20_000),
        valid=Data("shortest-path-12_valid", 1_000),
        test=Data("shortest-path-12_test", 1_000),
        model=ModelConfig(embedding_std=0.5),
        training=Training(updates=100_000, batch=32, learning_rate=6e-4, validate_every=2_000),
    )


def shortest_path_best() -> Recipe:
    """SP4 with the symmetries of the square, carried slots, feedback and injection."""
    base = shortest_path_paper()
    return replace(
        base,
        name="shortest-path.best",
        description="SP4, symmetries of the square, carried slots, feedback, injection; labels on nodes too",
        model=replace(base.model, feedback=True, inject=True),
        training=Training(
            updates=8_000,
            batch=512,
            recurrences=16,
            learning_rate=1e-3,
            warmup=500,
            augment="all",
            carry=0.5,
            validate_every=500,
        ),
    )


def shortest_path_12_best() -> Recipe:
    """SP12 with the symmetries of the square, carried slots, feedback and injection."""
    base = shortest_path_12_paper()
    best = shortest_path_best()
    return replace(
        base,
        name="shortest-path-12.best",
        description="SP12 (20k generated), symmetries of the square, carried slots, feedback, injection",
        model=best.model,
        training=replace(best.training, updates=6_000, batch=128),
    )
