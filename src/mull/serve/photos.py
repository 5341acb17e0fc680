"""The place where reading photographs is plugged in: `mull.photo`, where it is installed."""

from __future__ import annotations

import base64
import io
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mull.errors import InvalidInput
from mull.serve.schemas import Reading

NEEDS = ("mull.photo", "cv2")
FORMATS = ("JPEG", "PNG", "WEBP")
SHOWN = 432
"""Pixels along a side of the board that is sent back."""
LARGEST = 50_000_000
"""Pixels; more are refused rather than decoded."""


def available() -> bool:
    """Whether photographs can be read here."""
    return all(find_spec(name) is not None for name in NEEDS)


def read(content: bytes) -> Reading:
    """The puzzle on a photograph, for a person to look over; raises UserError if no board is found."""
    found = import_module("mull.photo").read(decode(content))
    return Reading(
        model="sudoku",
        puzzle=found.givens,
        certainty=np.asarray(found.certainty, dtype=float).tolist(),
        changes=[str(change) for change in found.changes],
        board=shown(found.flat),
    )


def shown(board: NDArray[np.uint8]) -> str:
    """A grey image as a small `data:` address."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(board).resize((SHOWN, SHOWN), Image.Resampling.LANCZOS).save(buffer, "jpeg", quality=80)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode()


def decode(content: bytes) -> NDArray[Any]:
    """The image (height, width, RGB) in the content of a file, upright as its camera says."""
    from PIL import Image, ImageOps

    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            if image.width * image.height > LARGEST:
                raise InvalidInput(f"the photograph is {image.width}x{image.height} pixels: too large")
            return np.asarray(ImageOps.exif_transpose(image).convert("RGB"), dtype=np.uint8)
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"expected a photograph in {', '.join(FORMATS)}") from error
