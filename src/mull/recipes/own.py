"""Recipes for problems that mull does not know: sizes by the number of variables, data generated or from a file."""

from __future__ import annotations

from dataclasses import replace

from mull.models.recurrent_transformer import ModelConfig
from mull.problem import Problem
from mull.recipes.recipe import Data, Recipe, Training

SMALL = 100
"""Variables of a problem that a small model and minutes on a CPU do for."""


def own_recipe(problem: Problem) -> Recipe:
    """Feedback and injection, all symmetries there are, and instances from the problem's generator."""
    small = problem.variables().count <= SMALL
    return Recipe(
        name=problem.name,
        description=f"{problem.name}, a problem of your own",
        problem=problem,
        train=Data(f"{problem.name}_train", 20_000 if small else 50_000),
        valid=Data(f"{problem.name}_valid", 500),
        test=Data(f"{problem.name}_test", 1_000),
        model=ModelConfig(
            width=64 if small else 128, heads=4, dropout=0.0, embedding_std=0.5, feedback=True, inject=True
        ),
        training=Training(
            updates=2_000 if small else 10_000,
            batch=128,
            recurrences=8 if small else 16,
            learning_rate=3e-3 if small else 1e-3,
            warmup=100 if small else 200,
            ema=0.98 if small else 0.995,
            carry=0.5,  # without it, models are worse after more recurrences than they were trained with
            augment="none" if problem.symmetries() is None else "all",
            validate_every=100 if small else 500,
            validate_steps=32,
        ),
    )


def fitted(problem: Problem, file: str) -> Recipe:
    """The same for a file of examples: train, choose and test on its parts, which may be small.

    Muon and strong decay, on embeddings too, find the rule in some hundred examples where AdamW learns them by heart
    (docs/own_problem.md). Large problems have dropout alone: 16x16 boards were not learned so (docs/log.md).
    """
    base = own_recipe(problem)
    recipe = replace(
        base,
        name=f"{problem.name}.fit",
        description=f"the examples of {file}",
        train=Data(f"{file}@train"),
        valid=Data(f"{file}@valid"),
        test=Data(f"{file}@test"),
        model=replace(base.model, dropout=0.05),
    )
    if problem.variables().count > SMALL:
        return recipe
    strict = replace(base.training, optimiser="muon", learning_rate=5e-3, weight_decay=2.0, decay_embeddings=1.0)
    return replace(recipe, model=replace(base.model, dropout=0.1), training=strict)
