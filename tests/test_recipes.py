"""Recipes: every one is whole, survives JSON, and can be changed from the command line."""

from __future__ import annotations

import json

import pytest

from mull.data import sets
from mull.errors import InvalidInput
from mull.models.recurrent_transformer import RecurrentTransformer
from mull.recipes import RECIPES, from_dict, get_recipe, override, to_dict

LATE = tuple(f"sudoku-16x16-{level}.paper" for level in ("simple", "medium", "simple-rounds", "medium-rounds"))
"""In the paper's setting, but with slots that carry their states, or givens, on: see docs/log.md."""


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe(name: str) -> None:
    recipe = get_recipe(name)
    assert recipe.name == name
    assert from_dict(json.loads(json.dumps(to_dict(recipe)))) == recipe
    for data in (recipe.train, recipe.valid, recipe.test):
        assert sets.problem_of(data.name).variables() == recipe.problem.variables()
    assert len({recipe.train.name, recipe.valid.name, recipe.test.name}) == 3
    RecurrentTransformer(recipe.problem, recipe.model)
    if name.endswith(".paper"):  # no knowledge beyond the data, and nothing that the paper's model does not have
        assert recipe.training.augment == "none"
        assert recipe.training.carry == 0 or name in LATE
        assert not recipe.model.feedback and not recipe.model.inject


def test_settings_change_one_field() -> None:
    recipe = override(get_recipe("sudoku-4x4"), ["width=32", "updates=7", "train.count=none", "carry=0.5", "seed=3"])
    assert (recipe.model.width, recipe.training.updates, recipe.train.count) == (32, 7, None)
    assert (recipe.training.carry, recipe.seed) == (0.5, 3)
    assert override(recipe, ["feedback=false"]).model.feedback is False
    assert override(recipe, ["augment=none"]).training.augment == "none"


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("width", "key=value"),
        ("widht=3", "did you mean 'width'"),
        ("width=wide", "number"),
        ("feedback=maybe", "true or false"),
        ("count=3", "could mean any of"),
        ("augment=some", "there are: all, geometric, none"),
        ("batch=0", "at least 1"),
        ("carry=2", "between 0 and 1"),
        ("heads=3", "cannot be shared"),
        ("dropout=1", "between 0 and 1"),
    ],
)
def test_bad_settings(setting: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as error:
        override(get_recipe("sudoku-4x4"), [setting])
    assert "\n" not in str(error.value)


def test_unknown_recipes_are_told() -> None:
    with pytest.raises(InvalidInput, match=r"did you mean 'sudoku-rrn.best'\?"):
        get_recipe("sudoku-rrn-best")
