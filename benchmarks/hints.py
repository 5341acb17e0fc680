"""Whether the model's most likely values, as hints, help CP-SAT with puzzles that the recurrences do not solve.

Four ways take turns on every puzzle, each with a new CP-SAT model: no hints; the most likely value of every variable
after the last recurrence; the same where the model is sure; and, as a bound on what any hint can bring, the true
solution. Processor time of the first search alone, which is one thread's; stating the model is not counted.

    python benchmarks/hints.py            # writes benchmarks/results/hints.json; a minute or two
    python benchmarks/hints.py --quick    # 4x4 boards, seconds; for the tests
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

import mull
from mull import exact
from mull.constraints import UNKNOWN, IntArray
from mull.data import sets
from mull.files import write_text
from mull.problem import Instance, NumpyBatch
from mull.provenance import provenance

RESULTS = Path(__file__).parent / "results"
SURE = 0.9
"""The probability from which on the model counts as sure of a value."""


def left_over(solver: mull.Solver, batch: NumpyBatch, count: int) -> list[tuple[Instance, str]]:
    """Instances, and their texts, that the solver's recurrences leave unsolved."""
    instances = [Instance(batch.inputs[row], batch.given[row], batch.solution[row]) for row in range(len(batch))]
    answers = solver.solve([solver.problem.write(instance) for instance in instances])
    pairs = zip(instances, answers, strict=True)
    return [(instance, answer.puzzle) for instance, answer in pairs if not answer.verified][:count]


def searched(solver: mull.Solver, instance: Instance, hint: IntArray | None) -> tuple[float, int, int]:
    """Processor time in seconds, branches and conflicts of one search by CP-SAT."""
    search = exact.Search(solver.problem, instance, hint)
    began = time.process_time()
    values = search.run()
    seconds = time.process_time() - began
    if not np.array_equal(values, instance.solution):
        raise RuntimeError("CP-SAT was not asked the right question")
    return seconds, search.solver.ort_solver.num_branches, search.solver.ort_solver.num_conflicts


def measure(model: str, name: str, batch: NumpyBatch, count: int, steps: int | None) -> dict[str, Any]:
    """Means over the puzzles of one set that are left over."""
    solver = mull.load(model, steps=steps, exact=False)
    left = left_over(solver, batch, count)
    found: dict[str, list[tuple[float, int, int]]] = {}
    right = []
    for instance, text in left:
        assert instance.solution is not None
        probability_VD = solver.history(text)[-1]
        likely = probability_VD.argmax(-1)
        sure = np.where(probability_VD.max(-1) >= SURE, likely, UNKNOWN)
        right.append((likely == instance.solution)[~instance.given].mean())
        ways = {"no hints": None, "most likely values": likely, "where it is sure": sure, "solution": instance.solution}
        for way, hint in ways.items():
            found.setdefault(way, []).append(searched(solver, instance, hint))
    rows = {}
    for way, numbers in found.items():
        ms, branches, conflicts = np.array(numbers).T
        rows[way] = {
            "ms": 1000 * float(ms.mean()),
            "median_ms": 1000 * float(np.median(ms)),
            "branches": float(branches.mean()),
            "conflicts": float(conflicts.mean()),
            "ratio": float(ms.mean() / np.array(found["no hints"])[:, 0].mean()),
        }
    about = {"model": model, "data": name, "tried": len(batch), "puzzles": len(left), "steps": solver.steps}
    return {**about, "likely_right": float(np.mean(right)) if right else None, "ways": rows}


def main() -> None:
    """Measure and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--count", type=int, default=100, help="puzzles of each set that the recurrences leave over")
    parser.add_argument("--out", type=Path, default=RESULTS / "hints.json")
    arguments = parser.parse_args()
    if arguments.quick:
        jobs = [("sudoku-4x4", "4x4 boards", sets.load("sudoku-4x4_test", 10), 1)]
    else:
        hardest = sets.load("rrn_test")
        hardest = hardest[hardest.given.sum(axis=1) == 17]
        jobs = [
            ("sudoku", "RRN test boards with 17 givens", hardest, None),
            ("sudoku", "`extreme_test`", sets.load("extreme_test", 2 * arguments.count), None),
            ("sudoku-16x16", "`sudoku-16x16-hard_test`", sets.load("sudoku-16x16-hard_test", arguments.count), None),
        ]
    rows = []
    for model, name, batch, steps in jobs:
        rows.append(measure(model, name, batch, arguments.count, steps))
        print(json.dumps(rows[-1]), flush=True)
    result = {"sure": SURE, "seed": 0, "rows": rows, "provenance": provenance("cpu")}
    write_text(arguments.out, json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
