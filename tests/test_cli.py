from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mull
from mull import hub, start
from mull.cli import main
from tiny import BOARD, OTHER, puzzle, write_tiny


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_tiny(tmp_path_factory.mktemp("models") / "tiny.mull"))


@pytest.fixture
def run(model: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Run `mull solve` with the tiny model in an empty folder: exit code, output, lines of complaint."""
    monkeypatch.chdir(tmp_path)

    def solve(*arguments: str) -> tuple[int, str, list[str]]:
        capsys.readouterr()
        code = main(["solve", "--model", model, *arguments])
        out, error = capsys.readouterr()
        return code, out, error.splitlines()

    return solve


def complaint(result: tuple[int, str, list[str]]) -> str:
    """The one line of a usage error."""
    code, _, error = result
    assert code == 2
    assert len(error) == 1
    assert error[0].startswith("mull: ")
    return error[0]


EASY = "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79"


@pytest.mark.parametrize(
    "arguments",
    [
        *(["solve", EASY], ["solve", EASY, EASY], ["solve", "12"], ["solve", EASY, "5" + EASY[:-1]]),
        *(["solve", "", EASY], ["solve", EASY, "--json", "--model", "none"], ["solve"], ["solve", "--help"]),
        *(["solved", EASY], ["--version"]),
    ],
)
def test_without_options_no_parser_is_needed_and_nothing_else_changes(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    plain, parsed = ((run(arguments), *capsys.readouterr()) for run in (start.main, main))
    summary = [
        [line for line in error.splitlines() if " solved and verified in " not in line] for *_, error in (plain, parsed)
    ]
    assert plain[:2] == parsed[:2]
    assert summary[0] == summary[1]


@pytest.mark.parametrize(
    "failure", [KeyboardInterrupt(), BrokenPipeError(), MemoryError(), OSError(28, "no space"), ValueError("x")]
)
def test_failures_without_a_parser(
    failure: BaseException, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise failure

    monkeypatch.setattr("mull.solve.load", fail)
    monkeypatch.setattr("mull.exits._silence", lambda code: code)  # standard output is the test's
    plain, parsed = ((run(["solve", EASY]), *capfd.readouterr()) for run in (start.main, main))
    assert plain == parsed


def test_one_puzzle(run) -> None:
    code, out, error = run(puzzle(5, seed=1))
    assert (code, error) == (0, [])
    before, after, verdict = out.strip().split("\n\n")
    assert before.count(".") == 5
    assert after.splitlines()[0] == "1 2 | 3 4"
    assert verdict == "solved in 5 recurrences, verified"
    assert "\x1b" not in out


def test_several_puzzles(run) -> None:
    code, out, error = run(puzzle(5), puzzle(1), puzzle(3))
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == [puzzle(5), puzzle(1), puzzle(3)]
    assert all(f"-> {BOARD}  verified" in line for line in out.splitlines())
    assert len(error) == 1
    assert error[0].startswith("3 of 3 solved and verified")


def test_precision(run) -> None:
    assert run("--precision", "fp32", puzzle(2))[0] == 0
    assert "no int8 graph" in complaint(run("--precision", "int8", puzzle(2)))
    assert "use auto, fp32 or int8" in complaint(run("--precision", "int4", puzzle(2)))


def test_unverified_is_exit_1(run) -> None:
    code, out, _ = run("--no-exact", puzzle(3, OTHER))
    assert code == 1
    assert "not verified: no verified answer after 20 recurrences" in out
    code, out, error = run("--no-exact", puzzle(3), puzzle(3, OTHER))
    assert code == 1
    assert "NOT VERIFIED" in out
    assert error[0].startswith("1 of 2 solved")


def test_json(run) -> None:
    code, out, error = run("--json", "--no-exact", puzzle(4), puzzle(3, OTHER))
    assert (code, error) == (1, [])
    solved, missed = map(json.loads, out.splitlines())
    assert list(solved) == ["puzzle", "solution", "verified", "steps", "method", "ms"]
    assert (solved["puzzle"], solved["solution"], solved["steps"]) == (puzzle(4), BOARD, 4)
    assert missed["verified"] is False
    assert missed["note"]


@pytest.mark.skipif(find_spec("cpmpy") is None, reason="needs cpmpy")
def test_exact(run) -> None:
    code, out, _ = run("--exact", puzzle(3, OTHER))
    assert code == 0
    assert "solved by exact search, verified" in out
    code, out, _ = run("--exact", "." * 16)
    assert code == 0
    assert "verified; but it has several solutions" in out
    code, out, _ = run("12.....3........")
    assert code == 1
    assert "not solved: it has no solution" in out
    assert "not verified: it has several solutions" in run("--steps", "1", "." * 16)[1]


def test_steps(run) -> None:
    assert run("--steps", "4", "--no-exact", puzzle(5))[0] == 1
    assert run("--steps", "5", "--no-exact", puzzle(5))[0] == 0
    assert "--steps" in complaint(run("--steps", "0", puzzle(5)))


def test_text_file(run) -> None:
    Path("puzzles.txt").write_text(f"# comment\n\n{puzzle(2)}\r\n  {puzzle(3)}  \n\n{puzzle(1)}")
    code, out, _ = run("-f", "puzzles.txt", "--json")
    assert code == 0
    assert [json.loads(line)["steps"] for line in out.splitlines()] == [2, 3, 1]


def test_arguments_come_before_the_file(run) -> None:
    Path("puzzles.txt").write_text(puzzle(2))
    out = run(puzzle(5), "-f", "puzzles.txt", "--json")[1]
    assert [json.loads(line)["steps"] for line in out.splitlines()] == [5, 2]


@pytest.mark.parametrize("name", ["puzzles.csv", "puzzles.csv.gz", "puzzles.txt.gz", "puzzles"])
def test_csv_and_gzip(run, name: str) -> None:
    content = f'\ufeffid,puzzle,solution\n1,{puzzle(2)},{BOARD}\n2,"{puzzle(3)}",{BOARD}\n'.encode()
    Path(name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    code, out, _ = run("-f", name, "--json")
    assert code == 0
    assert [json.loads(line)["steps"] for line in out.splitlines()] == [2, 3]


def test_json_lines_in_and_out(run) -> None:
    Path("puzzles.jsonl").write_text(run("--json", puzzle(2), puzzle(3))[1])  # what comes out can go in again
    code, out, _ = run("-f", "puzzles.jsonl", "--json")
    assert code == 0
    assert [json.loads(line)["puzzle"] for line in out.splitlines()] == [puzzle(2), puzzle(3)]


def test_standard_input(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"{puzzle(2)}\n{puzzle(3)[:-1]}\n".encode())))
    code, out, error = run("-f", "-", "--json")
    assert code == 2
    assert json.loads(out)["steps"] == 2
    assert error == ["mull: standard input:2: expected 16 characters, got 15"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no puzzle in it"),
        (b"\n# nothing\n", "no puzzle in it"),
        (b"1" * 15, "puzzles.txt:1: expected 16 characters, got 15"),
        (b"#\n" + b"1..............x", "puzzles.txt:2: cell 16 is 'x'"),
        (b"11" + b"." * 14, "puzzles.txt:1: the givens contradict each other"),
        (b"\xff\xfe\x00\x01", "puzzles.txt: not a text file"),
        (b'{"puzzle": 3}', "puzzles.txt:1: its puzzle is not a text"),
        (b'{"p": "1"}', "puzzles.txt:1: no member 'puzzle'"),
        (b'{"puzzle"', "puzzles.txt:1: not a JSON object"),
        (b'{"puzzle": "' + b"." * 15 + b'"}\n[]', "puzzles.txt:1: expected 16 characters, got 15"),
        (b"." * 2_000_000, "puzzles.txt:1: the line is longer than"),
        (b"\x1f\x8b\x08\x00\x00", "puzzles.txt: the gzip file is truncated or altered"),
        (b"puzzle,solution\n", "no puzzle in it"),
        (b"a,puzzle\n1\n", "puzzles.txt:2: expected 2 columns, got 1"),
    ],
)
def test_bad_files(run, content: bytes, message: str) -> None:
    Path("puzzles.txt").write_bytes(content)
    assert message in complaint(run("-f", "puzzles.txt"))


def test_csv_without_the_column(run) -> None:
    Path("puzzles.csv").write_text("quiz,answer\n1,2\n")
    assert "puzzles.csv:1: expected a header with a column 'puzzle'" in complaint(run("-f", "puzzles.csv"))


def test_answers_before_a_bad_line_are_printed(run) -> None:
    Path("puzzles.txt").write_text(f"{puzzle(2)}\n{puzzle(3)}\n123\n{puzzle(1)}\n")
    code, out, error = run("-f", "puzzles.txt")
    assert code == 2
    assert len(out.splitlines()) == 2
    assert error == ["mull: puzzles.txt:3: expected 16 characters, got 3"]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=200))
def test_random_files(run, content: bytes) -> None:
    Path("random.txt").write_bytes(content)
    complaint(run("-f", "random.txt"))


def test_bad_arguments(run) -> None:
    assert "give a puzzle" in complaint(run())
    assert complaint(run("123")) == "mull: expected 16 characters, got 3"
    assert complaint(run(puzzle(1), "123")).startswith("mull: puzzle 2: ")
    assert "missing.txt: No such file" in complaint(run("-f", "missing.txt"))
    assert "Is a directory" in complaint(run("-f", "."))
    assert "--modle" in complaint(run("--modle", "x"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["slove"], "'solve'"),
        (["solve", "--model", "sudokku", "1"], "no model is called 'sudokku'"),
        (["solve", "--model", "missing.mull", "1"], "there is no model file missing.mull"),
        (["list", "modles"], "did you mean 'models'?"),
        (["eval"], "Missing argument"),
        (["export", "x"], "--out"),
        (["train", "sudoku-4x4", "--seed", "x"], "--seed"),
        (["show", "123", "--model", "nothing"], "no model is called"),
    ],
)
def test_usage(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    code = main(arguments)
    assert message in complaint((code, *_split(capsys)))


def _split(capsys: pytest.CaptureFixture[str]) -> tuple[str, list[str]]:
    out, error = capsys.readouterr()
    return out, error.splitlines()


def test_altered_weights(tmp_path: Path, model: str, capsys: pytest.CaptureFixture[str]) -> None:
    content = bytearray(Path(model).read_bytes())
    content[len(content) // 2] ^= 1
    for name, damaged in (("altered", bytes(content)), ("truncated", bytes(content[:-9])), ("empty", b"")):
        path = tmp_path / f"{name}.mull"
        path.write_bytes(damaged)
        assert "not a usable model file" in complaint((main(["solve", "-m", str(path), puzzle(1)]), *_split(capsys)))


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["--help"], ["solve", "-h"]):
        assert main(arguments) == 0
        assert "Usage: mull" in capsys.readouterr().out
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"mull {mull.__version__}\n"
    result = subprocess.run([sys.executable, "-m", "mull", "--version"], capture_output=True, env=environment())
    assert result.stdout.startswith(b"mull ")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_givens_are_bold_on_a_terminal(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for no_color, bold in (("", True), ("1", False)):
        monkeypatch.setenv("NO_COLOR", no_color)
        monkeypatch.setattr(sys, "stdout", Terminal())
        assert main(["solve", "--model", model, puzzle(2)]) == 0
        assert ("\x1b[1m" in sys.stdout.getvalue()) is bold  # type: ignore[attr-defined]


def test_show(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", puzzle(6), "--model", model]) == 0
    assert "10 givens" in capsys.readouterr().out
    assert main(["show", "11" + "." * 14, "--model", model]) == 0
    assert "conflict: row 1 holds 1 once" in capsys.readouterr().out


def test_show_draws(model: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / "board.png"
    assert main(["show", puzzle(6), "--model", model, "--out", str(out)]) == 0
    assert out.read_bytes().startswith(b"\x89PNG")
    wrong = tmp_path / "board.xyz"
    capsys.readouterr()
    assert "xyz" in complaint((main(["show", puzzle(6), "-m", model, "--out", str(wrong)]), *_split(capsys)))
    assert not wrong.exists()


@pytest.mark.parametrize("what", [None, "problems", "recipes", "models", "data"])
def test_list(capsys: pytest.CaptureFixture[str], what: str | None) -> None:
    assert main(["list"] + ([what] if what else [])) == 0
    assert len(capsys.readouterr().out.splitlines()) >= 1


def test_data(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["data", "sudoku-4x4_test", "--count", "3"]) == 0
    out = capsys.readouterr().out
    assert main(["data", "sudoku-4x4_test", "--count", "3", "--out", str(tmp_path / "a.csv")]) == 0
    assert (tmp_path / "a.csv").read_text() == out
    assert len(out.splitlines()) == 4
    capsys.readouterr()
    assert "no data set is called" in complaint((main(["data", "nothing"]), *_split(capsys)))


def test_eval(model: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    data = tmp_path / "boards.csv"
    data.write_text(f"puzzle,solution\n{puzzle(3)},{BOARD}\n{puzzle(5)},{BOARD}\n")
    out = tmp_path / "result.json"
    assert main(["eval", model, "--data", str(data), "--steps", "4,8", "--json", str(out)]) == 0
    assert "whole board" in capsys.readouterr().out
    result = json.loads(out.read_text())
    assert result["steps"]["4"]["whole_board"] == 0.5
    assert result["steps"]["8"]["whole_board"] == 1.0
    several = ["--starts", "2", "--rounds", "3", "--steps", "8", "--json", str(out)]
    assert main(["eval", model, "--data", str(data), *several]) == 0
    assert "2 starts, 3 rounds" in capsys.readouterr().out
    result = json.loads(out.read_text())
    assert (result["starts"], result["rounds"], result["steps"]["8"]["whole_board"]) == (2, 3, 1.0)
    for steps in ("0", "x", "4,4", ""):
        assert "--steps" in complaint((main(["eval", model, "--data", str(data), "--steps", steps]), *_split(capsys)))
    for more, told in ((["--distort", "1"], "--sides"), (["--distort", "1", "--sides", "2"], "no images")):
        assert told in complaint((main(["eval", model, "--data", str(data), *more]), *_split(capsys)))
    assert "belongs to sudoku" in complaint((main(["eval", model, "--data", "rrn_test"]), *_split(capsys)))


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")
def test_a_reader_that_stops_reading(model: str, tmp_path: Path) -> None:
    (tmp_path / "many.txt").write_text(f"{puzzle(2)}\n" * 5000)
    mull = f"{sys.executable} -m mull solve -m {model} -f many.txt --json"
    result = subprocess.run(
        f"{mull} | head -1", shell=True, cwd=tmp_path, capture_output=True, text=True, timeout=120, env=environment()
    )
    assert json.loads(result.stdout)["verified"]
    assert result.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk(model: str) -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "mull", "solve", "-m", model, puzzle(2)]
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, env=environment())
    assert result.returncode == 2
    assert result.stderr == "mull: No space left on device\n"


def environment() -> dict[str, str]:
    """The environment of a process that finds mull where these tests did."""
    return {**os.environ, "PYTHONPATH": str(Path(hub.__file__).parents[1])}
