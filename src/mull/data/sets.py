"""All data by name: external sets, the RRN training set made anew by its recipe, and generated splits.

    load("rrn_test")            a file others published
    load("rrn_train", 9000)     made from Royle's puzzles, the recipe of the RRN paper
    load("satnet-v_test")       boards of another set with an image drawn for each cell
    load("mine.csv@train")      a part of a user's file of examples
    load("sudoku-4x4_train")    generated; any problem's name with _train, _valid or _test
    load("rated+rrn_train:900") several sets of one problem, one after the other; of the second, 900 rows

Only the generated splits need numba.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from mull.constraints import IntArray
from mull.data import cache, examples
from mull.data.download import download, missing
from mull.data.generated import SPLITS, generate
from mull.data.registry import EXTERNAL, ExternalSet
from mull.data.splits import deal
from mull.data.streams import stream
from mull.data.tables import Table, read_puzzles, read_table, to_batch, write_csv
from mull.data.visual import VISUAL, VisualSet, mapping, show
from mull.errors import InvalidInput, UserError, unknown
from mull.fetch import data_folder
from mull.problem import Batch, NumpyBatch, Problem
from mull.problems import PROBLEMS
from mull.problems.sudoku import Sudoku

__all__ = ["SetInfo", "describe", "download", "load", "names", "problem_of", "read_puzzles", "write_csv"]

RRN_TRAIN = "rrn_train"
EXTRA_GIVENS = 18
"""Puzzles of `rrn_train` have 0..17 givens more than the 17 of the puzzle they are made from."""
RRN_TRAIN_ROWS = 180_000
GENERATED_ROWS = {"train": 9_000, "valid": 1_000, "test": 1_000}


@dataclass(frozen=True)
class SetInfo:
    """What `mull list data` says of a set."""

    name: str
    rows: int
    description: str
    license: str
    source: str
    here: bool
    """Whether it can be loaded without fetching anything."""


def names() -> list[str]:
    """The names that `load` knows."""
    return [*EXTERNAL, RRN_TRAIN, *VISUAL, *(f"{problem}_{split}" for problem in PROBLEMS for split in SPLITS)]


def describe() -> list[SetInfo]:
    """Every set, with what it is and where it comes from."""
    infos = [
        SetInfo(s.name, s.rows, s.description, s.license, s.source, (data_folder() / s.path).exists())
        for s in EXTERNAL.values()
    ]
    royle = EXTERNAL["royle17"]
    what = "made by the recipe of the RRN paper: puzzles with 17 givens, digits relabelled, 0 to 17 more givens"
    here = (data_folder() / royle.path).exists()
    infos.append(SetInfo(RRN_TRAIN, RRN_TRAIN_ROWS, what, royle.license, royle.source, here))
    for visual in VISUAL.values():
        source = f"{visual.boards} and MNIST" if visual.boards else "MNIST"
        infos.append(SetInfo(visual.name, visual.rows, visual.description, "CC BY-SA 3.0 (MNIST)", source, False))
    for problem in PROBLEMS:
        for split in SPLITS:
            what = f"generated {problem} instances of the {split} split, as many as asked for"
            infos.append(SetInfo(f"{problem}_{split}", GENERATED_ROWS[split], what, "", "generated", True))
    return infos


def problem_of(name: str, own: Problem | None = None) -> Problem:
    """The problem whose instances a set holds; `own` is one that is not in the list, and has splits all the same."""
    if own is not None and name in _splits_of(own):
        return own
    if name in EXTERNAL:
        return EXTERNAL[name].problem
    if name == RRN_TRAIN:
        return Sudoku(box=3)
    if name in VISUAL:
        return VISUAL[name].problem
    if examples.is_examples(name):
        return examples.problem_of(name, own)
    if parts := _parts(name):
        found, *others = (problem_of(part, own) for part, _ in parts)
        if any((other.name, other.variables()) != (found.name, found.variables()) for other in others):
            raise InvalidInput(f"{name}: these are sets of different problems")
        return found
    problem, _, split = name.rpartition("_")
    if problem not in PROBLEMS or split not in SPLITS:
        raise unknown("data set", name, names())
    return PROBLEMS[problem]()


def _parts(name: str) -> list[tuple[str, int | None]]:
    """The names of sets in `A+B:COUNT`, and how many rows of each (None: all); empty if it is no such name."""
    if "+" not in name:
        return []
    found: list[tuple[str, int | None]] = []
    for part in name.split("+"):
        one, colon, rows = part.partition(":")
        if colon and not rows.isdecimal():
            raise InvalidInput(f"{name}: the number of rows of {one} is not a number: {rows!r}")
        found.append((one, int(rows) if colon else None))
    return found


def _splits_of(own: Problem) -> list[str]:
    """The generated sets of a problem that is not in the list."""
    return [] if own.name in PROBLEMS else [f"{own.name}_{split}" for split in SPLITS]


def load(
    name: str, count: int | None = None, seed: int = 0, workers: int = 1, own: Problem | None = None
) -> NumpyBatch:
    """A set by name, or `count` rows of it; `own` is a problem that is not in the list.

    Of an external set, `count` rows are drawn at random with the seed and keep their order. Of the others they are the
    first `count` of what the seed gives, so a smaller set is part of a larger one.
    """
    problem = problem_of(name, own)
    if count is not None and count < 1:
        raise InvalidInput(f"{name}: cannot load {count} rows; ask for at least 1")
    if name == RRN_TRAIN:
        return _rrn_train(RRN_TRAIN_ROWS if count is None else count, seed)
    if name in EXTERNAL:
        batch = _external(EXTERNAL[name])
        return batch.map(np.copy) if count is None else batch[_sample(len(batch), name, count, seed)]
    if name in VISUAL:
        return _visual(VISUAL[name], count, seed)
    if examples.is_examples(name):
        batch = examples.load(name, own)
        return batch if count is None else batch[_sample(len(batch), name, count, seed)]
    if parts := _parts(name):
        batches = [load(part, rows, seed, workers, own) for part, rows in parts]
        arrays = {key: np.concatenate([b.arrays()[key] for b in batches]) for key in batches[0].arrays()}
        batch = Batch(**arrays)
        return batch if count is None else batch[_sample(len(batch), name, count, seed)]
    split = name.rpartition("_")[2]
    return _generated(problem, split, count or GENERATED_ROWS[split], seed, workers)


def _sample(rows: int, name: str, count: int, seed: int) -> IntArray:
    """Rows drawn at random, in their order."""
    if count > rows:
        raise InvalidInput(f"{name} has {rows} rows, fewer than the {count} asked for")
    return np.sort(stream(seed, "rows of", name).permutation(rows)[:count])


def _visual(visual: VisualSet, count: int | None, seed: int) -> NumpyBatch:
    """Boards in images; the images are drawn for the rows that are asked for alone, which is what takes memory."""
    if not visual.boards:
        batch = mapping(visual)
        return batch if count is None else batch[_sample(len(batch), visual.name, count, seed)]
    if visual.boards == RRN_TRAIN:
        boards = load(RRN_TRAIN, count or visual.rows, seed)
        return show(visual, boards, np.arange(len(boards)))
    boards = load(visual.boards)
    rows = np.arange(len(boards))[slice(*visual.part)]
    if count is not None or len(rows) > visual.rows:
        rows = rows[_sample(len(rows), visual.name, count or visual.rows, 0 if count is None else seed)]
    return show(visual, boards[rows], rows)


def _generated(problem: Problem, split: str, count: int, seed: int, workers: int) -> NumpyBatch:
    """Generated rows; those that took long are kept for next time."""
    if count > 1:  # one row is made faster than a file is looked for
        kept = cache.read(problem, split, seed, count)
        if kept is not None:
            return kept
    began = time.monotonic()
    batch = generate(problem, split, count, seed, workers)
    if time.monotonic() - began > cache.WORTHWHILE_SECONDS:
        cache.write(problem, split, seed, batch)
    return batch


def _external(external: ExternalSet) -> NumpyBatch:
    """The rows of a file that a set consists of; which ones they are depends on the file alone, not on a seed."""
    path = data_folder() / external.path
    if not path.exists():
        _read(external)
    about = path.stat()
    batch, parts = _file(external if not external.part else _whole(external), path, about.st_mtime_ns, about.st_size)
    return batch[parts[external.part]] if external.part else batch


def _whole(external: ExternalSet) -> ExternalSet:
    """The same for all sets that are parts of one file."""
    return next(other for other in EXTERNAL.values() if other.path == external.path)


@lru_cache(maxsize=2)
def _file(external: ExternalSet, path: Path, *state: int) -> tuple[NumpyBatch, dict[str, IntArray]]:
    """A file's rows and the parts that they are dealt into, read once: sets are often loaded in pairs."""
    batch = to_batch(_read(external), external.problem)
    if not external.parts:
        return batch, {}
    if external.in_order:
        cuts = np.cumsum([size for _, size in external.parts])[:-1]
        return batch, dict(zip(dict(external.parts), np.split(np.arange(len(batch)), cuts), strict=True))
    return batch, deal(external.problem, batch, external.parts, stream(0, "parts of", external.path))


