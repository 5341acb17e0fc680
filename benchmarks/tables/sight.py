"""How a trained row of a table looks at sets of boards: T and the way to look are chosen on validation data.

Test data is looked at once, in the way that was chosen.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

import mull
from mull.evaluate import evaluate
from mull.files import write_text
from mull.looks import ONE, Looks
from mull.provenance import provenance
from mull.recipes import Data, Recipe, to_dict
from mull.runtime import TorchRuntime
from tables.rows import Row, best, looks_of, progress, rounded, steps_of, unhurried

FEWEST = 32
"""Fewest recurrences to choose from, on validation data."""
REPORTED = 64
"""As many as the paper has at test time: always reported."""


def chosen(right: dict[str, float], fewest: int = FEWEST) -> str:
    """The number of recurrences that does best, the smallest of several."""
    allowed = [step for step in sorted(right, key=int) if int(step) >= fewest] or list(right)
    return max(allowed, key=lambda step: right[step])


@dataclass(frozen=True)
class Sight:
    """A trained model that looks at sets of boards. Rounds and tries take minutes: what it saw is kept in a file."""

    runtime: TorchRuntime
    seed: int
    kept: Path | None = None

    def at(self, data: Data, steps: list[int], looks: Looks = ONE) -> dict[str, Any]:
        """Accuracies on a set after each number of recurrences."""
        known = json.loads(self.kept.read_text()) if self.kept is not None and self.kept.exists() else {}
        key = json.dumps([data.name, data.count, steps, asdict(looks)])
        if key not in known:
            known[key] = evaluate(self.runtime, data.load(self.seed), steps, self.runtime.batch, looks)
            if self.kept is not None:
                write_text(self.kept, json.dumps(known))
        found: dict[str, Any] = known[key]
        return found


def sight(runtime: TorchRuntime, recipe: Recipe, out: Path, device: torch.device, resume: bool) -> Sight:
    """What is kept counts when resuming, for the same weights, code and machine."""
    made = provenance(str(device)) | {"command": "", "commit": ""}  # a commit does not tell what is not committed yet
    files = [out / "best.safetensors", *sorted(Path(str(mull.__file__)).parent.rglob("*.py"))]
    origin = hashlib.sha256(json.dumps(made).encode())
    for file in files:
        origin.update(file.read_bytes())
    kept = out / f"looks.{origin.hexdigest()[:12]}.json"
    if not resume:
        kept.unlink(missing_ok=True)
    return Sight(runtime, recipe.seed, kept)


def validated(look: Sight, recipe: Recipe, steps: list[int], looks: Looks = ONE) -> dict[str, Any]:
    """How boards were looked at, accuracy on validation data, and the T chosen by it."""
    valid = look.at(recipe.valid, steps, looks)
    right = {step: score["right"] for step, score in valid["steps"].items()}
    about = {"set": recipe.valid.name, "instances": valid["instances"], "right": right}
    return {**looks.about(), "valid": about, "T": chosen(right, FEWEST if looks.rounds == 1 else 1)}


def tested(look: Sight, steps: list[int], tests: Sequence[Data], most: int, looks: Looks) -> dict[str, Any]:
    """Accuracy on test data at no more than so many recurrences: with several looks, all of them would take minutes."""
    fewer = [step for step in steps if step <= most]
    return {data.name: look.at(data, fewer, looks) for data in tests}


def scored(look: Sight, recipe: Recipe, steps: list[int], tests: Sequence[Data]) -> dict[str, Any]:
    """Accuracy from one plain look."""
    found = validated(look, recipe, steps)
    return found | ({"tests": tested(look, steps, tests, max(steps), ONE)} if tests else {})


def scored_by_looks(
    look: Sight, recipe: Recipe, steps: list[int], tests: Sequence[Data], ways: list[Looks]
) -> dict[str, Any]:
    """Accuracy by the way to look that does best on validation data; test data is seen in that way alone.

    The first way with rounds says how many recurrences each round has.
    """
    window = recipe.training.recurrences  # each round starts again, as each window of training did
    few, found = [window, window * 3 // 2, window * 2], []
    for looks in ways:
        found.append(validated(look, recipe, few if looks.rounds > 1 else steps, looks))
        few = [int(found[-1]["T"])] if looks.rounds > 1 else few  # chosen where rounds are fewest
    best = max(range(len(ways)), key=lambda way: found[way]["valid"]["right"][found[way]["T"]])
    others = {"others": [one for way, one in enumerate(found) if way != best]} if len(ways) > 1 else {}
    at = [int(found[best]["T"])] if ways[best].rounds > 1 else steps
    most = max(REPORTED, int(found[best]["T"]))
    tests_ = {"tests": tested(look, at, tests, most, ways[best])} if tests else {}
    return found[best] | others | tests_


def measure(
    row: Row, recipe: Recipe, out: Path, device: torch.device, quick: bool, test: bool, resume: bool
) -> dict[str, Any]:
    """A trained row: its accuracy on validation data, the T chosen by it, and, once, on test data."""
    runtime, about = best(recipe, out, device)
    look = sight(runtime, recipe, out, device, resume)
    steps, sets = steps_of(row, recipe, quick), (recipe.test, *(() if quick else row.tests)) if test else ()
    found = progress(recipe, out) | {
        "parameters": sum(parameter.numel() for parameter in runtime.model.parameters()),
        "update": about["step"],
        **scored(look, recipe, steps, sets),
    }
    ways = [looks for looks in looks_of(row, recipe) if test or looks.tries == 1]  # tries take minutes
    if ways:
        late = [step for step in steps if step >= FEWEST] or steps
        found["looks"] = scored_by_looks(look, recipe, late, sets, ways)
    if test and row.extra is not None:
        found |= row.extra(runtime, recipe, quick)
    return rounded(found) | {"recipe": to_dict(unhurried(recipe)), "measured": provenance(str(device))}
