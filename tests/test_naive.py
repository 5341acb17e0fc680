"""The yardstick of the speed benchmarks computes what our model computes."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
import torch

from mull.export import random_inputs
from mull.losses import supervised
from mull.models.recurrent_transformer import ModelConfig, RecurrentTransformer
from mull.problem import Batch
from mull.problems.sudoku import Sudoku

CONFIGS = [ModelConfig(width=32), ModelConfig(width=32, blocks=2, feedback=True, inject=True)]


@pytest.fixture
def naive(root: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(root / "benchmarks" / "speed"))
    import naive

    return naive


@pytest.mark.parametrize("config", CONFIGS, ids=["paper", "best"])
def test_logits_are_ours(naive: ModuleType, config: ModelConfig) -> None:
    torch.manual_seed(0)
    ours = RecurrentTransformer(Sudoku(2), config).eval()
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    plain = naive.from_ours(ours, Sudoku(2)).double()
    ours = ours.double()
    inputs = random_inputs(Sudoku(2), 3)
    with torch.no_grad():
        logits, attentions = plain(inputs, 5)
        trace = ours(inputs, 5, attention=True)
    assert trace.attention_SLBNVV is not None
    torch.testing.assert_close(torch.stack(logits), trace.logits_SLBVD.flatten(0, 1))
    torch.testing.assert_close(torch.stack(attentions), trace.attention_SLBNVV.flatten(0, 1))
    torch.testing.assert_close(naive.answer(plain, inputs, 5), trace.logits_SLBVD[-1, -1].argmax(-1))


def test_it_trains_on_the_same_loss(naive: ModuleType) -> None:
    torch.manual_seed(0)
    problem, inputs = Sudoku(2), random_inputs(Sudoku(2), 8)
    solution = torch.randint(4, (8, 16))
    model = naive.make(problem, ModelConfig(width=32, dropout=0.0))
    logits, _ = model(inputs, 3)
    labelled = torch.ones_like(solution, dtype=torch.bool)
    wanted = supervised(torch.stack(logits)[:, None], Batch(inputs, solution, ~labelled, labelled))
    optimise = naive.optimiser(model, 1e-3)
    losses = [naive.train_step(model, optimise, inputs, solution, 3) for _ in range(20)]
    assert losses[0] == pytest.approx(wanted.item(), rel=1e-5)
    assert losses[-1] < losses[0]
