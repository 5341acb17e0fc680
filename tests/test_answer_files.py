"""Answers in files: every format says the same, memory stays as it is, and a killed run goes on where it ended."""

from __future__ import annotations

import csv
import fcntl
import gzip
import json
import os
import random
import signal
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull import hub, progress
from mull.answer_files import FIELDS, write_answers
from mull.cli import main
from mull.errors import UserError
from mull.progress import Tally, counting
from mull.puzzle_files import Reading, all_puzzles
from mull.solve import Answer, Puzzle, Solver
from tiny import BOARD, OTHER, puzzle, write_tiny

ENDINGS = ["txt", "csv", "jsonl", "parquet"]
PUZZLES = [puzzle(number % 6, [BOARD, OTHER][number % 7 == 6], seed=number) for number in range(20)]


def echo(puzzles: Iterator[Puzzle]) -> Iterator[Answer]:
    """Answers of all kinds without a model: the puzzle's text decides."""
    for one in puzzles:
        right = sum(map(ord, one.text)) % 3 > 0
        note = "" if right else 'so, "he" said\tit'
        yield Answer(one.text, BOARD if right else None, right, 7, "recurrence" if right else "none", 0.25, note)


def texts(puzzles: list[str]) -> Iterator[Puzzle]:
    return (Puzzle(text, f"puzzle {number}") for number, text in enumerate(puzzles, start=1))


def rows(path: Path) -> list[dict[str, Any]]:
    """What a file of answers says, but for the time: the same for all formats but plain text."""
    if path.suffix == ".parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        found = parquet.read_table(path).to_pylist()
    elif path.suffix == ".csv":
        with path.open(newline="") as stream:
            found = [{key: value or None for key, value in row.items()} for row in csv.DictReader(stream)]
        found = [{**row, "verified": row["verified"] == "true", "steps": int(row["steps"])} for row in found]
    elif path.suffix == ".jsonl":
        found = [dict.fromkeys(FIELDS) | json.loads(line) for line in path.read_text().splitlines()]
    else:
        found = [{"line": line} for line in path.read_text().splitlines()]
    return [{key: value for key, value in row.items() if key != "ms"} for row in found]


@pytest.fixture
def needs_parquet(request: pytest.FixtureRequest) -> None:
    if "parquet" in request.node.callspec.params.values():
        pytest.importorskip("pyarrow")


@pytest.mark.usefixtures("needs_parquet")
@pytest.mark.parametrize("ending", ENDINGS[1:])
def test_formats_say_the_same(ending: str, tmp_path: Path) -> None:
    puzzles = [*PUZZLES, "a, b", 'c "d"']
    for name in ("first.jsonl", f"out.{ending}"):
        tally = write_answers(echo, texts(puzzles), tmp_path / name)
    assert rows(tmp_path / f"out.{ending}") == rows(tmp_path / "first.jsonl")
    assert (tally.total, tally.before) == (len(puzzles), 0)
    assert tally.verified == sum(row["verified"] for row in rows(tmp_path / "first.jsonl"))
    left = {f"out.{ending}", "first.jsonl"}
    assert {path.name for path in tmp_path.iterdir()} == left  # nothing of how Parquet is written is left


@given(st.sampled_from(ENDINGS[:3]), st.integers(0, 10_000), st.booleans())
def test_resuming_after_any_cut(tmp_path_factory: pytest.TempPathFactory, ending: str, cut: int, strange: bool) -> None:
    folder = tmp_path_factory.mktemp("cut")
    puzzles = [f"{text}{number}" + ' é, "\n"' * strange for number, text in enumerate(PUZZLES)]
    whole = folder / f"whole.{ending}"
    tally = write_answers(echo, texts(puzzles), whole)
    content = whole.read_bytes()
    out = folder / f"out.{ending}"
    out.write_bytes(content[: cut % (len(content) + 1)])
    complete = out.read_bytes().count(b"\n")
    again = write_answers(echo, texts(puzzles), out, resume=True)
    assert out.read_bytes() == content
    assert (again.total, again.verified) == (tally.total, tally.verified)
    assert again.before == max(0, complete - (ending == "csv"))


