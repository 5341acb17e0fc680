"""How often a model looks at an instance, and how the looks differ: by side, by noise, in rounds and in tries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mull.constraints import UNKNOWN
from mull.errors import InvalidInput
from mull.problem import Problem

PARTS = 4
"""Parts of what an answer adds that are taken back, one at a time, to see whether the model finds them again; as many
of what the inputs state."""
CHECKS = 2 * PARTS
"""Calls of the model that this takes."""


@dataclass(frozen=True)
class Looks:
    """How often each instance is looked at, and how the looks differ: once and plainly, if nothing else is said."""

    sides: int = 1
    """As so many symmetries show it."""
    distort: float = 0.0
    """How much images are turned and shifted besides, on all sides but the first."""
    starts: int = 1
    """From each side so often: the first time as it is, then from states with noise."""
    rounds: int = 1
    """So many times over; what the model is surest of is given the next time."""
    tries: int = 1
    """All of it at most so often, each time in another way (`Try`); the answer counts that supports itself best."""

    def __post_init__(self) -> None:
        if min(self.sides, self.starts, self.rounds, self.tries) < 1:
            raise InvalidInput(f"there is at least 1 side, start, round and try, not {self}")
        if self.distort and self.sides == 1:
            raise InvalidInput("--distort changes what other sides show: add --sides")

    @property
    def count(self) -> int:
        """Looks in one round."""
        return self.sides * self.starts

    @property
    def at_once(self) -> bool:
        """Whether one pass is enough, which may be looked at after several numbers of recurrences."""
        return self.rounds == self.tries == 1

    @property
    def calls(self) -> int:
        """Calls of the model in all, at most; twice the rounds with half the recurrences count as the rounds."""
        return self.count * self.rounds if self.tries == 1 else self.tries * (self.count * self.rounds + CHECKS)

    def about(self) -> dict[str, float]:
        """What differs from a single plain look, by name: for result files."""
        found = {"sides": self.sides, "starts": self.starts, "rounds": self.rounds, "tries": self.tries}
        distort = {"distort": self.distort} if self.sides > 1 else {}
        return {name: number for name, number in found.items() if number > 1} | distort

    def told(self) -> str:
        """The same in words."""
        parts = [f"from {self.sides} sides"] if self.sides > 1 else []
        parts += [f"images distorted by {self.distort:g}"] if self.distort else []
        parts += [f"{self.starts} starts"] if self.starts > 1 else []
        parts += [f"{self.rounds} rounds"] if self.rounds > 1 else []
        parts += [f"{self.tries} tries"] if self.tries > 1 else []
        return ", ".join(parts)


ONE = Looks()


@dataclass(frozen=True)
class Try:
    """What is otherwise in a try than in the first one, besides noise on the states that it starts from."""

    recurrences: float = 1.0
    """So many times as many."""
    rounds: int = 1
    """So many times as many, where there are several."""
    shuffle: float = 0.0
    """Gumbel noise on the log odds by which the values are chosen that a round gives."""
    hide: float = 0.0
    """Chance of each stated value to be left out of a round."""

    def steps(self, steps: int) -> int:
        """Its recurrences, where the first try has `steps`."""
        return max(1, int(steps * self.recurrences))

    def times(self, rounds: int) -> int:
        """Its rounds, where the first try has `rounds`."""
        return rounds if rounds == 1 else rounds * self.rounds


FIRST = Try()
KINDS = (Try(recurrences=1.5), Try(shuffle=1.0), Try(recurrences=0.5, rounds=2, hide=0.05), Try(hide=0.05))
"""What is otherwise in the tries after the first, in turn: what one kind hardly ever gets right another may, and which
is best differs from problem to problem (docs/log.md)."""


def kind(attempt: int) -> Try:
    """What is otherwise in a try, by its number from 0."""
    return KINDS[(attempt - 1) % len(KINDS)] if attempt else FIRST


ROUNDS = 16
"""Fewest rounds of a try: rounds bring more than starts do (docs/own_problem.md)."""


def looks_within(problem: Problem, calls: int) -> Looks:
    """All looks that so many calls of the model allow: rounds first, where there can be several, then tries."""
    if not can_give(problem):
        return Looks(starts=calls)
    tries = max(1, calls // (ROUNDS + CHECKS))
    return Looks(rounds=calls // tries - (CHECKS if tries > 1 else 0), tries=tries)


def can_give(problem: Problem) -> bool:
    """Whether inputs can state values that were not given at first."""
    variables, shape = problem.variables().count, problem.input_kind().shape
    return problem.give(np.zeros((0, variables, *shape), np.uint8), np.full((0, variables), UNKNOWN)) is not None
