"""Fetch an external set from its public home, convert it to our CSV, and keep it only if the checksum agrees."""

from __future__ import annotations

import gzip
import hashlib
import io
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from mull.data.registry import EXTERNAL, Download, ExternalSet
from mull.data.tables import digit_lines
from mull.errors import UserError, unknown
from mull.fetch import data_folder, fetch, one_line
from mull.files import write_bytes

HEADER = b"puzzle,solution\n"


def download(name: str) -> Path:
    """Bring an external set into the data folder; its path."""
    if name not in EXTERNAL:
        raise unknown("external set", name, EXTERNAL)
    external = EXTERNAL[name]
    path = data_folder() / external.path
    if not external.downloads:
        raise UserError(missing(external, path))
    failures = []
    for home in external.downloads:
        try:
            content = CONVERSIONS[home.conversion](fetch(home.url), home)
        except (OSError, ValueError, KeyError, EOFError, ImportError) as error:
            failures.append(f"{home.url}: {one_line(error)}")
            continue
        if hashlib.sha256(content).hexdigest() == external.sha256:
            write_bytes(path, gzip.compress(content, mtime=0))
            return path
        failures.append(f"{home.url}: what is there now is not the content we know")
    raise UserError(f"cannot download {name}: {'; '.join(failures)}; or put the file at {path}")


def missing(external: ExternalSet, path: Path) -> str:
    """The message for a set whose file is not there and cannot be fetched."""
    header = " (without a line that names them)" if external.columns else ""
    return (
        f"{path} is missing and has no download: it was derived from {external.source}; put a CSV with the columns "
        f"puzzle,solution{header} there, compressed, whose content has the sha256 {external.sha256}"
    )


def _plain(content: bytes, home: Download) -> bytes:
    """`puzzle,solution` lines without a header."""
    rows = [b",".join(part.strip() for part in line.split(b",")) for line in content.splitlines()]
    return HEADER + b"".join(row + b"\n" for row in rows if row)


def _xz(content: bytes, home: Download) -> bytes:
    try:
        return _plain(lzma.decompress(content), home)
    except lzma.LZMAError as error:
        raise ValueError("not an xz file") from error


def _zip(content: bytes, home: Download) -> bytes:
    return _plain(_member(content, home.member), home)


def _member(content: bytes, name: str) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return archive.read(name)
    except zipfile.BadZipFile as error:
        raise ValueError("not a zip file") from error


def _satnet(content: bytes, home: Download) -> bytes:
    """Rows of the SATNet tensors (boards, 9, 9, 9), one-hot; an empty cell has no one. Needs torch to read them."""
    import torch  # only to read the file

    boards = []
    for name in ("features", "labels"):
        data = io.BytesIO(_member(content, f"sudoku/{name}.pt"))
        onehot = torch.load(data, map_location="cpu", weights_only=True).numpy()
        tokens = np.where(onehot.any(axis=-1), onehot.argmax(axis=-1) + 1, 0)
        boards.append(tokens.reshape(len(tokens), -1))
    first, last = map(int, home.member.split(":"))
    return HEADER + digit_lines(*(board[first:last] for board in boards))


def _royle(content: bytes, home: Download) -> bytes:
    """Royle's list of puzzles: solve each, and name the split of its symmetry class. Needs numba.

    A class of `rrn_test` is test, one of `rrn_valid` alone is valid, and the rest is train.
    """
    from mull.data.sets import load
    from mull.problems import sudoku_search

    puzzles = np.frombuffer(b"".join(content.split()), np.uint8).reshape(-1, 81) - ord("0")
    solutions = np.stack([s for s in (sudoku_search.solve(3, puzzle) for puzzle in puzzles) if s is not None])
    keys = [key.tobytes() for key in sudoku_search.canonical_many(3, puzzles, solutions)]
    known: dict[bytes, str] = {}
    for split in ("valid", "test"):
        batch = load(f"rrn_{split}")
        known |= {key.tobytes(): split for key in sudoku_search.canonical_many(3, batch.inputs, batch.solution)}
    rows = digit_lines(puzzles, solutions + 1).split()
    splits = [known.get(key, "train").encode() for key in keys]
    return b"puzzle,solution,split\n" + b"".join(b"%s,%s\n" % pair for pair in zip(rows, splits, strict=True))


CONVERSIONS: dict[str, Callable[[bytes, Download], bytes]] = {
    "unchanged": lambda content, home: content,
    "plain": _plain,
    "xz": _xz,
    "zip": _zip,
    "satnet": _satnet,
    "royle": _royle,
}
"""From what a home serves to the content of our file, before the checksum."""
