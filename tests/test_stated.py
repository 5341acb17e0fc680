"""Problems stated in CPMpy: the compiled groups say what the model says, on every assignment."""

from __future__ import annotations

import doctest
import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mull import exact
from mull.constraints import UNKNOWN
from mull.count import count_solutions
from mull.errors import InvalidInput
from mull.own import load_problem
from mull.problem import Problem
from mull.problems import problem_from_dict, problem_to_dict
from mull.problems.stated import Group, Stated
from mull.testing import check_problem

cp = pytest.importorskip("cpmpy")
EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def stated(model: Any, variables: Any, name: str = "test", **options: Any) -> Stated:
    problem = Problem.from_cpmpy(model, variables, name, **options)
    assert isinstance(problem, Stated)
    return problem


def assignments(variables: Any) -> np.ndarray:
    """Every assignment (B, V), as values that start at 0."""
    flat = variables.ravel()
    return np.array(list(product(range(int(flat[0].ub - flat[0].lb) + 1), repeat=len(flat))))


def satisfied(model: Any, variables: Any) -> np.ndarray:
    """(B,): which assignments CPMpy itself says satisfy the model."""
    from cpmpy.expressions.utils import argval

    flat, found = variables.ravel(), []
    for values in assignments(variables).tolist():
        for variable, value in zip(flat, values, strict=True):
            variable._value = bool(value) if variable.is_bool() else variable.lb + value
        found.append(all(bool(argval(c)) for c in flatten(model.constraints)))
    return np.array(found)


def flatten(constraints: Any) -> list[Any]:
    return [c for part in constraints for c in (flatten(part) if isinstance(part, list | np.ndarray) else [part])]


def agrees(model: Any, variables: Any) -> Stated:
    """The compiled problem, which allows exactly what the model allows."""
    wanted = satisfied(model, variables)
    problem = stated(model, variables)
    values_BV = assignments(variables)
    inputs = np.zeros(values_BV.shape, dtype=np.uint8)
    assert (problem.check(inputs, values_BV) == wanted).all()
    return problem


def integers(count: int = 4, low: int = 0, high: int = 2) -> Any:
    return cp.intvar(low, high, shape=count, name="x")