@pytest.mark.parametrize("ending", ENDINGS[:3])
def test_files_that_hold_something_else_are_left_alone(ending: str, tmp_path: Path) -> None:
    out = tmp_path / f"out.{ending}"
    write_answers(echo, texts(PUZZLES), out)
    content = out.read_bytes()
    with pytest.raises(UserError, match="is there already: add --resume"):
        write_answers(echo, texts(PUZZLES), out)
    for puzzles in (PUZZLES[1:], [*PUZZLES[:5], PUZZLES[0], *PUZZLES[6:]]):
        with pytest.raises(UserError, match=r"out.*:\d+: not the answer to puzzle \d, so there is nothing to resume"):
            write_answers(echo, texts(puzzles), out, resume=True)
    with pytest.raises(UserError, match="more than the answers to these puzzles"):
        write_answers(echo, texts(PUZZLES[:-1]), out, resume=True)
    assert out.read_bytes() == content
    for other in (b"a letter", b"a letter\n", b"a\nletter", b"\xff\xfe\x00"):
        out.write_bytes(other)
        with pytest.raises(UserError, match="nothing to resume"):
            write_answers(echo, texts(PUZZLES), out, resume=True)
        assert out.read_bytes() == other
    out.write_bytes(b"".join(content.splitlines(keepends=True)[:2]).replace(b"erified", b"ood"))
    with pytest.raises(UserError, match=r"not (an|the) (answer|header)"):
        write_answers(echo, texts(PUZZLES), out, resume=True)


def test_a_parquet_file_waits_as_json_lines(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    out, partial = tmp_path / "out.parquet", tmp_path / "out.parquet.partial.jsonl"

    def failing(puzzles: Iterator[Puzzle]) -> Iterator[Answer]:
        for number, answer in enumerate(echo(puzzles)):
            if number == 5:
                raise KeyboardInterrupt
            yield answer

    with pytest.raises(KeyboardInterrupt):
        write_answers(failing, texts(PUZZLES), out)
    assert not out.exists() and len(partial.read_text().splitlines()) == 5
    with pytest.raises(UserError, match=r"partial.jsonl is there already"):
        write_answers(echo, texts(PUZZLES), out)
    assert write_answers(echo, texts(PUZZLES), out, resume=True).before == 5
    assert [row["puzzle"] for row in rows(out)] == PUZZLES and not partial.exists()
    tally = write_answers(echo, texts(PUZZLES), out, resume=True)  # complete already
    assert tally.before == tally.total == len(PUZZLES)
    for wrong in (PUZZLES[1:], [*PUZZLES, "more"], PUZZLES[:-1]):
        with pytest.raises(UserError, match=r"not the answer to|complete, without"):
            write_answers(echo, texts(wrong), out, resume=True)
    out.write_bytes(b"no Parquet")
    with pytest.raises(UserError, match="cannot be read as Parquet"):
        write_answers(echo, texts(PUZZLES), out, resume=True)


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    for name, message in {
        "file/out.txt": "cannot write|is not a",
        "folder": "is not a file",
        "out.jsonl.gz": "leave out .gz",
    }.items():
        with pytest.raises(UserError, match=message):
            write_answers(echo, texts(PUZZLES), tmp_path / name)
    with pytest.raises(UserError, match=r"--json writes JSON lines, not \.csv"):
        write_answers(echo, texts(PUZZLES), tmp_path / "out.csv", as_json=True)
    with (tmp_path / "out.txt").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(UserError, match="another process writes it"):
            write_answers(echo, texts(PUZZLES), tmp_path / "out.txt")


def lines_of(path: Path) -> Callable[[int], None]:
    def write(count: int) -> None:
        path.write_text("".join(f"{puzzle(number % 6, seed=number % 99)}\n" for number in range(count)))

    return write


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    source, peaks = tmp_path / "puzzles.txt", []
    for count in (1000, 1000, 10_000):  # what is imported or cached on the way shows up the first time
        lines_of(source)(count)
        tracemalloc.start()
        write_answers(echo, all_puzzles([], str(source)), tmp_path / f"{len(peaks)}.jsonl")
        assert write_answers(echo, all_puzzles([], str(source)), tmp_path / f"{len(peaks)}.jsonl", resume=True).before
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < peaks[1] + 50_000


@pytest.mark.slow
@pytest.mark.usefixtures("needs_parquet")
@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_the_process_does_not_grow(ending: str, tmp_path: Path) -> None:
    write_tiny(tmp_path / "tiny.mull")
    peaks = []
    for count in (5_000, 50_000):
        lines_of(tmp_path / "puzzles.txt")(count)
        # By Linux's count, a process has used the memory of who started it: so it is started by a small one.
        watch = "import resource as r, subprocess, sys; subprocess.run(sys.argv[1:], check=True, capture_output=True)"
        watch += "; print(r.getrusage(r.RUSAGE_CHILDREN).ru_maxrss)"
        watched = [sys.executable, "-c", watch, *command("puzzles.txt", f"{count}.{ending}")]
        run = subprocess.run(watched, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True)
        peaks.append(int(run.stdout) / 1024)
    assert peaks[1] < peaks[0] + 30  # MiB; a row group of a Parquet file is full only in the larger one


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(hub.__file__).parents[1])}


