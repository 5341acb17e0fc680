"""Contract checks that a new problem runs in one line: `check_problem(MyProblem())`.

A failure is an AssertionError whose message says which promise of `Problem` is broken and shows an example.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mull.constraints import UNKNOWN, IntArray
from mull.data.streams import stream
from mull.errors import InvalidInput
from mull.problem import Images, Instance, Problem, Symmetries, Tokens

CHUNK = 1024
"""Answers checked at once."""


def check_problem(
    problem: Problem,
    seed: int = 0,
    instances: int = 8,
    corruptions: int = 4096,
    corruptions_caught: bool = True,
) -> None:
    """Hold a problem to its contract on a few generated instances; set `corruptions_caught=False` if answers that
    differ from the solution in one variable may be right too. `corruptions` bounds how many are tried on each."""
    _check_declaration(problem)
    made = [_check_generation(problem, seed, index) for index in range(instances)]
    if instances > 1:
        _require(len({_key(instance) for instance in made}) > 1, "generate() makes the same instance for every rng")
    _check_givens(problem, made)
    for index, instance in enumerate(made):
        rng = stream(seed, "check", index)
        _check_answers(problem, instance, rng)
        _check_give(problem, instance, rng)
        if corruptions_caught:
            _check_corruptions(problem, instance, corruptions, rng)
        _check_text(problem, instance, rng)
        _check_picture(problem, instance, rng)
        symmetries = problem.symmetries()
        if symmetries is not None:
            _check_symmetries(problem, symmetries, instance, rng)
    _check_bad_text(problem)
    _check_splits(problem, instances, seed)


def _require(condition: Any, message: str) -> None:
    if not condition:  # raised, not asserted: python -O must not turn the checks off
        raise AssertionError(message)


def _key(instance: Instance) -> tuple[bytes, ...]:
    return tuple(np.asarray(part).tobytes() for part in (instance.inputs, instance.given, instance.solution))


def _solution(instance: Instance) -> IntArray:
    _require(instance.solution is not None, "generate() must return an instance with its solution")
    return np.asarray(instance.solution)


def _check_declaration(problem: Problem) -> None:
    """Name, frozen dataclass, constraints over the problem's own variables, adjacency."""
    kind = type(problem)
    frozen = getattr(getattr(kind, "__dataclass_params__", None), "frozen", False)
    _require(frozen, f"{kind.__name__} must be a frozen dataclass")
    _require(re.fullmatch(r"\S+", problem.name), f"name must be one word, not {problem.name!r}")
    count = problem.variables().count
    for constraint in problem.constraints():
        for group, scope in enumerate(constraint.scopes()):
            inside = len(scope) == 0 or (scope.min() >= 0 and scope.max() < count)
            _require(inside, f"group {constraint.label(group)!r} has variables outside 0..{count - 1}")
    adjacent = problem.adjacency()
    _require(adjacent.shape == (count, count), f"adjacency has shape {adjacent.shape}, not {(count, count)}")
    _require((adjacent == adjacent.T).all(), "adjacency is not symmetric")
    _require(adjacent.diagonal().all(), "adjacency must be true on the diagonal")


def _check_generation(problem: Problem, seed: int, index: int) -> Instance:
    first = problem.generate(stream(seed, "instance", index))
    again = problem.generate(stream(seed, "instance", index))
    _require(_key(first) == _key(again), "generate() is not deterministic: the same rng gave two different instances")
    return first


def _check_instance(problem: Problem, instance: Instance) -> None:
    """Shapes and dtypes, and givens that agree with the solution."""
    variables, kind = problem.variables(), problem.input_kind()
    inputs, given, solution = instance.inputs, instance.given, _solution(instance)
    shape = (variables.count, *kind.shape)
    _require(inputs.shape == shape, f"inputs have shape {inputs.shape}, but input_kind() says {shape}")
    if isinstance(kind, Tokens):
        _require(inputs.dtype.kind in "iu", f"tokens must be integers, not {inputs.dtype}")
        fits = inputs.min() >= 0 and inputs.max() < kind.vocabulary
        _require(fits, f"tokens must be in 0..{kind.vocabulary - 1}, got {inputs.min()}..{inputs.max()}")
    else:
        allowed = "u" if isinstance(kind, Images) else "iu"
        _require(inputs.dtype.kind in allowed, f"inputs of kind {type(kind).__name__} cannot be {inputs.dtype}")
        largest = 255 if isinstance(kind, Images) else kind.largest
        fits = inputs.min() >= 0 and inputs.max() <= largest
        _require(fits, f"inputs must be in 0..{largest}, got {inputs.min()}..{inputs.max()}")
    _require(given.shape == (variables.count,) and given.dtype == bool, "given must be a bool for each variable")
    _require(solution.shape == (variables.count,), f"solution has shape {solution.shape}, not ({variables.count},)")
    _require(solution.dtype.kind in "iu", f"solution must be integers, not {solution.dtype}")
    known = problem.given_values(instance)
    stated = known != UNKNOWN
    _require(given[stated].all(), "given_values() states a variable that `given` does not mark")
    wrong = np.flatnonzero(stated & (known != solution))
    _require(len(wrong) == 0, f"given_values() and solution differ at variables {wrong[:5].tolist()}")


