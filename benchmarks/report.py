"""Write every number and figure of the README and the docs from the files in benchmarks/results.

python benchmarks/report.py            # rewrite the blocks and draw the figures
python benchmarks/report.py --check    # only tell whether a block is out of date (the tests do)
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import plan
import report_ablations
import report_cpu
import report_gpu
import report_gpu_costs
import report_missed
import report_models
import report_results
import report_solver
from report_files import RESULTS, ROOT, result

PAGES = (
    ROOT / "README.md",
    ROOT / "docs" / "results.md",
    ROOT / "docs" / "reproduce.md",
    ROOT / "docs" / "own_problem.md",
    ROOT / "docs" / "losses.md",
    ROOT / "docs" / "performance.md",
    ROOT / "docs" / "photo.md",
    ROOT / "docs" / "serve.md",
    ROOT / "docs" / "solve.md",
    *sorted((ROOT / "docs" / "problems").glob("*.md")),
)
BLOCK = re.compile(r"(<!-- report:(?P<name>[\w-]+) -->\n).*?(<!-- /report -->)", re.DOTALL)


EXAMPLES = {
    "visual-sudoku": "rrn-v_test",
    "nonogram": "nonogram7_test",
    "nonogram-15": "nonogram15_test",
    "shortest-path": "sp4_test",
    "mnist-mapping": "mnist_test",
}
"""Models to draw at work, each on the first instance of a test set; of SP4, the first with the longest path."""


PHOTOGRAPHED = "530070000600195000098000060800060003400803001700020006060000280000419005000080079"
"""The board in the picture of how photographs are read."""


PAPER_EPOCH = {
    "cross entropy": "120 s",
    "cardinality": "122 s",
    "CL-STE, first recurrence": "211 s",
    "CL-STE, all recurrences": "3,796 s",
}
"""The paper's cost of an epoch with each loss."""


def speed() -> str:
    """What solving costs on the CPU, relative to other things in the same run."""
    got = result("solve_speed")
    return (
        f"Cold, from process start to the printed board, one puzzle took {got['cold_seconds']:.2f} s "
        f"(of which Python itself {got['cold_python_seconds']:.2f} s; {got['provenance']['hardware']}). "
        f"{got['batch']:,} RRN test puzzles in one call took {got['mean_steps']:.1f} recurrences on average, and "
        f"{100 * got['verified']:.2f} % of the answers were verified; the others are said not to be. On those "
        f"cores that ran at {got['ratio_to_cpsat']:.2f} times the rate of CP-SAT, which knows the rules, on one core, "
        "puzzle by puzzle."
    )


def generate_speed() -> str:
    """What generated Sudoku boards are like, and how fast they are made."""
    got = result("generate_speed")
    lines = [
        "| problem | boards | givens, mean (least to most) | singles suffice | boards a second | slowest board |",
        "|---" * 6 + "|",
    ]
    for name, row in got["problems"].items():
        rate = f"{row['per_s']:,.0f}" if row["per_s"] >= 10 else f"{row['per_s']:.1f}"
        lines.append(
            f"| `{name}` | {row['boards']:,} | {row['givens_mean']:.1f} ({row['givens_min']} to {row['givens_max']}) | "
            f"{100 * row['singles']:.1f} % | {rate} | {1000 * row['slowest_s']:,.0f} ms |"
        )
    about = (
        f"Processor time of one core ({got['provenance']['hardware']}), seed {got['seed']}, compiling not "
        "counted. *Singles suffice*: the share of boards that need no guess, because some cell has one "
        "value left, or some value one cell in its row, column or box, until the board is full."
    )
    return "\n".join([*lines, "", about])


def embed_speed() -> str:
    """How fast boards of images train."""
    got = result("embed_speed")
    lines = ["| batch | digits | images, plainly | images, ours |", "|---" * 4 + "|"]
    for batch, rates in got["boards_per_s"].items():
        cells = (f"{rates[kind]:,.0f}" for kind in ("text", "plain", "ours"))
        lines.append(f"| {batch} | " + " | ".join(cells) + " |")
    about = f"Boards trained a second, L1R32H4, bfloat16, one run on one {got['provenance']['hardware']}."
    return "\n".join([*lines, "", about])


def losses_speed() -> str:
    """What each loss costs: boards trained a second, and the share of the speed of cross entropy alone."""
    got = result("losses_speed")
    heads = [f"batch {batch} | of cross entropy" for batch in got["ratio"]]
    lines = ["| " + " | ".join(["loss", *heads, "the paper, an epoch"]) + " |", "|---" * (2 + 2 * len(heads)) + "|"]
    for name in next(iter(got["ratio"].values())):
        cells = [f"{got['boards_per_s'][b][name]:,.0f} | {row[name]:.2f}" for b, row in got["ratio"].items()]
        lines.append("| " + " | ".join([name, *cells, PAPER_EPOCH.get(name, "")]) + " |")
    about = f"Boards trained a second, L1R32H4, bfloat16, all in one run on one {got['provenance']['hardware']}."
    return "\n".join([*lines, "", about])


