"""What a training should take on one H200, from rates that were measured: an estimate to plan by, not a result.

An update's time is that of the nearest measured ones (`gpu_speed.json`), in proportion to blocks and recurrences; an
embedder of images and models without kernels add what they were measured to add. Losses on constraints add little.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import numpy as np

from mull import kernels
from mull.problem import Images
from mull.recipes import Recipe
from tables.rows import RESULTS

START = 25.0
"""Seconds to load data, compile, validate and test: assumed."""
LARGE = "sudoku-16x16.best.train"
"""A training of 256 tokens and width 128 in windows of 16 recurrences, for what is as large."""


@lru_cache
def file(name: str) -> dict[str, Any]:
    """A result file."""
    content: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return content


def update(batch: int, mode: str = "paper", fused: bool = True) -> float:
    """Seconds of an update of a 9x9 model at this batch, between the measured ones."""
    rows = [r for r in file("gpu_speed")["training"] if r["mode"] == mode and r["kernels"] == fused and not r["frugal"]]
    known = sorted((row["batch"], row["seconds_per_update"]) for row in rows)
    return float(np.interp(batch, [b for b, _ in known], [s for _, s in known]))


def seconds(recipe: Recipe) -> float:
    """The whole training, and what comes before and after."""
    training, model, problem = recipe.training, recipe.model, recipe.problem
    variables = problem.variables().count
    work = model.blocks * training.recurrences / 32
    if variables > 81:
        rates = sorted(row["puzzles_per_s"] for row in file(LARGE)["rows"] if "puzzles_per_s" in row)
        one = training.batch / rates[len(rates) // 2] * 2 * work * (model.width / 128) ** 2
        return START + training.updates * one
    fused = kernels.supported(model.width, model.heads, training.batch, variables)
    one = update(training.batch, fused=fused) * work
    if training.carry:
        one *= update(1024, "best") / (update(1024) / 2)
    if isinstance(problem.input_kind(), Images):
        one += (update(128, "visual") - update(128)) * training.batch / 128
    return START + training.updates * one
