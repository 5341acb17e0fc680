"""The external sets: what each is, where it comes from, and the checksum of its content.

A file lies under `$MULL_DATA` (default `~/.cache/mull`) as CSV with the columns `puzzle` and `solution`, compressed.
Where its home on the internet can be converted to exactly this content, `downloads` says how (the checksum decides).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mull.data import sp4
from mull.problem import Problem
from mull.problems.nonogram import Nonogram
from mull.problems.sudoku import Sudoku


@dataclass(frozen=True)
class Download:
    """A public address, and the name of the conversion (in `mull.data.download`) that turns it into our file."""

    url: str
    conversion: str
    member: str = ""
    """For archives: the file inside; for SATNet: which rows."""


@dataclass(frozen=True)
class ExternalSet:
    """One set that others published."""

    name: str
    path: str
    """Where the file lies, relative to the data folder."""
    sha256: str
    """Of the decompressed content."""
    rows: int
    problem: Problem
    description: str
    license: str
    source: str
    """The public home of the puzzles."""
    downloads: tuple[Download, ...] = ()
    """Tried in this order; empty if our file was derived in a way that no code here repeats."""
    columns: tuple[str, ...] = ()
    """Names of the columns, where the file has no first line that says them."""
    part: str = ""
    """Which of the `parts` of the file this set is; empty if it is the whole file."""
    parts: tuple[tuple[str, int], ...] = ()
    """Parts that the rows of the file are dealt into, and their sizes; no symmetry class is in two of them."""
    in_order: bool = False
    """The parts are the first rows, the next ones and so on; symmetric puzzles may then be in two of them."""
    convert: Callable[[bytes], bytes] | None = None
    """Makes CSV of the file's content, where that is in the format of its home."""


RRN_ZIP = "https://www.dropbox.com/s/rp3hbjs91xiqdgc/sudoku-hard.zip?dl=1"
SATNET_ZIP = "https://powei.tw/sudoku.zip"
RAW = "https://raw.githubusercontent.com"
CFN_LEARN = f"{RAW}/toulbar2/CFN-learn/48e1238a2e410d98a8f7679d0cb4c08af4402177/Sudoku"
RECURRENT_TRANSFORMER = f"{RAW}/azreasoners/recurrent_transformer/51ebe3b8c69c705ad686e6af84992f28eb9f980e"
NONOGRAM_7 = f"{RECURRENT_TRANSFORMER}/data/nonogram/nonograms_7.csv"
SP4_DATA = f"{RAW}/UCLA-StarAI/Semantic-Loss/82326051acc3f634358f32011977b62f794680fa/complex_constraints/test.data"
UNSTATED = "none stated at the source"

