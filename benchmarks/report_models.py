"""The blocks of `report.py` about models and trainings: what each scores, and how it was trained."""

from __future__ import annotations

import json
from typing import Any

from mull.hub import SUFFIX, WEIGHTS, read_card
from report_files import RESULTS, result

PAPER_RRN = {"64": (99.5, 96.7)}
"""Table 1 of the paper, L1R32H4 trained on 180k RRN puzzles: all test boards, and those with 17 givens."""

PAPER = {
    "sudoku.rrn_test": "99.5",
    "sudoku-extreme.extreme_test": "",
    "sudoku-extreme.rrn_test": "99.5 (trained on RRN)",
    "sudoku-16x16.simple_test": "99.9 (other boards)",
    "sudoku-16x16.medium_test": "99.9 (other boards)",
    "visual-sudoku.rrn-v_test": "74.8 (9k puzzles), 89.5 (180k)",
    "visual-sudoku.satnet-v_test": "93.5 (trained on SATNet-V)",
    "visual-sudoku-satnet.satnet-v_test": "93.5",
    "nonogram.nonogram7_test": "97.5",
    "nonogram-15.nonogram15_test": "78.3 (other puzzles)",
    "shortest-path.sp4_test": "83.5; 91.0 with its constraint loss",
    "mnist-mapping.mnist_test": "99",
}
"""Right answers in %, of the paper's models of the same kind, by our result file."""

PAPER_CONSTRAINTS = {
    "none": "80.3 / 81.9",
    "cardinality": "80.1 / 84.4",
    "attention": "83.8 / 86.3",
    "both": "83.3 / 87.0",
}
"""The paper's accuracies on 9k RRN puzzles at T=32 and 64, by constraint losses."""

CONSTRAINT_LOSSES = ("cardinality", "attention", "path", "clste")


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


def knowledge(recipe: dict[str, Any]) -> str:
    """Which labels a training had, and which losses on constraints."""
    labels = {"all": "all", "unknown": "not of givens", "given": "of givens alone"}[
        recipe["train"].get("labels", "all")
    ]
    weights = [f"{name} {recipe['loss'][name]:g}" for name in CONSTRAINT_LOSSES if recipe["loss"].get(name)]
    return ", ".join([labels, *weights])


