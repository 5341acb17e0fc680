"""Training: it learns, resumes bit for bit after a kill, and gives the same curve in one process as in two."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from mull import checkpoint
from mull.data import sets
from mull.errors import InvalidInput, UserError
from mull.givens import reveal, tokens_of_values
from mull.losses import total_loss
from mull.models.recurrent_transformer import Trace
from mull.optimisers import Muon, decay_groups, orthogonal
from mull.problem import Batch, stack
from mull.problems.nonogram import Nonogram
from mull.recipes import Data, Recipe, Training, get_recipe
from mull.slots import Slots
from mull.train import train
from mull.trainer import Trainer, schedule

RUN = """
import sys
from pathlib import Path
from mull.recipes import get_recipe, override
from mull.train import train
train(override(get_recipe("sudoku-4x4"), sys.argv[3:]), Path(sys.argv[1]), "cpu", resume=sys.argv[2] == "resume")
"""
# A thread of gloo that outlives the training may abort the process at its end, and with it the whole run.
ALONE = """
for thread in Path("/proc/self/task").glob("*/comm"):
    assert "gloo_runloop" not in thread.read_text()
"""
SMALL = ["train.count=200", "valid.count=20", "width=32", "batch=16", "recurrences=3", "validate_steps=4", "warmup=5"]


def small_recipe(**training: object) -> Recipe:
    base = get_recipe("sudoku-4x4")
    settings = {"updates": 40, "batch": 16, "recurrences": 4, "warmup": 5, "validate_every": 20, "validate_steps": 8}
    return replace(
        base,
        train=Data("sudoku-4x4_train", 100),
        valid=Data("sudoku-4x4_valid", 20),
        model=replace(base.model, width=32),
        training=replace(base.training, **{**settings, **training}),
    )


def command(out: Path, mode: str, *settings: str) -> list[str]:
    return [sys.executable, "-c", RUN, str(out), mode, *SMALL, *settings]


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1"}


def losses(out: Path) -> list[float]:
    return [json.loads(line)["loss"] for line in (out / "log.jsonl").read_text().splitlines()]


def test_a_few_puzzles_are_learned_by_heart() -> None:
    recipe = small_recipe(updates=300, augment="none", learning_rate=3e-3)
    data = sets.load("sudoku-4x4_train", 32)
    trainer = Trainer(recipe, data, torch.device("cpu"))
    trainer.update()
    first = trainer.read_metrics()["loss"]
    for _ in range(250):
        trainer.update()
    trainer.read_metrics()
    for _ in range(20):
        trainer.update()
    last = trainer.read_metrics()
    assert last["loss"] < 0.5 * first
    assert last["train_board"] > 0.95


def test_a_run_leaves_its_files_and_says_where_it_came_from(tmp_path: Path) -> None:
    seen: list[int] = []

    class Report:
        def begin(self, recipe: Recipe, total_steps: int, start_step: int) -> None:
            assert (total_steps, start_step) == (40, 0)

        def ready(self) -> None:
            assert seen == []
            seen.append(0)

        def progress(self, step: int, metrics: dict[str, float]) -> None:
            seen.append(step)
            assert {"loss", "puzzles_per_s"} <= metrics.keys()
            assert len(losses(tmp_path / "run")) == len(seen) - 1  # written at once

        def end(self, summary: dict[str, object]) -> None:
            assert summary["step"] == 40

    train(small_recipe(), tmp_path / "run", "cpu", report=Report())
    assert seen[0] == 0 and seen[-1] == 40
    recipe = json.loads((tmp_path / "run" / "recipe.json").read_text())
    assert recipe["training"]["updates"] == 40
    assert {"commit", "torch", "hardware", "command"} <= recipe["provenance"].keys()
    tensors, about = checkpoint.load(tmp_path / "run" / "best.safetensors")
    assert about["valid_board"] >= 0 and "blocks.0.qkv.weight" in tensors
    assert list((tmp_path / "run" / "tensorboard").glob("events*"))
    with pytest.raises(InvalidInput, match="--resume"):
        train(small_recipe(), tmp_path / "run", "cpu")
    with pytest.raises(InvalidInput, match="other settings"):
        train(small_recipe(updates=50), tmp_path / "run", "cpu", resume=True)
    with pytest.raises(InvalidInput, match="nothing to resume"):
        train(small_recipe(), tmp_path / "empty", "cpu", resume=True)


def test_killed_and_resumed_ends_with_the_same_bits(tmp_path: Path) -> None:
    settings = ["updates=60", "validate_every=15", "carry=0.5", "dropout=0.1", "checkpoint_seconds=0"]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    subprocess.run(command(whole, "new", *settings), check=True, env=environment())
    process = subprocess.Popen(command(killed, "new", *settings), env=environment())
    while not (killed / "checkpoint.safetensors").exists():
        assert process.poll() is None, "the training ended before it was killed"
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    stopped = checkpoint.load(killed / "checkpoint.safetensors")[1]["step"]
    assert 0 < stopped < 60
    subprocess.run(command(killed, "resume", *settings), check=True, env=environment())
    for name in ("checkpoint.safetensors", "best.safetensors"):
        ours, theirs = (checkpoint.load(out / name)[0] for out in (whole, killed))
        assert ours.keys() == theirs.keys()
        assert all(torch.equal(ours[key], theirs[key]) for key in ours)
    assert losses(whole) == losses(killed)


def test_two_processes_follow_one(tmp_path: Path) -> None:
    settings = ["updates=20", "validate_every=10", "carry=0.5", "dropout=0.0", "checkpoint_seconds=1000", "bf16=false"]
    subprocess.run(command(tmp_path / "one", "new", *settings), check=True, env=environment())
    script = tmp_path / "run.py"
    script.write_text(RUN + ALONE)
    arguments = [str(script), str(tmp_path / "two"), "new", *SMALL, *settings]
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone"]
    done = subprocess.run([*launch, *arguments], env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(losses(tmp_path / "one"), losses(tmp_path / "two"), rtol=1e-4)
    tensors, _ = checkpoint.load(tmp_path / "two" / "checkpoint.safetensors")
    assert "1/slots.state" in tensors  # each process's own state is in the checkpoint


def test_slots_carry_their_puzzles_and_states() -> None:
    batch = Batch(*(torch.zeros(4, 3, dtype=torch.long) for _ in range(4)))
    slots = Slots(batch, width=2, training=Training(carry=0.5, reset_solved=1.0, reset_unsolved=0.0))
    one = Batch(*(torch.full((4, 3), 1) for _ in range(4)))
    two = Batch(*(torch.full((4, 3), 2) for _ in range(4)))
    got, (_, fresh) = slots.refill(one, torch.full((4,), 0.5))
    assert fresh.all() and (got.inputs == 1).all()

    class Trace:
        state_BVH = torch.ones(4, 3, 2)

    slots.keep(Trace(), torch.tensor([True, False, True, False]))  # type: ignore[arg-type]
    got, (state, fresh) = slots.refill(two, torch.full((4,), 0.5))
    assert fresh.tolist() == [True, False, True, True]  # solved, carried, and two that never carry
    assert got.inputs[:, 0].tolist() == [2, 1, 2, 2]
    assert (state[1] == 1).all()


def test_schedule_and_decay() -> None:
    training = Training(updates=100, warmup=10, learning_rate=1.0)
    rates = [schedule(step, training) for step in range(101)]
    assert rates[0] == 0.1 and max(rates) == rates[9] == rates[10] == 1.0 and rates[100] == 0.0
    assert rates[10:] == sorted(rates[10:], reverse=True)
    trainer = Trainer(small_recipe(), sets.load("sudoku-4x4_train", 16), torch.device("cpu"))
    decayed, others = decay_groups(trainer.model, 0.1)
    assert len(decayed["params"]) == 6 and decayed["weight_decay"] == 0.1  # type: ignore[arg-type]
    assert others["weight_decay"] == 0.0
    embedding = {id(trainer.model.positions), id(trainer.model.embed.weight)}
    half = {group["weight_decay"]: group["params"] for group in decay_groups(trainer.model, 0.1, embeddings=0.5)}
    assert half.keys() == {0.1, 0.0, 0.05} and {id(p) for p in half[0.05]} == embedding
    more, fewer = (group["params"] for group in decay_groups(trainer.model, 0.1, embeddings=1.0))
    assert {id(p) for p in more} - {id(p) for p in decayed["params"]} == embedding
    assert len(more) + len(fewer) == len(list(trainer.model.parameters()))


def test_muon_takes_the_matrices_of_blocks_alone() -> None:
    trainer = Trainer(small_recipe(optimiser="muon"), sets.load("sudoku-4x4_train", 32), torch.device("cpu"))
    muon, adam = trainer.optimisers
    assert isinstance(muon, Muon)
    taken = {id(p) for group in muon.param_groups for p in group["params"]}
    left = {id(p) for group in adam.param_groups for p in group["params"]}
    names = {name for name, p in trainer.model.named_parameters() if id(p) in taken}
    assert names == {f"blocks.0.{part}.weight" for part in ("qkv", "project", "expand", "contract")}
    assert not taken & left and len(taken | left) == len(list(trainer.model.parameters()))
    trainer.update()
    first = trainer.read_metrics()["loss"]
    for _ in range(60):
        trainer.update()
    trainer.read_metrics()
    trainer.update()
    assert trainer.read_metrics()["loss"] < 0.8 * first
    with pytest.raises(InvalidInput, match="optimiser"):
        Training(optimiser="sgd")


def test_muon_may_wait_for_adamw() -> None:
    """Until then updates are AdamW's at the slower rate, bit by bit; afterwards matrices move as Muon moves them."""
    data, cpu, wait = sets.load("sudoku-4x4_train", 32), torch.device("cpu"), 3
    options = {"optimiser": "muon", "learning_rate": 1e-2, "image_rate": 0.1, "warmup": 1, "weight_decay": 0.1}
    waiting = Trainer(small_recipe(**options, muon_start=wait), data, cpu)
    plain = Trainer(
        small_recipe(**options | {"optimiser": "adamw", "learning_rate": 1e-3, "image_rate": 1.0}), data, cpu
    )
    for _ in range(wait):
        waiting.update()
        plain.update()
    ours, theirs = waiting.model.state_dict(), plain.model.state_dict()
    for name, tensor in ours.items():
        torch.testing.assert_close(tensor, theirs[name])
    before = waiting.model.blocks[0].get_parameter("project.weight").detach().clone()
    taken = {name: tensor.clone() for name, tensor in waiting.tensors().items()}
    waiting.update()
    moved = (waiting.model.blocks[0].get_parameter("project.weight").detach() - before).norm() / before.numel() ** 0.5
    assert 0.5 < moved / (0.2 * schedule(wait, waiting.recipe.training)) < 2  # a step of Muon's, not of AdamW's
    after = waiting.model.blocks[0].get_parameter("project.weight").detach().clone()
    waiting.restore(taken, wait)
    waiting.update()
    assert (waiting.model.blocks[0].get_parameter("project.weight") == after).all()


