"""Images as text: the name of a file, or the image itself as a `data:` address; and boards cut into cells.

Images are grey, uint8, light ink on a dark ground, as MNIST has them; one with dark ink on a light ground is turned
into its negative when it is read.
"""

from __future__ import annotations

import base64
import binascii
import io
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mull.errors import InvalidInput

if TYPE_CHECKING:
    from PIL.Image import Image

Grey = NDArray[np.uint8]
PREFIX = "data:image/png;base64,"
LARGEST_SIDE = 8192
"""Pixels; larger images are refused rather than decoded into gigabytes."""


def read_image(text: str) -> Grey:
    """The image (height, width) that a file's name or a `data:` address stands for; raises InvalidInput."""
    grey = _decode(*_content(text.strip()))
    return 255 - grey if np.median(grey) > 127 else grey


def read_photo(name: str) -> Grey:
    """A photograph (height, width), turned as the camera says it was held, dark ink dark; raises InvalidInput."""
    return _decode(*_content(name.strip()), turn=True)


def _decode(content: bytes, name: str, turn: bool = False) -> Grey:
    """The grey levels of an image file's content."""
    from PIL import Image, ImageOps, UnidentifiedImageError  # kept off the import path of solving text

    try:
        with Image.open(io.BytesIO(content)) as image:
            if max(image.size) > LARGEST_SIDE:
                raise InvalidInput(f"{name} is {image.width}x{image.height} pixels; the most is {LARGEST_SIDE} a side")
            return _grey(ImageOps.exif_transpose(image) if turn else image)
    except InvalidInput:
        raise
    except UnidentifiedImageError as error:
        raise InvalidInput(f"{name} is not an image that can be read") from error
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError) as error:
        raise InvalidInput(f"{name} is not an image that can be read: {' '.join(str(error).split())}") from error


def _grey(image: Image) -> Grey:
    """Grey levels; what is transparent counts as white paper."""
    from PIL import Image

    if "A" in image.getbands() or "transparency" in image.info:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    return np.asarray(image.convert("L"), dtype=np.uint8)


def _content(text: str) -> tuple[bytes, str]:
    """The bytes of an image file, and how to call it in a message."""
    if text.startswith("data:"):
        if not text.startswith(PREFIX):
            raise InvalidInput(f"expected the name of an image file or an address {PREFIX}..., got {text[:40]!r}")
        try:
            return base64.b64decode(text[len(PREFIX) :], validate=True), "the image in the text"
        except (binascii.Error, ValueError) as error:
            raise InvalidInput(f"the image in the text is not base64: {error}") from error
    if not text:
        raise InvalidInput("expected the name of an image file, got nothing")
    try:
        return Path(text).read_bytes(), text
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        reason = getattr(error, "strerror", None) or error
        raise InvalidInput(f"cannot read the image {text[:80]!r}: {reason}") from error


def write_image(image: NDArray[Any]) -> str:
    """An image (height, width) as a `data:` address, from which `read_image` gets the same pixels (or the negative)."""
    return PREFIX + base64.b64encode(png(image)).decode()


def png(image: NDArray[Any]) -> bytes:
    """An image (height, width) as the content of a PNG file."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(image, dtype=np.uint8)).save(buffer, "png", optimize=True)
    return buffer.getvalue()


def cut(image: Grey, rows: int, columns: int, height: int, width: int) -> Grey:
    """Cells (rows * columns, height, width) of a board, cut evenly and brought to their size."""
    if image.shape[0] < 4 * rows or image.shape[1] < 4 * columns:
        raise InvalidInput(
            f"the image is {image.shape[1]}x{image.shape[0]} pixels: too small for {columns}x{rows} cells"
        )
    down = np.linspace(0, image.shape[0], rows + 1).round().astype(int)
    across = np.linspace(0, image.shape[1], columns + 1).round().astype(int)
    cells = [
        resize(image[top:bottom, left:right], height, width)
        for top, bottom in pairwise(down)
        for left, right in pairwise(across)
    ]
    return np.stack(cells)


def resize(image: Grey, height: int, width: int) -> Grey:
    """An image brought to a size, smoothly."""
    if image.shape == (height, width):
        return image
    from PIL import Image

    return np.asarray(Image.fromarray(image).resize((width, height), Image.Resampling.LANCZOS), dtype=np.uint8)


def join(cells: NDArray[Any], rows: int, columns: int) -> Grey:
    """The board that `cut` cuts into these cells (rows * columns, height, width)."""
    height, width = cells.shape[1:]
    board = cells.reshape(rows, columns, height, width).swapaxes(1, 2).reshape(rows * height, columns * width)
    return np.ascontiguousarray(board, dtype=np.uint8)