def trainings() -> str:
    """Every training with a result file: setting, time and validation accuracy."""
    lines = [
        "| file | recipe | updates | batch | labels | symmetries | embedding std | best on validation | at update "
        "| minutes |",
        "|---" * 10 + "|",
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
            knowledge(recipe),
            recipe["training"]["augment"],
            "paper's" if std is None else str(std),
            f"{100 * best['valid_board']:.2f} %",
            f"{best['step']:,.0f}",
            f"{run['rows'][-1]['seconds'] / 60:.1f} ({run['provenance']['hardware']})",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def chosen_steps(ours: dict[str, Any]) -> str:
    """The recurrences that a model's card says, or its recipe if it does not ship: chosen on validation data.

    Where a set was measured with fewer alone, the most of them.
    """
    card = WEIGHTS / f"{ours['model']}{SUFFIX}"
    if card.exists():
        steps = str(read_card(card).steps)
        return steps if steps in ours["steps"] else max(ours["steps"], key=int)
    return str(result(f"{ours['trained']['recipe']}.train")["recipe"]["training"]["validate_steps"])


def models() -> str:
    """What each model scores on its test sets, beside the paper."""
    lines = [
        "| model | test set | instances | T | right, % | the paper, % | parameters | recipe | symmetries | training |",
        "|---" * 10 + "|",
    ]
    for name, paper in PAPER.items():
        ours = result(name)
        steps, trained = chosen_steps(ours), ours["trained"]
        run = result(f"{trained['recipe']}.train")
        right = 100 * ours["steps"][steps]["right"]
        spent = f"{run['rows'][-1]['seconds'] / 60:.1f} min, {trained['hardware']}"
        cells = [ours["model"], f"`{ours['data']}`", f"{ours['instances']:,}", steps, f"**{right:.2f}**", paper]
        cells += [f"{ours['parameters']:,}", f"`{trained['recipe']}`", trained["augment"], spent]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def visual() -> str:
    """The paper's accuracies for boards of images."""
    names = ("whole_board", "solution_board", "whole_cell", "solution_cell", "givens_cell")
    lines = ["| model | test set | " + " | ".join(n.replace("_", " ") for n in names) + " |", "|---" * 7 + "|"]
    for name in ("visual-sudoku-satnet.satnet-v_test", "visual-sudoku.satnet-v_test", "visual-sudoku.rrn-v_test"):
        ours = result(name)
        row = ours["steps"][chosen_steps(ours)]
        cells = [f"ours, `{ours['trained']['recipe']}`", f"`{ours['data']}`", *(f"{100 * row[n]:.2f}" for n in names)]
        lines.append("| " + " | ".join(cells) + " |")
    lines.append("| paper, L1R32H4-V | SATNet-V (9k/1k) | 93.5 | 93.7 | 99.55 | 99.37 | 99.77 |")
    lines.append("| paper, L1R32H4-V | RRN-V (9k/1k) | 74.8 | 75.5 | 94.66 | 92.49 | 99.36 |")
    lines.append("| paper, L1R32H8-V | RRN-V (180k/18k) | 89.52 | 89.56 | 97.50 | 96.64 | 99.36 |")
    return "\n".join(lines)


def constraints() -> str:
    """The effect of constraint losses on 9k puzzles, when they start late and when they start at once."""
    late, at_once = result("constraints"), result("constraints-from-the-start")
    lines = [
        "| constraint losses | T=32 | T=64 | 17 givens, T=64 | best on validation, at update | seconds | 5,000 "
        "updates, the paper's weights from the first one on: T=64 | the paper, T=32 / 64 |",
        "|---" * 8 + "|",
    ]
    for name, row in late["rows"].items():
        other = at_once["rows"].get(name if "binarised" not in name else name.split(",")[0])
        other = None if name in ("cardinality", "both") else other  # those were binarised
        cells = [name, *(f"{100 * row['right'][steps]:.1f} %" for steps in ("32", "64"))]
        cells += [
            f"{100 * row['fewest_givens']['64']:.1f} %",
            f"{100 * row['valid_board']:.1f} %, {row['update']:,.0f}",
        ]
        cells += [f"{row['seconds']:.0f}", f"{100 * other['right']['64']:.1f} %" if other else ""]
        lines.append("| " + " | ".join([*cells, PAPER_CONSTRAINTS.get(name, "")]) + " |")
    about = (
        f"{next(iter(late['rows'].values()))['instances']:,} RRN test boards, one seed, "
        f"{late['provenance']['hardware']}. Settings of each row are in the result file."
    )
    return "\n".join([*lines, "", about])


def no_labels() -> str:
    """Trainings without solutions: what the constraints alone teach."""
    lines = [
        "| recipe | estimator | updates | validation boards right, best | at the end | minutes |",
        "|---" * 6 + "|",
    ]
    for path in sorted(RESULTS.glob("*.no-labels*.train.json")):
        run = json.loads(path.read_text())
        recipe, rows = run["recipe"], [row for row in run["rows"] if "valid_board" in row]
        best, last = max(row["valid_board"] for row in rows), rows[-1]
        cells = [f"`{recipe['name']}` (`{path.name}`)", recipe["loss"]["estimator"], f"{last['step']:,.0f}"]
        cells += [f"{100 * best:.1f} %", f"{100 * last['valid_board']:.1f} %", f"{last['seconds'] / 60:.1f}"]
        lines.append("| " + " | ".join(cells) + f" ({run['provenance']['hardware']}) |")
    return "\n".join(lines)


def binairo() -> str:
    """From the rules of Binairo in CPMpy to a model: how long, and how good on boards it never saw."""
    ours, run = result("binairo-6x6.test"), result("binairo-6x6.train")
    steps = str(run["recipe"]["training"]["validate_steps"])
    return (
        f"`{run['provenance']['command']}` took {run['rows'][-1]['seconds'] / 60:.0f} minutes "
        f"({run['provenance']['hardware']}); the model ({ours['parameters']:,} parameters) solves "
        f"**{100 * ours['steps'][steps]['right']:.1f} %** of {ours['instances']:,} puzzles at T={steps}, whose solved "
        "boards are none of those that it was trained on."
    )


def starts() -> str:
    """What several starts are worth where inputs cannot state values, and nothing is symmetric."""
    plain, several = result("nonogram-15.nonogram15_test"), result("nonogram-15.nonogram15_test.looks")
    (steps,) = several["steps"]
    once, more = (100 * found["steps"][steps]["right"] for found in (plain, several))
    return (
        f"Of {several['instances']:,} test puzzles `nonogram-15` has {once:.1f} % right at T={steps}, and {more:.1f} % "
        f"if each is started {several['starts']} times, with noise but once, and the surest answer counts."
    )


def fit() -> str:
    """How many examples `mull fit` needs, without any rule."""
    got = result("fit")
    ours = got["sizes"]["200"]["mull fit"]
    looks = {"right": "one look"} | {name: name for name in ours if "starts" in name or "rounds" in name}
    ways = {"mull fit": "`mull fit`", "givens": "givens carried on", "AdamW": "AdamW, as before"}
    lines = [f"| examples in the file | to train on | | {' | '.join(looks.values())} |"]
    lines += ["|---" * (len(looks) + 3) + "|"]
    for size, row in sorted(got["sizes"].items(), key=lambda one: int(one[0])):
        first = f"{int(size):,}", f"{row['examples']['train']:,}"
        for way in (way for way in ways if way in row):
            found = [row[way].get(name) for name in looks]
            shares = ["" if share is None else f"{100 * share:.1f} %" for share in found]
            lines.append(f"| {' | '.join([*first, ways[way], *shares])} |")
            first = "", ""
    asked = max(row["mull fit"]["instances"] for row in got["sizes"].values())
    about = f"Whole boards right, of {asked:,} in none of the files; one seed ({got['provenance']['hardware']})."
    return "\n".join([*lines, "", about])


def fit_short() -> str:
    """The same in a sentence, for the README."""
    row = result("fit")["sizes"]["400"]["mull fit"]
    return (
        f"From a file of 400 solved 9x9 boards (31 to 42 givens) and no rule at all, `mull fit` makes a model that "
        f"solves {100 * row['right']:.1f} % of other boards ([docs/own_problem.md](docs/own_problem.md))."
    )
