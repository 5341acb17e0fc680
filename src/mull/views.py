"""Instances seen from several sides: as random symmetries of the problem show them, images turned a little besides.

A model that was trained on all of them solves some instances better from one side than from another. The answer that
it is surest of, from whichever side, is right more often than any other; no rule of the problem is looked at.

Shapes: B batch, V variable, D value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mull.constraints import IntArray
from mull.data.streams import stream
from mull.data.warp import warp
from mull.errors import InvalidInput
from mull.problem import Images, Problem


@dataclass(frozen=True)
class View:
    """One symmetry for each instance: where each variable's content comes from, and what its values are called."""

    source_BV: IntArray
    rename_BD: IntArray | None = None
    """The new name of each value, where values may be relabelled."""
    value_tokens: IntArray | None = None
    drawn_6BV: NDArray[np.float32] | None = None
    """How each image is turned, scaled, sheared and shifted (see `mull.data.warp`), where it is."""

    def show(self, inputs: NDArray[Any], rows: slice | IntArray) -> NDArray[Any]:
        """Some instances' inputs (B, V, ...) from this side."""
        moved = inputs[np.arange(len(inputs))[:, None], self.source_BV[rows]]
        if self.drawn_6BV is not None:
            flat = moved.reshape(-1, *moved.shape[2:])
            return warp(flat, self.drawn_6BV[:, rows].reshape(6, -1)).reshape(moved.shape)
        if self.rename_BD is None or self.value_tokens is None:
            return moved
        tokens = self.value_tokens
        table = np.tile(np.arange(tokens.max() + 1, dtype=inputs.dtype), (len(inputs), 1))
        table[:, tokens] = tokens[self.rename_BD[rows]]
        return np.take_along_axis(table, moved.astype(np.int64), axis=1)

    def back(self, answers_BV: IntArray, rows: slice | IntArray) -> IntArray:
        """Answers to what was shown as answers to the instances themselves."""
        if self.rename_BD is not None:
            answers_BV = np.take_along_axis(self.rename_BD[rows].argsort(axis=1), answers_BV, axis=1)
        found = np.empty_like(answers_BV)
        np.put_along_axis(found, self.source_BV[rows], answers_BV, axis=1)
        return found

    def back_shares(self, shares_BVD: NDArray[Any], rows: slice | IntArray) -> NDArray[Any]:
        """The same for how likely each value is."""
        if self.rename_BD is not None:
            shares_BVD = np.take_along_axis(shares_BVD, self.rename_BD[rows][:, None], axis=2)
        found = np.empty_like(shares_BVD)
        np.put_along_axis(found, self.source_BV[rows][:, :, None], shares_BVD, axis=1)
        return found


def views(problem: Problem, instances: int, count: int, distort: float = 0.0) -> list[View]:
    """`count` sides to see each of so many instances from; always the same. `distort` is how much images change."""
    if distort and not isinstance(problem.input_kind(), Images):
        raise InvalidInput(f"{problem.name} has no images to distort")
    return [view(problem, instances, number, distort) for number in range(count)]


def view(problem: Problem, instances: int, number: int, distort: float = 0.0) -> View:
    """A random symmetry for each instance, the same for the same number; images are distorted, if there are any."""
    symmetries = problem.symmetries()
    if symmetries is None:
        raise InvalidInput(f"{problem.name} states no symmetries: there is one side to see it from")
    rng = stream(0, "view", number)
    source_BV: IntArray | None = None
    for table in symmetries.permutations:
        step_BV = table[rng.integers(len(table), size=instances)]
        source_BV = step_BV if source_BV is None else np.take_along_axis(source_BV, step_BV, axis=1)
    assert source_BV is not None
    if distort and isinstance(problem.input_kind(), Images):
        drawn = rng.random((6, *source_BV.shape), np.float32) * 2 - 1
        return View(source_BV, drawn_6BV=distort * drawn)
    if symmetries.value_tokens is None:
        return View(source_BV)
    renamed = rng.random((instances, problem.variables().values)).argsort(axis=1)
    return View(source_BV, renamed, symmetries.value_tokens)


def certainty(logits_BVD: NDArray[Any]) -> NDArray[np.float32]:
    """(B,): the logarithm of how likely the most likely values are, all together."""
    above = logits_BVD.astype(np.float32) - logits_BVD.max(axis=-1, keepdims=True)
    sure: NDArray[np.float32] = -np.log(np.exp(above).sum(axis=-1)).sum(axis=-1)
    return sure
