"""The kernels for training on CPUs do what the plain path does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor

from mull import kernels
from mull.kernels import cpu_gelu, cpu_gradients, cpu_memory, cpu_threads
from mull.kernels.simd import LANES, jit, random_keep, store
from mull.losses import supervised
from mull.models.recurrent_transformer import ModelConfig, RecurrentTransformer
from mull.problem import Batch, Hints
from mull.problems.nonogram import Nonogram
from mull.problems.sudoku import Sudoku

STEPS = 3


def model_of(box: int, config: ModelConfig) -> RecurrentTransformer:
    """A model none of whose weights is special: biases and norms have noise too."""
    torch.manual_seed(0)
    model = RecurrentTransformer(Sudoku(box=box), config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def wanted(logits: Tensor) -> Tensor:
    """What to multiply logits with, so that a sum has gradients of all sizes."""
    return (torch.arange(logits.numel()) * 37 % 101 / 101).to(logits.dtype).view_as(logits)


def outcome(model: RecurrentTransformer, box: int, bf16: bool = False, seed: int = 1, puzzles: int = 5) -> list[Tensor]:
    """Logits, the last state, and the gradients of all parameters for some weighted sum of both."""
    inputs = torch.randint(box**2 + 1, (puzzles, box**4), generator=torch.Generator().manual_seed(2))
    model.zero_grad()
    torch.manual_seed(seed)
    with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
        trace = model(inputs, STEPS)
    weights = wanted(trace.logits_SLBVD)
    ((trace.logits_SLBVD * weights).mean() + 0.01 * trace.state_BVH.square().mean()).backward()
    found = [parameter.grad for parameter in model.parameters()]
    return [t.detach().double().clone() for t in (trace.logits_SLBVD, trace.state_BVH, *found) if t is not None]


@contextmanager
def two_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Here the kernels use two threads, however little there is to do."""
    monkeypatch.setattr(cpu_threads, "LEAST_TOKENS", 1)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert len(cpu_threads.shares_of(5, 1)) == 2
        yield
    finally:
        torch.set_num_threads(before)


