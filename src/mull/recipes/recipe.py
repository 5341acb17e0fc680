"""A recipe: everything that a training run depends on, as one frozen value."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from typing import Any, get_type_hints

import numpy as np

from mull.constraints import UNKNOWN, BoolArray
from mull.data import sets
from mull.errors import InvalidInput, unknown
from mull.losses import LossWeights
from mull.models.recurrent_transformer import ModelConfig
from mull.problem import NumpyBatch, Problem
from mull.problems import problem_from_dict, problem_to_dict


@dataclass(frozen=True)
class Data:
    """A data set by name, whole or its first `count` instances."""

    name: str
    count: int | None = None
    labels: str = "all"
    """Which labels may be used: `all`; `unknown`: those of variables that are not given (ungrounded); `given`: those of
    given variables alone, which the inputs state anyway (learning from constraints without any label)."""
    labelled_rows: int | None = None
    """Only the first so many instances have labels; the others are for constraint losses (semi-supervised)."""

    def __post_init__(self) -> None:
        if self.labels not in LABELS:
            raise unknown("choice of labels", self.labels, LABELS)
        if self.labelled_rows is not None and self.labelled_rows < 0:
            raise InvalidInput(f"labelled_rows is 0 or more, not {self.labelled_rows}")

    def load(self, seed: int, own: Problem | None = None) -> NumpyBatch:
        """The data, of a problem that is not in the list too; labels that may not be used are not there at all."""
        batch = sets.load(self.name, self.count, seed=seed, own=own)
        hidden = (batch.given & (self.labels == "unknown")) | (~batch.given & (self.labels == "given"))
        if self.labelled_rows is not None:
            hidden = hidden | (np.arange(len(batch)) >= self.labelled_rows)[:, None]
        return withhold(batch, hidden) if hidden.any() else batch


def withhold(batch: NumpyBatch, hidden: BoolArray) -> NumpyBatch:
    """The batch without the labels of `hidden` (B, V) variables: no loss can use what is not there."""
    labelled = batch.labelled & ~hidden
    return replace(batch, solution=np.where(labelled, batch.solution, UNKNOWN), labelled=labelled)


LABELS = ("all", "unknown", "given")
AUGMENTS = ("none", "geometric", "all")
OPTIMISERS = ("adamw", "muon")


@dataclass(frozen=True)
class Training:
    """How to train: optimiser, schedule, precision and what a batch is made of."""

    updates: int = 10_000
    """Optimiser steps in all."""
    batch: int = 128
    """Instances in one update, over all processes."""
    recurrences: int = 32
    """Recurrences in one update (the paper's R)."""
    optimiser: str = "adamw"
    """`adamw`, or `muon`: that one for the blocks' matrices."""
    muon_start: int = 0
    """Updates before Muon takes over: until then all is AdamW's, at the rate of the network that reads images. In
    some trainings whose blocks learned fast from the start, two digits were never told apart (see docs/log.md)."""
    learning_rate: float = 1e-3
    image_rate: float = 1.0
    """Learning rate of the network that reads images, as a share of the others'; it is AdamW's in any case."""
    standardise: bool = False
    """Begin with vectors of images that have mean 0 and the deviation of embeddings over some training images."""
    warmup: int = 200
    """Updates over which the learning rate rises to its peak; it falls to zero as a cosine afterwards."""
    weight_decay: float = 0.1
    """On matrices: not on biases and layer norms, and on embeddings and positions only as `decay_embeddings` says."""
    decay_embeddings: float = 0.0
    """Weight decay of embeddings of tokens and positions, as a share of the matrices': with few 9x9 boards fewer are
    learned by heart with 1, and 16x16 ones that are learned in rounds; those learned whole were not learned at all with
    it (see docs/log.md)."""
    clip: float = 1.0
    """Largest norm of the gradient."""
    ema: float = 0.995
    """Decay of the averaged weights that are validated and kept; warmed up, since a slow average ruins short runs."""
    augment: str = "none"
    """Symmetries drawn for every instance: `none`, `geometric` (moving variables) or `all` (relabelling values too)."""
    distort: float = 0.0
    """How much images are turned, scaled, sheared and shifted for every batch (see `mull.data.distort`); 1 is usual."""
    bend: float = 0.0
    """How much they are bent besides; 1 is usual. Without `distort` it does nothing."""
    distort_warmup: int = 0
    """Updates over which both grow to that: what digits are is learned first, what they may look like later."""
    labelled_share: float | None = None
    """Share of a batch that is drawn from the labelled rows (see `Data.labelled_rows`); None: all rows alike."""
    constraint_start: int = 0
    """Updates before the constraint losses count: at first there is nothing worth constraining (see docs/losses.md)."""
    constraint_warmup: int = 0
    """Updates over which their weights then rise from 0."""
    attention_start: int = 0
    """Updates before the loss on attention counts: early on, attention does not know yet what to look for."""
    carry: float = 0.0
    """Share of the batch that keeps its puzzle and detached state for the next update, to train on late states."""
    carry_givens: bool = False
    """Carried slots keep what the model was sure of and had right, as givens, and start again, instead of their state:
    a model that is to solve in rounds (see `mull.predict`) learns what it will see there."""
    carry_turns: int = 1
    """Sets of slots, which take turns: what one carries on comes back after so many updates. Puzzles that come back at
    once, as givens that are carried on make them, are learned by heart while they last (see docs/log.md)."""
    reveal: float = 0.0
    """Share of the instances drawn that state more than they did, as labels tell it: a part of what was not given, from
    nothing to all of it, so that there is something to learn for a model that does not get far yet."""
    reset_solved: float = 0.2
    """Chance that a carried slot which was solved takes a new puzzle."""
    reset_unsolved: float = 0.067
    """The same for one that was not."""
    bf16: bool = True
    """Autocast to bfloat16, on GPUs; on CPUs that have products of it too, unless there are losses on constraints."""
    kernels: bool = True
    """Fused kernels where they can run (see `mull.kernels`): GPUs in bfloat16; CPUs without a loss on attention."""
    validate_every: int = 500
    """Updates between validations."""
    validate_steps: int = 64
    """Recurrences in a validation."""
    validate_rounds: int = 1
    """Rounds in a validation (see `mull.predict`), each of so many recurrences."""
    checkpoint_seconds: float = 60.0
    """Wall time between checkpoints."""
    minutes: float | None = None
    """Stop after this long with a checkpoint to resume from; the schedule does not change."""

    def __post_init__(self) -> None:
        if self.augment not in AUGMENTS:
            raise unknown("augmentation", self.augment, AUGMENTS)
        if self.optimiser not in OPTIMISERS:
            raise unknown("optimiser", self.optimiser, OPTIMISERS)
        whole = (
            "updates",
            "batch",
            "recurrences",
            "carry_turns",
            "validate_every",
            "validate_steps",
            "validate_rounds",
        )
        for name in whole:
            if getattr(self, name) < 1:
                raise InvalidInput(f"{name} is at least 1, not {getattr(self, name)}")
        for name in ("distort", "bend", "image_rate"):
            if getattr(self, name) < 0:
                raise InvalidInput(f"{name} is 0 or more, not {getattr(self, name)}")
        for name in ("carry", "reveal", "ema", "reset_solved", "reset_unsolved", "labelled_share"):
            if not 0 <= (getattr(self, name) or 0.0) <= 1:
                raise InvalidInput(f"{name} is between 0 and 1, not {getattr(self, name)}")
        if self.carry_givens and not self.carry:
            raise InvalidInput("carry_givens says what carried slots keep, and there are none: set carry")


@dataclass(frozen=True)
class Recipe:
    """One training run, whole: the same recipe and seed give the same run."""

    name: str
    description: str
    problem: Problem
    train: Data
    valid: Data
    test: Data
    model: ModelConfig = field(default_factory=ModelConfig)
    training: Training = field(default_factory=Training)
    loss: LossWeights = field(default_factory=LossWeights)
    seed: int = 0

    @property
    def steps(self) -> int:
        """Recurrences to solve with; chosen on validation data."""
        return self.training.validate_steps


def to_dict(recipe: Recipe) -> dict[str, Any]:
    """A recipe as JSON data."""
    return {**asdict(recipe), "problem": problem_to_dict(recipe.problem)}


def from_dict(data: dict[str, Any]) -> Recipe:
    """The recipe that `to_dict` described."""
    parts = {
        "problem": problem_from_dict(data["problem"]),
        "train": Data(**data["train"]),
        "valid": Data(**data["valid"]),
        "test": Data(**data["test"]),
        "model": ModelConfig(**data["model"]),
        "training": Training(**data["training"]),
        "loss": LossWeights(**data["loss"]),
    }
    return Recipe(**{**data, **parts})


def override(recipe: Recipe, settings: list[str]) -> Recipe:
    """The recipe with `key=value` settings applied; keys are field names, dotted where two parts share one."""
    paths = _paths(recipe)
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals:
            raise InvalidInput(f"a setting is key=value, not {setting!r}")
        matches = [path for path in paths if path == key or path.endswith("." + key)]
        if not matches:
            raise unknown("setting", key, [path.split(".")[-1] for path in paths])
        if len(matches) > 1:
            raise InvalidInput(f"{key!r} could mean any of {', '.join(matches)}")
        recipe = _set(recipe, matches[0].split("."), text)
    return recipe


def _paths(recipe: Recipe) -> list[str]:
    found = ["seed"]
    for part in ("train", "valid", "test", "model", "training", "loss"):
        found += [f"{part}.{f.name}" for f in fields(getattr(recipe, part))]
    return found


def _set(value: Any, path: list[str], text: str) -> Any:
    if len(path) > 1:
        return replace(value, **{path[0]: _set(getattr(value, path[0]), path[1:], text)})
    assert is_dataclass(value)
    return replace(value, **{path[0]: _read(text, get_type_hints(type(value))[path[0]], path[0])})  # type: ignore[type-var]


def _read(text: str, kind: Any, key: str) -> Any:
    """Read a setting's text as the field's type."""
    kinds = getattr(kind, "__args__", (kind,))
    if type(None) in kinds and text.lower() == "none":
        return None
    if bool in kinds:
        if text.lower() in ("true", "false", "1", "0", "yes", "no"):
            return text.lower() in ("true", "1", "yes")
        raise InvalidInput(f"{key} is true or false, not {text!r}")
    for candidate in (int, float, str):
        if candidate in kinds:
            try:
                return candidate(text)
            except ValueError:
                raise InvalidInput(f"{key} is a number ({candidate.__name__}), not {text!r}") from None
    raise InvalidInput(f"{key} cannot be set from the command line")
