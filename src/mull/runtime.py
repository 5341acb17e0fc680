"""Starting and stepping a model: one interface, with onnxruntime (no torch needed) or with torch (any device).

Shapes: B batch, V variable, H hidden, D value, L block.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from mull.constraints import BoolArray, IntArray
from mull.errors import InvalidInput, UserError
from mull.graphs import complete, read_tensors, session
from mull.hub import Card, read_model
from mull.kernels import fused
from mull.problem import Problem
from mull.processor import has_int8_products, usable_cores

if TYPE_CHECKING:
    import torch

    from mull.adaptive import Adaptive

FloatArray = NDArray[np.floating[Any]]
Backend = Literal["auto", "onnx", "torch"]
Precision = Literal["auto", "fp32", "int8"]


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

    def fill(self, leaving: IntArray, new: State) -> State:
        """New instances instead of the `leaving` ones: in place as far as it goes, the rest appended or dropped."""
        both = min(len(leaving), len(new))
        mine, theirs = ([*state.tensors, *_there(state.given_BV)] for state in (self, new))
        for old, entering in zip(mine, theirs, strict=True):
            old[leaving[:both]] = entering[:both]
        if len(leaving) > both:
            return self[np.delete(np.arange(len(self)), leaving[both:])]
        if len(new) == both:
            return self
        rest = new[both:]
        given = None if self.given_BV is None else _joined(self.given_BV, rest.given_BV)
        return State(tuple(map(_joined, self.tensors, rest.tensors)), given)


def _there(given_BV: BoolArray | None) -> list[BoolArray]:
    return [] if given_BV is None else [given_BV]


def _joined(first: Any, second: Any) -> Any:
    """Two arrays, or two tensors, one after the other."""
    if isinstance(first, np.ndarray):
        return np.concatenate([first, second])
    import torch

    return torch.cat([first, second])


class Runtime(ABC):
    """A model that can be started on inputs and stepped, one recurrence at a time."""

    problem: Problem
    card: Card | None
    """What the model's file says; None for a model that has no file yet."""
    batch: int
    """Instances to step together for the best throughput."""
    workers: int
    """Threads that may step batches at the same time."""
    precision: str = "fp32"
    """In what numbers products with the weights are computed."""

    @abstractmethod
    def start(self, inputs: NDArray[Any]) -> State:
        """The state before the first recurrence, from inputs (B, V, ...)."""

    @abstractmethod
    def step(self, state: State, count: int = 1) -> tuple[State, FloatArray]:
        """One recurrence, or `count` of them: the new state and the last logits (B, V, D)."""

    def likeliest(self, state: State, count: int = 1) -> tuple[IntArray, FloatArray]:
        """Each variable's likeliest value (B, V) after so many recurrences, and how likely it is."""
        shares_BVD = softmax(self.step(state, count)[1])
        return shares_BVD.argmax(axis=-1), shares_BVD.max(axis=-1)

    def likelihood(self, state: State, values_BV: IntArray, count: int = 1) -> FloatArray:
        """How likely these values (B, V) are after so many recurrences."""
        shares_BVD = softmax(self.step(state, count)[1])
        return np.take_along_axis(shares_BVD, values_BV[..., None], axis=2)[..., 0]

    def fill(self, state: State, leaving: IntArray, new: State) -> State:
        """`State.fill`; the state that was passed is not to be used any more."""
        return state.fill(leaving, new)

    def adaptive(self, steps: int) -> Adaptive | None:
        """What recurs on any number of instances without leaving the device, where that is possible and pays."""
        return None

    def many(self) -> int | None:
        """Recurrences, of all instances together, from which on `for_many` pays; None where it never does."""
        return None

    def for_many(self) -> Runtime:
        """A runtime that takes longer to start and less for each recurrence; itself where there is none."""
        return self

    def disturb(self, state: State, scale: float, rng: np.random.Generator) -> State:
        """The state with noise of so many of its own deviations added; the context stays as it is."""
        first, *others = state.tensors
        return State((first + scale * float(first.std()) * self._noise(first, rng), *others), state.given_BV)

    def _noise(self, tensor: Any, rng: np.random.Generator) -> Any:
        """Standard normal numbers, as many as the tensor has and where it is."""
        return rng.standard_normal(tensor.shape, dtype=np.float32)


