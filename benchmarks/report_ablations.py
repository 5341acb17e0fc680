"""The blocks and figures of `report.py` about the ablations, from `table4.json` and, for one, `table1.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from report_files import NOT_YET, maybe
from report_gpu import table

Found = dict[str, Any]
SIZES = ("L1R16", "L1R32", "L2R16", "L2R32", "L4R16", "L64R1")
HEADS = ("H1", "H2", "H3", "H4")
POSITIONS = {"with": "sudoku-satnet.paper", "without": "no-positions"}
DESIGNS = {
    "SATNet, 9k": ("satnet-vanilla", "satnet-last", "sudoku-satnet.paper"),
    "RRN, 9k": ("rrn-9k-vanilla", "rrn-9k-last", "sudoku-rrn-9k.paper"),
    "RRN, 3k": ("rrn-3k-vanilla", "rrn-3k-last", "rrn-3k-all"),
}
KINDS = ("L32R1, last output", "L1R32, last output", "L1R32, all outputs")
GROUNDING = {"ungrounded": "visual-sudoku-rrn.paper", "grounded": "visual-sudoku-rrn-grounded.paper"}
GIVENS = ("17", "18", "20", "22", "25", "30")


def rows() -> dict[str, Found]:
    """The measured rows of the ablations."""
    content = maybe("table4")
    return {} if content is None else {name: row for name, row in content["rows"].items() if "tests" in row}


def line(name: str, row: Found | None) -> list[str]:
    """A row: parameters, minutes, validation and test boards and cells."""
    if row is None:
        return [name, NOT_YET.rstrip(".").lower(), "", "", "", ""]
    (test,) = row["tests"].values()
    score = test["steps"][row["T"]]
    right = 100 * row["valid"]["right"][row["T"]]
    cells = [f"{row['parameters']:,}", f"{row['seconds'] / 60:.1f}", f"{right:.2f}"]
    return [name, *cells, f"{100 * score['right']:.2f} (T={row['T']})", f"{100 * score['whole_cell']:.2f}"]


def block(names: dict[str, str], figure: str) -> str:
    """A table of rows by title, and its figure if there is something in it."""
    there = rows()
    heads = ["", "parameters", "minutes", "validation boards, %", "test boards, %", "test cells, %"]
    lines = [line(title, there.get(name)) for title, name in names.items()]
    shown = (
        ["", f"![{figure.replace('_', ' ')}](images/{figure}.png)"] if any(n in there for n in names.values()) else []
    )
    return "\n".join([table(heads, lines), *shown])


def sizes() -> str:
    """Blocks and recurrences."""
    return block({name: name for name in SIZES}, "ablation_sizes")


def heads() -> str:
    """Heads, and the shares of attention that stay in the row, the column and the box."""
    there = rows()
    lines = []
    for name in (name for name in HEADS if name in there):
        share = there[name]["attention"]["share"]
        for head in range(there[name]["attention"]["heads"]):
            lines.append([name, str(head + 1), *(f"{100 * share[kind][head]:.0f}" for kind in share)])
    text = block({name: name for name in HEADS}, "ablation_heads")
    if not lines:
        return text
    below = table(["model", "head", "row, %", "column, %", "box, %"], lines)
    return "\n".join([text, "", "![attention](images/ablation_attention.png)", "", below])


def positions() -> str:
    """With and without positional embeddings."""
    return block(POSITIONS, "ablation_positions")


def designs() -> str:
    """Vanilla and recurrent Transformers."""
    named = {
        f"{data}: {kind}": name for data, names in DESIGNS.items() for kind, name in zip(KINDS, names, strict=True)
    }
    return block(named, "ablation_designs")


def grounding() -> str:
    """With and without labels of the givens."""
    return block(GROUNDING, "ablation_grounding")


def by_givens() -> str:
    """Accuracy against T by number of givens, of the model in the paper's setting."""
    row = rrn()
    if row is None:
        return NOT_YET
    test = row["tests"]["rrn_test"]
    steps = list(test["steps"])
    lines = [
        [givens, *(f"{100 * test['by_givens'][givens][T]:.1f}" for T in steps)]
        for givens in GIVENS
        if givens in test["by_givens"]
    ]
    shown = "![accuracy against recurrences by givens](images/ablation_givens.png)"
    return "\n".join([table(["givens", *(f"T={T}" for T in steps)], lines), "", shown])


def rrn() -> Found | None:
    """The row of table 1 that was trained on 180k puzzles in the paper's setting."""
    row = (maybe("table1") or {"rows": {}})["rows"].get("sudoku-rrn.paper", {})
    return row if "tests" in row else None


def draw(images: Path) -> None:
    """The figures that there are rows for."""
    from mull.plots import Panel, heat_maps, line_panels

    there = rows()

    def panel(title: str, names: dict[str, str], key: str = "valid_board") -> Panel:
        lines = {
            label: [(one["step"], 100 * one[key]) for one in there[name]["curve"] if key in one]
            for label, name in names.items()
            if name in there
        }
        return Panel(title, "updates", lines, percent=True)

    figures = {
        "ablation_sizes": [panel("validation boards, %", {name: name for name in SIZES})],
        "ablation_heads": [panel("validation boards, %", {name: name for name in HEADS})],
        "ablation_positions": [panel("validation boards, %", POSITIONS)],
        "ablation_designs": [
            panel(f"{data}: {what}, %", dict(zip(KINDS, names, strict=True)), key)
            for data, names in DESIGNS.items()
            for what, key in (("boards", "valid_board"), ("cells", "valid_whole_cell"))
        ],
        "ablation_grounding": [
            panel(f"{what}, %", GROUNDING, key)
            for what, key in (
                ("whole boards", "valid_whole_board"),
                ("solutions", "valid_solution_board"),
                ("givens", "valid_givens_cell"),
            )
        ],
    }
    row = rrn()
    if row is not None:
        by = row["tests"]["rrn_test"]["by_givens"]
        steps = list(row["tests"]["rrn_test"]["steps"])
        lines = {f"{n} givens": [(int(T), 100 * by[n][T]) for T in steps] for n in GIVENS if n in by}
        figures["ablation_givens"] = [Panel("test boards, %", "recurrences", lines, percent=True)]
    for name, panels in figures.items():
        if any(panel.lines for panel in panels):
            line_panels(panels, images / f"{name}.png")
    seen = {name: there[name]["attention"] for name in HEADS if name in there}
    if seen:
        from tables.attention import pictures

        maps = {f"{name}, head {n + 1}": one for name, got in seen.items() for n, one in enumerate(pictures(got))}
        heat_maps(maps, images / "ablation_attention.png")
