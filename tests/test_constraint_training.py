"""Training with constraint losses: without labels, with some, and with every term at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from mull.errors import InvalidInput
from mull.losses import LossWeights, total_loss
from mull.models.recurrent_transformer import ModelConfig
from mull.problem import NumpyBatch
from mull.recipes import Data, Recipe, get_recipe, override
from mull.recipes.recipe import withhold
from mull.trainer import Trainer

CPU = torch.device("cpu")


def small(name: str, loss: LossWeights, **training: object) -> Recipe:
    base = get_recipe(name)
    settings = {"updates": 60, "batch": 16, "recurrences": 3, "warmup": 5, "learning_rate": 3e-3, "carry": 0.5}
    model = ModelConfig(width=32, dropout=0.0, embedding_std=0.5)
    return replace(base, model=model, training=replace(base.training, **{**settings, **training}), loss=loss)


def broken(trainer: Trainer, data: NumpyBatch) -> float:
    """Mean number of groups that the model's answers break."""
    with torch.no_grad():
        answers = trainer.model(torch.from_numpy(data.inputs), 3).logits_SLBVD[-1, -1].argmax(-1).numpy()
    rules = trainer.recipe.problem.rules
    return float(np.mean(sum(rule.violations(answers, data.inputs).sum(axis=1) for rule in rules)))


def test_constraints_are_learned_without_any_label() -> None:
    loss = LossWeights(supervised=0, cardinality=1)
    recipe = small("sudoku-4x4", loss, updates=300, batch=32, augment="none", carry=0.0)
    data = Data("sudoku-4x4_train", 64, labelled_rows=0).load(0)
    assert not data.labelled.any() and (data.solution == -1).all()
    trainer = Trainer(recipe, data, CPU)
    before = broken(trainer, data)
    for _ in range(300):
        trainer.update()
    assert broken(trainer, data) < 0.85 * before


def test_expected_counts_teach_boards_without_their_solutions() -> None:
    loss = LossWeights(cardinality=1, estimator="soft")
    recipe = small("sudoku-4x4", loss, updates=250, batch=32, augment="all", carry=0.0)
    trainer = Trainer(recipe, Data("sudoku-4x4_train", 500, labels="given").load(0), CPU)
    unseen = Data("sudoku-4x4_valid", 100).load(0)
    before = broken(trainer, unseen)
    for _ in range(250):
        trainer.update()
    assert broken(trainer, unseen) < 0.5 * before


def test_labels_of_givens_alone() -> None:
    data = Data("sudoku-4x4_train", 10, labels="given").load(0)
    assert (data.labelled == data.given).all() and (data.solution[~data.given] == -1).all()


@pytest.mark.parametrize(("share", "expected"), [(None, 0.1), (0.5, 0.5), (1.0, 1.0), (0.0, 0.0)])
def test_a_batch_has_its_share_of_labelled_rows(share: float | None, expected: float) -> None:
    recipe = small("sudoku-4x4", LossWeights(cardinality=1), batch=64, carry=0.0, labelled_share=share)
    recipe = replace(recipe, train=Data("sudoku-4x4_train", 200, labelled_rows=20))
    trainer = Trainer(recipe, recipe.train.load(0), CPU)
    rows = torch.stack([trainer._rows(64) for _ in range(30)])
    assert rows.min() >= 0 and rows.max() < 200
    found = (rows < 20).float().mean(dim=1)
    assert abs(found.mean() - expected) < 0.03
    if share is not None:
        assert (found == expected).all()


def test_constraint_weights_rise() -> None:
    schedule = {"constraint_start": 2, "constraint_warmup": 4}
    recipe = small("sudoku-4x4", LossWeights(supervised=0, cardinality=1), carry=0.0, **schedule)
    trainer = Trainer(recipe, Data("sudoku-4x4_train", 16).load(0), CPU)
    scales = []
    for _ in range(8):
        trainer.update()
        scales.append(trainer.constraints.item())
    assert scales == [0.0, 0.0, 0.25, 0.5, 0.75, 1.0, 1.0, 1.0]
    batch = trainer.data[torch.arange(4)]
    trace = trainer.model(batch.inputs, 2)
    whole, half = (total_loss(trace, batch, recipe.problem, recipe.loss, scale)[0] for scale in (1.0, 0.5))
    torch.testing.assert_close(half, whole / 2)


