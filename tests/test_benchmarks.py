"""Published numbers come from result files, and the scripts that make those files run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from mull.looks import Looks
from mull.recipes import Data, get_recipe, override


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


def test_the_script_on_examples_runs(root: Path, tmp_path: Path) -> None:
    out = tmp_path / "fit.json"
    subprocess.run([sys.executable, "benchmarks/fit.py", "--quick", "--out", str(out)], cwd=root, check=True)
    ((size, found),) = json.loads(out.read_text())["sizes"].items()
    assert size == "40" and found["examples"]["train"] < 40 and found["mull fit"]["instances"] > 0
    assert found["mull fit"]["instances"] == found["AdamW"]["instances"]


def test_the_script_on_hints_runs(root: Path, tmp_path: Path) -> None:
    out = tmp_path / "hints.json"
    subprocess.run([sys.executable, "benchmarks/hints.py", "--quick", "--out", str(out)], cwd=root, check=True)
    (row,) = json.loads(out.read_text())["rows"]
    assert set(row["ways"]) == {"no hints", "most likely values", "where it is sure", "solution"}


def run_cpu_speed(root: Path, out: Path, parts: str) -> Any:
    command = [sys.executable, "benchmarks/speed/cpu.py", "--quick", "--out", str(out), "--parts", parts]
    subprocess.run(command, cwd=root, check=True, capture_output=True)
    return json.loads(out.read_text())


def test_the_cpu_speed_script_runs(root: Path, tmp_path: Path, external_data: Path) -> None:
    found = run_cpu_speed(root, tmp_path / "speed.json", "solving")
    assert found["solving"]["cold"]["ratio"]["wall"] > 1
    assert found["solving"]["latency"]["ratio"].keys() == {"fp32", "int8"}


@pytest.mark.slow
def test_the_cpu_speed_script_trains(root: Path, tmp_path: Path, external_data: Path) -> None:
    found = run_cpu_speed(root, tmp_path / "speed.json", "generators,training")  # other tests have two processes
    assert all(rate > 0 for rate in found["generators"].values())
    assert found["training"]["updates"]["ratio"]["processor"] > 0


@pytest.mark.slow
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


@pytest.mark.slow
def test_the_embedder_speed_script_runs(root: Path, tmp_path: Path) -> None:
    out = tmp_path / "speed.json"
    command = [sys.executable, "benchmarks/speed/embed.py", "--quick", "--out", str(out)]
    subprocess.run(command, cwd=root, check=True, capture_output=True)
    assert set(json.loads(out.read_text())["boards_per_s"]["2"]) == {"text", "ours", "plain"}


@pytest.mark.slow
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


def test_the_tables_run_and_are_reported(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(root / "benchmarks"))
    import report
    import report_ablations
    import report_missed
    import report_results
    import table1
    import table2
    import table3
    import table4
    from tables.targets import TARGETS

    def run(script: Any, *arguments: str) -> dict[str, Any]:
        out = tmp_path / f"{script.__name__}.json"
        script.main(["--quick", "--resume", "--runs", str(tmp_path / "runs"), "--out", str(out), *arguments])
        content: dict[str, Any] = json.loads(out.read_text())
        return content

    monkeypatch.setattr("report_files.RESULTS", tmp_path)
    assert "not measured yet" in report_results.sudoku("table1") and report_ablations.rows() == {}
    contents = {script.__name__: run(script) for script in (table1, table2, table3, table4)}
    for script, content in zip((table1, table2, table3, table4), contents.values(), strict=True):
        assert set(content["rows"]) == {row.name for row in script.ROWS} and content["provenance"]["commit"]
        assert all(row["finished"] and row["T"] in row["valid"]["right"] for row in content["rows"].values())
    assert run(table1) == contents["table1"]  # nothing is trained or tested again
    tried = run(table1, "--only", "sudoku-rrn.paper", "--try", "decay", "--set", "weight_decay=1")["tried"]
    assert "tests" not in tried["sudoku-rrn.paper~decay"]
    for name in ("table1", "table2", "table3"):  # as if they had been measured on the right boards
        for target in (target for target in TARGETS if target.table == name):
            for row in (contents[name]["rows"][one] for one in (*target.rows, *target.best)):
                row["tests"][target.test] = row["tests"].get("sudoku-4x4_test", next(iter(row["tests"].values())))
        content = contents[name] | {"tried": tried if name == "table1" else {}}
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    assert "100.00 short" in report_results.sudoku("table1") and "weight_decay=1" in report_missed.missed()
    row, variant = contents["table1"]["rows"]["sudoku-rrn.paper"], tried["sudoku-rrn.paper~decay"]
    lines = report_missed.tried_lines(row, {"a~decay": variant, "a~again": row})
    assert [line[:2] for line in lines] == [["`decay`", "weight_decay=1.0"]]  # the row's own training is no variant
    ablations = ("ablation-sizes", "ablation-heads", "ablation-designs", "ablation-grounding")
    for name in ("tables-short", "table3", "table3-looks", "hardest", *ablations):
        assert report.BLOCKS[name]().count("|") > 8
    assert "row, %" in report_ablations.heads()
    report_ablations.draw(tmp_path)
    assert {path.stem for path in tmp_path.glob("*.png")} >= {"ablation_sizes", "ablation_attention"}


def test_a_training_of_a_table_is_stopped_and_resumed(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(root / "benchmarks"))
    import table1

    arguments = ["--quick", "--resume", "--only", "sudoku-satnet.paper", "--runs", str(tmp_path / "runs")]
    arguments += ["--out", str(tmp_path / "table1.json")]
    table1.main([*arguments, "--minutes", "0"])
    assert json.loads((tmp_path / "table1.json").read_text())["rows"]["sudoku-satnet.paper"]["finished"] is False
    before = (tmp_path / "table1.json").read_text()
    table1.main([*arguments, "--train"])
    assert (tmp_path / "table1.json").read_text() == before and "trained, to be measured" in capsys.readouterr().out
    trained = (tmp_path / "runs" / "sudoku-satnet.paper" / "best.safetensors").read_bytes()
    table1.main(arguments)
    assert (tmp_path / "runs" / "sudoku-satnet.paper" / "best.safetensors").read_bytes() == trained
    row = json.loads((tmp_path / "table1.json").read_text())["rows"]["sudoku-satnet.paper"]
    assert row["finished"] and len(row["curve"]) == 2 and row["tests"]
    table1.main([*arguments, "--total", "0"])
    assert "no time left" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        table1.main([*arguments, "--set", "updates=3"])  # without a name


def test_trainings_of_several_scripts_take_turns(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(root / "benchmarks"))
    from tables.turns import Turn

    began = threading.Event()
    with Turn(tmp_path / "runs" / "turn.lock") as first, Turn(tmp_path / "runs" / "turn.lock") as second:
        first.ready()
        waiting = threading.Thread(target=lambda: (second.ready(), began.set()), daemon=True)
        waiting.start()
        assert not began.wait(0.3)
        first.end({})
        assert began.wait(10)
        waiting.join()
        with Turn(tmp_path / "runs" / "turn.lock") as third:
            fails = threading.Thread(target=lambda: third.ready(), daemon=True)
            fails.start()
            second.__exit__(None, None, None)  # as when a training fails: its end is never told
            fails.join(10)
            assert not fails.is_alive()


def test_the_hardest_puzzles_script_runs(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(root / "benchmarks"))
    import hardest

    hardest.main(["--quick", "--out", str(tmp_path / "hardest.json")])
    found = json.loads((tmp_path / "hardest.json").read_text())
    assert found["verified_within"]["2"] > 0.5 and found["search"]["puzzles"] == 3


def test_test_boards_are_looked_at_in_the_way_that_validation_boards_choose(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(root / "benchmarks"))
    from tables import sight

    def evaluate(runtime: Any, batch: Any, steps: list[int], size: int, looks: Looks) -> dict[str, Any]:
        best = 0.9 + looks.rounds / 20  # at T=64
        return {"instances": 6, "steps": {str(T): {"right": best - abs(T - 64) / 1024} for T in steps}}

    monkeypatch.setattr(sight, "evaluate", evaluate)
    recipe = override(get_recipe("sudoku-4x4"), ["valid.count=6", "recurrences=64"])  # so many in a round
    measured = [32, 64, 128, 256], [Data("sudoku-4x4_test", 6)]
    runtime: Any = SimpleNamespace(batch=8)
    look = sight.Sight(runtime, recipe.seed)
    plainly = sight.scored(look, recipe, *measured)
    several = sight.scored_by_looks(look, recipe, *measured, [Looks(sides=16), Looks(rounds=2), Looks(starts=4)])
    assert several["rounds"] == 2 and [next(iter(one)) for one in several["others"]] == ["sides", "starts"]
    for found, seen, tested in ((plainly, "32 64 128 256", 4), (several, "64 96 128", 1)):
        assert found["T"] == "64" and " ".join(found["valid"]["right"]) == seen
        assert len(found["tests"]["sudoku-4x4_test"]["steps"]) == tested
    assert not any("tests" in one for one in several["others"])
    again = sight.scored_by_looks(look, recipe, *measured, [Looks(rounds=2), Looks(rounds=4)])
    assert again["rounds"] == 4 and list(again["valid"]["right"]) == ["64"]  # the fewer rounds said after how many


def test_what_was_looked_at_is_kept_for_a_command_that_is_stopped(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(root / "benchmarks"))
    from tables import sight

    asked: list[Looks] = []

    def evaluate(runtime: Any, batch: Any, steps: list[int], size: int, looks: Looks) -> dict[str, Any]:
        if len(asked) == 2:
            raise KeyboardInterrupt
        asked.append(looks)
        return {"instances": len(batch), "steps": {"2": {"right": looks.rounds / 100}}}

    monkeypatch.setattr(sight, "evaluate", evaluate)
    (tmp_path / "best.safetensors").write_bytes(b"weights")
    recipe = override(get_recipe("sudoku-4x4"), ["valid.count=6", "recurrences=2"])
    ways = [Looks(rounds=2), Looks(rounds=3), Looks(rounds=4)]

    def measured(resume: bool) -> dict[str, Any]:
        runtime: Any = SimpleNamespace(batch=8)
        look = sight.sight(runtime, recipe, tmp_path, torch.device("cpu"), resume)
        return sight.scored_by_looks(look, recipe, [2], (), ways)

    with pytest.raises(KeyboardInterrupt):
        measured(resume=False)
    asked.pop()
    assert measured(resume=True)["rounds"] == 4 and asked == [ways[0], ways[2]]  # the second one was kept
    asked.clear()
    (tmp_path / "best.safetensors").write_bytes(b"others")
    with pytest.raises(KeyboardInterrupt):
        measured(resume=True)
    assert asked == ways[:2]
    asked.clear()
    (tmp_path / "__init__.py").write_text("changed = True")
    monkeypatch.setattr(sight, "mull", SimpleNamespace(__file__=str(tmp_path / "__init__.py")))
    with pytest.raises(KeyboardInterrupt):
        measured(resume=True)
    assert asked == ways[:2]  # other code may see something else


def test_the_plan_has_every_row_in_commands_of_ten_minutes(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(root / "benchmarks"))
    import plan

    planned = {(step.table, name) for step in plan.STEPS for name in step.rows if not step.variant}
    assert planned == {(table, row.name) for table, rows in plan.TABLES.items() for row in rows}
    assert all(step.minutes < 10 or len(step.rows) == 1 for step in plan.STEPS)


def test_every_row_is_measured_with_the_recipe_as_it_is_now(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recipe that is changed needs its rows trained anew; to see whether a change pays, there is `--try`."""
    monkeypatch.syspath_prepend(str(root / "benchmarks"))
    import plan
    from tables.rows import RESULTS, read, recipe_of, same

    for name, rows in plan.TABLES.items():
        measured = read(RESULTS / f"{name}.json")["rows"]
        other = [row.name for row in rows if not same(measured[row.name]["recipe"], recipe_of(row, quick=False))]
        assert not other and all("tests" in measured[row.name] for row in rows)
    changed = override(recipe_of(plan.TABLES["table1"][0], quick=False), ["updates=7"])
    assert not same(read(RESULTS / "table1.json")["rows"][plan.TABLES["table1"][0].name]["recipe"], changed)
