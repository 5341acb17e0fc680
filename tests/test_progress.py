from __future__ import annotations

import pytest

from mull.progress import LiveReporter, PlainReporter, closing, learning_curve
from mull.recipes import get_recipe

ROWS = [
    {"step": float(step), "loss": 2.0 / step, "puzzles_per_s": 1000.0}
    | ({"valid_board": step / 100} if step % 20 == 0 else {})
    for step in range(1, 101)
]


def test_learning_curve() -> None:
    lines = learning_curve(ROWS, width=40).splitlines()
    assert lines[0] == "loss, log scale"
    assert lines[1].split()[0] == "2"
    assert lines[8] == "boards"
    assert lines[9].startswith("100.0 %")
    assert lines[14].lstrip().startswith("0.0 %")
    assert all(len(line) <= 48 for line in lines)
    assert learning_curve([]) == ""
    assert learning_curve(ROWS[:1]) == ""


@pytest.mark.parametrize("make", [LiveReporter, PlainReporter])
def test_reporters(make: type[LiveReporter | PlainReporter], capsys: pytest.CaptureFixture[str]) -> None:
    report = make()
    report.begin(get_recipe("sudoku-4x4"), 100, 0)
    for row in ROWS:
        report.progress(int(row["step"]), row)
    report.end({"out": "runs/x", "step": 100, "best": 1.0, "rows": ROWS})
    shown = capsys.readouterr()
    assert "best on validation data: 100.00 % of boards" in shown.out
    assert "mull export runs/x" in shown.out
    if make is PlainReporter:
        assert "60/100  loss 0.0333  boards 60.00 %  1,000 puzzles/s" in shown.out


def test_a_run_without_any_validation_says_so() -> None:
    shown = closing({"out": "runs/x", "step": 9, "best": -1.0, "rows": ROWS[:9]})
    assert "stopped before the first validation" in shown
    assert "%" not in shown and "mull export" not in shown
