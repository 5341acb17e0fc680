"""Puzzles rated 11 and more (`extreme_test`): verified within so many recurrences, and by search on those left over.

Each puzzle has one solution, so a verified answer is the right one; solving stops at the first.

    python benchmarks/hardest.py             # `sudoku`, on a CPU: writes benchmarks/results/hardest.json
    python benchmarks/hardest.py --quick     # 4x4 boards, seconds; for the tests
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mull
from mull.data import sets
from mull.files import write_text
from mull.problem import Instance, NumpyBatch
from mull.provenance import provenance
from mull.runtime import Runtime
from mull.solve import Solver
from search import measure

RESULTS = Path(__file__).parent / "results"
STEPS = (64, 128, 256, 512, 1024)


def measure_all(runtime: Runtime, batch: NumpyBatch, steps: Sequence[int], count: int, calls: int) -> dict[str, Any]:
    """The share verified within each number of recurrences, and how `count` of the others do with up to `calls`."""
    solver = Solver(runtime, steps=max(steps), exact=False)
    instances = [Instance(batch.inputs[row], batch.given[row], batch.solution[row]) for row in range(len(batch))]
    answers = solver.solve([solver.problem.write(instance) for instance in instances])
    within = {str(T): sum(a.verified and a.steps <= T for a in answers) / len(answers) for T in steps}
    # Search starts with the fewest recurrences, which are what one of its calls has.
    left = [one for one, a in zip(instances, answers, strict=True) if not (a.verified and a.steps <= min(steps))]
    found: dict[str, Any] = {"instances": len(batch), "verified_within": within, "left_over": len(left)}
    if left:
        found["search"] = measure(Solver(runtime, steps=min(steps), exact=False), left[:count], calls, assuming=True)
    return found


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--model", default="sudoku")
    parser.add_argument("--count", type=int, default=400, help="puzzles, drawn at random")
    parser.add_argument("--searched", type=int, default=100, help="puzzles to search for, of those left over")
    parser.add_argument("--calls", type=int, default=300, help="model calls that a search may take")
    parser.add_argument("--device", help="a GPU to run on, such as cuda")
    parser.add_argument("--out", type=Path, default=RESULTS / "hardest.json")
    arguments = parser.parse_args(argv)
    model, data, steps = arguments.model, "extreme_test", STEPS
    count, searched, calls = arguments.count, arguments.searched, arguments.calls
    if arguments.quick:
        model, data, steps, count, searched, calls = "sudoku-4x4", "sudoku-4x4_test", (1, 2), 10, 3, 10
    runtime = mull.load(model, device=arguments.device).runtime
    found = measure_all(runtime, sets.load(data, count), steps, searched, calls)
    about = {"model": model, "data": data, "precision": runtime.precision}
    content = {**about, **found, "provenance": provenance(arguments.device or "cpu")}
    write_text(arguments.out, json.dumps(content, indent=1) + "\n")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
