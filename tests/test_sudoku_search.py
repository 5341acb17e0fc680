"""The compiled Sudoku search against slow and simple versions of the same."""

from __future__ import annotations

import dataclasses
import hashlib
import time
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mull.data.generated import SPLITS, draw, split_of
from mull.errors import InvalidInput
from mull.problems import PROBLEMS, sudoku_search
from mull.problems.sudoku import DEFAULT_GIVENS, LEVELS_16X16, Sudoku
from mull.problems.sudoku_canonical import ORDERS, _second_row

SEEDS = st.integers(0, 2**63 - 1)
GOLDEN = [
    "1300000000400230",
    "120060800000920006790050020060000400000800600900005310600539000010000700000080000",
]
"""What the seed 1 gave when this was written, for 5 and for 26 givens."""
GOLDEN_16X16 = "8ab02cccc6953b49"
"""The same for 85 givens, as the beginning of a checksum."""


def slow_count(tokens: np.ndarray, limit: int) -> int:
    """Solutions of a 4x4 board by plain backtracking over the cells."""
    peers = [np.flatnonzero(row) for row in Sudoku(box=2).adjacency() & ~np.eye(16, dtype=bool)]
    board = tokens.tolist()
    if any(board[cell] and any(board[peer] == board[cell] for peer in peers[cell]) for cell in range(16)):
        return 0

    def completions(cell: int, wanted: int) -> int:
        if cell == 16:
            return 1
        if board[cell]:
            return completions(cell + 1, wanted)
        found = 0
        for value in set(range(1, 5)) - {board[peer] for peer in peers[cell]}:
            board[cell] = value
            found += completions(cell + 1, wanted - found)
            board[cell] = 0
            if found >= wanted:
                break
        return found

    return completions(0, limit)


