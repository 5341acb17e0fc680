"""The kernel for solving many puzzles on a CPU: close to the plain path, for all sizes, and used only where it pays."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mull.hub import find_model
from mull.kernels import fused
from mull.kernels.fused import Fused, supported, worth_from
from mull.kernels.rounded import units_of
from mull.models.recurrent_transformer import ModelConfig, RecurrentTransformer
from mull.pool import results
from mull.predict import predict
from mull.problem import Problem
from mull.problems.sudoku import Sudoku
from mull.processor import has_avx512_products
from mull.runtime import OnnxRuntime, Runtime, load_runtime
from tiny import PROBLEM, STEPS, LookupRuntime, puzzle

pytest.importorskip("numba")
needs_avx512 = pytest.mark.skipif(not has_avx512_products(), reason="needs AVX-512 with VNNI and BF16")

CONFIGS = {
    "best": (3, ModelConfig(width=64, heads=2, feedback=True, inject=True)),
    "paper": (2, ModelConfig(width=32, heads=1)),
    "two blocks": (2, ModelConfig(width=64, heads=4, blocks=2, feedback=True)),
    "small heads": (2, ModelConfig(width=96, heads=16, inject=True)),  # of 6 numbers
    "many values": (5, ModelConfig(width=32, heads=1, feedback=True, inject=True)),  # 25, of 625 variables
}


def model_of(problem: Problem, config: ModelConfig) -> RecurrentTransformer:
    """A model with weights as large as those of trained ones, none of them special."""
    torch.manual_seed(0)
    model = RecurrentTransformer(problem, config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def parameters(model: RecurrentTransformer) -> dict[str, NDArray[Any]]:
    return {name: tensor.numpy() for name, tensor in model.state_dict().items()}


def fused_of(model: RecurrentTransformer, variables: int) -> Fused:
    found = fused.load(asdict(model.config), parameters(model), variables)
    assert found is not None
    return found


def difference(found: NDArray[Any], wanted: NDArray[Any]) -> float:
    """Relative to what differs between the numbers that are wanted."""
    return float(np.sqrt(np.square(found - wanted).mean()) / wanted.std())


@needs_avx512
@pytest.mark.parametrize("name", CONFIGS)
def test_the_kernel_is_close_to_the_plain_path_in_float64(name: str) -> None:
    box, config = CONFIGS[name]
    model = model_of(Sudoku(box), config)
    kernel = fused_of(model, box**4)
    inputs = torch.randint(box**2 + 1, (3, box**4), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        first, context = (tensor.numpy() for tensor in model.start(inputs))
        model.double()
        exact, exact_context = torch.from_numpy(first).double(), torch.from_numpy(context).double()
        after, logits = kernel(first, context if config.inject else None, 1)
        wanted, wanted_logits = (tensor.numpy() for tensor in model.advance(exact, exact_context, 1))
        assert difference(after - first, wanted - first) < 0.03
        assert difference(logits, wanted_logits[-1]) < 0.03
        later = kernel(first, context if config.inject else None, 4)
        wanted, wanted_logits = (tensor.numpy() for tensor in model.advance(exact, exact_context, 4))
        assert difference(later[0], wanted) < 0.06
        assert difference(later[1], wanted_logits[-1]) < 0.06


@needs_avx512
@settings(max_examples=20, deadline=None)
@given(
    variables=st.integers(1, 100),
    shape=st.sampled_from([(32, 1), (32, 16), (64, 4), (96, 3), (96, 2), (160, 5)]),
    box=st.sampled_from([2, 3, 5]),
    blocks=st.integers(1, 2),
    feedback=st.booleans(),
    inject=st.booleans(),
)
def test_any_size(variables: int, shape: tuple[int, int], box: int, blocks: int, feedback: bool, inject: bool) -> None:
    config = ModelConfig(width=shape[0], heads=shape[1], blocks=blocks, feedback=feedback, inject=inject)
    model = model_of(Sudoku(box), config)
    kernel = fused_of(model, variables)
    rng = np.random.default_rng(variables)
    state, context = rng.standard_normal((2, 2, variables, config.width)).astype(np.float32)
    _, logits = kernel(state, context if inject else None, 2)
    with torch.no_grad():
        _, wanted = model.double().advance(torch.from_numpy(state).double(), torch.from_numpy(context).double(), 2)
    assert difference(logits, wanted[-1].numpy()) < 0.06


@needs_avx512
def test_products_in_bytes_are_exact_and_functions_close() -> None:
    from numba import njit

    from mull.kernels.avx512 import tile
    from mull.kernels.cpu_rows import gelu, power
    from mull.kernels.simd import LANES, OPTIONS, load, store

    @njit(**OPTIONS)
    def run(a, b, start, sums, x, found):
        tile(a, 0, 4, b, 0, 0, b.shape[0], start, 0, 0, sums, 0, 0)
        for j in range(0, x.shape[1], LANES):
            store(found, 0, j, gelu(load(x, 0, j)))
            store(found, 1, j, power(load(x, 0, j)))

    rng = np.random.default_rng(0)
    a, w = rng.integers(0, 256, (9, 28), np.uint8), rng.integers(-127, 128, (32, 24), np.int8)
    start, sums = rng.integers(-9999, 9999, (1, 32), np.int32), np.zeros((9, 32), np.float32)
    x = np.linspace(-10, 10, 1 << 16, dtype=np.float32)[None]
    x[0, 0] = -1e6
    found = np.zeros((2, 1 << 16), np.float32)
    run(a, units_of(w), start, sums, x, found)
    assert np.array_equal(sums, start + a[:, 4:].astype(np.int32) @ w.T.astype(np.int32))
    wanted = torch.nn.functional.gelu(torch.from_numpy(x[0]).double()).numpy()
    assert np.abs(found[0] - wanted)[1:].max() < 8e-5 and found[0].min() > -0.17
    assert np.abs(found[1, 1:] / np.exp2(x[0, 1:].astype(np.float64)) - 1).max() < 6e-5 and found[1, 0] == 0


@pytest.fixture(scope="module")
def kernel() -> Fused:
    return fused_of(model_of(Sudoku(2), ModelConfig(width=32, heads=2, feedback=True, inject=True)), 16)


def random_states(count: int, seed: int = 0) -> NDArray[Any]:
    return np.random.default_rng(seed).standard_normal((count, 16, 32)).astype(np.float32)


@needs_avx512
def test_puzzles_do_not_touch_one_another(kernel: Fused) -> None:
    states, context = random_states(4), random_states(4, seed=1)
    before = states.copy()
    together = kernel(states, context, 3)
    assert np.array_equal(states, before)
    for row in range(4):
        for whole, alone in zip(together, kernel(states[row : row + 1], context[row : row + 1], 3), strict=True):
            assert np.array_equal(whole[row], alone[0])
    states[1] = np.nan
    for whole, spoilt in zip(together, kernel(states, context, 3), strict=True):
        assert np.array_equal(whole[[0, 2, 3]], spoilt[[0, 2, 3]]) and np.isnan(spoilt[1]).all()


@needs_avx512
def test_several_recurrences_are_one_after_the_other_on_any_thread(kernel: Fused) -> None:
    states, context = random_states(8), random_states(8, seed=1)
    context.flags.writeable = False  # as arrays that lie in files are
    wanted = kernel(states, context, 3)
    once, _ = kernel(states, context, 1)
    assert all(map(np.array_equal, kernel(once, context, 2), wanted))
    with ThreadPoolExecutor(2) as pool:
        for found in pool.map(lambda _: kernel(states[:, :, :].copy(order="F"), context, 3), range(4)):
            assert all(map(np.array_equal, found, wanted))


@needs_avx512
@settings(max_examples=20, deadline=None)
@given(st.floats(1e-6, 1e6), st.integers(0, 100), st.integers(0, 5))
def test_states_of_any_size(kernel: Fused, scale: float, seed: int, count: int) -> None:
    """Layer norms take the size out of a state, so what is added to it and the logits do not grow."""
    states, context = np.float32(scale) * random_states(count, seed), random_states(count, seed + 1)
    after, logits = kernel(states, context, 1)
    assert after.shape == states.shape and logits.shape == (count, 16, 4)
    assert np.isfinite(logits).all() and np.abs(after - states).max(initial=0) < 100 * max(1, scale / 1e6)


@needs_avx512
def test_numbers_that_are_all_alike(kernel: Fused) -> None:
    nothing = np.zeros((1, 16, 32), np.float32)
    assert all(np.isfinite(found).all() for found in kernel(nothing, nothing, 2))


def test_sizes_that_are_supported() -> None:
    config = ModelConfig(width=32, heads=2, feedback=True)
    tensors = parameters(model_of(PROBLEM, config))
    assert supported(asdict(config), tensors)
    for change in ({"width": 48}, {"width": 64}, {"heads": 3}, {"heads": 32}, {"blocks": 2}):
        assert not supported({**asdict(config), **change}, tensors)
    assert not supported({}, tensors)
    for name in ("output.weight", "feedback.weight", "blocks.0.qkv.bias"):
        assert not supported(asdict(config), {key: value for key, value in tensors.items() if key != name})
        assert not supported(asdict(config), {**tensors, name: tensors[name].astype(np.float64)})


def test_where_and_when_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    config = ModelConfig(width=64, heads=2)
    found = asdict(config), parameters(model_of(PROBLEM, config)), PROBLEM.variables().count
    monkeypatch.setattr(fused, "has_avx512_products", lambda: True)
    monkeypatch.setattr(fused, "_compiled", lambda: True)
    assert worth_from(*found) == math.ceil(fused.WORTH / (12 * 64**2 * 16))
    monkeypatch.setattr(fused, "_compiled", lambda: False)
    assert worth_from(*found) == math.ceil(fused.WORTH_COMPILING / (12 * 64**2 * 16))
    monkeypatch.setenv("MULL_KERNELS", "0")
    assert worth_from(*found) is None
    monkeypatch.delenv("MULL_KERNELS")
    monkeypatch.setattr(fused, "find_spec", lambda _: None)
    assert worth_from(*found) is None
    monkeypatch.undo()
    monkeypatch.setattr(fused, "has_avx512_products", lambda: False)
    assert worth_from(*found) is None


def shipped(kernels: bool = True) -> OnnxRuntime:
    runtime = load_runtime(find_model("sudoku-4x4"), precision="int8", kernels=kernels)
    assert isinstance(runtime, OnnxRuntime)
    return runtime


@needs_avx512
def test_a_runtime_for_many() -> None:
    runtime, inputs = shipped(), np.stack([Sudoku(2).generate(np.random.default_rng(0)).inputs for _ in range(8)])
    runtime.workers = 1
    many = runtime.for_many()
    assert many is not runtime and many.many() is None and many.for_many() is many
    assert (many.precision, many.batch, many.workers) == ("int8", runtime.batch, 1)
    (_, wanted), (state, found) = (each.step(each.start(inputs), 4) for each in (runtime, many))
    assert len(state.tensors) == 2 and difference(found, wanted) < 0.06
    assert shipped(kernels=False).many() is None
    assert load_runtime(find_model("sudoku-4x4"), precision="fp32").many() is None


@needs_avx512
def test_without_a_working_compiler_onnxruntime_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CPU_NAME", "generic")
    monkeypatch.setattr(fused, "check_compiler", broken)
    runtime = shipped()
    with pytest.warns(UserWarning, match="no compiler"):
        many = runtime.for_many()
    inputs = np.zeros((1, 16), np.int64)
    assert np.array_equal(many.step(many.start(inputs))[1], runtime.step(runtime.start(inputs))[1])
    assert many.many() is None and runtime.many() is None  # nobody tries again


def broken() -> None:
    raise RuntimeError("no compiler")


class Patient(LookupRuntime):
    """Worth replacing from some recurrences on."""

    def __init__(self, worth: int) -> None:
        super().__init__(batch=2, workers=1)
        self.worth, self.other = worth, LookupRuntime(batch=2, workers=1)

    def many(self) -> int | None:
        return self.worth

    def for_many(self) -> Runtime:
        return self.other


@pytest.mark.parametrize(
    ("total", "worth", "shares"),
    [(None, 4 * 8, (4, 6)), (None, 80, (10, 0)), (None, 81, (10, 0)), (10, 80, (0, 10)), (10, 81, (10, 0))],
)
def test_the_other_takes_over_when_it_pays(total: int | None, worth: int, shares: tuple[int, int]) -> None:
    runtime = Patient(worth)
    inputs = [PROBLEM.parse(puzzle(1)).inputs] * 10
    found = list(results(runtime, STEPS, PROBLEM.check, iter(inputs), total))
    assert len(found) == 10 and all(each.verified for each in found)
    assert (sum(runtime.sizes), sum(runtime.other.sizes)) == shares


@pytest.mark.parametrize(("worth", "other"), [(20, True), (21, False)])
def test_predictions_of_many(worth: int, other: bool) -> None:
    runtime = Patient(worth)
    predict(runtime, np.stack([PROBLEM.parse(puzzle(1)).inputs] * 10), [1, 2], 5)
    assert bool(runtime.other.sizes) is other and bool(runtime.sizes) is not other
