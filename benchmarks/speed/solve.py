"""How fast `mull solve` is on this machine, against CP-SAT one puzzle at a time in the same run.

CP-SAT is called directly, with all-different constraints and one worker: the fastest way to use it that we know of.

    python benchmarks/speed/solve.py            # writes benchmarks/results/solve_speed.json
    python benchmarks/speed/solve.py --quick    # seconds; for the tests
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from ortools.sat.python import cp_model

import mull
from mull.data import sets
from mull.files import write_text
from mull.problem import Instance
from mull.provenance import provenance

RESULTS = Path(__file__).parents[1] / "results"
PUZZLE = "002000010000050600000000000560090000400000002000600080700201000030000900000800000"


def cold(command: list[str], repeats: int) -> float:
    """Median wall time in seconds of a process from start to end."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def cpsat(instance: Instance, side: int = 9, box: int = 3) -> list[int]:
    """A Sudoku's solution by OR-Tools' CP-SAT."""
    model = cp_model.CpModel()
    cells = [model.new_int_var(1, side, "") for _ in range(side * side)]
    for i in range(side):
        corner = i // box * box * side + i % box * box
        model.add_all_different(cells[i * side : (i + 1) * side])
        model.add_all_different(cells[i::side])
        model.add_all_different([cells[corner + row * side + column] for row in range(box) for column in range(box)])
    for cell, token in zip(cells, instance.inputs.tolist(), strict=True):
        if token:
            model.add(cell == token)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.solve(model)
    return [solver.value(cell) for cell in cells]


def measure(count: int, exact_count: int, repeats: int) -> dict[str, object]:
    """Cold starts, one puzzle at a time, and a batch; RRN test puzzles drawn with a fixed seed."""
    solve = [sys.executable, "-m", "mull", "solve", PUZZLE]
    cold(solve, 1)  # bytecode is compiled once
    batch = sets.load("rrn_test", count)
    solver = mull.load("sudoku", exact=False)
    problem = solver.problem
    lines = [problem.write(Instance(*row)) for row in zip(batch.inputs, batch.given, strict=True)]
    solver.solve(lines[:8])
    began = time.perf_counter()
    answers = solver.solve(lines)
    rate = count / (time.perf_counter() - began)
    began = time.perf_counter()
    for line in lines[:repeats]:
        solver.solve(line)
    single = (time.perf_counter() - began) / repeats
    instances = [problem.parse(line) for line in lines[:exact_count]]
    cpsat(instances[0])
    began = time.perf_counter()
    solutions = [cpsat(instance) for instance in instances]
    exact_rate = exact_count / (time.perf_counter() - began)
    if solutions != (batch.solution[:exact_count] + 1).tolist():
        raise RuntimeError("CP-SAT was not asked the right question")
    return {
        "cold_seconds": cold(solve, repeats),
        "cold_python_seconds": cold([sys.executable, "-c", "pass"], repeats),
        "single_ms": 1000 * single,
        "batch": count,
        "batch_per_s": rate,
        "verified": sum(answer.verified for answer in answers) / count,
        "mean_steps": statistics.mean(answer.steps for answer in answers),
        "cpsat_per_s": exact_rate,
        "ratio_to_cpsat": rate / exact_rate,
    }


def main() -> None:
    """Measure and write the result file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few puzzles only")
    parser.add_argument("--out", type=Path, default=RESULTS / "solve_speed.json")
    arguments = parser.parse_args()
    sizes = (16, 2, 2) if arguments.quick else (10_000, 1_000, 21)
    result = {"kind": "solve_speed", "provenance": provenance(), "data": "rrn_test", **measure(*sizes)}
    write_text(arguments.out, json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
