"""Recurring on many instances on one device: solved ones leave their batch, and nothing waits for the host.

One *round* lets the next instances in line take the free places of a batch, makes a few recurrences, checks the answers
exactly, and frees the places of those that are verified or out of steps. No shape in it depends on data, so on a GPU it
is one CUDA graph. When the line is empty and few are left, they move to a smaller batch.

Shapes: C instance in line, B place in a batch, E one that enters, V variable, D value, H width, L block.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mull.constraints import BoolArray, IntArray
from mull.problem import Problem
from mull.tensor_check import Checker

CHUNK = 4
"""Recurrences in a round: fewer check and move more often than pays."""
CAPACITY = 1 << 16
"""Instances in line at once; more are taken in parts."""
SHRINK = 4
"""How much smaller the next batch is when the line is empty."""
LONG = 16
"""Recurrences in a round from which on it does no harm that the device waits for the host in between."""


@dataclass(frozen=True)
class Outcome:
    """What became of each instance."""

    values_CV: IntArray
    verified_C: BoolArray
    steps_C: IntArray


class Line:
    """Instances on the device, in order, and what became of each; one row more takes what belongs to nobody."""

    def __init__(self, problem: Problem, check: Checker, capacity: int, device: torch.device) -> None:
        self.check, self.none = check, capacity
        variables, kind = problem.variables().count, problem.input_kind()
        sample = np.zeros((1, variables, *kind.shape), dtype=np.uint8)
        places: dict[str, Any] = {"device": device}
        self.inputs = torch.zeros(capacity + 1, *sample.shape[1:], dtype=torch.int32, **places)
        sides = [torch.from_numpy(side.copy()) for side in check.bounds(sample)]
        self.bounds = [torch.zeros(capacity + 1, side.shape[1], dtype=side.dtype, **places) for side in sides]
        self.values = torch.zeros(capacity + 1, variables, dtype=torch.int16, **places)
        self.verified = torch.zeros(capacity + 1, dtype=torch.bool, **places)
        self.steps = torch.zeros(capacity + 1, dtype=torch.int32, **places)
        self.counts = torch.zeros(3, dtype=torch.int64, **places)
        self.entered, self.there, self.left = self.counts.unbind()  # views
        self.loaded = 0

    def reset(self, count: int) -> None:
        """An empty line, of so many instances to come."""
        self.loaded = 0
        self.counts.copy_(torch.tensor([0, 0, count]))

    def load(self, inputs: NDArray[Any]) -> None:
        """More instances at the end, while the device is at work on others."""
        end = self.loaded + len(inputs)
        for tensor, array in zip((self.inputs, *self.bounds), (inputs, *self.check.bounds(inputs)), strict=True):
            host = torch.from_numpy(np.require(array, requirements=["C", "W"]))
            if tensor.is_cuda:
                host = host.pin_memory().to(tensor.device, non_blocking=True)
            tensor[self.loaded : end].copy_(host)
        self.loaded = end
        self.there.fill_(end)

    def outcome(self) -> Outcome:
        """What became of those that were loaded."""
        parts = (tensor[: self.loaded].cpu().numpy() for tensor in (self.values, self.verified, self.steps))
        values, verified, steps = parts
        return Outcome(values.astype(np.int64), verified.copy(), steps.astype(np.int64))


class Places:
    """A batch of fixed size, and a round of it; like the line, it has a row more that belongs to nobody."""

    def __init__(self, model: Any, line: Line, size: int, chunk: int, steps: int, bf16: bool) -> None:
        self.model, self.line, self.size, self.chunk, self.steps, self.bf16 = model, line, size, chunk, steps, bf16
        device = line.inputs.device
        self.doors = size if size < 64 or chunk >= LONG else size // 2
        """Instances that may enter in a round: starting is work for each of them, whether one enters or not."""
        self.number = torch.full((size + 1,), line.none, dtype=torch.int64, device=device)
        self.age = torch.zeros(size + 1, dtype=torch.int32, device=device)
        with self._autocast():
            self.state, self.context = (t.float().clone() for t in model.start(line.inputs[self.number]))
        self._places = torch.arange(size, device=device)
        self._run: Callable[[], None] | None = None

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self.line.inputs.device.type, torch.bfloat16, enabled=self.bf16)

    def round(self) -> None:
        """The next in line enter, all recur, and those that are done leave."""
        if self._run is None:
            self._run = self._capture() if self.number.is_cuda else self._round
        self._run()

    def _round(self) -> None:
        line, size = self.line, self.size
        self._enter()
        with self._autocast():
            after_BVH, logits_LBVD = self.model.advance(self.state[:size], self.context[:size], self.chunk)
        self.state[:size].copy_(after_BVH)
        values_BV, number_B = logits_LBVD[-1].argmax(-1), self.number[:size]
        verified_B = line.check(values_BV, [side[number_B] for side in line.bounds])
        age_B = self.age[:size].add_(self.chunk)
        leaving_B = (number_B != line.none) & (verified_B | (age_B >= self.steps))
        place_B = torch.where(leaving_B, number_B, line.none)
        line.values.index_copy_(0, place_B, values_BV.to(torch.int16))
        line.verified.index_copy_(0, place_B, verified_B)
        line.steps.index_copy_(0, place_B, age_B)
        line.left.sub_(leaving_B.sum())
        number_B.copy_(torch.where(leaving_B, line.none, number_B))

    def _enter(self) -> None:
        """The next in line take free places: E of them at most, one for each door."""
        line, size, doors = self.line, self.size, self.doors
        free_B = self.number[:size] == line.none
        order_B = free_B.cumsum(0) - 1
        door_B = torch.where(free_B & (order_B < doors), order_B, doors)
        place_E = torch.full((doors + 1,), size, device=door_B.device).scatter_(0, door_B, self._places)[:doors]
        turn_E = line.entered + self._places[:doors]
        entering_E = (place_E < size) & (turn_E < line.there)
        place_E = torch.where(entering_E, place_E, size)
        number_E = torch.where(entering_E, turn_E, line.none)
        with self._autocast():
            state_EVH, context_EVH = self.model.start(line.inputs[number_E])
        for kept, new in (
            (self.number, number_E), (self.age, torch.zeros_like(number_E, dtype=torch.int32)),
            (self.state, state_EVH.float()), (self.context, context_EVH.float()),
        ):  # fmt: skip
            kept.index_copy_(0, place_E, new)
        line.entered.add_(entering_E.sum())

    def _capture(self) -> Callable[[], None]:
        """The round as one CUDA graph. While warming up, nobody is in line and every place is free."""
        mine = (self.number, self.age, self.state, self.context)
        before = [tensor.clone() for tensor in (self.line.there, *mine)]
        self.line.there.zero_()
        self.number.fill_(self.line.none)
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):
                self._round()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._round()
        for tensor, content in zip((self.line.there, *mine), before, strict=True):
            tensor.copy_(content)
        return graph.replay

    def move(self, other: Places) -> None:
        """All instances to a batch that is large enough for them."""
        rows = (self.number[: self.size] != self.line.none).nonzero().flatten()
        for name in ("number", "age", "state", "context"):
            getattr(other, name)[: len(rows)].copy_(getattr(self, name)[rows])
        self.number.fill_(self.line.none)


class Adaptive:
    """A model that recurs on any number of instances, each until it is verified or for `steps` recurrences."""

    def __init__(
        self,
        model: Any,
        problem: Problem,
        steps: int,
        bf16: bool = False,
        batch: int = 2048,
        chunk: int = CHUNK,
        capacity: int = CAPACITY,
    ) -> None:
        """A model on its device; answers are checked after each `chunk` recurrences, or fewer, to end at `steps`."""
        self.model, device = model, next(model.parameters()).device
        chunk = max(count for count in range(1, min(chunk, steps) + 1) if steps % count == 0)
        self.ahead = 1 if chunk >= LONG else 2
        """Rounds that are under way before the host looks at the first, so that the device never waits for it."""
        with self._evaluating():
            self.line = Line(problem, Checker(problem, device), capacity, device)
            sizes = [batch]
            while sizes[-1] >= 32 * SHRINK:
                sizes.append(sizes[-1] // SHRINK)
            self.batches = [Places(model, self.line, size, chunk, steps, bf16) for size in sizes]

    def _evaluating(self) -> Any:
        self.model.eval()
        return torch.no_grad()

    def __call__(self, inputs: NDArray[Any]) -> Outcome:
        """What becomes of inputs (C, V, ...)."""
        found = []
        with self._evaluating():
            for begin in range(0, len(inputs), self.line.none):
                found.append(self._run(inputs[begin : begin + self.line.none]))
        return Outcome(
            np.concatenate([part.values_CV for part in found]),
            np.concatenate([part.verified_C for part in found]),
            np.concatenate([part.steps_C for part in found]),
        )

    def _run(self, inputs: NDArray[Any]) -> Outcome:
        line, count = self.line, len(inputs)
        line.reset(count)
        for places in self.batches:
            places.number.fill_(line.none)
        waiting = deque(self.batches)
        while len(waiting) > 1 and waiting[1].size >= count:
            waiting.popleft()
        places, seen = waiting.popleft(), deque[tuple[Tensor, torch.cuda.Event | None]]()
        group, entered = max(1, self.batches[0].size // 2), 0
        line.load(inputs[: max(group, places.doors)])
        while True:
            places.round()
            seen.append(self._look())
            while line.loaded < min(count, entered + 4 * group):  # while the device is busy
                line.load(inputs[line.loaded : line.loaded + group])
            if len(seen) < self.ahead:
                continue
            counts, arrived = seen.popleft()
            if arrived is not None:
                arrived.synchronize()
            entered, _, left = counts.tolist()
            if left == 0:
                return line.outcome()
            if entered == count and waiting and left <= waiting[0].size:
                smaller = waiting.popleft()
                places.move(smaller)
                places = smaller

    def _look(self) -> tuple[Tensor, torch.cuda.Event | None]:
        """The counts as they are after the rounds so far, once they arrive."""
        counts = self.line.counts
        if not counts.is_cuda:
            return counts.clone(), None
        copy = torch.empty(counts.shape, dtype=counts.dtype, pin_memory=True).copy_(counts, non_blocking=True)
        event = torch.cuda.Event()  # type: ignore[no-untyped-call]
        event.record()
        return copy, event