def transformed(sudoku: Sudoku, board: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A random symmetry: where each cell comes from, and the new name of each value."""
    move = np.arange(len(board))
    for table in sudoku.symmetries().permutations:
        move = move[table[rng.integers(len(table))]]
    return move, rng.permutation(sudoku.side)


def slow_least_grid(solution: np.ndarray) -> bytes:
    """The least equivalent 9x9 grid over every choice of first row and every order of columns."""
    orders = list(permutations(range(3)))
    columns = np.array(
        [
            [3 * stack + column for stack, order in zip(stacks, inner, strict=True) for column in order]
            for stacks in orders
            for inner in product(orders, repeat=3)
        ]
    )
    best = bytes([10] * 81)
    for grid in (solution.reshape(9, 9), solution.reshape(9, 9).T):
        for top in range(9):
            boards = grid[:, columns].swapaxes(0, 1)  # (1296, rows, columns)
            names = boards[:, top].argsort(axis=1)
            boards = np.take_along_axis(names[:, None], boards.reshape(-1, 1, 81), axis=2).reshape(-1, 9, 9)
            first = boards[:, :, 0]
            bands = first.reshape(-1, 3, 3).min(axis=2).repeat(3, axis=1)
            order = (bands * 9 + first).argsort(axis=1)
            boards = np.take_along_axis(boards, order[:, :, None], axis=1).reshape(-1, 81) + 1
            best = min(best, min(map(bytes, boards.astype(np.uint8))))
    return best


@given(st.lists(st.integers(0, 4), min_size=16, max_size=16))
def test_counts_any_small_board_as_backtracking_does(cells: list[int]) -> None:
    tokens = np.array(cells)
    assert sudoku_search.count_solutions(2, tokens, limit=5) == slow_count(tokens, 5)


@given(SEEDS, st.integers(0, 16))
def test_counts_boards_with_several_solutions(seed: int, givens: int) -> None:
    rng = np.random.default_rng(seed)
    tokens = sudoku_search.full_grid(2, seed) + 1
    tokens[rng.permutation(16)[givens:]] = 0
    assert sudoku_search.count_solutions(2, tokens, limit=300) == slow_count(tokens, 300)


def test_an_empty_4x4_board_has_all_288_solutions() -> None:
    assert sudoku_search.count_solutions(2, np.zeros(16), limit=1000) == 288


@pytest.mark.parametrize(
    ("box", "givens"), [(2, 4), (2, 16), (3, 24), (3, 34), (3, 81), (4, 110), (4, 95), (4, 85), (5, 280)]
)
def test_makes_puzzles_with_one_solution_and_so_many_givens(box: int, givens: int) -> None:
    sudoku = Sudoku(box=box)
    for seed in range(1 if box == 5 else 5):
        tokens, solution = sudoku_search.generate(box, givens, seed)
        assert tokens.dtype == np.uint8 and solution.dtype == np.int64
        assert (tokens > 0).sum() == givens
        assert sudoku.check(tokens[None], solution[None]).all()
        assert sudoku_search.count_solutions(box, tokens) == 1
        found = sudoku_search.solve(box, tokens)
        assert found is not None and (found == solution).all()


def test_full_grids_are_valid_and_various() -> None:
    for box, seeds in ((2, 3000), (3, 100), (4, 10), (5, 3)):
        grids = np.stack([sudoku_search.full_grid(box, seed) for seed in range(seeds)])
        assert Sudoku(box=box).check(grids + 1, grids).all()
        assert len(np.unique(grids, axis=0)) == (288 if box == 2 else seeds)


def test_solve_says_none_for_a_contradiction() -> None:
    tokens = np.zeros(81, np.uint8)
    tokens[[0, 1]] = 5
    assert sudoku_search.solve(3, tokens) is None


@pytest.mark.parametrize(
    ("box", "givens", "message"),
    [(3, 16, "has 17 to 81 givens, not 16"), (2, 3, "has 4 to 16"), (2, 17, "not 17"), (4, 60, "ask for more givens")],
)
def test_refuses_numbers_of_givens_out_of_reach(
    box: int, givens: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sudoku_search.ATTEMPTS, 4, 2)
    monkeypatch.setattr(sudoku_search, "MOVES", 100)
    with pytest.raises(InvalidInput, match=message) as error:
        sudoku_search.generate(box, givens, seed=0)
    assert "\n" not in str(error.value)


def test_a_seed_gives_the_same_puzzle_on_every_machine() -> None:
    boards = [sudoku_search.generate(2, 5, 1)[0], sudoku_search.generate(3, 26, 1)[0]]
    lines = ["".join(map(str, board)) for board in boards]
    assert lines == GOLDEN
    searched = sudoku_search.generate(4, 85, 1)[0].tobytes()
    assert hashlib.sha256(searched).hexdigest().startswith(GOLDEN_16X16)


@settings(max_examples=25)
@given(SEEDS)
def test_equivalent_boards_share_their_key(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for box in (2, 3, 4):
        sudoku = Sudoku(box=box)
        tokens, solution = sudoku_search.generate(box, DEFAULT_GIVENS[box][1], seed)
        move, names = transformed(sudoku, tokens, rng)
        other_solution = names[solution[move]]
        other_tokens = np.where(tokens[move] > 0, other_solution + 1, 0)
        assert sudoku.check(other_tokens[None], other_solution[None]).all()
        key = sudoku_search.canonical(box, tokens, solution)
        assert sudoku_search.canonical(box, other_tokens, other_solution) == key


@pytest.mark.parametrize("seed", range(3))
def test_least_9x9_grid_is_the_least_of_all(seed: int) -> None:
    solution = sudoku_search.full_grid(3, seed)
    assert sudoku_search.canonical(3, solution, solution) == slow_least_grid(solution)


def test_the_second_row_places_every_column() -> None:
    """Also where a box of it takes its values from two stacks, so that no value asks for some of the places."""
    place, row = np.empty(9, np.int64), np.empty(9, np.int64)
    for seed in range(60):
        grid = sudoku_search.full_grid(3, seed).reshape(9, 9)
        for second in (1, 2):
            for stack, order in product(range(3), ORDERS):
                place[:], row[:] = 99, 99
                _second_row(grid[0], grid[second], stack, order, place, row)
                assert sorted(place) == sorted(row) == list(range(9))


def test_a_regular_grid_has_the_least_form_too() -> None:
    rows, columns = np.divmod(np.arange(81), 9)
    solution = (3 * (rows % 3) + rows // 3 + columns) % 9
    assert sudoku_search.canonical(3, solution, solution) == slow_least_grid(solution)


@pytest.mark.parametrize(("box", "count"), [(3, 300), (4, 40), (5, 8)])
def test_unrelated_grids_have_different_keys(box: int, count: int) -> None:
    grids = np.stack([sudoku_search.full_grid(box, seed) for seed in range(count)])
    assert len(np.unique(sudoku_search.canonical_many(box, grids, grids), axis=0)) == count


def test_4x4_keys_are_of_puzzles() -> None:
    """All 288 solved 4x4 grids fall into two classes, of 96 and 192 grids; puzzles into many more."""
    puzzles, solutions = zip(*(sudoku_search.generate(2, 5, seed) for seed in range(400)), strict=True)
    grids = np.stack(solutions) + 1
    assert len(np.unique(sudoku_search.canonical_many(2, grids, grids), axis=0)) == 2
    assert len(np.unique(sudoku_search.canonical_many(2, np.stack(puzzles), grids), axis=0)) > 50


def test_makes_hundreds_of_9x9_puzzles_a_second() -> None:
    sudoku = Sudoku()
    rng = np.random.default_rng(0)
    sudoku.generate(rng)
    start = time.process_time()
    for _ in range(200):
        sudoku.generate(rng)
    assert 200 / (time.process_time() - start) >= 200


def level(name: str) -> Sudoku:
    sudoku = PROBLEMS[f"sudoku-16x16-{name}"]()
    assert isinstance(sudoku, Sudoku)
    return sudoku


@pytest.mark.parametrize(
    ("name", "mean", "count"),
    [("simple", 111, 100), ("medium", 95, 60), ("tough", 103, 60), ("hard", 84.5, 20), ("regular-medium", 95, 60)],
)
def test_levels_have_their_mean_number_of_givens(name: str, mean: float, count: int) -> None:
    sudoku, rng = level(name), np.random.default_rng(0)
    givens = [int(sudoku.generate(rng).given.sum()) for _ in range(count)]
    assert abs(np.mean(givens) - mean) < 2
    low, high = LEVELS_16X16[name]
    assert low <= min(givens) and max(givens) <= high
    if name == "hard":
        assert max(givens) < 90


def needs_no_guess(sudoku: Sudoku, tokens: np.ndarray) -> bool:
    """Naked and hidden singles, one at a time, in plain Python: whether they fill the board."""
    groups = [scope for rule in sudoku.constraints()[:3] for scope in rule.scopes()]
    values, all_values = tokens.astype(int), set(range(1, sudoku.side + 1))
    left = {cell: set(all_values) for cell in np.flatnonzero(values == 0)}
    while left:
        for group in groups:
            known = {int(values[cell]) for cell in group}
            for cell in group:
                if cell in left:
                    left[cell] -= known
        found = {cell: min(may) for cell, may in left.items() if len(may) == 1}
        for group in groups:
            for value in all_values - {int(values[cell]) for cell in group}:
                cells = [cell for cell in group if value in left.get(cell, ())]
                found |= {cells[0]: value} if len(cells) == 1 else {}
        if not found:
            return False
        for cell, value in found.items():
            values[cell] = value
            del left[cell]
    return True


def test_some_levels_need_no_guess() -> None:
    easy, rng = {}, np.random.default_rng(0)
    for name in LEVELS_16X16:
        sudoku = level(name)
        easy[name] = np.mean([needs_no_guess(sudoku, sudoku.generate(rng).inputs) for _ in range(10)])
    assert easy["simple"] == easy["medium"] == easy["regular-simple"] == easy["regular-medium"] == 1
    assert easy["tough"] < 0.5 and easy["hard"] < 0.5 < easy["mixed"]


@given(SEEDS, st.sampled_from([2, 3]))
def test_puzzles_without_a_guess_of_any_size(seed: int, box: int) -> None:
    sudoku = Sudoku(box=box, givens=(30, 30) if box == 3 else (6, 6), singles=1)
    instance = sudoku.generate(np.random.default_rng(seed))
    assert needs_no_guess(sudoku, instance.inputs)
    assert sudoku_search.count_solutions(box, instance.inputs) == 1


@given(SEEDS, st.sampled_from([3, 4]))
def test_regular_grids_are_one_class(seed: int, box: int) -> None:
    """Their symmetry class is that of the pattern; as keys of their own they differ, whatever values are called."""
    givens = {3: (34, 34), 4: (200, 200)}[box]
    regular, stirred = Sudoku(box=box, givens=givens, regular=True), Sudoku(box=box, givens=givens)
    instance = regular.generate(np.random.default_rng(seed))
    assert instance.solution is not None
    pattern = np.array([[(box * (r % box) + r // box + c) % box**2 for c in range(box**2)] for r in range(box**2)])
    same = dataclasses.replace(instance, inputs=pattern.ravel().astype(np.uint8) + 1, solution=pattern.ravel())
    assert stirred.canonical(instance) == stirred.canonical(same)
    names = np.random.default_rng(seed).permutation(box**2)
    renamed = dataclasses.replace(instance, solution=names[instance.solution])
    assert regular.canonical(renamed) == regular.canonical(instance)
    other = regular.generate(np.random.default_rng(seed + 1))
    assert regular.canonical(other) != regular.canonical(instance)


def test_splits_of_regular_boards_share_no_grid() -> None:
    sudoku = level("regular-simple")
    keys = {split: {sudoku.canonical(draw(sudoku, split, number)) for number in range(4)} for split in SPLITS}
    assert all(len(found) == 4 for found in keys.values())
    assert all(split_of(key) == split for split, found in keys.items() for key in found)


def test_too_few_givens_without_a_guess_are_refused() -> None:
    with pytest.raises(InvalidInput, match="without a guess in 200 attempts"):
        Sudoku(box=4, givens=(70, 70), singles=1).generate(np.random.default_rng(0))
    with pytest.raises(InvalidInput, match="a share between 0 and 1, not 2"):
        Sudoku(box=4, singles=2)


def exactly_one_solution(sudoku: Sudoku, tokens: np.ndarray, solution: np.ndarray) -> bool:
    """Two questions to CP-SAT, which shares no code with the generator: is there a solution, and another one?"""
    cp_model = pytest.importorskip("ortools.sat.python.cp_model")
    model = cp_model.CpModel()
    cells = [model.new_int_var(0, sudoku.side - 1, "") for _ in tokens]
    for constraint in sudoku.constraints()[:3]:
        for scope in constraint.scopes():
            model.add_all_different([cells[cell] for cell in scope])
    for cell, token in zip(cells, tokens.tolist(), strict=True):
        if token:
            model.add(cell == token - 1)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    found = solver.solve(model) == cp_model.OPTIMAL and [solver.value(cell) for cell in cells] == solution.tolist()
    model.add_forbidden_assignments(cells, [solution.tolist()])
    return found and solver.solve(model) == cp_model.INFEASIBLE


def test_levels_have_one_solution() -> None:
    for name in LEVELS_16X16:
        instance = level(name).generate(np.random.default_rng(1))
        assert instance.solution is not None
        assert exactly_one_solution(level(name), instance.inputs, instance.solution)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "count"), [*((f"sudoku-16x16-{name}", 20) for name in LEVELS_16X16), ("sudoku-25x25", 5)]
)
def test_many_boards_of_every_level_have_one_solution(name: str, count: int) -> None:
    sudoku, rng = PROBLEMS[name](), np.random.default_rng(2)
    assert isinstance(sudoku, Sudoku)
    for _ in range(count):
        instance = sudoku.generate(rng)
        assert instance.solution is not None
        assert exactly_one_solution(sudoku, instance.inputs, instance.solution)
        assert sudoku_search.count_solutions(sudoku.box, instance.inputs) == 1


def test_a_doubtful_board_would_be_noticed() -> None:
    """The check above says no to a board with two solutions."""
    sudoku = level("hard")
    instance = sudoku.generate(np.random.default_rng(1))
    assert instance.solution is not None
    tokens = instance.inputs.copy()
    tokens[instance.inputs <= 2] = 0  # two values without a given can change places
    assert not exactly_one_solution(sudoku, tokens, instance.solution)


@given(SEEDS, st.integers(4, 12))
def test_local_search_keeps_the_solution_unique(seed: int, givens: int) -> None:
    solution = sudoku_search.full_grid(2, seed)
    tokens = solution + 1
    room = (*sudoku_search.workspace(2), *sudoku_search.tables(2))
    reached = sudoku_search.reduce(tokens, solution, givens, 1000, 30, np.array([seed], np.uint64), *room)
    left = np.count_nonzero(tokens)
    assert left == givens if reached else left > givens
    assert slow_count(tokens, 2) == 1
    assert (tokens[tokens > 0] == solution[tokens > 0] + 1).all()


def test_levels_give_the_same_boards_again_and_share_no_grid() -> None:
    boards = [[level(name).generate(np.random.default_rng(5)) for name in LEVELS_16X16] for _ in range(2)]
    for first, second in zip(*boards, strict=True):
        assert (first.inputs == second.inputs).all()
    grids = np.stack([instance.solution for instance in boards[0] if instance.solution is not None])
    assert len(np.unique(grids, axis=0)) == len(LEVELS_16X16)


def test_plain_16x16_boards_are_those_of_the_level_simple() -> None:
    plain, simple = Sudoku(box=4).generate(np.random.default_rng(3)), level("simple").generate(np.random.default_rng(3))
    assert (plain.inputs == simple.inputs).all()
