"""The supervised loss against a loop, and what masks do to it."""

from __future__ import annotations

import math

import torch

from mull.losses import LossWeights, supervised, total_loss
from mull.models.recurrent_transformer import Trace
from mull.problem import Batch
from mull.problems.sudoku import Sudoku


def example() -> tuple[torch.Tensor, Batch[torch.Tensor]]:
    torch.manual_seed(0)
    logits = torch.randn(3, 2, 2, 16, 4, dtype=torch.float64, requires_grad=True)
    solution = torch.randint(0, 4, (2, 16))
    labelled = torch.rand(2, 16) < 0.6
    return logits, Batch(torch.zeros(2, 16), solution, ~labelled, labelled)


def test_equals_a_loop_over_labelled_cells() -> None:
    logits, batch = example()
    terms = []
    for s in range(3):
        for block in range(2):
            for b in range(2):
                for v in range(16):
                    if batch.labelled[b, v]:
                        row = logits[s, block, b, v].tolist()
                        total = sum(math.exp(x) for x in row)
                        terms.append(-math.log(math.exp(row[batch.solution[b, v]]) / total))
    assert math.isclose(supervised(logits, batch).item(), sum(terms) / len(terms), rel_tol=1e-5)


def test_no_label_outside_the_mask_reaches_the_loss() -> None:
    logits, batch = example()
    other = Batch(batch.inputs, torch.where(batch.labelled, batch.solution, -7), batch.given, batch.labelled)
    loss = supervised(logits, batch)
    assert loss == supervised(logits, other)
    loss.backward()
    assert logits.grad is not None
    assert (logits.grad[:, :, ~batch.labelled] == 0).all()
    assert (logits.grad[:, :, batch.labelled] != 0).all()


def test_last_step_only_ignores_the_others() -> None:
    logits, batch = example()
    weights = LossWeights(last_step_only=True)
    loss, terms = total_loss(Trace(logits, logits), batch, Sudoku(2), weights)
    assert loss == terms["supervised"] == supervised(logits[-1:, -1:], batch)
    loss.backward()
    assert logits.grad is not None and (logits.grad[:-1] == 0).all() and (logits.grad[-1, 0] == 0).all()


def test_no_labels_at_all_give_zero() -> None:
    logits, batch = example()
    assert supervised(logits, Batch(batch.inputs, batch.solution, batch.given, batch.labelled & False)) == 0