def command(source: str, out: str, *options: str) -> list[str]:
    return [sys.executable, "-m", "mull", "solve", "-m", "tiny.mull", "-f", source, "-o", out, *options]


@pytest.mark.usefixtures("needs_parquet")
@pytest.mark.parametrize(("source", "ending", "kills"), [("puzzles.txt.gz", "jsonl", 3), ("puzzles.csv", "parquet", 2)])
def test_killing_it_again_and_again(source: str, ending: str, kills: int, tmp_path: Path) -> None:
    """Kill -9 at random times; the answers are those of a run that nobody killed, none lost and none twice."""
    write_tiny(tmp_path / "tiny.mull")
    puzzles = [puzzle(number % 6, [BOARD, OTHER][number % 50 == 49], seed=number) for number in range(2000)]
    text = "".join(f"{line}\n" for line in puzzles)
    if source.endswith(".gz"):
        (tmp_path / source).write_bytes(gzip.compress(text.encode()))
    else:
        (tmp_path / source).write_text(f"puzzle\n{text}")
    rng, out = random.Random(ending), tmp_path / f"out.{ending}"
    growing = tmp_path / f"out.{ending}.partial.jsonl" if ending == "parquet" else out
    killed = []
    for _ in range(kills):
        before = growing.stat().st_size if growing.exists() else 0
        process = subprocess.Popen(command(source, out.name, "--resume"), cwd=tmp_path, env=environment())
        while process.poll() is None and (growing.stat().st_size if growing.exists() else 0) <= before:
            time.sleep(0.005)
        time.sleep(rng.uniform(0, 0.15))
        process.send_signal(signal.SIGKILL)
        killed.append(process.wait() == -signal.SIGKILL)
    assert any(killed)
    last = subprocess.run(
        command(source, out.name, "--resume"), cwd=tmp_path, env=environment(), capture_output=True, text=True
    )
    assert last.returncode == 1, last.stderr  # some of another board are not solved
    assert "1960 of 2000 solved and verified" in last.stderr and "were there already" in last.stderr
    subprocess.run(command(source, f"whole.{ending}"), cwd=tmp_path, env=environment(), capture_output=True)
    assert rows(out) == rows(tmp_path / f"whole.{ending}")
    assert [row["puzzle"] for row in rows(out)] == puzzles


