"""The vectorised cardinality against brute force in plain Python."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.constraints import UNKNOWN, Cardinality, atoms_of, each_value_once, fixed_values


class Case(NamedTuple):
    constraint: Cardinality
    values_BV: np.ndarray
    lower_BG: np.ndarray
    upper_BG: np.ndarray


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Small random cardinalities with ragged groups and bounds by instance, and random partial answers."""
    variables, values = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    groups, batch = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    atom = st.integers(0, variables * values - 1)
    ragged = [draw(st.lists(atom, unique=True, max_size=6)) for _ in range(groups)]
    width = max(map(len, ragged)) + draw(st.integers(0, 1))
    atoms = np.array([draw(st.permutations(group + [-1] * (width - len(group)))) for group in ragged], dtype=np.int64)
    limits = st.lists(st.integers(0, 4), min_size=groups, max_size=groups)
    lower, upper = (np.array([draw(limits) for _ in range(batch)]) for _ in range(2))
    value = st.integers(UNKNOWN, values - 1)
    answers = [draw(st.lists(value, min_size=variables, max_size=variables)) for _ in range(batch)]
    constraint = Cardinality(
        values, atoms.reshape(groups, width), bounds=lambda inputs: (inputs[..., 0], inputs[..., 1])
    )
    return Case(constraint, np.array(answers), lower, upper)


def satisfied(answer: tuple[int, ...], group: np.ndarray, values: int, lower: int, upper: int) -> bool:
    """Count the true atoms one by one."""
    true = sum(answer[atom // values] == atom % values for atom in group.tolist() if atom >= 0)
    return bool(lower <= true <= upper)


def completions(answer: list[int], values: int) -> list[tuple[int, ...]]:
    return list(product(*(range(values) if value == UNKNOWN else (value,) for value in answer)))


@given(cases())
def test_a_group_is_broken_exactly_when_no_completion_satisfies_it(case: Case) -> None:
    constraint = case.constraint
    broken = constraint.violations(case.values_BV, np.stack([case.lower_BG, case.upper_BG], axis=-1))
    assert broken.shape == case.lower_BG.shape
    for b, g in np.ndindex(broken.shape):
        bounds = case.lower_BG[b, g], case.upper_BG[b, g]
        possible = any(
            satisfied(whole, constraint.atoms[g], constraint.values, *bounds)
            for whole in completions(case.values_BV[b].tolist(), constraint.values)
        )
        assert broken[b, g] == (not possible)


@given(cases(), st.integers(0, 3), st.integers(0, 3))
def test_fixed_bounds_equal_the_same_bounds_by_instance(case: Case, lower: int, upper: int) -> None:
    fixed = Cardinality(case.constraint.values, case.constraint.atoms, lower, upper)
    same = np.broadcast_to([lower, upper], (*case.lower_BG.shape, 2))
    np.testing.assert_array_equal(
        fixed.violations(case.values_BV, np.empty(0)), case.constraint.violations(case.values_BV, same)
    )


@given(cases())
def test_counts_and_scopes_against_loops(case: Case) -> None:
    constraint = case.constraint
    counts = constraint.counts(atoms_of(case.values_BV, constraint.values))
    for b, g in np.ndindex(counts.shape):
        atoms = [atom for atom in constraint.atoms[g].tolist() if atom >= 0]
        assert counts[b, g] == sum(case.values_BV[b, a // constraint.values] == a % constraint.values for a in atoms)
        assert constraint.scopes()[g].tolist() == sorted({atom // constraint.values for atom in atoms})
    assert constraint.size == len(constraint.atoms)


@given(cases())
def test_adjacency_is_who_shares_a_group(case: Case) -> None:
    variables = case.values_BV.shape[1]
    adjacent = case.constraint.adjacency(variables)
    scopes = [set(scope.tolist()) for scope in case.constraint.scopes()]
    for i, j in product(range(variables), repeat=2):
        assert adjacent[i, j] == (i == j or any({i, j} <= scope for scope in scopes))


def test_answers_of_a_batch_do_not_touch_each_other() -> None:
    rng = np.random.default_rng(0)
    constraint = each_value_once(np.arange(9).reshape(3, 3), 3, "row")
    values_BV = rng.integers(-1, 3, (50, 9))
    alone = np.concatenate([constraint.violations(row[None], row[None]) for row in values_BV])
    np.testing.assert_array_equal(constraint.violations(values_BV, values_BV), alone)


def test_an_unknown_variable_counts_once_however_many_of_its_atoms_a_group_has() -> None:
    two_of_one_variable = Cardinality(3, np.array([[0, 1]]), lower=2, upper=2)
    assert two_of_one_variable.violations(np.array([[UNKNOWN]]), np.empty(1)).all()
    some_value_is_certain = Cardinality(2, np.array([[0, 1]]), lower=0, upper=0)
    assert some_value_is_certain.violations(np.array([[UNKNOWN]]), np.empty(1)).all()


def test_each_value_once_names_what_is_broken() -> None:
    constraint = each_value_once(np.array([[0, 1], [1, 2]]), 2, "pair")
    broken = constraint.violations(np.array([[0, 0, 1]]), np.empty(1))[0]
    assert [constraint.label(g) for g in np.flatnonzero(broken)] == ["pair 1 holds 1 once", "pair 1 holds 2 once"]


def test_a_group_without_a_label_has_a_number() -> None:
    assert Cardinality(2, np.array([[0], [1]])).label(1) == "group 1"


@pytest.mark.parametrize(("values", "broken"), [([0, 1], False), ([0, 2], False), ([1, 1], True), ([-1, 1], False)])
def test_fixed_values_holds_the_givens_and_nothing_else(values: list[int], broken: bool) -> None:
    constraint = fixed_values(2, 3, lambda tokens: tokens - 1)
    assert constraint.violations(np.array([values]), np.array([[1, 0]])).any() == broken
