"""Reading puzzles one at a time from text, CSV, JSON lines, all of them in gzip too, Parquet or standard input.

Errors name file, line and why.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import sys
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, cast

from mull.errors import InvalidInput
from mull.solve import Puzzle

LONGEST_LINE = 1 << 20
"""Characters; a longer line is no puzzle, and not worth the memory."""

PARQUET_ROWS = 1024
"""Rows of a Parquet file that are taken out at once."""

Line = tuple[int, str]


class Reading:
    """How much of a file has been read, for a progress bar."""

    def __init__(self) -> None:
        """Nobody can tell yet."""
        self.told: Callable[[], float | None] = lambda: None

    def share(self) -> float | None:
        """From 0 to 1, or None if that cannot be told."""
        return self.told()


def all_puzzles(
    arguments: list[str], source: str | None, reading: Reading | None = None
) -> Generator[Puzzle, None, None]:
    """The puzzles of a command line, then those of its file."""
    numbered = len(arguments) > 1
    yield from (Puzzle(text, f"puzzle {number}" if numbered else "") for number, text in enumerate(arguments, start=1))
    if source is not None:
        yield from read_puzzles(source, reading or Reading())


def read_puzzles(source: str, reading: Reading) -> Iterator[Puzzle]:
    """The puzzles of a file, or of standard input for `-`: one a line, the `puzzle` column of a CSV, or JSON objects.

    Blank lines and lines that begin with `#` are skipped. A Parquet file has a column `puzzle`, too.
    """
    name = "standard input" if source == "-" else source
    found = False
    for puzzle in _parquet_puzzles(source, reading) if _is_parquet(source) else _text_puzzles(source, name, reading):
        found = True
        yield puzzle
    if not found:
        raise InvalidInput(f"{name}: no puzzle in it")


def _text_puzzles(source: str, name: str, reading: Reading) -> Iterator[Puzzle]:
    with _open(source, name, reading) as stream:
        for number, text in _rows(_lines(stream, name), name, source.removesuffix(".gz").endswith(".csv")):
            yield Puzzle(text, f"{name}:{number}")


def import_parquet() -> tuple[Any, Any]:
    """pyarrow and its module for Parquet files, which come with `mull[parquet]`."""
    import pyarrow
    import pyarrow.parquet

    return pyarrow, pyarrow.parquet


def _is_parquet(source: str) -> bool:
    try:
        if source == "-" or not Path(source).is_file():
            return False
        with Path(source).open("rb") as stream:
            return stream.read(4) == b"PAR1"
    except OSError:
        return False  # to be told by who reads it


def parquet_rows(path: Path, columns: list[str], reading: Reading | None = None) -> Iterator[dict[str, Any]]:
    """The rows of a Parquet file, some columns only."""
    arrow, parquet = import_parquet()
    try:
        with parquet.ParquetFile(path) as file:
            names, total, number = file.schema_arrow.names, file.metadata.num_rows, 0
            if missing := [name for name in columns if name not in names]:
                raise InvalidInput(f"{path}: no column {missing[0]!r}; there are: {', '.join(names)}")
            if reading is not None:
                reading.told = lambda: number / max(1, total)
            for batch in file.iter_batches(PARQUET_ROWS, columns=columns, use_threads=False):
                for row in batch.to_pylist():
                    number += 1
                    yield row
    except (arrow.ArrowException, OSError) as error:
        raise InvalidInput(f"{path}: cannot be read as Parquet: {error}") from error


def _parquet_puzzles(source: str, reading: Reading) -> Iterator[Puzzle]:
    for number, row in enumerate(parquet_rows(Path(source), ["puzzle"], reading), start=1):
        if not isinstance(row["puzzle"], str):
            raise InvalidInput(f"{source}, row {number}: its puzzle is not a text")
        yield Puzzle(row["puzzle"].strip(), f"{source}, row {number}")


def parse_puzzles(text: str, name: str) -> Iterator[Puzzle]:
    """The puzzles of a text as `read_puzzles` reads them from a file; `name` is for messages."""
    for number, line in _rows(_lines(io.StringIO(text), name), name, is_csv=False):
        yield Puzzle(line, f"{name}:{number}")


@contextmanager
def _open(source: str, name: str, reading: Reading) -> Iterator[io.TextIOBase]:
    """A text stream, closed afterwards unless it is standard input; what goes wrong in reading is InvalidInput."""
    try:
        if source == "-":
            stream = io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8-sig")
            try:
                yield stream
            finally:
                stream.detach()  # standard input is not ours to close
            return
        with Path(source).open("rb") as raw:
            size = max(1, os.fstat(raw.fileno()).st_size)
            reading.told = lambda: 1.0 if raw.closed else min(1.0, raw.tell() / size)
            packed = raw.peek(2)[:2] == b"\x1f\x8b"
            binary = cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if packed else raw
            yield io.TextIOWrapper(binary, encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{name}: not a text file") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InvalidInput(f"{name}: the gzip file is truncated or altered") from error
    except OSError as error:
        raise InvalidInput(f"{name}: {error.strerror or error}") from error


def _lines(stream: io.TextIOBase, name: str) -> Iterator[Line]:
    """Numbered lines, without blank ones and comments."""
    number = 0
    while text := stream.readline(LONGEST_LINE):
        number += 1
        if len(text) >= LONGEST_LINE:
            raise InvalidInput(f"{name}:{number}: the line is longer than {LONGEST_LINE} characters")
        if text.strip() and not text.lstrip().startswith("#"):
            yield number, text.strip()


def _rows(lines: Iterator[Line], name: str, is_csv: bool) -> Iterator[Line]:
    """The puzzle of each line; the first line tells JSON objects, and a CSV by a column `puzzle`, from plain lines."""
    first = next(lines, None)
    if first is None:
        return
    if first[1].startswith("{"):
        yield from ((line[0], _member(line, name)) for line in chain([first], lines))
        return
    columns = _fields(first, name)
    if "puzzle" in columns:
        place = columns.index("puzzle")
        for line in lines:
            fields = _fields(line, name)
            if len(fields) <= place:
                raise InvalidInput(f"{name}:{line[0]}: expected {len(columns)} columns, got {len(fields)}")
            yield line[0], fields[place]
    elif is_csv:
        raise InvalidInput(f"{name}:{first[0]}: expected a header with a column 'puzzle', got {first[1][:40]!r}")
    else:
        yield first
        yield from lines


def _member(line: Line, name: str) -> str:
    """The `puzzle` of a JSON object."""
    try:
        puzzle = json.loads(line[1])["puzzle"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        what = "no member 'puzzle'" if isinstance(error, KeyError) else "not a JSON object"
        raise InvalidInput(f"{name}:{line[0]}: {what}") from error
    if not isinstance(puzzle, str):
        raise InvalidInput(f"{name}:{line[0]}: its puzzle is not a text")
    return puzzle


def _fields(line: Line, name: str) -> list[str]:
    try:
        return [field.strip() for field in next(csv.reader([line[1]]))]
    except csv.Error as error:
        raise InvalidInput(f"{name}:{line[0]}: {error}") from error