def _check_answers(problem: Problem, instance: Instance, rng: np.random.Generator) -> None:
    """The solution passes; incomplete or impossible answers do not; parts of the solution have no conflict."""
    solution, known = _solution(instance), problem.given_values(instance)
    _require(_verified(problem, instance, solution[None]).all(), "the solution does not satisfy check()")
    part = np.where(rng.random(len(solution)) < 0.5, solution, UNKNOWN)
    for what, values in {"givens": known, "solution": solution, "part of the solution": part}.items():
        found = problem.conflicts(instance.inputs, values)
        _require(not found, f"the {what} has conflicts: {[label for label, _ in found[:3]]}")
    problem.validate(instance)
    for value in (UNKNOWN, problem.variables().values):
        values = solution.astype(np.int64)
        values[rng.integers(len(values))] = value
        _require(not _verified(problem, instance, values[None]).any(), f"check() accepts the value {value}")


def _check_give(problem: Problem, instance: Instance, rng: np.random.Generator) -> None:
    """Values that are given besides are stated by the inputs, and change nothing that these state already."""
    known, solution = problem.given_values(instance), _solution(instance)
    part = np.where(rng.random(len(solution)) < 0.5, solution, UNKNOWN)
    values = np.where(known == UNKNOWN, part, (known + 1) % problem.variables().values)  # other values than are given
    inputs = problem.give(instance.inputs[None], values[None])
    if inputs is None:
        return
    _require(inputs.shape[1:] == instance.inputs.shape, f"give() returns inputs of shape {inputs.shape[1:]}")
    _require(inputs.dtype == instance.inputs.dtype, f"give() returns {inputs.dtype}, not {instance.inputs.dtype}")
    given = part != UNKNOWN
    found = problem.given_values(Instance(inputs[0], instance.given | given, instance.solution))
    right = found == np.where(known == UNKNOWN, part, known)
    _require(right.all(), f"given_values() does not tell what give() gave at variables {np.flatnonzero(~right)[:5]}")


def _check_givens(problem: Problem, made: list[Instance]) -> None:
    """The solution of one instance is no answer to another whose givens it contradicts."""
    for instance in made:
        _check_instance(problem, instance)
        known = problem.given_values(instance)
        others_BV = np.stack([_solution(other) for other in made]).astype(np.int64)
        contradicts = ((known != UNKNOWN) & (others_BV != known)).any(axis=1)
        accepted = _verified(problem, instance, others_BV) & contradicts
        _require(not accepted.any(), "check() accepts an answer that contradicts the givens: is a constraint missing?")


def _verified(problem: Problem, instance: Instance, values_BV: IntArray) -> NDArray[np.bool_]:
    inputs = np.broadcast_to(instance.inputs, (len(values_BV), *instance.inputs.shape))
    return problem.check(inputs, values_BV)


def _check_corruptions(problem: Problem, instance: Instance, most: int, rng: np.random.Generator) -> None:
    """Every answer that differs from the solution in one variable is caught (a sample where there are many)."""
    for values_BV in _corrupted(problem, _solution(instance), most, rng):
        accepted = np.flatnonzero(_verified(problem, instance, values_BV))
        _require(
            len(accepted) == 0,
            "check() accepts a solution with one variable changed (if that can be right, pass "
            f"corruptions_caught=False): {problem.write_answer(values_BV[accepted[0]]) if len(accepted) else ''}",
        )
        _require(problem.conflicts(instance.inputs, values_BV[0]), "check() fails an answer that has no conflicts()")


def _corrupted(problem: Problem, solution: IntArray, most: int, rng: np.random.Generator) -> Iterator[IntArray]:
    others = problem.variables().values - 1
    changes = np.arange(len(solution) * others)
    if len(changes) > most:
        changes = rng.choice(changes, most, replace=False)
    for start in range(0, len(changes), CHUNK):
        variable, shift = np.divmod(changes[start : start + CHUNK], others)
        values_BV = np.tile(solution.astype(np.int64), (len(variable), 1))
        values_BV[np.arange(len(variable)), variable] += shift + 1
        yield values_BV % (others + 1)