STATEMENTS = {
    "all different, every value": (lambda x: cp.AllDifferent(x[:3]), True),
    "all different of two": (lambda x: cp.AllDifferent(x[:2]), True),
    "queens": (lambda x: cp.AllDifferent([x[i] + i for i in range(4)]), True),
    "all different except 0": (lambda x: cp.AllDifferentExcept0(x), True),
    "all equal": (lambda x: cp.AllEqual(x), True),
    "count": (lambda x: cp.Count(x, 1) >= 2, True),
    "count is not": (lambda x: cp.Count(x[:3], 1) != 2, True),
    "among": (lambda x: cp.Among(x, [0, 2]) == 3, True),
    "gcc": (lambda x: cp.GlobalCardinalityCount(x, [0, 1], [1, 2]), True),
    "sum of conditions": (lambda x: cp.sum(x == 1) <= 1, True),
    "number first": (lambda x: 2 > cp.sum(x == 1), True),  # noqa: SIM300
    "both sides": (lambda x: cp.sum(x[:2] == 1) == cp.sum(x[2:] == 0), True),
    "times two": (lambda x: 2 * cp.sum(x == 1) >= 3, True),
    "minus": (lambda x: 3 - cp.sum(x == 1) <= 1, True),
    "one variable twice": (lambda x: cp.sum([x[0] == 1, x[0] == 2, x[1] == 1]) == 1, True),
    "differ": (lambda x: x[0] != x[1], True),
    "at most": (lambda x: x[0] <= x[1], True),
    "apart": (lambda x: abs(x[0] - x[1]) >= 2, True),
    "implication": (lambda x: (x[0] == 1).implies(x[1] != 2), True),
    "two conditions": (lambda x: ((x[0] == 1) & (x[1] >= 1)).implies((x[2] == 0) | (x[3] == 1)), True),
    "two results": (lambda x: (x[0] == 1).implies((x[2] == 0) & (x[3] == 1)), True),
    "same variable twice in a clause": (lambda x: (x[0] == 1) | (x[0] == 2) | (x[1] == 0), True),
    "not all": (lambda x: ~((x[0] == 1) & (x[1] == 1)), True),
    "not an implication": (lambda x: ~(x[0] == 1).implies(x[1] == 1), True),
    "exactly one of two": (lambda x: cp.Xor([x[0] == 1, x[1] == 1]), True),
    "one value alone": (lambda x: x[0] != 1, True),
    "division": (lambda x: 2 // x[0] == 1, True),
    "division in a sum": (lambda x: (2 // x[0]) + x[1] <= 2, True),
    "sum of numbers": (lambda x: cp.sum(x) == 5, True),
    "implies a count": (lambda x: (x[0] == 1).implies(cp.sum(x[1:] == 2) <= 1), True),
    "implies an equal count": (lambda x: (x[0] == 1).implies(cp.Count(x, 1) == 2), True),
    "two imply a sum": (lambda x: ((x[0] == 1) & (x[1] > 0)).implies(cp.sum(x) >= 5), True),
    "implies what cannot be": (lambda x: (x[0] == 1).implies(cp.sum(x == 2) >= 5), True),
    "product": (lambda x: x[0] * x[1] * x[2] <= 2, True),
    "greatest": (lambda x: cp.max(x) == 2, True),
    "two rows differ": (lambda x: cp.any(x[:2] != x[2:]), True),
    "table": (lambda x: cp.Table(x[:2], [[0, 1], [2, 2]]), True),
    "always": (lambda x: x[0] >= 0, True),
}


@pytest.mark.parametrize("what", STATEMENTS)
def test_says_what_the_model_says(what: str) -> None:
    make, learned = STATEMENTS[what]
    x = integers()
    problem = agrees(cp.Model(make(x)), x)
    assert all(group.learned for group in problem.groups) == learned


@pytest.mark.parametrize("name", ["or", "sum", "alldifferent"])
def test_variables_may_be_called_anything(name: str) -> None:
    b = cp.cpm_array([cp.boolvar(name=name), cp.boolvar(name="other")])
    agrees(cp.Model(b[0] | b[1], ~b[0]), b)
    agrees(cp.Model(b[0], ~(b[0] & ~b[1]), ~cp.any([b[0] & False, ~b[0]])), b)


def test_what_cpmpy_stumbles_over_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def stumble(self: Any, **options: Any) -> bool:
        raise AttributeError("no such\nthing")

    monkeypatch.setattr(cp.Model, "solve", stumble)
    x = integers()
    with pytest.raises(InvalidInput, match="test: CPMpy cannot solve the model: no such thing"):
        stated(cp.Model(x[0] == 1), x)


def test_the_docstring_is_right() -> None:
    from mull.problems import stated as module

    assert doctest.testmod(module) == (0, 4)


def test_all_different_counts_exactly_where_values_are_as_many() -> None:
    x = integers(3)
    assert {(group.lower, group.upper) for group in stated(cp.Model(cp.AllDifferent(x)), x).groups} == {(1, 1)}
    assert {(group.lower, group.upper) for group in stated(cp.Model(cp.AllDifferent(x[:2])), x).groups} == {(0, 1)}


def test_bounds_over_the_same_atoms_meet() -> None:
    b = cp.boolvar(shape=3, name="b")
    problem = agrees(cp.Model(cp.sum(b) >= 1, cp.sum(b) <= 2), b)
    (group,) = problem.groups
    assert (group.atoms, group.lower, group.upper) == ((1, 3, 5), 1, 2)
    assert agrees(cp.Model(~cp.all(b), cp.any(b)), b).groups[0].atoms == group.atoms


def test_weighted_sums_are_checked_and_not_learned() -> None:
    x = cp.intvar(1, 4, shape=6, name="x")
    problem = agrees(cp.Model(cp.sum(x) == 12, 3 * x[0] - 2 * x[1] + x[2] <= 4), x)
    assert [group.learned for group in problem.groups] == [False, True] or not problem.groups[0].learned
    assert "checked, not in the loss: sum(x[0], x[1], x[2], x[3], x[4], x[5]) == 12" in problem.report()
    part = np.full((1, 6), UNKNOWN)
    part[0, :3] = 3
    assert problem.conflicts(np.zeros(6), part[0])  # 12 already, and three more to come
    puzzle = problem.parse("1.....")
    for values in exact.solutions(problem, puzzle, limit=3):
        assert problem.check(puzzle.inputs[None], values[None]).all()


def test_conditions_imply_sums_of_many() -> None:
    x = cp.intvar(0, 2, shape=9, name="x")
    problem = stated(cp.Model(((x[0] == 1) & (x[1] == 1)).implies(cp.sum(x) == 8)), x)
    assert len(problem.groups) == 2
    values = np.random.default_rng(0).integers(0, 3, (4000, 9))
    wanted = (values[:, 0] != 1) | (values[:, 1] != 1) | (values.sum(axis=1) == 8)
    assert (problem.check(np.zeros(values.shape), values) == wanted).all()


def test_many_clauses_are_checked_and_not_learned() -> None:
    b = cp.boolvar(shape=(2, 6), name="b")
    problem = stated(cp.Model(cp.any(b[0] != b[1])), b)
    assert len(problem.groups) == 32 and not any(group.learned for group in problem.groups)  # 64, two in a group
    assert count_solutions(problem, problem.parse("000000" + "00000.")) == 1
    assert len(exact.solutions(problem, problem.parse("000000" + "00000."), limit=3)) == 1


@st.composite
def models(draw: st.DrawFn) -> tuple[Any, Any]:
    """A random small model with its variables."""
    count, low = draw(st.integers(2, 5)), draw(st.integers(-1, 1))
    high = low + draw(st.integers(1, 2))
    x = cp.intvar(low, high, shape=count, name="x")
    some = st.lists(st.integers(0, count - 1), min_size=1, max_size=4)
    value, small = st.integers(low, high), st.integers(-1, 4)

    def literal() -> Any:
        variable, number = x[draw(st.integers(0, count - 1))], draw(value)
        return draw(st.sampled_from([variable == number, variable != number, variable >= number]))

    def compare(left: Any, right: Any) -> Any:
        return draw(
            st.sampled_from([left == right, left <= right, left >= right, left != right, left < right, left > right])
        )

    def rule() -> Any:
        kind = draw(st.integers(0, 7))
        if kind == 0:
            return cp.AllDifferent([x[i] for i in draw(some)])
        if kind == 1:
            return compare(cp.Count(x, draw(value)), draw(small))
        if kind == 2:
            return compare(cp.sum([literal() for _ in range(draw(st.integers(1, 4)))]), draw(small))
        if kind == 3:
            return compare(cp.sum([draw(st.integers(-2, 2)) * x[i] for i in draw(some)]), draw(small))
        if kind == 4:
            return cp.any([literal() for _ in range(draw(st.integers(1, 3)))])
        if kind == 6:
            return literal().implies(compare(cp.sum([literal() for _ in range(3)]), draw(small)))
        if kind == 5:
            return cp.all([literal(), literal()]).implies(literal())
        return ~compare(x[draw(st.integers(0, count - 1))], x[draw(st.integers(0, count - 1))])

    return cp.Model([rule() for _ in range(draw(st.integers(1, 3)))]), x


@settings(max_examples=80, deadline=None)
@given(models())
def test_random_models(model_and_variables: tuple[Any, Any]) -> None:
    model, x = model_and_variables
    if satisfied(model, x).any():
        problem = agrees(model, x)
        assert problem_from_dict(json.loads(json.dumps(problem_to_dict(problem)))) == problem
    else:
        with pytest.raises(InvalidInput, match=r"can never hold|has no solution"):
            stated(model, x)


def bad_statements() -> dict[str, tuple[Any, Any, str]]:
    x, y, b = integers(), cp.intvar(0, 3, name="y"), cp.boolvar(shape=3, name="b")
    mixed = cp.cpm_array([x[0], y])
    empty = cp.intvar(0, 2, shape=2, name="e")
    for variable in empty:
        variable.lb = 3
    large = cp.intvar(0, 9, shape=40, name="z")
    return {
        "no array": (cp.Model(), y, "are a CPMpy array"),
        "expressions": (cp.Model(), x + 1, "are a CPMpy array"),
        "no variables": (cp.Model(), x[:0], "at least one variable"),
        "two domains": (cp.Model(), mixed, "all variables have one domain, not 0..2 and 0..3"),
        "empty domain": (cp.Model(), empty, r"domain 3\.\.2 is empty"),
        "twice": (cp.Model(), cp.cpm_array([x[0], x[0]]), "stands twice"),
        "no model": (x[0] == 1, x, "is a cpmpy.Model, not Comparison"),
        "objective": (cp.Model(x[0] == 1, minimize=x[0]), x, "has an objective"),
        "unknown variable": (cp.Model(x[0] == y), x, "uses y, which is none of the variables"),
        "bounds": (cp.Model(cp.sum(b) >= 4), b, "can never hold"),
        "pigeons": (cp.Model(cp.AllDifferent(x)), x, "only 3 values"),
        "bounds together": (cp.Model(cp.sum(b) >= 2, cp.sum(b) <= 1), b, "can never hold together"),
        "false": (cp.Model(False), x, "can never hold"),
        "no solution": (cp.Model(x[0] < x[1], x[1] < x[2], x[2] < x[0]), x, "has no solution"),
        "too large": (cp.Model(cp.max(large) - cp.min(large) == 3), large, "ties 40 variables together"),
    }


@pytest.mark.parametrize("what", bad_statements())
def test_bad_statements_are_told_in_one_line(what: str) -> None:
    model, variables, message = bad_statements()[what]
    with pytest.raises(InvalidInput, match=message) as caught:
        stated(model, variables)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("options", [{"name": "a b"}, {"name": "../a"}, {"givens": (3, 9)}, {"givens": (2, 1)}])
def test_bad_options(options: dict[str, Any]) -> None:
    x = integers()
    with pytest.raises(InvalidInput):
        stated(cp.Model(), x, **options)


GROUP = {"label": "", "atoms": [0], "lower": 0, "upper": 1, "weights": [], "learned": True}


@pytest.mark.parametrize(
    "change",
    [
        {"atoms": [99]},
        {"atoms": [-1]},
        {"atoms": []},
        {"atoms": [0, 0]},
        {"atoms": "00"},
        {"atoms": [0.5]},
        {"lower": None},
        {"lower": 10**30},
        {"weights": [1, 2]},
        {"weights": [2]},
        {"learned": 1},
        {"label": 3},
        {"code": "import os"},
    ],
)
def test_a_file_cannot_state_nonsense(change: dict[str, Any]) -> None:
    data = {"class": "Stated", "title": "t", "shape": [2], "values": 2, "groups": [{**GROUP, **change}]}
    with pytest.raises(InvalidInput):
        problem_from_dict(data)
    assert problem_from_dict({**data, "groups": [GROUP]}).variables().count == 2


def test_text() -> None:
    wide = Stated("wide", (2, 2), values=12, first=-1)
    assert wide.write(wide.parse("-1 . 10 3")) == "-1 . 10 3"
    with pytest.raises(InvalidInput, match=r"cell 2 is '11': expected -1 to 10, or . for an empty cell"):
        wide.parse("1 11 . .")
    digits = Stated("digits", (2, 2), values=3, first=1)
    assert digits.write(digits.parse("10.3")) == "1..3"
    zero = Stated("zero", (2, 2), values=2)
    assert zero.given_values(zero.parse("10..")).tolist() == [1, 0, UNKNOWN, UNKNOWN]


EXAMPLE = {"binairo.py:binairo": {}, "rota.py:rota": {"corruptions_caught": False}}
EXAMPLE["latin_square.py:LatinSquare"] = {"corruptions_caught": False}


@pytest.mark.parametrize("name", EXAMPLE)
def test_examples_keep_the_contract(name: str) -> None:
    check_problem(load_problem(f"{EXAMPLES / name}"), instances=5, corruptions=256, **EXAMPLE[name])


def test_binairo_puzzles_have_one_solution() -> None:
    problem = load_problem(f"{EXAMPLES / 'binairo.py'}:binairo")
    for seed in range(12):
        instance = problem.generate(np.random.default_rng(seed))
        (only,) = exact.solutions(problem, instance)
        assert instance.solution is not None and (only == instance.solution).all()
        assert 14 <= instance.given.sum() <= 22
    assert count_solutions(problem, instance) == 1


def test_binairo_compiles_whole() -> None:
    problem = load_problem(f"{EXAMPLES / 'binairo.py'}:binairo")
    assert isinstance(problem, Stated)
    assert len(problem.groups) == 2 * (6 + 24) and all(group.learned for group in problem.groups)
    assert problem.report().endswith("checked, not in the loss: nothing")


def test_generates_what_is_only_checked() -> None:
    """A magic square: sums of different weights, over all different cells."""
    x = cp.intvar(1, 9, shape=(3, 3), name="x")
    lines = [*x, *x.T, [x[i, i] for i in range(3)], [x[i, 2 - i] for i in range(3)]]
    problem = stated(cp.Model(cp.AllDifferent(x), [cp.sum(line) == 15 for line in lines]), x, givens=(2, 4))
    for seed in range(5):
        instance = problem.generate(np.random.default_rng(seed))
        assert instance.solution is not None
        assert (instance.solution.reshape(3, 3).sum(axis=0) == 12).all()
        assert len(exact.solutions(problem, instance)) == 1


def test_no_solution_is_told_by_the_generator() -> None:
    never = (Group("a", (0, 2), 2, 2), Group("b", (1, 3), 1, 2))
    with pytest.raises(Exception, match="has no solution at all"):
        Stated("never", (2,), values=2, groups=never).generate(np.random.default_rng(0))
