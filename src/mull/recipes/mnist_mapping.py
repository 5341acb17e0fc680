"""MNIST mapping: the paper's model, batch, learning rate and dropout; it does not say for how long it trained."""

from __future__ import annotations

from mull.models.recurrent_transformer import ModelConfig
from mull.problems.mnist_mapping import MnistMapping
from mull.recipes.recipe import Data, Recipe, Training


def mnist_mapping_paper() -> Recipe:
    """One image, one of ten symbols: about 23 epochs."""
    return Recipe(
        name="mnist-mapping.paper",
        description="MNIST mapping (55k images), L1R32H4, the paper's setting",
        problem=MnistMapping(),
        train=Data("mnist_train"),
        valid=Data("mnist_valid"),
        test=Data("mnist_test"),
        model=ModelConfig(embedding_std=0.5),
        training=Training(
            updates=5_000, batch=256, learning_rate=6e-4, warmup=100, validate_every=250, validate_steps=32
        ),
    )