def serve_speed() -> str:
    """How the server does with few and many clients, beside bad ones, and over its limit."""
    got = result("serve_speed")
    below, beside, over = got["below_the_limit"], got["beside_misbehaving_clients"], got["over_the_limit"]
    names = [f"{row['clients']} client{'s' * (row['clients'] > 1)}" for row in below]
    names += [f"{beside['clients']} clients, beside {beside['misbehaving']} that misbehave"]
    names += [f"{over['clients']} clients, a queue of {over['queue']}"]
    lines = [
        "| | requests | answered | refused (503) | other | p50 | p99 | answers a second | core |",
        "|---" * 9 + "|",
    ]
    for name, row in zip(names, [*below, beside, over], strict=True):
        answered, refused = (row["statuses"].get(code, 0) for code in ("200", "503"))
        cells = [name, *(f"{n:,}" for n in (row["requests"], answered, refused, row["requests"] - answered - refused))]
        cells += [f"{row['p50_ms']:,.0f} ms", f"{row['p99_ms']:,.0f} ms", f"{row['answers_per_s']:.0f}"]
        lines.append("| " + " | ".join([*cells, f"{row['core_ms']:.1f} ms"]) + " |")
    busy = ", so other work ran beside it" if got["load_before"] >= 1 else ""
    about = (
        f"Model `{got['model']}`, {got['puzzles']} generated puzzles, one a request, {got['seconds']:.0f} s each; "
        f"clients and server shared one machine ({got['provenance']['hardware']}; load average "
        f"{got['load_before']:.1f} before it began{busy}). The misbehaving clients sent rubbish, half requests, and "
        f"hung up in the middle of streams and searches, {beside['misdeeds']:,} times; afterwards "
        f"{got['waiting_afterwards']} puzzles were waiting. Of the refusals, {over['refusals_with_retry_after']:,} "
        "said when to come back. *Core*: processor time of the server for each request, which other work on the "
        "machine changes little."
    )
    return "\n".join([*lines, "", about])


def photos() -> str:
    """How many of the labelled photographs are read without a mistake, and what fails."""
    got = result("photos")
    lines = [
        "| photographs | | board found | all cells right | all cells right before any repair | median time |",
        "|---" * 6 + "|",
    ]
    for name, row in got["summary"].items():
        share = f"{row['right']} (**{100 * row['right'] / row['photos']:.1f} %**)"
        cells = [name, str(row["photos"]), str(row["found"]), share, str(row["right_as_read"])]
        lines.append("| " + " | ".join([*cells, f"{row['seconds_median']:.2f} s"]) + " |")
    failed = [row for row in got["photos"] if not row["found"] or row["cells_wrong"]]
    what = [f"`{row['file']}` ({row['part']}): {_failure(row)}" for row in failed]
    mended = [f"`{row['file']}` ({', '.join(row['repaired'])})" for row in got["photos"] if row.get("repaired")]
    about = (
        f"Wall time, {got['provenance']['hardware']}, with other work on them. Not right: {'; '.join(what) or 'none'}. "
        f"Repaired: {'; '.join(mended) or 'none'}."
    )
    return "\n".join([*lines, "", about])


def photos_short() -> str:
    """The same in a sentence."""
    got = result("photos")["summary"]
    parts = [f"{row['right']} of {row['photos']} {name}" for name, row in got.items() if name != "all"]
    return (
        f"Of {got['all']['photos']} labelled photographs, {got['all']['found']} boards were found and "
        f"{got['all']['right']} read without a mistake ({' and '.join(parts)} photographs; the reader was trained on "
        "none of them)."
    )


def _failure(row: dict[str, Any]) -> str:
    if not row["found"]:
        return str(row.get("error", f"another place, {row.get('corner_error_cells')} cells off"))
    return (
        f"{row['cells_wrong']} of 81 cells wrong ({', '.join(row['mistakes'][:3])}{', ...' * (row['cells_wrong'] > 3)})"
    )


def _cpu(part: Callable[[dict[str, Any]], str]) -> str:
    """A part of what `benchmarks/speed/cpu.py` measures, which it can do one by one."""
    try:
        return part(result("cpu_speed"))
    except (FileNotFoundError, KeyError):
        return "Not measured yet."


def gpu() -> dict[str, Any] | None:
    """What `benchmarks/speed/gpu.py` measured, if it did."""
    try:
        return result("gpu_speed")
    except FileNotFoundError:
        return None


def _gpu(block: Callable[[dict[str, Any]], str], part: str) -> str:
    """A block about one of the parts that are measured one by one."""
    got = gpu()
    return "Not measured yet." if got is None or not report_gpu.measured(got, part) else block(got)


def rrn_trainings() -> dict[str, dict[str, Any]]:
    """Trainings of `sudoku-rrn.best` in all its ways, by file."""
    return {path.name: json.loads(path.read_text()) for path in sorted(RESULTS.glob("sudoku-rrn.best*.train.json"))}


def scaling(got: dict[str, Any]) -> str:
    """For the model that ships."""
    return report_gpu_costs.scaling(got, result("sudoku.rrn_test")["parameters"])


