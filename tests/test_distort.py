"""Distorted images: what moves, how far, and that nothing else changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from mull.data import sets
from mull.data.distort import SHIFT, distort
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


def test_a_training_distorts_its_batches() -> None:
    settings = ["train.name=visual-sudoku-4x4_train", "batch=4", "recurrences=2", "width=16"]
    drawn_batches = []
    for strength in (0, 1):
        recipe = override(get_recipe("visual-sudoku-rrn.best"), [*settings, f"distort={strength}"])
        recipe = replace(recipe, problem=VisualSudoku(box=2))
        trainer = Trainer(recipe, sets.load("visual-sudoku-4x4_train", 4), torch.device("cpu"))
        drawn_batches.append(trainer._draw()[0])
    plain, changed = drawn_batches
    assert torch.equal(plain.solution, changed.solution)
    assert not torch.equal(plain.inputs, changed.inputs)
