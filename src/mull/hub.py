"""Model files: one archive with the graphs, the weights, and a card that says where they came from and what they score.

`NAME.mull` is a zip archive without compression. Its member `card.json` holds the checksum of every other member, so
that a truncated or altered file is told from a good one; nothing in it is ever executed or unpickled. Its numbers are
in `weights.safetensors`; `start.onnx`, `step.onnx` and `step.int8.onnx` say what to do with them and name them (see
`mull.graphs`).
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mull.errors import CorruptFile, InvalidInput, UserError, unknown
from mull.files import write_bytes
from mull.problem import Problem
from mull.problems import problem_from_dict, problem_to_dict

FORMAT = 1
SUFFIX = ".mull"
CARD = "card.json"
WEIGHTS = Path(__file__).parent / "weights"
"""Where the models that ship lie."""


@dataclass(frozen=True)
class Card:
    """What a model file says about itself."""

    name: str
    problem: Problem
    model: Mapping[str, Any]
    """The model's configuration, enough to build it again."""
    parameters: int
    steps: int
    """Recurrences to use at test time unless the user says otherwise."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """Recipe, data, commit, seed, hardware, seconds."""
    scores: Mapping[str, Any] = field(default_factory=dict)
    sha256: Mapping[str, str] = field(default_factory=dict)
    """Checksum of every other member of the archive."""
    int8: Mapping[str, Any] = field(default_factory=dict)
    """What the model scores in int8 and in fp32, on which data, and whether int8 is `allowed`; empty: not measured."""

    def to_json(self) -> str:
        """The card as the text of `card.json`."""
        data = {**vars(self), "problem": problem_to_dict(self.problem)}
        if not self.int8:
            del data["int8"]
        return json.dumps({"format": FORMAT, **data}, indent=1, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> Card:
        """The card that `to_json` wrote; raises CorruptFile for anything else."""
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise CorruptFile("its card is not JSON") from error
        if not isinstance(data, dict) or data.pop("format", None) != FORMAT:
            raise CorruptFile(f"its card is not of format {FORMAT}")
        _check_fields(data)
        try:
            problem = problem_from_dict(data.pop("problem"))
        except (TypeError, InvalidInput) as error:
            raise CorruptFile(f"its card describes no problem: {error}") from error
        return cls(problem=problem, **data)


def _check_fields(data: dict[str, Any]) -> None:
    """Exactly the fields of a card, each of its type; `int8` may be missing."""
    types: dict[str, type] = {"name": str, "parameters": int, "steps": int}
    types |= dict.fromkeys(("problem", "model", "provenance", "scores", "sha256"), dict)
    types |= {"int8": dict} if "int8" in data else {}
    if data.keys() != types.keys():
        raise CorruptFile(f"its card has wrong fields: {', '.join(sorted(data.keys() ^ types.keys()))}")
    for name, kind in types.items():
        if not isinstance(data[name], kind) or isinstance(data[name], bool):
            raise CorruptFile(f"its card has a wrong {name!r}")
    if data["steps"] < 1 or data["parameters"] < 0:
        raise CorruptFile("its card has a negative number")


def write_model(path: Path, card: Card, members: Mapping[str, bytes]) -> None:
    """Write a model file, whole or not at all; the same content gives the same bytes."""
    card = replace(card, sha256={name: hashlib.sha256(content).hexdigest() for name, content in members.items()})
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in {CARD: card.to_json().encode(), **members}.items():
            archive.writestr(zipfile.ZipInfo(name), content)  # ZipInfo without a date: no clock in the file
    write_bytes(path, buffer.getvalue())


def read_card(path: Path) -> Card:
    """The card of a model file."""
    return read_model(path, ())[0]


def read_members(path: Path, names: Iterable[str]) -> dict[str, bytes]:
    """Members of a model file, each verified against the card's checksum."""
    return read_model(path, names)[1]


def read_model(path: Path, names: Iterable[str], optional: Iterable[str] = ()) -> tuple[Card, dict[str, bytes]]:
    """The card and some members of a model file, with those of `optional` that its card names.

    Raises CorruptFile if the file is not exactly what was written.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    try:
        return _parse(content, names, optional)
    except CorruptFile as error:
        raise CorruptFile(f"{path} is not a usable model file: {error}") from error


def _parse(content: bytes, names: Iterable[str], optional: Iterable[str]) -> tuple[Card, dict[str, bytes]]:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            infos = archive.infolist()
            if any(info.compress_type != zipfile.ZIP_STORED or info.file_size > len(content) for info in infos):
                raise CorruptFile("it is compressed")  # what we write never is, and a bomb would be
            card = Card.from_json(archive.read(CARD))
            wanted = [*names, *(name for name in optional if name in card.sha256)]
            members = {name: archive.read(name) for name in wanted}
    except CorruptFile:
        raise
    except Exception as error:  # zipfile raises a dozen kinds on random bytes; all of them mean the same
        raise CorruptFile("it is truncated or altered") from error
    for name, member in members.items():
        if hashlib.sha256(member).hexdigest() != card.sha256.get(name):
            raise CorruptFile(f"its {name} is altered")
    return card, members


def shipped() -> dict[str, Path]:
    """The models that come with the package: name -> file."""
    return {path.stem: path for path in sorted(WEIGHTS.glob(f"*{SUFFIX}"))}


def find_model(name_or_path: str | Path) -> Path:
    """The model file of a shipped name, of a path, or of a folder that holds one."""
    models = shipped()
    name, path = str(name_or_path), Path(name_or_path)
    if name in models:
        return models[name]
    if path.is_dir():
        found = sorted(path.glob(f"*{SUFFIX}"))
        if not found:
            raise InvalidInput(f"no model file in {path}; make one: mull export {path} --out NAME{SUFFIX}")
        if len(found) > 1:
            raise InvalidInput(f"{len(found)} model files in {path}: name one")
        return found[0]
    if path.is_file():
        return path
    if path.suffix == SUFFIX or len(path.parts) > 1:
        raise InvalidInput(f"there is no model file {path}")
    raise unknown("model", name, models)
