"""The blocks of `report.py` about rows of the Sudoku tables that miss their number, and what was tried for them."""

from __future__ import annotations

from pathlib import Path

from mull.recipes import from_dict, to_dict
from report_files import NOT_YET, maybe, result
from report_gpu import table
from report_results import Found, looked, reached, seen, settings, surest, tested, valid_share, verdict
from tables.targets import TARGETS, Target


def missing() -> list[tuple[Target, tuple[str, ...], str, float]]:
    """The rows that miss their number: all of a setting, the one that counts, and what it reaches."""
    found = []
    for target in TARGETS:
        for names, must in settings(target):
            one = tested(target, names)
            share = one and reached(target, one[1])
            if one is not None and share is not None and verdict(share, must) not in ("", "✓"):
                found.append((target, names, one[0], share))
    return found


def changes(row: Found, tried: Found) -> list[str]:
    """The settings of a variant that differ from those that the row was trained with; none if it is that training."""
    found = []
    before, after = (to_dict(from_dict(one["recipe"])) for one in (row, tried))  # newer settings have their defaults
    for part in ("train", "model", "training", "loss"):
        changed = [key for key in after[part] if after[part][key] != before[part][key]]
        prefix = "train." if part == "train" else ""
        found += [f"{prefix}{key}={after[part][key]}" for key in changed if not key.startswith("validate")]
    return found + ([f"seed={after['seed']}"] if after["seed"] != before["seed"] else [])


def validated(tried: Found) -> float:
    """Validation boards that a variant has right in one way to look: at the best T, or as far as it was trained."""
    return valid_share(tried) if "T" in tried else float(tried["best"])


def missed() -> str:
    """For every row that misses: what was tried on validation data, and the best idea left."""
    found = missing()
    if not found:
        measured = any(maybe(name) for name in ("table1", "table2", "table3"))
        return "No measured row misses its number." if measured else NOT_YET
    lines, parts = [], []
    for target, names, counted, share in found:
        content = result(target.table)
        right = valid_share(surest(content["rows"][counted]))
        lines.append([target.what, f"`{counted}`", f"{share:.2f}", f"{100 * right:.2f}", target.idea])
        for name in (name for name in names if name in content["rows"]):
            tries = {key: one for key, one in content["tried"].items() if key.split("~")[0] == name}
            variants = tried_lines(content["rows"][name], tries)
            if variants:
                differs = f"differs from `{name}`"
                parts += ["", table(["tried", differs, "valid", "updates", "minutes"], variants)]
    heads = ["test boards", "row", "reached", "valid", "best idea left"]
    return "\n".join([table(heads, lines), *parts, "", "![Learning curves of rows that miss](images/missed.png)"])


def tried_lines(row: Found, tries: dict[str, Found]) -> list[list[str]]:
    """One line for each variant of a row, the best first; the row's own training is left out."""
    lines = []
    for key, one in sorted(tries.items(), key=lambda item: -validated(surest(item[1]))):
        if not (differs := changes(row, one)):
            continue
        several = looked(one)
        besides = f" ({100 * valid_share(several):.1f}: {seen(several)})" if several else ""
        planned = "" if one["finished"] else f" of {one['recipe']['training']['updates']:,}"
        lines.append(
            [
                f"`{key.split('~')[1]}`",
                ", ".join(differs),
                f"{100 * validated(one):.1f}{besides}",
                f"{one['step']:,}{planned}",
                f"{one['seconds'] / 60:.1f}",
            ]
        )
    return lines


def draw(images: Path) -> None:
    """The learning curves of the rows that miss."""
    from mull.plots import Panel, line_panels

    panels = []
    for name, row in {name: result(target.table)["rows"][name] for target, _, name, _ in missing()}.items():
        lines = {
            kind: [(one["step"], 100 * one[key]) for one in row["curve"] if key in one]
            for kind, key in (("validation", "valid_board"), ("training", "train_board"))
        }
        panels.append(Panel(f"{name}\nboards, %", "updates", lines, percent=True))
    if panels:
        line_panels(panels, images / "missed.png")
