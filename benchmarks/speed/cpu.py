"""How fast solving and training are on a CPU, against the naive yardstick (`naive.py`) in the same run.

Everything takes turns in rounds and the best round counts. `wall` is what a user waits; `processor` the time that all
threads together spent, which other work on the machine changes less. The yardstick has one thread or as many as there
are cores, and several batches: the best of them counts.

    python benchmarks/speed/cpu.py            # writes benchmarks/results/cpu_speed.json; wants an idle machine
    python benchmarks/speed/cpu.py --cores 1  # one thread for all, where other work would make threads wait
    python benchmarks/speed/cpu.py --quick    # seconds; for the tests
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import cpu_training
import generate
import naive
import torch
from rounds import Time, race

from mull.data import sets
from mull.files import write_text
from mull.hub import find_model, read_card, shipped
from mull.predict import predict
from mull.problem import Instance, NumpyBatch
from mull.processor import has_bf16_products, has_int8_products, usable_cores
from mull.provenance import provenance
from mull.runtime import Precision, Runtime, load_runtime
from mull.solve import Solver

HERE = Path(__file__).parent
RESULTS = HERE.parent / "results"
PUZZLE = "002000010000050600000000000560090000400000002000600080700201000030000900000800000"
STEPS = 64
PRECISIONS: tuple[Precision, ...] = ("fp32", "int8")
KERNEL = "kernel"
"""What takes over from onnxruntime in int8 when there is much to do."""


@dataclass(frozen=True)
class Sizes:
    """How much to measure."""

    rounds: int = 7
    boards: int = 128
    """For a fixed number of recurrences."""
    puzzles: int = 1_000
    """With early exit."""
    naive_batches: tuple[int, ...] = (8, 32, 128)
    cores: int = 1
    """Threads that anything may use."""

    @property
    def threads(self) -> list[int]:
        """The yardstick's choices of threads."""
        return sorted({1, self.cores})


def runtime_of(precision: Precision, sizes: Sizes, kernels: bool = False) -> Runtime:
    """The model that ships, on so many cores: in onnxruntime, or by the kernel where that can run."""
    runtime = load_runtime(find_model("sudoku"), precision=precision, kernels=kernels)
    runtime.workers = sizes.cores
    return runtime.for_many()


def runtimes(sizes: Sizes) -> dict[str, Runtime]:
    """All ways to solve many puzzles, by name."""
    found = {str(precision): runtime_of(precision, sizes) for precision in PRECISIONS}
    if load_runtime(find_model("sudoku"), precision="int8").many() is not None:
        found[KERNEL] = runtime_of("int8", sizes, kernels=True)
    return found


def times(found: dict[str, Time], unit: float = 1.0) -> dict[str, dict[str, float]]:
    """For the result file: seconds, or seconds over `unit`."""
    return {name: {"wall": t.wall / unit, "processor": t.processor / unit} for name, t in found.items()}


def ratios(found: dict[str, Time], yardstick: list[str]) -> dict[str, dict[str, float]]:
    """How many times the best yardstick's time is that of each of the others."""
    wall = min(found[name].wall for name in yardstick)
    processor = min(found[name].processor for name in yardstick)
    others = {name: t for name, t in found.items() if name not in yardstick}
    return {name: {"wall": wall / t.wall, "processor": processor / t.processor} for name, t in others.items()}


def cold(sizes: Sizes) -> dict[str, Any]:
    """From process start to the printed answer."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(sizes.cores)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # what is installed has its bytecode
    commands = {
        "naive": [sys.executable, str(HERE / "naive.py"), PUZZLE],
        "mull": [sys.executable, "-m", "mull", "solve", PUZZLE],
        "python": [sys.executable, "-c", "pass"],
    }
    taken: dict[str, list[Time]] = {name: [] for name in commands}
    for turn in range(sizes.rounds + 1):
        for name, command in commands.items():
            began, before = time.perf_counter(), processor_of_children()
            subprocess.run(command, check=True, capture_output=True, env=environment)
            if turn:  # the first compiles bytecode and fills the file cache
                taken[name].append(Time(time.perf_counter() - began, processor_of_children() - before))
    found = {name: Time(min(t.wall for t in row), min(t.processor for t in row)) for name, row in taken.items()}
    median = {name: statistics.median(t.wall for t in row) for name, row in taken.items()}
    return {"seconds": times(found), "median_seconds": median, "ratio": ratios(found, ["naive"])["mull"]}


def processor_of_children() -> float:
    """Processor time of all processes that this one started and that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def naive_task(model: naive.Naive, inputs: torch.Tensor, threads: int, batch: int) -> Callable[[], object]:
    """The yardstick on some boards, with so many threads."""

    def run() -> None:
        torch.set_num_threads(threads)
        for begin in range(0, len(inputs), batch):
            naive.answer(model, inputs[begin : begin + batch], STEPS)

    return run


def latency(sizes: Sizes, batch: NumpyBatch) -> dict[str, Any]:
    """One puzzle, warm, a fixed number of recurrences: one thread against one; more of them share badly and waver."""
    model, _ = naive.shipped("sudoku")
    inputs = torch.from_numpy(batch.inputs[:1]).long()
    tasks: dict[str, Callable[[], object]] = {
        f"naive, {n} threads": naive_task(model, inputs, n, 1) for n in sizes.threads
    }
    for precision in PRECISIONS:
        runtime = runtime_of(precision, replace(sizes, cores=1))
        tasks[precision] = partial(predict, runtime, batch.inputs[:1], [STEPS], 1)
    found = race(tasks, 3 * sizes.rounds)
    alone = {name: t for name, t in found.items() if name in ("naive, 1 threads", *PRECISIONS)}
    return {"seconds": times(found), "ratio": ratios(alone, ["naive, 1 threads"])}


