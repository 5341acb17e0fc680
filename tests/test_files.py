"""Files are written whole or not at all, and a failure is one clear line.

The tests may run as root, who can write anywhere, so a full disk and a read-only folder are simulated.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from pathlib import Path
from typing import Any, NoReturn

import pytest

from mull.errors import UserError
from mull.files import atomic_path, write_bytes, write_text


def fail_with(number: int) -> Any:
    def fail(*_args: object, **_options: object) -> NoReturn:
        raise OSError(number, os.strerror(number))

    return fail


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_writes_the_whole_file_and_makes_its_folder(tmp_path: Path) -> None:
    write_text(tmp_path / "new" / "deep" / "file.txt", "grün\n")
    assert (tmp_path / "new" / "deep" / "file.txt").read_bytes() == "grün\n".encode()
    assert names(tmp_path / "new" / "deep") == ["file.txt"]


def test_replaces_a_file_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_bytes(path, b"old")
    write_bytes(path, b"new")
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["file"]


def test_permissions_are_those_of_any_new_file(tmp_path: Path) -> None:
    usual, ours = tmp_path / "usual", tmp_path / "ours"
    usual.write_bytes(b"")
    write_bytes(ours, b"")
    assert stat.S_IMODE(ours.stat().st_mode) == stat.S_IMODE(usual.stat().st_mode)


@pytest.mark.parametrize("error", [RuntimeError("no"), KeyboardInterrupt()])
def test_an_interrupted_write_keeps_the_old_file(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "file"
    write_bytes(path, b"old")

    def interrupted() -> None:
        with atomic_path(path) as temporary:
            temporary.write_bytes(b"half")
            raise error

    with pytest.raises(type(error)):
        interrupted()
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


def test_a_full_disk_while_writing_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_bytes(path, b"old")

    def write_to_full_disk() -> None:
        with atomic_path(path) as temporary:
            temporary.write_bytes(b"half")
            fail_with(errno.ENOSPC)()

    with pytest.raises(UserError, match="No space left on device") as caught:
        write_to_full_disk()
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize(("module", "name"), [(os, "fsync"), (Path, "replace"), (Path, "chmod")])
def test_a_failure_at_any_later_step_keeps_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: Any, name: str
) -> None:
    path = tmp_path / "file"
    write_bytes(path, b"old")
    with monkeypatch.context() as patch:
        patch.setattr(module, name, fail_with(errno.ENOSPC))
        with pytest.raises(UserError, match="No space left on device"):
            write_bytes(path, b"new")
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    monkeypatch.setattr(tempfile, "mkstemp", fail_with(number))
    with pytest.raises(UserError, match=f"cannot write .*: {os.strerror(number)}"):
        write_bytes(tmp_path / "file", b"new")
    assert names(tmp_path) == []


def test_a_folder_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "mkdir", fail_with(errno.EROFS))
    with pytest.raises(UserError, match="Read-only file system"):
        write_bytes(tmp_path / "new" / "file", b"new")


def test_a_file_where_a_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(UserError, match="cannot write"):
        write_bytes(tmp_path / "file" / "below", b"new")
    assert (tmp_path / "file").read_bytes() == b"old"


def test_a_folder_where_the_file_should_be(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(UserError, match="cannot write"):
        write_bytes(tmp_path / "folder", b"new")
    assert names(tmp_path) == ["folder"]
