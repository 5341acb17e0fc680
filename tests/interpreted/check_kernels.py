"""The fused kernels in Triton's interpreter, against the plain path. Run by `tests/test_kernels.py`, not collected."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from mull.kernels import configs, function, supported
from mull.kernels.fold import fold_model
from mull.kernels.launch import Plan
from mull.models.recurrent_transformer import ModelConfig, RecurrentTransformer
from mull.problem import Tokens

assert os.environ.get("TRITON_INTERPRET") == "1", "Triton reads it when it is imported"


class Sizes:
    """As much of a problem as a model needs."""

    def __init__(self, variables: int, values: int) -> None:
        self.count, self.values = variables, values

    def variables(self) -> Any:
        return SimpleNamespace(count=self.count, values=self.values)

    def input_kind(self) -> Tokens:
        return Tokens(self.values + 1)


def build(
    variables: int, values: int, config: ModelConfig, puzzles: int
) -> tuple[RecurrentTransformer, Tensor, Tensor]:
    """A model whose weights are far from their initial values, a state and a context."""
    torch.manual_seed(0)
    model = RecurrentTransformer(Sizes(variables, values), config)  # type: ignore[arg-type]
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    state, context = (torch.randn(puzzles, variables, config.width, requires_grad=True) for _ in range(2))
    return model, state, context


def plan_for(model: RecurrentTransformer, state: Tensor, steps: int, **changes: Any) -> Plan:
    config = model.config
    sizes = (*state.shape, model.output.out_features, config.heads, config.blocks, steps)
    return replace(Plan(*sizes, config.feedback, config.inject, 0.0, torch.float32), **changes)


def run(
    model: RecurrentTransformer, plan: Plan, state: Tensor, context: Tensor, every: bool = True,
    watch: Tensor | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Logits, last state and, with `watch`, what is watched."""
    feedback = None if model.feedback is None else model.feedback.weight
    weights = fold_model(model.blocks, model.norm_out, model.output.weight, feedback, plan.inject)
    found = function.run(plan, weights, state, context if plan.inject else None, every, watch)
    assert (found[2] is None) == (watch is None)
    return tuple(tensor for tensor in found if tensor is not None)


def plainly(
    model: RecurrentTransformer, state: Tensor, context: Tensor, steps: int, watch: Tensor | None = None
) -> tuple[Tensor, ...]:
    outputs, maps = [], []
    for _ in range(steps):
        state, logits, seen = model._recur(state, context, watch_VV=watch)
        outputs.append(logits)
        maps += [] if seen is None else [seen]
    return torch.stack(outputs), state, *([torch.stack(maps)] if maps else [])


def gradients(model: RecurrentTransformer, found: tuple[Tensor, ...], *inputs: Tensor) -> dict[str, Tensor]:
    """Of a random linear function of what was found."""
    generator = torch.Generator().manual_seed(1)
    total = sum((tensor * torch.randn(tensor.shape, generator=generator).to(tensor)).sum() for tensor in found)
    named = dict(model.named_parameters()) | {f"input {index}": tensor for index, tensor in enumerate(inputs)}
    found_gradients = torch.autograd.grad(total, list(named.values()), allow_unused=True)  # type: ignore[arg-type]
    return {
        n: torch.zeros_like(t) if g is None else g for (n, t), g in zip(named.items(), found_gradients, strict=True)
    }


def compare(found: Tensor, wanted: Tensor, tolerance: float, name: str = "") -> None:
    error = (found.double() - wanted.double()).norm() / wanted.double().norm().clamp(min=1e-6)
    assert error < tolerance, f"{name} is off by {error:.1e}"


@contextmanager
def operands_of(bytes_: int, kept: int) -> Iterator[None]:
    before = function.OPERAND_BYTES, function.QKV_BYTES
    function.OPERAND_BYTES, function.QKV_BYTES = bytes_, kept
    try:
        yield
    finally:
        function.OPERAND_BYTES, function.QKV_BYTES = before


