"""Pictures as data: the marks of small examples."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from mull.constraints import UNKNOWN, Constraint, IntArray
from mull.errors import InvalidInput
from mull.picture import GHOST, TINT, Circle, Line, Mark, Picture, Pixels, Rect, Text, board
from mull.problem import Images, Instance, Variables
from mull.problems.nonogram import Nonogram
from mull.problems.shortest_path import ShortestPath
from mull.problems.sudoku import Sudoku
from mull.problems.TEMPLATE import LatinSquare

SUDOKU, PUZZLE, SOLUTION = Sudoku(box=2), "4..1..2..1.2....", "4231132431422413"


def marks(picture: Picture, kind: type[Mark]) -> list[Mark]:
    return [mark for mark in picture.marks if isinstance(mark, kind)]


def texts(picture: Picture) -> dict[tuple[float, float], Text]:
    """Texts by the cell that they stand in."""
    return {(mark.x // 1, mark.y // 1): mark for mark in picture.marks if isinstance(mark, Text)}


def test_a_puzzle_shows_its_givens() -> None:
    instance = SUDOKU.parse(PUZZLE)
    picture = SUDOKU.picture(instance, SUDOKU.given_values(instance))
    assert (picture.width, picture.height) == (4, 4)
    givens = {(0, 0): "4", (3, 0): "1", (2, 1): "2", (1, 2): "1", (3, 2): "2"}
    assert {place: mark.text for place, mark in texts(picture).items()} == givens
    assert {(mark.role, mark.bold, mark.opacity) for mark in texts(picture).values()} == {("given", True, 1.0)}


def test_boxes_have_thick_lines() -> None:
    instance = SUDOKU.parse(PUZZLE)
    lines = marks(SUDOKU.picture(instance, SUDOKU.given_values(instance)), Line)
    thick = {line.points for line in lines if line.role == "ink" and len(line.points) == 2}
    assert {points for points in thick if points[0][0] == points[1][0]} == {((2, y), (2, y + 1)) for y in range(4)}
    assert {points for points in thick if points[0][1] == points[1][1]} == {((x, 2), (x + 1, 2)) for x in range(4)}
    assert len(lines) == 2 * 4 * 3 + 1
    assert lines[-1].points == ((0, 0), (4, 0), (4, 4), (0, 4), (0, 0))


def test_the_surer_the_larger() -> None:
    instance, values = SUDOKU.parse(PUZZLE), SUDOKU.parse_answer(SOLUTION)
    shown = texts(SUDOKU.picture(instance, values, np.linspace(0.3, 1.0, 16)))
    assert shown[0, 0].role == "given" and shown[0, 0].size == shown[3, 2].size  # whatever the model thinks
    own = [mark for mark in shown.values() if mark.role == "model"]
    assert len(own) == 11 and not any(mark.bold for mark in own)
    assert sorted(own, key=lambda mark: mark.size) == sorted(own, key=lambda mark: mark.opacity) == own


def test_what_breaks_a_rule_is_wrong() -> None:
    instance, values = SUDOKU.parse(PUZZLE), SUDOKU.parse_answer(SOLUTION)
    assert not marks(SUDOKU.picture(instance, values), Rect)
    values[1] = 0  # a second 1 in the row, whose other one is given, in the column, likewise, and in the box
    picture = SUDOKU.picture(instance, values)
    assert {place for place, mark in texts(picture).items() if mark.role == "wrong"} == {(1, 0), (0, 1)}
    assert marks(picture, Rect) == [Rect(x, y, 1, 1, "wrong", TINT) for x, y in ((1, 0), (0, 1))]
    values[[0, 1]] = [1, UNKNOWN]  # a given that was changed; what is unknown is not wrong
    shown = texts(SUDOKU.picture(instance, values))
    assert shown[0, 0].role == "wrong" and (1, 0) not in shown
    assert Rect(1, 0, 1, 1, "wrong", TINT) not in SUDOKU.picture(instance, values).marks
    asked = SUDOKU.picture(instance, values, wrong=np.arange(16) == 5)
    assert marks(asked, Rect) == [Rect(1, 1, 1, 1, "wrong", TINT)]


def test_a_custom_board_needs_no_picture_of_its_own() -> None:
    problem = LatinSquare(3)
    instance = problem.parse("12.......")
    shown = texts(problem.picture(instance, problem.given_values(instance)))
    assert {place: mark.text for place, mark in shown.items()} == {(0, 0): "1", (1, 0): "2"}
    lines = marks(problem.picture(instance, problem.given_values(instance)), Line)
    assert [line.role for line in lines] == ["faint"] * 12 + ["ink"]


class InARow(LatinSquare):
    def variables(self) -> Variables:
        return Variables((self.side**2,), values=self.side)

    def constraints(self) -> tuple[Constraint, ...]:
        return ()


def test_no_board_and_no_picture_is_told_in_one_line() -> None:
    problem = InARow(3)
    with pytest.raises(InvalidInput, match="latin-square-3x3 cannot be drawn: it is no board") as error:
        problem.picture(problem.parse("." * 9), np.full(9, UNKNOWN))
    assert "\n" not in str(error.value)


@dataclass(frozen=True)
class Seen(Sudoku):
    """A Sudoku whose cells are images of 2x2 pixels."""

    def input_kind(self) -> Images:  # type: ignore[override]
        return Images(2, 2)

    def constraints(self) -> tuple[Constraint, ...]:
        return super().constraints()[:3]

    def given_values(self, instance: Instance) -> IntArray:
        return np.full(16, UNKNOWN)


def test_images_are_shown_until_they_are_read() -> None:
    problem, tokens = Seen(box=2), SUDOKU.parse(PUZZLE).inputs
    images = np.repeat(tokens, 4).reshape(16, 2, 2) / 4
    instance = Instance(images, tokens > 0)
    puzzle = problem.picture(instance, problem.given_values(instance))
    assert len(marks(puzzle, Pixels)) == 16 and not texts(puzzle)
    assert marks(puzzle, Pixels)[0] == Pixels(0, 0, 1, 1, np.full((2, 2), 255, np.uint8))
    assert marks(puzzle, Pixels)[0] != marks(puzzle, Pixels)[3]
    solved = problem.picture(instance, SUDOKU.parse_answer(SOLUTION), np.full(16, 0.5))
    assert {(mark.x, mark.y, mark.opacity) for mark in marks(solved, Pixels)} == {
        (cell % 4, cell // 4, GHOST) for cell in np.flatnonzero(tokens)
    }
    roles = [texts(solved)[cell % 4, cell // 4].role for cell in range(16)]
    assert roles == ["given" if token else "model" for token in tokens]
    assert len({mark.size for mark in texts(solved).values()}) == 1  # what was read is as sure as the model is
    assert puzzle == problem.picture(instance, problem.given_values(instance)) != solved


def test_long_names_are_smaller() -> None:
    one, two = (board((1, 1), names, np.array([0]), np.array([False])) for names in (["1"], ["16"]))
    assert texts(two)[0, 0].size < texts(one)[0, 0].size


# --- nonograms

SQUARE = Nonogram(side=3)
HINTS, BITS = "1.1/1/2/1/2/1.1", "100011101"


def hints(picture: Picture) -> tuple[list[str], list[str]]:
    """The hints from left to right beside each row, and from top to bottom above each column."""
    left, top = picture.width - 3, picture.height - 3
    shown = [mark for mark in picture.marks if isinstance(mark, Text)]
    beside = sorted((mark.y, mark.x, mark.text) for mark in shown if mark.x < left)
    above = sorted((mark.x, mark.y, mark.text) for mark in shown if mark.y < top)
    assert len(beside) + len(above) == len(shown)
    return [text for *_, text in beside], [text for *_, text in above]


def test_a_nonogram_has_its_hints() -> None:
    instance = SQUARE.parse(HINTS)
    picture = SQUARE.picture(instance, SQUARE.given_values(instance))
    assert hints(picture) == (["1", "2", "1", "1"], ["1", "1", "1", "2"])
    assert not marks(picture, Rect)
    assert all(min(mark.x, mark.y) > 0.25 for mark in marks(picture, Text))
    empty = SQUARE.parse("0/1/0/0/1/0")
    assert hints(SQUARE.picture(empty, SQUARE.given_values(empty))) == (["0", "1", "0"], ["0", "1", "0"])


def test_cells_are_as_black_as_they_are_likely() -> None:
    instance, values = SQUARE.parse(HINTS), SQUARE.parse_answer(BITS)
    solved = SQUARE.picture(instance, values)
    left, top = solved.width - 3, solved.height - 3
    black = {(round(mark.x - left), round(mark.y - top)): mark.opacity for mark in marks(solved, Rect)}
    assert black == {(0, 0): 1, (1, 1): 1, (2, 1): 1, (0, 2): 1, (2, 2): 1}
    unsure = marks(SQUARE.picture(instance, values, np.full(9, 0.75)), Rect)
    assert [mark.opacity for mark in unsure] == [0.75 if bit == "1" else 0.25 for bit in BITS]
    assert {mark.role for mark in marks(solved, Text)} == {"ink"}


def test_hints_that_are_not_met_are_wrong() -> None:
    instance, values = SQUARE.parse(HINTS), SQUARE.parse_answer(BITS)
    values[0] = 0
    picture = SQUARE.picture(instance, values)
    wrong = [mark for mark in marks(picture, Text) if mark.role == "wrong"]
    assert [mark.text for mark in wrong] == ["1", "1", "1"]  # row 1, and both hints of column 1
    picture = SQUARE.picture(instance, values, wrong=np.arange(9) == 0)
    assert marks(picture, Rect)[0].role == "wrong"


@pytest.mark.parametrize(("side", "widths"), [(7, 2), (10, 3), (15, 3)])
def test_large_squares_have_thicker_lines_after_every_fifth_cell(side: int, widths: int) -> None:
    problem = Nonogram(side)
    instance = problem.parse("/".join(["0"] * 2 * side))
    lines = marks(problem.picture(instance, problem.given_values(instance)), Line)
    assert len({line.width for line in lines}) == widths
    assert len([line for line in lines if line.width > lines[0].width]) == 1 + 2 * ((side - 1) // 5) * (widths == 3)


# --- paths

GRID = ShortestPath(2)
# 0 -0- 1
# 2     3      edge 1 joins 2 and 3, edge 2 joins 0 and 2, edge 3 joins 1 and 3
INSTANCE = GRID.parse("2x2 ends=0-3 removed=2")


def segments(picture: Picture) -> list[Line]:
    return [mark for mark in picture.marks if isinstance(mark, Line)]


def test_a_grid_lacks_its_removed_edges() -> None:
    picture = GRID.picture(INSTANCE, GRID.given_values(INSTANCE))
    assert len(segments(picture)) == 3 and {line.role for line in segments(picture)} == {"ink"}
    nodes = marks(picture, Circle)
    assert [node.role for node in nodes] == ["given", "ink", "ink", "given"]
    assert [node.width > 0 for node in nodes] == [False, True, True, False]
    assert nodes[0].x == nodes[2].x < nodes[1].x and nodes[0].y == nodes[1].y < nodes[2].y
    assert nodes[3].x - nodes[0].x == nodes[3].y - nodes[0].y == 1


def test_a_path_is_drawn_over_the_grid() -> None:
    values = GRID.parse_answer("0-1-3")
    picture = GRID.picture(INSTANCE, values, np.linspace(0.2, 0.9, 8))
    path = [line for line in segments(picture) if line.role == "model"]
    nodes = [mark for mark in picture.marks if isinstance(mark, Circle) and not mark.width]
    at = {0: nodes[0], 1: nodes[1], 3: nodes[2]}
    assert [line.points for line in path] == [((at[a].x, at[a].y), (at[b].x, at[b].y)) for a, b in ((0, 1), (1, 3))]
    assert [line.opacity for line in path] == pytest.approx([0.6, 0.9])
    assert [node.role for node in nodes] == ["given", "model", "given"]
    assert min(line.width for line in path) > 2 * max(line.width for line in segments(picture)[:3])


def test_removed_edges_and_missing_ends_are_wrong() -> None:
    picture = GRID.picture(INSTANCE, GRID.parse_answer("0-2-3"))
    assert [line.role for line in segments(picture)[3:]] == ["model", "wrong"]
    values = GRID.parse_answer("0-1-3")
    values[0] = 0
    assert marks(GRID.picture(INSTANCE, values), Circle)[0].role == "wrong"


def test_pictures_are_values() -> None:
    one = Pixels(0, 0, 1, 1, np.zeros((2, 2), np.uint8))
    assert one == replace(one, grey=np.zeros((2, 2), np.uint8)) != replace(one, opacity=0.5)
    assert one != Rect(0, 0, 1, 1)
    assert Picture(1, 1, (one,)) == Picture(1, 1, (replace(one),))