def _read(external: ExternalSet) -> Table:
    """The rows of an external set, fetched first if it is not here and can be."""
    path = data_folder() / external.path
    if not path.exists():
        if not external.downloads:
            raise UserError(missing(external, path))
        download(external.name)
    table = read_table(path, external.sha256, external.columns, external.convert)
    rows = sum(size for _, size in external.parts) or external.rows
    if len(table.lines) != rows:
        raise UserError(f"{path}: {len(table.lines)} rows, but {external.name} comes from {rows}")
    return table


def _rrn_train(count: int, seed: int) -> NumpyBatch:
    """The recipe of the RRN paper, from puzzles that share no symmetry class with its test and validation sets.

    Row i has i % 18 extra givens, so every number of givens comes equally often in any prefix. Each kind of draw has
    its own stream, in the order of the rows: fewer rows are the first ones of more.
    """
    table = _read(EXTERNAL["royle17"])
    seeds = to_batch(table, problem_of("royle17"))[np.array(table.column("split")) == "train"]
    values = problem_of("royle17").variables().values
    parts = []
    for extra in range(EXTRA_GIVENS):
        rows = len(range(extra, count, EXTRA_GIVENS))
        drawn = seeds[stream(seed, RRN_TRAIN, "seed", extra).integers(len(seeds), size=rows)]
        rename = stream(seed, RRN_TRAIN, "digits", extra).random((rows, values)).argsort(axis=1)
        order = stream(seed, RRN_TRAIN, "givens", extra).random(drawn.given.shape)
        order[drawn.given] = -1.0  # the givens there are come first
        rank = order.argsort(axis=1).argsort(axis=1)
        given = rank < drawn.given.sum(axis=1, keepdims=True) + extra
        parts.append((given, np.take_along_axis(rename, drawn.solution, axis=1)))
    given = np.empty((count, parts[0][0].shape[1]), bool)
    solution = np.empty(given.shape, np.int64)
    for extra, (part_given, part_solution) in enumerate(parts):
        given[extra::EXTRA_GIVENS], solution[extra::EXTRA_GIVENS] = part_given, part_solution
    inputs = np.where(given, solution + 1, 0).astype(np.uint8)
    return Batch(inputs=inputs, solution=solution, given=given, labelled=np.ones_like(given))
