"""What `gpu.py` runs, as jobs that can be sent to other processes; these fill the caches of compilers beforehand."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
import work
from torch import Tensor
from updates import clear, random_boards, with_batch

from mull import kernels
from mull.models.recurrent_transformer import RecurrentTransformer
from mull.problems.sudoku import Sudoku
from mull.problems.visual_sudoku import VisualSudoku
from mull.recipes import get_recipe
from mull.recipes.recipe import Recipe
from mull.trainer import Trainer

RECIPES = {"paper": "sudoku-rrn.paper", "best": "sudoku-rrn.best", "visual": "visual-sudoku-satnet.paper"}
PROCESSES = 14
THREADS = "TORCHINDUCTOR_COMPILE_THREADS"


@dataclass(frozen=True)
class Job:
    """Something to time, or to compile for."""

    kind: str
    """train, infer or adaptive."""
    mode: str
    batch: int
    kernels: bool = True
    frugal: bool = False
    """With as little memory as possible."""
    box: int = 3
    width: int = 128
    blocks: int = 1
    recurrences: int | None = None
    """None: the recipe's."""


def recipe_of(job: Job, small: bool = False) -> Recipe:
    """The recipe to train by, at the job's size."""
    recipe = get_recipe(RECIPES[job.mode])
    box, width, recurrences = (2, 16, 2) if small else (job.box, job.width, job.recurrences)
    recipe = with_batch(recipe, job.batch, job.kernels, recurrences)
    model = replace(recipe.model, width=width, heads=2 if small else width // 32, blocks=job.blocks)
    return replace(recipe, model=model, problem=VisualSudoku(box) if job.mode == "visual" else Sudoku(box))


def model_and_tokens(job: Job, small: bool, device: torch.device) -> tuple[RecurrentTransformer, Tensor]:
    """A model with random weights, and boards."""
    recipe = recipe_of(job, small)
    torch.manual_seed(0)
    model = RecurrentTransformer(recipe.problem, recipe.model).to(device).eval()
    return model, torch.from_numpy(random_boards(recipe.problem, job.batch).inputs).to(device)


@contextmanager
def memory_limits(frugal: bool) -> Iterator[None]:
    """The kernels' own limits, or none of what they may do without."""
    if not frugal or not torch.cuda.is_available():
        yield
        return
    from mull.kernels import function

    usual = function.OPERAND_BYTES, function.QKV_BYTES
    function.OPERAND_BYTES, function.QKV_BYTES = 0, 0
    try:
        yield
    finally:
        function.OPERAND_BYTES, function.QKV_BYTES = usual


def shape_of(recipe: Recipe, steps: int, device: torch.device) -> work.Shape:
    """The sizes that the formulas take, with what the kernels are set to."""
    variables, model, batch = recipe.problem.variables(), recipe.model, recipe.training.batch
    shape = work.Shape(
        batch, variables.count, variables.values, model.width, model.heads, model.blocks, steps, model.inject,
        model.feedback,
    )  # fmt: skip
    if device.type != "cuda" or not kernels.supported(model.width, model.heads, batch, variables.count):
        return shape
    from mull.kernels import configs, function

    kept = shape.applications * shape.tokens * 6 * model.width <= function.QKV_BYTES
    split = configs.mlp_backward(shape.tokens, model.width) is not None
    plan = _plan(recipe, device)
    return replace(
        shape, state_bytes=plan.state_dtype.itemsize, keeps_qkv=kept, split=split, operand_bytes=function.OPERAND_BYTES
    )


def _plan(recipe: Recipe, device: torch.device) -> Any:
    """The plan that the model makes for a run of its kernels; nothing is run."""
    from mull.kernels import function

    made, real = [], function.run

    def record(plan: Any, *arguments: Any, **options: Any) -> Any:
        made.append(plan)
        raise StopIteration

    model = RecurrentTransformer(recipe.problem, recipe.model).to(device)
    state = torch.zeros(1, recipe.problem.variables().count, recipe.model.width, device=device)
    function.run = record
    try:
        model._run_kernels(state, state, 1)
    except StopIteration:
        pass
    finally:
        function.run = real
    return made[0]


def do(task: tuple[Job, bool]) -> tuple[float, str]:
    """Run a job once, so that its kernels are compiled: seconds, and what went wrong."""
    began, failed = time.perf_counter(), ""
    try:
        _once(*task, torch.device("cuda"))
    except Exception as error:
        failed = f"{type(error).__name__}: {str(error).strip()[:200]}"
    clear(torch.device("cuda"))
    return time.perf_counter() - began, failed


def _once(job: Job, small: bool, device: torch.device) -> None:
    if job.kind == "train":
        recipe = recipe_of(job if job.kernels else replace(job, recurrences=2), small)  # one recurrence is compiled
        Trainer(recipe, random_boards(recipe.problem, 16), device).update()
    else:
        model, tokens = model_and_tokens(job, small, device)
        with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
            state, context = model.start(tokens)
            if job.kernels:
                model.advance(state, context, 3)
            else:
                torch.compile(model._recur, dynamic=False)(state, context)
    torch.cuda.synchronize()


def prepare(jobs: list[Job], small: bool, limit: float) -> dict[str, Any]:
    """Let several processes compile what the jobs need; what is not done in time is compiled when it is measured."""
    began = time.perf_counter()
    jobs = sorted(jobs, key=lambda job: (job.kernels, job.kind, -job.batch))  # what takes longest goes first
    about: dict[str, Any] = {"jobs": len(jobs), "failed": {}}
    if not jobs:
        return about
    os.environ[THREADS] = "1"  # or each process would start many more
    pool = multiprocessing.get_context("spawn").Pool(min(PROCESSES, len(jobs)))
    del os.environ[THREADS]
    with pool:
        waiting = pool.map_async(do, [(job, small) for job in jobs], chunksize=1)
        try:
            for job, (seconds, failed) in zip(jobs, waiting.get(limit), strict=True):
                about["slowest_s"] = round(max(seconds, about.get("slowest_s", 0.0)), 1)
                if failed:
                    about["failed"][str(job)] = failed
        except multiprocessing.TimeoutError:
            about["failed"]["all"] = "not done in time"
    return about | {"seconds": round(time.perf_counter() - began, 1)}
