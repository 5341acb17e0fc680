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
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGES = (ROOT / "README.md", ROOT / "docs" / "results.md", ROOT / "docs" / "problems" / "sudoku.md")
BLOCK = re.compile(r"(<!-- report:(?P<name>[\w-]+) -->\n).*?(<!-- /report -->)", re.DOTALL)

PAPER_RRN = {"64": (99.5, 96.7)}
"""Table 1 of the paper, L1R32H4 trained on 180k RRN puzzles: all test boards, and those with 17 givens."""


def result(name: str) -> dict[str, Any]:
    """A result file's content."""
    content: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return content


def rrn_accuracy() -> str:
    """Accuracy of the model that ships on the RRN test set, beside the paper's."""
    ours = result("sudoku.rrn_test")
    lines = ["| recurrences | all 18,000 test boards | the 1,000 with 17 givens | the paper |", "|---|---|---|---|"]
    for steps, row in ours["steps"].items():
        paper = PAPER_RRN.get(steps)
        beside = f"{paper[0]} / {paper[1]} %" if paper else ""
        hardest = ours["by_givens"]["17"][steps]
        lines.append(f"| {steps} | {100 * row['whole_board']:.2f} % | {100 * hardest:.1f} % | {beside} |")
    trained = ours["trained"]
    minutes = result(f"{trained['recipe']}.train")["rows"][-1]["seconds"] / 60  # to the end, not to the update kept
    about = (
        f"{ours['parameters']:,} parameters; recipe `{trained['recipe']}`, {minutes:.0f} minutes on "
        f"one {trained['hardware']}; all symmetries were used to augment the training puzzles, which the paper's model "
        "did not get. Recurrences only: no search, no exact solver."
    )
    return "\n".join([*lines, "", about])


def by_givens() -> str:
    """Accuracy by number of givens at every number of recurrences."""
    ours = result("sudoku.rrn_test")
    steps = list(ours["steps"])
    lines = ["| givens | boards | " + " | ".join(f"T={step}" for step in steps) + " |", "|---" * (2 + len(steps)) + "|"]
    for givens, row in ours["by_givens"].items():
        cells = " | ".join(f"{100 * row[step]:.1f}" for step in steps)
        lines.append(f"| {givens} | {row['count']:,} | {cells} |")
    return "\n".join(lines)


def small_boards() -> str:
    """The 4x4 model: how long it trains, and how it does on unseen boards."""
    ours, run = result("sudoku-4x4.test"), result("sudoku-4x4.train")
    steps = run["recipe"]["training"]["validate_steps"]  # the recipe's, not the one that does best on test boards
    share = 100 * ours["steps"][str(steps)]["whole_board"]
    return (
        f"The updates of `mull train sudoku-4x4` took {run['rows'][-1]['seconds']:.0f} s "
        f"({run['provenance']['hardware']}); the model ({ours['parameters']:,} parameters) solves {share:.1f} % of "
        f"{ours['instances']:,} unseen boards at T={steps}."
    )


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


def trainings() -> str:
    """Every training with a result file: setting, time and validation accuracy."""
    lines = [
        "| file | recipe | updates | batch | symmetries | embedding std | best on validation | at update | minutes |",
        "|---" * 9 + "|",
    ]
    for path in sorted(RESULTS.glob("*.train.json")):
        run = json.loads(path.read_text())
        recipe, rows = run["recipe"], [row for row in run["rows"] if "valid_board" in row]
        best = max(rows, key=lambda row: row["valid_board"])
        std = recipe["model"].get("embedding_std")
        cells = [
            f"`{path.name}`",
            recipe["name"],
            f"{run['rows'][-1]['step']:,.0f} of {recipe['training']['updates']:,}",
            f"{recipe['training']['batch']:,}",
            recipe["training"]["augment"],
            "paper's" if std is None else str(std),
            f"{100 * best['valid_board']:.2f} %",
            f"{best['step']:,.0f}",
            f"{run['rows'][-1]['seconds'] / 60:.1f} ({run['provenance']['hardware']})",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


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


BLOCKS: dict[str, Callable[[], str]] = {
    "rrn-accuracy": rrn_accuracy,
    "by-givens": by_givens,
    "small-boards": small_boards,
    "speed": speed,
    "trainings": trainings,
    "generate-speed": generate_speed,
}


def filled(page: str) -> str:
    """A page's text with every block written anew."""
    return BLOCK.sub(lambda match: f"{match[1]}{BLOCKS[match['name']]()}\n{match[3]}", page)


def draw() -> None:
    """The figures of the docs."""
    from mull.plots import accuracy_by_steps, learning_curve

    images = ROOT / "docs" / "images"
    accuracy_by_steps(result("sudoku.rrn_test"), images / "accuracy.png")
    learning_curve(result("sudoku-rrn.best.train")["rows"], images / "learning_curve.png")


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
