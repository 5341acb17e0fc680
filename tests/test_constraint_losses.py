"""The constraint losses against loops, hand-derived cases, and the exact checker."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from mull.constraints import Cardinality, instance_bounds
from mull.data.streams import stream
from mull.errors import InvalidInput
from mull.losses.attention import adjacency, attention
from mull.losses.cardinality import bundles, cardinality
from mull.losses.clste import clste, compile_cnf
from mull.losses.path import path
from mull.losses.straight_through import binarise
from mull.problem import Batch, Instance, NumpyBatch, Problem, with_bounds
from mull.problems.mnist_mapping import MnistMapping
from mull.problems.nonogram import Nonogram
from mull.problems.shortest_path import END, ShortestPath
from mull.problems.sudoku import Sudoku
from mull.problems.TEMPLATE import LatinSquare
from mull.problems.visual_sudoku import VisualSudoku

CPU = torch.device("cpu")
PROBLEMS = [Sudoku(2), LatinSquare(3), ShortestPath(3), Nonogram(3)]
IDS = [problem.name for problem in PROBLEMS]


def instances(problem: Problem, count: int) -> NumpyBatch:
    made = [problem.generate(stream(0, "losses", index)) for index in range(count)]
    given_BV = np.stack([one.given for one in made])
    solution = np.stack([one.solution for one in made if one.solution is not None])
    return Batch(np.stack([one.inputs for one in made]), solution, given_BV, np.ones_like(given_BV))


def tensors(batch: NumpyBatch) -> Batch[Tensor]:
    return batch.map(torch.from_numpy)


def certain(values_BV: Any, problem: Problem) -> Tensor:
    """Logits (1, 1, B, V, D) that leave no doubt about an answer."""
    one_hot = torch.nn.functional.one_hot(torch.as_tensor(values_BV), problem.variables().values)
    return 20.0 * one_hot[None, None].float()


def some_logits(problem: Problem, batch: int, seed: int = 0, scale: float = 3.0) -> Tensor:
    torch.manual_seed(seed)
    variables = problem.variables()
    return (scale * torch.randn(2, 2, batch, variables.count, variables.values)).requires_grad_()


def answers(problem: Problem, batch: NumpyBatch, changes: int, seed: int) -> Any:
    """Solutions with a few variables changed at random."""
    rng, variables = stream(seed, "answers"), problem.variables()
    values_BV = batch.solution.copy()
    for row in values_BV:
        row[rng.integers(variables.count, size=changes)] = rng.integers(variables.values, size=changes)
    return values_BV


def fit(problem: Problem, batch: NumpyBatch, values_BV: Any) -> Any:
    """(B,): which answers satisfy all cardinalities, by the exact checker."""
    rules = [rule for rule in problem.rules if isinstance(rule, Cardinality)]
    return ~np.concatenate([rule.violations(values_BV, batch.inputs) for rule in rules], axis=1).any(axis=1)


@pytest.mark.parametrize("problem", PROBLEMS, ids=IDS)
@settings(deadline=None, max_examples=25)
@given(changes=st.integers(0, 4), seed=st.integers(0, 1000))
def test_cardinality_is_zero_exactly_where_the_check_passes(problem: Problem, changes: int, seed: int) -> None:
    batch = with_bounds(problem, instances(problem, 6))
    values_BV = answers(problem, batch, changes, seed)
    for row, fits in enumerate(fit(problem, batch, values_BV)):
        one = tensors(batch[row : row + 1])
        loss = cardinality(certain(values_BV[row : row + 1], problem), one, problem)
        assert (loss == 0) == fits
    if not isinstance(problem, Nonogram):  # whose runs are no cardinality
        np.testing.assert_array_equal(fit(problem, batch, values_BV), problem.check(batch.inputs, values_BV))


def naive_cardinality(logits: Tensor, batch: NumpyBatch, problem: Problem) -> tuple[float, Tensor]:
    """Value and gradient with respect to the probabilities, one atom at a time."""
    x = logits.detach().softmax(-1).flatten(3)
    total, gradient = 0.0, torch.zeros_like(x)
    outputs = x.shape[0] * x.shape[1] * x.shape[2]
    for rule in problem.rules:
        if not isinstance(rule, Cardinality):
            continue
        for s, block, b in product(*map(range, x.shape[:3])):
            lower, upper = (np.broadcast_to(side, (len(batch), rule.size))[b] for side in rule.limits(batch.inputs))
            for g, group in enumerate(rule.atoms.tolist()):
                atoms = [atom for atom in group if atom >= 0]
                count = sum(x[s, block, b, atom].item() >= 0.5 for atom in atoms)
                off = [
                    count - bound for bound, out in ((lower[g], count < lower[g]), (upper[g], count > upper[g])) if out
                ]
                total += sum(int(d) ** 2 for d in off) / rule.size / outputs
                for atom in atoms:
                    gradient[s, block, b, atom] += sum(2 * int(d) for d in off) / rule.size / outputs
    return total, gradient


@pytest.mark.parametrize("problem", PROBLEMS, ids=IDS)
def test_cardinality_equals_a_loop_over_atoms(problem: Problem) -> None:
    batch = with_bounds(problem, instances(problem, 2))
    logits = some_logits(problem, 2)
    loss = cardinality(logits, tensors(batch), problem)
    value, slope = naive_cardinality(logits, batch, problem)
    assert value > 0 and loss.item() == pytest.approx(value, rel=1e-5)
    (ours,) = torch.autograd.grad(loss, logits)
    (expected,) = torch.autograd.grad(logits.softmax(-1).flatten(3), logits, slope)  # straight through to x
    torch.testing.assert_close(ours, expected, atol=1e-7, rtol=1e-4)


@settings(deadline=None, max_examples=50)
@given(data=st.data())
def test_any_groups_with_any_bounds(data: st.DataObject) -> None:
    """Ragged groups, an atom in many of them or in none, bounds by instance and fixed ones side by side."""
    atom = st.integers(0, 5)
    families = []
    for varies in data.draw(st.lists(st.booleans(), min_size=1, max_size=4)):
        groups = data.draw(st.lists(st.lists(atom, unique=True, max_size=4), min_size=1, max_size=3))
        table = np.array([group + [-1] * (4 - len(group)) for group in groups])[:, : data.draw(st.integers(1, 4))]
        low, high = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))
        families.append(Cardinality(2, table, low, high, bounds=first_two if varies else None))
    problem = Stated(tuple(families))
    inputs = np.array(data.draw(st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=2, max_size=2)))
    batch: NumpyBatch = Batch(inputs, inputs, inputs > 9, inputs > 9)
    batch = with_bounds(problem, batch)
    logits = some_logits(problem, 2, seed=data.draw(st.integers(0, 99)))
    value, slope = naive_cardinality(logits, batch, problem)
    loss = cardinality(logits, tensors(batch), problem)
    assert loss.item() == pytest.approx(value, rel=1e-5)
    (ours,) = torch.autograd.grad(loss, logits)
    (expected,) = torch.autograd.grad(logits.softmax(-1).flatten(3), logits, slope)
    torch.testing.assert_close(ours, expected, atol=1e-6, rtol=1e-4)


def first_two(inputs: Any) -> tuple[Any, Any]:
    return inputs[:, :1], inputs[:, 1:2]


class Stated(LatinSquare):
    """Three variables of two values under any constraints."""

    def __init__(self, stated: tuple[Cardinality, ...]) -> None:
        object.__setattr__(self, "stated", stated)
        super().__init__(side=2)

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def variables(self) -> Any:
        from mull.problem import Variables

        return Variables((3,), values=2)

    def constraints(self) -> tuple[Cardinality, ...]:
        return self.stated  # type: ignore[attr-defined, no-any-return]


def test_cardinality_by_hand() -> None:
    """A row of a 2x2 Latin square with both cells at value 1: 2 too many of one value, 1 too few of the other."""
    problem = LatinSquare(2)
    batch = with_bounds(problem, Batch(np.zeros((1, 4), np.uint8), *[np.zeros((1, 4), bool)] * 3))
    logits = certain([[0, 0, 1, 1]], problem).requires_grad_()
    # rows: counts 2, 0, 0, 2 of four groups, each off by 1; columns: all 1; the givens: none
    assert cardinality(logits, tensors(batch), problem).item() == 1.0
    assert cardinality(logits, tensors(batch), problem, fixed_bounds_only=True).item() == 1.0
    givens = Batch(np.array([[2, 0, 0, 0]], np.uint8), *[np.zeros((1, 4), bool)] * 3)
    batch = with_bounds(problem, givens)
    assert cardinality(logits, tensors(batch), problem).item() == pytest.approx(1 + 1 / 8)  # one of eight atoms
    assert cardinality(logits, tensors(batch), problem, fixed_bounds_only=True).item() == 1.0


def test_sudoku_has_the_scale_of_the_papers_code() -> None:
    problem = Sudoku()
    batch = tensors(Batch(np.zeros((3, 81), np.uint8), *[np.zeros((3, 81), bool)] * 3))
    logits = some_logits(problem, 3)
    true = (logits.softmax(-1) >= 0.5).float().reshape(-1, 9, 9, 9)  # row, column, value
    boxes = true.reshape(-1, 3, 3, 3, 3, 9).sum(dim=(2, 4))
    expected = sum((counts - 1).square().mean() for counts in (true.sum(1), true.sum(2), boxes))
    assert cardinality(logits, batch, problem, fixed_bounds_only=True).item() == pytest.approx(
        float(expected), rel=1e-5
    )


def test_groups_are_compiled_once_and_few() -> None:
    problem = Sudoku()
    rows_columns_boxes, givens = bundles(problem, CPU)
    assert bundles(Sudoku(), CPU) is bundles(problem, CPU)
    assert rows_columns_boxes.atoms_AG.count == 9 and rows_columns_boxes.groups_KN.count == 3
    assert givens.atoms_AG.same and givens.groups_KN.same and not rows_columns_boxes.atoms_AG.filled


def test_bounds_take_one_byte_where_they_can() -> None:
    bounds = instance_bounds(Sudoku().rules, np.zeros((2, 81), np.uint8))
    assert bounds is not None and bounds.shape == (2, 2, 729) and bounds.dtype == np.int8
    large = Cardinality(2, np.array([[0]]), bounds=lambda inputs: (inputs, inputs))
    for most, kind in ((127, np.int8), (128, np.int16)):
        found = instance_bounds([large], np.array([[most]]))
        assert found is not None and found.dtype == kind and (found == most).all()
    assert instance_bounds(VisualSudoku().rules, np.zeros((2, 81, 28, 28), np.uint8)) is None


def test_what_cannot_be_counted_is_told() -> None:
    image = torch.zeros(1, 1)
    batch = Batch(image, image, image, image)
    with pytest.raises(InvalidInput, match="mnist-mapping states no cardinality constraints"):
        cardinality(torch.zeros(1, 1, 1, 1, 10), batch, MnistMapping())
    with pytest.raises(InvalidInput, match="no cardinality constraints with fixed bounds"):
        cardinality(torch.zeros(1, 1, 1, 9, 2), batch, Nonogram(3), fixed_bounds_only=True)
    with pytest.raises(InvalidInput, match="with_bounds"):
        cardinality(torch.zeros(1, 1, 1, 16, 4), batch, Sudoku(2))


def test_binarise_and_its_estimators() -> None:
    x = torch.tensor([0.0, 0.26, 0.28, 0.4999, 0.5, 0.7, 0.74, 1.0], requires_grad=True)
    for estimator, slope in (("identity", [1] * 8), ("clipped", [0, 0, 1, 1, 1, 1, 0, 0])):
        truth = binarise(x, estimator)
        assert truth.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
        (gradient,) = torch.autograd.grad((truth * torch.arange(8)).sum(), x)
        assert gradient.tolist() == [place * passes for place, passes in enumerate(slope)]
    assert binarise(x, "soft") is x


def test_expected_counts_by_loop() -> None:
    """With `soft`, a count is the sum of probabilities; of certain answers both estimators say the same."""
    problem = LatinSquare(3)
    rules = [rule for rule in problem.rules if isinstance(rule, Cardinality) and rule.bounds is None]
    logits, batch = some_logits(problem, 2), tensors(instances(problem, 2))
    probability = logits.softmax(-1).flatten(3)
    expected = torch.zeros(())
    for rule in rules:
        counts = torch.stack([probability[..., group].sum(-1) for group in torch.from_numpy(rule.atoms)], -1)
        below, above = (rule.lower - counts).clamp(min=0), (counts - rule.upper).clamp(min=0)
        expected = expected + (below**2 + above**2).mean()
    torch.testing.assert_close(cardinality(logits, batch, problem, "soft", fixed_bounds_only=True), expected)
    sure = certain(batch.solution, problem)
    assert cardinality(sure, batch, problem, "soft", fixed_bounds_only=True).item() < 1e-6


def test_attention_by_hand() -> None:
    shares = torch.tensor([[0.9, 0.5], [0.2, 0.6]]).reshape(1, 1, 1, 2, 2).requires_grad_()  # two heads, two cells
    each, at_once = attention(shares), attention(shares, at_once=True)
    assert each.item() == 0.25  # one of four is inattentive
    assert at_once.item() == 0.5  # heads are off by 0 and 1 of 2 cells
    (gradient,) = torch.autograd.grad(each, shares)
    assert gradient.flatten().tolist() == [0, 0, -0.5, 0]  # 2 (b - 1) / 4
    (gradient,) = torch.autograd.grad(at_once, shares)
    assert gradient.flatten().tolist() == [0, 0, -1, -1]  # 2 (1 - 2) / 2, also where a cell is attentive already


def test_adjacency_is_the_problems() -> None:
    table = adjacency(Sudoku(), CPU)
    assert (
        table.shape == (81, 81) and (table.sum(1) == 21).all()
    )  # 20 peers and the cell itself, as in the paper's code


def degrees_fit(problem: ShortestPath, inputs: Any, edges: Any) -> bool:
    is_end = inputs[: problem.grid.nodes] == END
    degrees = problem.grid.degrees(np.array([edges]) == 1)[0]
    return bool(np.where(is_end, degrees == 1, (degrees == 0) | (degrees == 2)).all())


@pytest.mark.parametrize("side", [2, 3])
def test_label_free_path_loss_is_zero_exactly_where_degrees_are_right(side: int) -> None:
    problem = ShortestPath(side, removed=0)
    instance = problem.instance((0, problem.grid.nodes - 1), [])
    choices = np.array(list(product((0, 1), repeat=problem.grid.edges)))  # all sets of edges
    rng = stream(0, "nodes")
    values = np.concatenate([rng.integers(2, size=(len(choices), problem.grid.nodes)), choices], axis=1)
    found = [degrees_fit(problem, instance.inputs, edges) for edges in choices]
    assert any(found) and not all(found)
    for row, fits in enumerate(found):
        loss = path(certain(values[row : row + 1], problem), alone(instance), problem, label_free=True)
        assert (loss == 0) == fits


def alone(instance: Instance, solution: Any = None, labelled: bool = False) -> Batch[Tensor]:
    nothing = np.full(len(instance.inputs), -1) if solution is None else solution
    known = np.full(len(instance.inputs), labelled)
    return tensors(Batch(instance.inputs, nothing, instance.given, known).map(lambda array: array[None]))


def test_label_free_path_loss_follows_the_nodes_variable_at_degree_1() -> None:
    problem = ShortestPath(2)  # nodes 0 1 / 2 3; edges 0-1, 2-3, 0-2, 1-3
    instance = problem.instance((0, 3), [])
    for inside in (0, 1):
        values = [[1, inside, 0, 1, 1, 0, 0, 0]]  # the edge 0-1 alone
        logits = (0.1 * certain(values, problem)).requires_grad_()
        loss = path(logits, alone(instance), problem, label_free=True)
        assert loss.item() == (0 + 1 + 0 + 1) / 4  # node 1 has one edge, end node 3 none
        (gradient,) = torch.autograd.grad(loss, logits)
        first, second = (-gradient[0, 0, 0, edge, 1] for edge in (4, 7))  # more likely is positive
        if inside:  # node 1 asks for both of its edges, end node 3 for the edge 1-3
            assert first > 0 and second > 0
        else:  # node 1 wants neither: it cancels what node 3 asks for
            assert first < 0 and second == 0
        assert (gradient[0, 0, 0, :4] == 0).all()  # nodes choose, but are not changed


def test_path_loss_of_the_paper_by_hand() -> None:
    problem = ShortestPath(2)
    instance = problem.instance((0, 3), [])
    label = problem.answer([0, 1, 3])
    right, other = certain(label[None], problem), certain(problem.answer([0, 2, 3])[None], problem)
    assert path(right, alone(instance, label, True), problem) == 0
    assert path(other, alone(instance, label, True), problem) == 1  # node 1 of the label has 0 edges: 4 / 4 nodes
    assert path(other, alone(instance, label, False), problem) == 0  # without labels only end nodes count
    nothing = certain(np.zeros((1, 8), int), problem)
    assert path(nothing, alone(instance, label, True), problem) == (1 + 1 + 4) / 4
    assert path(nothing, alone(instance, label, False), problem) == (1 + 1) / 4
    with pytest.raises(InvalidInput, match="not for sudoku"):
        path(nothing, alone(instance), Sudoku(2))


def test_cnf_of_sudoku_has_the_papers_size() -> None:
    cnf = compile_cnf(Sudoku(), CPU)
    assert sum(len(part.atoms_MC) for part in cnf) == 8991
    assert {int(atom) for part in cnf for atom in part.atoms_MC.flatten()} == set(range(729))


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 4), st.integers(0, 4), st.integers(1, 4))
def test_clauses_hold_exactly_if_the_cardinality_does(lower: int, upper: int, size: int) -> None:
    problem = Stated(
        (Cardinality(2, np.arange(size)[None], min(lower, size), upper), Cardinality(2, np.array([[4, 5]])))
    )
    cnf = compile_cnf(problem, CPU)
    for true in product((False, True), repeat=size):
        atoms = np.array([*true, *[False] * (6 - size)])
        if size <= 4:
            atoms[5] = True
        holds = all(
            (atoms[part.atoms_MC.numpy()] if part.positive else ~atoms[part.atoms_MC.numpy()]).any(axis=1).all()
            for part in cnf
        )
        assert holds == (min(lower, size) <= sum(true) <= upper)


def naive_clste(x_N: Tensor, facts: list[int], clauses: list[tuple[tuple[int, ...], bool]]) -> Tensor:
    """The three losses as their paper defines them, for one output of one instance, clause by clause."""
    truth = binarise(x_N)
    sat = unsat = deduce = torch.zeros(())
    for group, positive in clauses:
        known = [facts[atom] if positive else -facts[atom] for atom in group]
        values = [
            torch.tensor(float(f > 0)) if f else truth[a] for f, a in zip((facts[a] for a in group), group, strict=True)
        ]
        literals = torch.stack([value if positive else 1 - value for value in values])
        product_of = (1 - literals).prod()
        if product_of == 1:
            unsat = unsat + product_of / len(clauses)
            deduce = deduce + product_of * (known.count(-1) == len(group) - 1)
        else:
            keep = (literals == 1).float().detach() * (1 - literals) + (literals == 0).float().detach() * literals
            sat = sat + keep.sum() / len(clauses)
    return sat + unsat + deduce


@pytest.mark.parametrize("first_step", [True, False])
def test_clste_equals_a_loop_over_clauses(first_step: bool) -> None:
    problem = LatinSquare(3)
    batch = with_bounds(problem, instances(problem, 2))
    logits = some_logits(problem, 2)
    clauses: list[tuple[tuple[int, ...], bool]] = []
    for rule in problem.rules[:2]:
        assert isinstance(rule, Cardinality)
        for group in rule.atoms.tolist():
            clauses += [(tuple(group), True), *((pair, False) for pair in combinations(group, 2))]
    loss = clste(logits, tensors(batch), problem, first_step)
    x = (logits[:1] if first_step else logits).softmax(-1).flatten(3)
    parts = []
    for s, block, b in product(*map(range, x.shape[:3])):
        facts = [int(batch.inputs[b, atom // 3] == atom % 3 + 1) for atom in range(27)]
        parts.append(naive_clste(x[s, block, b], facts, clauses))
    expected = torch.stack(parts).mean()
    assert loss.item() > 0 and loss.item() == pytest.approx(expected.item(), rel=1e-5)
    torch.testing.assert_close(torch.autograd.grad(loss, logits)[0], torch.autograd.grad(expected, logits)[0])


def test_what_clste_cannot_say_is_told() -> None:
    nothing = torch.zeros(1, 1)
    batch = Batch(nothing, nothing, nothing, nothing, torch.zeros(1, 2, 500))
    with pytest.raises(InvalidInput, match="counts that depend on the instance"):
        clste(torch.zeros(1, 1, 1, 21, 2), batch, ShortestPath(3))
    with pytest.raises(InvalidInput, match="no constraints that have clauses"):
        compile_cnf(MnistMapping(), CPU)
    half = Cardinality(2, np.arange(6)[None], lower=3, upper=3)
    assert sum(len(part.atoms_MC) for part in compile_cnf(Stated((half,)), CPU)) == 15 + 15
    too_many = Cardinality(2, np.arange(40)[None], lower=20, upper=20)
    with pytest.raises(InvalidInput, match="too many for CL-STE"):
        compile_cnf(Stated((too_many,)), CPU)


def test_clste_of_images_has_no_facts() -> None:
    problem = VisualSudoku(2)
    nothing = torch.zeros(1, 16)
    loss = clste(torch.zeros(1, 1, 1, 16, 4), Batch(nothing, nothing, nothing, nothing), problem)
    assert loss.item() == pytest.approx(48 / (48 * 7))  # nothing is true: each of 48 groups lacks its atom
