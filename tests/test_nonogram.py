"""Nonograms: runs against brute force, puzzles with one solution, text, data files, and a short training."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby, product
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mull.constraints import UNKNOWN
from mull.data import sets
from mull.data.generated import generate
from mull.data.registry import EXTERNAL
from mull.data.splits import deal
from mull.data.streams import stream
from mull.errors import InvalidInput
from mull.evaluate import metrics
from mull.losses import LossWeights
from mull.models.recurrent_transformer import ModelConfig
from mull.predict import predict
from mull.problem import Instance, stack
from mull.problems import get_problem, problem_from_dict, problem_to_dict
from mull.problems.nonogram import Nonogram
from mull.problems.nonogram_runs import can_hold, runs_of
from mull.recipes import Data, Recipe, Training
from mull.runtime import TorchRuntime
from mull.terminal import print_puzzle
from mull.testing import check_problem
from mull.trainer import Trainer

PUZZLE, SOLUTION = "1.1/1/2/1/2/1.1", "100011101"
DRAWN = "     1\n     1 1 2\n  1 ██ · ·\n  2  ·████\n1 1 ██ ·██"


def naive_runs(line: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(len(list(group)) for value, group in groupby(line) if value == 1)


def padded(runs: tuple[int, ...], size: int) -> list[int]:
    return [0] * ((size + 1) // 2 - len(runs)) + list(runs)


def naive_solutions(hints: np.ndarray) -> list[tuple[tuple[int, ...], ...]]:
    """All pictures that fit hints (2, side, width): every product of rows that fit, columns checked."""
    side = hints.shape[1]
    lines = list(product((0, 1), repeat=side))
    rows = [[line for line in lines if padded(naive_runs(line), side) == hints[0, row].tolist()] for row in range(side)]
    columns = hints[1].tolist()
    return [
        picture
        for picture in product(*rows)
        if [padded(naive_runs(line), side) for line in zip(*picture, strict=True)] == columns
    ]


def hints_of(problem: Nonogram, instance: Instance) -> np.ndarray:
    cells = instance.inputs.reshape(problem.side, problem.side, 2, problem.width)
    return np.stack([cells[:, 0, 0], cells[0, :, 1]])


def from_picture(picture: np.ndarray) -> Instance:
    """The instance whose solution is a picture, made by way of text and with the naive runs."""
    lines = [*picture.T.tolist(), *picture.tolist()]
    text = "/".join(".".join(map(str, naive_runs(tuple(line)))) or "0" for line in lines)
    return replace(Nonogram(side=len(picture)).parse(text), solution=picture.ravel())


# --- contract


@pytest.mark.parametrize(
    "problem",
    [Nonogram(4), Nonogram(), Nonogram(15), Nonogram(kind="line"), Nonogram(6, "search")],
    ids=lambda problem: problem.name,
)
def test_nonograms_keep_the_contract(problem: Nonogram) -> None:
    check_problem(problem)
    assert problem_from_dict(problem_to_dict(problem)) == problem


@pytest.mark.parametrize("options", [{"side": 1}, {"side": 65}, {"kind": "hard"}])
def test_impossible_options_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        Nonogram(**options)  # type: ignore[arg-type]


def test_names() -> None:
    assert get_problem("nonogram") == Nonogram(7) and get_problem("nonogram-15") == Nonogram(15)
    assert [get_problem(name).name for name in ("nonogram", "nonogram-15")] == ["nonogram", "nonogram-15"]
    assert Nonogram(9, "search").name == "nonogram-9-search"


# --- runs


@pytest.mark.parametrize("size", range(1, 7))
def test_runs_agree_with_brute_force_on_all_partial_lines(size: int) -> None:
    lines = list(product((0, 1), repeat=size))
    assert runs_of(np.array(lines) == 1).tolist() == [padded(naive_runs(line), size) for line in lines]
    hints = sorted({naive_runs(line) for line in lines})
    possible = {  # every partial line, and the runs of its completions
        part: {naive_runs(full) for full in product(*((0, 1) if cell == UNKNOWN else (cell,) for cell in part))}
        for part in product((UNKNOWN, 0, 1), repeat=size)
    }
    parts, runs = zip(*product(possible, hints), strict=True)
    expected = [run in possible[part] for part, run in zip(parts, runs, strict=True)]
    assert can_hold(np.array(parts), np.array([padded(run, size) for run in runs])).tolist() == expected


def test_checker_agrees_with_brute_force_on_whole_boards() -> None:
    problem = Nonogram(3)
    pictures = np.array(list(product((0, 1), repeat=9)))
    for number in range(0, 512, 7):
        instance = from_picture(pictures[number].reshape(3, 3))
        inputs = np.broadcast_to(instance.inputs, (512, *instance.inputs.shape))
        found = {tuple(answer) for answer in pictures[problem.check(inputs, pictures)].tolist()}
        assert found == {sum(picture, ()) for picture in naive_solutions(hints_of(problem, instance))}
        batch = stack([instance] * 512)
        assert problem.right(batch, pictures).sum() == len(found)
        scores = problem.metrics(batch, pictures)
        assert scores["fitting_board"] == pytest.approx(len(found) / 512)
        assert scores["fitting_board"] <= scores["fitting_line"] <= 1


def test_partial_boards_mix_with_whole_ones() -> None:
    problem, instance = Nonogram(3), Nonogram(3).parse(PUZZLE)
    whole = problem.parse_answer(SOLUTION)
    open_board, broken = np.full(9, UNKNOWN), np.full(9, UNKNOWN)
    broken[3] = 1  # the first cell of row 2: column 1 has a gap there
    assert [len(problem.conflicts(instance.inputs, values)) for values in (whole, open_board)] == [0, 0]
    labels = [label for label, _ in problem.conflicts(instance.inputs, broken)]
    assert labels == ["column 1 has the runs that its hints say"]
    boards = np.stack([whole, open_board, broken, 1 - whole])
    inputs = np.broadcast_to(instance.inputs, (4, *instance.inputs.shape))
    assert problem.check(inputs, boards).tolist() == [True, False, False, False]


# --- generation


@pytest.mark.parametrize("kind", ["unique", "line", "search"])
def test_generated_boards_have_one_solution_by_brute_force(kind: str) -> None:
    from mull.problems.nonogram_search import line_solvable

    problem = Nonogram(4 if kind != "search" else 5, kind)
    for number in range(25 if kind != "search" else 5):
        instance = problem.generate(stream(3, kind, number))
        hints = hints_of(problem, instance)
        assert instance.solution is not None
        assert [sum(picture, ()) for picture in naive_solutions(hints)] == [tuple(instance.solution.tolist())]
        assert kind == "unique" or line_solvable(hints) == (kind == "line")


def test_counts_agree_with_brute_force() -> None:
    from mull.problems.nonogram_search import count_solutions, line_solvable, solve_line

    rng = stream(0, "pictures")
    for _ in range(100):
        instance = from_picture(rng.integers(2, size=(4, 4)))
        hints = hints_of(Nonogram(4), instance)
        solutions = len(naive_solutions(hints))
        assert count_solutions(hints, most=50) == solutions
        assert solutions == 1 or not line_solvable(hints)
    for part in product((UNKNOWN, 0, 1), repeat=5):  # what a line forces, against all ways to complete it
        for runs in ((), (1,), (2, 1), (3,), (1, 1, 1), (5,)):
            ways = [
                full
                for full in product(*((0, 1) if cell == UNKNOWN else (cell,) for cell in part))
                if naive_runs(full) == runs
            ]
            line = np.array(part, np.int8)
            filled = solve_line(line, np.array(padded(runs, 5)))
            if not ways:
                assert filled == -1
                continue
            forced = [cells[0] if len(set(cells)) == 1 else UNKNOWN for cells in zip(*ways, strict=True)]
            assert line.tolist() == forced
            assert filled == part.count(UNKNOWN) - forced.count(UNKNOWN)


def test_black_cells_are_about_half() -> None:
    share = generate(Nonogram(), "train", 50).solution.mean()
    assert 0.4 < share < 0.6


def test_turned_and_mirrored_puzzles_share_a_class() -> None:
    problem, rng = Nonogram(5), stream(0, "turned")
    keys = set()
    for _ in range(20):
        picture = rng.integers(2, size=(5, 5))
        images = [np.rot90(side, turns) for side in (picture, picture.T) for turns in range(4)]
        (key,) = {problem.canonical(from_picture(image)) for image in images}
        assert problem.canonical(replace(from_picture(picture), solution=None)) == key
        keys.add(key)
    assert len(keys) == 20


# --- text


def test_text_and_drawing(capsys: pytest.CaptureFixture[str]) -> None:
    problem = Nonogram(3)
    instance = problem.parse(f" {PUZZLE}\n")
    assert problem.write(instance) == PUZZLE
    assert instance.inputs.dtype == np.uint8 and instance.inputs[1].tolist() == [0, 1, 0, 1]
    assert instance.inputs[2 * 3].tolist() == [1, 1, 1, 1] and not instance.given.any()
    answer = problem.parse_answer(SOLUTION)
    assert problem.write_answer(answer) == SOLUTION
    assert problem.draw(instance, answer) == DRAWN
    assert problem.render(np.array([UNKNOWN, 0, 1] * 3)).splitlines() == [" ? ·██"] * 3
    print_puzzle(problem, instance, problem.given_values(instance))
    assert "1 1  ? ? ?" in capsys.readouterr().out
    empty = problem.parse("0/1/0//1/")
    assert problem.write(empty) == "0/1/0/0/1/0"
    assert "█████" in Nonogram(12).render(np.ones(144, int))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1/1/1/1/1", "expected the hints of 3 columns and 3 rows with / between them, got 5"),
        ("1.1/1/2/1/2/2.1", "row 3: 2.1 does not fit into 3 cells"),
        ("4/1/2/1/2/1.1", "column 1: 4 does not fit into 3 cells"),
        ("1/1.x/2/1/2/1.1", "column 2: 'x' is no hint"),
        ("1/1.0/2/1/2/1.1", "column 2: '0' is no hint"),
        ("1/-1/2/1/2/1.1", "column 2: '-1' is no hint"),
        ("1/²/2/1/2/1.1", "column 2: '²' is no hint"),
        (f"1/{'9' * 5000}/2/1/2/1.1", "column 2: '99999999' is no hint"),
        ("1/1/2/1/2/1.1", "the columns have 4 black cells, but the rows have 5"),
        ("1.1.1.1.1/1/2/1/2/1.1", "column 1: 5 numbers do not fit into 3 cells"),
    ],
)
def test_bad_puzzles_get_one_line(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as error:
        Nonogram(3).parse(text)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["", "10001110", "10001110?", "1000111012", "10001110²"])
def test_bad_answers_get_one_line(text: str) -> None:
    with pytest.raises(InvalidInput, match="expected"):
        Nonogram(3).parse_answer(text)


@given(text=st.text(max_size=30) | st.text("0123456789./ ", max_size=30) | st.lists(st.text("0123.")).map("/".join))
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    for problem in (Nonogram(2), Nonogram(3)):
        try:
            instance = problem.parse(text)
        except InvalidInput as error:
            message = str(error)
        else:
            again = problem.parse(problem.write(instance))
            assert np.array_equal(again.inputs, instance.inputs)
            continue
        assert len(message.splitlines()) == 1


@settings(max_examples=50)
@given(bits=st.lists(st.booleans(), min_size=36, max_size=36))
def test_every_picture_survives_text(bits: list[bool]) -> None:
    problem, picture = Nonogram(6), np.array(bits, int)
    instance = from_picture(picture.reshape(6, 6))
    assert np.array_equal(problem.parse(problem.write(instance)).inputs, instance.inputs)
    assert problem.check(instance.inputs[None], picture[None]).all()
    assert np.array_equal(problem.parse_answer(problem.write_answer(picture)), picture)


# --- data


@pytest.mark.parametrize("side", [7, 15])
def test_the_parts_of_a_file_share_no_class(side: int, external_data: Path) -> None:
    problem = Nonogram(side)
    keys: list[set[bytes]] = []
    for split in ("train", "valid", "test"):
        batch = sets.load(f"nonogram{side}_{split}")
        assert problem.check(batch.inputs, batch.solution).all() and not batch.given.any()
        keys.append({problem.canonical(Instance(*row)) for row in zip(batch.inputs, batch.given, strict=True)})
    assert len(set.union(*keys)) == sum(map(len, keys)) == {7: 9_996, 15: 20_000}[side]


def test_rows_of_the_file_are_written_as_they_stand(external_data: Path) -> None:
    problem = Nonogram(7)
    lines = gzip.decompress((external_data / EXTERNAL["nonogram7_train"].path).read_bytes()).decode().splitlines()
    for line in lines[:100]:
        puzzle, solution = line.split(",")
        assert problem.write(problem.parse(puzzle)) == puzzle
        assert problem.write_answer(problem.parse_answer(solution)) == solution


def test_dealing_keeps_classes_whole() -> None:
    problem = Nonogram(4)
    made = [problem.generate(stream(0, "deal", number)) for number in range(20)]
    batch = stack(made + made[:10])
    parts = deal(problem, batch, (("train", 16), ("test", 14)), stream(0, "deal"))
    assert sorted(np.concatenate(list(parts.values())).tolist()) == list(range(30))
    assert {name: len(rows) for name, rows in parts.items()} == {"train": 16, "test": 14}
    assert all((row < 10) == (row + 20 in rows) for rows in parts.values() for row in rows if row < 20)
    with pytest.raises(ValueError, match="add up"):
        deal(problem, batch, (("train", 16),), stream(0, "deal"))


def test_users_files(tmp_path: Path) -> None:
    problem = Nonogram(15)
    batch = generate(problem, "train", 3)
    sets.write_csv(problem, batch, tmp_path / "boards.csv.gz")
    for known in (None, problem):
        again = sets.read_puzzles(tmp_path / "boards.csv.gz", known)
        assert (again.inputs == batch.inputs).all() and (again.solution == batch.solution).all()
    for row, message in (
        (f"{PUZZLE},011011101", "line 3: the solution is wrong: it breaks 'row 1 has"),
        (f"{PUZZLE},1000111", "line 3: solution: expected 9 bits, got 7"),
        ("1/2,100011101", "line 3: puzzle: expected the hints of 3 columns"),
    ):
        (tmp_path / "boards.csv").write_text(f"puzzle,solution\n{PUZZLE},{SOLUTION}\n{row}\n")
        with pytest.raises(InvalidInput, match=message):
            sets.read_puzzles(tmp_path / "boards.csv", Nonogram(3))


def test_generated_data_stays_the_same() -> None:
    batch = generate(Nonogram(), "test", 5)
    digest = hashlib.sha256(batch.inputs.tobytes() + batch.solution.astype(np.uint8).tobytes()).hexdigest()
    assert digest[:16] == "942829c5fc502180"


# --- training


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Tiny tensors: threads would mostly wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.slow
def test_a_short_training_learns(one_thread: None) -> None:
    problem = Nonogram(4)
    training = Training(updates=150, batch=32, recurrences=3, learning_rate=5e-3, warmup=10, ema=0.95)
    anything = Data("nonogram_train", 1)
    model = ModelConfig(width=32, heads=4, dropout=0.0)
    recipe = Recipe("tiny", "", problem, anything, anything, anything, model, training, LossWeights())
    trainer = Trainer(recipe, generate(problem, "train", 1_000), torch.device("cpu"))
    trainer.update()
    first = trainer.read_metrics()["loss"]
    for _ in range(training.updates - 1):
        trainer.update()
    assert trainer.read_metrics()["loss"] < 0.8 * first
    test = generate(problem, "test", 200)
    answers = predict(TorchRuntime(trainer.ema, problem), test.inputs, [6])[0]
    scores = metrics(problem, answers, test)
    chance = max(test.solution.mean(), 1 - test.solution.mean())
    assert scores["whole_cell"] > chance + 0.2
    assert scores["fitting_board"] > 0.1  # by chance: 1 in thousands
    assert scores["whole_board"] == scores["fitting_board"]  # solutions are unique
