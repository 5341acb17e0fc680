"""More blocks of `report.py` about speed on a GPU: costs by size, several GPUs, time to accuracy; and the figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from report_gpu import measured, problem_of, table
from speed.work import explain

GOALS = (0.99, 0.998)
"""Shares of validation boards whose first time is told."""
LINKS = {"NVLink, 8 GPUs of one machine": (8, 450e9, 20e-6), "InfiniBand, 4 machines of 8 GPUs": (32, 50e9, 60e-6)}
"""GPUs, bytes a second each way of one GPU's link, and seconds before the first byte arrives: assumed, not measured."""


def sizes(got: dict[str, Any]) -> str:
    """What an update costs by size, measured and by the model."""
    found = got["sizes"]
    explained = _explain(found)
    heads = ["varied", "", "by", "ms an update", "by the model", "puzzles a second", "peak memory", "by the formula"]
    lines = []
    for axis, places in found["axes"].items():
        key = axis.partition(",")[0]
        for row in (found["rows"][place] for place in places):
            value = row[{"tokens": "variables", "recurrences": "steps", "batch": "puzzles"}.get(key, key)]
            cells = [key, f"{value:,}", row["path"]]
            if problem_of(row):
                lines.append([*cells, problem_of(row), "", "", "", ""])
                continue
            guess = f"{1000 * row['predicted_s']:.2f}" if "predicted_s" in row else ""
            cells += [f"{1000 * row['seconds_per_update']:.2f}", guess, f"{row['puzzles_per_s']:,.0f}"]
            memory = f"{row['memory'] / 2**30:.2f} GiB" if row["path"] == "kernels" else ""
            lines.append([*cells, f"{row['peak_gib']:.2f} GiB" if "peak_gib" in row else "", memory])
    said = [_explained(path, about) for path, about in explained.items()]
    base = (
        "One thing is varied at a time from L1R32, width 128, 81 tokens, batch 512 (heads of 32 numbers). The model: "
        "time = the larger of operations / (share of the product rate) and bytes / (share of the bandwidth), and a "
        "time for each launch; shares and that time are fitted, all else is counted."
    )
    return "\n".join([table(heads, lines), "", " ".join([base, *said]), "", "![Costs by size](images/gpu_sizes.png)"])


