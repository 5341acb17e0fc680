"""The order in which to run the tables on one GPU, by what each brings: commands of less than ten minutes, resumable.

python benchmarks/plan.py            # a shell script on standard output
"""

from __future__ import annotations

from dataclasses import dataclass

import table1
import table2
import table3
import table4
from tables.costs import seconds
from tables.rows import Row, recipe_of

TABLES = {"table1": table1.ROWS, "table2": table2.ROWS, "table3": table3.ROWS, "table4": table4.ROWS}
TOTAL = 9.0
"""Minutes after which a command stops training; what is left is for the next call of the same command."""


@dataclass(frozen=True)
class Step:
    """One command."""

    table: str
    rows: tuple[str, ...]
    why: str
    variant: str = ""
    """A name and settings to try, as `name key=value ...`."""

    @property
    def chosen(self) -> list[Row]:
        """Its rows."""
        by_name = {row.name: row for row in TABLES[self.table]}
        return [by_name[name] for name in self.rows]

    @property
    def command(self) -> str:
        """As it is typed."""
        name, *settings = self.variant.split() or [""]
        tried = " ".join([f" --try {name}", *(f"--set {one}" for one in settings)]) if name else ""
        return f"python benchmarks/{self.table}.py --resume --total {TOTAL:g} --only {','.join(self.rows)}{tried}"

    @property
    def minutes(self) -> float:
        """What it should take, from measured rates."""
        settings = self.variant.split()[1:]
        return sum(seconds(recipe_of(row, False, settings)) for row in self.chosen) / 60


NINE = ("sudoku-rrn-9k.paper",)
VISUAL = ("visual-sudoku-rrn.paper",)
SIZES = ("L1R16", "L1R32", "L2R16", "L2R32", "L4R16", "L64R1")
STEPS = [
    Step("table2", (*NINE, "sudoku-rrn-9k-both.paper", "sudoku-rrn-semi.paper", "sudoku-rrn-semi.best"),
         "9k puzzles with constraint losses; few labels"),
    Step("table1", ("sudoku-satnet.paper", "sudoku-satnet.best", "visual-sudoku-satnet.paper",
                    "visual-sudoku-satnet.best"), "SATNet boards, textual and visual"),
    Step("table1", ("sudoku-rrn.paper",), "RRN, 180k, in the paper's setting; accuracy against T"),
    Step("table1", (*VISUAL, "visual-sudoku-rrn.best"), "RRN-V, 9k"),
    Step("table2", (*VISUAL, "visual-sudoku-rrn-both.best", "visual-sudoku-rrn-both.paper",
                    "visual-sudoku-rrn-semi.paper", "visual-sudoku-rrn-semi.best", "sudoku-rrn-9k.best"),
         "both losses and few labels in images; 9k puzzles in the best setting"),
    Step("table1", ("sudoku-rrn.best",), "RRN, 180k"),
    Step("table1", ("visual-sudoku-rrn-180k.best", "visual-sudoku-rrn-180k.paper"), "RRN-V, 180k"),
    Step("table3", ("sudoku-16x16-regular-medium.paper",), "16x16 boards of regular grids"),
    Step("table3", ("sudoku-16x16-regular-simple.paper",), "the same with more givens"),
    Step("table3", ("sudoku-16x16-singles.best",), "both sets without a guess, in the best setting"),
    Step("table3", ("sudoku-16x16-medium-rounds.paper",),
         "16x16 boards of random grids without symmetries, learned and solved in rounds"),
    Step("table3", ("sudoku-16x16-simple-rounds.paper",), "the same with more givens"),
    Step("table3", ("sudoku-16x16-medium.paper",), "16x16 in the paper's setting"),
    Step("table3", ("sudoku-16x16-simple.paper",), "the same with more givens"),
    Step("table3", ("sudoku-16x16.best",), "what taught the hardest 9x9 puzzles, on 16x16 boards",
         "two-blocks blocks=2 updates=20000 carry=0.75 reset_unsolved=0.03 validate_steps=256"),
    Step("table3", ("sudoku-16x16.best",), "16x16, all levels"),
    Step("table3", ("sudoku-extreme.best",), "the hardest puzzles"),
    Step("table4", SIZES, "blocks and recurrences"),
    Step("table4", ("H1", "H2", "H3", "H4", "no-positions"), "heads, attention maps, positions"),
    Step("table4", ("satnet-vanilla", "satnet-last", "sudoku-satnet.paper", "rrn-9k-vanilla", "rrn-9k-last", *NINE),
         "vanilla and recurrent, loss on all and on the last (two rows are shared with other tables)"),
    Step("table4", ("rrn-3k-vanilla", "rrn-3k-last", "rrn-3k-all", "visual-sudoku-rrn.paper",
                    "visual-sudoku-rrn-grounded.paper"), "the same on 3k; grounded against ungrounded"),
    Step("table2", ("sudoku-rrn-9k-cardinality", "sudoku-rrn-9k-attention", "sudoku-rrn-4k", "sudoku-rrn-4k-counts",
                    "sudoku-rrn-4k-4k"), "the other rows of the paper's tables of constraint losses"),
    Step("table2", ("visual-sudoku-rrn-cardinality", "visual-sudoku-rrn-4k", "visual-sudoku-rrn-4k-counts",
                    "visual-sudoku-rrn-4k-4k"), "the same in images"),
    Step("table2", ("visual-sudoku-rrn-attention", ), "attention alone in images"),
]  # fmt: skip


def calls(step: Step) -> int:
    """How often a command has to be called."""
    return max(1, -int(-step.minutes // TOTAL))


def report() -> str:
    """The plan as a table, for the docs."""
    lines = ["| | command | expected minutes | what it brings |", "|---|---|---|---|"]
    total = 0.0
    for place, step in enumerate(STEPS, start=1):
        total += step.minutes
        often = f", {calls(step)} calls" if calls(step) > 1 else ""
        lines.append(f"| {place} | `{step.command}` | {step.minutes:.1f}{often} | {step.why} |")
    about = (
        f"In all about {total:.0f} minutes on one H200, estimated from the rates in `gpu_speed.json`, "
        "`losses_speed.json` and `sudoku-16x16.best.train.json` and half a minute a row for everything but updates; "
        "rows called `-rounds` are solved in many tries, which takes a minute more. "
        "Rows that are measured already, in whichever call, take no time."
    )
    return "\n".join([*lines, "", about])


def main() -> None:
    """Print the plan as a shell script."""
    for step in STEPS:
        print(f"# {step.why}: about {step.minutes:.1f} minutes")
        print("\n".join([step.command] * calls(step)))


if __name__ == "__main__":
    main()
