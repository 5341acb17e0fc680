"""Solving on a Ray cluster gives what one process gives, in the same order."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from mull import cluster, hub
from mull.cli import main
from mull.errors import InvalidInput, UserError
from mull.solve import Puzzle
from tiny import BOARD, OTHER, puzzle, write_tiny

SCRIPT = """
import os, sys
from pathlib import Path

import ray

from mull import cluster
from mull.cli import main

FOLDER = sys.argv[1]

class Noting(cluster.Worker):
    def __call__(self, batch):
        Path(FOLDER, f"worker-{os.getpid()}").touch()
        return super().__call__(batch)

if __name__ == "__main__":
    ray.init(num_cpus=2, log_to_driver=False, include_dashboard=False)
    cluster.Worker, cluster.WINDOW, cluster.BLOCK = Noting, 200, 40  # two windows, five blocks and two
    solve = ["solve", "-m", "tiny.mull", "--engine", "ray", "-f"]
    print(main([*solve, "puzzles.txt", "-o", "ray.jsonl"]), main([*solve, "wrong.txt", "-o", "wrong.jsonl"]))
"""


@pytest.mark.skipif(find_spec("ray") is None or find_spec("pyarrow") is None, reason="needs mull[ray]")
def test_two_workers(tmp_path: Path) -> None:
    write_tiny(tmp_path / "tiny.mull")
    puzzles = [puzzle(number % 6, [BOARD, OTHER][number % 50 == 49], seed=number) for number in range(280)]
    (tmp_path / "puzzles.txt").write_text("\n".join(puzzles))
    (tmp_path / "wrong.txt").write_text("\n".join([*puzzles[:50], "nonsense", *puzzles[:50]]))
    environment = {**os.environ, "PYTHONPATH": str(Path(hub.__file__).parents[1]), "RAY_AUTH_MODE": "disabled"}
    environment |= {"RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert run.stdout.split() == ["1", "2"], run.stderr  # some are not solved; one cannot be read
    assert "mull: wrong.txt:51: " in run.stderr
    assert len(list(tmp_path.glob("worker-*"))) >= 2
    assert (
        main(
            [
                "solve",
                "-m",
                str(tmp_path / "tiny.mull"),
                "-f",
                f"{tmp_path}/puzzles.txt",
                "-o",
                f"{tmp_path}/here.jsonl",
            ]
        )
        == 1
    )
    ours, theirs, before = (
        [json.loads(line) for line in (tmp_path / name).read_text().splitlines()]
        for name in ("here.jsonl", "ray.jsonl", "wrong.jsonl")
    )
    for answer in (*ours, *theirs, *before):
        del answer["ms"]
    assert theirs == ours and before == ours[:50]


def test_reading_stops_at_what_cannot_be_read() -> None:
    def puzzles():
        yield from (Puzzle("a"), Puzzle("b"))
        raise InvalidInput("line 3")

    window, failure = cluster._window(puzzles())
    assert [one.text for one in window] == ["a", "b"] and str(failure) == "line 3"
    assert cluster._window(iter([])) == ([], None)


def test_paths_are_the_same_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_tiny(tmp_path / "tiny.mull")
    settings = cluster.Settings("tiny.mull", problem="own.py:mine").anywhere()
    assert (settings.model, settings.problem) == (f"{tmp_path}/tiny.mull", f"{tmp_path}/own.py:mine")
    assert cluster.Settings("sudoku").anywhere().model == "sudoku"


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(write_tiny(tmp_path / "tiny.mull"))
    assert main(["solve", "-m", model, "--engine", "spark", puzzle(3)]) == 2
    assert capsys.readouterr().err == "mull: there is no engine 'spark': use local or ray\n"
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["solve", "-m", model, "--engine", "ray", puzzle(3)]) == 2
    assert capsys.readouterr().err == "mull: this needs ray: install mull[ray]\n"


def test_no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    def init(**_: object) -> None:
        raise ConnectionError("nobody there\nand more")

    fake = SimpleNamespace(is_initialized=lambda: False, init=init)
    monkeypatch.setitem(sys.modules, "ray", fake)
    monkeypatch.setitem(sys.modules, "ray.data", fake)
    monkeypatch.setenv("RAY_ADDRESS", "there:1")
    with pytest.raises(UserError, match=r"^cannot use Ray on there:1: nobody there$"):
        list(cluster.solve_many(cluster.Settings(), iter([])))
