"""Reading CPMpy expressions: what they are worth for each value of their variables, as arrays.

Shapes: D value, A variable of an expression.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from cpmpy.exceptions import CPMpyException
from cpmpy.expressions.core import BoolVal, Expression
from cpmpy.expressions.utils import argval, is_num
from cpmpy.expressions.variables import NDVarArray, _BoolVarImpl, _IntVarImpl, _NumVarImpl
from cpmpy.transformations.get_variables import get_variables

from mull.constraints import BoolArray, IntArray
from mull.errors import InvalidInput

NO_ARRAY = "the variables are a CPMpy array: intvar(low, high, shape=...) or boolvar(shape=...)"


class Domain:
    """The variables of a statement by number, and the values that all of them have."""

    def __init__(self, variables: Any) -> None:
        if not isinstance(variables, NDVarArray):
            raise InvalidInput(NO_ARRAY)
        self.variables = list(variables.ravel())
        if not self.variables:
            raise InvalidInput("a problem needs at least one variable")
        if not all(type(variable) in (_BoolVarImpl, _IntVarImpl) for variable in self.variables):
            raise InvalidInput(NO_ARRAY)
        bounds = sorted({(int(variable.lb), int(variable.ub)) for variable in self.variables})
        if len(bounds) > 1:
            ranges = " and ".join(f"{low}..{high}" for low, high in bounds[:2])
            raise InvalidInput(f"all variables have one domain, not {ranges}: state narrower ones as constraints")
        self.first, last = bounds[0]
        self.values = last - self.first + 1
        if self.values < 1:
            raise InvalidInput(f"the variables' domain {self.first}..{last} is empty")
        if len(self._numbers) < len(self.variables):
            raise InvalidInput("a variable stands twice in the array")

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {variable.name: number for number, variable in enumerate(self.variables)}

    def scope(self, expression: Any) -> list[int]:
        """The numbers of an expression's variables; raises InvalidInput if there are others in it."""
        found = get_variables(expression)
        for variable in found:
            if variable.name not in self._numbers:
                raise InvalidInput(f"{short(expression)!r} uses {variable.name}, which is none of the variables")
        return sorted(self._numbers[variable.name] for variable in found)

    def table(self, expression: Any, scope: list[int]) -> IntArray | None:
        """What an expression is worth (D, D, ...) for each combination of values; None if that is not always defined.

        A condition is always defined: CPMpy takes it as false where something in it is not.
        """
        worth = []
        for values in product(range(self.values), repeat=len(scope)):
            for number, value in zip(scope, values, strict=True):
                variable = self.variables[number]
                variable._value = bool(value) if type(variable) is _BoolVarImpl else self.first + value
            try:
                worth.append(argval(expression))  # as the solver understands what is not defined
            except (CPMpyException, ArithmeticError, IndexError):
                worth.append(None)
        if expression.is_bool():
            worth = [bool(value) for value in worth]
        if any(value is None for value in worth):
            return None
        return np.array(worth, dtype=np.int64).reshape((self.values,) * len(scope))

    def unary(self, expression: Any) -> tuple[int, IntArray] | None:
        """The variable of an expression that has one, and what it is worth for each value (D,)."""
        if not isinstance(expression, Expression):
            return None
        scope = self.scope(expression)
        worth_D = self.table(expression, scope) if len(scope) == 1 else None
        return None if worth_D is None else (scope[0], worth_D)


class Sum:
    """A constant, and what each variable's value adds to it."""

    def __init__(self, constant: int = 0) -> None:
        self.constant, self.terms = constant, dict[int, IntArray]()

    def add(self, other: Sum, factor: int = 1) -> None:
        """Add another sum, a number of times."""
        self.constant += factor * other.constant
        for variable, worth_D in other.terms.items():
            self.add_term(variable, factor * worth_D)

    def add_term(self, variable: int, worth_D: IntArray) -> None:
        """Add what a variable's values are worth (D,)."""
        self.terms[variable] = self.terms.get(variable, np.zeros_like(worth_D)) + worth_D


def separable(expression: Any, domain: Domain) -> Sum | None:
    """An expression as a sum of what each of its variables adds, if it is one."""
    if is_num(expression) or isinstance(expression, BoolVal):
        return Sum(int(expression))
    one = domain.unary(expression)
    if one is not None:
        total = Sum()
        total.add_term(*one)
        return total
    total = Sum()
    parts = list(_summands(expression))
    if not parts:
        return None
    for factor, part in parts:
        added = separable(part, domain)
        if added is None:
            return None
        total.add(added, factor)
    return total


def _summands(expression: Any) -> Iterator[tuple[int, Any]]:
    """What an expression adds up, with factors; nothing if it is no sum."""
    name, args = operator(expression), expression.args
    if name == "sum":
        yield from ((1, part) for part in args)
    elif name == "wsum":
        yield from zip(map(int, args[0]), args[1], strict=True)
    elif name == "sub":
        yield from ((1, args[0]), (-1, args[1]))
    elif name == "-":
        yield -1, args[0]
    elif name == "mul" and is_num(args[0]):
        yield int(args[0]), args[1]
    elif name == "count" and is_num(args[1]):
        yield from ((1, part == int(args[1])) for part in args[0])
    elif name == "among":
        yield from ((1, part == int(value)) for part in args[0] for value in sorted(set(args[1])))


def operator(expression: Any) -> str:
    """What an expression does with its arguments; empty for variables and numbers, whatever they are called."""
    is_operation = isinstance(expression, Expression) and not isinstance(expression, _NumVarImpl)
    return expression.name if is_operation else ""


def conjuncts(expression: Any, positive: bool = True) -> Iterator[Any]:
    """The conditions that hold together if an expression does, or, where not `positive`, if it does not."""
    name = operator(expression)
    if name == "not":
        yield from conjuncts(expression.args[0], not positive)
    elif name == ("and" if positive else "or"):
        for part in expression.args:
            yield from conjuncts(part, positive)
    elif name == "->" and not positive:
        yield from conjuncts(expression.args[0])
        yield from conjuncts(expression.args[1], False)
    elif name == "->":
        condition, result = expression.args
        yield from (condition.implies(part) for part in conjuncts(result))
    elif positive:
        yield expression
    else:
        yield ~expression if isinstance(expression, Expression) else not expression


def clause(expression: Any, domain: Domain, positive: bool = True) -> dict[int, BoolArray] | None:
    """An expression as "one of these is true": the values (D,) of each variable that make it so; None if it is not."""
    name = operator(expression)
    if name == "not":
        return clause(expression.args[0], domain, not positive)
    one = domain.unary(expression)
    if one is not None:
        return {one[0]: (one[1] != 0) == positive}
    if name == "->" and positive:
        parts = [clause(expression.args[0], domain, False), clause(expression.args[1], domain)]
    elif name == ("or" if positive else "and"):
        parts = [clause(part, domain, positive) for part in expression.args]
    else:
        return None
    masks: dict[int, BoolArray] = {}
    for part in parts:
        if part is None:
            return None
        for variable, mask_D in part.items():
            masks[variable] = masks.get(variable, np.zeros_like(mask_D)) | mask_D
    return masks


def short(expression: Any) -> str:
    """An expression in one line of readable length."""
    text = " ".join(str(expression).split())
    return text if len(text) <= 80 else f"{text[:50]}...{text[-27:]}"
