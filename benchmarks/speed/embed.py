"""How fast boards of images train, against boards of digits, on one GPU in one run.

`plain` is the embedder as one would write it down (convolution, rectifier, pooling, eager); `ours` is the one in
`mull.models.embed`. All else is the same: L1R32H4, bfloat16, the whole update in one CUDA graph.

    python benchmarks/speed/embed.py            # writes benchmarks/results/embed_speed.json
    python benchmarks/speed/embed.py --quick    # a few updates on any device; for the tests
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from updates import random_boards

from mull.files import write_text
from mull.models import embed
from mull.problem import Problem
from mull.problems.sudoku import Sudoku
from mull.problems.visual_sudoku import VisualSudoku
from mull.provenance import provenance
from mull.recipes import get_recipe
from mull.trainer import Trainer

RESULTS = Path(__file__).parents[1] / "results"


def plain(images: Tensor, layer: nn.Conv2d, pools: int) -> Tensor:
    """Convolution, rectifier and pooling, one after the other."""
    return F.max_pool2d(F.relu(layer(images)), 2)


def rate(problem: Problem, batch: int, updates: int, device: torch.device, small: bool) -> float:
    """Boards trained a second."""
    recipe = get_recipe("visual-sudoku-satnet.paper")
    training = replace(recipe.training, batch=batch, recurrences=2 if small else recipe.training.recurrences)
    recipe = replace(recipe, problem=problem, training=training)
    trainer = Trainer(recipe, random_boards(problem, 4 * batch), device)
    for _ in range(3):
        trainer.update()
    trainer.read_metrics()  # waits for the device
    began = time.perf_counter()
    for _ in range(updates):
        trainer.update()
    trainer.read_metrics()
    return batch * updates / (time.perf_counter() - began)


def measure(batches: list[int], updates: int, device: torch.device, small: bool) -> dict[str, dict[str, float]]:
    """Boards a second by batch, for digits, for images plainly, and for images as we do it."""
    rates: dict[str, dict[str, float]] = {}
    box = 2 if small else 3
    ours, compile_module = embed.convolve_and_pool, nn.Module.compile
    for batch in batches:
        torch.compiler.reset()
        found = {"text": rate(Sudoku(box), batch, updates, device, small)}
        found["ours"] = rate(VisualSudoku(box), batch, updates, device, small)
        embed.convolve_and_pool = plain
        nn.Module.compile = lambda *arguments, **options: None  # type: ignore[assignment,method-assign]
        try:
            found["plain"] = rate(VisualSudoku(box), batch, updates, device, small)
        finally:
            embed.convolve_and_pool, nn.Module.compile = ours, compile_module  # type: ignore[method-assign]
        rates[str(batch)] = found
    return rates


def main() -> None:
    """Measure and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--batches", default="128,512", help="boards in an update")
    parser.add_argument("--out", type=Path, default=RESULTS / "embed_speed.json")
    arguments = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    batches = [2] if arguments.quick else [int(batch) for batch in arguments.batches.split(",")]
    updates = 1 if arguments.quick else 200
    rates = measure(batches, updates, device, arguments.quick)
    content = {"boards_per_s": rates, "provenance": provenance(str(device))}
    write_text(arguments.out, json.dumps(content, indent=1) + "\n")
    print(json.dumps(content, indent=1))


if __name__ == "__main__":
    main()
