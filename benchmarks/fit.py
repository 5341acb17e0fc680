"""How many examples `mull fit` needs: SATNet boards without any rule, by what it does now and by plain AdamW.

Each training sees some hundred boards in a file, of which `mull fit` keeps a tenth to choose by and a tenth to test on;
all are then asked for the same boards that none of them saw.

    python benchmarks/fit.py                       # writes benchmarks/results/fit.json; half an hour on two cores
    python benchmarks/fit.py --only 200            # one size, put into the file beside the others
    python benchmarks/fit.py --quick               # seconds; for the tests
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from mull.data import sets
from mull.evaluate import evaluate
from mull.files import write_text
from mull.looks import Looks
from mull.problem import NumpyBatch
from mull.provenance import provenance
from mull.recipes import Recipe, override
from mull.recipes.own import fitted
from mull.train import train
from tables.command import locked
from tables.rows import RESULTS, best, rounded

SIZES = (200, 400, 1_000)
OTHERS = slice(4_000, 8_500)
"""Boards of a second file, whose tenth that is kept for tests is asked for. The last 500 are left out: the settings of
`mull fit` were chosen with them (docs/log.md)."""
GIVENS = ["carry=0.9", "carry_givens=true", "reset_solved=1", "reset_unsolved=0.1"]
GIVENS += ["validate_steps=8", "validate_rounds=8"]
WAYS = {
    "mull fit": [],
    "givens": GIVENS,
    "AdamW": ["optimiser=adamw", "learning_rate=0.003", "weight_decay=0.1", "decay_embeddings=0", "dropout=0.05"],
}
LOOKS = (Looks(starts=8), Looks(rounds=16), Looks(starts=8, rounds=16), Looks(rounds=16, tries=6))
"""How boards are also looked at, besides once."""
QUICK = ["updates=2", "batch=4", "width=16", "recurrences=2", "validate_every=1", "validate_steps=2"]


def device() -> torch.device:
    """Where it runs."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def measure(recipe: Recipe, out: Path, others: NumpyBatch) -> dict[str, Any]:
    """Train, take what does best on the file's validation part, and ask for boards that are not in the file."""
    train(recipe, out, str(device()))
    runtime, about = best(recipe, out, device())
    scores = evaluate(runtime, others, [recipe.steps], batch_size=runtime.batch)
    score = scores["steps"][str(recipe.steps)]
    found = {"update": about["step"], "valid_board": about["valid_board"], "instances": scores["instances"]}
    curve = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    found |= {"right": score["right"], "cell": score["whole_cell"], "seconds": curve[-1]["seconds"]}
    for looks in LOOKS:
        several = evaluate(runtime, others, [recipe.steps], runtime.batch, looks)["steps"][str(recipe.steps)]
        found[looks.told()] = several["right"]
    return found


def main(argv: Sequence[str] | None = None) -> None:
    """Train, measure and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=int, help="a number of examples")
    parser.add_argument("--way", choices=WAYS, help="one way; what the file says about the other stays")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, default=RESULTS / "fit.json")
    arguments = parser.parse_args(argv)
    name = "sudoku-4x4_train" if arguments.quick else "satnet_train"
    problem, boards = sets.problem_of(name), sets.load(name, 120 if arguments.quick else None)
    sizes, others = ((40,), slice(40, 120)) if arguments.quick else (SIZES, OTHERS)
    for size in [arguments.only] if arguments.only else sizes:
        with tempfile.TemporaryDirectory() as folder:
            mine, theirs = (Path(folder) / file for file in ("examples.csv", "others.csv"))
            sets.write_csv(problem, boards[:size], mine)
            sets.write_csv(problem, boards[others], theirs)
            known = sets.problem_of(f"{mine}@train")
            tests = sets.load(f"{theirs}@test", own=known)
            rows = {"examples": {part: len(sets.load(f"{mine}@{part}")) for part in ("train", "valid")}}
            for way in [arguments.way] if arguments.way else WAYS:
                recipe = override(fitted(known, str(mine)), [*WAYS[way], *(QUICK if arguments.quick else [])])
                rows[way] = rounded(measure(recipe, Path(folder) / way, tests))
                print(size, way, rows[way], flush=True)
        with locked(arguments.out):
            content = json.loads(arguments.out.read_text()) if arguments.out.exists() else {"kind": "fit", "sizes": {}}
            origin = provenance(str(device()))
            before = content["sizes"].get(str(size), {}) if arguments.way else {}
            content["sizes"][str(size)] = {**before, **rows, "measured": origin}
            write_text(arguments.out, json.dumps({**content, "provenance": origin}, indent=1) + "\n")


if __name__ == "__main__":
    main()
