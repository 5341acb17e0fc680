"""Sets by name: files with checksums, downloads, the RRN recipe, and generated splits that never overlap."""

from __future__ import annotations

import gzip
import hashlib
import io
import lzma
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
import torch

from mull.data import sets
from mull.data.download import download
from mull.data.generated import SPLITS, generate, split_of
from mull.data.registry import EXTERNAL, Download, ExternalSet
from mull.data.streams import stream
from mull.errors import CorruptFile, InvalidInput, UserError
from mull.fetch import data_folder
from mull.problem import NumpyBatch
from mull.problems import PROBLEMS
from mull.problems.sudoku import Sudoku

SOLVED = "1234341221434321"
ROWS = f"1234000000000021,{SOLVED}\n1030341200404300,{SOLVED}\n"
CONTENT = f"puzzle,solution\n{ROWS}"


def same(a: NumpyBatch, b: NumpyBatch) -> bool:
    ours, theirs = a.arrays(), b.arrays()
    return ours.keys() == theirs.keys() and all((ours[name] == theirs[name]).all() for name in ours)


def classes(batch: NumpyBatch, box: int = 3) -> set[bytes]:
    from mull.problems import sudoku_search

    return {key.tobytes() for key in sudoku_search.canonical_many(box, batch.inputs, batch.solution)}


def one_line(error: pytest.ExceptionInfo[Exception]) -> str:
    assert "\n" not in str(error.value)
    return str(error.value)


# --- streams and generated splits


def test_streams_depend_on_the_whole_name_and_nothing_else() -> None:
    assert stream(1, "a", 2).integers(2**62) == stream(1, "a", 2).integers(2**62)
    others = [stream(1, "a", 2), stream(2, "a", 2), stream(1, "a", 3), stream(1, "a2"), stream(1, "a", "2"), stream(1)]
    assert len({int(rng.integers(2**62)) for rng in others}) == len(others)


@pytest.mark.parametrize(("name", "count"), [("sudoku-4x4", 300), ("sudoku", 40), ("sudoku-16x16", 4)])
def test_splits_share_no_symmetry_class(name: str, count: int) -> None:
    problem = PROBLEMS[name]()
    assert isinstance(problem, Sudoku)
    found = {}
    for split in SPLITS:
        batch = sets.load(f"{name}_{split}", count)
        assert len(batch) == count and problem.check(batch.inputs, batch.solution).all()
        found[split] = classes(batch, problem.box)
        assert {split_of(key) for key in found[split]} == {split}
    assert not found["train"] & found["valid"] and not found["train"] & found["test"]
    assert not found["valid"] & found["test"]


def test_workers_and_counts_do_not_change_the_data() -> None:
    problem = Sudoku(box=2)
    problem.check(np.zeros((1, 16)), np.zeros((1, 16), int))  # caches what cannot be sent to a process
    alone, together = (generate(problem, "valid", 30, seed=5, workers=workers) for workers in (1, 2))
    assert same(alone, together)
    assert same(generate(problem, "valid", 10, seed=5), alone[:10])
    assert not same(generate(problem, "valid", 30, seed=6), alone)


