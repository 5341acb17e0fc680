"""check_problem passes what keeps the contract, and says what breaks it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from mull.constraints import UNKNOWN, BoolArray, Constraint, IntArray
from mull.picture import FloatArray, Picture, Rect
from mull.problem import Instance, Problem, Symmetries, Tokens, Variables
from mull.problems import get_problem
from mull.problems.TEMPLATE import LatinSquare
from mull.testing import check_problem


@pytest.mark.parametrize("name", ["sudoku-4x4", "sudoku"])
def test_sudoku_keeps_the_contract(name: str) -> None:
    check_problem(get_problem(name))


@pytest.mark.parametrize("side", [4, 5, 9])
def test_the_template_keeps_the_contract(side: int) -> None:
    check_problem(LatinSquare(side))


class ForgetsGivens(LatinSquare):
    def constraints(self) -> tuple[Constraint, ...]:
        return super().constraints()[:2]


class OnlyGivens(LatinSquare):
    """Whatever keeps the givens is an answer."""

    def constraints(self) -> tuple[Constraint, ...]:
        return super().constraints()[2:]


class WrongConstraint(LatinSquare):
    def constraints(self) -> tuple[Constraint, ...]:
        first, *rest = super().constraints()
        return (replace(first, lower=2, upper=2), *rest)  # type: ignore[type-var]


class OutsideVariables(LatinSquare):
    def constraints(self) -> tuple[Constraint, ...]:
        return LatinSquare(self.side + 1).constraints()


class NotDeterministic(LatinSquare):
    def generate(self, rng: np.random.Generator) -> Instance:
        return super().generate(np.random.default_rng())


class IgnoresTheRng(LatinSquare):
    def generate(self, rng: np.random.Generator) -> Instance:
        return super().generate(np.random.default_rng(0))


class NoSolution(LatinSquare):
    def generate(self, rng: np.random.Generator) -> Instance:
        return replace(super().generate(rng), solution=None)


class WrongSolution(LatinSquare):
    def generate(self, rng: np.random.Generator) -> Instance:
        made = super().generate(rng)
        solution = np.array(made.solution)
        place = np.flatnonzero(~made.given)[0]
        solution[place] = (solution[place] + 1) % self.side
        return replace(made, solution=solution)


class GivensDiffer(LatinSquare):
    def given_values(self, instance: Instance) -> IntArray:
        known = super().given_values(instance)
        return np.where(known == UNKNOWN, UNKNOWN, (known + 1) % self.side)


class SmallVocabulary(LatinSquare):
    def input_kind(self) -> Tokens:
        return Tokens(vocabulary=self.side)


class OtherShape(LatinSquare):
    def generate(self, rng: np.random.Generator) -> Instance:
        made = super().generate(rng)
        return replace(made, inputs=made.inputs.reshape(self.side, self.side))


class BadRoundTrip(LatinSquare):
    def parse(self, text: str) -> Instance:
        return super().parse(text[::-1])


class BadErrors(LatinSquare):
    def parse(self, text: str) -> Instance:
        int(text)
        return super().parse(text)


class TakesAnything(LatinSquare):
    def parse(self, text: str) -> Instance:
        return super().parse(text[: self.side**2].replace("?", ".").ljust(self.side**2, "."))


class TwoLines(LatinSquare):
    def write_answer(self, values: IntArray) -> str:
        return self.render(values)


class DrawsAlike(LatinSquare):
    def render(self, values: IntArray, given: BoolArray | None = None) -> str:
        return "a square"


class BlankPicture(LatinSquare):
    def picture(
        self,
        instance: Instance,
        values: IntArray,
        sure: FloatArray | None = None,
        wrong: BoolArray | None = None,
    ) -> Picture:
        return Picture(1, 1, ())


class PicturesAlike(BlankPicture):
    def picture(
        self,
        instance: Instance,
        values: IntArray,
        sure: FloatArray | None = None,
        wrong: BoolArray | None = None,
    ) -> Picture:
        return Picture(1, 1, (Rect(0, 0, 1, 1),))


class GrowingPicture(LatinSquare):
    def picture(
        self,
        instance: Instance,
        values: IntArray,
        sure: FloatArray | None = None,
        wrong: BoolArray | None = None,
    ) -> Picture:
        return replace(super().picture(instance, values, sure, wrong), height=int(values.sum()))


class WrongSymmetry(LatinSquare):
    def symmetries(self) -> Symmetries:
        cells = self.variables().index.ravel()
        swapped = cells.copy()
        swapped[[0, 1]] = swapped[[1, 0]]
        return Symmetries((swapped[None],))


class NoPermutation(LatinSquare):
    def symmetries(self) -> Symmetries:
        return Symmetries((np.zeros((1, self.side**2), dtype=np.int64),))


class CoarseSymmetry(LatinSquare):
    def canonical(self, instance: Instance) -> bytes:
        return Problem.canonical(self, instance)


BROKEN = [
    (ForgetsGivens, "contradicts the givens"),
    (OnlyGivens, "accepts a solution with one variable changed"),
    (WrongConstraint, "solution does not satisfy"),
    (OutsideVariables, "variables outside"),
    (NotDeterministic, "not deterministic"),
    (IgnoresTheRng, "same instance for every rng"),
    (NoSolution, "with its solution"),
    (WrongSolution, "solution does not satisfy"),
    (GivensDiffer, "given_values.* and solution differ"),
    (SmallVocabulary, "tokens must be in"),
    (OtherShape, "inputs have shape"),
    (BadRoundTrip, "other inputs"),
    (BadErrors, "must raise InvalidInput, not ValueError"),
    (TakesAnything, "must raise InvalidInput"),
    (TwoLines, "one line"),
    (DrawsAlike, "draws two answers alike"),
    (BlankPicture, "blank"),
    (PicturesAlike, "shows two answers alike"),
    (GrowingPicture, "another size"),
    (WrongSymmetry, "turns a solution into a wrong answer"),
    (NoPermutation, "no permutation"),
    (CoarseSymmetry, "canonical.* differs"),
]


class InARow(LatinSquare):
    """No board, and thus without a picture."""

    def variables(self) -> Variables:
        return Variables((self.side**2,), values=self.side)

    def constraints(self) -> tuple[Constraint, ...]:
        return LatinSquare(self.side).constraints()

    def symmetries(self) -> None:  # type: ignore[override]
        return None


def test_a_problem_may_have_no_picture() -> None:
    check_problem(InARow(side=4), instances=2)


@pytest.mark.parametrize(("broken", "message"), BROKEN, ids=lambda value: getattr(value, "__name__", ""))
def test_broken_problems_fail(broken: type[LatinSquare], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_problem(broken(side=4), instances=4)


def test_only_frozen_dataclasses_are_problems() -> None:
    @dataclass
    class Thawed(Problem): ...

    Thawed.__abstractmethods__ = frozenset()
    with pytest.raises(AssertionError, match="frozen dataclass"):
        check_problem(Thawed())


def test_splits_that_overlap_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    from mull.data import generated

    honest = generated.generate
    monkeypatch.setattr(
        generated, "generate", lambda problem, split, count, seed=0: honest(problem, "train", count, seed)
    )
    with pytest.raises(AssertionError, match="train and valid splits share"):
        check_problem(LatinSquare(side=4), instances=2)


def test_legal_corruptions_can_be_allowed() -> None:
    with pytest.raises(AssertionError, match="corruptions_caught=False"):
        check_problem(OnlyGivens(side=4), instances=2)
    check_problem(OnlyGivens(side=4), instances=2, corruptions_caught=False)
