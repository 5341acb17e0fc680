"""The one training loop, for CPU and GPU, one process or several under torchrun.

Data lives on the device. One update draws a batch, augments it, runs the recurrences, and steps the optimiser and the
averaged weights; on a GPU the whole of it is one CUDA graph, since launches would otherwise cost more than the work.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, Protocol

import torch

from mull import checkpoint
from mull.errors import InvalidInput
from mull.evaluate import metrics
from mull.files import write_text
from mull.looks import Looks
from mull.predict import predict
from mull.problem import NumpyBatch
from mull.provenance import provenance
from mull.recipes.recipe import Recipe, from_dict, to_dict
from mull.runtime import TorchRuntime
from mull.trainer import Trainer, distributed


class Reporter(Protocol):
    """What wants to know how a training goes: a progress bar, for one."""

    def begin(self, recipe: Recipe, total_steps: int, start_step: int) -> None:
        """Training starts, or goes on from `start_step`: with compiling, on a GPU."""

    def ready(self) -> None:
        """The first update comes as soon as this returns."""

    def progress(self, step: int, metrics: dict[str, float]) -> None:
        """Every few updates: loss, puzzles_per_s, seconds; valid_board where it was just measured."""

    def end(self, summary: dict[str, Any]) -> None:
        """Training is over, or stopped at its time limit."""


def train(
    recipe: Recipe,
    out: Path,
    device: str | None = None,
    resume: bool = False,
    report: Reporter | None = None,
) -> Path:
    """Run a recipe; the averaged weights that did best on validation data end up in `out/best.safetensors`."""

    def run(rank: int, world: int) -> None:  # what it makes is gone when the processes part
        where = _device(device)
        trainer = Trainer(recipe, recipe.train.load(recipe.seed, recipe.problem), where, rank, world)
        log = RunLog(out, recipe, trainer, report if rank == 0 else None, resume)
        loop(recipe, trainer, log, recipe.valid.load(recipe.seed, recipe.problem))

    with distributed() as processes:
        run(*processes)
    return out


def _device(name: str | None) -> torch.device:
    """The device to train on: the named one, or a GPU where there is one."""
    name = name or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise InvalidInput(f"cannot train on the device {name!r}: {reason}") from error
    return device


def loop(recipe: Recipe, trainer: Trainer, log: RunLog, valid: NumpyBatch) -> None:
    """Update, log, validate and save until the updates or the minutes are used up."""
    settings = recipe.training
    log.begin()
    began = saved = time.monotonic()
    while trainer.step < settings.updates:
        trainer.update()
        last = trainer.step == settings.updates
        validating = last or trainer.step % settings.validate_every == 0
        if not validating and trainer.step % log.every:
            continue
        row = log.measure()
        if validating:
            row |= validate(trainer, valid, settings.validate_steps, settings.validate_rounds)
        log.write(row)
        now = time.monotonic()
        stop = trainer.agree(settings.minutes is not None and now - began > 60 * settings.minutes)
        if last or stop or trainer.agree(now - saved > settings.checkpoint_seconds):
            log.save()
            saved = time.monotonic()
        if stop:
            break
    log.end()


def validate(trainer: Trainer, valid: NumpyBatch, steps: int, rounds: int = 1) -> dict[str, float]:
    """Accuracies of the averaged weights on validation data; `valid_board`, the answers that are right, decides."""
    problem = trainer.recipe.problem
    runtime = TorchRuntime(trainer.ema, problem, bf16=trainer.bf16)
    answers = predict(runtime, valid.inputs, [steps], runtime.batch, Looks(rounds=rounds))[0]
    found = metrics(problem, answers, valid)
    return {"valid_board": found.pop("right"), **{f"valid_{name}": share for name, share in found.items()}}


class RunLog:
    """A run's folder: recipe.json, log.jsonl, checkpoint.safetensors, best.safetensors and TensorBoard events.

    Only the first process writes. What the checkpoint does not cover is cut from the log on resuming.
    """

    def __init__(self, out: Path, recipe: Recipe, trainer: Trainer, report: Reporter | None, resume: bool) -> None:
        self.out, self.recipe, self.trainer, self.report = out, recipe, trainer, report
        self.first = trainer.rank == 0
        self.best, self.seconds, self.rows = -1.0, 0.0, list[dict[str, float]]()
        self.every = max(1, min(50, recipe.training.updates // 200))
        self.origin = provenance(str(trainer.device))
        if resume:
            self._resume()
        elif self.first and (out / "checkpoint.safetensors").exists():
            raise InvalidInput(f"{out} already holds a training: add --resume to go on with it, or name another folder")
        if self.first:
            write_text(out / "recipe.json", json.dumps({**to_dict(recipe), "provenance": self.origin}, indent=1) + "\n")
            self._write_log()
        self.board = _tensorboard(out) if self.first else None

    def _resume(self) -> None:
        path = self.out / "checkpoint.safetensors"
        if not path.exists():
            raise InvalidInput(f"{path} does not exist: there is nothing to resume")
        tensors, metadata = checkpoint.load(path)
        recorded = to_dict(from_dict(metadata["recipe"]))  # settings that are newer than it have their defaults
        if _comparable(recorded) != _comparable(to_dict(self.recipe)):
            raise InvalidInput(f"{path} belongs to a training with other settings: it cannot be resumed with these")
        self.trainer.restore(tensors, metadata["step"])
        self.best, self.seconds, self.rows = metadata["best"], metadata["seconds"], metadata["rows"]

    def begin(self) -> None:
        """Compile, which counts as training, and go on when whoever wants to know is ready, too."""
        if self.report:
            self.report.begin(self.recipe, self.recipe.training.updates, self.trainer.step)
        began = time.monotonic()
        self.trainer.prepare()
        self.seconds += time.monotonic() - began
        if self.report:
            self.report.ready()
        self.started = self.lap = time.monotonic()
        self.lap_step = self.trainer.step

    def measure(self) -> dict[str, float]:
        """A row for the log: the means, and the speed, since the last row."""
        means, step = self.trainer.read_metrics(), self.trainer.step  # reading waits for the device
        now = time.monotonic()
        rate = (step - self.lap_step) * self.recipe.training.batch / max(now - self.lap, 1e-9)
        return {"step": step, "seconds": round(self.seconds + now - self.started, 2), "puzzles_per_s": rate, **means}

    def write(self, row: dict[str, float]) -> None:
        """Add a row to the log; keep the weights if they are the best so far."""
        step = self.trainer.step
        self.rows.append(row)
        if self.first:  # at once: a run that is killed leaves its curve behind
            with (self.out / "log.jsonl").open("a") as file:
                file.write(json.dumps(row) + "\n")
        if row.get("valid_board", -1.0) >= self.best and "valid_board" in row:
            self.best = row["valid_board"]
            self._save_best(row)
        for key, value in row.items():
            if self.board is not None and key not in ("step", "seconds"):
                self.board.add_scalar(key, value, step)
        if self.report:
            self.report.progress(step, row)
        self.lap, self.lap_step = time.monotonic(), step

    def save(self) -> None:
        """Write the checkpoint; every process takes part."""
        tensors = self.trainer.gather()
        if self.first:
            seconds = self.seconds + time.monotonic() - self.started
            state = {"step": self.trainer.step, "best": self.best, "seconds": seconds, "rows": self.rows}
            recipe = {"recipe": to_dict(self.recipe), "provenance": self.origin}
            checkpoint.save(self.out / "checkpoint.safetensors", tensors, {**state, **recipe})

    def _write_log(self) -> None:
        """The log as far as the checkpoint goes, or an empty one."""
        write_text(self.out / "log.jsonl", "".join(json.dumps(row) + "\n" for row in self.rows))

    def _save_best(self, row: dict[str, float]) -> None:
        if self.first:
            about = {"recipe": to_dict(self.recipe), "provenance": self.origin, **row}
            checkpoint.save(self.out / "best.safetensors", self.trainer.ema.state_dict(), about)

    def end(self) -> None:
        if self.board is not None:
            self.board.close()
        if self.report:
            self.report.end({"out": str(self.out), "step": self.trainer.step, "best": self.best, "rows": self.rows})


def _comparable(recipe: dict[str, Any]) -> dict[str, Any]:
    """A recipe without what may change between a run and its continuation."""
    free = {"minutes", "checkpoint_seconds"}
    training = {key: value for key, value in recipe["training"].items() if key not in free}
    comparable: dict[str, Any] = json.loads(json.dumps({**recipe, "training": training}))
    return comparable


def _tensorboard(out: Path) -> Any:
    """A TensorBoard writer if the package is there; the same numbers are in log.jsonl anyway."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(out / "tensorboard"))
