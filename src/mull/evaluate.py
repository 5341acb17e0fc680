"""The paper's accuracies at any list of recurrences, over all puzzles and by number of givens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mull.constraints import IntArray
from mull.looks import ONE, Looks
from mull.predict import predict
from mull.problem import NumpyBatch, Problem
from mull.runtime import Runtime


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
    looks: Looks = ONE,
) -> dict[str, Any]:
    """All metrics for each number of recurrences, and the share of right answers by number of givens."""
    problem = runtime.problem
    answers_SBV = predict(runtime, batch.inputs, steps, batch_size, looks)
    givens_B = batch.given.sum(axis=1)
    by_givens: dict[str, dict[str, float]] = {}
    for count in np.unique(givens_B):
        rows = givens_B == count
        right = [float(problem.right(batch[rows], answers[rows]).mean()) for answers in answers_SBV]
        by_givens[str(count)] = {"count": int(rows.sum()), **dict(zip(map(str, steps), right, strict=True))}
    scores = [metrics(problem, answers, batch) for answers in answers_SBV]
    return {"instances": len(batch), "steps": dict(zip(map(str, steps), scores, strict=True)), "by_givens": by_givens}