def interrupted(*_: object) -> Iterator[Answer]:
    raise KeyboardInterrupt


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    write_tiny(tmp_path / "tiny.mull")
    (tmp_path / "puzzles.txt").write_text(f"{puzzle(3)}\nnonsense\n")
    solve = ["solve", "-m", "tiny.mull", "-f", "puzzles.txt"]
    assert main([*solve, "-o", "out.txt"]) == 2
    assert capsys.readouterr().err.startswith("mull: puzzles.txt:2: ")
    assert (tmp_path / "out.txt").read_text() == f"{puzzle(3)} -> {BOARD}  verified    3\n"
    (tmp_path / "puzzles.txt").write_text(f"{puzzle(3)}\n{puzzle(4)}\n")
    assert main([*solve, "--out", "out.txt", "--resume"]) == 0
    assert "2 of 2 solved and verified" in capsys.readouterr().err
    with monkeypatch.context() as patch:
        patch.setattr(Solver, "solve_many", interrupted)
        assert main([*solve, "-o", "other.txt"]) == 130
    assert capsys.readouterr().err == "mull: stopped; --resume goes on with other.txt\n"
    for wrong, message in {"--resume": "name it with --out FILE", "--photo": "not both"}.items():
        assert main([*solve, wrong, *["x.jpg"] * (wrong == "--photo")]) == 2
        assert message in capsys.readouterr().err
    assert main(["solve", "--photo", "x.jpg", "-o", "out.txt"]) == 2
    assert "not for a photograph" in capsys.readouterr().err


class TestParquetInput:
    def write(self, path: Path, columns: dict[str, list[Any]]) -> str:
        arrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(arrow.table(columns), path)
        return str(path)

    def test_rows(self, tmp_path: Path) -> None:
        source = self.write(tmp_path / "puzzles", {"other": list(range(20)), "puzzle": PUZZLES})
        reading = Reading()
        found = list(all_puzzles([], source, reading))
        assert [one.text for one in found] == PUZZLES and found[4].place == f"{source}, row 5"
        assert reading.share() == 1.0

    @pytest.mark.parametrize(
        ("columns", "message"),
        [
            ({"board": PUZZLES}, "no column 'puzzle'; there are: board"),
            ({"puzzle": [1, 2]}, "row 1: its puzzle is not a text"),
            ({"puzzle": ["1", None]}, "row 2: its puzzle is not a text"),
            ({"puzzle": []}, "no puzzle in it"),
        ],
    )
    def test_wrong_files(self, tmp_path: Path, columns: dict[str, list[Any]], message: str) -> None:
        with pytest.raises(UserError, match=message):
            list(all_puzzles([], self.write(tmp_path / "puzzles", columns)))

    def test_a_torn_file(self, tmp_path: Path) -> None:
        source = Path(self.write(tmp_path / "puzzles", {"puzzle": PUZZLES}))
        source.write_bytes(source.read_bytes()[:-9])
        with pytest.raises(UserError, match="cannot be read as Parquet"):
            list(all_puzzles([], str(source)))

    def test_what_to_install(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        source = self.write(tmp_path / "puzzles", {"puzzle": PUZZLES})
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        write_tiny(tmp_path / "tiny.mull")
        assert main(["solve", "-m", str(tmp_path / "tiny.mull"), "-f", source]) == 2
        assert capsys.readouterr().err == "mull: this needs pyarrow: install mull[parquet]\n"


def test_how_far_it_is(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "puzzles.txt").write_text("x\n" * 10_000)
    reading = Reading()
    assert reading.share() is None
    puzzles = all_puzzles([], str(tmp_path / "puzzles.txt"), reading)
    next(puzzles)
    assert 0.0 < (reading.share() or 0.0) < 1.0
    list(puzzles)
    assert reading.share() == 1.0
    now = iter(range(100))
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: 6.0 * next(now)))
    tally = Tally(10, 9, 5)
    with counting(tally, lambda: 0.25) as tell:
        tell()
        assert capsys.readouterr().err == ""
        tell()
        assert capsys.readouterr().err == "10 answers, 90.00 % verified, 0/s, 25.00 % of the input read\n"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with counting(tally, lambda: None) as tell:
        tell()
