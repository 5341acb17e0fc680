"""The blocks of `report.py` about speed on a GPU; most take the content of `gpu_speed.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Asked:
    """A row of the table of what was asked for."""

    what: str
    part: str
    match: Mapping[str, Any]
    must: float
    aim: float
    naive: Mapping[str, Any] | None = None
    """Which row of the yardstick it compares with."""


ASKED = [
    Asked("training, R=32, loss on all recurrences", "training", {"mode": "paper"}, 45_000, 80_000,
          {"what": "training"}),
    Asked("the same at batch 16", "training", {"mode": "paper", "batch": 16}, 5_000, 10_000,
          {"what": "training", "batch": 16}),
    Asked("the same at batch 128", "training", {"mode": "paper", "batch": 128}, 25_000, 50_000,
          {"what": "training", "batch": 128}),
    Asked("training as in `sudoku-rrn.best`, windows of R=16", "training", {"mode": "best"}, 75_000, 140_000),
    Asked("inference, T=64", "inference", {}, 120_000, 200_000, {"what": "inference"}),
    Asked("training on images, batch 128", "training", {"mode": "visual", "batch": 128}, 9_000, 20_000),
]  # fmt: skip
MEMORY = Asked("peak memory of training, R=32, batch 2,048", "training", {"mode": "paper", "batch": 2048}, 12, 4)
LEAVING = 2.0
"""Times the throughput at fixed T that was asked for when solved puzzles leave."""


def table(heads: list[str], lines: list[list[str]]) -> str:
    """In Markdown."""
    return "\n".join(
        [
            "| " + " | ".join(heads) + " |",
            "|---" * len(heads) + "|",
            *("| " + " | ".join(line) + " |" for line in lines),
        ]
    )


def pick(rows: Rows, match: Mapping[str, Any]) -> dict[str, Any] | None:
    """The fastest of the rows that match and did not fail."""
    fit = [row for row in rows if "puzzles_per_s" in row and "fell_back" not in row]
    fit = [row for row in fit if all(row.get(key) == value for key, value in match.items())]
    return max(fit, key=lambda row: row["puzzles_per_s"], default=None)


def verdict(found: float | None, must: float, aim: float) -> str:
    """A tick, or how much is missing; with the aim below the limit, less is better."""
    if found is None:
        return "not measured yet"
    ratio, goal = (found / must, aim / must) if aim > must else (must / found, must / aim)
    if ratio >= goal:
        return "✓ and the aim"
    return "✓" if ratio >= 1 else f"{100 * (1 - ratio):.0f} % short"


def _rate(row: dict[str, Any] | None) -> str:
    return "" if row is None else f"{row['puzzles_per_s']:,.0f} (B={row['batch']:,})"


def speed(got: dict[str, Any]) -> str:
    """Everything that was asked for, in one table."""
    heads = ["puzzles a second", "naive", "compiled, one graph", "kernels", "times naive", "must reach", "aim", ""]
    lines = []
    for asked in ASKED:
        rows = got.get(asked.part, [])
        plain, ours = (pick(rows, {**asked.match, "kernels": kernels}) for kernels in (False, True))
        naive = pick(got.get("naive", []), asked.naive) if asked.naive else None
        times = f"{ours['puzzles_per_s'] / naive['puzzles_per_s']:.1f}" if ours and naive else ""
        end = verdict(ours["puzzles_per_s"] if ours else None, asked.must, asked.aim)
        best = f"**{_rate(ours)}**" if ours else "not measured yet"
        lines.append([asked.what, _rate(naive), _rate(plain), best, times, f"{asked.must:,}", f"{asked.aim:,}", end])
    lines.append(_memory(got))
    where = got["parts"]["training"]
    about = (
        f"L1H4, width 128, 81 tokens, bfloat16, random boards, one {where['hardware']}, commit `{where['commit']}`; "
        "the best batch of those measured where none is named. *Compiled*: our plain model with `torch.compile`d "
        "recurrences and the whole update in one CUDA graph."
    )
    commands = {got["parts"][part]["command"] for part in ("naive", "training", "inference") if part in got["parts"]}
    if len(commands) > 1:
        about += " These parts were measured in several runs."
    wrong = [row for part in ("training", "inference") for row in got.get(part, []) if problem_of(row)]
    said = [f"{row['mode']}, batch {row['batch']:,}, kernels {row['kernels']}: {problem_of(row)}" for row in wrong]
    return "\n".join([table(heads, lines), "", about, *(["", "Failed: " + "; ".join(said) + "."] if said else [])])


def problem_of(row: dict[str, Any]) -> str:
    """What went wrong with a measurement, if anything did."""
    return str(row.get("failed") or row.get("fell_back") or "")[:120]


def _memory(got: dict[str, Any]) -> list[str]:
    rows = [row for row in got.get("training", []) if "peak_gib" in row]
    plain = pick(rows, {**MEMORY.match, "kernels": False})
    ways = [pick(rows, {**MEMORY.match, "kernels": True, "frugal": frugal}) for frugal in (False, True)]
    found = [row for row in ways if row is not None]
    cells = [f"{row['peak_gib']:.1f} GiB at {row['puzzles_per_s']:,.0f} a second" for row in found]
    least = min((row["peak_gib"] for row in found), default=None)
    end = verdict(least, MEMORY.must, MEMORY.aim)
    beside = "" if plain is None else f"{plain['peak_gib']:.1f} GiB"
    ours = f"**{'; '.join(cells)}**" if cells else "not measured yet"
    return [MEMORY.what, "", beside, ours, "", f"{MEMORY.must} GiB", f"{MEMORY.aim} GiB", end]


def roofline(got: dict[str, Any]) -> str:
    """What the work amounts to, the floor, and how far from it we are."""
    machine = got["roofline"]
    rates = machine["operations_per_s"], machine["bytes_per_s"]
    heads = [
        "a puzzle",
        "operations",
        "of these twice",
        "bytes",
        "at most by operations",
        "at most by bytes",
        "measured",
    ]
    heads += ["of the lower"]
    lines = []
    for kind, what in (("training", "training"), ("inference", "inference, T=64")):
        for mode, row in machine[kind].items():
            operations, moved = row["operations"] / row["puzzles"], row["bytes"] / row["puzzles"]
            limits = rates[0] / operations, rates[1] / moved
            match = {"mode": mode, "kernels": True} | ({"batch": row["puzzles"]} if kind == "training" else {})
            found = pick([r for r in got.get(kind, []) if not r.get("frugal")], match)
            name = f"{what}, R={row['steps']}" if kind == "training" else what
            cells = [f"{name}, `{mode}`", f"{operations / 1e9:.2f} G"]
            cells += [f"{100 * (1 - row['needed_operations'] / row['operations']):.0f} %", f"{moved / 1e6:.1f} MB"]
            cells += [f"{limit:,.0f} a second" for limit in limits]
            cells += [_rate(found), f"**{100 * found['puzzles_per_s'] / min(limits):.0f} %**"] if found else ["", ""]
            lines.append(cells)
    paper = machine["training"]["paper"]
    about = (
        f"Measured in the same run: {rates[1] / 1e12:.2f} TB/s in a large copy (read and written) and "
        f"{rates[0] / 1e12:.0f} TFLOP/s in a large bfloat16 product: {rates[0] / rates[1]:.0f} operations a byte, "
        f"where an update makes {paper['operations'] / paper['bytes']:.0f}. Both are counted by the formulas in "
        f"`benchmarks/speed/work.py` for the kernels as they are, with states of {paper['state_bytes']} bytes a number."
    )
    return "\n".join([table(heads, lines), "", about])


def adaptive(got: dict[str, Any]) -> str:
    """Solved puzzles leave, against all recurrences for all."""
    found = got["adaptive"]
    heads = ["", "batch", "checked every", "puzzles a second", "right", "verified", "recurrences, mean"]
    names = {"fixed": f"all stay for T={found['steps']}", "leaving": "leave when verified"}
    lines = []
    for row in found["rows"]:
        cells = [names[row["kind"]], f"{row['batch']:,}", str(row["chunk"])]
        if "failed" in row:
            lines.append([*cells, row["failed"][:120], "", "", ""])
            continue
        shares = [f"{100 * row[key]:.2f} %" for key in ("right", "verified")]
        lines.append([*cells, f"{row['puzzles_per_s']:,.0f}", *shares, f"{row['mean_steps']:.1f}"])
    fixed, leaving = (pick(found["rows"], {"kind": kind}) for kind in ("fixed", "leaving"))
    end = ""
    if fixed and leaving:
        ratio = leaving["puzzles_per_s"] / fixed["puzzles_per_s"]
        equal = leaving["right"] >= fixed["right"]
        end = (
            f" The best of each: **{ratio:.1f}** times the throughput ({LEAVING:g} was asked for: "
            f"{verdict(ratio, LEAVING, 1e9)}) at {'equal or better' if equal else 'lower'} accuracy."
        )
    about = (
        f"Model `{found['model']}` on the {found['puzzles']:,} puzzles of `{found['data']}`, from inputs in the host's "
        f"memory to checked answers there, {got['parts']['adaptive']['hardware']}.{end}"
    )
    return "\n".join([table(heads, lines), "", about])


def measured(got: dict[str, Any], part: str) -> bool:
    """Whether the file has this part, and from a proper run."""
    return part in got and "failed" not in got[part] and not got.get("parts", {}).get(part, {}).get("quick", True)
