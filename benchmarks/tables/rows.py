"""What the scripts of all tables share: rows, their trainings, and the files that results go to.

What was trained is measured in `sight.py`. A row is trained in a folder of its own, and can be stopped and resumed at
any time; a finished training is not repeated. Its result goes into the table's file as soon as it is there. Variants
(`--try`) never see test data.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from mull import checkpoint
from mull.files import write_text
from mull.looks import Looks
from mull.models.recurrent_transformer import RecurrentTransformer
from mull.problems.sudoku import Sudoku
from mull.recipes import Data, Recipe, from_dict, get_recipe, override, to_dict
from mull.runtime import TorchRuntime
from mull.train import Reporter, train

RESULTS = Path(__file__).resolve().parents[1] / "results"
STEPS = (8, 16, 32, 64, 128, 256)
"""Recurrences to measure at."""
SIDES = 16
"""Sides that a board is seen from, also, where the training knew the symmetries (see `mull.views`)."""
CURVE = 100
"""Points of a learning curve that are kept at most."""
QUICK = ["updates=2", "batch=4", "recurrences=2", "validate_every=1", "validate_steps=2"]
QUICK += ["attention_start=0", "constraint_start=0", "distort=0", "standardise=false", "muon_start=0"]

Extra = Callable[[TorchRuntime, Recipe, bool], dict[str, Any]]


@dataclass(frozen=True)
class Row:
    """One training of a table and what to measure of it."""

    name: str
    """Its key in the result file, and the folder of its run: rows of two tables with one name share their training."""
    recipe: str
    settings: tuple[str, ...] = ()
    """What differs from the recipe, as for `mull train --set`."""
    steps: tuple[int, ...] = STEPS
    tests: tuple[Data, ...] = ()
    """Test sets besides the recipe's own."""
    sides: int = SIDES
    """Sides to see boards from, besides, where the training knew the symmetries."""
    looks: tuple[Looks, ...] = ()
    """Other ways to look at boards, besides; of all of them the one that does best on validation boards counts."""
    extra: Extra | None = None
    """What else to measure of the trained model: (runtime, recipe, quick) to values by name."""


def paper_and_best(*names: str) -> list[Row]:
    """Rows that are recipes without a change."""
    return [Row(name, name) for name in names]


def recipe_of(row: Row, quick: bool, settings: Sequence[str] = ()) -> Recipe:
    """The row's recipe; a quick one keeps its losses and options, on a few 4x4 boards."""
    recipe = override(get_recipe(row.recipe), [*row.settings, *settings])
    if not quick:
        return recipe
    model = recipe.model
    few = None if recipe.train.labelled_rows is None else 6
    return replace(
        override(recipe, QUICK),
        model=replace(model, width=12, heads=min(4, model.heads), blocks=min(2, model.blocks)),
        problem=Sudoku(box=2),
        train=replace(recipe.train, name="sudoku-4x4_train", count=12, labelled_rows=few),
        valid=Data("sudoku-4x4_valid", 6),
        test=Data("sudoku-4x4_test", 6),
    )


def unhurried(recipe: Recipe) -> Recipe:
    """The recipe without what may differ between a run and its continuation."""
    return replace(recipe, training=replace(recipe.training, minutes=None, checkpoint_seconds=60.0))


def trained(recipe: Recipe, out: Path, device: torch.device, resume: bool, report: Reporter | None = None) -> bool:
    """Train, or go on with it; whether the training is finished. A finished one is not repeated when resuming."""
    path = out / "checkpoint.safetensors"
    there = resume and path.exists()
    if there:
        about = checkpoint.load(path)[1]
        if about["step"] == recipe.training.updates and same(about["recipe"], recipe):
            return True
    train(recipe, out, str(device), resume=there, report=report)
    return bool(checkpoint.load(path)[1]["step"] == recipe.training.updates)


def same(recorded: dict[str, Any], recipe: Recipe) -> bool:
    """Whether a recorded recipe is this one; settings that are newer than the record have their defaults."""
    return unhurried(from_dict(recorded)) == unhurried(recipe)


def best(recipe: Recipe, out: Path, device: torch.device) -> tuple[TorchRuntime, dict[str, Any]]:
    """The weights that did best on validation data, and what is known about them."""
    tensors, about = checkpoint.load(out / "best.safetensors")
    model = RecurrentTransformer(recipe.problem, recipe.model)
    checkpoint.load_weights(model, tensors, str(out))
    return TorchRuntime(model.eval(), recipe.problem, device=device, bf16=device.type == "cuda"), about


def curve(out: Path) -> list[dict[str, float]]:
    """The validated rows of a run's log."""
    rows = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    kept = [row for row in rows if "valid_board" in row]
    return [rounded(row) for row in kept[:: max(1, -(-len(kept) // CURVE))]]


def rounded(value: Any) -> Any:
    """Numbers with five places, at any depth."""
    if isinstance(value, float):
        return round(value, 5)
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list) else value


def progress(recipe: Recipe, out: Path) -> dict[str, Any]:
    """What a run's folder says, finished or not."""
    about = checkpoint.load(out / "checkpoint.safetensors")[1]
    return {
        "recipe": to_dict(unhurried(recipe)),
        "finished": about["step"] == recipe.training.updates,
        "step": about["step"],
        "seconds": round(about["seconds"], 1),
        "best": about["best"],
        "curve": curve(out),
        "trained": about["provenance"],
    }


def steps_of(row: Row, recipe: Recipe, quick: bool) -> list[int]:
    """Recurrences to measure at; a model that was trained with a single one has no more."""
    if recipe.training.recurrences == 1:
        return [1]
    return [2, 4] if quick else list(row.steps)


def looks_of(row: Row, recipe: Recipe) -> list[Looks]:
    """How boards are looked at besides once and plainly; images half as much distorted as they were in training."""
    symmetric = recipe.training.augment != "none" and row.sides > 1
    return [*([Looks(row.sides, recipe.training.distort / 2)] if symmetric else []), *row.looks]


def write(path: Path, content: dict[str, Any]) -> None:
    """The table's file: one line for each row."""
    parts = []
    for key, value in content.items():
        lines = [f"  {json.dumps(k)}: {json.dumps(one)}" for k, one in value.items()] if isinstance(value, dict) else []
        parts.append(f' "{key}": ' + ("{\n" + ",\n".join(lines) + "\n }" if lines else json.dumps(value)))
    write_text(path, "{\n" + ",\n".join(parts) + "\n}\n")


def read(path: Path) -> dict[str, Any]:
    """What is in the table's file, if there is one."""
    if not path.exists():
        return {"kind": "table", "rows": {}, "tried": {}}
    content: dict[str, Any] = json.loads(path.read_text())
    return content
