"""The attention that watched variables get, by the kernels and by the plain path; run as `check_kernels.py` is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from check_kernels import build, compare, gradients, operands_of, plainly, plan_for, run
from torch import Tensor

from mull import kernels
from mull.kernels import configs
from mull.kernels.configs import AttentionTile
from mull.losses import LossWeights
from mull.models.recurrent_transformer import ModelConfig, RecurrentTransformer
from mull.problem import Batch, NumpyBatch
from mull.problems.sudoku import Sudoku
from mull.recipes import get_recipe
from mull.trainer import Trainer

ONE: dict[str, AttentionTile] = {}
TWO = dict.fromkeys(("attention_forward", "attention_backward"), AttentionTile(16, 16, 4, 1, tail=16, whole=True))
BLOCKS = {"attention_forward": AttentionTile(16, 16, 4, 1), "attention_backward": AttentionTile(32, 16, 4, 1)}


def watching(variables: int) -> Tensor:
    """Some of all variables for each, and always itself; not symmetric, so that rows and columns cannot be confused."""
    chosen = torch.rand(variables, variables, generator=torch.Generator().manual_seed(3)) < 0.3
    return (chosen | torch.eye(variables, dtype=torch.bool)).float()


@pytest.fixture
def tiles(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configs, "FORCED", request.param)


SIZES = [
    (16, 4, 16, 1, 2, ONE, {"feedback": True, "inject": True}),
    (20, 4, 16, 2, 2, TWO, {}),
    (20, 4, 16, 2, 1, BLOCKS, {}),
]
MORE_SIZES = [
    (5, 4, 32, 2, 2, ONE, {"feedback": True}),
    (81, 9, 32, 4, 1, ONE, {}),  # two tiles
    (100, 4, 16, 1, 1, ONE, {}),
    (256, 4, 16, 1, 1, ONE, {"inject": True}),  # in the forward pass keys in blocks
    (150, 4, 128, 2, 1, ONE, {}),  # in both
]


@pytest.mark.parametrize(
    ("variables", "values", "width", "heads", "blocks", "tiles", "options"),
    [*SIZES, *(pytest.param(*size, marks=pytest.mark.slow) for size in MORE_SIZES)],
    indirect=["tiles"],
)
@pytest.mark.usefixtures("tiles")
def test_values_and_gradients_are_those_of_the_plain_path(
    variables: int, values: int, width: int, heads: int, blocks: int, options: dict[str, Any]
) -> None:
    config = ModelConfig(blocks=blocks, heads=heads, width=width, dropout=0.0, **options)
    model, state, context = build(variables, values, config, 2)
    watch, exact = watching(variables), [tensor.detach().double().requires_grad_() for tensor in (state, context)]
    twin = build(variables, values, config, 2)[0].double()
    found = run(model, plan_for(model, state, 2), state, context, watch=watch)
    wanted = plainly(twin, exact[0], exact[1], 2, watch.double())
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.shape == theirs.shape
        compare(ours, theirs, 1e-5)
    theirs_by_name = gradients(twin, (*wanted[:2], 100 * wanted[2]), *exact)  # so that it counts as much as the others
    for name, gradient in gradients(model, (*found[:2], 100 * found[2]), state, context).items():
        compare(gradient, theirs_by_name[name], 1e-4, name)


def test_nothing_else_changes_and_no_gradient_is_needed() -> None:
    model, state, context = build(9, 4, ModelConfig(heads=2, width=16, dropout=0.0), 2)
    plan, watch = plan_for(model, state, 2), watching(9)
    logits, last, watched = run(model, plan, state, context, watch=watch)
    with torch.no_grad():
        for found in (run(model, plan, state, context), run(model, plan, state, context, watch=watch)):
            for ours, theirs in zip(found, (logits, last, watched), strict=False):
                torch.testing.assert_close(ours, theirs, rtol=0, atol=0)
        (only, _, same) = run(model, plan, state, context, False, watch)
    torch.testing.assert_close(only, logits[-1:], rtol=0, atol=0)
    torch.testing.assert_close(same, watched, rtol=0, atol=0)
    with operands_of(0, 0):  # queries, keys and values are computed again
        little = gradients(model, run(model, plan, state, context, watch=watch), state)
    for name, gradient in gradients(model, (logits, last, watched), state).items():
        compare(little[name], gradient, 1e-5, name)


ALL_TILES = [ONE, *(pytest.param(tiles, marks=pytest.mark.slow) for tiles in (TWO, BLOCKS))]


@pytest.mark.parametrize("tiles", ALL_TILES, indirect=True)
@pytest.mark.usefixtures("tiles")
def test_what_is_watched_comes_before_dropout() -> None:
    """In the first recurrence, dropout changes neither what is watched nor its gradient."""
    model, state, context = build(20, 4, ModelConfig(heads=2, width=16, dropout=0.3), 2)
    watch = watching(20)
    with_drop, without = (
        run(model, plan_for(model, state, 1, dropout=dropout), state, context, watch=watch) for dropout in (0.3, 0.0)
    )
    compare(with_drop[2], without[2], 1e-6)
    assert (with_drop[0] - without[0]).norm() > 0.1 * without[0].norm()
    wanted = gradients(model, without[2:], state)
    for name, gradient in gradients(model, with_drop[2:], state).items():
        compare(gradient, wanted[name], 1e-5, name)


@pytest.mark.parametrize("tiles", ALL_TILES, indirect=True)
@pytest.mark.usefixtures("tiles")
def test_gradients_with_dropout_are_slopes() -> None:
    """The masks are the same in both directions, and in later recurrences they change what is watched."""
    model, state, context = build(20, 4, ModelConfig(heads=2, width=16, dropout=0.3, feedback=True), 2)
    plan, direction, watch = plan_for(model, state, 2, dropout=0.3), torch.randn(state.shape), watching(20)

    def total(shifted: Tensor) -> Tensor:
        torch.manual_seed(5)
        logits, last, watched = run(model, plan, shifted, context, watch=watch)
        return (logits.double() ** 2).sum() + last.double().sum() + 30 * (watched.double() - 1).square().sum()

    slope = (torch.autograd.grad(total(state), state)[0] * direction).sum().item()
    with torch.no_grad():
        ahead, behind = (total(state + step * direction).item() for step in (1e-3, -1e-3))
    assert slope == pytest.approx((ahead - behind) / 2e-3, rel=1e-3)


def test_the_model_gets_from_kernels_what_it_gets_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """Through `RecurrentTransformer.forward`, in the only 16-bit type that the interpreter knows."""
    torch.manual_seed(0)
    model = RecurrentTransformer(Sudoku(2), ModelConfig(blocks=2, heads=2, width=16, dropout=0.0))
    tokens, watch = torch.randint(0, 5, (2, 16)), torch.from_numpy(Sudoku(2).adjacency()).float()
    plain = model(tokens, 2, watch_VV=watch)
    monkeypatch.setattr(kernels, "usable", lambda *_: True)
    monkeypatch.setattr(torch, "bfloat16", torch.float16)
    fused, whole = model(tokens, 2, watch_VV=watch), model(tokens, 2, attention=True)
    assert plain.watched_SLBNV is not None and fused.watched_SLBNV is not None
    assert fused.watched_SLBNV.shape == plain.watched_SLBNV.shape == (2, 2, 2, 2, 16)
    assert fused.attention_SLBNVV is None and whole.watched_SLBNV is None and whole.attention_SLBNVV is not None
    compare(fused.watched_SLBNV, plain.watched_SLBNV, 1e-3)
    compare(fused.logits_SLBVD, plain.logits_SLBVD, 1e-2)
    assert model(tokens, 2).watched_SLBNV is None


@pytest.mark.slow
def test_a_training_with_the_attention_loss_goes_as_it_does_without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    base = get_recipe("sudoku-4x4")
    training = replace(base.training, batch=4, recurrences=2, warmup=1, updates=4, bf16=False)
    model = replace(base.model, width=16, heads=2, dropout=0.0)
    loss = LossWeights(attention=1, estimator="soft")
    recipe = replace(base, model=model, training=training, loss=loss)
    solution = torch.arange(16).reshape(1, 16).numpy() % 4
    given = solution < 2
    data: NumpyBatch = Batch((given * (solution + 1)).astype("uint8"), solution, given, ~given)
    curves = []
    for fused in (False, True):
        trainer, found = Trainer(recipe, data, torch.device("cpu")), list[float]()
        with monkeypatch.context() as patch:
            patch.setattr(kernels, "usable", lambda *_, fused=fused: fused)
            patch.setattr(torch, "bfloat16", torch.float16)
            for _ in range(3):
                trainer.update()
                found += trainer.read_metrics().values()
        curves.append(found)
    assert curves[1] != curves[0]
    assert curves[1] == pytest.approx(curves[0], rel=5e-3)
