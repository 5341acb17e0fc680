"""The part of `gpu.py` about what training costs by size: one thing is varied at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gpu_jobs
import work
from gpu_jobs import Job
from gpu_run import Run
from updates import ceilings, update_rate

from mull import kernels

BASE = Job("train", "paper", 512)
AXES: dict[str, list[Job]] = {
    "tokens": [replace(BASE, box=box) for box in (2, 3, 4, 5)],
    "width": [replace(BASE, width=width) for width in (64, 128, 256, 320)],
    "blocks": [replace(BASE, blocks=blocks) for blocks in (1, 2, 4)],
    "recurrences": [replace(BASE, recurrences=recurrences) for recurrences in (8, 16, 32)],
    "batch": [replace(BASE, batch=batch) for batch in (16, 128, 512, 2048)],
}
SMALL = {"batch": [Job("train", "paper", batch) for batch in (2, 3, 4, 5)]}
COMPILED = ("width",)
"""What is varied without kernels too."""
SECONDS = 0.4


def axes(small: bool) -> dict[str, list[Job]]:
    """The points of each axis: with kernels where there are any, and without on some axes."""
    if small:
        return SMALL
    found = {name: [job for job in points if _has_kernels(job)] for name, points in AXES.items()}
    for name in COMPILED:
        found[f"{name}, compiled"] = [replace(job, kernels=False) for job in AXES[name]]
    return found


def jobs(small: bool) -> list[Job]:
    """Every point once: the base is on each axis."""
    return list(dict.fromkeys(_same(job) for points in axes(small).values() for job in points))


def _same(job: Job) -> Job:
    """The base's number of recurrences has two names."""
    return replace(job, recurrences=None) if job.recurrences == 32 else job


def _has_kernels(job: Job) -> bool:
    return kernels.supported(job.width, job.width // 32, job.batch, job.box**4)


def measure(run: Run) -> dict[str, Any]:
    """Seconds and memory of an update at every point, and the machine's own rates."""
    small, device = run.sizes.small, run.device
    rows, places = list[dict[str, Any]](), dict[str, list[int]]()
    found: dict[str, Any] = {"rows": rows, "axes": places}
    run.result["sizes"] = found
    every = jobs(small)
    for name, points in axes(small).items():
        places[name] = [every.index(_same(job)) for job in points]
    for job in every:
        recipe = gpu_jobs.recipe_of(job, small)
        shape = gpu_jobs.shape_of(recipe, recipe.training.recurrences, device)
        path = "kernels" if job.kernels and device.type == "cuda" else "compiled"
        about = {**vars(shape), **vars(work.training(shape, path)), "memory": work.memory(shape), "path": path}

        def one(recipe: Any = recipe) -> dict[str, Any]:
            return update_rate(recipe, device, 0.0 if small else SECONDS, 8 if small else 1024)

        run.row(rows, about, one)
    found["machine"] = ceilings(device, run.sizes.copied, run.sizes.product)
    return found
