"""Measuring a model file on a data set: what `mull eval` does."""

from __future__ import annotations

import json
import time
from pathlib import Path

from mull.errors import InvalidInput
from mull.evaluate import evaluate
from mull.files import write_text
from mull.hub import find_model
from mull.looks import ONE, Looks
from mull.problem import NumpyBatch, Problem
from mull.provenance import provenance
from mull.runtime import load_runtime
from mull.terminal import scores


def evaluate_model(
    model: str,
    data: str | None,
    steps: str,
    device: str | None,
    json_file: Path | None,
    looks: Looks = ONE,
) -> None:
    """Print a model's accuracies, and write them as JSON with where they came from."""
    counts = parse_steps(steps)
    runtime = load_runtime(find_model(model), device=device)
    assert runtime.card is not None
    source = data or f"{runtime.problem.name}_test"
    batch = load_data(source, runtime.problem)
    began = time.perf_counter()
    result = evaluate(runtime, batch, counts, runtime.batch, looks)
    seconds = time.perf_counter() - began
    seen = f", {looks.told()}" if looks != ONE else ""
    print(f"{runtime.card.name} on {source}: {len(batch):,} instances{seen}, accuracy in % ({seconds:.1f} s)\n")
    print(scores(result))
    if json_file is not None:
        about = {"model": runtime.card.name, "parameters": runtime.card.parameters, "data": source, "seconds": seconds}
        trained = dict(runtime.card.provenance)
        content = {**about, **looks.about(), **result, "trained": trained, "provenance": provenance(device)}
        write_text(json_file, json.dumps(content, indent=1) + "\n")


def parse_steps(text: str) -> list[int]:
    """Numbers of recurrences from `16,32,64`."""
    try:
        steps = [int(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInput(f"--steps takes whole numbers with commas between them, not {text!r}") from None
    if min(steps) < 1 or len(set(steps)) < len(steps):
        raise InvalidInput(f"--steps takes different numbers from 1 on, not {text!r}")
    return steps


def load_data(source: str, problem: Problem) -> NumpyBatch:
    """A data set by name, or a file of puzzles with solutions; it must belong to the model's problem."""
    from mull.data import sets

    if Path(source).is_file():
        return sets.read_puzzles(Path(source), problem)
    found = sets.problem_of(source, problem)
    if found.name != problem.name:
        raise InvalidInput(f"the data set {source!r} belongs to {found.name}, but the model solves {problem.name}")
    return sets.load(source, own=problem)
