"""Starting and stepping a model: one interface, with onnxruntime (no torch needed) or with torch (any device).

Shapes: B batch, V variable, H hidden, D value, L block.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from mull.constraints import BoolArray
from mull.errors import CorruptFile, InvalidInput, UserError
from mull.graphs import complete, read_tensors
from mull.hub import Card, read_model
from mull.problem import Problem

if TYPE_CHECKING:
    import torch

FloatArray = NDArray[np.floating[Any]]
Backend = Literal["auto", "onnx", "torch"]


@dataclass(frozen=True)
class State:
    """Where the recurrence stands for a batch: arrays or tensors with a leading batch axis."""

    tensors: tuple[Any, ...]
    given_BV: BoolArray | None = None
    """Which variables the model takes for given; None where the inputs say that themselves."""

    def __len__(self) -> int:
        return len(self.tensors[0])

    def __getitem__(self, rows: Any) -> State:
        """The state of some instances only, so that solved ones can leave the batch."""
        given = None if self.given_BV is None else self.given_BV[rows]
        return State(tuple(tensor[rows] for tensor in self.tensors), given)


class Runtime(ABC):
    """A model that can be started on inputs and stepped, one recurrence at a time."""

    problem: Problem
    card: Card | None
    """What the model's file says; None for a model that has no file yet."""
    batch: int
    """Instances to step together for the best throughput."""
    workers: int
    """Threads that may step batches at the same time."""

    @abstractmethod
    def start(self, inputs: NDArray[Any]) -> State:
        """The state before the first recurrence, from inputs (B, V, ...)."""

    @abstractmethod
    def step(self, state: State, count: int = 1) -> tuple[State, FloatArray]:
        """One recurrence, or `count` of them: the new state and the last logits (B, V, D)."""


@final
class OnnxRuntime(Runtime):
    """A model file's graphs in onnxruntime, each run on the thread that calls it."""

    MEMBERS = ("start.onnx", "step.onnx", "weights.safetensors")
    """What it needs of a model file."""

    def __init__(self, card: Card, members: Mapping[str, bytes], threads: int = 1) -> None:
        """Sessions of `threads` threads; several one-thread workers on small batches beat one wide session."""
        tensors = read_tensors(members["weights.safetensors"])
        start, step = (complete(members[name], tensors) for name in ("start.onnx", "step.onnx"))
        self.card, self.problem = card, card.problem
        self.batch, self.workers = 8, usable_cores() if threads == 1 else 1
        self._step = session(step, threads, {"state"}, {"next_state", "logits"})
        self._uses_context = any(node.name == "context" for node in self._step.get_inputs())
        self._start = session(start, threads, {"inputs"}, {"state", "context"} if self._uses_context else {"state"})
        self._tells_given = any(node.name == "given" for node in self._start.get_outputs())
        kind = self._start.get_inputs()[0].type
        self._dtype: type[np.generic] = np.int64 if kind == "tensor(int64)" else np.float32

    def start(self, inputs: NDArray[Any]) -> State:
        outputs = ["state", "context"] if self._uses_context else ["state"]
        feed = {"inputs": np.ascontiguousarray(inputs, dtype=self._dtype)}
        if not self._tells_given:
            return State(tuple(self._start.run(outputs, feed)))
        *tensors, given = self._start.run([*outputs, "given"], feed)
        return State(tuple(tensors), given > 0)

    def step(self, state: State, count: int = 1) -> tuple[State, FloatArray]:
        feed = dict(zip(("state", "context"), state.tensors, strict=False))
        for _ in range(count):
            feed["state"], logits = self._step.run(["next_state", "logits"], feed)
        return State(tuple(feed.values()), state.given_BV), logits


@final
class TorchRuntime(Runtime):
    """A torch model, on the device where its weights are; the state stays there too."""

    def __init__(
        self,
        model: torch.nn.Module,
        problem: Problem,
        card: Card | None = None,
        device: torch.device | str | None = None,
        bf16: bool = False,
    ) -> None:
        """Run `model`, moved to `device` if one is named; its training mode is the same after every call."""
        self.problem, self.card = problem, card
        self._model: Any = model if device is None else model.to(device)
        self._device, self._bf16 = next(model.parameters()).device, bf16
        self.batch, self.workers = (64, 1) if self._device.type == "cpu" else (2048, 1)

    def start(self, inputs: NDArray[Any]) -> State:
        import torch

        tensor = torch.as_tensor(np.ascontiguousarray(inputs), device=self._device)
        with self._evaluating():
            state, context = self._model.start(tensor)
            given = self._model.tell_given(context)
        return State((state, context), None if given is None else (given > 0).cpu().numpy())

    def step(self, state: State, count: int = 1) -> tuple[State, FloatArray]:
        after, context = state.tensors
        with self._evaluating():
            after, logits_LBVD = self._model.advance(after, context, count)
        return State((after, context), state.given_BV), logits_LBVD[-1].float().cpu().numpy()

    @contextmanager
    def _evaluating(self) -> Iterator[None]:
        import torch

        training = self._model.training
        if training:
            self._model.eval()
        try:
            with torch.inference_mode(), torch.autocast(self._device.type, torch.bfloat16, enabled=self._bf16):
                yield
        finally:
            if training:
                self._model.train()


def load_runtime(path: Path, backend: Backend = "auto", device: str | None = None) -> Runtime:
    """A runtime for a model file; `auto` takes onnxruntime where it is installed and no device is asked for."""
    if backend not in ("auto", "onnx", "torch"):
        raise InvalidInput(f"there is no backend {backend!r}: use auto, onnx or torch")
    if backend == "auto":
        backend = "torch" if device is not None or find_spec("onnxruntime") is None else "onnx"
    if backend == "onnx":
        return OnnxRuntime(*read_model(path, OnnxRuntime.MEMBERS))
    if find_spec("torch") is None:
        raise UserError("the torch backend needs torch: install mull[train]")
    from mull.checkpoint import model_from_weights

    card, members = read_model(path, ("weights.safetensors",))
    model = model_from_weights(card.problem, dict(card.model), members["weights.safetensors"])
    try:
        return TorchRuntime(model, card.problem, card, device)
    except (RuntimeError, AssertionError) as error:  # torch's ways to say that there is no such device
        raise InvalidInput(f"cannot use the device {device!r}: {str(error).splitlines()[0]}") from error


def usable_cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def session(graph: bytes, threads: int, inputs: set[str], outputs: set[str]) -> Any:
    """A graph in onnxruntime, with some inputs and outputs that it must have."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 4  # what goes wrong is raised, and told in one line
    try:
        session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's exceptions share no base class of their own
        raise CorruptFile("the model file's graphs cannot be loaded") from error
    missing = inputs - {node.name for node in session.get_inputs()}
    missing |= outputs - {node.name for node in session.get_outputs()}
    if missing:
        raise CorruptFile(f"the model file's graphs lack {', '.join(sorted(missing))}")
    return session
