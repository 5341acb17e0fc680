"""Values of the solution that inputs state besides those they came with, as givens; in training alone.

Shapes: B batch, V variable, D value.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from mull.constraints import UNKNOWN, IntArray
from mull.errors import InvalidInput
from mull.problem import Batch, NumpyBatch, Problem


def tokens_of_values(problem: Problem, data: NumpyBatch) -> IntArray:
    """(D,): the input token that states each value, UNKNOWN for a value that no input states."""
    row, variable = np.argwhere(~data.given)[0]
    values_BV = np.full((problem.variables().values, problem.variables().count), UNKNOWN)
    values_BV[:, variable] = np.arange(len(values_BV))
    before = np.repeat(data.inputs[row : row + 1], len(values_BV), axis=0)
    inputs = problem.give(before, values_BV)
    if inputs is None:
        raise InvalidInput(f"carry_givens and reveal are for inputs that can state values, as {problem.name}'s cannot")
    tokens = inputs[:, variable].astype(np.int64)
    return np.where(tokens == before[:, variable], UNKNOWN, tokens)


def stated(batch: Batch[Tensor], which_BV: Tensor, tokens_D: Tensor) -> Batch[Tensor]:
    """The batch with the solution of these variables as givens, as far as labels tell it and inputs can state it."""
    token_BV = tokens_D[batch.solution.clamp(min=0)]
    new_BV = which_BV & batch.labelled & ~batch.given & (token_BV != UNKNOWN)
    inputs = torch.where(new_BV, token_BV.to(batch.inputs.dtype), batch.inputs)
    return replace(batch, inputs=inputs, given=batch.given | new_BV)


def reveal(batch: Batch[Tensor], share: float, tokens_D: Tensor, generator: torch.Generator | None) -> Batch[Tensor]:
    """The batch in which a share of the instances states a part of what it did not, from nothing to all of it."""
    device = batch.solution.device
    chance_B2 = torch.rand(len(batch), 2, generator=generator, device=device)
    part_B = torch.where(chance_B2[:, 0] < share, chance_B2[:, 1], 0.0)
    chance_BV = torch.rand(batch.solution.shape, generator=generator, device=device)
    return stated(batch, chance_BV < part_B[:, None], tokens_D)
