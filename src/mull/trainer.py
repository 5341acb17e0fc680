"""One update of a training: what it consists of, and all of its state as named tensors.

Shapes: B batch (of this process), V variable, D value, H width.
"""

from __future__ import annotations

import copy
import gc
import math
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn.parallel import DistributedDataParallel

from mull.data.augment import Augment
from mull.data.distort import distort
from mull.data.streams import stream
from mull.errors import InvalidInput, UserError
from mull.givens import reveal, tokens_of_values
from mull.losses import total_loss
from mull.losses.attention import adjacency
from mull.models.embed import ImageEmbedder
from mull.models.recurrent_transformer import RecurrentTransformer, Trace
from mull.optimisers import Rates, optimisers
from mull.problem import Batch, Images, NumpyBatch, with_bounds
from mull.processor import has_bf16_products
from mull.recipes.recipe import Recipe, Training
from mull.slots import Slots


@contextmanager
def distributed() -> Iterator[tuple[int, int]]:
    """Rank and number of processes; joins the group that torchrun set up, if it did.

    Whoever uses a group must have let go of it at the end: while it lives, so do threads of gloo, and one that drops
    the last collective's tensor when Python is ending aborts the process; torchrun then stops the others before they
    have finished. The functions that DistributedDataParallel imports keep the group that they find as their default.
    """
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1 or dist.is_initialized():
        yield (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    import_module("torch.distributed.nn.functional")  # before there is a group
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    try:
        yield dist.get_rank(), dist.get_world_size()
    finally:
        gc.collect()  # a training refers to itself
        dist.destroy_process_group()


def schedule(step: int, training: Training) -> float:
    """The learning rate: linear warm-up, then a cosine down to zero."""
    if step < training.warmup:
        return training.learning_rate * (step + 1) / training.warmup
    done = (step - training.warmup) / max(1, training.updates - training.warmup)
    return training.learning_rate * 0.5 * (1 + math.cos(math.pi * done))


def constraint_scale(step: int, training: Training) -> float:
    """What the weights of constraint losses are multiplied by: 0 until they start, then up to 1."""
    since = step - training.constraint_start
    return 0.0 if since < 0 else min(1.0, (since + 1) / max(1, training.constraint_warmup))


def _bf16_on_cpu(recipe: Recipe, device: torch.device) -> bool:
    """Whether bfloat16 is faster here and does no harm: without any label, constraints were learned less well in it."""
    return device.type == "cpu" and recipe.loss.terms == ["supervised"] and has_bf16_products()


STANDARD = 64
"""Instances whose images are looked at to begin with standardised vectors."""
OWN = ("slots.", "random.")
"""State that each process has for itself."""


class Trainer:
    """Model, averaged model, optimiser and data on one device; `update()` makes one optimiser step."""

    def __init__(self, recipe: Recipe, data: NumpyBatch, device: torch.device, rank: int = 0, world: int = 1) -> None:
        """A training at its first update, of process `rank` among `world`."""
        self.recipe, self.device, self.rank, self.world = recipe, device, rank, world
        training = recipe.training
        self.bf16 = training.bf16 and (device.type == "cuda" or _bf16_on_cpu(recipe, device))
        self.graphed = device.type == "cuda" and world == 1
        if training.batch % world:
            raise InvalidInput(f"a batch of {training.batch} cannot be split among {world} processes")
        torch.manual_seed(_torch_seed(recipe.seed, "weights"))
        self.model = RecurrentTransformer(recipe.problem, recipe.model).to(device)
        if training.standardise:
            self._standardise(data)
        self.model.kernels = training.kernels
        self.ema = copy.deepcopy(self.model).eval()
        self.module: nn.Module = self.model
        if device.type == "cuda":
            self.model.compile_step()
        if world > 1:
            self.module = DistributedDataParallel(self.model)
        # Numbers that change from update to update are tensors, since a captured graph reads them anew each time.
        numbers = [torch.zeros((), device=device) for _ in range(5)]
        self.broken, self.ema_weight, self.constraints, self.attentive, self.distorting = numbers
        self.distorting.fill_(1.0)
        self.rates = Rates(device)
        self.optimisers = optimisers(self.model, training, self.rates, self.broken, self.graphed)
        if recipe.loss.needs_bounds:
            data = with_bounds(recipe.problem, data)
        self.data: Batch[Tensor] = data.map(lambda array: torch.from_numpy(array).to(device))
        self.watch_VV = adjacency(recipe.problem, device) if recipe.loss.attention else None
        if training.distort and not isinstance(recipe.problem.input_kind(), Images):
            raise InvalidInput(f"distort is for images, and {recipe.problem.name} has none")
        self.augment = None
        if training.augment != "none":
            geometric = training.augment == "geometric"
            self.augment = Augment(recipe.problem, device, geometric, bounds=self.data.bounds is not None)
        # The graph records the default generator; elsewhere all processes share one stream for drawing batches.
        self.draws = None if self.graphed else torch.Generator(device)
        if self.draws is not None:
            self.draws.manual_seed(_torch_seed(recipe.seed, "batches"))
        torch.manual_seed(_torch_seed(recipe.seed, "dropout", rank))
        self.tokens_D = None
        if training.carry_givens or training.reveal:
            self.tokens_D = torch.from_numpy(tokens_of_values(recipe.problem, data)).to(device)
        self.slots = self._slots() if training.carry else None
        self.terms = recipe.loss.terms if len(recipe.loss.terms) > 1 else []
        # loss, solved boards (as a share of those with labels), updates; then the terms of the loss, if it has several;
        # broken updates count in the last place alone
        self.sums = torch.zeros(4 + len(self.terms), device=device)
        self.lost = torch.zeros_like(self.sums)
        self.lost[-1] = 1
        self.step = 0
        self._run: Callable[[], None] | None = None

    def _standardise(self, data: NumpyBatch) -> None:
        """Let the embedder of images begin with vectors that differ as much as they can."""
        embedder = self.model.embed
        if not isinstance(embedder, ImageEmbedder):
            raise InvalidInput(f"standardise is for images, and {self.recipe.problem.name} has none")
        embedder.eval()
        std = self.recipe.model.embedding_std
        embedder.standardise(torch.from_numpy(data.inputs[:STANDARD]).to(self.device), std or 1.0)
        embedder.train()

    def update(self) -> None:
        """One optimiser step."""
        training = self.recipe.training
        self.rates.fill(schedule(self.step, training), training, self.step)
        self.ema_weight.fill_(1 - min(training.ema, (1 + self.step) / (10 + self.step)))
        self.constraints.fill_(constraint_scale(self.step, training))
        self.attentive.fill_(float(self.step >= training.attention_start))
        self.distorting.fill_(min(1.0, (1 + self.step) / (1 + training.distort_warmup)))
        self.prepare()
        assert self._run is not None
        with self._threads():
            self._run()
        self.step += 1

    def prepare(self) -> None:
        """Compile and capture what an update does, on a GPU; the first update does it otherwise."""
        if self._run is None:
            self._run = self._capture() if self.graphed else self._update

    def _threads(self) -> AbstractContextManager[None]:
        """Where the kernels for CPUs do nearly all of the work, the others' threads would only be in their way."""
        if self.device.type != "cpu" or not self.model.trains_on_cpu_kernels():
            return nullcontext()
        from mull.kernels.cpu_threads import kernels_alone

        return kernels_alone()

    def _update(self) -> None:
        training = self.recipe.training
        batch, resume = self._draw()
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16):
            trace: Trace = self.module(batch.inputs, training.recurrences, resume, watch_VV=self.watch_VV)
        scales = self.constraints, self.attentive
        loss, terms = total_loss(trace, batch, self.recipe.problem, self.recipe.loss, *scales)
        self.model.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), training.clip)
        self.broken.copy_(~norm.isfinite())
        for optimiser in self.optimisers:
            optimiser.step()
        with torch.no_grad():
            self._average()
            right = trace.logits_SLBVD[-1, -1].argmax(-1) == batch.solution
            told_B = batch.labelled.any(-1)
            solved_B = (right | ~batch.labelled).all(-1) & told_B  # without any label nobody knows
            if self.slots is not None:
                self.slots.keep(trace, solved_B)
            share = solved_B.sum() / told_B.sum().clamp(min=1)
            found = [loss, share, torch.ones_like(loss), *(terms[name] for name in self.terms), torch.zeros_like(loss)]
            self.sums += torch.where(self.broken == 0, torch.stack(found), self.lost)

    def _draw(self) -> tuple[Batch[Tensor], tuple[Tensor, Tensor] | None]:
        """A batch for this process: its share of one that all processes draw alike."""
        training = self.recipe.training
        size = training.batch
        mine = slice(self.rank, None, self.world)
        batch = self.data[self._rows(size)]
        if self.augment is not None:
            batch = self.augment(batch, self.draws)
        if training.distort:
            strength = training.distort * self.distorting
            changed = distort(batch.inputs, strength, self.draws, training.bend / training.distort)
            batch = replace(batch, inputs=changed)
        if self.tokens_D is not None and training.reveal:
            batch = reveal(batch, training.reveal, self.tokens_D, self.draws)
        if self.slots is None:
            return batch[mine], None
        chance = torch.rand(size, generator=self.draws, device=self.device)
        return self.slots.refill(batch[mine], chance[mine])

    def _rows(self, size: int) -> Tensor:
        """Rows for a batch: any, or as many labelled ones as the recipe says and others for the rest."""
        training, labelled, total = self.recipe.training, self.recipe.train.labelled_rows, len(self.data)
        places: dict[str, Any] = {"generator": self.draws, "device": self.device}
        if training.labelled_share is None or labelled is None or not 0 < labelled < total:
            return torch.randint(total, (size,), **places)
        first = round(training.labelled_share * size)
        parts = torch.randint(labelled, (first,), **places), torch.randint(labelled, total, (size - first,), **places)
        order = torch.rand(size, **places).argsort()  # any order, so that processes share both kinds
        return torch.cat(parts)[order]

    def _average(self) -> None:
        averaged: list[Tensor] = [parameter.data for parameter in self.ema.parameters()]
        current: list[Tensor] = [parameter.data for parameter in self.model.parameters()]
        torch._foreach_lerp_(averaged, current, [self.ema_weight] * len(averaged))

    def _capture(self) -> Callable[[], None]:
        """The update as one CUDA graph. Warming up trains a little; afterwards everything is put back."""
        before = {name: tensor.clone() for name, tensor in self.tensors().items()}
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            try:
                self._update()
            except Exception as error:  # kernels compile in their first use; a GPU may be too small for them
                if not self.model.kernels:
                    raise
                self.model.without_kernels(error)
            for _ in range(3):
                self._update()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._update()
        self.restore(before, self.step)
        return graph.replay

    def _slots(self) -> Slots:
        training = self.recipe.training
        tokens = self.tokens_D if training.carry_givens else None
        rows = torch.zeros(training.batch // self.world, dtype=torch.long, device=self.device)
        return Slots(self.data[rows], self.recipe.model.width, training, self.rank, self.world, tokens)

    def read_metrics(self) -> dict[str, float]:
        """Mean loss, its terms if it has several, and share of solved boards since the last call, of all processes."""
        if self.world > 1:
            dist.all_reduce(self.sums)
        loss, solved, updates, *parts, broken = self.sums.tolist()
        self.sums.zero_()
        if not updates:
            raise UserError(
                f"training broke down: loss or gradient of the last {broken / self.world:.0f} updates up to "
                f"{self.step} are not finite; a smaller learning_rate (or image_rate) may help"
            )
        terms = {f"loss_{name}": part / updates for name, part in zip(self.terms, parts, strict=True)}
        lost = {"broken_updates": broken / self.world} if broken else {}
        return {"loss": loss / updates, **terms, "train_board": solved / updates, **lost}

    def tensors(self) -> dict[str, Tensor]:
        """All state of the training as named tensors: what a checkpoint holds."""
        found = {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}
        found |= {f"ema.{name}": tensor for name, tensor in self.ema.state_dict().items()}
        for name, parameter in self.model.named_parameters():
            for optimiser in self.optimisers:  # two may have the same parameter, one after the other
                kept = optimiser.state.get(parameter, {})
                found |= {f"optimiser.{name}.{key}": value for key, value in kept.items()}
        if self.slots is not None:
            found |= {f"slots.{name}": tensor for name, tensor in self.slots.batch.arrays().items()}
            found |= {"slots.state": self.slots.state_BVH, "slots.reset": self.slots.reset_B}
            # always 0 with a single set, and not in checkpoints from before there were several
            found |= {"slots.turn": self.slots.turn} if self.recipe.training.carry_turns > 1 else {}
        found |= {"sums": self.sums, "random.default": torch.get_rng_state()}
        if self.draws is not None:
            found["random.draws"] = self.draws.get_state()
        if self.device.type == "cuda":
            found["random.cuda"] = torch.cuda.get_rng_state(self.device)
        return found

    def agree(self, flag: bool) -> bool:
        """The first process's opinion, so that all do the same."""
        if self.world == 1:
            return flag
        shared = torch.tensor([flag], dtype=torch.int32, device=self.device)
        dist.broadcast(shared, 0)
        return bool(shared.item())

    def gather(self) -> dict[str, Tensor]:
        """The state of all processes: weights once, and each process's own slots and random state."""
        found = self.tensors()
        if self.world == 1:
            return found
        own = {name: tensor.cpu() for name, tensor in found.items() if name.startswith(OWN)}
        everybody: list[dict[str, Tensor]] = [{} for _ in range(self.world)]
        dist.all_gather_object(everybody, own)
        return found | {f"{rank}/{name}": t for rank in range(self.world) for name, t in everybody[rank].items()}

    @torch.no_grad()
    def restore(self, tensors: dict[str, Tensor], step: int) -> None:
        """Put state back that `tensors` or `gather` returned, in place."""
        mine = f"{self.rank}/"
        tensors = tensors | {name.removeprefix(mine): t for name, t in tensors.items() if name.startswith(mine)}
        for name, tensor in self.tensors().items():
            if not name.startswith("random."):
                tensor.copy_(tensors[name])
        torch.set_rng_state(tensors["random.default"].cpu())
        if self.draws is not None:
            self.draws.set_state(tensors["random.draws"].cpu())
        if self.device.type == "cuda":
            torch.cuda.set_rng_state(tensors["random.cuda"].cpu(), self.device)
        self.step = step


def _torch_seed(seed: int, *names: str | int) -> int:
    return int(stream(seed, *names).integers(2**63))