def test_attention_may_start_later_than_counts() -> None:
    loss = LossWeights(supervised=0, cardinality=1, attention=1)
    recipe = small("sudoku-4x4", loss, carry=0.0, attention_start=1)
    trainer = Trainer(recipe, Data("sudoku-4x4_train", 16).load(0), CPU)
    scales = []
    for _ in range(3):
        trainer.update()
        scales.append((trainer.constraints.item(), trainer.attentive.item()))
    assert scales == [(1.0, 0.0), (1.0, 1.0), (1.0, 1.0)]
    batch = trainer.data[torch.arange(4)]
    trace = trainer.model(batch.inputs, 2, watch_VV=trainer.watch_VV)
    total, terms = total_loss(trace, batch, recipe.problem, loss, 0.5, 0.0)
    torch.testing.assert_close(total, terms["cardinality"] / 2)


EVERYTHING = [
    ("sudoku-4x4", LossWeights(cardinality=1, attention=1, clste=1, clste_first_step=False)),
    ("sudoku-4x4", LossWeights(cardinality=1, attention=1, attention_at_once=True, estimator="clipped")),
    ("sudoku-4x4", LossWeights(cardinality=1, fixed_bounds_only=True, last_step_only=True)),
    ("shortest-path.best", LossWeights(cardinality=0.01, attention=1, path=1)),
    ("shortest-path.best", LossWeights(supervised=0, path=1, path_label_free=True)),
    ("nonogram-7.best", LossWeights(cardinality=0.1, attention=1)),
]


@pytest.mark.parametrize(("name", "loss"), EVERYTHING)
def test_every_term_trains(name: str, loss: LossWeights) -> None:
    recipe = small(name, loss)
    trainer = Trainer(recipe, replace(recipe.train, count=32).load(0), CPU)
    curve = []
    for _ in range(40):
        trainer.update()
        curve.append(trainer.read_metrics()["loss"])
    assert np.isfinite(curve).all()
    assert len(trainer.sums) == 4 + (len(loss.terms) if len(loss.terms) > 1 else 0)
    assert np.mean(curve[-5:]) < np.mean(curve[:5])
    assert ("slots.bounds" in trainer.tensors()) == loss.needs_bounds == (trainer.data.bounds is not None)


def test_a_training_with_bounds_can_be_put_back() -> None:
    recipe = small("sudoku-4x4", LossWeights(cardinality=1, attention=0.5))
    data = replace(recipe.train, count=32).load(0)
    first, second = (Trainer(recipe, data, CPU) for _ in range(2))
    for _ in range(5):
        first.update()
    second.restore({name: tensor.clone() for name, tensor in first.tensors().items()}, 5)
    for trainer in (first, second):
        trainer.read_metrics()
        for _ in range(3):
            trainer.update()
    assert first.read_metrics() == second.read_metrics()


def test_some_rows_have_labels() -> None:
    data = Data("sudoku-4x4_train", 10, labelled_rows=4).load(0)
    assert data.labelled[:4].all() and not data.labelled[4:].any()
    assert (data.solution[:4] >= 0).all() and (data.solution[4:] == -1).all()
    both = Data("sudoku-4x4_train", 10, labels="unknown", labelled_rows=4).load(0)
    np.testing.assert_array_equal(both.labelled[:4], ~both.given[:4])
    recipe = override(get_recipe("sudoku-4x4"), ["train.labelled_rows=4000", "cardinality=1", "estimator=clipped"])
    assert recipe.train.labelled_rows == 4000 and recipe.loss.cardinality == 1.0 and recipe.loss.estimator == "clipped"
    with pytest.raises(InvalidInput, match="0 or more"):
        Data("sudoku-4x4_train", labelled_rows=-1)


def test_boards_without_labels_do_not_count_as_solved() -> None:
    recipe = small("sudoku-4x4", LossWeights(cardinality=1), augment="none", carry=0.0)
    data = replace(recipe.train, count=16).load(0)
    hidden = np.zeros_like(data.given)
    hidden[8:] = True
    trainer = Trainer(recipe, withhold(data, hidden), CPU)
    trainer.update()
    seen = trainer.read_metrics()
    assert seen["train_board"] == 0
    assert seen["loss"] == pytest.approx(seen["loss_supervised"] + seen["loss_cardinality"])


def test_settings_reach_the_training() -> None:
    recipe = override(get_recipe("sudoku-rrn-9k.paper"), ["cardinality=0.5", "attention=0.5", "fixed_bounds_only=true"])
    assert recipe.loss == LossWeights(cardinality=0.5, attention=0.5, fixed_bounds_only=True)
