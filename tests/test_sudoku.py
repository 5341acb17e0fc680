"""Sudoku of every box size, and a parser that meets anything."""

from __future__ import annotations

import dataclasses
import doctest
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mull.constraints import UNKNOWN
from mull.errors import InvalidInput
from mull.problem import Instance
from mull.problems.sudoku import LEVELS_16X16, Sudoku

BOXES = (2, 3, 4, 5)
PUZZLE = "000000010400000000020000000000050407008000300001090000300400200050100000000806000"
SOLUTION = "693784512487512936125963874932651487568247391741398625319475268856129743274836159"


def solved_board(box: int) -> np.ndarray:
    """A solved board for any box size, by the usual shifting pattern."""
    side = box**2
    row, column = np.divmod(np.arange(side * side), side)
    return (row * box + row // box + column) % side


def values(text: str) -> np.ndarray:
    return np.array([int(digit) - 1 for digit in text])


@pytest.mark.parametrize("box", BOXES)
def test_a_solved_board_passes_and_every_changed_cell_is_caught(box: int) -> None:
    sudoku, board = Sudoku(box), solved_board(box)
    inputs = np.zeros((1, board.size), dtype=np.uint8)
    assert sudoku.check(inputs, board[None]).all()
    changed = np.tile(board, (board.size, 1))
    np.fill_diagonal(changed, (board + 1) % sudoku.side)
    assert not sudoku.check(np.broadcast_to(inputs, changed.shape), changed).any()


@pytest.mark.parametrize("box", BOXES)
def test_check_agrees_with_sets(box: int) -> None:
    sudoku, rng = Sudoku(box), np.random.default_rng(box)
    boards = np.tile(solved_board(box), (20, 1))
    for board in boards[1:]:  # swap two cells of one row: rows stay right, columns or boxes mostly do not
        one, two = rng.choice(sudoku.side, 2, replace=False)
        board[[one, two]] = board[[two, one]]
    said = sudoku.check(np.zeros(boards.shape, dtype=np.uint8), boards)
    for board, ok in zip(boards.reshape(-1, sudoku.side, sudoku.side), said, strict=True):
        squares = [
            board[r : r + box, c : c + box] for r in range(0, sudoku.side, box) for c in range(0, sudoku.side, box)
        ]
        groups = [*board, *board.T, *squares]
        assert ok == all(set(np.ravel(group).tolist()) == set(range(sudoku.side)) for group in groups)


@pytest.mark.parametrize("box", BOXES)
def test_sizes_and_names(box: int) -> None:
    sudoku = Sudoku(box)
    assert sudoku.variables().count == box**4
    assert sudoku.variables().values == box**2
    assert sudoku.input_kind().vocabulary == box**2 + 1
    neighbours = sudoku.adjacency().sum(axis=1)
    assert (neighbours == 3 * box**2 - 2 * box).all()  # row, column and box, the cell itself included


def test_a_box_that_is_no_box_is_refused() -> None:
    with pytest.raises(InvalidInput, match="2, 3, 4 or 5"):
        Sudoku(box=6)


@pytest.mark.parametrize("box", BOXES)
def test_written_puzzles_parse_to_themselves(box: int) -> None:
    sudoku, rng = Sudoku(box), np.random.default_rng(0)
    tokens = np.where(rng.random(box**4) < 0.5, solved_board(box) + 1, 0).astype(np.uint8)
    instance = Instance(tokens, tokens > 0)
    text = sudoku.write(instance)
    parsed = sudoku.parse(text)
    np.testing.assert_array_equal(parsed.inputs, tokens)
    np.testing.assert_array_equal(parsed.given, tokens > 0)
    np.testing.assert_array_equal(sudoku.given_values(parsed), np.where(tokens > 0, solved_board(box), UNKNOWN))
    assert sudoku.write(parsed) == text
    assert sudoku.write_answer(sudoku.given_values(parsed)) == text


def test_dots_zeros_and_surrounding_space_are_the_same() -> None:
    sudoku = Sudoku()
    np.testing.assert_array_equal(sudoku.parse(f"  {PUZZLE.replace('0', '.')}\r\n").inputs, sudoku.parse(PUZZLE).inputs)


def test_a_known_puzzle_and_its_solution() -> None:
    sudoku = Sudoku()
    instance = sudoku.parse(PUZZLE)
    assert sudoku.check(instance.inputs[None], values(SOLUTION)[None]).all()
    other = sudoku.parse("9" + PUZZLE[1:])
    assert not sudoku.check(other.inputs[None], values(SOLUTION)[None]).any()
    assert sudoku.write_answer(values(SOLUTION)) == SOLUTION


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected 81 characters, got 0"),
        (PUZZLE[:-1], "expected 81 characters, got 80"),
        (PUZZLE + "1", "expected 81 characters, got 82"),
        ("x" + PUZZLE[1:], "cell 1 is 'x'"),
        (PUZZLE[:40] + "\n" + PUZZLE[41:], r"cell 41 is '\n'"),
        (PUZZLE[:-1] + "²", "cell 81 is '²'"),
    ],
)
def test_bad_puzzles_say_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        Sudoku().parse(text)


