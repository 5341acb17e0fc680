"""From a training to a model file: ONNX graphs for solving without torch, checked against torch, and the weights."""

from __future__ import annotations

import json
import logging
import warnings
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save as save_bytes
from torch import Tensor, nn

from mull import checkpoint
from mull.data.streams import stream
from mull.errors import CorruptFile, InvalidInput
from mull.hub import Card, find_model, read_model, write_model
from mull.models.recurrent_transformer import RecurrentTransformer
from mull.problem import Images, Problem, Tokens
from mull.recipes.recipe import Recipe, from_dict
from mull.runtime import OnnxRuntime, State, TorchRuntime

TOLERANCE = 1e-4
"""Largest difference allowed between onnxruntime's and torch's logits and states, relative to the largest of them."""


class _Start(nn.Module):
    def __init__(self, model: RecurrentTransformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: Tensor) -> tuple[Tensor, ...]:
        state, context = self.model.start(inputs)
        given = self.model.tell_given(context)
        # A plain model's context is its state; ONNX outputs must be distinct.
        return (state, context.clone()) if given is None else (state, context.clone(), given)


class _Step(nn.Module):
    def __init__(self, model: RecurrentTransformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, state: Tensor, context: Tensor) -> tuple[Tensor, Tensor]:
        # Attention by its definition: the exporter makes fewer nodes of it than of torch's fused function.
        after, logits_LBVD, _ = self.model._recur(state, context, attention=True)
        return after, logits_LBVD[-1]


def members(model: RecurrentTransformer, problem: Problem) -> dict[str, bytes]:
    """What a model file holds besides its card: two graphs, and the weights that both of them name.

    The graphs are `start.onnx` (inputs -> state, context) and `step.onnx` (state, context -> next_state, logits).
    """
    model = model.eval().cpu()
    inputs = random_inputs(problem, 2)
    state, context = (tensor.detach().clone() for tensor in model.start(inputs))  # one tensor twice would be one input
    outputs = ["state", "context"] + ["given"] * (model.given is not None)
    return {
        "start.onnx": graph_of(_Start(model), {"inputs": inputs}, outputs),
        "step.onnx": graph_of(_Step(model), {"state": state, "context": context}, ["next_state", "logits"]),
        "weights.safetensors": save_bytes({name: tensor.contiguous() for name, tensor in model.state_dict().items()}),
    }


def random_inputs(problem: Problem, count: int, seed: int = 0) -> Tensor:
    """Inputs of the right kind, to trace and compare models with."""
    kind, rng = problem.input_kind(), stream(seed, "export")
    shape = (count, problem.variables().count, *kind.shape)
    if isinstance(kind, Images):
        return torch.from_numpy(255 * rng.random(shape, dtype=np.float32))
    return torch.from_numpy(rng.integers(0, kind.vocabulary if isinstance(kind, Tokens) else kind.largest + 1, shape))


def difference(model: RecurrentTransformer, onnx: OnnxRuntime, steps: int = 16) -> float:
    """Largest difference of logits or states between torch and onnxruntime over some recurrences, over the largest.

    Both go on from torch's state each time: on inputs that make no sense, a model may magnify rounding from one
    recurrence to the next without either of the two being wrong.
    """
    inputs = random_inputs(onnx.problem, 8, seed=1).numpy()
    reference = TorchRuntime(model, onnx.problem)
    ours, theirs = reference.start(inputs), onnx.start(inputs)
    worst = _apart(ours.tensors[0], theirs.tensors[0])
    for _ in range(steps):
        theirs, their_logits = onnx.step(State((ours.tensors[0].cpu().numpy(), *theirs.tensors[1:])))
        ours, logits = reference.step(ours)
        worst = max(worst, _apart(logits, their_logits), _apart(ours.tensors[0], theirs.tensors[0]))
    return worst


def _apart(wanted: Any, found: Any) -> float:
    wanted = np.asarray(wanted)
    return float(np.abs(wanted - found).max() / np.abs(wanted).max())


