"""The blocks of `report.py` about solving files, search and hints; each takes the content of its result file."""

from __future__ import annotations

from typing import Any


def files(got: dict[str, Any]) -> str:
    """A file of puzzles through the command, with and without the exact solver, beside CP-SAT alone."""
    alone = got["cpsat"]
    lines = [
        "| | verified | right | called verified, but wrong | puzzles a second | a second of one core | of CP-SAT's "
        "rate by the clock | by processor time | peak memory |",
        "|---" * 9 + "|",
    ]
    for way in ("recurrences", "exact"):
        row = got[way]
        cells = [f"`mull solve -f FILE -o FILE{''.join(f' {word}' for word in row['options'])}`"]
        cells += [f"{row['verified']:,} of {row['answers']:,}", f"{100 * row['right'] / row['answers']:.2f} %"]
        cells += [str(row["verified_but_wrong"]), f"{row['per_s']:,.0f}", f"{row['per_core_s']:,.0f}"]
        cells += [f"{row['per_s_of_cpsat']:.2f}", f"{row['per_core_s_of_cpsat']:.2f}", f"{row['peak_mib']:.0f} MiB"]
        lines.append("| " + " | ".join(cells) + " |")
    lines.append(f"| CP-SAT, one by one | | | | {alone['per_s']:,.0f} | {alone['per_core_s']:,.0f} | 1 | 1 | |")
    told = "; ".join(f"{count} times that it {note}" for note, count in got["recurrences"]["notes"].items())
    others = "nobody knows what else they did"
    if got["others"] is not None:
        others = f"other work took {100 * max(0.0, got['others']):.0f} % of their time"
    settled = got["exact"]["methods"].get("exact", 0)
    about = (
        f"{got['puzzles']:,} puzzles of `{got['data']}`, seed {got['seed']}, {got['cores']} cores "
        f"({got['provenance']['hardware']}); {others}. CP-SAT: {alone['puzzles']:,} of the puzzles on one core, "
        "stated directly with all-different constraints; it solves them, while `--exact` also proves that each "
        f"solution is the only one. Of what is not verified, the command says: {told or 'nothing'}. With `--exact`, "
        f"CP-SAT settled {settled}. With {got['small']['puzzles']:,} puzzles the first command took "
        f"{got['small']['peak_mib']:.0f} MiB."
    )
    return "\n".join([*lines, "", about])


def recurrences(got: dict[str, Any]) -> str:
    """How many recurrences puzzles need."""
    steps, total = got["steps"], sum(got["steps"]["counts"].values())
    bounds, shares, below = (4, 6, 8, 12, 16, 24, 32, 48, 64), [], 0
    for bound in bounds:
        within = sum(count for number, count in steps["counts"].items() if int(number) <= bound)
        shares.append(f"{100 * (within - below) / total:.2f} %")
        below = within
    names = [f"{low + 1} to {high}" for low, high in zip((0, *bounds), bounds, strict=False)]
    lines = ["| recurrences | " + " | ".join(names) + " |", "|---" * (1 + len(bounds)) + "|"]
    lines.append("| puzzles | " + " | ".join(shares) + " |")
    about = (
        f"Of {total:,} verified answers; {steps['mean']:.1f} recurrences on average, the median is "
        f"{steps['within']['0.5']}, 99 % take {steps['within']['0.99']} at most."
    )
    return "\n".join([*lines, "", about])


def search(got: dict[str, Any]) -> str:
    """What search solves of the puzzles that the recurrences leave over, by model calls."""
    budgets = list(got["rows"][0]["solved_within"])
    heads = ["puzzles", "model", "solved by recurrences", "the rest by"]
    heads += [*(f"within {budget} calls" for budget in budgets), "calls, mean (median)", "time a puzzle"]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for row in got["rows"]:
        cells = [
            row["data"],
            f"`{row['model']}`",
            f"{100 * row['by_recurrence']:.1f} % of {row['tried']:,}",
            f"{row['how']}, {row['puzzles']} puzzles",
        ]
        cells += [f"{100 * row['solved_within'][budget]:.0f} %" for budget in budgets]
        cells += [f"{row['mean_calls']:.0f} ({row['median_calls']:.0f})", f"{row['seconds']:.2f} s"]
        lines.append("| " + " | ".join(cells) + " |")
    first, images = got["rows"][0], [row for row in got["rows"] if row["model"].startswith("visual")]
    wrong = sum(row["other_solutions"] for row in got["rows"] if row not in images)
    misread = sum(row["other_solutions"] for row in images)
    about = (
        f"{first['steps']} recurrences a call, {first['calls']} calls at most, "
        f"eight at a time, one thread ({got['provenance']['hardware']}). *Assumptions*: values of the variables that "
        "the model is least sure of are tried as givens. *Sides*: it looks at the puzzle again as random symmetries "
        "show it, at images turned and shifted besides, which cannot take assumptions. Calls on puzzles that stay "
        f"unsolved count, too. Answers that differ from the true solution: {wrong}, and {misread} where a digit in an "
        "image was taken for another one and the rules hold all the same. How to search was chosen on "
        "some thirty puzzles of `extreme_test` ([log](log.md)); a few of them may be among these."
    )
    return "\n".join([*lines, "", about])


def hints(got: dict[str, Any]) -> str:
    """CP-SAT with and without the model's values as hints."""
    lines = [
        "| puzzles that the recurrences leave over | hints | time | of the time without | branches | conflicts |",
        "|---" * 6 + "|",
    ]
    for row in got["rows"]:
        name = f"{row['puzzles']} of {row['data']}"
        for way, found in row["ways"].items():
            what = {"no hints": "none", "solution": "the true solution"}.get(way, way)
            if way == "most likely values":
                what += f" ({100 * row['likely_right']:.0f} % of empty cells right)"
            cells = [name, what, f"{found['ms']:.1f} ms", f"{found['ratio']:.2f}"]
            cells += [f"{found['branches']:,.0f}", f"{found['conflicts']:,.0f}"]
            lines.append("| " + " | ".join(cells) + " |")
            name = ""
    about = (
        f"Means; processor time of one thread for the first search ({got['provenance']['hardware']}), seed "
        f"{got['seed']}. *Where it is sure*: hints only for values with a probability of {got['sure']} or more."
    )
    return "\n".join([*lines, "", about])
