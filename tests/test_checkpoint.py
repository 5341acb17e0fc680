"""Checkpoints: exact round trips, and one clear error for anything that is not what was written."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mull import checkpoint
from mull.errors import CorruptFile, UserError
from mull.models.recurrent_transformer import ModelConfig, RecurrentTransformer
from mull.problems.sudoku import Sudoku


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("checkpoint") / "a.safetensors"
    checkpoint.save(path, {"x": torch.arange(12.0).view(3, 4).t(), "n": torch.tensor(3)}, {"step": 7})
    return path


def test_round_trip(saved: Path) -> None:
    tensors, metadata = checkpoint.load(saved)
    assert metadata == {"step": 7}
    torch.testing.assert_close(tensors["x"], torch.arange(12.0).view(3, 4).t())
    assert tensors["n"].shape == () and tensors["n"] == 3


@given(st.data())
def test_any_altered_byte_or_cut_is_noticed(saved: Path, data: st.DataObject) -> None:
    content = bytearray(saved.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        content[place] ^= data.draw(st.integers(1, 255))
    else:
        del content[place:]
    broken = saved.with_name("broken.safetensors")
    broken.write_bytes(content)
    try:
        tensors, metadata = checkpoint.load(broken)
    except CorruptFile:
        pass
    else:  # white space that pads the header, or a spelling of the same content
        assert metadata == {"step": 7} and tensors["x"].sum() == 66


def test_altered_metadata_is_noticed(saved: Path) -> None:
    content = saved.read_bytes()
    for was, now in ((b"7}", b"8}"), (b"step", b"stop"), (b": 7}", b"; 7}")):
        broken = saved.with_name("broken.safetensors")
        assert content.count(was) == 1
        broken.write_bytes(content.replace(was, now))
        with pytest.raises(CorruptFile, match="checksum"):
            checkpoint.load(broken)


def test_missing_and_foreign_files(tmp_path: Path) -> None:
    with pytest.raises(CorruptFile, match="cannot read"):
        checkpoint.load(tmp_path / "none.safetensors")
    (tmp_path / "rubbish.safetensors").write_bytes(b"\x80\x04\x95rubbish")
    with pytest.raises(CorruptFile, match="cannot read"):
        checkpoint.load(tmp_path / "rubbish.safetensors")


def test_a_full_disk_leaves_the_old_file(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    before = saved.read_bytes()
    monkeypatch.setattr(checkpoint, "save_file", full)
    with pytest.raises(UserError, match="No space left on device"):
        checkpoint.save(saved, {"x": torch.zeros(1)}, {})
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.glob(".*")] == []


def test_weights_must_fit_the_model() -> None:
    model = RecurrentTransformer(Sudoku(2), ModelConfig(width=32))
    tensors = dict(model.state_dict())
    checkpoint.load_weights(model, tensors, "here")
    with pytest.raises(CorruptFile, match=r"here.*'positions'"):
        checkpoint.load_weights(model, {**tensors, "positions": torch.zeros(3)}, "here")
    with pytest.raises(CorruptFile, match="extra"):
        checkpoint.load_weights(model, {**tensors, "extra": torch.zeros(3)}, "here")
