"""The supervised loss against a loop, what masks do to it, and how terms add up."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from mull.errors import InvalidInput
from mull.losses import LossWeights, supervised, total, total_loss
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


TERMS = ("supervised", "cardinality", "attention", "path", "clste")


@pytest.mark.parametrize("wanted", TERMS)
def test_terms_of_weight_0_are_not_computed(wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    called = []

    def stand_in(name: str) -> Any:
        def term(*_: object) -> torch.Tensor:
            called.append(name)
            return torch.tensor(3.0)

        return term

    for name in TERMS:
        monkeypatch.setattr(total, name, stand_in(name))
    logits, batch = example()
    trace = Trace(logits, logits, watched_SLBNV=torch.zeros(1))
    weights = LossWeights(**{name: 0.5 * (name == wanted) for name in TERMS})
    loss, terms = total_loss(trace, batch, Sudoku(2), weights)
    assert called == [wanted] == list(terms) and loss == 1.5


def test_terms_add_up_by_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    for place, name in enumerate(TERMS):
        monkeypatch.setattr(total, name, lambda *_, value=float(place + 1): torch.tensor(value))
    logits, batch = example()
    weights = LossWeights(supervised=1, cardinality=0.5, attention=2, path=0.25, clste=0.1)
    loss, terms = total_loss(Trace(logits, logits, watched_SLBNV=torch.zeros(1)), batch, Sudoku(2), weights)
    assert loss.item() == pytest.approx(1 + 1 + 6 + 1 + 0.5) and list(terms) == list(TERMS)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cardinality": -1.0}, "0 or more, not cardinality=-1.0"),
        ({"attention": math.nan}, "0 or more"),
        ({"supervised": 0.0}, "nothing to learn from"),
        ({"estimator": "hard"}, "there are: clipped, identity, soft"),
    ],
)
def test_bad_weights(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        LossWeights(**settings)


def test_a_trace_without_watched_attention_is_told() -> None:
    logits, batch = example()
    with pytest.raises(InvalidInput, match="watches adjacent"):
        total_loss(Trace(logits, logits), batch, Sudoku(2), LossWeights(attention=1))
