"""Photographs: rendered ones are read exactly, however they lie; misreadings are mended or told."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("cv2")

from mull import photo
from mull.cli import main
from mull.data.streams import stream
from mull.errors import InvalidInput, UserError
from mull.photo import reader, render
from mull.photo.repair import FEWEST_GIVENS, repair

PUZZLES = (
    "530070000600195000098000060800060003400803001700020006060000280000419005000080079",
    "002000010000050600000000000560090000400000002000600080700201000030000900000800000",
    "200000080936005000000072690008200400540000001000080570820703000009000000600000107",
)
SOLVED = "534678912672195348198342567859761423426853791713924856961537284287419635345286179"


def tokens(puzzle: str) -> np.ndarray:
    return np.array(list(map(int, puzzle)))


def fonts() -> list[str]:
    """Pillow's own, and some that come with matplotlib where that is installed."""
    try:
        from matplotlib import get_data_path
    except ImportError:
        return [""]
    folder = Path(get_data_path()) / "fonts" / "ttf"
    return ["", *(str(folder / name) for name in ("DejaVuSans.ttf", "DejaVuSerif-Bold.ttf"))]


def picture(seed: int, puzzle: str = PUZZLES[0], amount: float = 0.4) -> tuple[np.ndarray, np.ndarray]:
    known = fonts()
    return render.photograph(tokens(puzzle), known[seed % len(known)], stream(0, "photo test", seed), amount)


def certain(puzzle: str) -> np.ndarray:
    """A reader's probabilities (81, 10) that leave no doubt."""
    return np.full((81, 10), 1e-6, np.float32) + np.eye(10, dtype=np.float32)[tokens(puzzle)]


@pytest.mark.parametrize("seed", range(5))
def test_rendered_photographs_are_read_exactly(seed: int) -> None:
    puzzle = PUZZLES[seed % len(PUZZLES)]
    image, corners = picture(seed, puzzle)
    got = photo.read(image)
    assert got.givens == got.as_read == puzzle
    assert got.solutions == 1 and not got.changes
    assert np.abs(got.corners - corners).max() < 0.3 * np.linalg.norm(corners[1] - corners[0]) / 9
    assert got.certainty.shape == (81,) and got.certainty.min() > 0.3
    assert got.flat.dtype == np.uint8 and got.flat.shape[0] == got.flat.shape[1]


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_a_photograph_may_lie_on_its_side(turns: int) -> None:
    image, _ = picture(1, PUZZLES[0], 0.3)
    upright, turned = photo.read(image), photo.read(np.ascontiguousarray(np.rot90(image, turns)))
    assert upright.givens == turned.givens == PUZZLES[0]
    assert turned.flat.shape == upright.flat.shape
    assert np.corrcoef(turned.flat.ravel(), upright.flat.ravel())[0, 1] > 0.8


def test_a_photograph_may_have_colours_and_come_from_a_file(tmp_path: Path) -> None:
    image, _ = picture(2)
    colours = np.repeat(image[:, :, None], 3, axis=2)
    Image.fromarray(colours).save(tmp_path / "board.png")
    from_file = photo.read(tmp_path / "board.png", mend=False)
    assert from_file.givens == photo.read(colours).givens == PUZZLES[0] and from_file.solutions is None


def test_a_camera_that_was_held_sideways_says_so(tmp_path: Path) -> None:
    image, corners = picture(0)
    exif = Image.Exif()
    exif[0x0112] = 6  # turn right to see it upright
    Image.fromarray(np.rot90(image)).save(tmp_path / "board.jpg", exif=exif, quality=95)
    got = photo.read(tmp_path / "board.jpg")
    assert got.givens == PUZZLES[0]
    np.testing.assert_allclose(got.corners, corners, atol=12)


def test_what_is_no_photograph_of_a_board_is_told(tmp_path: Path) -> None:
    (tmp_path / "text.jpg").write_text("no image")
    with pytest.raises(InvalidInput, match=r"text.jpg is not an image"):
        photo.read(tmp_path / "text.jpg")
    with pytest.raises(InvalidInput, match="cannot read the image"):
        photo.read(tmp_path / "missing.jpg")
    with pytest.raises(InvalidInput, match="array of bytes"):
        photo.read(np.zeros((50, 50)))
    rng = stream(0, "no board")
    blank, noise = np.full((300, 400), 200, np.uint8), rng.integers(0, 256, (300, 400)).astype(np.uint8)
    stripes = np.tile(np.repeat(np.array([40, 220], np.uint8), 10), (300, 20))
    for image in (blank, noise, stripes, np.zeros((1, 1), np.uint8), np.zeros((3, 700), np.uint8)):
        with pytest.raises(InvalidInput, match="no Sudoku board found"):
            photo.read(image)


def test_a_board_without_digits_is_told() -> None:
    with pytest.raises(InvalidInput, match="no digits could be read"):
        photo.read(picture(0, "0" * 81)[0])


def test_a_contradiction_is_mended_by_the_likeliest_alternative() -> None:
    probabilities = certain(PUZZLES[0])
    probabilities[0, [5, 3]] = 0.3, 0.7  # the 5 in the corner is read as the 3 beside it
    probabilities[5, [0, 8]] = 0.8, 0.2  # and another cell is doubtful
    got, number = repair(probabilities)
    assert "".join(map(str, got)) == PUZZLES[0] and number == 1


