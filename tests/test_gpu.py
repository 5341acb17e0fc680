"""On a CUDA device: the captured, compiled update does what the plain one on the CPU does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from mull.adaptive import Adaptive
from mull.data.streams import stream
from mull.hub import find_model
from mull.losses import LossWeights
from mull.losses.attention import adjacency
from mull.models.recurrent_transformer import ModelConfig, RecurrentTransformer
from mull.problem import Batch, NumpyBatch
from mull.problems.shortest_path import ShortestPath
from mull.problems.sudoku import Sudoku
from mull.recipes import Recipe, get_recipe
from mull.runtime import TorchRuntime, load_runtime
from mull.trainer import Trainer

# Warnings stay warnings here: torch's compiler has its own, and one that becomes an error breaks it.
pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]


def one_puzzle() -> NumpyBatch:
    """A data set of one instance, so that what is drawn does not matter; the labels need not make a Sudoku."""
    rng = stream(0, "gpu test")
    solution = rng.integers(0, 9, (1, 81))
    given = rng.random((1, 81)) < 0.3
    tokens = np.where(given, solution + 1, 0).astype(np.uint8)
    return Batch(tokens, solution, given, np.ones_like(given))


def recipe(bf16: bool, kernels: bool = True) -> Recipe:
    base = get_recipe("sudoku-rrn.best")
    training = replace(base.training, batch=8, recurrences=4, warmup=5, updates=30, augment="none", bf16=bf16)
    training = replace(training, kernels=kernels)
    return replace(base, problem=Sudoku(), training=replace(training, reset_solved=0.0, reset_unsolved=0.0))


def curve(device: str, bf16: bool = False, kernels: bool = True) -> list[float]:
    trainer = Trainer(recipe(bf16, kernels), one_puzzle(), torch.device(device))
    losses = []
    for _ in range(30):
        trainer.update()
        losses.append(trainer.read_metrics()["loss"])
    return losses


def test_the_captured_update_follows_the_plain_one() -> None:
    plain, captured = curve("cpu"), curve("cuda")
    np.testing.assert_allclose(captured, plain, rtol=2e-2)
    assert captured[-1] < 0.8 * captured[0]


def test_bfloat16_stays_close() -> None:
    plain = curve("cpu")
    for kernels in (True, False):
        np.testing.assert_allclose(curve("cuda", bf16=True, kernels=kernels), plain, rtol=5e-2)


def window(
    model: RecurrentTransformer, tokens: torch.Tensor, bf16: bool, watching: bool = False
) -> dict[str, torch.Tensor]:
    """Logits, state, watched attention and gradients of three recurrences, under a random linear function."""
    model.zero_grad(set_to_none=True)
    torch.manual_seed(1)
    with torch.autocast("cuda", torch.bfloat16, enabled=bf16):
        trace = model(tokens, 3, watch_VV=adjacency(Sudoku(), tokens.device) if watching else None)
    found = {"logits": trace.logits_SLBVD.float(), "state": trace.state_BVH.float()}
    if watching:
        found["watched"] = 30 * trace.watched_SLBNV  # or its gradient would be lost in that of the others
    sum((tensor * torch.randn_like(tensor)).sum() for tensor in found.values()).backward()  # type: ignore[union-attr]
    return found | {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


def test_kernels_follow_the_plain_path() -> None:
    for config in (ModelConfig(), ModelConfig(feedback=True, inject=True), ModelConfig(blocks=2, width=64, heads=2)):
        torch.manual_seed(0)
        model = RecurrentTransformer(Sudoku(), config).cuda().eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.05)
        for puzzles, watching in ((3, False), (120, False), (3, True), (120, True)):
            tokens = torch.randint(0, 10, (puzzles, 81), device="cuda")
            model.kernels = False
            exact, rough = (window(model, tokens, bf16, watching) for bf16 in (False, True))
            model.kernels = True
            for name, tensor in window(model, tokens, True, watching).items():
                scale = exact[name].norm()
                error, usual = (tensor - exact[name]).norm() / scale, (rough[name] - exact[name]).norm() / scale
                assert error < max(1e-2, 1.5 * usual), f"{name} of {config}: {error:.1e} against {usual:.1e}"


def test_kernels_train_with_the_attention_loss_as_the_plain_path_does() -> None:
    """Expected shares, which do not jump as binarised ones do; no dropout, whose masks would differ."""
    losses = []
    for kernels in (True, False):
        base = recipe(bf16=True, kernels=kernels)
        model = replace(base.model, dropout=0.0)
        chosen = replace(base, loss=LossWeights(attention=1, estimator="soft"), model=model)
        trainer = Trainer(chosen, one_puzzle(), torch.device("cuda"))
        found = []
        for _ in range(12):
            trainer.update()
            found.append(trainer.read_metrics())
        assert trainer.model.kernels == kernels
        losses.append([[each["loss"], each["loss_attention"]] for each in found])
    np.testing.assert_allclose(losses[0], losses[1], rtol=5e-2)
    assert losses[0][-1][1] < losses[0][0][1]


def test_kernels_with_dropout_learn() -> None:
    base = recipe(True)
    chosen = replace(base, model=ModelConfig(dropout=0.1), training=replace(base.training, carry=0.0))
    found = losses_on("cuda", chosen, one_puzzle(), 30)
    assert found[-1] < 0.8 * found[0]
    assert len({round(loss, 6) for loss in found}) == len(found)


@pytest.mark.parametrize("puzzles", [5, 64])
@pytest.mark.parametrize(("width", "heads"), [(16, 1), (32, 2), (64, 4), (128, 4)])
@pytest.mark.parametrize("late", [True, False], ids=["feedback and inject", "plain"])
def test_kernels_infer_what_the_plain_path_infers(late: bool, width: int, heads: int, puzzles: int) -> None:
    torch.manual_seed(0)
    config = ModelConfig(width=width, heads=heads, feedback=late, inject=late, embedding_std=0.5)
    model = RecurrentTransformer(Sudoku(), config).cuda()
    for matrix in (p for p in model.blocks.parameters() if p.dim() == 2):
        torch.nn.init.normal_(matrix, std=width**-0.5)  # large enough that every recurrence matters
    inputs = np.random.default_rng(0).integers(0, 10, (puzzles, 81)).astype(np.uint8)
    found = []
    for kernels in (True, False):
        model.kernels = kernels
        runtime = TorchRuntime(model, Sudoku(), bf16=True)
        found.append(runtime.step(runtime.start(inputs), 4)[1])
    np.testing.assert_allclose(found[0], found[1], atol=0.05 * np.abs(found[1]).max())


def test_a_checkpoint_continues_on_the_device() -> None:
    first = Trainer(recipe(False), one_puzzle(), torch.device("cuda"))
    for _ in range(10):
        first.update()
    state = {name: tensor.detach().cpu().clone() for name, tensor in first.tensors().items()}
    second = Trainer(recipe(False), one_puzzle(), torch.device("cuda"))
    second.restore(state, 10)
    for trainer in (first, second):
        trainer.read_metrics()
        for _ in range(10):
            trainer.update()
    assert abs(first.read_metrics()["loss"] - second.read_metrics()["loss"]) < 1e-3


def constrained(loss: LossWeights) -> Recipe:
    return replace(recipe(False), loss=loss)


def losses_on(device: str, chosen: Recipe, data: NumpyBatch, updates: int = 12) -> list[float]:
    trainer = Trainer(chosen, data, torch.device(device))
    found = []
    for _ in range(updates):
        trainer.update()
        found.append(trainer.read_metrics()["loss"])
    return found


def test_constraint_losses_are_captured_too() -> None:
    """Binarised values jump, so that curves agree for some updates only: compare the first few."""
    for loss in (LossWeights(cardinality=1), LossWeights(attention=1), LossWeights(clste=1)):
        plain, captured = (losses_on(device, constrained(loss), one_puzzle()) for device in ("cpu", "cuda"))
        np.testing.assert_allclose(captured[:4], plain[:4], rtol=5e-2)
        assert np.isfinite(captured).all()


def test_bounds_and_paths_under_augmentation_are_captured() -> None:
    problem = ShortestPath(4)
    made = [problem.generate(stream(0, "gpu paths", index)) for index in range(8)]
    given = np.stack([one.given for one in made])
    solution = np.stack([one.solution for one in made if one.solution is not None])
    data: NumpyBatch = Batch(np.stack([one.inputs for one in made]), solution, given, np.ones_like(given))
    loss = LossWeights(cardinality=0.01, path=1, attention=1)
    base = get_recipe("shortest-path.best")
    small = replace(base.training, batch=16, recurrences=4, warmup=5, updates=30)
    captured = losses_on("cuda", replace(base, loss=loss, training=small), data, 30)
    assert np.isfinite(captured).all() and captured[-1] < captured[0]


if __name__ == "__main__":  # for machines without pytest
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print(name, "passed")


@pytest.mark.parametrize("bf16", [False, True])
def test_puzzles_that_leave_on_the_device_get_the_answers_of_the_plain_path(bf16: bool) -> None:
    problem, rng = Sudoku(2), stream(0, "adaptive on a gpu")
    grid = np.array(list(map(int, "1234341221434321")))
    boards = np.stack([np.concatenate([[0], rng.permutation(4) + 1])[grid] for _ in range(300)])
    inputs = np.where(rng.random(boards.shape) < 0.5, boards, 0).astype(np.uint8)
    plain = load_runtime(find_model("sudoku-4x4"), "torch")
    assert isinstance(plain, TorchRuntime)
    wanted = Adaptive(plain.model, problem, 16, batch=64, chunk=4)(inputs)
    runtime = load_runtime(find_model("sudoku-4x4"), "torch", "cuda", "auto" if bf16 else "fp32")
    for _ in range(2):  # the second time by the graphs of the first
        on_device = runtime.adaptive(16)
        assert on_device is not None
        found = on_device(inputs)
        np.testing.assert_array_equal(found.verified_C, problem.check(inputs, found.values_CV))
        assert abs(found.verified_C.mean() - wanted.verified_C.mean()) < 0.02
        assert abs(found.steps_C.mean() - wanted.steps_C.mean()) < 0.5