anything = st.one_of(
    st.text(max_size=100),
    st.binary(max_size=100).map(lambda data: data.decode("latin-1")),
    st.binary(max_size=100).map(lambda data: data.decode("utf-8", "surrogateescape")),
    st.text(alphabet="0123456789. \t\n\x00²٣x-", min_size=16, max_size=16),
    st.text(alphabet="0123456789.-+x²٣\n", min_size=81, max_size=81),
    st.lists(
        st.sampled_from(["0", "1", "16", "17", "99999999999", "-1", ".", "1e1", "²"]), min_size=256, max_size=256
    ).map(" ".join),
)


@given(anything, st.sampled_from(BOXES))
@example("\u2028" * 81, 3)
@example("\ud800" * 81, 3)
def test_whatever_is_parsed_gives_an_instance_or_one_clear_line(text: str, box: int) -> None:
    sudoku, message = Sudoku(box), ""
    try:
        instance = sudoku.parse(text)
    except InvalidInput as error:
        message = str(error)
    if message:
        assert len(message.splitlines()) == 1
        assert len(message.encode()) < 200  # printable too: lone surrogates do not encode
    else:
        assert instance.inputs.shape == (box**4,)
        assert instance.inputs.max() <= box**2
        np.testing.assert_array_equal(sudoku.parse(sudoku.write(instance)).inputs, instance.inputs)


@pytest.mark.parametrize(
    ("cells", "broken"),
    [((0, 8), "row 1 holds 5 once"), ((0, 72), "column 1 holds 5 once"), ((0, 10), "box 1 holds 5 once")],
)
def test_contradicting_givens_are_refused_by_name(cells: tuple[int, int], broken: str) -> None:
    text = "".join("5" if cell in cells else "." for cell in range(81))
    with pytest.raises(InvalidInput, match=broken):
        Sudoku().validate(Sudoku().parse(text))


def test_givens_that_leave_a_value_no_place_in_a_row_are_no_direct_contradiction() -> None:
    Sudoku().validate(Sudoku().parse(PUZZLE))
    Sudoku().validate(Sudoku().parse("." * 81))


@pytest.mark.parametrize("box", BOXES)
def test_render_draws_every_cell_in_its_place(box: int) -> None:
    sudoku, board = Sudoku(box), solved_board(box)
    lines = sudoku.render(board).splitlines()
    assert len(lines) == box**2 + box - 1
    assert len({len(line) for line in lines}) == 1
    numbers = [int(number) for line in lines for number in re.findall(r"\d+", line)]
    assert numbers == (board + 1).tolist()


def test_render_of_a_partial_answer_marks_givens() -> None:
    sudoku = Sudoku(box=2)
    instance = sudoku.parse("1..4" + "." * 12)
    known = sudoku.given_values(instance)
    assert sudoku.render(known).splitlines()[0] == "1 . | . 4"
    assert sudoku.render(known, instance.given).splitlines()[0] == "\x1b[1m1\x1b[0m . | . \x1b[1m4\x1b[0m"


@pytest.mark.parametrize("box", BOXES)
def test_symmetries_are_permutations_that_keep_boards_right(box: int) -> None:
    sudoku, rng = Sudoku(box), np.random.default_rng(0)
    tables = sudoku.symmetries().permutations
    assert len(tables) == 2 * (box + 1) + 1
    inputs = np.zeros((1, box**4), dtype=np.uint8)
    for table in tables:
        np.testing.assert_array_equal(np.sort(table, axis=1), np.broadcast_to(np.arange(box**4), table.shape))
        row = table[rng.integers(len(table))]
        assert sudoku.check(inputs, solved_board(box)[row][None]).all()


def test_symmetries_of_4x4_generate_the_whole_group() -> None:
    tables = Sudoku(box=2).symmetries().permutations
    reached = {tuple(range(16))}
    for table in tables:
        reached = {tuple(np.array(order)[row].tolist()) for order in reached for row in table}
    assert len(reached) == 2 * 8 * 8  # transpose, rows, columns: 128 distinct moves of the cells


def test_generated_puzzles_have_the_asked_number_of_givens() -> None:
    sudoku = Sudoku(box=2, givens=(6, 6))
    instance = sudoku.generate(np.random.default_rng(0))
    assert instance.given.sum() == 6
    assert instance.solution is not None
    assert sudoku.check(instance.inputs[None], instance.solution[None]).all()


def test_the_page_says_which_numbers_of_givens_the_levels_have(root: Path) -> None:
    page = (root / "docs" / "problems" / "sudoku.md").read_text()
    for level, (low, high) in LEVELS_16X16.items():
        assert f"| `sudoku-16x16-{level}` | {low} to {high} |" in page


def test_canonical_needs_the_solution() -> None:
    with pytest.raises(ValueError, match="solved grid"):
        Sudoku(box=2).canonical(dataclasses.replace(Sudoku(box=2).parse("." * 16), solution=None))


def test_the_worked_example_in_the_docstring() -> None:
    from mull.problems import sudoku

    tried = doctest.testmod(sudoku)
    assert tried.attempted > 0 and tried.failed == 0
