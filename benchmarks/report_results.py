"""The blocks of `report.py` about the tables of Sudoku: what was asked for and what is reached."""

from __future__ import annotations

from typing import Any

from report_files import NOT_YET, maybe
from report_gpu import table
from tables.targets import AIM_RECURRENCE, AIM_SEARCH, TARGETS, Target

Found = dict[str, Any]
SHOWN = ("32", "64")


def row_of(target: Target, names: tuple[str, ...]) -> tuple[str, Found] | None:
    """Of these rows of a table, the measured one that is best on validation data, else one in training."""
    rows = (maybe(target.table) or {"rows": {}})["rows"]
    there = [(name, rows[name]) for name in names if name in rows]
    done = [(name, row) for name, row in there if target.test in row.get("tests", {})]
    if done:
        return max(done, key=lambda one: valid_share(surest(one[1])))
    return there[0] if there else None


def surest(row: Found) -> Found:
    """The row's scores as they count: of several looks where they do better on validation boards."""
    several = looked(row)
    return several if several and valid_share(several) > valid_share(row) else row


def looked(row: Found) -> Found | None:
    """Its scores by several looks, if there are any; older results have those from several sides."""
    found: Found | None = row.get("looks", row.get("from_sides"))
    return found


def seen(scores: Found) -> str:
    """How boards were looked at, if not once and plainly."""
    return ", ".join(f"{scores[name]} {name}" for name in ("sides", "starts", "rounds", "tries") if name in scores)


def valid_share(scores: Found) -> float:
    """Validation boards right at the chosen T."""
    share: float = scores["valid"]["right"][scores["T"]]
    return share


def accuracy(target: Target, row: Found, steps: str) -> float | None:
    """Test boards right at T, in %."""
    test = row["tests"][target.test]
    share = test["steps"].get(steps, {}).get("right")
    if target.givens is not None:
        share = test["by_givens"].get(target.givens, {}).get(steps)
    return None if share is None else 100 * share


def reached(target: Target, row: Found) -> float | None:
    """Test boards right as they count, in %: in the way to look, and at the T, that validation boards chose."""
    counted = surest(row)
    return accuracy(target, counted, counted["T"])


def tested(target: Target, names: tuple[str, ...]) -> tuple[str, Found] | None:
    """Of these rows the one that counts, if its test boards were looked at."""
    one = row_of(target, names)
    return one if one is not None and target.test in one[1].get("tests", {}) else None


def verdict(found: float | None, must: float | None) -> str:
    """A tick, or what is missing."""
    if found is None or must is None:
        return ""
    return "✓" if found >= must - 1e-9 else f"{must - found:.2f} short"


def cells(target: Target, name: str, must: float | None) -> list[str]:
    """A line of the table for one row, from its name to the training's minutes."""
    asked = "" if must is None else f"{must:g}"
    one = row_of(target, (name,))
    if one is None:
        return [f"`{name}`", asked, "", "", "", NOT_YET.rstrip(".").lower(), "", "", ""]
    row = one[1]
    training = row["recipe"]["training"]
    if target.test not in row.get("tests", {}):
        told = f"in training: {row['step']:,} of {training['updates']:,} updates, {100 * row['best']:.1f} % valid"
        return [f"`{name}`", asked, "", "", "", told, "", "", ""]
    counted = surest(row)
    shown = [*(accuracy(target, row, steps) for steps in SHOWN), reached(target, row)]
    numbers = ["" if share is None else f"{share:.2f}" for share in shown]
    beside = f", {row['beside']} at a time" if row.get("beside", 1) > 1 else ""
    minutes = f"{row['seconds'] / 60:.1f} ({row['trained']['hardware']}{beside})"
    knowledge = ", ".join(knows(row["recipe"])) or "none"
    how = ", ".join(filter(None, [f"T={counted['T']}", seen(counted)]))
    numbers[-1] = f"**{numbers[-1]}** ({how})"
    return [f"`{name}`", asked, *numbers, verdict(shown[-1], must), f"{row['parameters']:,}", minutes, knowledge]