BLOCKS: dict[str, Callable[[], str]] = {
    "rrn-accuracy": report_models.rrn_accuracy,
    "by-givens": report_models.by_givens,
    "small-boards": report_models.small_boards,
    "speed": speed,
    "trainings": report_models.trainings,
    "generate-speed": generate_speed,
    "models": report_models.models,
    "visual": report_models.visual,
    "embed-speed": embed_speed,
    "losses-speed": losses_speed,
    "no-labels": report_models.no_labels,
    "constraints": report_models.constraints,
    "binairo": report_models.binairo,
    "nonogram-starts": report_models.starts,
    "fit": report_models.fit,
    "fit-short": report_models.fit_short,
    "cpu-speed": lambda: _cpu(report_cpu.speed),
    "cpu-accuracy": lambda: _cpu(report_cpu.accuracy),
    "cpu-training": lambda: _cpu(report_cpu.training),
    "cpu-processes": lambda: _cpu(report_cpu.processes),
    "generator-rates": lambda: _cpu(report_cpu.generator_rates),
    "gpu-speed": lambda: _gpu(report_gpu.speed, "training"),
    "gpu-roofline": lambda: _gpu(report_gpu.roofline, "roofline"),
    "gpu-sizes": lambda: _gpu(report_gpu_costs.sizes, "sizes"),
    "gpu-adaptive": lambda: _gpu(report_gpu.adaptive, "adaptive"),
    "gpu-scaling": lambda: _gpu(scaling, "training"),
    "quickest": lambda: report_gpu_costs.quickest(result("sudoku-rrn.best-muon.train")),
    "time-to-accuracy": lambda: report_gpu_costs.time_to_accuracy(rrn_trainings()),
    "tables-short": report_results.short,
    "table1": lambda: report_results.sudoku("table1"),
    "table2": lambda: report_results.sudoku("table2"),
    "table2-rows": report_results.constraint_rows,
    "table3": lambda: report_results.sudoku("table3"),
    "table3-work": report_results.work,
    "table3-looks": report_results.ways,
    "hardest": report_results.hardest,
    "missed": report_missed.missed,
    "ablation-sizes": report_ablations.sizes,
    "ablation-heads": report_ablations.heads,
    "ablation-positions": report_ablations.positions,
    "ablation-designs": report_ablations.designs,
    "ablation-grounding": report_ablations.grounding,
    "ablation-givens": report_ablations.by_givens,
    "plan": plan.report,
    "photos": photos,
    "photos-short": photos_short,
    "serve-speed": serve_speed,
    "solve-files": lambda: report_solver.files(result("solve_files")),
    "recurrences": lambda: report_solver.recurrences(result("solve_files")),
    "search": lambda: report_solver.search(result("search")),
    "hints": lambda: report_solver.hints(result("hints")),
}


def filled(page: str) -> str:
    """A page's text with every block written anew."""
    return BLOCK.sub(lambda match: f"{match[1]}{BLOCKS[match['name']]()}\n{match[3]}", page)


def draw() -> None:
    """The figures of the docs."""
    import mull
    from mull.data import sets
    from mull.plots import accuracy_by_steps, learning_curve, photograph, recurrences
    from mull.problem import Instance

    images = ROOT / "docs" / "images"
    report_gpu_costs.draw(gpu(), rrn_trainings(), images)
    report_missed.draw(images)
    report_ablations.draw(images)
    accuracy_by_steps(result("sudoku.rrn_test"), images / "accuracy.png")
    learning_curve(result("sudoku-rrn.best.train")["rows"], images / "learning_curve.png")
    learning_curve(result("visual-sudoku-rrn-180k.best.train")["rows"], images / "visual_sudoku_curve.png")
    for model, data in EXAMPLES.items():
        solver, batch = mull.load(model, precision="fp32"), sets.load(data)
        row = int(batch.solution.sum(axis=1).argmax()) if data == "sp4_test" else 0
        puzzle = solver.problem.write(Instance(batch.inputs[row], batch.given[row]))
        recurrences(solver, puzzle, images / f"{model.replace('-', '_')}.png")
    photograph(mull.load("sudoku"), rendered_photograph(), images / "photo.png")


def rendered_photograph() -> NDArray[np.uint8]:
    """A board as a camera might see it; no camera was there."""
    from mull.data.streams import stream
    from mull.photo import render

    tokens = np.array(list(map(int, PHOTOGRAPHED)))
    return render.photograph(tokens, "", stream(0, "photograph", 3), amount=0.8, width=720, height=720)[0]


def main() -> int:
    """Write or check the pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a page is out of date")
    arguments = parser.parse_args()
    stale = []
    for page in PAGES:
        text = page.read_text()
        if filled(text) != text:
            stale.append(page)
            if not arguments.check:
                page.write_text(filled(text))
    if not arguments.check:
        draw()
    for page in stale:
        print(f"{page.relative_to(ROOT)} {'is out of date' if arguments.check else 'was written'}")
    return 1 if arguments.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