OPTIONS = [{}, {"feedback": True}, {"inject": True}, {"feedback": True, "inject": True}]
SIZES = [
    (16, 9, 16, 1, 2, 2, OPTIONS[2]),
    (7, 25, 64, 1, 2, 2, OPTIONS[3]),
]
MORE_SIZES = [
    (5, 4, 32, 2, 2, 2, OPTIONS[0]),
    (5, 4, 16, 4, 3, 3, OPTIONS[1]),
    (81, 9, 64, 4, 1, 2, OPTIONS[3]),
    (81, 16, 128, 4, 1, 1, OPTIONS[3]),
    (150, 4, 16, 1, 1, 2, OPTIONS[0]),  # keys in several blocks
    (256, 16, 32, 2, 1, 1, OPTIONS[3]),  # 16x16 boards
    (408, 2, 16, 1, 1, 1, OPTIONS[2]),  # paths in a grid of side 12
    (5, 4, 256, 8, 1, 1, OPTIONS[3]),
]


@pytest.mark.parametrize(
    ("variables", "values", "width", "heads", "puzzles", "steps", "options"),
    [*SIZES, *(pytest.param(*size, marks=pytest.mark.slow) for size in MORE_SIZES)],
)
def test_values_and_gradients_are_those_of_the_plain_path(
    variables: int, values: int, width: int, heads: int, puzzles: int, steps: int, options: dict[str, bool]
) -> None:
    config = ModelConfig(heads=heads, width=width, dropout=0.0, **options)  # type: ignore[arg-type]
    model, state, context = build(variables, values, config, puzzles)
    assert supported(width, heads, puzzles, variables) or width > 128  # right, but no faster than the compiled path
    found = run(model, plan_for(model, state, steps), state, context)
    twin, exact = build(variables, values, config, puzzles)[0].double(), [t.detach().double() for t in (state, context)]
    wanted = plainly(twin, *(tensor.requires_grad_() for tensor in exact), steps)
    for ours, theirs in zip(found, wanted, strict=True):
        compare(ours, theirs, 1e-5)
    theirs_by_name = gradients(twin, wanted, *exact)
    for name, gradient in gradients(model, found, state, context).items():
        compare(gradient, theirs_by_name[name], 1e-4, name)


@pytest.mark.parametrize(
    ("blocks", "torch_products", "groups"), [(1, False, (1, 3)), pytest.param(2, True, (2,), marks=pytest.mark.slow)]
)
def test_gradients_with_little_memory(blocks: int, torch_products: bool, groups: tuple[int, ...]) -> None:
    config = ModelConfig(blocks=blocks, heads=2, width=16, dropout=0.0, feedback=True, inject=True)
    model, state, context = build(5, 4, config, 1)
    wanted = gradients(model, plainly(model, state, context, 4), state, context)
    plan = plan_for(model, state, 4, torch_products=torch_products)
    for group in groups:
        with operands_of(group * 15 * 16 * 5 * blocks * 4, kept=1 << 30 if group > 1 else 0):
            for name, gradient in gradients(model, run(model, plan, state, context), state, context).items():
                compare(gradient, wanted[name], 1e-4, name)


def test_half_precision_is_close() -> None:
    """The interpreter has no bfloat16, and float16 takes the same way through the kernels."""
    model, state, context = build(9, 9, ModelConfig(heads=2, width=32, dropout=0.0, feedback=True, inject=True), 2)
    plan = plan_for(model, state, 2, dtype=torch.float16, state_dtype=torch.float16)
    found = run(model, plan, state, context)
    wanted = plainly(model, state, context, 2)
    theirs = gradients(model, wanted, state, context)
    compare(found[0], wanted[0], 1e-2)
    for name, gradient in gradients(model, found, state, context).items():
        compare(gradient, theirs[name], 1e-2, name)


def test_states_beyond_the_range_of_half_precision_do_no_harm() -> None:
    model, state, context = build(9, 9, ModelConfig(heads=2, width=32, dropout=0.0, feedback=True, inject=True), 2)
    plan = plan_for(model, state, 2, dtype=torch.float16, state_dtype=torch.float16)
    far = (state.detach() * 1e6).requires_grad_()
    logits, last = found = run(model, plan, far, context)
    assert far.abs().max() > 65504 and logits.isfinite().all() and last.isfinite().all()
    for name, gradient in gradients(model, found, far, context).items():
        assert gradient.isfinite().all(), name


