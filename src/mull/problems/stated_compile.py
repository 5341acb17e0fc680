"""From a CPMpy model to a `Stated` problem: every constraint becomes groups of atoms with bounds, or is refused.

In this order, for each constraint (a conjunction is its parts):
1. AllDifferent over something of one variable each: every value at most, or exactly, once.
2. A clause of conditions on one variable each (or, not, ->): at least one of them is true.
3. A sum of things of one variable each (Count and Among too) against another: a count of atoms, if each adds one of two
   amounts that differ by the same; otherwise a weighted sum, which is checked and not in the loss.
   So is such a sum that conditions on one variable each imply.
4. Anything else over few variables, by trying every combination: clauses that forbid what it forbids. Where there are
   many, they are checked and not in the loss.
5. Global constraints that CPMpy decomposes without new variables: their parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import cpmpy
import numpy as np
from cpmpy.exceptions import CPMpyException
from cpmpy.expressions.core import BoolVal
from cpmpy.expressions.globalconstraints import GlobalConstraint
from cpmpy.expressions.utils import flatlist, is_num

from mull.constraints import BoolArray
from mull.errors import InvalidInput
from mull.problems.stated import Group, Stated
from mull.problems.stated_terms import Domain, Sum, clause, conjuncts, operator, separable, short

COMBINATIONS = 100_000
"""Most combinations of values that are tried for one constraint."""
LEARNED_CLAUSES = 32
"""A constraint that takes more clauses is checked, and not in the loss."""
MOST_CLAUSES = 4_096
SATISFIABLE_SECONDS = 20.0

Masks = dict[int, BoolArray]
"""Values (D,) of some variables."""


def from_cpmpy(
    model: Any, variables: Any, name: str, givens: tuple[int, int] | None = None, one_solution: bool = True
) -> Stated:
    """The problem that a CPMpy model states over an array of variables with one common domain."""
    try:
        domain = Domain(variables)
        if not isinstance(model, cpmpy.Model):
            raise InvalidInput(f"the statement is a cpmpy.Model, not {type(model).__name__}")
        if model.objective_ is not None:
            raise InvalidInput("the model has an objective, but a problem is constraints alone")
        groups = _merged(group for constraint in flatlist(model.constraints) for group in _compile(constraint, domain))
    except InvalidInput as error:
        raise InvalidInput(f"{name}: {error}") from None
    shape = tuple(int(size) for size in variables.shape)
    problem = Stated(name, shape, domain.values, domain.first, groups, givens, one_solution)
    try:
        solved = model.solve(time_limit=SATISFIABLE_SECONDS)
    except Exception as error:  # of many kinds; all of them mean that the statement is of no use
        raise InvalidInput(f"{name}: CPMpy cannot solve the model: {short(error)}") from error
    if not solved and model.status().exitstatus.name == "UNSATISFIABLE":
        raise InvalidInput(f"{name}: the model has no solution")
    return problem


def _compile(constraint: Any, domain: Domain) -> Iterator[Group]:
    """The groups of one constraint."""
    for part in conjuncts(constraint):
        if isinstance(part, bool | np.bool_ | BoolVal) or is_num(part):
            if not part:
                raise InvalidInput(f"{short(constraint)!r} can never hold")
            continue
        scope = domain.scope(part)
        for kind in (_all_different, _clause, _count, _implied, _by_table, _by_parts):
            groups = kind(part, scope, domain)
            if groups is not None:
                yield from groups
                break
        else:
            raise InvalidInput(
                f"{short(part)!r} ties {len(scope)} variables together, too many to try out, and is no AllDifferent, "
                "and no sum, count or clause of things of one variable each"
            )


def _all_different(part: Any, scope: list[int], domain: Domain) -> list[Group] | None:
    if operator(part) != "alldifferent":
        return None
    terms = [domain.unary(arg) for arg in part.args]
    known = [term for term in terms if term is not None]
    if len(known) < len(terms) or len(scope) < len(terms):
        return None
    images = np.unique([worth for _, worth in known])
    least = int(len(images) == len(terms))
    if len(images) < len(terms):
        raise InvalidInput(f"{short(part)!r} can never hold: there are only {len(images)} values")
    found = (_counted(short(part), {v: worth == image for v, worth in known}, least, 1) for image in images)
    return [group for group in found if group is not None]


def _clause(part: Any, scope: list[int], domain: Domain) -> list[Group] | None:
    masks = clause(part, domain)
    if masks is None:
        return None
    group = _counted(short(part), masks, 1, len(masks))
    return [] if group is None else [group]


def _count(part: Any, scope: list[int], domain: Domain) -> list[Group] | None:
    limited = _limited(part, domain)
    return None if limited is None else _bounded_sum(part, *limited, domain)


def _implied(part: Any, scope: list[int], domain: Domain) -> list[Group] | None:
    """Conditions that imply a bounded sum T.

    With n conditions, c of them true, T <= upper becomes T + (most - upper) * (c - n) <= upper: nothing is demanded
    where c < n. The same, with what T is at least, for T >= lower.
    """
    if operator(part) != "->":
        return None
    unless, limited = clause(part.args[0], domain, positive=False), _limited(part.args[1], domain)
    if unless is None or limited is None:
        return None
    total, lower, upper = limited
    groups: list[Group] = []
    if upper is not None:
        most = total.constant + sum(int(worth.max()) for worth in total.terms.values())
        relaxed = _relaxed(total, unless, max(most - upper, 0))
        groups += _bounded_sum(part, relaxed, None, upper, domain)
    if lower is not None:
        least = total.constant + sum(int(worth.min()) for worth in total.terms.values())
        relaxed = _relaxed(total, unless, min(least - lower, 0))
        groups += _bounded_sum(part, relaxed, lower, None, domain)
    return groups


def _relaxed(total: Sum, unless: Masks, factor: int) -> Sum:
    """The sum plus a factor times the number of conditions that hold (`unless` says where not), less their number."""
    relaxed = Sum(-factor * len(unless))
    relaxed.add(total)
    for variable, mask_D in unless.items():
        relaxed.add_term(variable, factor * (~mask_D).astype(np.int64))
    return relaxed


def _limited(part: Any, domain: Domain) -> tuple[Sum, int | None, int | None] | None:
    """A comparison of sums as one sum, and its least and greatest value (None: without)."""
    if operator(part) not in ("==", "<=", "<", ">=", ">"):
        return None
    left, right = (separable(side, domain) for side in part.args)
    if left is None or right is None:
        return None
    left.add(right, -1)
    lower = {"==": 0, ">=": 0, ">": 1}.get(part.name)
    upper = {"==": 0, "<=": 0, "<": -1}.get(part.name)
    return left, lower, upper


def _bounded_sum(part: Any, total: Sum, lower: int | None, upper: int | None, domain: Domain) -> list[Group]:
    """A sum within bounds (None: without) as a count where it is one, as few clauses, or with weights."""
    base = total.constant + sum(int(worth.min()) for worth in total.terms.values())
    worth = {variable: worth_D - worth_D.min() for variable, worth_D in total.terms.items() if np.ptp(worth_D)}
    most = sum(int(worth_D.max()) for worth_D in worth.values())
    low, high = (0 if lower is None else lower - base), (most if upper is None else upper - base)
    amounts = np.unique(list(worth.values()))
    if len(amounts) <= 2:
        amount = int(amounts[-1]) if len(amounts) else 1
        group = _counted(short(part), {v: w > 0 for v, w in worth.items()}, -(-low // amount), high // amount)
        return [] if group is None else [group]
    if low > most or high < 0 or low > high:
        raise InvalidInput(f"{short(part)!r} can never hold")
    if low <= 0 and high >= most:
        return []
    few = _by_table(part, domain.scope(part), domain, LEARNED_CLAUSES, 4_096)
    if few is not None:
        return few
    atoms = [(v * domain.values + int(d), int(w[d])) for v, w in sorted(worth.items()) for d in np.flatnonzero(w)]
    numbers, weights = zip(*atoms, strict=True)
    return [Group(short(part), numbers, max(low, 0), min(high, most), weights, learned=False)]


def _by_table(
    part: Any, scope: list[int], domain: Domain, most: int = MOST_CLAUSES, combinations: int = COMBINATIONS
) -> list[Group] | None:
    """Clauses that forbid what the constraint does not allow, from every combination of values."""
    if domain.values ** len(scope) > combinations:
        return None
    worth = domain.table(part, scope)
    if worth is None:
        return None
    forbidden = worth == 0
    if forbidden.all():
        raise InvalidInput(f"{short(part)!r} can never hold")
    boxes = []
    for box in _boxes(forbidden):
        boxes.append(box)
        if len(boxes) > most:
            return None
    groups = []
    for box in boxes:
        # Not all variables have a value in the box; those that may have any do not matter.
        masks = {variable: ~inside for variable, inside in zip(scope, box, strict=True) if not inside.all()}
        group = _counted(short(part), masks, 1, len(masks))
        assert group is not None
        groups.append(replace(group, learned=len(boxes) <= LEARNED_CLAUSES))
    return groups


def _boxes(forbidden: BoolArray) -> Iterator[list[BoolArray]]:
    """Products of sets of values that cover exactly what is forbidden, each as large as can be."""
    left = forbidden.copy()
    while left.any():
        corner = np.unravel_index(int(left.argmax()), left.shape)
        box = [np.arange(size) == place for size, place in zip(left.shape, corner, strict=True)]
        for axis, inside in enumerate(box):
            for value in np.flatnonzero(~inside):
                others = [np.array([value]) if a == axis else np.flatnonzero(m) for a, m in enumerate(box)]
                inside[value] = forbidden[np.ix_(*others)].all()
        left[np.ix_(*(np.flatnonzero(inside) for inside in box))] = False
        yield box


def _by_parts(part: Any, scope: list[int], domain: Domain) -> list[Group] | None:
    if not isinstance(part, GlobalConstraint):
        return None
    try:
        parts, defining = part.decompose()
        if defining:
            return None
        groups = [group for piece in flatlist(parts) for group in _compile(piece, domain)]
    except (InvalidInput, CPMpyException, NotImplementedError):
        return None
    return [replace(group, label=short(part)) for group in groups]


def _counted(label: str, masks: Masks, lower: int, upper: int) -> Group | None:
    """lower <= number of variables with a value in their mask <= upper; None if that always holds."""
    always = sum(bool(mask_D.all()) for mask_D in masks.values())
    open_masks = {v: mask_D for v, mask_D in sorted(masks.items()) if mask_D.any() and not mask_D.all()}
    count, lower, upper = len(open_masks), max(lower - always, 0), min(upper - always, len(open_masks))
    if lower > upper:
        raise InvalidInput(f"{label!r} can never hold")
    if lower == 0 and upper == count:
        return None
    values = len(next(iter(open_masks.values())))
    inside = tuple(v * values + int(d) for v, mask_D in open_masks.items() for d in np.flatnonzero(mask_D))
    outside = tuple(v * values + int(d) for v, mask_D in open_masks.items() for d in np.flatnonzero(~mask_D))
    # The same said of the other values; one of the two is chosen by their atoms alone, so that equal groups meet.
    if (len(outside), -sum(outside), outside) < (len(inside), -sum(inside), inside):
        return Group(label, outside, count - upper, count - lower)
    return Group(label, inside, lower, upper)


def _merged(groups: Iterator[Group]) -> tuple[Group, ...]:
    """Groups over the same atoms as one, within the bounds of all."""
    merged: dict[tuple[tuple[int, ...], tuple[int, ...]], Group] = {}
    for group in groups:
        key = group.atoms, group.weights
        known = merged.setdefault(key, group)
        if known is group:
            continue
        label = known.label if group.label in known.label else f"{known.label}; {group.label}"
        lower, upper = max(known.lower, group.lower), min(known.upper, group.upper)
        if lower > upper:
            raise InvalidInput(f"{label!r} can never hold together")
        merged[key] = Group(label, group.atoms, lower, upper, group.weights, known.learned or group.learned)
    return tuple(merged.values())