def knows(recipe: Found) -> list[str]:
    """What a training knew beyond its puzzles and their labels."""
    augment, loss = recipe["training"]["augment"], recipe["loss"]
    symmetries = {"none": [], "geometric": ["cells moved"], "all": ["all symmetries"]}[augment]
    symmetries += ["images distorted"] if recipe["training"].get("distort") else []
    return symmetries + [f"{name} loss" for name in ("cardinality", "attention") if loss[name]]


def settings(target: Target) -> list[tuple[tuple[str, ...], float | None]]:
    """The paper's setting and the best one, where it has them."""
    return [(rows, must) for rows, must in ((target.rows, target.must), (target.best, target.must_best)) if rows]


def sudoku(*tables: str) -> str:
    """What was asked for and what there is, for some of the tables."""
    heads = ["test boards", "paper", "row", "must", "T=32", "T=64", "T chosen", "", "parameters", "minutes", "knows"]
    lines = []
    for target in (one for one in TARGETS if one.table in tables):
        paper = "" if target.paper is None else f"{target.paper:g}"
        rows = [cells(target, name, must) for names, must in settings(target) for name in names]
        lines += [[*([target.what, paper] if place == 0 else ["", ""]), *row] for place, row in enumerate(rows)]
    return table(heads, lines)


def short() -> str:
    """The paper's tables in few numbers: its own, ours at the same T, and ours as validation boards chose to look."""
    heads = ["test boards", "the paper", "its setting, T=64", "its setting", "best setting"]
    lines = []
    for target in (one for one in TARGETS if one.paper is not None):
        line = [target.what, f"{target.paper:g}"]
        for names, at in ((target.rows, "64"), (target.rows, None), (target.best, None)):
            one = tested(target, names)
            share = one and (accuracy(target, one[1], at) if at else reached(target, one[1]))
            line.append("" if share is None else f"{share:.2f}")
        lines.append(line)
    return table(heads, lines)


PAPER_CONSTRAINTS = {
    "sudoku-rrn-9k.paper": ("9k", "80.3 / 81.9"),
    "sudoku-rrn-9k-cardinality": ("9k, cardinality", "80.1 / 84.4"),
    "sudoku-rrn-9k-attention": ("9k, attention", "83.8 / 86.3"),
    "sudoku-rrn-9k-both.paper": ("9k, both", "83.3 / 87.0"),
    "sudoku-rrn-4k": ("4k", "58.0 / 62.0"),
    "sudoku-rrn-4k-counts": ("4k, cardinality", "65.4 / 69.2"),
    "sudoku-rrn-4k-4k": ("4k and 4k without labels, cardinality", "65.8 / 69.9"),
    "sudoku-rrn-semi.paper": ("4k and 8k without labels, cardinality", "70.7 / 73.3"),
    "visual-sudoku-rrn.paper": ("9k in images", "72.0 / 75.6"),
    "visual-sudoku-rrn-cardinality": ("9k in images, cardinality", "74.4 / 79.3"),
    "visual-sudoku-rrn-attention": ("9k in images, attention", "76.4 / 79.1"),
    "visual-sudoku-rrn-both.paper": ("9k in images, both", "79.9 / 83.6"),
    "visual-sudoku-rrn-4k": ("4k in images", "40.9 / 44.0"),
    "visual-sudoku-rrn-4k-counts": ("4k in images, cardinality", "47.5 / 50.4"),
    "visual-sudoku-rrn-4k-4k": ("4k in images and 4k without labels, cardinality", "57.2 / 61.0"),
    "visual-sudoku-rrn-semi.paper": ("4k in images and 8k without labels, cardinality", "60.8 / 64.4"),
}
"""The paper's two tables about constraint losses, T=32 / 64, in %, by our rows."""


def constraint_rows() -> str:
    """All rows of the paper's tables about constraint losses and few labels, at the same T."""
    rows = (maybe("table2") or {"rows": {}})["rows"]
    lines = []
    for name, (what, paper) in PAPER_CONSTRAINTS.items():
        row = rows.get(name, {})
        if "tests" not in row:
            lines.append([what, f"`{name}`", NOT_YET.rstrip(".").lower(), paper, ""])
            continue
        (test,) = row["tests"].values()
        ours = " / ".join(f"{100 * test['steps'][T]['right']:.1f}" for T in SHOWN if T in test["steps"])
        lines.append([what, f"`{name}`", ours, paper, f"{row['seconds'] / 60:.1f}"])
    return table(["puzzles, losses", "row", "ours, T=32 / 64", "the paper", "minutes"], lines)


