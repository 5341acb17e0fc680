"""What each constraint loss costs in training, on one device in one run: the paper's comparison with CL-STE.

The model, L1R32H4, and the 9x9 boards are the same for all; ratios are to cross entropy alone. The best of a few rounds
that take turns counts, so that a slow moment of the machine hits all alike.

    python benchmarks/speed/losses.py            # writes benchmarks/results/losses_speed.json
    python benchmarks/speed/losses.py --quick    # a few updates of a small model; for the tests
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import torch
from updates import random_boards

from mull.files import write_text
from mull.losses import LossWeights
from mull.problems.sudoku import Sudoku
from mull.provenance import provenance
from mull.recipes import get_recipe
from mull.trainer import Trainer

RESULTS = Path(__file__).parents[1] / "results"
LOSSES = {
    "cross entropy": LossWeights(),
    "cardinality": LossWeights(cardinality=1),
    "attention": LossWeights(attention=1),
    "CL-STE, first recurrence": LossWeights(clste=1),
    "CL-STE, all recurrences": LossWeights(clste=1, clste_first_step=False),
}
ROUNDS = 3


def trainer(loss: LossWeights, batch: int, device: torch.device, small: bool) -> Trainer:
    """A training with this loss, warmed up."""
    recipe, problem = get_recipe("sudoku-rrn-9k.paper"), Sudoku(2 if small else 3)
    training = replace(recipe.training, batch=batch, recurrences=2 if small else recipe.training.recurrences)
    recipe = replace(recipe, problem=problem, training=training, loss=loss)
    made = Trainer(recipe, random_boards(problem, 4 * batch), device)
    for _ in range(3):
        made.update()
    return made


def seconds(made: Trainer, updates: int) -> float:
    """Time of some updates."""
    made.update()
    made.read_metrics()  # waits for the device
    began = time.perf_counter()
    for _ in range(updates):
        made.update()
    made.read_metrics()
    return time.perf_counter() - began


def measure(batch: int, updates: int, device: torch.device, small: bool) -> dict[str, float]:
    """Boards a second by loss."""
    trainers = {}
    for name, loss in LOSSES.items():
        torch.compiler.reset()
        trainers[name] = trainer(loss, batch, device, small)
    rounds = [{name: seconds(made, updates) for name, made in trainers.items()} for _ in range(ROUNDS)]
    return {name: batch * updates / min(taken[name] for taken in rounds) for name in trainers}


def main() -> None:
    """Measure and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--batches", default="16,128", help="boards in an update")
    parser.add_argument("--out", type=Path, default=RESULTS / "losses_speed.json")
    arguments = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    batches = [2] if arguments.quick else [int(batch) for batch in arguments.batches.split(",")]
    updates = 1 if arguments.quick else (100 if device.type == "cuda" else 3)
    rates = {str(batch): measure(batch, updates, device, arguments.quick) for batch in batches}
    ratios = {batch: {k: rate / row["cross entropy"] for k, rate in row.items()} for batch, row in rates.items()}
    content = {"boards_per_s": rates, "ratio": ratios, "provenance": provenance(str(device))}
    write_text(arguments.out, json.dumps(content, indent=1) + "\n")
    print(json.dumps(content, indent=1))


if __name__ == "__main__":
    main()