def throughput(sizes: Sizes, batch: NumpyBatch) -> dict[str, Any]:
    """Boards at a fixed number of recurrences."""
    model, _ = naive.shipped("sudoku")
    boards = batch.inputs[: sizes.boards]
    inputs = torch.from_numpy(boards).long()
    plain = {
        f"naive, {threads} threads, batch {size}": naive_task(model, inputs, threads, size)
        for threads in sizes.threads
        for size in sizes.naive_batches
    }
    tasks: dict[str, Callable[[], object]] = dict(plain)
    for name, runtime in runtimes(sizes).items():
        tasks[name] = partial(predict, runtime, boards, [STEPS], runtime.batch)
    found = race(tasks, sizes.rounds)
    return {"boards": len(boards), "seconds": times(found, len(boards)), "ratio": ratios(found, list(plain))}


def early_exit(sizes: Sizes, batch: NumpyBatch, fixed: dict[str, Any]) -> dict[str, Any]:
    """Puzzles in one call that leave as soon as they are verified, against the yardstick, which knows no such thing."""
    solvers = {name: Solver(runtime, STEPS, exact=False) for name, runtime in runtimes(sizes).items()}
    problem = solvers["fp32"].problem
    lines = [problem.write(Instance(*row)) for row in zip(batch.inputs, batch.given, strict=True)]
    answers = {name: solver.solve(lines) for name, solver in solvers.items()}
    found = race({name: partial(solver.solve, lines) for name, solver in solvers.items()}, max(1, sizes.rounds // 2))
    seconds = times(found, len(lines))
    yardstick = {k: min(v[k] for n, v in fixed["seconds"].items() if "naive" in n) for k in ("wall", "processor")}
    return {
        "puzzles": len(lines),
        "seconds": seconds,
        "ratio": {n: {key: yardstick[key] / row[key] for key in row} for n, row in seconds.items()},
        "verified": {n: sum(each.verified for each in row) / len(row) for n, row in answers.items()},
        "mean_steps": {n: statistics.mean(each.steps for each in row) for n, row in answers.items()},
    }


def solving(sizes: Sizes) -> dict[str, Any]:
    """Every figure about solving."""
    batch = sets.load("rrn_test", sizes.puzzles)
    fixed = throughput(sizes, batch)
    cards = {name: read_card(path) for name, path in shipped().items()}
    return {
        "data": "rrn_test",
        "cold": cold(sizes),
        "latency": latency(sizes, batch),
        "fixed_steps": fixed,
        "early_exit": early_exit(sizes, batch, fixed),
        "accuracy": {name: dict(card.int8) for name, card in cards.items() if card.int8},
    }


def rounding(boards: int, cores: int) -> dict[str, Any]:
    """Boards of validation data that are right, by all ways of rounding."""
    batch, steps = sets.load("rrn_valid", boards), (32, STEPS)
    right: dict[str, dict[str, int]] = {}
    for name, runtime in runtimes(Sizes(cores=cores)).items():
        answers = zip(steps, predict(runtime, batch.inputs, steps, runtime.batch), strict=True)
        right[name] = {str(step): int(runtime.problem.right(batch, values).sum()) for step, values in answers}
    return {"data": "rrn_valid", "boards": len(batch), "right": right}


PARTS: dict[str, Callable[[bool, int], dict[str, Any]]] = {
    "solving": lambda quick, cores: solving(
        Sizes(rounds=1, boards=2, puzzles=16, naive_batches=(2,), cores=cores) if quick else Sizes(cores=cores)
    ),
    "rounding": lambda quick, cores: rounding(8 if quick else 4_000, cores),
    "generators": lambda quick, _: generate.rates(["sudoku", "nonogram"], 0.1) if quick else generate.rates(),
    "training": cpu_training.updates_and_learning,
    "processes": cpu_training.processes,
}
"""What can be measured alone, since an idle machine is hard to find for long; a ratio is always from one part."""


def main() -> None:
    """Measure and write the result file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few puzzles only")
    parser.add_argument("--parts", default=",".join(PARTS), help="what to measure; the file keeps its other parts")
    parser.add_argument("--cores", type=int, default=usable_cores(), help="threads that anything may use")
    parser.add_argument("--out", type=Path, default=RESULTS / "cpu_speed.json")
    arguments = parser.parse_args()
    machine = {"cores": usable_cores(), "int8": has_int8_products(), "bf16": has_bf16_products()}
    result: dict[str, Any] = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
    result |= {"kind": "cpu_speed", "provenance": provenance(), "machine": machine}
    for name in arguments.parts.split(","):
        before = os.getloadavg()[0]
        result[name] = PARTS[name](arguments.quick, arguments.cores)
        about = {"cores": arguments.cores, "load_before": before, "load_after": os.getloadavg()[0]}
        result.setdefault("parts", {})[name] = {"commit": provenance()["commit"], **about}
        write_text(arguments.out, json.dumps(result, indent=1) + "\n")
        print(json.dumps({name: result[name]}, indent=1), flush=True)


if __name__ == "__main__":
    main()
