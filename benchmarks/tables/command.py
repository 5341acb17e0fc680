"""The command line of a table: which rows, how long, and where results and runs lie."""

from __future__ import annotations

import argparse
import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from mull.data import cache, sets
from mull.data.generated import SPLITS
from mull.errors import unknown
from mull.problems import PROBLEMS
from mull.provenance import provenance
from mull.recipes import Data, Recipe
from tables.rows import RESULTS, Row, progress, read, recipe_of, same, trained, write
from tables.sight import measure
from tables.turns import Turn


@dataclass(frozen=True)
class Options:
    """What a call of a table's script asked for."""

    device: torch.device
    runs: Path
    out: Path
    quick: bool = False
    resume: bool = False
    minutes: float | None = None
    settings: tuple[str, ...] = ()
    variant: str | None = None
    """The name of what is tried, without a look at test data."""
    measured: bool = True
    """Whether trained rows are measured and put into the file, too."""
    beside: int = 1
    """Trainings that share the device, this one included: their minutes are longer than they need alone."""


def run(row: Row, options: Options, minutes: float | None) -> None:
    """Train and measure one row, as far as the minutes go, and write it into the table's file."""
    recipe = recipe_of(row, options.quick, options.settings)
    group, name = ("tried", f"{row.name}~{options.variant}") if options.variant else ("rows", row.name)
    kept = read(options.out)[group].get(name, {})
    if options.resume and kept.get("finished") and "valid" in kept and same(kept["recipe"], recipe):
        print(f"{name}: measured before", flush=True)
        return
    known = None if options.variant or row.extra else elsewhere(name, recipe, options.out)
    if options.resume and known is not None:
        keep_row(options, group, name, known)
        print(f"{name}: measured for another table", flush=True)
        return
    folder = options.runs / name
    limited = replace(recipe, training=replace(recipe.training, minutes=minutes))
    with Turn(options.runs / "turn.lock") as turn:
        finished = trained(limited, folder, options.device, options.resume, turn)
    if not options.measured:
        print(f"{name}: trained{'' if finished else ' in part'}, to be measured with --resume", flush=True)
        return
    if finished:
        test, resume = not options.variant, options.resume
        found = measure(row, recipe, folder, options.device, options.quick, test=test, resume=resume)
    else:
        found = progress(recipe, folder)
    shared = {"beside": options.beside} if options.beside > 1 else {}
    keep_row(options, group, name, {"settings": [*row.settings, *options.settings], **shared, **found})
    told = f"T={found['T']} {found['valid']['right']}" if "T" in found else f"at update {found['step']}, to be resumed"
    print(f"{name}: {told}, best {found['best']:.4f}, {found['seconds']:.0f} s", flush=True)


def keep_row(options: Options, group: str, name: str, row: dict[str, Any]) -> None:
    """Put a row into the table's file; others may have been written since."""
    with locked(options.out):
        content = read(options.out)
        content[group][name] = row
        write(options.out, {**content, "provenance": provenance(str(options.device))})


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """No other process that asks for the same changes a file meanwhile."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def elsewhere(name: str, recipe: Recipe, out: Path) -> dict[str, Any] | None:
    """The same row as it was measured for another table, if it was: test boards are looked at once."""
    for path in sorted(out.parent.glob("table*.json")):
        row: dict[str, Any] = read(path)["rows"].get(name, {})
        if path != out and "tests" in row and same(row["recipe"], recipe):
            return row
    return None


def main(rows: Sequence[Row], table: str, about: str, argv: Sequence[str] | None = None) -> None:
    """Read the arguments, then train, measure and write row by row."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="rows, with commas between them")
    parser.add_argument("--list", action="store_true", help="only name the rows")
    parser.add_argument("--resume", action="store_true", help="go on with trainings; what is measured is left alone")
    parser.add_argument("--minutes", type=float, help="most minutes of training for a row in this call")
    parser.add_argument("--total", type=float, help="minutes after which no training goes on")
    parser.add_argument("--train", action="store_true", help="only train; without it, --resume measures")
    parser.add_argument("--quick", action="store_true", help="4x4 boards and seconds, to see that it runs")
    parser.add_argument("--prepare", action="store_true", help="only fetch or generate the data, which may need numba")
    parser.add_argument("--set", dest="settings", action="append", default=[], help="key=value, with --try")
    parser.add_argument("--try", dest="variant", help="a name for these settings: validated, never tested")
    parser.add_argument("--beside", type=int, default=1, help="trainings that share the device, for the record")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--runs", type=Path, default=Path("runs/tables"))
    parser.add_argument("--out", type=Path, default=RESULTS / f"{table}.json")
    arguments = parser.parse_args(argv)
    if arguments.settings and not arguments.variant:
        parser.error("--set changes a row: give the variant a name with --try")
    by_name = {row.name: row for row in rows}
    names = arguments.only.split(",") if arguments.only else list(by_name)
    for name in names:
        if name not in by_name:
            parser.error(str(unknown("row", name, by_name)))
    if arguments.list:
        print("\n".join(names))
        return
    options = Options(
        device=torch.device(arguments.device),
        runs=arguments.runs,
        out=arguments.out,
        quick=arguments.quick,
        resume=arguments.resume,
        minutes=arguments.minutes,
        settings=tuple(arguments.settings),
        variant=arguments.variant,
        measured=not arguments.train,
        beside=arguments.beside,
    )
    began = time.monotonic()
    for name in names:
        left = None if arguments.total is None else arguments.total - (time.monotonic() - began) / 60
        if left is not None and left <= 0:
            print(f"{name}: no time left", flush=True)
        elif arguments.prepare:
            prepare(by_name[name], recipe_of(by_name[name], options.quick, options.settings), options.quick)
        else:
            limits = [limit for limit in (options.minutes, left) if limit is not None]
            run(by_name[name], options, min(limits) if limits else None)


def prepare(row: Row, recipe: Recipe, quick: bool) -> None:
    """Have a row's data at hand; generated boards are kept, so that they can be read where no generator runs."""
    for data in (recipe.train, recipe.valid, recipe.test, *(() if quick else row.tests)):
        count = keep(data, recipe.seed) if is_generated(data.name) else len(data.load(recipe.seed))
        print(f"{row.name}: {data.name}, {count:,} rows", flush=True)


def is_generated(name: str) -> bool:
    """Whether a set is made by a problem's generator."""
    problem, _, split = name.rpartition("_")
    return problem in PROBLEMS and split in SPLITS and name not in sets.VISUAL


def keep(data: Data, seed: int) -> int:
    """Generate a set unless it is kept already, and keep it."""
    problem, split = sets.problem_of(data.name), data.name.rpartition("_")[2]
    batch = sets.load(data.name, data.count, seed, workers=os.cpu_count() or 1)
    if cache.read(problem, split, seed, len(batch)) is None:
        cache.write(problem, split, seed, batch)
    return len(batch)
