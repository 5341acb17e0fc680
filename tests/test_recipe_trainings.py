"""Every recipe trains: a tiny model learns a few of its instances by heart, on a CPU, in a second or two."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from mull.predict import predict
from mull.recipes import RECIPES, Recipe, get_recipe, override
from mull.runtime import TorchRuntime
from mull.trainer import Trainer

INSTANCES = 2
TINY = ["batch=2", "recurrences=2", "learning_rate=5e-3", "warmup=5", "ema=0.9"]
TINY += [
    "updates=150",
    "width=32",
    "heads=4",
    "dropout=0",
    f"train.count={INSTANCES}",
    "augment=none",
    "embedding_std=0.5",
]
TINY += [
    "blocks=1",
    "train.labelled_rows=none",
    "labelled_share=none",
    "attention_start=0",
    "constraint_start=0",
    "constraint_warmup=0",
    "weight_decay=0.1",
    "distort=0",
    "bend=0",
    "distort_warmup=0",
    "standardise=false",
    "image_dropout=0",
    "image_rate=1",
    "validate_every=1",
    "validate_steps=1",
]


VISUAL = ["updates=45", "cardinality=0", "attention=0", "estimator=identity", "optimiser=adamw"]
"""81 images a board take their time; so do constraints, which recipes in text have too."""


def tiny(name: str) -> Recipe:
    """A recipe at a size for tests."""
    return override(get_recipe(name), [*TINY, *(VISUAL if name.startswith("visual") else [])])


def different() -> list[str]:
    """Recipes that are not the same as another one once they are tiny, whichever set their boards come from."""
    found = {}
    for name in RECIPES:
        recipe = tiny(name)
        training = replace(recipe.training, carry=float(recipe.training.carry > 0), reset_unsolved=0)
        found[recipe.problem, recipe.train.labels, recipe.model, recipe.loss, training] = name
    return list(found.values())


@pytest.mark.parametrize("name", different())
@pytest.mark.usefixtures("external_data")
def test_a_few_instances_are_learned_by_heart(name: str) -> None:
    recipe = tiny(name)
    data = recipe.train.load(0)
    assert len(data) == INSTANCES and data.labelled.any()
    trainer = Trainer(recipe, data, torch.device("cpu"))
    losses = []
    for _ in range(recipe.training.updates):
        trainer.update()
        losses.append(trainer.read_metrics()["loss"])
    assert np.mean(losses[-5:]) < 0.8 * losses[0]
    if recipe.train.labels == "given":  # then the constraints are all that the others have
        return
    wanted = data.labelled & ~data.given
    answers = predict(TorchRuntime(trainer.ema, recipe.problem), data.inputs, [2])[0]
    commonest = np.bincount(data.solution[wanted]).max() / wanted.sum()
    right = (answers == data.solution)[wanted].mean()
    assert right > commonest + 0.2 * (1 - commonest)  # better than always saying the commonest value