@final
class OnnxRuntime(Runtime):
    """A model file's graphs in onnxruntime, each run on the thread that calls it."""

    card: Card
    MEMBERS = ("start.onnx", "step.onnx", "weights.safetensors")
    """What it needs of a model file."""
    INT8 = "step.int8.onnx"
    """What it needs for int8, besides."""

    def __init__(
        self,
        card: Card,
        members: Mapping[str, bytes],
        threads: int = 1,
        precision: Precision = "fp32",
        kernels: bool = True,
    ) -> None:
        """Sessions of `threads` threads; several one-thread workers on small batches beat one wide session.

        The precision `auto` is int8 where that loses nothing, by the model's card, and is faster on this processor.
        With `kernels`, our own kernel may take over in int8 when there is much to do (see `mull.kernels.fused`).
        """
        tensors = read_tensors(members["weights.safetensors"])
        self._kernels, self._tensors = kernels, tensors
        self._fused: fused.Fused | None = None
        self.precision = _choose_precision(precision, card, self.INT8 in members)
        names = "start.onnx", self.INT8 if self.precision == "int8" else "step.onnx"
        start, step = (complete(members[name], tensors) for name in names)
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

    def many(self) -> int | None:
        if not self._kernels or self._fused is not None or self.precision != "int8":
            return None
        return fused.worth_from(self.card.model, self._arrays(), self.problem.variables().count)

    def for_many(self) -> Runtime:
        if self.many() is None:
            return self
        other = copy(self)
        other._fused = fused.load(self.card.model, self._arrays(), self.problem.variables().count)
        self._kernels = other._kernels = other._fused is not None
        return other

    def _arrays(self) -> dict[str, FloatArray]:
        """The model's parameters, those in float32."""
        float32 = {name: tensor for name, tensor in self._tensors.items() if tensor.type == "F32"}
        return {name: np.frombuffer(each.content, np.float32).reshape(each.shape) for name, each in float32.items()}

    def step(self, state: State, count: int = 1) -> tuple[State, FloatArray]:
        if self._fused is not None:
            after, *others = state.tensors
            after, logits = self._fused(after, others[0] if others else None, count)
            return State((after, *others), state.given_BV), logits
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
        self.model: Any = model if device is None else model.to(device)
        self._device, self.bf16 = next(model.parameters()).device, bf16
        self.precision = "bf16" if bf16 else "fp32"
        self.batch, self.workers = (64, 1) if self._device.type == "cpu" else (2048, 1)
        self._adaptive: dict[int, Adaptive] = {}

    def adaptive(self, steps: int) -> Adaptive | None:
        if self._device.type != "cuda":
            return None
        from mull.adaptive import Adaptive
        from mull.tensor_check import supported

        if steps not in self._adaptive and supported(self.problem):
            self._adaptive[steps] = Adaptive(self.model, self.problem, steps, self.bf16, self.batch)
        return self._adaptive.get(steps)

    def start(self, inputs: NDArray[Any]) -> State:
        import torch

        tensor = torch.as_tensor(np.ascontiguousarray(inputs), device=self._device)
        with self._evaluating():
            state, context = self.model.start(tensor)
            given = self.model.tell_given(context)
        return State((state, context), None if given is None else (given > 0).cpu().numpy())

    def step(self, state: State, count: int = 1) -> tuple[State, FloatArray]:
        after, logits_BVD = self._advance(state, count)
        return State((after, state.tensors[1]), state.given_BV), logits_BVD.cpu().numpy()

    def likeliest(self, state: State, count: int = 1) -> tuple[IntArray, FloatArray]:
        share_BV, value_BV = self._advance(state, count)[1].softmax(-1).max(-1)
        return value_BV.cpu().numpy(), share_BV.cpu().numpy()

    def likelihood(self, state: State, values_BV: IntArray, count: int = 1) -> FloatArray:
        import torch

        values_BV1 = torch.as_tensor(values_BV, device=self._device)[..., None]
        found: FloatArray = self._advance(state, count)[1].softmax(-1).gather(2, values_BV1)[..., 0].cpu().numpy()
        return found

    def _advance(self, state: State, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The state's tensor after so many recurrences, and the last logits (B, V, D), both on the device."""
        with self._evaluating():
            after, logits_LBVD = self.model.advance(*state.tensors, count)
            return after, logits_LBVD[-1].float()

    def _noise(self, tensor: Any, rng: np.random.Generator) -> Any:
        import torch

        generator = torch.Generator(tensor.device).manual_seed(int(rng.integers(2**63)))
        return torch.randn(tensor.shape, generator=generator, dtype=tensor.dtype, device=tensor.device)

    def fill(self, state: State, leaving: IntArray, new: State) -> State:
        with self._evaluating():  # its tensors may be changed there alone
            return state.fill(leaving, new)

    @contextmanager
    def _evaluating(self) -> Iterator[None]:
        import torch

        training = self.model.training
        if training:
            self.model.eval()
        try:
            with torch.inference_mode(), torch.autocast(self._device.type, torch.bfloat16, enabled=self.bf16):
                yield
        finally:
            if training:
                self.model.train()


def softmax(logits: FloatArray) -> FloatArray:
    """How likely each value is."""
    power: FloatArray = logits - logits.max(axis=-1, keepdims=True)
    np.exp(power, out=power)
    power /= power.sum(axis=-1, keepdims=True)
    return power


def load_runtime(
    path: Path,
    backend: Backend = "auto",
    device: str | None = None,
    precision: Precision = "fp32",
    kernels: bool = True,
) -> Runtime:
    """A runtime for a model file; `auto` takes onnxruntime where it is installed and no device is asked for.

    Without `kernels` it stays with onnxruntime on a CPU, however much there is to do.

    Of precisions, `auto` takes int8 where it was measured to lose nothing (see `Card.int8`) and is fast, and bfloat16
    on GPUs, where kernels need it; solving does so, while a model's accuracy is measured in fp32 unless somebody asks.
    """
    if backend not in ("auto", "onnx", "torch"):
        raise InvalidInput(f"there is no backend {backend!r}: use auto, onnx or torch")
    if precision not in ("auto", "fp32", "int8"):
        raise InvalidInput(f"there is no precision {precision!r}: use auto, fp32 or int8")
    if backend == "auto":
        backend = "torch" if device is not None or find_spec("onnxruntime") is None else "onnx"
    if backend == "onnx":
        card, members = read_model(path, OnnxRuntime.MEMBERS, optional=(OnnxRuntime.INT8,))
        return OnnxRuntime(card, members, precision=precision, kernels=kernels)
    if precision == "int8":
        raise InvalidInput("int8 runs in onnxruntime, on the CPU: name no other backend or device")
    if find_spec("torch") is None:
        raise UserError("the torch backend needs torch: install mull[train]")
    from mull.checkpoint import model_from_weights

    card, members = read_model(path, ("weights.safetensors",))
    model = model_from_weights(card.problem, dict(card.model), members["weights.safetensors"])
    try:
        bf16 = precision == "auto" and device is not None and device.startswith("cuda")
        return TorchRuntime(model, card.problem, card, device, bf16)
    except (RuntimeError, AssertionError) as error:  # torch's ways to say that there is no such device
        raise InvalidInput(f"cannot use the device {device!r}: {str(error).splitlines()[0]}") from error


def _choose_precision(wanted: Precision, card: Card, there: bool) -> str:
    """fp32 or int8. Who asks for int8 gets it: answers are checked anyway."""
    if wanted == "int8" and not there:
        raise InvalidInput(f"the model {card.name} has no int8 graph: make one with mull export --int8")
    if wanted == "auto":
        return "int8" if there and card.int8.get("allowed") is True and has_int8_products() else "fp32"
    return wanted