def test_inference_keeps_the_last_logits_or_all() -> None:
    model, state, context = build(9, 4, ModelConfig(blocks=2, heads=2, width=32, dropout=0.0, feedback=True), 2)
    logits, last = plainly(model, state, context, 3)
    with torch.no_grad():
        every, after = run(model, plan_for(model, state, 3), state, context)
        only, _ = run(model, plan_for(model, state, 3), state, context, every=False)
    compare(every, logits, 1e-5)
    compare(only, logits[-1:], 1e-5)
    compare(after, last, 1e-5)


def test_recurrences_go_on_from_a_state() -> None:
    model, state, context = build(9, 4, ModelConfig(heads=2, width=16, dropout=0.0, feedback=True, inject=True), 2)
    whole, end = run(model, plan_for(model, state, 3), state, context)
    first, middle = run(model, plan_for(model, state, 1), state, context)
    rest, last = run(model, plan_for(model, state, 2), middle, context)
    compare(torch.cat([first, rest]), whole, 1e-6)
    compare(last, end, 1e-6)


DROP = ModelConfig(heads=2, width=16, dropout=0.3, feedback=True)


def test_dropout_has_the_same_masks_in_both_directions() -> None:
    model, state, context = build(20, 4, DROP, 2)
    plan, direction = plan_for(model, state, 2, dropout=0.3), torch.randn(state.shape)

    def total(shifted: Tensor) -> Tensor:
        torch.manual_seed(5)
        logits, last = run(model, plan, shifted, context)
        return (logits.double() ** 2).sum() + last.double().sum()

    slope = (torch.autograd.grad(total(state), state)[0] * direction).sum().item()
    with torch.no_grad():
        ahead, behind = (total(state + step * direction).item() for step in (1e-3, -1e-3))
    assert slope == pytest.approx((ahead - behind) / 2e-3, rel=1e-3)


@pytest.mark.slow
def test_dropout_does_not_depend_on_tiles_and_changes_with_the_seed() -> None:
    model, state, context = build(20, 4, DROP, 2)
    plan = plan_for(model, state, 2, dropout=0.3)

    def once(seed: int) -> dict[str, Tensor]:
        torch.manual_seed(seed)
        found = run(model, plan, state, context)
        return {"logits": found[0]} | gradients(model, found, state)

    usual = once(1)
    tile, halves = configs.TokenTile(32, 16, 16, 4, 1), configs.TokenTile(16, 32, 16, 4, 1)
    blocks = {
        "token_forward": tile, "token_backward": tile, "attention_forward": configs.AttentionTile(16, 16, 4, 1),
        "attention_backward": configs.AttentionTile(32, 16, 4, 1),
    }  # fmt: skip
    two_tiles = configs.AttentionTile(16, 16, 4, 1, tail=16, whole=True)
    two = {"attention_forward": two_tiles, "attention_backward": two_tiles, "mlp_backward": halves}
    for forced in (blocks, two):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(configs, "FORCED", forced)
            for name, value in once(1).items():
                compare(value, usual[name], 1e-4, name)
    assert (once(2)["logits"] - usual["logits"]).norm() > 0.1 * usual["logits"].norm()


@pytest.mark.slow
def test_dropout_keeps_the_right_share() -> None:
    """Attention over equal values, whose weights sum to 1: the mean of what is mixed is that value."""
    from mull.kernels import launch

    model, state, _ = build(81, 4, ModelConfig(heads=4, width=16), 4)
    plan = plan_for(model, state, 1, dropout=0.1)
    mixed, seed = torch.empty(plan.tokens, 16), torch.tensor([12345])
    qkv = torch.zeros(plan.tokens, 48)
    qkv[:, 32:] = 1.0
    rows = []
    for step in range(2):
        launch.attention_forward(plan, qkv, mixed, None, seed, step)
        shares_NK = mixed.view(-1, 4, 4)[..., 0] * 0.9  # the kept share of 81 keys, by token and head
        assert shares_NK.mean().item() == pytest.approx(0.9, abs=0.004)
        assert shares_NK.std().item() == pytest.approx((0.1 * 0.9 / 81) ** 0.5, rel=0.1)
        rows.append(shares_NK)
    assert abs(torch.corrcoef(torch.stack([row.flatten() for row in rows]))[0, 1]) < 0.1
    assert abs(torch.corrcoef(rows[0].t())[0, 1:]).max() < 0.2
