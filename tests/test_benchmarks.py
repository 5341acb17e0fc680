"""Published numbers come from result files, and the scripts that make those files run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest


def test_pages_say_what_the_result_files_say(root: Path) -> None:
    run = subprocess.run([sys.executable, "benchmarks/report.py", "--check"], cwd=root, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


def test_a_changed_number_is_noticed(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(root / "benchmarks"))
    import report

    page = (root / "README.md").read_text()
    assert report.filled(page) == page
    changed = re.sub(r"(\| 64 \| )\d\d", r"\g<1>11", page)
    assert changed != page and report.filled(changed) == page


@pytest.mark.parametrize("path", sorted((Path(__file__).parents[1] / "benchmarks" / "results").glob("*.json")), ids=str)
def test_result_files_say_where_they_came_from(path: Path) -> None:
    content = json.loads(path.read_text())
    for key in ("command", "commit", "hardware"):
        assert content["provenance"][key]
    assert "/root" not in path.read_text() and "/work" not in path.read_text()


def test_the_speed_script_runs(root: Path, tmp_path: Path, external_data: Path) -> None:
    out = tmp_path / "speed.json"
    command = [sys.executable, "benchmarks/speed/solve.py", "--quick", "--out", str(out)]
    subprocess.run(command, cwd=root, check=True, capture_output=True)
    assert json.loads(out.read_text())["verified"] > 0.5


def test_the_script_that_solves_files_runs(root: Path, tmp_path: Path, external_data: Path) -> None:
    out = tmp_path / "files.json"
    command = [sys.executable, "benchmarks/speed/solve_files.py", "--quick", "--out", str(out)]
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}
    subprocess.run(command, cwd=root, check=True, capture_output=True, env=environment)
    found = json.loads(out.read_text())
    assert found["exact"]["right"] == found["exact"]["verified"] == found["puzzles"]
    assert sum(found["steps"]["counts"].values()) == found["recurrences"]["verified"]


def test_the_script_on_hints_runs(root: Path, tmp_path: Path) -> None:
    out = tmp_path / "hints.json"
    subprocess.run([sys.executable, "benchmarks/hints.py", "--quick", "--out", str(out)], cwd=root, check=True)
    (row,) = json.loads(out.read_text())["rows"]
    assert set(row["ways"]) == {"no hints", "most likely values", "where it is sure", "solution"}


def test_the_cpu_speed_script_runs(root: Path, tmp_path: Path, external_data: Path) -> None:
    out = tmp_path / "speed.json"
    command = [sys.executable, "benchmarks/speed/cpu.py", "--quick", "--out", str(out)]
    for parts in ("solving", "generators,training"):  # the tests of training have two processes
        subprocess.run([*command, "--parts", parts], cwd=root, check=True, capture_output=True)
    found = json.loads(out.read_text())
    assert found["solving"]["cold"]["ratio"]["wall"] > 1
    assert all(rate > 0 for rate in found["generators"].values())
    assert found["training"]["updates"]["ratio"]["processor"] > 0


def test_the_gpu_speed_script_runs(
    root: Path, tmp_path: Path, external_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "speed.json"
    command = [sys.executable, "benchmarks/speed/gpu.py", "--quick", "--out", str(out)]
    subprocess.run(command, cwd=root, check=True, capture_output=True)
    found = json.loads(out.read_text())
    for part in ("naive", "training", "inference"):
        assert found[part] and all(row["puzzles_per_s"] > 0 for row in found[part])
    assert all(row["mean_steps"] > 0 for row in found["adaptive"]["rows"])
    monkeypatch.syspath_prepend(str(root / "benchmarks"))
    import report_gpu
    import report_gpu_costs

    assert not report_gpu.measured(found, "training")  # a quick run is no measurement
    blocks = [report_gpu.speed, report_gpu.roofline, report_gpu.adaptive, report_gpu_costs.sizes]
    for text in (block(found) for block in (*blocks, lambda got: report_gpu_costs.scaling(got, 1000))):
        assert text.count("|") > 8


def test_what_was_asked_for_on_a_gpu_is_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(root / "benchmarks"))
    from report_gpu import verdict

    assert verdict(None, 10, 20) == "not measured yet"
    assert [verdict(rate, 10, 20) for rate in (9, 10, 25)] == ["10 % short", "✓", "✓ and the aim"]
    assert [verdict(memory, 12, 4) for memory in (16, 12, 3)] == ["25 % short", "✓", "✓ and the aim"]


def test_the_embedder_speed_script_runs(root: Path, tmp_path: Path) -> None:
    out = tmp_path / "speed.json"
    command = [sys.executable, "benchmarks/speed/embed.py", "--quick", "--out", str(out)]
    subprocess.run(command, cwd=root, check=True, capture_output=True)
    assert set(json.loads(out.read_text())["boards_per_s"]["2"]) == {"text", "ours", "plain"}


def test_the_losses_speed_script_runs(root: Path, tmp_path: Path) -> None:
    out = tmp_path / "speed.json"
    command = [sys.executable, "benchmarks/speed/losses.py", "--quick", "--out", str(out)]
    subprocess.run(command, cwd=root, check=True, capture_output=True)
    ratios = json.loads(out.read_text())["ratio"]["2"]
    assert ratios["cross entropy"] == 1 and ratios["cardinality"] > 0


def test_the_table_of_constraint_losses_runs(root: Path, tmp_path: Path) -> None:
    out = tmp_path / "constraints.json"
    command = [sys.executable, "benchmarks/tables/constraints.py", "--quick", "--out", str(out)]
    subprocess.run([*command, "--runs", str(tmp_path / "runs")], cwd=root, check=True, capture_output=True)
    rows = json.loads(out.read_text())["rows"]
    assert list(rows)[:4] == ["none", "cardinality", "attention", "both"]
    assert len(rows) == 7 and all(set(row["right"]) == {"2", "4"} for row in rows.values())


def test_the_generator_speed_script_runs(root: Path, tmp_path: Path) -> None:
    out = tmp_path / "speed.json"
    command = [sys.executable, "benchmarks/speed/generate.py", "--quick", "--out", str(out)]
    subprocess.run(command, cwd=root, check=True, capture_output=True)
    problems = json.loads(out.read_text())["problems"]
    assert problems["sudoku-16x16-hard"]["givens_max"] < 90
    assert all(row["per_s"] > 0 for row in problems.values())


def test_the_server_load_script_runs(root: Path, tmp_path: Path) -> None:
    pytest.importorskip("fastapi")
    out = tmp_path / "speed.json"
    command = [sys.executable, "benchmarks/speed/serve.py", "--quick", "--out", str(out)]
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}
    subprocess.run(command, cwd=root, check=True, capture_output=True, env=environment)
    content = json.loads(out.read_text())
    assert [set(row["statuses"]) for row in content["below_the_limit"]] == [{"200"}] * 3
    assert set(content["over_the_limit"]["statuses"]) <= {"200", "503"}


def test_a_run_is_collected(root: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "recipe.json").write_text(json.dumps({"name": "x", "provenance": {"commit": "c"}}))
    rows = [{"step": step, "loss": 1.0} | ({"valid_board": 0.5} if step == 333 else {}) for step in range(1000)]
    (run / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "out.json"
    command = [sys.executable, "benchmarks/collect.py", str(run), "--out", str(out)]
    subprocess.run(command, cwd=root, check=True, capture_output=True)
    content = json.loads(out.read_text())
    assert content["provenance"] == {"commit": "c"} and len(content["rows"]) < 150
    assert [row["step"] for row in content["rows"] if "valid_board" in row] == [333]
