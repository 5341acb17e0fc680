"""Random symmetries keep instances valid, and mean the same as the tables they come from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from mull.constraints import Cardinality
from mull.data.augment import Augment, multiply_out
from mull.data.generated import generate
from mull.errors import InvalidInput
from mull.problem import Batch, NumpyBatch, Problem, with_bounds
from mull.problems import PROBLEMS
from mull.problems.shortest_path import ShortestPath
from mull.problems.sudoku import Sudoku
from mull.problems.TEMPLATE import LatinSquare


def tensors(batch: NumpyBatch, device: str = "cpu") -> Batch[torch.Tensor]:
    return batch.map(lambda array: torch.as_tensor(array, device=device))


def arrays(batch: Batch[torch.Tensor]) -> NumpyBatch:
    return batch.map(lambda tensor: tensor.cpu().numpy())


def repeated(batch: NumpyBatch, times: int) -> NumpyBatch:
    return batch[np.arange(len(batch)).repeat(times)]


@pytest.mark.parametrize(("name", "count"), [("sudoku-4x4", 20), ("sudoku", 20), ("sudoku-16x16", 4)])
def test_augmented_instances_are_valid_and_of_the_same_class(name: str, count: int) -> None:
    from mull.problems import sudoku_search

    problem = PROBLEMS[name]()
    assert isinstance(problem, Sudoku)
    batch = generate(problem, "train", count)
    after = arrays(Augment(problem, "cpu")(tensors(batch), torch.Generator().manual_seed(0)))
    assert problem.check(after.inputs, after.solution).all()
    assert after.inputs.dtype == batch.inputs.dtype and after.solution.dtype == batch.solution.dtype
    assert (after.given == (after.inputs > 0)).all()
    assert (after.inputs != batch.inputs).any(axis=1).all()
    keys: list[NDArray[Any]] = [sudoku_search.canonical_many(problem.box, b.inputs, b.solution) for b in (batch, after)]
    assert (keys[0] == keys[1]).all()


def test_every_row_gets_its_own_symmetry() -> None:
    batch = repeated(generate(Sudoku(), "train", 1), 500)
    after = arrays(Augment(Sudoku(), "cpu")(tensors(batch), torch.Generator().manual_seed(0)))
    assert len(np.unique(after.solution, axis=0)) == 500


def test_all_symmetries_of_a_small_board_come_up() -> None:
    """128 geometric symmetries of a board without symmetries of its own, each about equally often."""
    cells = np.arange(16)[None].repeat(12_800, axis=0)
    batch: NumpyBatch = Batch(cells, cells, cells > 3, cells > 5)
    after = arrays(Augment(Sudoku(box=2), "cpu", geometric_only=True)(tensors(batch), torch.Generator().manual_seed(0)))
    boards, times = np.unique(after.inputs, axis=0, return_counts=True)
    assert len(boards) == 128 and times.min() > 50 and times.max() < 160
    assert (after.solution == after.inputs).all()
    assert (after.given == (after.inputs > 3)).all() and (after.labelled == (after.inputs > 5)).all()


def test_geometric_only_keeps_the_names_of_the_values() -> None:
    batch = generate(Sudoku(), "train", 30)
    after = arrays(Augment(Sudoku(), "cpu", geometric_only=True)(tensors(batch)))
    counts = [np.stack([(b.inputs == value).sum(axis=1) for value in range(10)]) for b in (batch, after)]
    assert (counts[0] == counts[1]).all() and (batch.inputs != after.inputs).any()
    assert Sudoku().check(after.inputs, after.solution).all()


def test_unknown_labels_stay_unknown() -> None:
    batch = generate(Sudoku(), "train", 10)
    solution = np.where(batch.given, -1, batch.solution)
    after = arrays(Augment(Sudoku(), "cpu")(tensors(Batch(batch.inputs, solution, batch.given, ~batch.given))))
    assert ((after.solution == -1) == after.given).all() and (after.labelled == ~after.given).all()


def test_images_move_with_their_cells() -> None:
    images = torch.arange(3 * 16 * 4).reshape(3, 16, 2, 2)
    cells = torch.arange(16).repeat(3, 1)
    batch = Batch(images, cells, cells > 0, cells > 0)
    after = Augment(Sudoku(box=2), "cpu", geometric_only=True)(batch)
    assert (after.inputs == images[torch.arange(3)[:, None], after.solution]).all()


def test_the_same_generator_state_gives_the_same_batch() -> None:
    batch, augment = tensors(generate(Sudoku(), "train", 8)), Augment(Sudoku(), "cpu")
    first, second = (augment(batch, torch.Generator().manual_seed(3)) for _ in range(2))
    assert (first.inputs == second.inputs).all() and (first.solution == second.solution).all()


def test_multiplied_tables_are_the_products() -> None:
    tables = Sudoku(box=2).symmetries().permutations
    (merged,) = multiply_out(tables)
    rng = np.random.default_rng(0)
    for _ in range(20):
        move = np.arange(16)
        for table in tables:
            move = move[table[rng.integers(len(table))]]
        assert (merged == move).all(axis=1).any()


@pytest.mark.parametrize("problem", [Sudoku(2), Sudoku(), LatinSquare(4), ShortestPath(4), ShortestPath(12)])
def test_bounds_follow_their_groups(problem: Problem) -> None:
    batch = with_bounds(problem, generate(problem, "train", 12))
    augment = Augment(problem, "cpu", bounds=True)
    after = arrays(augment(tensors(batch), torch.Generator().manual_seed(0)))
    expected = with_bounds(problem, after)
    assert after.bounds is not None and expected.bounds is not None and batch.bounds is not None
    assert (after.bounds != batch.bounds).any() and after.bounds.dtype == batch.bounds.dtype
    np.testing.assert_array_equal(after.bounds, expected.bounds)


def test_bounds_do_not_change_what_is_drawn() -> None:
    batch = with_bounds(Sudoku(2), generate(Sudoku(2), "train", 12))
    bare = Batch(batch.inputs, batch.solution, batch.given, batch.labelled)
    generators = [torch.Generator().manual_seed(1) for _ in range(2)]
    one = Augment(Sudoku(2), "cpu", bounds=True)(tensors(batch), generators[0])
    other = Augment(Sudoku(2), "cpu")(tensors(bare), generators[1])
    assert (one.inputs == other.inputs).all() and (one.solution == other.solution).all()
    with pytest.raises(InvalidInput, match="bounds=True"):
        Augment(Sudoku(2), "cpu")(tensors(batch))


@pytest.mark.parametrize(
    ("groups", "message"),
    [([[0, 1], [1, 0]], "two groups with the same atoms"), ([[0, 5]], "tears a group of atoms apart")],
)
def test_bounds_that_cannot_follow_are_told(
    groups: list[list[int]], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = Cardinality(4, np.array(groups), bounds=lambda inputs: (inputs[:, :1], inputs[:, :1]))
    monkeypatch.setattr(LatinSquare, "constraints", lambda self: (rule,))
    with pytest.raises(InvalidInput, match=message):
        Augment(LatinSquare(4), "cpu", bounds=True)


def test_a_problem_without_symmetries_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sudoku, "symmetries", lambda self: None)
    with pytest.raises(InvalidInput, match="states no symmetries"):
        Augment(Sudoku(), "cpu")


@pytest.mark.gpu
def test_it_can_be_captured_in_a_cuda_graph() -> None:
    rows, columns = np.divmod(np.arange(81), 9)
    solution = ((3 * (rows % 3) + rows // 3 + columns) % 9)[None].repeat(64, axis=0)  # made without numba
    given = np.random.default_rng(0).random(solution.shape) < 0.5
    inputs = np.where(given, solution + 1, 0).astype(np.uint8)
    with_all = with_bounds(Sudoku(), Batch(inputs, solution, given, ~given))
    batch, augment = tensors(with_all, "cuda"), Augment(Sudoku(), "cuda", bounds=True)
    augment(batch)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        after = augment(batch)
    seen = []
    for _ in range(2):
        graph.replay()
        torch.cuda.synchronize()
        seen.append(arrays(after))
        assert Sudoku().check(seen[-1].inputs, seen[-1].solution).all()
        assert (seen[-1].bounds == with_bounds(Sudoku(), seen[-1]).bounds).all()  # type: ignore[union-attr, unused-ignore]
    assert (seen[0].inputs != seen[1].inputs).any()
