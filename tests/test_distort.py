"""Distorted images: what moves, how far, and that nothing else changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from mull.data import sets
from mull.data.distort import distort
from mull.data.warp import BEND, SHIFT
from mull.errors import InvalidInput
from mull.problems.visual_sudoku import VisualSudoku
from mull.recipes import get_recipe, override
from mull.trainer import Trainer


def blocks(rows: int = 3, cells: int = 5) -> torch.Tensor:
    """Images with a light square in the middle."""
    images = torch.zeros(rows, cells, 28, 28, dtype=torch.uint8)
    images[..., 10:18, 10:18] = 200
    return images


def drawn(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_strength_zero_changes_nothing() -> None:
    images = torch.randint(256, (2, 3, 28, 28), dtype=torch.uint8, generator=drawn(1))
    assert torch.equal(distort(images, 0.0, drawn(0)), images)


def test_images_move_each_in_its_own_way_and_keep_their_ink() -> None:
    found = distort(blocks(), 1.0, drawn(0))
    assert found.dtype == torch.uint8 and found.shape == blocks().shape
    flat = found.flatten(0, 1).flatten(1)
    assert len({tuple(one.tolist()) for one in flat}) == len(flat)
    ink = flat.float().sum(1) / blocks()[0, 0].float().sum()
    assert ((ink > 0.7) & (ink < 1.4)).all()


def test_the_middle_moves_no_further_than_it_may() -> None:
    found = distort(blocks(40, 10), 1.0, drawn(3)).flatten(0, 1).float()
    places = torch.arange(28.0)
    mass = found.sum((1, 2))
    across = (found.sum(1) * places).sum(1) / mass - 13.5
    down = (found.sum(2) * places).sum(1) / mass - 13.5
    furthest = torch.maximum(across.abs(), down.abs()).max().item()
    assert 0.6 * SHIFT * 14 < furthest < 1.6 * SHIFT * 14


def test_the_same_generator_gives_the_same_images() -> None:
    first, second = (distort(blocks(), 1.0, drawn(7)) for _ in range(2))
    np.testing.assert_array_equal(first.numpy(), second.numpy())


def test_only_images_can_be_distorted() -> None:
    recipe = override(get_recipe("sudoku-4x4"), ["distort=1"])
    with pytest.raises(InvalidInput, match="images"):
        Trainer(recipe, sets.load("sudoku-4x4_train", 4), torch.device("cpu"))
    with pytest.raises(InvalidInput, match="0 or more"):
        override(get_recipe("visual-sudoku-rrn.best"), ["distort=-1"])


SMALL = ["train.name=visual-sudoku-4x4_train", "batch=4", "recurrences=2", "width=16", "carry=0"]


def test_a_training_can_begin_with_standardised_vectors() -> None:
    recipe = replace(override(get_recipe("visual-sudoku-rrn.paper"), SMALL), problem=VisualSudoku(box=2))
    data = sets.load("visual-sudoku-4x4_train", 40)
    trainer = Trainer(recipe, data, torch.device("cpu"))
    for model in (trainer.model.eval(), trainer.ema):
        vectors = model.embed(torch.from_numpy(data.inputs)).flatten(0, 1)
        torch.testing.assert_close(vectors.std(0), torch.full((16,), 0.5), atol=1e-3, rtol=0)
        assert vectors.mean(0).abs().max() < 1e-3
    with pytest.raises(InvalidInput, match="images"):
        Trainer(override(get_recipe("sudoku-4x4"), ["standardise=true"]), data, torch.device("cpu"))


def test_distortions_grow_from_update_to_update() -> None:
    recipe = override(get_recipe("visual-sudoku-rrn.best"), [*SMALL, "distort=1", "bend=1", "distort_warmup=3"])
    data = sets.load("visual-sudoku-4x4_train", 1)
    trainer = Trainer(replace(recipe, problem=VisualSudoku(box=2)), data, torch.device("cpu"))
    trainer.augment, strengths = None, []
    for _ in range(5):
        trainer.update()
        strengths.append(trainer.distorting.item())
    np.testing.assert_allclose(strengths, [0.25, 0.5, 0.75, 1, 1])
    trainer.distorting.zero_()
    assert torch.equal(trainer._draw()[0].inputs, torch.from_numpy(data.inputs).expand(4, -1, -1, -1))


def test_a_training_distorts_its_batches() -> None:
    settings = SMALL
    drawn_batches = []
    for strength in (0, 1):
        recipe = override(get_recipe("visual-sudoku-rrn.best"), [*settings, f"distort={strength}"])
        recipe = replace(recipe, problem=VisualSudoku(box=2))
        trainer = Trainer(recipe, sets.load("visual-sudoku-4x4_train", 4), torch.device("cpu"))
        drawn_batches.append(trainer._draw()[0])
    plain, changed = drawn_batches
    assert torch.equal(plain.solution, changed.solution)
    assert not torch.equal(plain.inputs, changed.inputs)


def test_bent_images_differ_from_affine_ones_a_little() -> None:
    straight, bent = (distort(blocks(), 1.0, drawn(5), bend) for bend in (0.0, 1.0))
    assert torch.equal(distort(blocks(), 1.0, drawn(5)), straight)
    apart = (straight.float() - bent.float()).abs().sum((2, 3)) / straight.float().sum((2, 3))
    assert (apart > 0.02).all() and (apart < 0.8).all()


def test_what_bends_is_at_most_what_it_may_be() -> None:
    found = distort(blocks(40, 10), 1e-6, drawn(3), bend=1e6).flatten(0, 1)
    reach = 14 * BEND + 1  # and a pixel for what lies between pixels
    inside = torch.zeros(28, 28, dtype=torch.bool)
    first, last = int(10 - reach), int(18 + reach) + 1
    inside[first:last, first:last] = True
    assert (found[:, ~inside] == 0).all() and (found[:, 13:15, 13:15] > 0).any(-1).any(-1).all()
