"""The part of `cpu.py` about training: the recipe `sudoku-4x4` against the yardstick, and one process against two."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import naive
import numpy as np
import torch
from rounds import race

from mull.models.recurrent_transformer import ModelConfig
from mull.processor import has_bf16_products
from mull.recipes import get_recipe
from mull.recipes.recipe import Recipe
from mull.train import validate
from mull.trainer import Trainer

CPU = torch.device("cpu")
GOAL = 0.99
"""Share of validation boards that counts as learned."""


@dataclass(frozen=True)
class Sizes:
    """How much to measure."""

    rounds: int = 7
    updates: int = 3
    batches: tuple[int, ...] = (16, 128, 512, 1024)
    our_batches: tuple[int, ...] = (128, 512, 1024)
    limit: float = 120.0
    """Seconds of processor time after which a training that has not learned is given up."""
    processes_updates: int = 60


QUICK = Sizes(rounds=1, updates=1, batches=(8,), our_batches=(8,), limit=0.0, processes_updates=2)


class NaiveTraining:
    """The yardstick on a recipe's data: batches in random order, a constant learning rate, nothing else."""

    def __init__(self, recipe: Recipe, config: ModelConfig, batch: int, learning_rate: float) -> None:
        torch.manual_seed(recipe.seed)
        self.problem, self.recurrences, self.batch = recipe.problem, recipe.training.recurrences, batch
        data = recipe.train.load(recipe.seed, recipe.problem)
        self.inputs, self.solution = torch.from_numpy(data.inputs).long(), torch.from_numpy(data.solution).long()
        self.model = naive.make(recipe.problem, config)
        self.optimiser = naive.optimiser(self.model, learning_rate)

    def update(self) -> None:
        """One optimiser step."""
        rows = torch.randint(len(self.inputs), (self.batch,))
        naive.train_step(self.model, self.optimiser, self.inputs[rows], self.solution[rows], self.recurrences)


def updates(recipe: Recipe, sizes: Sizes, cores: int) -> dict[str, Any]:
    """Puzzles trained a second: the same model, the same recurrences; ours also augments and averages weights."""
    made: dict[str, tuple[Callable[[], None], int]] = {}
    data, usual = recipe.train.load(recipe.seed, recipe.problem), recipe.training
    for batch in sizes.batches:
        training = NaiveTraining(recipe, recipe.model, batch, recipe.training.learning_rate)
        made[f"naive, batch {batch}"] = training.update, batch
    for batch in sizes.our_batches:
        for kind, bf16 in (("", usual.bf16), (", float32", False)):
            ours = Trainer(replace(recipe, training=replace(usual, batch=batch, bf16=bf16)), data, CPU)
            made[f"ours, batch {batch}{kind}"] = ours.update, batch
    tasks: dict[str, Callable[[], object]] = {}
    for threads in sorted({1, cores}):
        for name, (update, _) in made.items():
            tasks[f"{name}, {threads} threads"] = partial(_several, update, sizes.updates, threads)
    found = race(tasks, sizes.rounds)
    rates = {}
    for name, taken in found.items():
        puzzles = sizes.updates * made[name.rpartition(",")[0]][1]
        rates[name] = {"wall": puzzles / taken.wall, "processor": puzzles / taken.processor}
    best = {
        key: {who: max(row[key] for name, row in rates.items() if name.startswith(who)) for who in ("naive", "ours")}
        for key in ("wall", "processor")
    }
    return {
        "bf16": usual.bf16 and has_bf16_products(),
        "puzzles_per_s": rates,
        "ratio": {key: row["ours"] / row["naive"] for key, row in best.items()},
    }


def _several(update: Callable[[], None], count: int, threads: int) -> None:
    torch.set_num_threads(threads)
    for _ in range(count):
        update()


