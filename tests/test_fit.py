"""Problems known from examples alone: what is inferred, what is refused, and `mull fit` from a file to answers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from mull.cli import main
from mull.data import sets
from mull.errors import InvalidInput
from mull.own import load_problem
from mull.problem import Instance
from mull.problems import problem_from_dict, problem_to_dict
from mull.problems.examples import Examples, infer


def write_examples(path: Path, count: int, header: str = "problem,solution") -> None:
    """Lines of five letters, and the same read backwards in capitals."""
    rng = np.random.default_rng(0)
    lines = ["".join(rng.choice(list("abc"), 5)) for _ in range(count)]
    path.write_text("\n".join([header, *(f"{line},{line[::-1].upper()}" for line in lines)]) + "\n")


def test_sizes_and_symbols_are_inferred() -> None:
    problem = infer("mine", [("1..2", "1342"), (".3.1", "2341")])
    assert (problem.length, problem.symbols, problem.answers) == (4, ("1", "2", "3", "."), ("1", "2", "3", "4"))
    assert problem.copied == ("1", "2", "3")
    instance = problem.parse("..21")
    assert instance.given.tolist() == [False, False, True, True]
    assert problem.given_values(instance).tolist() == [-1, -1, 1, 0]
    given = problem.give(instance.inputs[None], np.array([[2, 3, 0, -1]]))  # no symbol of problems says 4
    assert given is not None and problem.write(Instance(given[0], instance.given)) == "3.21"
    assert problem.write(instance) == "..21" and problem.write_answer(np.array([3, -1, 0, 1])) == "4?12"
    assert problem.render(np.array([0, 1, 2, -1])) == "1 2\n3 ?"
    assert problem_from_dict(json.loads(json.dumps(problem_to_dict(problem)))) == problem


def test_words_and_rows_that_are_no_square() -> None:
    problem = infer("mine", [("red 10 2", "a b c"), ("2 red 10", "b b a")])
    assert problem.symbols == ("2", "10", "red") and problem.copied == () and problem.separator == " "
    assert problem.give(problem.parse("2 2 2").inputs[None], np.array([[0, 1, 2]])) is None
    assert problem.variables().shape == (1, 3)
    assert problem.write_answer(problem.parse_answer("c a b")) == "c a b"


@pytest.mark.parametrize(
    ("text", "message"),
    [("1..", "expected 4 symbols, got 3"), ("1..5", "symbol 4 is '5': expected one of 1 2 3 .")],
)
def test_lines_that_do_not_fit(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message.replace(".", r"\.")):
        infer("mine", [("1..2", "1342"), (".3.1", "2341")]).parse(text)


def test_nothing_can_be_generated() -> None:
    with pytest.raises(InvalidInput, match="known from examples alone"):
        infer("mine", [("1.", "12")]).generate(np.random.default_rng(0))
    with pytest.raises(InvalidInput, match="at least one variable"):
        Examples("mine", 0, ("1",), ("1",))
    with pytest.raises(InvalidInput, match="no examples"):
        infer("mine", [])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("problem,solution\n12,21\n1,1\n", "line 3: the problem has 1 symbols, but the first problem has 2"),
        ("problem,solution\n12,21\n12,2\n", "line 3: the solution has 1 symbols, but the first problem has 2"),
        ("problem,solution\n12,21\n12,21,3\n", "line 3: 3 columns, but the first line names 2"),
        ("problem,answer\n12,21\n", "line 1: no column 'solution'"),
        ("problem,solution\n", "no rows"),
        ("problem,solution\n12,21\n", "too few to keep some for the part"),
    ],
)
def test_bad_files_get_one_line(content: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(content)
    assert main(["fit", str(path), "--out", str(tmp_path / "run")]) == 2
    error = capsys.readouterr().err
    assert message in error and len(error.splitlines()) == 1
    assert main(["fit", str(tmp_path / "none.csv")]) == 2


def test_rules_are_optional(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    monkeypatch.chdir(tmp_path)
    source = f"{root / 'examples' / 'latin_square.py'}:LatinSquare"
    assert main(["data", "latin-4x4_train", "--count", "40", "--problem", source, "--out", "mine.csv"]) == 0
    problem = load_problem(source)
    batch = sets.load("mine.csv@train", own=problem)
    assert sets.problem_of("mine.csv@train", problem) is problem
    assert problem.check(batch.inputs, batch.solution).all()
    lines = Path("mine.csv").read_text().splitlines()
    first, rest = lines[1].split(",")[1][0], lines[1].split(",")[1][1:]
    Path("wrong.csv").write_text("\n".join([lines[0], f"................,{int(first) % 4 + 1}{rest}", *lines[2:]]))
    with pytest.raises(InvalidInput, match=r"line 2: the solution is wrong: it breaks"):
        sets.load("wrong.csv@train", own=problem)


def test_parts_share_no_problem(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    write_examples(path, 300)
    parts = {part: sets.load(f"{path}@{part}") for part in ("train", "valid", "test")}
    assert sum(map(len, parts.values())) == 300
    seen = [{row.tobytes() for row in batch.inputs} for batch in parts.values()]
    assert not seen[0] & seen[1] and not seen[0] & seen[2] and not seen[1] & seen[2]
    assert len(sets.load(f"{path}@train", 10)) == 10


def test_from_examples_to_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_examples(tmp_path / "mine.csv", 200, header="puzzle,solution")
    small = ["updates=150", "width=32", "recurrences=2", "batch=32", "validate_steps=4", "dropout=0", "ema=0.9"]
    assert main(["fit", "mine.csv", *(word for setting in small for word in ("--set", setting))]) == 0
    out = capsys.readouterr().out
    assert "mine: 5 variables of 3 values" in out and "mine on mine.csv@test" in out
    assert json.loads(Path("runs/mine/test.json").read_text())["steps"]["4"]["right"] > 0.9  # by chance: 1 in 243
    assert main(["solve", "--model", "runs/mine/mine.mull", "--json", "abcca"]) == 1  # nothing can be verified
    answer = json.loads(capsys.readouterr().out)
    assert (answer["solution"], answer["verified"]) == ("ACCBA", False)
    assert main(["solve", "--model", "runs/mine/mine.mull", "--search", "6", "--json", "abcca"]) == 1
    looked = json.loads(capsys.readouterr().out)
    assert (looked["solution"], looked["verified"], looked["method"]) == ("ACCBA", False, "search")
    assert looked["steps"] == answer["steps"] + 6 * 4
    problem = sets.problem_of("mine.csv@train")
    assert problem.write(Instance(problem.parse("abcab").inputs, np.zeros(5, dtype=bool))) == "abcab"