@pytest.mark.parametrize("shape", [(3, 16, 16), (1, 64, 16), (1, 16, 64)])
def test_singular_values_become_about_one(shape: tuple[int, int, int]) -> None:
    found = torch.linalg.svdvals(orthogonal(torch.randn(shape, generator=torch.Generator().manual_seed(0))))
    assert found.min() > 0.3 and found.max() < 1.3
    first, *others = found[..., : min(shape[1:])].flatten().tolist()
    assert max(abs(first - other) for other in others) < 0.9


def test_muon_takes_matrices_together_and_moves_them_as_if_alone() -> None:
    rng, lr = torch.Generator().manual_seed(0), torch.tensor(0.1)
    shapes = [(48, 16), (16, 16), (64, 16), (16, 64)] * 2
    together, alone = ([nn.Parameter(torch.zeros(shape)) for shape in shapes] for _ in range(2))
    right = torch.zeros(())
    whole, each = Muon(together, lr, right, 0.01), [Muon([matrix], lr, right, 0.01) for matrix in alone]
    for _ in range(3):
        for one, other in zip(together, alone, strict=True):
            one.grad = other.grad = torch.randn(one.shape, generator=rng)
        whole.step()
        for optimiser in each:
            optimiser.step()
    rows = [matrix.detach().norm().item() / len(matrix) ** 0.5 for matrix in together[:4]]
    assert min(rows) > 0.1  # each step is 0.02 for a weight on average
    for one, other in zip(together, alone, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0.02 * one.abs().max().item())