def learning(recipe: Recipe, sizes: Sizes) -> dict[str, Any]:
    """Processor seconds of updates until most validation boards are solved: the recipe against the paper's way.

    The paper's way is the plain model, dropout 0.1, no symmetries, batch 16 and a constant learning rate of 6e-4.
    """
    torch.set_num_threads(1)
    valid = recipe.valid.load(recipe.seed, recipe.problem)
    plain = ModelConfig(width=recipe.model.width, heads=recipe.model.heads)
    paper, ours = NaiveTraining(recipe, plain, 16, 6e-4), Trainer(recipe, recipe.train.load(recipe.seed), CPU)
    inputs, solution = torch.from_numpy(valid.inputs).long(), torch.from_numpy(valid.solution).long()

    def boards(steps: int) -> float:
        paper.model.eval()
        return float((naive.answer(paper.model, inputs, steps) == solution).all(-1).float().mean())

    def naive_accuracy() -> float:  # the plain model may do better at the recurrences that it was trained with
        return max(boards(steps) for steps in (recipe.training.recurrences, recipe.training.validate_steps))

    def our_accuracy() -> float:
        return validate(ours, valid, recipe.training.validate_steps)["valid_board"]

    return {
        "goal": GOAL,
        "ours": _until(ours.update, our_accuracy, 50, sizes.limit),
        "naive": _until(paper.update, naive_accuracy, 400, sizes.limit),  # as many puzzles
    }


def _until(update: Callable[[], None], accuracy: Callable[[], float], every: int, limit: float) -> dict[str, Any]:
    """Update until the goal is reached or the time is up; only updates are timed."""
    spent, count, best = 0.0, 0, 0.0
    while True:
        began = time.process_time()
        for _ in range(every if limit else 1):
            update()
            count += 1
        spent += time.process_time() - began
        best = max(best, accuracy())
        if best >= GOAL or spent >= limit:
            return {"reached": best >= GOAL, "seconds": spent, "updates": count, "best": best}


def processes(quick: bool, cores: int) -> dict[str, Any]:
    """One process and two under torchrun, each with one thread: the same curve, and how much faster two are."""
    sizes = QUICK if quick else Sizes()
    rows: dict[int, list[dict[str, float]]] = {}
    rates: dict[int, list[float]] = {1: [], 2: []}
    settings = [f"updates={sizes.processes_updates}", "validate_every=1000000", "bf16=false", "valid.count=8"]
    for _ in range(max(1, sizes.rounds // 2)):
        for count in (1, 2):
            with tempfile.TemporaryDirectory() as folder:
                out = Path(folder) / "run"
                launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}"]
                options = [word for setting in settings for word in ("--set", setting)]
                command = [*launch, "-m", "mull", "train", "sudoku-4x4", "--device", "cpu", "--out", str(out), *options]
                environment = {**os.environ, "OMP_NUM_THREADS": "1"}
                subprocess.run(command, check=True, capture_output=True, env=environment)
                rows[count] = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
            rates[count].append(max(row["puzzles_per_s"] for row in rows[count]))
    one, two = (np.array([row["loss"] for row in rows[count]]) for count in (1, 2))
    best = {count: max(found) for count, found in rates.items()}
    return {
        "updates": sizes.processes_updates,
        "largest_difference": float(np.abs(one / two - 1).max()),
        "puzzles_per_s": {str(count): rate for count, rate in best.items()},
        "efficiency": best[2] / (2 * best[1]),
    }


def updates_and_learning(quick: bool, cores: int) -> dict[str, Any]:
    """The recipe `sudoku-4x4` against the yardstick."""
    sizes, recipe = QUICK if quick else Sizes(), get_recipe("sudoku-4x4")
    if quick:
        training = replace(recipe.training, recurrences=2, validate_steps=2)
        few = {"train": replace(recipe.train, count=64), "valid": replace(recipe.valid, count=8)}
        recipe = replace(recipe, training=training, **few)
    return {"recipe": recipe.name, "updates": updates(recipe, sizes, cores), "learning": learning(recipe, sizes)}
