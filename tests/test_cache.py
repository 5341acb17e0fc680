"""Generated sets that are kept: the same rows as made anew, and never anything else."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from mull.data import cache, sets
from mull.data.generated import generate
from mull.problem import NumpyBatch
from mull.problems.sudoku import Sudoku

PROBLEM = Sudoku(box=2)
NAME = "sudoku-4x4_train"


def same(one: NumpyBatch, other: NumpyBatch) -> bool:
    ours, theirs = one.arrays(), other.arrays()
    return ours.keys() == theirs.keys() and all(
        ours[name].dtype == theirs[name].dtype and np.array_equal(ours[name], theirs[name]) for name in ours
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MULL_DATA", str(tmp_path))
    monkeypatch.setattr(cache, "WORTHWHILE_SECONDS", -1.0)
    return tmp_path


def test_kept_rows_are_those_made_anew(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = generate(PROBLEM, "train", 20)
    assert same(sets.load(NAME, 20), fresh)
    assert [path.name for path in (folder / "generated").iterdir()] == [cache.path_of(PROBLEM, "train", 0).name]
    monkeypatch.setattr(sets, "generate", None)  # nothing is made any more
    assert same(sets.load(NAME, 20), fresh)
    assert same(sets.load(NAME, 7), fresh[:7])


def test_more_rows_replace_fewer(folder: Path) -> None:
    sets.load(NAME, 5)
    assert same(sets.load(NAME, 9), generate(PROBLEM, "train", 9))
    assert cache.read(PROBLEM, "train", 0, 9) is not None and cache.read(PROBLEM, "train", 0, 10) is None


def test_every_setting_has_a_file_of_its_own() -> None:
    paths = {
        cache.path_of(problem, split, seed)
        for problem in (PROBLEM, Sudoku(box=2, givens=(5, 5)), Sudoku(box=3))
        for split in ("train", "test")
        for seed in (0, 1)
    }
    assert len(paths) == 12


@pytest.mark.parametrize("damage", ["truncated", "empty", "text", "wrong board"])
def test_a_damaged_file_is_made_again(folder: Path, damage: str) -> None:
    fresh = sets.load(NAME, 6)
    path = cache.path_of(PROBLEM, "train", 0)
    content = path.read_bytes()
    if damage == "wrong board":
        solution = fresh.solution.copy()
        solution[3, 0] = (solution[3, 0] + 1) % 4
        np.savez(path, inputs=fresh.inputs, solution=solution, given=fresh.given)
    else:
        path.write_bytes({"truncated": content[: len(content) // 2], "empty": b"", "text": b"hello"}[damage])
    assert cache.read(PROBLEM, "train", 0, 6) is None
    assert same(sets.load(NAME, 6), fresh)


def test_quick_sets_are_not_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "WORTHWHILE_SECONDS", 60.0)
    sets.load(NAME, 3)
    assert not (folder / "generated").exists()


@pytest.mark.skipif(os.name == "nt", reason="a file in the way is enough elsewhere")
def test_a_folder_that_cannot_be_written_does_not_matter(folder: Path) -> None:
    (folder / "generated").write_text("in the way")
    assert len(sets.load(NAME, 3)) == 3