@pytest.mark.parametrize("optimiser", ["adamw", "muon"])
def test_a_gradient_that_is_not_finite_changes_nothing(optimiser: str, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = small_recipe(optimiser=optimiser, carry=0.5, ema=0.0)
    trainer = Trainer(recipe, recipe.train.load(0), torch.device("cpu"))
    trainer.update()
    plain = trainer.read_metrics()
    before = {name: tensor.clone() for name, tensor in trainer.tensors().items()}

    def spoilt(*arguments: object) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        loss, terms = total_loss(*arguments)  # type: ignore[arg-type]
        return loss * float("nan"), terms

    monkeypatch.setattr("mull.trainer.total_loss", spoilt)
    trainer.update()
    after = trainer.tensors()
    for name in before:
        if name.startswith(("model.", "optimiser.", "ema.")):
            assert torch.equal(before[name], after[name]), name
    monkeypatch.undo()
    trainer.update()
    found = trainer.read_metrics()
    assert found["broken_updates"] == 1 and np.isfinite(found["loss"]) and "broken_updates" not in plain
    assert not torch.equal(before["model.output.weight"], trainer.model.output.weight)


def test_a_training_that_broke_down_stops_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mull.trainer.total_loss", lambda trace, *rest: (trace.logits_SLBVD.sum() * float("inf"), {}))
    with pytest.raises(UserError, match="learning_rate"):
        train(small_recipe(), tmp_path, "cpu")


def test_slots_may_carry_what_was_sure_and_right_as_givens() -> None:
    recipe = small_recipe(carry=0.5, carry_givens=True, reset_solved=0.0, reset_unsolved=0.0)
    trainer = Trainer(recipe, recipe.train.load(0), torch.device("cpu"))
    slots = trainer.slots
    assert slots is not None
    batch, resume = slots.refill(trainer.data[torch.arange(len(slots.reset_B))], torch.zeros(len(slots.reset_B)))
    assert resume is None  # nothing but the board goes on
    before = batch.inputs.clone()
    solution, open_BV = batch.solution, before == 0
    first, second, third = (open_BV[0].nonzero().flatten()[place] for place in range(3))
    logits = 9 * torch.eye(4)[(solution + 1) % 4]  # sure, and wrong
    logits[0, first] = 9 * torch.eye(4)[solution[0, first]]
    logits[0, second] = torch.eye(4)[solution[0, second]]  # right, but not sure
    logits[0, third] = 9 * torch.eye(4)[solution[0, third]]
    slots.batch.labelled[0, third] = False
    slots.keep(Trace(logits[None, None], slots.state_BVH), torch.zeros(len(before), dtype=torch.bool))
    after, _ = slots.refill(trainer.data[torch.zeros(len(before), dtype=torch.long)], torch.full((len(before),), 0.5))
    kept = len(before) // 2
    changed = (after.inputs[:kept] != before[:kept]).nonzero().tolist()
    assert changed == [[0, int(first)]] and after.given[0, first]
    assert after.inputs[0, first] == solution[0, first] + 1
    assert torch.equal(after.inputs[kept:], trainer.data.inputs[:1].expand(len(before) - kept, -1))


@pytest.mark.parametrize("givens", [False, True])
def test_slots_that_take_turns_come_back_as_they_were(givens: bool) -> None:
    settings = {"carry": 0.5, "carry_turns": 3, "carry_givens": givens, "reset_solved": 0.0, "reset_unsolved": 0.0}
    recipe = small_recipe(**settings)
    trainer = Trainer(recipe, recipe.train.load(0), torch.device("cpu"))
    slots, half = trainer.slots, recipe.training.batch // 2
    assert slots is not None
    seen: list[Batch[torch.Tensor]] = []
    ends: list[torch.Tensor] = []
    for turn in range(6):
        batch, resume = slots.refill(trainer.data[torch.arange(2 * half) + turn], torch.full((2 * half,), 0.5))
        assert torch.equal(batch.inputs[half:], trainer.data.inputs[half + turn : 2 * half + turn])  # always new
        if turn < 3:
            assert torch.equal(batch.inputs[:half], trainer.data.inputs[turn : half + turn])
        else:
            assert torch.equal(batch.solution[:half], seen[turn - 3].solution[:half])
            stated_BV = seen[turn - 3].given[:half] | givens
            assert torch.equal(batch.given[:half], stated_BV)  # all of it was sure and right
            assert (resume is None) == givens
            if resume is not None:
                state, fresh = resume
                assert torch.equal(state[:half], ends[turn - 3][:half])
                assert not fresh[:half].any() and fresh[half:].all()
        state = torch.full((*batch.solution.shape, recipe.model.width), float(turn))
        logits = 20 * torch.eye(4)[batch.solution]
        slots.keep(Trace(logits[None, None], state), torch.zeros(2 * half, dtype=torch.bool))
        seen.append(batch)
        ends.append(state)


def test_what_inputs_cannot_state_no_slot_carries() -> None:
    recipe = small_recipe(carry=0.5)
    assert tokens_of_values(recipe.problem, recipe.train.load(0)).tolist() == [1, 2, 3, 4]
    hints = stack([Nonogram(3).generate(np.random.default_rng(0))])
    with pytest.raises(InvalidInput, match="carry_givens and reveal are for inputs that can state values"):
        tokens_of_values(Nonogram(3), hints)


def test_a_share_of_the_boards_states_a_part_of_the_solution() -> None:
    recipe = small_recipe(reveal=0.5)
    trainer = Trainer(recipe, recipe.train.load(0), torch.device("cpu"))
    assert trainer.tokens_D is not None
    batch = trainer.data[torch.arange(100).repeat(20)]
    batch.labelled[:, 3] = False
    after = reveal(batch, 0.5, trainer.tokens_D, torch.Generator().manual_seed(0))
    told_BV = after.inputs != batch.inputs
    assert torch.equal(after.inputs[told_BV], (batch.solution + 1)[told_BV].to(after.inputs.dtype))
    assert torch.equal(after.given, batch.given | told_BV) and not (told_BV & batch.given).any()
    assert not told_BV[:, 3].any()  # nobody knows it
    open_BV = batch.labelled & ~batch.given
    part_B = (told_BV.sum(1) / open_BV.sum(1))[open_BV.sum(1) > 0]
    assert 0.4 < (part_B > 0).float().mean() < 0.52  # half of them, but for those that got nothing by chance
    assert 0.45 < part_B[part_B > 0].mean() < 0.6 and part_B.max() == 1
    assert after.solution is batch.solution and after.labelled is batch.labelled
    drawn, _ = trainer._draw()
    assert (drawn.given.sum(1) > trainer.data.given.sum(1).max()).any()


def test_what_slots_keep_needs_slots() -> None:
    with pytest.raises(InvalidInput, match="set carry"):
        Training(carry_givens=True)


def test_a_slot_whose_state_is_not_finite_takes_a_new_puzzle() -> None:
    recipe = small_recipe(carry=1.0, reset_solved=0.0, reset_unsolved=0.0)
    trainer = Trainer(recipe, recipe.train.load(0), torch.device("cpu"))
    trainer.update()
    assert trainer.slots is not None
    state = trainer.slots.state_BVH.clone()
    state[3, 0, 0] = float("nan")
    trace = Trace(torch.zeros(1, 1, *state.shape[:2], 4), state)
    trainer.slots.keep(trace, torch.zeros(len(state), dtype=torch.bool))
    assert trainer.slots.reset_B.nonzero().flatten().tolist() == [3]


def test_newton_and_schulz_in_bfloat16_are_close_to_float64() -> None:
    matrices = torch.randn(3, 16, 64, generator=torch.Generator().manual_seed(0))
    x = matrices.double() / matrices.double().norm(dim=(1, 2), keepdim=True)
    for _ in range(5):
        square = x @ x.transpose(1, 2)
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * square @ square) @ x
    assert (orthogonal(matrices) - x).norm() < 0.02 * x.norm()


def test_the_average_follows_quickly_at_first() -> None:
    trainer = Trainer(small_recipe(ema=0.999), sets.load("sudoku-4x4_train", 16), torch.device("cpu"))
    start = trainer.model.output.weight.detach().clone()
    for _ in range(30):
        trainer.update()
    moved = (trainer.model.output.weight - start).norm()
    behind = (trainer.model.output.weight - trainer.ema.output.weight).norm()
    assert behind < 0.5 * moved


def test_a_batch_must_split_evenly() -> None:
    with pytest.raises(InvalidInput, match="16 cannot be split among 3"):
        Trainer(small_recipe(), sets.load("sudoku-4x4_train", 16), torch.device("cpu"), rank=0, world=3)