@pytest.mark.parametrize(("split", "count", "message"), [("trian", 1, "'train'"), ("train", 0, "at least 1 row")])
def test_generate_refuses_nonsense(split: str, count: int, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        generate(Sudoku(), split, count)


# --- external files


@pytest.mark.parametrize("external", EXTERNAL.values(), ids=list(EXTERNAL))
def test_external_sets_are_what_the_registry_says(external: ExternalSet, external_data: Path) -> None:
    if not (external_data / external.path).exists():
        pytest.skip(f"{external.path} is not here")
    batch = sets.load(external.name)
    assert len(batch) == external.rows and batch.labelled.all()
    part = sets.load(external.name, 100, seed=1)
    assert len(part) == 100 and external.problem.check(part.inputs, part.solution).all()
    assert same(part, sets.load(external.name, 100, seed=1))
    assert not same(part, sets.load(external.name, 100, seed=2))


def test_rrn_sets_have_a_thousand_puzzles_for_each_number_of_givens(external_data: Path) -> None:
    for name in ("rrn_test", "rrn_valid"):
        givens, rows = np.unique(sets.load(name).given.sum(axis=1), return_counts=True)
        assert givens.tolist() == list(range(17, 35)) and (rows == 1000).all()


def test_rrn_train_follows_its_recipe(external_data: Path) -> None:
    batch = sets.load("rrn_train", 9000)
    givens, rows = np.unique(batch.given.sum(axis=1), return_counts=True)
    assert givens.tolist() == list(range(17, 35)) and (rows == 500).all()
    assert Sudoku().check(batch.inputs, batch.solution).all()
    assert same(sets.load("rrn_train", 100), batch[:100])
    assert not same(sets.load("rrn_train", 100, seed=1), batch[:100])
    seventeen = batch[batch.given.sum(axis=1) == 17]
    assert (seventeen.inputs[0] > 0).sum() == 17
    first_givens = [row[row > 0][0] for row in batch.inputs]
    assert np.bincount(first_givens, minlength=10)[1:].min() > 800  # digits are relabelled: none is favoured


def test_training_puzzles_share_no_class_with_test_or_valid_on_a_sample(external_data: Path) -> None:
    train = classes(sets.load("rrn_train", 1000))
    assert not train & (classes(sets.load("rrn_test", 3000)) | classes(sets.load("rrn_valid", 3000)))


@pytest.mark.slow
def test_no_class_is_in_training_and_test_data(external_data: Path) -> None:
    from mull.data.tables import read_table

    test, valid = classes(sets.load("rrn_test")), classes(sets.load("rrn_valid"))
    assert len(test & valid) == 28  # a flaw of the official sets
    royle = sets.load("royle17")
    splits = np.array(read_table(data_folder() / EXTERNAL["royle17"].path).column("split"))
    assert not classes(royle[splits == "train"]) & (test | valid)
    assert classes(royle[splits == "test"]) <= test and classes(royle[splits == "valid"]) <= valid
    extreme = classes(sets.load("extreme_test"))
    for name in ("extreme_train", "extreme_valid", "rated", "rrn_train"):  # what `sudoku-extreme.best` learns from
        assert not classes(sets.load(name)) & extreme


def test_external_sets_need_neither_numba_nor_torch(external_data: Path) -> None:
    code = "import sys; from mull.data import sets; sets.load('rrn_train', 50); sets.load('rrn_test', 5); "
    code += "assert not {'numba', 'torch'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, env={**_environment(), "MULL_DATA": str(external_data)})


def _environment() -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": str(Path(sets.__file__).resolve().parents[2])}


# --- names


def test_every_name_has_a_problem_and_a_description() -> None:
    assert [info.name for info in sets.describe()] == sets.names()
    for info in sets.describe():
        assert sets.problem_of(info.name).variables().count > 0
        assert info.rows > 0 and info.description and "\n" not in info.description and info.source


@pytest.mark.parametrize(
    ("name", "count", "message"),
    [("rrn_tset", None, "did you mean 'rrn_test'"), ("sudoku", 5, "no data set"), ("sudoku_train", 0, "at least 1")],
)
def test_unknown_names_and_counts_are_refused(name: str, count: int | None, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        sets.load(name, count)


# --- the data folder, and downloads from a server of our own


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ExternalSet:
    """A small external set in an empty data folder."""
    monkeypatch.setenv("MULL_DATA", str(tmp_path / "data"))
    external = ExternalSet(
        name="toy",
        path="small/toy.csv.gz",
        sha256=hashlib.sha256(CONTENT.encode()).hexdigest(),
        rows=2,
        problem=Sudoku(box=2),
        description="two boards",
        license="none",
        source="https://example.org/boards",
    )
    monkeypatch.setitem(EXTERNAL, "toy", external)
    return external


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """An address and the folder whose files it serves."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    home = tmp_path / "home"
    home.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(home))) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}", home
        http.shutdown()
        thread.join()


def zipped(**files: bytes) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return data.getvalue()


@pytest.mark.parametrize(
    ("conversion", "served"),
    [
        ("plain", ROWS.encode()),
        ("plain", ROWS.replace(",", " , ").replace("\n", "\r\n").encode()),
        ("xz", lzma.compress(ROWS.encode())),
        ("zip", zipped(boards=ROWS.encode())),
    ],
)
def test_a_missing_set_is_fetched_and_converted(
    toy: ExternalSet, server: tuple[str, Path], monkeypatch: pytest.MonkeyPatch, conversion: str, served: bytes
) -> None:
    address, home = server
    (home / "boards").write_bytes(served)
    homes = (Download(f"{address}/gone", "plain"), Download(f"{address}/boards", conversion, "boards"))
    monkeypatch.setitem(EXTERNAL, "toy", replace(toy, downloads=homes))
    batch = sets.load("toy")
    assert batch.solution[0].tolist() == [int(digit) - 1 for digit in SOLVED]
    (home / "boards").unlink()
    assert same(sets.load("toy"), batch)  # now from the data folder


@pytest.mark.parametrize(
    ("conversion", "served", "reason"),
    [
        ("plain", b"1,2\n", "not the content we know"),
        ("xz", b"no", "not an xz file"),
        ("zip", b"no", "not a zip file"),
        ("zip", zipped(other=b""), "boards"),
        ("plain", None, "HTTP Error 404"),
    ],
)
def test_a_failed_download_leaves_nothing(
    toy: ExternalSet,
    server: tuple[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    conversion: str,
    served: bytes | None,
    reason: str,
) -> None:
    address, home = server
    if served is not None:
        (home / "boards").write_bytes(served)
    homes = (Download(f"{address}/boards", conversion, "boards"),)
    monkeypatch.setitem(EXTERNAL, "toy", replace(toy, downloads=homes))
    with pytest.raises(UserError, match=reason) as error:
        download("toy")
    assert str(data_folder() / toy.path) in one_line(error)
    assert not list(data_folder().rglob("*.gz*"))


def test_a_set_without_a_download_says_where_it_comes_from_and_goes(toy: ExternalSet) -> None:
    for act in (sets.load, download):
        with pytest.raises(UserError) as error:
            act("toy")
        message = one_line(error)
        assert toy.source in message and str(data_folder() / toy.path) in message and toy.sha256 in message


def test_satnet_tensors_become_our_files(
    external_data: Path, server: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [sets.load(f"satnet_{split}") for split in ("train", "test")]
    boards = {
        "features": np.concatenate([part.inputs for part in parts]),
        "labels": np.concatenate([part.solution + 1 for part in parts]),
    }
    files = {}
    for name, tokens in boards.items():
        data = io.BytesIO()
        onehot = tokens.reshape(-1, 9, 9, 1) == np.arange(1, 10)
        torch.save(torch.as_tensor(onehot, dtype=torch.uint8), data)
        files[f"sudoku/{name}.pt"] = data.getvalue()
    address, home = server
    (home / "sudoku.zip").write_bytes(zipped(**files))
    monkeypatch.setenv("MULL_DATA", str(tmp_path / "data"))
    for split, part in zip(("train", "test"), parts, strict=True):
        external = EXTERNAL[f"satnet_{split}"]
        home_of = replace(external.downloads[-1], url=f"{address}/sudoku.zip")
        monkeypatch.setitem(EXTERNAL, external.name, replace(external, downloads=(home_of,)))
        assert same(sets.load(external.name), part)


@pytest.mark.slow
def test_royles_list_becomes_our_file(
    external_data: Path, server: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, home = server
    royle = sets.load("royle17")
    text = "".join("".join(map(str, row)) + "\n" for row in royle.inputs.tolist())
    (home / "sudoku17").write_text(text)
    monkeypatch.setenv("MULL_DATA", str(tmp_path / "data"))
    for name in ("rrn_test", "rrn_valid"):
        target = tmp_path / "data" / EXTERNAL[name].path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((external_data / EXTERNAL[name].path).read_bytes())
    homes = (Download(f"{address}/sudoku17", "royle"),)
    monkeypatch.setitem(EXTERNAL, "royle17", replace(EXTERNAL["royle17"], downloads=homes))
    assert same(sets.load("royle17"), royle)


def test_damaged_files_are_told_apart(toy: ExternalSet) -> None:
    path = data_folder() / toy.path
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.compress(CONTENT.replace("1030", "1234").encode()))
    with pytest.raises(CorruptFile, match="expected checksum") as error:
        sets.load("toy")
    assert str(path) in one_line(error)
    path.write_bytes(gzip.compress(CONTENT.encode())[:-9])
    with pytest.raises(CorruptFile, match="not a complete gzip file"):
        sets.load("toy")


# --- a user's own files


@pytest.mark.parametrize("name", ["boards.csv", "boards.csv.gz"])
def test_what_is_written_can_be_read(tmp_path: Path, name: str) -> None:
    for problem in (Sudoku(box=2), Sudoku(), Sudoku(box=4)):
        batch = generate(problem, "train", 3)
        sets.write_csv(problem, batch, tmp_path / name)
        assert same(sets.read_puzzles(tmp_path / name), batch)
        assert same(sets.read_puzzles(str(tmp_path / name), problem), batch)


def test_dots_other_columns_and_blank_lines_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "boards.csv"
    path.write_text(f'solution,note,puzzle\n{SOLVED},"a, b",1234............\n\n{SOLVED},,1234000000000000\n')
    batch = sets.read_puzzles(path)
    assert len(batch) == 2 and (batch.inputs[0] == batch.inputs[1]).all()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "no rows"),
        ("puzzle,solution\n", "no rows"),
        (f"puzzle,answer\n{ROWS}", "line 1: no column 'solution'"),
        (f"{CONTENT}1,2,3\n", "line 4: 3 columns"),
        (f"{CONTENT}12340000000000x1,{SOLVED}\n", "line 4: puzzle: cell 15 is 'x'"),
        (f"{CONTENT}123400000000001,{SOLVED}\n", "line 4: puzzle: expected 16 characters, got 15"),
        (f"{CONTENT}1234000000000000,{SOLVED[:15]}0\n", "line 4: the solution is not complete"),
        (f"{CONTENT}1234000000000000,{SOLVED[:15]}2\n", "line 4: the solution is wrong"),
        (f"{CONTENT}2000000000000000,{SOLVED}\n", "line 4: the solution is wrong: it breaks 'variable 1 keeps"),
        ("puzzle,solution\nabc,def\n", "line 2: no problem has puzzles like 'abc'"),
        (f'{CONTENT}"1,2\n', "line 4"),
        ("puzzle,solution\n\x80\n".encode("latin-1"), "not a text file"),
    ],
)
def test_bad_files_are_named_with_the_line(tmp_path: Path, content: str | bytes, message: str) -> None:
    path = tmp_path / "boards.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(UserError) as error:
        sets.read_puzzles(path)
    assert message in one_line(error) and str(path) in str(error.value)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    for path in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(UserError, match="cannot read"):
            sets.read_puzzles(path)
    (tmp_path / "no.csv.gz").write_text(CONTENT)
    with pytest.raises(CorruptFile, match="not a complete gzip file"):
        sets.read_puzzles(tmp_path / "no.csv.gz")


# --- several sets as one


def test_several_sets_are_one_after_the_other() -> None:
    name = "sudoku-4x4_train:20+sudoku-4x4_valid:10"
    both = sets.load(name)
    assert len(both) == 30 and sets.problem_of(name).name == "sudoku-4x4"
    assert same(both[slice(20)], sets.load("sudoku-4x4_train", 20))
    assert same(both[slice(20, 30)], sets.load("sudoku-4x4_valid", 10))
    assert len(sets.load(name, 7)) == 7


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sudoku-4x4_train+sudoku_train", "sets of different problems"),
        ("sudoku-4x4_train:x+sudoku-4x4_valid", "not a number: 'x'"),
        ("sudoku-4x4_train+sudoku-4x4_vaild", "sudoku-4x4_vaild"),
    ],
)
def test_sets_that_cannot_be_one_are_refused(name: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        sets.load(name)
    one_line(error)
