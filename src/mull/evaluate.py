"""The paper's accuracies at any list of recurrences from one forward pass, over all puzzles and by number of givens."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mull.constraints import IntArray
from mull.problem import NumpyBatch, Problem
from mull.runtime import Runtime
from mull.views import certainty, views


def predict(
    runtime: Runtime,
    inputs: NDArray[Any],
    steps: Sequence[int],
    batch_size: int = 256,
    sides: int = 1,
    distort: float = 0.0,
) -> IntArray:
    """The answers (len(steps), B, V) after each number of recurrences, from one pass.

    With several `sides`, each instance is seen as so many symmetries show it, and the surest answer counts; `distort`
    is how much images are turned and shifted besides, on all sides but the first.
    """
    many = runtime.many()
    if many is not None and len(inputs) * max(steps) * sides >= many:
        runtime = runtime.for_many()
    others = views(runtime.problem, len(inputs), sides - 1, distort)

    def run(begin: int) -> IntArray:
        rows = slice(begin, begin + batch_size)
        best = _answers(runtime, inputs[rows], steps, sure=sides > 1)
        for view in others:
            shown = _answers(runtime, view.show(inputs[rows], rows), steps, sure=True)
            for step, (answers, sure) in shown.items():
                kept, before = best[step]
                surer = sure > before
                best[step] = np.where(surer[:, None], view.back(answers, rows), kept), np.maximum(sure, before)
        return np.stack([best[step][0] for step in steps])

    with ThreadPoolExecutor(runtime.workers) as pool:
        return np.concatenate(list(pool.map(run, range(0, len(inputs), batch_size))), axis=1)


def _answers(
    runtime: Runtime, inputs: NDArray[Any], steps: Sequence[int], sure: bool
) -> dict[int, tuple[IntArray, NDArray[np.float32]]]:
    """Answers (B, V) after each number of recurrences, and how sure they are (B,), if that is asked for."""
    state, found, done = runtime.start(inputs), {}, 0
    for step in sorted(set(steps)):
        state, logits = runtime.step(state, step - done)
        found[step] = logits.argmax(-1), certainty(logits) if sure else np.zeros(len(inputs), np.float32)
        done = step
    return found


def metrics(problem: Problem, answers_BV: IntArray, batch: NumpyBatch) -> dict[str, float]:
    """The share of answers that count as right, whole-board, solution-board and cell accuracies, and the problem's own.

    "Solution" means the cells that were not given; a board counts if all of its cells in question equal the label.
    """
    right = answers_BV == batch.solution
    blank, given = ~batch.given, batch.given
    return {
        "right": float(problem.right(batch, answers_BV).mean()),
        "whole_board": float(right.all(axis=1).mean()),
        "solution_board": float((right | given).all(axis=1).mean()),
        "whole_cell": float(right.mean()),
        "solution_cell": float(right[blank].mean()) if blank.any() else 1.0,
        "givens_cell": float(right[given].mean()) if given.any() else 1.0,
        **problem.metrics(batch, answers_BV),
    }


def evaluate(
    runtime: Runtime,
    batch: NumpyBatch,
    steps: Sequence[int],
    batch_size: int = 256,
    sides: int = 1,
    distort: float = 0.0,
) -> dict[str, Any]:
    """All metrics for each number of recurrences, and the share of right answers by number of givens."""
    problem = runtime.problem
    answers_SBV = predict(runtime, batch.inputs, steps, batch_size, sides, distort)
    givens_B = batch.given.sum(axis=1)
    by_givens: dict[str, dict[str, float]] = {}
    for count in np.unique(givens_B):
        rows = givens_B == count
        right = [float(problem.right(batch[rows], answers[rows]).mean()) for answers in answers_SBV]
        by_givens[str(count)] = {"count": int(rows.sum()), **dict(zip(map(str, steps), right, strict=True))}
    scores = [metrics(problem, answers, batch) for answers in answers_SBV]
    return {"instances": len(batch), "steps": dict(zip(map(str, steps), scores, strict=True)), "by_givens": by_givens}