KINDS_16X16 = ("simple", "medium", "regular-simple", "regular-medium")
WORK = (32, 64, 128, 256)
"""Blocks applied one after the other: recurrences times blocks."""


def work() -> str:
    """How far 16x16 boards get with so many blocks' work, from one side, in the paper's setting and the best one."""
    rows, lines = (maybe("table3") or {"rows": {}})["rows"], []
    for kind in KINDS_16X16:
        for name in (f"sudoku-16x16-{kind}.paper", "sudoku-16x16-singles.best"):
            test = rows.get(name, {}).get("tests", {}).get(f"sudoku-16x16-{kind}_test")
            if test is None:
                continue
            blocks = rows[name]["recipe"]["model"]["blocks"]
            shares = [test["steps"].get(str(done // blocks), {}).get("right") for done in WORK]
            told = ["" if share is None else f"{100 * share:.1f}" for share in shares]
            lines.append([kind.replace("-", " "), f"`{name}`", str(blocks), *told])
    return table(["test boards", "row", "blocks", *(f"{done} blocks" for done in WORK)], lines)


def ways() -> str:
    """Validation boards right by how models that are trained to solve in rounds look at them."""
    lines = []
    for name, row in (maybe("table3") or {"rows": {}})["rows"].items():
        if not name.endswith("-rounds.paper") or looked(row) is None:
            continue
        scores = [row, *sorted([row["looks"], *row["looks"].get("others", [])], key=lambda one: one.get("tries", 1))]
        for one in scores:
            how = ", ".join(filter(None, [f"T={one['T']}", seen(one) or "one look"]))
            lines.append([f"`{name}`" if one is row else "", how, f"{100 * valid_share(one):.1f}"])
    return table(["row", "looked at", "right"], lines)


def hardest() -> str:
    """The hardest puzzles: the model for all puzzles, and the one that is trained on such; both ship."""
    rows = (maybe("table3") or {"rows": {}})["rows"]
    ours = [("`sudoku`", maybe("hardest"), maybe("hardest"))]
    trained = rows.get("sudoku-extreme.best", {})
    ours.append(
        (
            "`sudoku-extreme`",
            trained.get("hardest"),
            trained.get("measured") and {"provenance": trained["measured"]},
        )
    )
    steps = ("64", "128", "256", "512", "1024")
    heads = ["model", "puzzles", *(f"T={T}" for T in steps), "", "with search, calls", "", "searched", "hardware"]
    lines = []
    for name, got, origin in ours:
        if not got or not origin:
            lines.append([name, NOT_YET.rstrip(".").lower(), *[""] * 10])
            continue
        within, search = got["verified_within"], got.get("search")
        cells = [name, f"{got['instances']:,}", *(f"{100 * within[T]:.1f}" if T in within else "" for T in steps)]
        cells.append(verdict(100 * max(within.values()), AIM_RECURRENCE))
        if search is None:
            cells += ["", "", ""]
        else:
            by = {calls: with_search(got, share) for calls, share in search["solved_within"].items()}
            cells += [", ".join(f"{share:.1f} ({calls})" for calls, share in by.items())]
            cells += [verdict(max(by.values()), AIM_SEARCH), f"{search['puzzles']} of {got['left_over']:,} left over"]
        lines.append([*cells, origin["provenance"]["hardware"]])
    about = (
        "Puzzles verified within T recurrences, in %: solving stops at the first verified answer, and each puzzle has "
        "one solution. With search: those of T=64, and of the others the share that was found in a sample of them, "
        "by model calls of 64 recurrences each."
    )
    return "\n".join([table(heads, lines), "", about])


def with_search(got: Found, share: float) -> float:
    """All puzzles solved, in %, if a share of those that the recurrences leave over is found by search."""
    left = got["left_over"] / got["instances"]
    return 100 * (1 - left + left * share)