def outcome_of_two_threads(model: RecurrentTransformer, box: int, monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """The same, with two and three puzzles for a thread."""
    with two_threads(monkeypatch):
        return outcome(model, box)


def error(found: list[Tensor], wanted: list[Tensor]) -> float:
    """The largest difference, relative to the size of what is wanted."""
    assert [t.shape for t in found] == [t.shape for t in wanted]
    return max(float((a - b).norm() / b.norm()) for a, b in zip(found, wanted, strict=True))


CONFIGS = {
    "best": (2, ModelConfig(width=32, heads=2, dropout=0.0, feedback=True, inject=True)),
    "paper": (3, ModelConfig(width=32, heads=1, dropout=0.0)),
    "two blocks": (2, ModelConfig(width=32, heads=2, blocks=2, dropout=0.0, feedback=True)),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_values_and_gradients_are_those_of_the_plain_path_in_float64(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    box, config = CONFIGS[name]
    model = model_of(box, config)
    found = outcome(model, box)
    shared = outcome_of_two_threads(model, box, monkeypatch)
    monkeypatch.setenv("MULL_KERNELS", "0")
    plain, exact = outcome(model, box), outcome(model.double(), box)
    assert not torch.equal(found[0], plain[0])  # so they were used
    assert error(found, exact) < 1e-5
    assert error(shared, exact) < 1e-5
    assert error(plain, exact) < 1e-5


@pytest.mark.parametrize("name", ["best", "two blocks"])
def test_first_states_by_a_table_are_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    box, config = CONFIGS[name]
    model = model_of(box, config)
    with two_threads(monkeypatch), monkeypatch.context() as patch:
        patch.setattr(model, "start", None)  # so it is not used
        found = outcome(model, box, puzzles=11)
    monkeypatch.setenv("MULL_KERNELS", "0")
    assert error(found, outcome(model.double(), box, puzzles=11)) < 1e-5


@pytest.mark.filterwarnings("error")
def test_hints_have_no_table_and_keep_the_kernels() -> None:
    problem = Nonogram(3)
    model = RecurrentTransformer(problem, ModelConfig(width=16, heads=1, dropout=0.0))
    kind = problem.input_kind()
    assert isinstance(kind, Hints)
    size = (2 * kind.width * (kind.largest + 1), problem.variables().count, kind.width)
    inputs = torch.randint(kind.largest + 1, size, generator=torch.Generator().manual_seed(0))
    found = model(inputs, 2)
    assert found.fused_on_cpu and model.kernels
    model.kernels = False
    torch.testing.assert_close(found.logits_SLBVD, model(inputs, 2).logits_SLBVD, rtol=1e-4, atol=1e-5)


def test_cross_entropy_and_its_gradient_are_those_of_the_plain_path(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    logits = (4 * torch.randn(2, 1, 5, 7, 3)).requires_grad_()
    solution, labelled = torch.randint(3, (5, 7)), torch.rand(5, 7) < 0.7
    batch = Batch(solution, torch.where(labelled, solution, -1), labelled, labelled)
    with two_threads(monkeypatch):
        losses = [2 * supervised(logits, batch, fused=fused) for fused in (True, False)]
    found, wanted = (torch.autograd.grad(loss, logits)[0] for loss in losses)
    assert losses[0].item() == pytest.approx(losses[1].item(), rel=1e-6)
    assert torch.allclose(found, wanted, atol=1e-7)


def test_gelu_for_bfloat16_is_exact_enough() -> None:
    x = torch.linspace(-20, 20, 1 << 14, dtype=torch.float64, requires_grad=True)
    exact = torch.nn.functional.gelu(x)
    (slope,) = torch.autograd.grad(exact.sum(), x)
    found = [np.empty((64, 256), np.float32) for _ in range(2)]
    given = x.detach().float().view(64, 256).numpy()
    cpu_gelu.gelu_for_bf16(given, np.zeros((1, 256), np.float32), *found)
    for mine, right in zip(found, (exact, slope), strict=True):
        assert np.abs(mine - right.detach().view(64, 256).numpy()).max() < 3e-5


@pytest.mark.skipif(not cpu_gradients.usable(), reason="needs AVX-512 with products of bfloat16 numbers")
@pytest.mark.parametrize(("tokens", "rows", "columns"), [(1, 32, 32), (77, 64, 32), (2000, 96, 160)])
def test_gradients_of_matrices_are_sums_over_tokens(tokens: int, rows: int, columns: int) -> None:
    rng = torch.Generator().manual_seed(tokens)
    left, right = (torch.randn(tokens, n, generator=rng).bfloat16() for n in (rows, columns))
    before = torch.randn(rows, columns, generator=rng)
    found = before.clone()
    units = cpu_gradients.make_units(rows, columns)
    cpu_gradients.add_products(cpu_memory.array(left), cpu_memory.array(right), found.numpy(), *units)
    expected = before.double() + left.double().t() @ right.double()
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-4)
    assert cpu_gradients.fits(rows, columns) and not cpu_gradients.fits(rows, columns + 16)


def test_torch_leaves_its_threads_to_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    with two_threads(monkeypatch):
        with cpu_threads.kernels_alone():
            assert torch.get_num_threads() == 1
            assert len(cpu_threads.shares_of(5, 1)) == 2
        assert torch.get_num_threads() == 2


def test_an_error_in_any_thread_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(number: int, who: int) -> None:
        if number == who:
            raise ValueError(f"{number}")

    with two_threads(monkeypatch):
        for who in range(2):
            with pytest.raises(ValueError, match=str(who)):
                cpu_threads.everybody(partial(fail, who=who), 2)
        assert torch.get_num_threads() == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGS)
def test_bfloat16_is_as_close_as_the_plain_path(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    box, config = CONFIGS[name]
    model = model_of(box, config)
    found = outcome(model, box, bf16=True)
    monkeypatch.setenv("MULL_KERNELS", "0")
    plain, exact = outcome(model, box, bf16=True), outcome(model.double(), box)
    assert error(found, exact) < 1.2 * error(plain, exact) < 0.1


def test_dropout_has_the_right_gradient_and_does_not_depend_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(2, ModelConfig(width=32, heads=2, dropout=0.2, feedback=True, inject=True))
    first, again, other = (outcome(model, 2, seed=seed) for seed in (1, 1, 3))
    shared = outcome_of_two_threads(model, 2, monkeypatch)
    assert error(again, first) == 0
    assert error(shared, first) < 1e-5
    assert error(other, first) > 0.1
    direction = [torch.randn_like(parameter) for parameter in model.parameters()]
    outcome(model, 2)  # gradients of seed 1
    expected = sum(float((d * p.grad).sum()) for d, p in zip(direction, model.parameters(), strict=True))
    values = []
    for step in (1e-3, -1e-3):
        with torch.no_grad():
            for parameter, way in zip(model.parameters(), direction, strict=True):
                parameter.add_(step * way)
        logits, state = outcome(model, 2)[:2]
        weights = wanted(logits)
        values.append(float((logits * weights).mean() + 0.01 * state.square().mean()))
        with torch.no_grad():
            for parameter, way in zip(model.parameters(), direction, strict=True):
                parameter.sub_(step * way)
    assert (values[0] - values[1]) / 2e-3 == pytest.approx(expected, rel=0.01)


@jit
def _draw(seed, threshold, scale, out):
    for at in range(0, out.shape[1], LANES):
        store(out, 0, at, random_keep(seed, np.uint32(at), threshold, scale))


def test_dropout_keeps_the_right_share_and_the_mean() -> None:
    out = np.empty((1, 1 << 16), np.float32)
    for seed in (0, 1, 12345):
        _draw(np.uint32(seed), np.uint32(0.3 * 2**32), np.float32(1 / 0.7), out)
        assert set(np.unique(out)) == {np.float32(0), np.float32(1 / 0.7)}
        assert out.mean() == pytest.approx(1, abs=0.01)
        kept = out[0] > 0
        assert np.mean(kept[1:] == kept[:-1]) == pytest.approx(0.58, abs=0.01)  # neighbours are independent


def test_they_run_only_where_they_can(monkeypatch: pytest.MonkeyPatch) -> None:
    state = torch.zeros(1, 16, 64)
    assert kernels.usable_on_cpu(64, 4, 4, state)
    assert not kernels.usable_on_cpu(64, 8, 4, state)  # heads of 8 numbers
    assert not kernels.usable_on_cpu(64, 4, 100, state)
    assert not kernels.usable_on_cpu(64, 4, 4, state.double())
    with torch.no_grad():
        assert not kernels.usable_on_cpu(64, 4, 4, state)
    monkeypatch.setenv("MULL_KERNELS", "0")
    assert not kernels.usable_on_cpu(64, 4, 4, state)


def test_without_a_working_compiler_the_plain_path_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    box, config = CONFIGS["best"]
    model = model_of(box, config)

    def broken(*_: object) -> None:
        raise RuntimeError("no compiler")

    monkeypatch.setattr(RecurrentTransformer, "_run_on_cpu", broken)
    with pytest.warns(UserWarning, match="no compiler"):
        found = outcome(model, box)
    monkeypatch.setenv("MULL_KERNELS", "0")
    assert error(found, outcome(model, box)) == 0
