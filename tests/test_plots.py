from __future__ import annotations

from pathlib import Path

import pytest

from mull.solve import Solver
from tiny import OTHER, LookupRuntime, puzzle

pytest.importorskip("matplotlib")

from mull import plots


def size(path: Path) -> tuple[int, int]:
    """Width and height of a PNG."""
    header = path.read_bytes()[:24]
    assert header.startswith(b"\x89PNG")
    return int.from_bytes(header[16:20], "big"), int.from_bytes(header[20:24], "big")


@pytest.mark.parametrize("text", [puzzle(6), puzzle(6, OTHER), puzzle(1)])
def test_recurrences(tmp_path: Path, text: str) -> None:
    plots.recurrences(Solver(LookupRuntime(), 12), text, tmp_path / "board.png")
    assert size(tmp_path / "board.png")[0] == 1200


def test_moments() -> None:
    assert plots.moments(1, 6) == [1]
    assert plots.moments(3, 6) == [1, 2, 3]
    assert plots.moments(64, 6)[0] == 1
    assert plots.moments(64, 6)[-1] == 64


def test_curves(tmp_path: Path) -> None:
    plots.learning_curve(
        [{"step": 1.0, "loss": 2.0}, {"step": 2.0, "loss": 1.0, "valid_board": 0.5}], tmp_path / "l.png"
    )
    accuracy = {"whole_board": 0.5, "whole_cell": 0.9}
    plots.accuracy_by_steps({"steps": {"16": accuracy, "32": accuracy}}, tmp_path / "a.png")
    assert size(tmp_path / "l.png")[0] == 1200
    assert size(tmp_path / "a.png")[0] == 720
