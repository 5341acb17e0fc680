"""How fast Sudoku puzzles with one solution are generated on one core, and what the puzzles of each level are like.

Compiling is not counted: one puzzle of each size is made before the clock starts. The clock is processor time, so that
other work on the machine changes little.

    python benchmarks/speed/generate.py            # writes benchmarks/results/generate_speed.json
    python benchmarks/speed/generate.py --quick    # seconds; for the tests
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

from mull.data.streams import stream
from mull.files import write_text
from mull.problems import PROBLEMS
from mull.problems.sudoku import Sudoku
from mull.problems.sudoku_solver import count, tables, workspace
from mull.provenance import provenance

RESULTS = Path(__file__).parents[1] / "results"
SEED = 0
BOARDS = {
    "sudoku-4x4": 2_000,
    "sudoku": 2_000,
    "sudoku-16x16-simple": 1_000,
    "sudoku-16x16-medium": 500,
    "sudoku-16x16-tough": 500,
    "sudoku-16x16-hard": 200,
    "sudoku-25x25": 50,
}


def measure(name: str, boards: int) -> dict[str, float]:
    """Boards a second, givens, and the share of boards that need no guess: naked and hidden singles solve them."""
    sudoku, rng = PROBLEMS[name](), stream(SEED, "generate speed", name)
    if not isinstance(sudoku, Sudoku):
        raise TypeError(f"{name} is no Sudoku")
    sudoku.generate(rng)
    instances, seconds = [], []
    for _ in range(boards):
        began = time.process_time()
        instances.append(sudoku.generate(rng))
        seconds.append(time.process_time() - began)
    room = (*workspace(sudoku.box), *tables(sudoku.box))
    singles = [count(instance.inputs.astype("int64"), 2, 0, *room) == 1 for instance in instances]
    givens = [int(instance.given.sum()) for instance in instances]
    return {
        "boards": boards,
        "per_s": boards / sum(seconds),
        "slowest_s": max(seconds),
        "givens_mean": statistics.mean(givens),
        "givens_min": min(givens),
        "givens_max": max(givens),
        "singles": statistics.mean(singles),
    }


RATES = (
    *("sudoku", *(f"sudoku-16x16-{level}" for level in ("simple", "medium", "tough", "hard"))),
    *("nonogram", "nonogram-15", "shortest-path", "shortest-path-12"),
)
"""Problems whose generators are timed for `cpu.py`."""


def rates(names: Sequence[str] = RATES, seconds: float = 5.0) -> dict[str, float]:
    """Instances generated in a second of processor time, over some seconds."""
    found = {}
    for name in names:
        problem, rng = PROBLEMS[name](), stream(SEED, "generator rates", name)
        problem.generate(rng)  # compiles
        began, made = time.process_time(), 0
        while time.process_time() - began < seconds:
            problem.generate(rng)
            made += 1
        found[name] = made / (time.process_time() - began)
    return found


def main() -> None:
    """Measure and write the result file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few puzzles only")
    parser.add_argument("--out", type=Path, default=RESULTS / "generate_speed.json")
    arguments = parser.parse_args()
    problems = {name: measure(name, 2 if arguments.quick else boards) for name, boards in BOARDS.items()}
    result = {"kind": "generate_speed", "provenance": provenance(), "seed": SEED, "problems": problems}
    write_text(arguments.out, json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
