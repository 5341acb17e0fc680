"""Tensors and their metadata in one safetensors file: written atomically, loaded strictly, never pickled."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load as load_bytes
from safetensors.torch import save_file
from torch import Tensor

from mull.errors import CorruptFile
from mull.files import atomic_path
from mull.models.recurrent_transformer import ModelConfig, RecurrentTransformer
from mull.problem import Problem


def save(path: Path, tensors: dict[str, Tensor], metadata: dict[str, Any]) -> None:
    """Write tensors and JSON metadata, with a checksum over both, or nothing at all."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    text = json.dumps(metadata)
    header = {"mull": text, "sha256": _digest(tensors, text)}
    with atomic_path(path) as temporary:
        try:
            save_file(tensors, temporary, metadata=header)
        except SafetensorError as error:  # it wraps a full disk and the like
            raise OSError(str(error)) from error


def load(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and metadata of a file that `save` wrote; anything else is a CorruptFile."""
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except (SafetensorError, OSError, ValueError) as error:
        raise CorruptFile(f"cannot read {path}: {_one_line(error)}") from error
    if "mull" not in header or header.get("sha256") != _digest(tensors, header["mull"]):
        raise CorruptFile(f"cannot use {path}: its content does not match its checksum")
    return tensors, json.loads(header["mull"])


def load_weights(model: torch.nn.Module, tensors: dict[str, Tensor], source: str) -> None:
    """Put tensors into a model; every name and shape must fit."""
    wanted = {name: tensor.shape for name, tensor in model.state_dict().items()}
    found = {name: tensor.shape for name, tensor in tensors.items()}
    wrong = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
    if wrong:
        raise CorruptFile(f"cannot use {source}: its tensor {wrong[0]!r} does not fit the model it names")
    model.load_state_dict(tensors)


def model_from_weights(problem: Problem, config: dict[str, Any], content: bytes) -> RecurrentTransformer:
    """A model from its configuration and the bytes of a safetensors file."""
    try:
        model = RecurrentTransformer(problem, ModelConfig(**config))
        tensors = load_bytes(content)
    except (SafetensorError, TypeError, ValueError) as error:
        raise CorruptFile(f"the model's weights cannot be read: {_one_line(error)}") from error
    load_weights(model, tensors, "the model's weights")
    return model.eval()


def _digest(tensors: dict[str, Tensor], metadata: str) -> str:
    """A checksum over the metadata, and over names, shapes, types and content of the tensors."""
    digest = hashlib.sha256(metadata.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}\n".encode())
        digest.update(tensor.contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
