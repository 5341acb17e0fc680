"""The blocks of `report.py` about speed on a CPU; each takes the content of `cpu_speed.json`."""

from __future__ import annotations

from typing import Any

ASKED = {"fp32": (1.5, 3, 8), "int8": (2.5, 3, 8)}
"""Times faster than the naive version that were asked for: one puzzle, boards at fixed T, with early exit."""


def speed(got: dict[str, Any]) -> str:
    """Solving, as ratios to the naive version."""
    solving, products = got["solving"], "with" if got["machine"]["int8"] else "without"
    cold, early, used = solving["cold"], solving["early_exit"], got["parts"]["solving"]["cores"]
    cores = "one thread for all" if used == 1 else f"{used} threads at most for all"
    ms = {name: 1000 * row["wall"] for name, row in cold["seconds"].items()}
    lines = ["| | asked for | by the clock | by processor time |", "|---|---|---|---|"]
    what = f"one puzzle, process start to printed answer ({ms['mull']:.0f} ms; naive {ms['naive']:.0f} ms)"
    lines.append(f"| {what} | 5 | **{cold['ratio']['wall']:.2f}** | {cold['ratio']['processor']:.2f} |")
    for precision, (single, fixed, leaving) in ASKED.items():
        rows = {
            "one puzzle, warm, T=64, one thread": (solving["latency"], single),
            "boards at T=64": (solving["fixed_steps"], fixed),
            f"{early['puzzles']:,} puzzles, 64 recurrences at most": (early, leaving),
        }
        for what, (part, asked) in rows.items():
            for name in (precision, "kernel") if precision == "int8" else (precision,):
                ratio, way = part["ratio"].get(name), "int8, kernel" if name == "kernel" else name
                if ratio is not None:
                    lines.append(f"| {what}, {way} | {asked} | **{ratio['wall']:.2f}** | {ratio['processor']:.2f} |")
    alone = {name: 1000 * row["wall"] for name, row in solving["latency"]["seconds"].items()}
    naive = ", ".join(f"{name.partition(', ')[2]} {taken:.0f} ms" for name, taken in alone.items() if "naive" in name)
    about = (
        "Times faster than the naive version, which always takes 64 recurrences; the best of several rounds that took "
        f"turns, {cores} ({got['provenance']['hardware']}, {products} 8-bit dot products; puzzles of "
        f"`{solving['data']}`). With "
        f"early exit, puzzles took {early['mean_steps']['fp32']:.1f} recurrences on average, in int8 "
        f"{early['mean_steps']['int8']:.1f}; {100 * early['verified']['fp32']:.2f} and "
        f"{100 * early['verified']['int8']:.2f} % of the answers were verified. One puzzle, warm: "
        f"naive with {naive}; ours, one thread, {alone['fp32']:.0f} ms, in int8 {alone['int8']:.0f} ms. "
        f"{_busy(got, 'solving')}"
    )
    return "\n".join([*lines, "", about])


def _busy(got: dict[str, Any], part: str) -> str:
    """How much else the machine did."""
    about = got["parts"][part]
    load = f"{about['load_before']:.1f} before and {about['load_after']:.1f} after"
    return f"Measured at commit `{about['commit'][:7]}` with a load of {load} on {got['machine']['cores']} cores."


def accuracy(got: dict[str, Any]) -> str:
    """What int8 costs in accuracy, by model."""
    heads = ["model", "validation data", "instances", "T", "right, fp32", "int8", "verified, fp32", "int8", "used"]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for name, row in got["solving"]["accuracy"].items():
        shares = [f"{100 * row[kind][p]:.2f} %" for kind in ("right", "verified") for p in ("fp32", "int8")]
        if not any(row["verified"].values()):
            shares[2:] = ["no rules", ""]
        cells = [f"`{name}`", f"`{row['data']}`", f"{row['instances']:,}", str(row["steps"]), *shares]
        lines.append("| " + " | ".join([*cells, "yes" if row["allowed"] else "no"]) + " |")
    if "rounding" in got:
        lines += ["", _rounding(got["rounding"])]
    return "\n".join(lines)


def _rounding(found: dict[str, Any]) -> str:
    """What the kernel's own rounding costs."""
    counts = ", ".join(
        f"{name} {' and '.join(f'{count:,}' for count in row.values())}" for name, row in found["right"].items()
    )
    steps = " and ".join(next(iter(found["right"].values())))
    return f"Of {found['boards']:,} boards of `{found['data']}`, right after {steps} recurrences: {counts}."


def training(got: dict[str, Any]) -> str:
    """Training against the naive version."""
    found = got["training"]
    ratio, learned = found["updates"]["ratio"], found["learning"]
    lines = ["| puzzles trained a second | by the clock | by processor time |", "|---|---|---|"]
    for name, row in found["updates"]["puzzles_per_s"].items():
        lines.append(f"| {name} | {row['wall']:,.0f} | {row['processor']:,.0f} |")
    ours, naive = learned["ours"], learned["naive"]
    spent = f"{naive['seconds']:.0f} s ({naive['updates']:,} updates)"
    if naive["reached"]:
        end = f"the naive version {spent}: **{naive['seconds'] / ours['seconds']:.1f}** times as long"
    else:
        end = f"the naive version had {100 * naive['best']:.1f} % at best after {spent}"
    about = (
        f"The same model in the same recurrences: ours at its best is **{ratio['wall']:.2f}** times as fast by the "
        f"clock as the naive version at its best, and {ratio['processor']:.2f} times by processor time; 3 was asked "
        f"for. To solve {100 * learned['goal']:.0f} % of validation boards, `mull train {found['recipe']}` needed "
        f"{ours['seconds']:.0f} s of one core in its updates ({ours['updates']:,} of them); {end}. "
        f"{_busy(got, 'training')}"
    )
    return "\n".join([*lines, "", about])


def processes(got: dict[str, Any]) -> str:
    """One process and two."""
    found = got["processes"]
    one, two = (found["puzzles_per_s"][count] for count in ("1", "2"))
    return (
        f"`torchrun` with one process and with two, a thread each, {found['updates']} updates of `sudoku-4x4` in "
        f"float32: losses differ by {found['largest_difference']:.1e} of their size at most; {one:,.0f} and {two:,.0f} "
        f"puzzles a second, so two processes have {100 * found['efficiency']:.0f} % of twice the speed. "
        f"{_busy(got, 'processes')}"
    )


def generator_rates(got: dict[str, Any]) -> str:
    """Instances generated a second."""
    lines = ["| problem | instances a second of one core |", "|---|---|"]
    for name, rate in got["generators"].items():
        lines.append(f"| `{name}` | {rate:,.0f} |" if rate >= 10 else f"| `{name}` | {rate:.1f} |")
    return "\n".join(lines)