SETS = (
    ExternalSet(
        name="rrn_test",
        path="sudoku9/rrn_test.csv.gz",
        sha256="6aef098da9a3481cfd944e3002b380c59855665f22f5cf50a8d599a3f0eb9db4",
        rows=18_000,
        problem=Sudoku(box=3),
        description="test set of the RRN paper, 1,000 puzzles for each number of givens from 17 to 34",
        license=UNSTATED,
        source="https://github.com/rasmusbergpalm/recurrent-relational-networks",
        downloads=(
            Download(
                f"{RAW}/azreasoners/cl-ste/4f002c6527b7581a96824feb04353a6149248ef2/data/palm_sudoku/test.csv", "plain"
            ),
            Download(RRN_ZIP, "zip", "sudoku-hard/test.csv"),
        ),
    ),
    ExternalSet(
        name="rrn_valid",
        path="sudoku9/rrn_valid.csv.gz",
        sha256="b5b8d68038244f255293172c777c347fa86068a010c0a8ee1f57e10beb912606",
        rows=18_000,
        problem=Sudoku(box=3),
        description="validation set of the RRN paper, 1,000 puzzles for each number of givens from 17 to 34",
        license=UNSTATED,
        source="https://github.com/rasmusbergpalm/recurrent-relational-networks",
        downloads=(
            Download(f"{CFN_LEARN}/validation-set/rrn-validation.csv.xz", "xz"),
            Download(RRN_ZIP, "zip", "sudoku-hard/valid.csv"),
        ),
    ),
    ExternalSet(
        name="royle17",
        path="sudoku9/royle17.csv.gz",
        sha256="4b7be46d2ddb27deef0724b26298dc69af27f781a129006e2406578ec48df41f",
        rows=49_151,
        problem=Sudoku(box=3),
        description="Gordon Royle's puzzles with 17 givens; its train part shares no class with rrn_test or rrn_valid",
        license=UNSTATED,
        source="http://staffhome.ecm.uwa.edu.au/~00013890/sudokumin.php",
        downloads=(Download("http://staffhome.ecm.uwa.edu.au/~00013890/sudoku17", "royle"),),
    ),
    ExternalSet(
        name="satnet_train",
        path="sudoku9/satnet_train.csv.gz",
        sha256="8c1e964e52bedfaace44280e52e9ee6d6081b69acde94cd2df93fa17ca21beb2",
        rows=9_000,
        problem=Sudoku(box=3),
        description="training boards of the SATNet paper, 31 to 42 givens",
        license="MIT",
        source="https://github.com/locuslab/SATNet",
        downloads=(Download(SATNET_ZIP, "satnet", "0:9000"),),
    ),
    ExternalSet(
        name="satnet_test",
        path="sudoku9/satnet_test.csv.gz",
        sha256="0ef41210a88162ef6e922c7b41647ae08f60bbf1927fa6061941c404fe41e25f",
        rows=1_000,
        problem=Sudoku(box=3),
        description="test boards of the SATNet paper, 31 to 42 givens",
        license="MIT",
        source="https://github.com/locuslab/SATNet",
        downloads=(
            Download(f"{CFN_LEARN}/test-sets/satnet-test.csv.xz", "xz"),
            Download(SATNET_ZIP, "satnet", "9000:10000"),
        ),
    ),
    *(
        ExternalSet(
            name=f"extreme_{part}",
            path="sudoku9/extreme_train.csv.gz",
            sha256="4ed6e0b6f36f7130a6303aaf5989e894fd2d51dcca8c45dbea88f93ff12efcb3",
            rows=rows,
            problem=Sudoku(box=3),
            description=what,
            license="BSD-2-Clause",
            source="https://github.com/t-dillon/tdoku (data.zip, forum_hardest_1905_11+)",
            part=part,
            parts=(("train", 39_766), ("valid", 1_000)),
            in_order=True,
        )
        for part, rows, what in (
            ("train", 39_766, "from the forum's list of the hardest puzzles (Sudoku Explainer rating 11 and more)"),
            ("valid", 1_000, "as extreme_train, to choose models by"),
        )
    ),
    ExternalSet(
        name="extreme_test",
        path="sudoku9/extreme_test.csv.gz",
        sha256="44056e54713a07e0d6698f943b393653b0c5f84b799232731acf85cffeae69d4",
        rows=4_000,
        problem=Sudoku(box=3),
        description="as extreme_train, and disjoint from it and extreme_valid up to all symmetries",
        license="BSD-2-Clause",
        source="https://github.com/t-dillon/tdoku (data.zip, forum_hardest_1905_11+)",
    ),
    ExternalSet(
        name="rated",
        path="sudoku9/rated.csv.gz",
        sha256="0b079b11c8fc736ddd64d4dd221ab048a8df5a8d33aa25c7b9e3d2981b4b741d",
        rows=60_000,
        problem=Sudoku(box=3),
        description="minimal puzzles with Sudoku Explainer rating 7 and more; for training only",
        license="GPL-3.0",
        source="https://github.com/denis-berthier/Controlled-bias_Sudoku_generator_and_collection",
    ),
    *(
        ExternalSet(
            name=f"sudoku16-{level}",
            path=f"sudoku16/{level}.csv.gz",
            sha256=sha256,
            rows=rows,
            problem=Sudoku(box=4),
            description=f"16x16 puzzles of the level {level!r}, in the words of Simon Tatham's generator",
            license="MIT",
            source="https://www.chiark.greenend.org.uk/~sgtatham/puzzles/ (the puzzle Solo)",
        )
        for level, rows, sha256 in (
            ("basic", 6_000, "7680f91437efbf59fcee7d0e98a4977405492f24bf55c96d54cd569d566d01a1"),
            ("intermediate", 1_072, "b03cd10b4af5b6a287c9fd2aadcca4fed5c303c4190492dfc65c7f8657c46515"),
            ("advanced", 156, "5d14a196d9f79877ac9d8b1a11e9061ad6c6365daa62d68d724e366a8f6310b4"),
        )
    ),
    *(
        ExternalSet(
            name=f"nonogram7_{part}",
            path="nonogram/nonograms_7.csv.gz",
            sha256="b1faff0af9fbddbacb6c77cbd069d3762e3f697c95e43d5e0f07635c41c588c1",
            rows=rows,
            problem=Nonogram(side=7),
            description=f"{part} part of the paper's 7x7 nonograms; {note}",
            license="MIT",
            source="https://github.com/azreasoners/recurrent_transformer",
            downloads=(Download(NONOGRAM_7, "unchanged"),),
            columns=("puzzle", "solution"),
            part=part,
            parts=(("train", 8_500), ("valid", 500), ("test", 1_000)),
        )
        for part, rows, note in (
            ("train", 8_500, "with the 500 for validation, the paper's 9,000"),
            ("valid", 500, "taken from the paper's 9,000 for training"),
            ("test", 1_000, "as many as in the paper, but our draw"),
        )
    ),
    *(
        ExternalSet(
            name=f"nonogram15_{part}",
            path="nonogram/nonograms_15.csv.gz",
            sha256="de213835072f1177fd45772063aa2600d1181b5433960673686758f1cd1d0418",
            rows=rows,
            problem=Nonogram(side=15),
            description=f"{part} part of 15x15 nonograms from the generator that the paper names",
            license="MIT",
            source="https://www.chiark.greenend.org.uk/~sgtatham/puzzles/ (the puzzle Pattern)",
            columns=("puzzle", "solution"),
            part=part,
            parts=(("train", 18_000), ("valid", 1_000), ("test", 1_000)),
        )
        for part, rows in (("train", 18_000), ("valid", 1_000), ("test", 1_000))
    ),
    *(
        ExternalSet(
            name=f"sp4_{part}",
            path="shortest_path/sp4_1610.data.gz",
            sha256="d973484deb511634db6058c03661ebb9d23f52cf8d383c3554bd73f53372b360",
            rows=rows,
            problem=sp4.PROBLEM,
            description=f"{part} part of SP4: shortest paths in 4x4 grids without 8 of their 24 edges; our draw",
            license=UNSTATED,
            source="https://github.com/UCLA-StarAI/Semantic-Loss",
            downloads=(Download(SP4_DATA, "unchanged"),),
            part=part,
            parts=(("train", 966), ("valid", 322), ("test", 322)),
            convert=sp4.to_csv,
        )
        for part, rows in (("train", 966), ("valid", 322), ("test", 322))
    ),
)
EXTERNAL = {external.name: external for external in SETS}
"""External sets by name."""
