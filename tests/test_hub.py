from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull import hub
from mull.errors import CorruptFile, InvalidInput, UserError
from mull.problems.sudoku import Sudoku
from tiny import card, write_tiny

MEMBERS = {"a.onnx": b"first member", "b.bin": bytes(range(256))}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def good(folder: Path) -> bytes:
    hub.write_model(folder / "good.mull", card(), MEMBERS)
    return (folder / "good.mull").read_bytes()


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "model.mull"
    hub.write_model(path, card(), MEMBERS)
    assert hub.read_members(path, ["b.bin"]) == {"b.bin": MEMBERS["b.bin"]}
    found = hub.read_card(path)
    assert found.problem == Sudoku(box=2)
    assert (found.name, found.steps, found.parameters) == ("tiny", 20, 64)
    assert found.sha256.keys() == MEMBERS.keys()
    assert hub.Card.from_json(found.to_json()) == found


def test_the_same_content_gives_the_same_bytes(good: bytes, tmp_path: Path) -> None:
    hub.write_model(tmp_path / "again.mull", card(), MEMBERS)
    assert (tmp_path / "again.mull").read_bytes() == good


def read_all(path: Path, content: bytes) -> dict[str, bytes]:
    path.write_bytes(content)
    return hub.read_members(path, MEMBERS)


@given(length=st.floats(0, 1, exclude_max=True))
def test_truncated(folder: Path, good: bytes, length: float) -> None:
    with pytest.raises(CorruptFile, match="not a usable model file"):
        read_all(folder / "truncated.mull", good[: int(length * len(good))])


@given(place=st.floats(0, 1, exclude_max=True), change=st.integers(1, 255))
def test_altered(folder: Path, good: bytes, place: float, change: int) -> None:
    content = bytearray(good)
    content[int(place * len(good))] ^= change
    try:
        found = read_all(folder / "altered.mull", bytes(content))
    except CorruptFile:
        return
    assert found == MEMBERS  # a byte that says nothing, such as a date


@given(content=st.binary(max_size=300))
def test_random_bytes(folder: Path, content: bytes) -> None:
    for prefix in (b"", b"PK\x03\x04"):
        with pytest.raises(CorruptFile):
            read_all(folder / "random.mull", prefix + content)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


@given(field=st.sampled_from(sorted(json.loads(card().to_json()))), value=JSON)
def test_any_field_of_a_card_may_be_wrong(field: str, value: object) -> None:
    data = json.loads(card().to_json())
    try:
        found = hub.Card.from_json(json.dumps({**data, field: value}))
    except CorruptFile:
        return
    assert isinstance(found.problem, Sudoku)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 2}', "[" * 100_000, b"\xff\xfe"])
def test_no_card(text: str | bytes) -> None:
    with pytest.raises(CorruptFile):
        hub.Card.from_json(text)


def test_fields_of_a_card_are_exact() -> None:
    data = json.loads(card().to_json())
    with pytest.raises(CorruptFile, match="more"):
        hub.Card.from_json(json.dumps({**data, "more": 1}))
    data.pop("steps")
    with pytest.raises(CorruptFile, match="steps"):
        hub.Card.from_json(json.dumps(data))


def test_a_member_that_the_card_does_not_vouch_for(folder: Path, good: bytes) -> None:
    buffer = io.BytesIO(good)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr("extra", b"x")
    (folder / "extra.mull").write_bytes(buffer.getvalue())
    with pytest.raises(CorruptFile, match="extra"):
        hub.read_members(folder / "extra.mull", ["extra"])


def test_compressed_archives_are_refused(folder: Path) -> None:
    with zipfile.ZipFile(folder / "bomb.mull", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("card.json", b"0" * 10_000_000)
    with pytest.raises(CorruptFile, match="compressed"):
        hub.read_card(folder / "bomb.mull")


def test_unreadable(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot read"):
        hub.read_card(tmp_path)


def test_find_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_tiny(tmp_path / "weights" / "tiny.mull")
    monkeypatch.setattr(hub, "WEIGHTS", path.parent)
    assert hub.find_model("tiny") == path
    assert hub.find_model(str(path)) == path
    assert hub.find_model(path.parent) == path
    with pytest.raises(InvalidInput, match=r"did you mean 'tiny'\? there are: tiny"):
        hub.find_model("tinny")
    with pytest.raises(InvalidInput, match="no model file"):
        hub.find_model("missing.mull")
    with pytest.raises(InvalidInput, match="mull export"):
        hub.find_model(tmp_path)


@pytest.mark.parametrize("name", hub.shipped())
def test_shipped_models_are_whole(name: str) -> None:
    path = hub.shipped()[name]
    found = hub.read_card(path)
    assert found.name == name
    assert hub.read_members(path, found.sha256).keys() >= {"start.onnx", "step.onnx", "weights.safetensors"}
    assert found.provenance.keys() >= {"recipe", "data", "seed", "commit", "hardware"}
    assert path.stat().st_size < 4 * found.parameters + 60_000  # every number once, and what says how to use them


def test_shipped_models_together_are_small() -> None:
    assert sum(path.stat().st_size for path in hub.shipped().values()) < 25_000_000
