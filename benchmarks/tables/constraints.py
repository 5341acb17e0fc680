"""The table "Effect of adding constraint losses": 9k RRN puzzles, with and without the losses on constraints.

Trainings of `sudoku-rrn-9k.paper`, cut to 3,000 updates, that differ in the losses alone, then the RRN test boards at
T=32 and 64. Models are chosen on validation boards.

    python benchmarks/tables/constraints.py              # writes benchmarks/results/constraints.json; minutes on a GPU
    python benchmarks/tables/constraints.py --resume     # goes on with trainings that were interrupted
    python benchmarks/tables/constraints.py --quick      # seconds, 4x4 boards; for the tests
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from rows import RESULTS, best, trained

from mull.data import sets
from mull.evaluate import evaluate
from mull.files import write_text
from mull.provenance import provenance
from mull.recipes import Recipe, get_recipe, override

LATE = ["constraint_start=1000", "constraint_warmup=500"]
"""From the first update on, the paper's losses keep a short training from learning at all (docs/losses.md)."""
EXPECTED = ["cardinality=1", "fixed_bounds_only=true", "estimator=soft"]
BINARISED = ["cardinality=0.1", "fixed_bounds_only=true"]
ATTENTION = ["attention=0.1"]
LOSSES = {
    "none": [],
    "cardinality": [*EXPECTED, *LATE],
    "attention": [*ATTENTION, *LATE],
    "both": [*EXPECTED, *ATTENTION, *LATE],
    "cardinality, binarised": [*BINARISED, *LATE],
    "both, binarised": [*BINARISED, *ATTENTION, *LATE],
    "cardinality from the first update on": EXPECTED,
}
"""Settings of each row, with weights from the paper's list (0, 0.1, 0.5, 1): its four rows with expected counts, then
with its own estimator, then without a late start."""
COMMON = ["updates=3000", "validate_every=500", "optimiser=adamw", "learning_rate=0.001", "weight_decay=0.1"]
"""AdamW: the table compares losses, and was measured before the recipe had Muon."""
QUICK = ["updates=3", "batch=8", "width=16", "recurrences=2", "validate_every=3", "validate_steps=2"]
QUICK += ["train.count=20", "valid.count=10", "test.count=10"]


def row(recipe: Recipe, out: Path, device: torch.device, resume: bool, steps: list[int]) -> dict[str, Any]:
    """One row of the table."""
    trained(recipe, out, device, resume)
    runtime, about = best(recipe, out, device)
    test = sets.load(recipe.test.name, recipe.test.count, seed=recipe.seed)
    scores = evaluate(runtime, test, steps, batch_size=runtime.batch)
    fewest = min(scores["by_givens"], key=int)
    return {
        "right": {step: found["right"] for step, found in scores["steps"].items()},
        "fewest_givens": {"givens": int(fewest), **scores["by_givens"][fewest]},
        "instances": scores["instances"],
        "valid_board": about["valid_board"],
        "update": about["step"],
        "seconds": about["seconds"],
        "trained": about["provenance"],
    }


def main() -> None:
    """Train, measure and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--only", help="rows to train, with commas between them; no file is written")
    parser.add_argument("--set", dest="settings", action="append", default=[], help="key=value for all recipes")
    parser.add_argument("--runs", type=Path, default=Path("runs/constraints"))
    parser.add_argument("--out", type=Path, default=RESULTS / "constraints.json")
    arguments = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    base = get_recipe("sudoku-4x4" if arguments.quick else "sudoku-rrn-9k.paper")
    common, steps = (QUICK, [2, 4]) if arguments.quick else ([*COMMON, *arguments.settings], [32, 64])
    chosen = arguments.only.split(",") if arguments.only else list(LOSSES)
    rows = {
        name: row(override(base, [*common, *LOSSES[name]]), arguments.runs / name, device, arguments.resume, steps)
        for name in chosen
    }
    for name, found in rows.items():
        print(name, found["right"], found["valid_board"])
    if arguments.only:
        return
    settings = {name: [*common, *losses] for name, losses in LOSSES.items()}
    content = {"recipe": base.name, "settings": settings, "rows": rows, "provenance": provenance(str(device))}
    write_text(arguments.out, json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
