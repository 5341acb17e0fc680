"""Problems from a user's file: found by FILE:NAME, trained, exported, solved with; a model file never runs code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mull import own, problems
from mull.cli import main
from mull.errors import CorruptFile, InvalidInput
from mull.hub import read_card
from mull.own import load_problem
from mull.problems.stated import Stated
from mull.recipes import own_recipe

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
LATIN = f"{EXAMPLES / 'latin_square.py'}:LatinSquare"
TINY = ["updates=4", "train.count=16", "valid.count=8", "batch=8", "validate_every=4", "recurrences=2", "width=16"]
SETTINGS = [word for setting in TINY for word in ("--set", setting)]


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each test starts without classes of users, and with an empty data folder."""
    monkeypatch.setattr(problems, "CLASSES", {name: problems.CLASSES[name] for name in own.SHIPPED})
    monkeypatch.setattr(own, "CLASSES", problems.CLASSES)
    monkeypatch.setenv("MULL_DATA", str(tmp_path / "data"))


def write(folder: Path, text: str) -> str:
    (folder / "mine.py").write_text(text)
    return str(folder / "mine.py")


STATEMENT = """
from dataclasses import dataclass
from mull.problems.stated import Group, Stated
from mull.problems.sudoku import Sudoku as Base

made = Stated("mine", (2, 2), values=2, groups=(Group("one", (1, 3, 5), 1, 1),))
number = 3

def make(): return made
def fails(): return 1 / 0
def taken(): return Base()

@dataclass(frozen=True)
class Sudoku(Base):
    @property
    def name(self): return "mine"
"""


def test_an_instance_and_a_function(tmp_path: Path) -> None:
    path = write(tmp_path, STATEMENT)
    assert load_problem(f"{path}:made") == load_problem(f"{path}:make")
    assert own_recipe(load_problem(f"{path}:make")).train.name == "mine_train"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mad", r"did you mean 'made'\?"),
        ("number", "is no problem and makes none, but a int"),
        ("fails", "ZeroDivisionError: division by zero"),
        ("taken", "the name 'sudoku' is that of a problem of mull's"),
        ("Sudoku", "the class name Sudoku is that of a problem of mull's"),
        ("", "is FILE:NAME, not"),
    ],
)
def test_names_that_are_no_problems(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as caught:
        load_problem(f"{write(tmp_path, STATEMENT)}:{name}")
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(("text", "message"), [("1 +", "SyntaxError"), ("raise KeyError('k')", "KeyError: 'k'")])
def test_files_that_cannot_be_run(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        load_problem(f"{write(tmp_path, text)}:x")
    with pytest.raises(InvalidInput, match="there is no file"):
        load_problem(f"{tmp_path / 'none.py'}:x")


def test_a_stated_problem_from_rules_to_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("cpmpy")
    pytest.importorskip("torch")
    run, model = str(tmp_path / "run"), str(tmp_path / "binairo.mull")
    assert main(["train", f"{EXAMPLES / 'binairo.py'}:binairo", "--out", run, *SETTINGS]) == 0
    assert main(["export", run, "--out", model]) == 0
    assert main(["eval", model, "--steps", "2"]) == 0
    assert isinstance(read_card(Path(model)).problem, Stated)
    capsys.readouterr()
    puzzle = "001.1101....1..00.0.01011.001....10."
    assert main(["solve", "--model", model, puzzle, "--exact"]) == 0
    assert "verified" in capsys.readouterr().out
    assert main(["data", "binairo-6x6_test", "--count", "2", "--problem", f"{EXAMPLES / 'binairo.py'}:binairo"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    # Without CPMpy the model file solves all the same.
    blocked = "import sys; sys.modules['cpmpy'] = sys.modules['numba'] = sys.modules['torch'] = None\n"
    script = f"{blocked}from mull.cli import main\nsys.exit(main(['solve', '--model', {model!r}, {puzzle!r}]))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1) and "verified" in done.stdout and not done.stderr


def test_a_class_of_ones_own_has_to_be_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    run, model = str(tmp_path / "run"), str(tmp_path / "latin.mull")
    assert main(["train", LATIN, "--out", run, *SETTINGS]) == 0
    assert main(["export", run, "--out", model, "--problem", LATIN]) == 0
    assert main(["eval", model, "--problem", LATIN, "--steps", "2"]) == 0
    assert main(["show", "1" + "." * 15, "--model", model, "--problem", LATIN]) == 0
    assert main(["solve", "1" + "." * 15, "--model", model, "--problem", LATIN]) in (0, 1)
    del problems.CLASSES["LatinSquare"]
    capsys.readouterr()
    assert main(["solve", "1" + "." * 15, "--model", model]) == 2
    assert "add --problem FILE:NAME" in capsys.readouterr().err
    with pytest.raises(CorruptFile, match="'LatinSquare', which this version does not have"):
        read_card(Path(model))


def test_unknown_recipes_are_told_as_before(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    assert main(["train", "sudoku-4x"]) == 2
    assert "did you mean 'sudoku-4x4'" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["binairo", "rota", "latin_square"])
def test_examples_print_a_puzzle(name: str) -> None:
    pytest.importorskip("cpmpy")
    done = subprocess.run([sys.executable, EXAMPLES / f"{name}.py"], capture_output=True, text=True, check=True)
    assert len(done.stdout.splitlines()) == 1 and not done.stderr