def _explain(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The model of each path, fitted anew; its times go into the rows."""
    explained, machine = {}, found["machine"]
    for path in ("kernels", "compiled"):
        rows = [row for row in found["rows"] if row["path"] == path and not problem_of(row)]
        if len(rows) > 3:
            explained[path] = explain(rows, machine["operations_per_s"], machine["bytes_per_s"])
    return explained


def _explained(path: str, about: dict[str, Any]) -> str:
    rates = {"share_of_matmul_rate": "the product rate", "share_of_bandwidth": "the bandwidth"}
    terms = [f"{100 * about[key]:.0f} % of {what}" for key, what in rates.items() if about[key]]
    launch = f"{1e6 * about['seconds_per_launch']:.1f} us a launch" if about["seconds_per_launch"] else ""
    fitted = ", ".join([*terms, *([launch] if launch else [])])
    errors = f"{100 * about['mean_error']:.0f} % on average and {100 * about['largest_error']:.0f} % at most"
    return f"With {path}: {fitted}; it is off by {errors}."


def scaling(got: dict[str, Any], parameters: int) -> str:
    """What exchanging gradients costs beside an update, by arithmetic."""
    size = 4 * parameters
    heads = ["batch of one GPU", "an update", *(f"exchange, {name}" for name in LINKS)]
    lines = []
    for row in got["training"]:
        if row["mode"] == "paper" and row["kernels"] and not row["frugal"] and "seconds_per_update" in row:
            cells = [f"{row['batch']:,}", f"{1000 * row['seconds_per_update']:.2f} ms"]
            for count, rate, delay in LINKS.values():
                exchange = delay + 2 * (count - 1) / count * size / rate
                cells.append(f"{1e6 * exchange:.0f} us, {100 * exchange / row['seconds_per_update']:.1f} %")
            lines.append(cells)
    about = f"Gradients of {parameters:,} parameters in float32: {size / 1e6:.2f} MB an update, whatever the batch."
    return "\n".join([table(heads, lines), "", about])


def _first(rows: list[dict[str, Any]], goal: float) -> float | None:
    """Seconds until validation first reached a goal."""
    return next((row["seconds"] for row in rows if row.get("valid_board", 0) >= goal), None)


def quickest(run: dict[str, Any]) -> str:
    """One sentence on how long a training takes."""
    times = [(goal, _first(run["rows"], goal)) for goal in GOALS]
    said = " and ".join(f"{100 * goal:g} % after {first:.0f} s" for goal, first in times if first is not None)
    steps = run["recipe"]["training"]["validate_steps"]
    return (
        f"On one {run['provenance']['hardware']}, updates of `mull train {run['recipe']['name']}` (9x9) reach {said} "
        f"of validation boards at T={steps}; starting and compiling come on top "
        "([docs/performance.md](docs/performance.md))."
    )


def time_to_accuracy(runs: dict[str, dict[str, Any]]) -> str:
    """When each training first solved so many validation boards."""
    heads = ["file", "hardware", "kernels", "puzzles a second", *(f"{100 * goal:g} % after" for goal in GOALS), "best"]
    lines = []
    for name, run in runs.items():
        rows = [row for row in run["rows"] if "valid_board" in row]
        firsts = [_first(rows, goal) for goal in GOALS]
        rates = sorted(row["puzzles_per_s"] for row in run["rows"] if "puzzles_per_s" in row)
        kernels = run["recipe"]["training"].get("kernels")
        cells = [f"`{name}`", run["provenance"]["hardware"], {None: "no", True: "yes", False: "no"}[kernels]]
        cells += [f"{rates[len(rates) // 2]:,.0f}" if rates else ""]
        cells += ["not reached" if first is None else f"{first:.0f} s" for first in firsts]
        lines.append([*cells, f"{100 * max((row['valid_board'] for row in rows), default=0):.2f} %"])
    about = (
        "Validation boards at T=64, averaged weights; seconds of wall time, validations included, to the end of the "
        "first validation that reached it, so no finer than the time between two of them."
    )
    return "\n".join([table(heads, lines), "", about, "", "![Time to accuracy](images/time_to_accuracy.png)"])


def draw(got: dict[str, Any] | None, runs: dict[str, dict[str, Any]], images: Path) -> None:
    """The figures of these blocks, as far as there is something to draw."""
    from mull.plots import Panel, line_panels

    def unsolved(run: dict[str, Any]) -> list[tuple[float, float]]:
        rows = [row for row in run["rows"] if row.get("valid_board", 1) < 1]
        return [(row["seconds"], 100 * (1 - row["valid_board"])) for row in rows]

    curves = {name.removesuffix(".train.json"): unsolved(run) for name, run in runs.items()}
    panel = Panel("validation boards not solved, %", "seconds", curves, both=True)
    line_panels([panel], images / "time_to_accuracy.png")
    if got is None or not measured(got, "sizes"):
        return
    found, panels = got["sizes"], []
    _explain(found)
    for axis, places in found["axes"].items():
        key = {"tokens": "variables", "recurrences": "steps", "batch": "puzzles"}.get(axis, axis.partition(",")[0])
        rows = [row for row in (found["rows"][place] for place in places) if "predicted_s" in row]
        names = {"measured": "seconds_per_update", "by the model": "predicted_s"}
        lines = {name: [(row[key], 1000 * row[column]) for row in rows] for name, column in names.items()}
        panels.append(Panel(f"ms an update ({rows[0]['path']})" if rows else axis, axis, lines, both=True))
    line_panels(panels, images / "gpu_sizes.png")
