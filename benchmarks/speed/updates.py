"""Timing updates through the trainer and recurrences in a CUDA graph: what the speed benchmarks on a GPU share.

Everything runs on a CPU too, without graphs and kernels, so that the tests can try it.
"""

from __future__ import annotations

import gc
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from mull.data.streams import stream
from mull.models.recurrent_transformer import RecurrentTransformer
from mull.problem import Batch, NumpyBatch, Problem, Tokens
from mull.recipes.recipe import Recipe
from mull.trainer import Trainer

GIB = 2**30


def random_boards(problem: Problem, rows: int) -> NumpyBatch:
    """Inputs of the right kind with labels that mean nothing: speed does not depend on them."""
    rng, kind, variables = stream(0, "speed"), problem.input_kind(), problem.variables()
    solution = rng.integers(0, variables.values, (rows, variables.count))
    given = rng.random(solution.shape) < 0.4
    if isinstance(kind, Tokens):
        return Batch((given * (solution + 1)).astype("uint8"), solution, given, ~given)
    images = rng.integers(0, 256, (rows, variables.count, *kind.shape)).astype("uint8")
    return Batch(images, solution, given, ~given)


def wait(device: torch.device) -> None:
    """Until the device has done what it was told."""
    if device.type == "cuda":
        torch.cuda.synchronize()


def clear(device: torch.device) -> None:
    """Forget what was compiled for other shapes, and give memory back."""
    torch.compiler.reset()  # a function is compiled eight times at most, and then no more
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def microseconds(call: Callable[[], object], device: torch.device, repeats: int = 3) -> float:
    """Time of one call: on a GPU from replays of a CUDA graph of several."""
    call()
    wait(device)
    began = time.perf_counter()
    call()
    wait(device)
    once = time.perf_counter() - began
    if device.type != "cuda":
        return 1e6 * once
    count = max(2, min(50, int(0.005 / max(1e-6, once)))) if once < 0.1 else 1
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(count):
            call()
    graph.replay()
    torch.cuda.synchronize()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(repeats):
        graph.replay()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) * 1e3 / (repeats * count)


def ceilings(device: torch.device, numbers: int, side: int) -> dict[str, float]:
    """What the machine can do: bytes a second of a large copy, read and written, and operations of a large product."""

    def seconds(call: Callable[[], object], times: int = 10) -> float:
        for _ in range(3):
            call()
        wait(device)
        began = time.perf_counter()
        for _ in range(times):
            call()
        wait(device)
        return (time.perf_counter() - began) / times

    source = torch.randn(numbers, device=device, dtype=torch.bfloat16)
    target = torch.empty_like(source)
    left, right = (torch.randn(side, side, device=device, dtype=torch.bfloat16) for _ in range(2))
    return {
        "bytes_per_s": 2 * source.nbytes / seconds(lambda: target.copy_(source)),
        "operations_per_s": 2 * side**3 / seconds(lambda: left @ right),
    }


def update_rate(recipe: Recipe, device: torch.device, seconds: float = 1.0, rows: int = 4096) -> dict[str, Any]:
    """Puzzles a second, peak memory, seconds until ready, loss at the start: updates on random boards."""
    clear(device)
    batch, began = recipe.training.batch, time.perf_counter()
    data = random_boards(recipe.problem, rows)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trainer = Trainer(recipe, data, device)
        for _ in range(3):
            trainer.update()
        loss = trainer.read_metrics()["loss"]
    ready = time.perf_counter() - began
    began, updates = time.perf_counter(), 0
    while time.perf_counter() - began < seconds or not updates:
        for _ in range(5 if device.type == "cuda" else 1):
            trainer.update()
            updates += 1
        wait(device)
    rate = batch * updates / (time.perf_counter() - began)
    found: dict[str, Any] = {"puzzles_per_s": round(rate, 1), "seconds_per_update": batch / rate}
    found |= {"ready_s": round(ready, 1), "loss": round(loss, 4), "updates": updates}
    if device.type == "cuda":
        found["peak_gib"] = round(torch.cuda.max_memory_allocated() / GIB, 3)
    if recipe.training.kernels and not trainer.model.kernels:
        said = [str(w.message).splitlines()[0] for w in caught if "kernels" in str(w.message)]
        found["fell_back"] = (said or ["without kernels"])[0][:300]
    return found


def with_batch(recipe: Recipe, batch: int, kernels: bool, recurrences: int | None = None) -> Recipe:
    """The recipe at another batch, with or without kernels."""
    training = replace(recipe.training, batch=batch, kernels=kernels)
    if recurrences is not None:
        training = replace(training, recurrences=recurrences)
    return replace(recipe, training=training)


@torch.no_grad()
def inference_rate(model: RecurrentTransformer, tokens: Tensor, steps: int, kernels: bool = True) -> float:
    """Puzzles a second for so many recurrences of all, from inputs to the last logits; plain steps are compiled."""
    model.eval()
    model.kernels, device = kernels, tokens.device
    step: Callable[..., tuple[Tensor, ...]] = model.step
    if device.type == "cuda" and not kernels:
        step = torch.compile(model._recur, dynamic=False)

    def solve() -> None:
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            state, context = model.start(tokens)
            if kernels:
                model.advance(state, context, steps)
                return
            for _ in range(steps):
                state, *_ = step(state, context)

    rate = len(tokens) / microseconds(solve, device) * 1e6
    if kernels and not model.kernels:
        raise RuntimeError("the kernels could not run")
    return rate
