"""The models that a server offers, by name; each is loaded when it is first asked for, and then stays."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from mull.constraints import Cardinality, Weighted
from mull.errors import InvalidInput, unknown
from mull.hub import Card, find_model, read_card, shipped
from mull.runtime import FloatArray, Runtime, load_runtime
from mull.serve import attention
from mull.serve.engine import Engine
from mull.serve.layout import layout
from mull.serve.schemas import ModelOut
from mull.serve.settings import Settings
from mull.solve import Solver

REMEMBERED = 8
"""Puzzles whose states are kept for the attention view."""


class UnknownModelError(InvalidInput):
    """No model has this name."""


class Catalogue:
    """Names and files of models, their cards, and what of them is loaded."""

    def __init__(self, files: Mapping[str, Path], settings: Settings) -> None:
        self._files, self._settings = dict(files), settings
        self.cards: dict[str, Card] = {name: read_card(path) for name, path in self._files.items()}
        self.engines: dict[str, Engine] = {}
        self._heads: dict[str, attention.Heads] = {}
        self._lock = threading.Lock()
        self.states = lru_cache(maxsize=REMEMBERED)(self._states)

    def card(self, name: str) -> Card:
        """A model's card; raises UnknownModelError with a suggestion."""
        if name not in self.cards:
            raise UnknownModelError(str(unknown("model", name, self.cards)))
        return self.cards[name]

    def describe(self) -> list[ModelOut]:
        """All models, for clients."""
        return [
            ModelOut(
                name=name,
                problem=card.problem.name,
                description=(type(card.problem).__doc__ or "").strip().splitlines()[0],
                text_format=type(card.problem).text_format,
                parameters=card.parameters,
                steps=card.steps,
                checked=bool(card.problem.rules),
                exact=all(isinstance(rule, Cardinality | Weighted) for rule in card.problem.rules),
                layout=layout(card.problem),
            )
            for name, card in self.cards.items()
        ]

    def engine(self, name: str) -> Engine:
        """A model ready to solve."""
        self.card(name)
        with self._lock:
            if name not in self.engines:
                solver = Solver(load_runtime(self._files[name], precision="auto"), exact=False)
                self.engines[name] = Engine(solver, self._settings.queue)
            return self.engines[name]

    def attention(self, name: str, inputs: np.ndarray[Any, Any], step: int, cell: int) -> FloatArray:
        """(N, V): where a variable looks in a recurrence, by head."""
        with self._lock:
            if name not in self._heads:
                self._heads[name] = attention.Heads(self._files[name])
        key = (name, inputs.shape, str(inputs.dtype), inputs.tobytes())
        many = min(max(step, self.card(name).steps), -(-step // 64) * 64)  # what the page will ask for next
        states, context = self.states(*key, many)
        return self._heads[name].maps(states[step - 1], context, cell)

    def close(self) -> None:
        """Stop all threads."""
        for engine in self.engines.values():
            engine.close()

    def _states(
        self, name: str, shape: tuple[int, ...], dtype: str, content: bytes, steps: int
    ) -> tuple[FloatArray, FloatArray | None]:
        runtime: Runtime = self.engine(name).solver.runtime
        return attention.states(runtime, np.frombuffer(content, dtype).reshape(shape), steps)


def find_models(wanted: list[str]) -> dict[str, Path]:
    """All models that ship, then those files that the operator names; a file's name is its model's."""
    found = shipped()
    for name in wanted:
        path = find_model(name)
        found[path.stem] = path
    return found