def _check_text(problem: Problem, instance: Instance, rng: np.random.Generator) -> None:
    """parse(write(...)) round-trips; answers, whole and partial, can be written and drawn."""
    text, solution = problem.write(instance), _solution(instance)
    _require(len(text.splitlines()) == 1, f"write() must give one line, not {text!r}")
    parsed = problem.parse(text)
    same = parsed.inputs.dtype == instance.inputs.dtype and np.array_equal(parsed.inputs, instance.inputs)
    _require(same, f"parse(write(instance)) has other inputs than the instance: {text}")
    if not isinstance(problem.input_kind(), Images):  # of an image, only a model can tell whether it shows a given
        _require(np.array_equal(parsed.given, instance.given), f"parse(write(instance)) has other givens: {text}")
    part = np.where(rng.random(len(solution)) < 0.5, solution, UNKNOWN)
    height = len(problem.render(solution).splitlines())
    for values in (solution, part, np.full_like(part, UNKNOWN)):
        line, plain = problem.write_answer(values), problem.render(values)
        _require(len(line.splitlines()) == 1, f"write_answer() must give one line, not {line!r}")
        _require(len(plain.splitlines()) == height, "render() draws partial answers with another number of lines")
        marked = re.sub(r"\x1b\[[0-9;]*m", "", problem.render(values, instance.given))
        _require(len(marked.splitlines()) == height, "render() with `given` has another number of lines")
    for values_BV in _corrupted(problem, solution, 1, rng):
        differ = problem.write_answer(values_BV[0]) != problem.write_answer(solution)
        _require(differ, "write_answer() writes two different answers alike")
        _require(problem.render(values_BV[0]) != problem.render(solution), "render() draws two answers alike")


def _check_picture(problem: Problem, instance: Instance, rng: np.random.Generator) -> None:
    """The puzzle and answers can be drawn, and two answers look different; a problem may have no picture at all."""
    solution = _solution(instance)
    try:
        puzzle = problem.picture(instance, problem.given_values(instance))
    except InvalidInput as error:
        _require(len(str(error).splitlines()) == 1, f"picture() must refuse in one line: {error}")
        return
    _require(puzzle.marks, "picture() of a puzzle is blank")
    solved = problem.picture(instance, solution, sure=np.full(len(solution), 0.9))
    size = (solved.width, solved.height)
    _require(size == (puzzle.width, puzzle.height), "picture() has another size for the solution than for the puzzle")
    for values_BV in _corrupted(problem, solution, 1, rng):
        one, other = (problem.picture(instance, values) for values in (solution, values_BV[0]))
        _require(one != other, "picture() shows two answers alike")


def _check_bad_text(problem: Problem) -> None:
    for text in ("", "\x00", "?", "not a puzzle\nat all", "9" * 5000):
        try:
            problem.parse(text)
        except InvalidInput as error:
            _require(len(str(error).splitlines()) == 1, f"parse({text[:20]!r}) must complain in one line: {error}")
        except Exception as error:
            raise AssertionError(f"parse({text[:20]!r}) must raise InvalidInput, not {error!r}") from error
        else:
            raise AssertionError(f"parse({text[:20]!r}) must raise InvalidInput")


def _check_symmetries(problem: Problem, symmetries: Symmetries, instance: Instance, rng: np.random.Generator) -> None:
    """A random symmetry turns the instance and its solution into another, in the same class."""
    variables = problem.variables()
    for number, table in enumerate(symmetries.permutations):
        rows = np.sort(table, axis=1) == np.arange(variables.count)
        _require(rows.all(), f"table {number} of symmetries() has rows that are no permutation of the variables")
    moved = _transformed(symmetries, instance, variables.values, rng)
    _check_instance(problem, moved)
    _require(_verified(problem, moved, _solution(moved)[None]).all(), "a symmetry turns a solution into a wrong answer")
    same = problem.canonical(moved) == problem.canonical(instance)
    _require(same, "canonical() differs between an instance and its image under symmetries()")


def _transformed(symmetries: Symmetries, instance: Instance, values: int, rng: np.random.Generator) -> Instance:
    inputs, given, solution = instance.inputs, instance.given, _solution(instance)
    for table in symmetries.permutations:
        order = table[rng.integers(len(table))]
        inputs, given, solution = inputs[order], given[order], solution[order]
    if symmetries.value_tokens is not None:
        relabel = rng.permutation(values)
        tokens = np.arange(max(int(inputs.max()), int(symmetries.value_tokens.max())) + 1)
        tokens[symmetries.value_tokens] = symmetries.value_tokens[relabel]
        inputs, solution = tokens[inputs].astype(inputs.dtype), relabel[solution]
    return Instance(inputs, given, solution)


def _check_splits(problem: Problem, count: int, seed: int) -> None:
    """Generated splits share no class of instances."""
    from mull.data.generated import generate

    keys: dict[str, set[bytes]] = {}
    for split in ("train", "valid", "test"):
        batch = generate(problem, split, count, seed=seed)
        rows = (Instance(batch.inputs[i], batch.given[i], batch.solution[i]) for i in range(len(batch)))
        keys[split] = {problem.canonical(row) for row in rows}
    for one, two in (("train", "valid"), ("train", "test"), ("valid", "test")):
        _require(not keys[one] & keys[two], f"the {one} and {two} splits share instances up to symmetry")
