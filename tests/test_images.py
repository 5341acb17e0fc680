"""Images as text: files, `data:` addresses, any size and either colour of ink; what cannot be read is told."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from mull.errors import InvalidInput
from mull.images import PREFIX, cut, join, png, read_image, resize, write_image


def dark(seed: int, height: int = 40, width: int = 60) -> np.ndarray:
    """A dark image with some light ink."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random((height, width)) < 0.2, rng.integers(1, 256, (height, width)), 0).astype(np.uint8)


@given(st.integers(0, 1000))
def test_an_image_survives_text(seed: int) -> None:
    image = dark(seed)
    text = write_image(image)
    assert text.startswith(PREFIX) and "\n" not in text
    np.testing.assert_array_equal(read_image(text), image)


def test_dark_ink_on_light_ground_is_the_same(tmp_path: Path) -> None:
    image = dark(0)
    (tmp_path / "light.png").write_bytes(png(255 - image))
    np.testing.assert_array_equal(read_image(str(tmp_path / "light.png")), image)


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "1", "I;16", "P", "LA"])
def test_every_kind_of_png(tmp_path: Path, mode: str) -> None:
    image = (dark(1) > 0).astype(np.uint8) * 255
    deep = Image.fromarray(image.astype(np.uint16) * 257)
    picture = deep if mode == "I;16" else Image.fromarray(image).convert(mode)
    picture.save(tmp_path / "image.png")
    np.testing.assert_array_equal(read_image(str(tmp_path / "image.png")) > 127, image > 127)


def test_what_is_transparent_is_paper(tmp_path: Path) -> None:
    ink = dark(2) > 0
    pixels = np.zeros((*ink.shape, 4), np.uint8)  # black ink on nothing
    pixels[..., 3] = 255 * ink
    Image.fromarray(pixels).save(tmp_path / "image.png")
    np.testing.assert_array_equal(read_image(str(tmp_path / "image.png")) > 127, ink)


@given(st.integers(1, 5), st.integers(1, 5), st.integers(4, 9), st.integers(4, 9), st.integers(0, 100))
def test_cells_that_are_joined_are_cut_again(rows: int, columns: int, height: int, width: int, seed: int) -> None:
    cells = np.random.default_rng(seed).integers(0, 256, (rows * columns, height, width)).astype(np.uint8)
    np.testing.assert_array_equal(cut(join(cells, rows, columns), rows, columns, height, width), cells)


def test_a_board_of_any_size_is_cut_evenly() -> None:
    image = np.zeros((100, 130), np.uint8)
    image[67:, 87:] = 200  # the last of 3 x 3 cells
    cells = cut(image, 3, 3, 28, 28)
    assert [int(cell.mean() > 100) for cell in cells] == [0] * 8 + [1]
    assert resize(image, 10, 13).shape == (10, 13)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected the name of an image file, got nothing"),
        ("no/such/board.png", "cannot read the image 'no/such/board.png': No such file"),
        ("a\x00b", "cannot read the image"),
        ("9" * 5000, "cannot read the image"),
        ("data:text/plain,hello", "expected the name of an image file or an address"),
        (PREFIX + "%%%", "not base64"),
        (PREFIX + "AAAA", "the image in the text is not an image that can be read"),
    ],
)
def test_bad_images_get_one_line(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message.replace("(", r"\(")) as error:
        read_image(text)
    assert "\n" not in str(error.value) and len(str(error.value)) < 250


@pytest.mark.parametrize("length", [10, 60, 200])
def test_a_truncated_file_gets_one_line(tmp_path: Path, length: int) -> None:
    (tmp_path / "board.png").write_bytes(png(dark(0, 252, 252))[:length])
    with pytest.raises(InvalidInput, match="not an image that can be read"):
        read_image(str(tmp_path / "board.png"))


def test_a_folder_or_a_huge_image_gets_one_line(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="Is a directory"):
        read_image(str(tmp_path))
    buffer = io.BytesIO()
    Image.new("1", (9000, 10)).save(buffer, "png")
    (tmp_path / "huge.png").write_bytes(buffer.getvalue())
    with pytest.raises(InvalidInput, match="9000x10 pixels"):
        read_image(str(tmp_path / "huge.png"))
    with pytest.raises(InvalidInput, match="too small"):
        cut(dark(0, 20, 300), 9, 9, 28, 28)