def export_model(source: Path, out: Path, scores: Path | None = None, steps: int | None = None) -> None:
    """Write a model file from a run's folder, its `best.safetensors`, or another model file.

    `scores` is a file that `mull eval --json` wrote; its shares of right answers go onto the model's card. `steps` are
    the recurrences to solve with, if not those of the training's validation.
    """
    if steps is not None and steps < 1:
        raise InvalidInput(f"steps is at least 1, not {steps}")
    model, card = read_source(source, out.stem)
    card = replace(card, steps=steps or card.steps)
    if scores is not None:
        card = replace(card, scores=_read_scores(scores))
    content = members(model, card.problem)
    worst = difference(model, OnnxRuntime(card, content))
    if not worst < TOLERANCE:
        raise CorruptFile(f"{source}: onnxruntime differs from torch by {worst:.1e}; nothing was written")
    if card.int8:  # measured with these weights
        content |= read_model(find_model(str(source)), (), optional=(OnnxRuntime.INT8,))[1]
    write_model(out, card, content)


def read_source(source: Path, name: str) -> tuple[RecurrentTransformer, Card]:
    """The model and its card from a run's folder, a weights file, or a model file."""
    if source.is_dir():
        source = source / "best.safetensors"
        if not source.exists():
            raise InvalidInput(f"{source} does not exist: the training has not been validated yet")
    if source.suffix != ".safetensors":
        card, content = read_model(find_model(str(source)), ("weights.safetensors",))
        return checkpoint.model_from_weights(card.problem, dict(card.model), content["weights.safetensors"]), card
    tensors, about = checkpoint.load(source)
    if "recipe" not in about or any(key.startswith("optimiser.") for key in tensors):
        raise InvalidInput(f"{source} is no weights file: use best.safetensors of the run's folder")
    recipe = from_dict(about["recipe"])
    model = RecurrentTransformer(recipe.problem, recipe.model)
    checkpoint.load_weights(model, tensors, str(source))
    return model.eval(), _card(recipe, model, name, about)


def _card(recipe: Recipe, model: nn.Module, name: str, about: dict[str, Any]) -> Card:
    origin = {
        "recipe": recipe.name,
        "data": recipe.train.name,
        "seed": recipe.seed,
        "updates": about["step"],
        "seconds": about["seconds"],
        "augment": recipe.training.augment,
        "distort": recipe.training.distort,
        "valid_board": about["valid_board"],
        **about["provenance"],
    }
    return Card(
        name=name,
        problem=recipe.problem,
        model=asdict(recipe.model),
        parameters=sum(p.numel() for p in model.parameters()),
        steps=recipe.steps,
        provenance=origin,
    )


def _read_scores(path: Path) -> dict[str, Any]:
    try:
        result = json.loads(path.read_text())
        right = {steps: row["right"] for steps, row in result["steps"].items()}
        return {result["data"]: {"right": right, "instances": result["instances"]}}
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(f"{path} is not what mull eval --json writes") from error


def graph_of(module: nn.Module, inputs: dict[str, Tensor], outputs: list[str]) -> bytes:
    """One graph of a module around `module.model`, with a free batch axis: it names the model's parameters only."""
    batch = torch.export.Dim("batch", min=1, max=2**20)
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # it warns of packages that we do not need
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the exporter's own use of deprecated calls
        program = torch.onnx.export(
            module.eval(),
            tuple(inputs.values()),
            input_names=list(inputs),
            output_names=outputs,
            dynamic_shapes=tuple({0: batch} for _ in inputs),
            dynamo=True,
            verbose=False,
            optimize=False,
        )
        if program is None:
            raise RuntimeError("the exporter returned no program")
        graph = program.model.graph
        for name in module.get_submodule("model").state_dict():
            parameter = graph.initializers.pop(f"model.{name}", None)
            if parameter is not None:  # an input while the graph is optimised: nothing may be folded into its value
                parameter.name, parameter.const_value = name, None
                graph.inputs.append(parameter)
        program.optimize()
    proto = program.model_proto
    del proto.graph.input[len(inputs) :]
    for part in (proto.graph, *proto.graph.node, *proto.graph.value_info):
        del part.metadata_props[:]  # where in the source it came from, down to the folder
    content: bytes = proto.SerializeToString()
    return content
