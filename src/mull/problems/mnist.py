"""MNIST: the images of handwritten digits that visual problems show their symbols with.

The four original files lie under `mnist/` in the data folder and are fetched from a public mirror where they are not
there. Its 60,000 training images are dealt in two: the first 55,000 for training, the rest for validation, so that no
model is chosen by images that it was trained on. Its 10,000 test images are for testing.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mull.constraints import IntArray
from mull.errors import CorruptFile, UserError, unknown
from mull.fetch import data_folder, fetch, one_line
from mull.files import write_bytes

SIDE = 28
MEAN, DEVIATION = 0.1307, 0.3081
"""Of the training images' pixels, on a scale from 0 to 1."""
SPLITS: dict[str, tuple[str, slice]] = {
    "train": ("train", slice(0, 55_000)),
    "valid": ("train", slice(55_000, 60_000)),
    "test": ("t10k", slice(0, 10_000)),
}
MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist",
    "https://storage.googleapis.com/cvdf-datasets/mnist",
)
SHA256 = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
"""Of the decompressed files."""
HEADER = {"images": 16, "labels": 8}
"""Bytes before the data in an idx file."""


@lru_cache(maxsize=len(SPLITS))
def load(split: str) -> tuple[NDArray[np.uint8], IntArray]:
    """Images (N, 28, 28) and their digits (N,) of a split."""
    if split not in SPLITS:
        raise unknown("split of MNIST", split, SPLITS)
    name, rows = SPLITS[split]
    images = _read(f"{name}-images-idx3-ubyte", HEADER["images"]).reshape(-1, SIDE, SIDE)
    labels = _read(f"{name}-labels-idx1-ubyte", HEADER["labels"])
    return images[rows], labels[rows].astype(np.int64)


@lru_cache(maxsize=len(SPLITS))
def by_digit(split: str) -> tuple[IntArray, ...]:
    """For each digit, the places of its images in a split."""
    labels = load(split)[1]
    return tuple(np.flatnonzero(labels == digit) for digit in range(10))


def write_digits(digits: IntArray, share: NDArray[np.floating[Any]], split: str) -> NDArray[np.uint8]:
    """An image for each digit (...) -> (..., 28, 28) of a split; `share`, uniform in [0, 1), says which one."""
    places = by_digit(split)
    chosen = np.empty(digits.shape, np.int64)
    for digit in np.unique(digits):
        here = digits == digit
        chosen[here] = places[digit][(share[here] * len(places[digit])).astype(np.int64)]
    return load(split)[0][chosen]


def _read(name: str, header: int) -> NDArray[np.uint8]:
    """The data of one idx file, fetched first if it is not here."""
    path = data_folder() / "mnist" / f"{name}.gz"
    if not path.exists():
        _download(name, path)
    try:
        content = gzip.decompress(path.read_bytes())
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise CorruptFile(f"{path}: not a complete gzip file") from error
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    if hashlib.sha256(content).hexdigest() != SHA256[name]:
        raise CorruptFile(f"{path}: its content does not have the checksum of MNIST; remove the file")
    return np.frombuffer(content, np.uint8, offset=header)


def _download(name: str, path: Path) -> None:
    failures = []
    for mirror in MIRRORS:
        url = f"{mirror}/{name}.gz"
        try:
            content = gzip.decompress(fetch(url))
        except (OSError, EOFError, zlib.error) as error:
            failures.append(f"{url}: {one_line(error)}")
            continue
        if hashlib.sha256(content).hexdigest() == SHA256[name]:
            write_bytes(path, gzip.compress(content, mtime=0))
            return
        failures.append(f"{url}: what is there now is not MNIST")
    raise UserError(f"cannot download MNIST: {'; '.join(failures)}; or put the file at {path}")