def test_a_digit_that_was_missed_is_found_by_its_several_solutions() -> None:
    cell = 2  # of a puzzle in which every given counts
    probabilities = certain(PUZZLES[1])
    probabilities[cell, [0, 2]] = 0.9, 0.1
    got, number = repair(probabilities)
    assert "".join(map(str, got)) == PUZZLES[1] and number == 1


def test_what_cannot_be_mended_stays_as_it_was_read() -> None:
    contradiction = "55" + PUZZLES[0][2:]
    got, number = repair(certain(contradiction))
    assert "".join(map(str, got)) == contradiction and number == 0
    several = PUZZLES[1].replace("5", "0", 1)
    got, number = repair(certain(several))
    assert (tokens(several) > 0).sum() < FEWEST_GIVENS and number == 2 and "".join(map(str, got)) == several


def test_the_command_reads_and_solves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "board.png"
    Image.fromarray(picture(0)[0]).save(path)
    assert main(["solve", "--photo", str(path)]) == 0
    out = capsys.readouterr().out
    assert "30 givens recognised" in out and "verified with the givens as recognised" in out
    assert main(["solve", "--photo", str(path), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["puzzle"] == PUZZLES[0] and answer["solution"] == SOLVED and answer["verified"]
    assert answer["photo"] == str(path) and len(answer["certainty"]) == 81 and answer["changes"] == []


def test_the_command_tells_what_was_mended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "board.png"
    Image.fromarray(picture(0)[0]).save(path)
    doubtful = certain(PUZZLES[0])
    doubtful[0, [5, 3]] = 0.3, 0.7
    monkeypatch.setattr(reader, "read_cells", lambda cells: doubtful)
    assert main(["solve", "--photo", str(path)]) == 0
    out = capsys.readouterr().out
    assert "row 1 column 1: 5 instead of 3" in out and f"mull solve {PUZZLES[0]}" in out
    doubtful[0] = certain("3" * 81)[0]
    assert main(["solve", "--photo", str(path)]) == 1
    out = capsys.readouterr().out
    assert "not solved: it contradicts itself as read" in out and "mull solve 33" in out


def test_the_command_says_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "blank.png"
    Image.new("L", (200, 200), 255).save(path)
    for arguments, message in (
        (["--photo", str(path)], "no Sudoku board found"),
        (["--photo", str(tmp_path / "missing.jpg")], "cannot read the image"),
        (["--photo", str(path), PUZZLES[0]], "either a photograph or puzzles"),
        (["--photo", str(path), "--model", "sudoku-4x4"], "a photograph shows a 9x9 Sudoku"),
    ):
        assert main(["solve", *arguments]) == 2
        error = capsys.readouterr().err
        assert message in error and error.count("\n") == 1
    monkeypatch.setattr(photo, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"install mull\[photo\]"):
        photo.read(path)


def test_the_reader_is_small_and_says_where_it_came_from() -> None:
    assert reader.GRAPH.stat().st_size + reader.WEIGHTS.stat().st_size < 500_000
    content = reader.WEIGHTS.read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["__metadata__"]
    about = json.loads(header["about"])
    assert about["boards"] > 0 and about["provenance"]["command"] == "python -m mull.photo.train"
    assert about["fonts"] and not any("/" in font for font in about["fonts"])


def test_rendering_is_deterministic_and_the_network_learns() -> None:
    torch = pytest.importorskip("torch")
    from mull.photo import train

    images, labels = train.make_cells(fonts(), 3, 0, "photo test")
    again, _ = train.make_cells(fonts(), 3, 0, "photo test")
    np.testing.assert_array_equal(images, again)
    assert images.shape == (243, 32, 32) and set(labels.tolist()) == set(range(10))
    labels[:9] = train.NO_DIGIT
    labels[9:12] = train.IGNORED
    torch.manual_seed(0)
    model = train.Reader()
    before = train.accuracy(model, images, labels)
    train.fit(model, images, labels, epochs=6, seed=0, batch=27)
    assert train.accuracy(model, images, labels) > before + 0.2


@pytest.mark.slow
def test_training_writes_what_onnxruntime_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnxscript")
    from mull.photo import train

    images, _ = train.make_cells(fonts(), 2, 0, "photo test")
    model = train.Reader()
    train.write_reader(model, tmp_path, {"boards": 2, "seed": 0})
    monkeypatch.setattr(reader, "GRAPH", tmp_path / "reader.onnx")
    monkeypatch.setattr(reader, "WEIGHTS", tmp_path / "reader.safetensors")
    reader._network.cache_clear()
    try:
        got = reader.read_cells(images[:100].astype(np.float32) / 160)
    finally:
        reader._network.cache_clear()
    with torch.inference_mode():
        wanted = torch.softmax(model(train.as_input(images[:100])), dim=-1).numpy()
    np.testing.assert_allclose(got, wanted, atol=1e-4)


@pytest.mark.parametrize("name", ["image1003.jpg", "image1024.jpg", "image209.jpg", "image73.jpg"])
def test_real_photographs(name: str, photographs: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(root / "benchmarks"))
    import photos

    rows = {row["file"]: row for row in photos.labels(photographs)}
    got = photos.measure(photographs, rows[name])
    assert got["part"] == "development" and set(photos.DEVELOPMENT) == set(sorted(rows)[::4])
    assert got["found"] and got["cells_wrong"] == got["digits_wrong"] == 0, got
    assert photos.summary([got])["right"] == 1
