"""The recipe for a user's file of examples: a model by the number of variables, and what learns fast from few rows."""

from __future__ import annotations

from mull.models.recurrent_transformer import ModelConfig
from mull.problem import Problem
from mull.recipes.recipe import Data, Recipe, Training

SMALL = 36
"""Variables up to which a model half as wide does."""


def fitted(problem: Problem, file: str) -> Recipe:
    """Train, choose and test on the parts of a file of examples."""
    width = 64 if problem.variables().count <= SMALL else 128
    return Recipe(
        name=f"{problem.name}.fit",
        description=f"the examples of {file}; carried slots, feedback, injection",
        problem=problem,
        train=Data(f"{file}@train"),
        valid=Data(f"{file}@valid"),
        test=Data(f"{file}@test"),
        model=ModelConfig(width=width, heads=4, dropout=0.05, embedding_std=0.5, feedback=True, inject=True),
        training=Training(
            updates=2_000,
            batch=128,
            recurrences=8,
            learning_rate=2e-3,
            warmup=100,
            ema=0.99,
            carry=0.5,
            validate_every=100,
            validate_steps=32,
        ),
    )
