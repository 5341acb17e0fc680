"""What search adds to the recurrences, by model calls: assumed values against looking again from other sides.

Puzzles that the recurrences alone solve need no search; they are counted and left out. Run on a CPU.

    python benchmarks/search.py            # writes benchmarks/results/search.json; some minutes
    python benchmarks/search.py --quick    # 4x4 boards, seconds; for the tests
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

import mull
from mull.data import sets
from mull.files import write_text
from mull.problem import Instance, NumpyBatch
from mull.provenance import provenance
from mull.search import Search

RESULTS = Path(__file__).parent / "results"
BUDGETS = (10, 30, 100, 300, 1000, 3000)


def left_over(model: str, batch: NumpyBatch, steps: int, count: int) -> tuple[mull.Solver, list[Instance], float]:
    """A solver, puzzles that it does not solve in so many recurrences, and the share of those that it does."""
    solver = mull.load(model, steps=steps, exact=False)
    instances = [Instance(batch.inputs[row], batch.given[row], batch.solution[row]) for row in range(len(batch))]
    answers = solver.solve([solver.problem.write(instance) for instance in instances])
    failed = [instance for instance, answer in zip(instances, answers, strict=True) if not answer.verified]
    return solver, failed[:count], 1 - len(failed) / len(instances)


def measure(solver: mull.Solver, instances: list[Instance], calls: int, assuming: bool) -> dict[str, Any]:
    """How many are solved by how many calls."""
    search = Search(solver.runtime, solver.verified, calls, solver.steps, assuming)
    began = time.perf_counter()
    results = [search.run(instance) for instance in instances]
    seconds = (time.perf_counter() - began) / max(1, len(instances))
    wrong = [
        result.values is not None and not np.array_equal(result.values, instance.solution)
        for result, instance in zip(results, instances, strict=True)
    ]
    needed = np.array([result.calls if result.values is not None else np.inf for result in results])
    spent = [result.calls for result in results]
    return {
        "how": "assumptions" if assuming else "sides",
        "puzzles": len(instances),
        "calls": calls,
        "solved_within": {str(budget): float(np.mean(needed <= budget)) for budget in BUDGETS if budget <= calls},
        "mean_calls": float(np.mean(spent)),
        "median_calls": float(np.median(spent)),
        "seconds": seconds,
        "other_solutions": int(np.sum(wrong)),
    }


def main() -> None:
    """Measure and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--count", type=int, default=100, help="puzzles of each set that the recurrences leave over")
    parser.add_argument("--out", type=Path, default=RESULTS / "search.json")
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    if arguments.quick:
        jobs = [("sudoku-4x4", "4x4 boards", sets.load("sudoku-4x4_test", 10), 1, 30)]
    else:
        hardest = sets.load("rrn_test")
        hardest = hardest[hardest.given.sum(axis=1) == 17]
        extreme = sets.load("extreme_test", 4 * arguments.count)
        jobs = [
            ("sudoku", "RRN test boards with 17 givens", hardest, 64, 300),
            ("sudoku", "extreme_test", extreme, 64, 300),
            ("sudoku-extreme", "extreme_test", extreme, 64, 300),
            ("visual-sudoku", "RRN-V test boards", sets.load("rrn-v_test"), 64, 300),
        ]
    for model, name, batch, steps, calls in jobs:
        solver, instances, share = left_over(model, batch, steps, arguments.count)
        takes = solver.problem.assume(instances[0], 0, 0) is not None if instances else True
        for assuming in (True, False) if takes else (False,):
            row = {"model": model, "data": name, "tried": len(batch), "by_recurrence": share, "steps": steps}
            rows.append({**row, **measure(solver, instances, calls, assuming)})
            print(json.dumps(rows[-1]), flush=True)
    write_text(arguments.out, json.dumps({"rows": rows, "provenance": provenance("cpu")}, indent=1) + "\n")


if __name__ == "__main__":
    main()
