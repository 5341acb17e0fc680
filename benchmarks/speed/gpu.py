"""Every figure about speed on one GPU, against the yardstick (`naive.py`), in one run.

    MULL_DATA=... python benchmarks/speed/gpu.py --limit 280            # all: about 4 minutes on an H200, or in two:
    MULL_DATA=... python benchmarks/speed/gpu.py --parts roofline,naive,adaptive,inference,training --limit 220  # 3 min
    python benchmarks/speed/gpu.py --parts sizes --limit 120                                                   # 1.5 min
    python benchmarks/speed/gpu.py --quick --out FILE                   # tiny sizes on any device; for the tests

Writes benchmarks/results/gpu_speed.json after every measurement, and keeps the parts there that are not measured. What
fails is recorded with its error and does not stop the rest; after `--limit` seconds nothing new is started. What needs
compiling is compiled beforehand by several processes, which takes up to half of the time. `adaptive` wants the RRN
test set (`sudoku9/rrn_test.csv.gz`) under `$MULL_DATA`; the others want no data.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import gpu_jobs
import gpu_sizes
import naive
import torch
import work
from gpu_jobs import Job
from gpu_run import QUICK, Run, Sizes
from updates import ceilings, clear, inference_rate, random_boards, update_rate, wait

from mull.adaptive import Adaptive
from mull.data import sets
from mull.hub import find_model
from mull.problems.sudoku import Sudoku
from mull.runtime import load_runtime

RESULTS = Path(__file__).parents[1] / "results"


def roofline(run: Run) -> dict[str, Any]:
    """What the machine can do, measured, and what the kernels have to do, by formula."""
    device, sizes = run.device, run.sizes
    clear(device)
    found: dict[str, Any] = dict(ceilings(device, sizes.copied, sizes.product))
    clear(device)
    for mode, batch in (("paper", max(sizes.training)), ("best", max(sizes.best))):
        recipe = gpu_jobs.recipe_of(Job("train", mode, batch), sizes.small)
        for kind in ("training", "inference"):
            steps = recipe.training.recurrences if kind == "training" else sizes.steps
            shape = gpu_jobs.shape_of(recipe, steps, device)
            amount = work.training(shape) if kind == "training" else work.inference(shape)
            row = {**vars(shape), **vars(amount)}
            row |= {"memory": work.memory(shape)} if kind == "training" else {}
            found.setdefault(kind, {})[mode] = row
    return found


def naive_rates(run: Run) -> list[dict[str, Any]]:
    """The yardstick: training at some batches, and recurring, in float32, eager."""
    sizes, device, rows = run.sizes, run.device, list[dict[str, Any]]()
    run.result["naive"] = rows
    problem = Sudoku(2 if sizes.small else 3)
    recurrences = 2 if sizes.small else 32

    def timed(call: Callable[[], object], puzzles: int) -> dict[str, Any]:
        for _ in range(2):
            call()
        wait(device)
        began, count = time.perf_counter(), 0
        while time.perf_counter() - began < sizes.seconds or not count:
            call()
            count += 1
            wait(device)
        rate = {"puzzles_per_s": round(puzzles * count / (time.perf_counter() - began), 1)}
        return rate | ({"peak_gib": torch.cuda.max_memory_allocated() / 2**30} if device.type == "cuda" else {})

    def training(batch: int) -> dict[str, Any]:
        clear(device)
        model = naive.make(problem, naive.PAPER, device)
        optimise, data = naive.optimiser(model), random_boards(problem, batch)
        inputs, solution = (torch.from_numpy(array).to(device).long() for array in (data.inputs, data.solution))
        return timed(lambda: naive.train_step(model, optimise, inputs, solution, recurrences), batch)

    def inference(batch: int) -> dict[str, Any]:
        clear(device)
        model = naive.make(problem, naive.PAPER, device).eval()
        inputs = torch.from_numpy(random_boards(problem, batch).inputs).to(device).long()
        return timed(lambda: naive.answer(model, inputs, sizes.steps), batch)

    for batch in sizes.naive_training:
        run.row(rows, {"what": "training", "batch": batch}, lambda batch=batch: training(batch))
    for batch in sizes.naive_inference:
        run.row(rows, {"what": "inference", "batch": batch}, lambda batch=batch: inference(batch))
    return rows


def training_jobs(sizes: Sizes) -> list[Job]:
    """Every training that is timed: with kernels, with them in little memory, and compiled from the plain path."""
    batches = {"paper": sizes.training, "best": sizes.best, "visual": sizes.visual}
    ways = [(mode, batch, kernels) for kernels in (True, False) for mode, some in batches.items() for batch in some]
    jobs = [Job("train", mode, batch, kernels) for mode, batch, kernels in ways]
    return [*jobs, Job("train", "paper", max(sizes.training), True, frugal=True)]


def training(run: Run) -> list[dict[str, Any]]:
    """Updates through the trainer."""
    rows = list[dict[str, Any]]()
    run.result["training"] = rows
    for job in training_jobs(run.sizes):
        recipe = gpu_jobs.recipe_of(job, run.sizes.small)

        def measure(job: Job = job, recipe: Any = recipe) -> dict[str, Any]:
            with gpu_jobs.memory_limits(job.frugal):
                boards = 8 if run.sizes.small else 512 if job.mode == "visual" else 4096
                return update_rate(recipe, run.device, run.sizes.seconds, boards)

        about = {"mode": job.mode, "batch": job.batch, "kernels": job.kernels, "frugal": job.frugal}
        run.row(rows, about | {"recurrences": recipe.training.recurrences}, measure)
    return rows


def inference_jobs(sizes: Sizes) -> list[Job]:
    """Every inference that is timed."""
    modes = (("paper", True), ("best", True), ("paper", False))
    return [Job("infer", mode, batch, kernels) for mode, kernels in modes for batch in sizes.inference]


def inference(run: Run) -> list[dict[str, Any]]:
    """All recurrences of all puzzles, in one CUDA graph."""
    rows = list[dict[str, Any]]()
    run.result["inference"] = rows
    for job in inference_jobs(run.sizes):

        def measure(job: Job = job) -> dict[str, Any]:
            clear(run.device)
            model, tokens = gpu_jobs.model_and_tokens(job, run.sizes.small, run.device)
            return {"puzzles_per_s": round(inference_rate(model, tokens, run.sizes.steps, job.kernels), 1)}

        run.row(rows, {"mode": job.mode, "batch": job.batch, "kernels": job.kernels, "steps": run.sizes.steps}, measure)
    return rows


def adaptive(run: Run) -> dict[str, Any]:
    """The model that ships on the RRN test set: solved puzzles leave their batch, or all stay for every recurrence."""
    sizes, device = run.sizes, run.device
    rows = list[dict[str, Any]]()
    found: dict[str, Any] = {"model": "sudoku", "data": "rrn_test", "steps": sizes.steps, "rows": rows}
    run.result["adaptive"] = found
    batch = sets.load("rrn_test", sizes.puzzles)
    found["puzzles"] = len(batch)
    runtime = load_runtime(find_model("sudoku"), "torch", str(device), "auto")
    ways = [("fixed", way) for way in sizes.fixed] + [("leaving", way) for way in sizes.leaving]
    for kind, (size, chunk) in ways:

        def measure(size: int = size, chunk: int = chunk) -> dict[str, Any]:
            clear(device)
            solve = Adaptive(runtime.model, runtime.problem, sizes.steps, runtime.bf16, size, chunk, 1 << 15)
            outcome = solve(batch.inputs)  # captures its graphs
            best = float("inf")
            for _ in range(1 if sizes.small else 3):
                wait(device)
                began = time.perf_counter()
                outcome = solve(batch.inputs)
                best = min(best, time.perf_counter() - began)
            return {
                "puzzles_per_s": round(len(batch) / best, 1),
                "seconds": best,
                "right": float(runtime.problem.right(batch, outcome.values_CV).mean()),
                "verified": float(outcome.verified_C.mean()),
                "mean_steps": float(outcome.steps_C.mean()),
                "precision": runtime.precision,
                "kernels": device.type == "cuda" and bool(runtime.model.kernels),
            }

        run.row(rows, {"kind": kind, "batch": size, "chunk": chunk}, measure)
    return found


PARTS: dict[str, Callable[[Run], Any]] = {
    "roofline": roofline,
    "naive": naive_rates,
    "adaptive": adaptive,
    "inference": inference,
    "training": training,
    "sizes": gpu_sizes.measure,
}


def jobs_of(parts: list[str], sizes: Sizes) -> list[Job]:
    """What these parts need compiled."""
    jobs = training_jobs(sizes) if "training" in parts else []
    jobs += inference_jobs(sizes) if "inference" in parts else []
    jobs += [Job("adaptive", "best", batch) for batch in (2048, 32)] if "adaptive" in parts else []
    jobs += gpu_sizes.jobs(sizes.small) if "sizes" in parts else []
    return list(dict.fromkeys(replace(job, frugal=False) for job in jobs))


def measure_part(run: Run, name: str) -> None:
    """One part, with when and where it was measured; the file has it afterwards."""
    began, origin = time.perf_counter(), run.result["provenance"]
    try:
        run.result[name] = PARTS[name](run)
    except Exception as error:  # outside of any single measurement
        run.result[name] = {"failed": f"{type(error).__name__}: {error}"[:500]}
        print(name, run.result[name], flush=True)
    about = {key: origin[key] for key in ("commit", "command", "hardware")} | {"quick": run.sizes.small}
    run.result.setdefault("parts", {})[name] = about | {"seconds": round(time.perf_counter() - began, 1)}
    run.write()


def main() -> None:
    """Measure and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--parts", default=",".join(PARTS), help="what to measure; the file keeps its other parts")
    parser.add_argument("--limit", type=float, default=280.0, help="seconds after which nothing new is started")
    parser.add_argument("--no-prepare", action="store_true", help="compile nothing beforehand")
    parser.add_argument("--out", type=Path, default=RESULTS / "gpu_speed.json")
    arguments = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    run = Run(QUICK if arguments.quick else Sizes(), device, arguments.out, arguments.limit)
    parts = arguments.parts.split(",")
    if unknown := set(parts) - set(PARTS):
        parser.error(f"no such parts: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if device.type == "cuda" and not arguments.no_prepare:
        jobs = jobs_of(parts, run.sizes)
        run.result["prepared"] = gpu_jobs.prepare(jobs, run.sizes.small, min(120.0, 0.5 * run.limit))
        print(json.dumps(run.result["prepared"]), flush=True)
    for place, name in enumerate(parts):
        measure_part(run, name)
        try:
            wait(device)
        except Exception as error:  # a fault that leaves the device unusable for this process, but not for another
            print(f"going on in another process: {error}"[:300], flush=True)
            rest = [sys.executable, __file__, "--parts", ",".join(parts[place + 1 :]), "--no-prepare"]
            rest += ["--limit", str(run.left()), "--out", str(arguments.out), *["--quick"] * arguments.quick]
            sys.exit(subprocess.run(rest).returncode if place + 1 < len(parts) else 1)
    print(json.dumps(run.result["parts"]))
    print(f"{time.perf_counter() - run.began:.0f} s in all")


if __name__ == "__main__":
    main()
