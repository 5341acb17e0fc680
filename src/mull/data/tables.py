"""Puzzles in CSV files: columns `puzzle` and `solution`, plain or compressed; errors name the file and the line."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mull.constraints import UNKNOWN
from mull.errors import CorruptFile, InvalidInput, UserError
from mull.files import write_bytes
from mull.problem import Batch, Hints, Instance, NumpyBatch, Problem, Tokens, stack
from mull.problems import PROBLEMS

CHECKED_AT_ONCE = 4096
"""Rows of a user's file that are checked in one go, to bound memory."""


@dataclass(frozen=True)
class Table:
    """The columns of one CSV file, with each row's line number."""

    path: Path
    columns: dict[str, list[str]]
    lines: list[int]

    def error(self, row: int, reason: object) -> InvalidInput:
        """The error that names this file and the row's line."""
        return InvalidInput(f"{self.path}, line {self.lines[row]}: {reason}")

    def column(self, name: str) -> list[str]:
        """A column by name."""
        if name not in self.columns:
            raise InvalidInput(f"{self.path}, line 1: no column {name!r}; there are: {', '.join(self.columns)}")
        return self.columns[name]


def read_table(
    path: Path,
    sha256: str | None = None,
    columns: Sequence[str] = (),
    convert: Callable[[bytes], bytes] | None = None,
) -> Table:
    """Read a CSV file (`.gz` is decompressed), compare its content's checksum, and split it into columns.

    The first line names the columns, unless they are passed here. `convert` makes CSV of a file that is none.
    """
    try:
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
        if sha256 is not None and hashlib.sha256(content).hexdigest() != sha256:
            raise CorruptFile(f"{path}: its content does not have the expected checksum {sha256}; remove the file")
        if convert is not None:
            content = convert(content)
        reader = csv.reader(io.StringIO(content.decode()), strict=True)
        header = list(columns) or [name.strip() for name in next(reader, [])]
        rows, lines = [], []
        for row in reader:
            if row:
                rows.append(row)
                lines.append(reader.line_num)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise CorruptFile(f"{path}: not a complete gzip file") from error
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path}: not a text file") from error
    except csv.Error as error:
        raise InvalidInput(f"{path}, line {reader.line_num}: {error}") from error
    if not rows:
        raise InvalidInput(f"{path}: no rows; expected a first line with column names and puzzles below it")
    for row, line in zip(rows, lines, strict=True):
        if len(row) != len(header):
            raise InvalidInput(f"{path}, line {line}: {len(row)} columns, but the first line names {len(header)}")
    return Table(path, {name: list(cells) for name, cells in zip(header, zip(*rows, strict=True), strict=True)}, lines)


def to_batch(table: Table, problem: Problem) -> NumpyBatch:
    """The rows as instances with their solutions."""
    if not _tokens_are_values(table, problem):
        return stack([_instance(table, row, problem) for row in range(len(table.lines))])
    tokens, solved = (_boards(table, name, problem) for name in ("puzzle", "solution"))
    for row in np.flatnonzero((solved == 0).any(axis=1))[:1]:
        raise table.error(int(row), "the solution is not complete")
    given = tokens > 0
    return Batch(
        inputs=tokens.astype(np.uint8), solution=solved.astype(np.int64) - 1, given=given, labelled=np.ones_like(given)
    )


def _tokens_are_values(table: Table, problem: Problem) -> bool:
    """Whether inputs are the given values, counted from 1, and 0 where nothing is given; the first puzzle tells."""
    try:
        first = problem.parse(table.column("puzzle")[0])
    except InvalidInput:
        return False
    return np.array_equal(first.inputs, problem.given_values(first) - UNKNOWN)


def _instance(table: Table, row: int, problem: Problem) -> Instance:
    """One row of any problem."""
    texts = {name: table.column(name)[row] for name in ("puzzle", "solution")}
    column = "puzzle"
    try:
        instance = problem.parse(texts[column])
        column = "solution"
        solution = problem.parse_answer(texts[column])
    except InvalidInput as error:
        raise table.error(row, f"{column}: {error}") from error
    if (solution == UNKNOWN).any():
        raise table.error(row, "the solution is not complete")
    return replace(instance, solution=solution)


def _boards(table: Table, column: str, problem: Problem) -> NDArray[Any]:
    """A column of boards as tokens (B, V): quickly if all is well, else one by one to tell which line is wrong."""
    texts = table.column(column)
    variables = problem.variables()
    boards = _quick(texts, variables.count, variables.values)
    if boards is not None and (problem.given_values(problem.parse(texts[0])) - UNKNOWN == boards[0]).all():
        return boards
    tokens = np.zeros((len(texts), variables.count), np.uint8)
    for row, text in enumerate(texts):
        try:
            tokens[row] = problem.given_values(problem.parse(text)) - UNKNOWN
        except InvalidInput as error:
            raise table.error(row, f"{column}: {error}") from error
    return tokens


def _quick(texts: Sequence[str], count: int, values: int) -> NDArray[Any] | None:
    """Tokens (B, V) of boards that are all digits (or all numbers with spaces); None if anything is unusual."""
    if values <= 9:
        if any(len(text) != count for text in texts):
            return None
        boards = np.frombuffer("".join(texts).encode("ascii", "replace"), np.uint8).reshape(-1, count) - ord("0")
    else:
        parts = [text.split() for text in texts]
        if any(len(part) != count for part in parts):
            return None
        try:
            boards = np.array([list(map(int, part)) for part in parts])
        except ValueError:
            return None
    return boards if ((boards >= 0) & (boards <= values)).all() else None


def guess_problem(text: str) -> Problem:
    """The problem among ours that can read this puzzle."""
    for make in PROBLEMS.values():
        problem = make()
        if isinstance(problem.input_kind(), Tokens | Hints):
            try:
                problem.parse(text)
            except InvalidInput:
                continue
            return problem
    raise InvalidInput(f"no problem has puzzles like {text[:90]!r}")


def read_puzzles(path: str | Path, problem: Problem | None = None) -> NumpyBatch:
    """A CSV file of the user's with the columns `puzzle` and `solution`; every solution is checked.

    Without a problem, the first puzzle tells which one it is.
    """
    table = read_table(Path(path))
    if problem is None:
        try:
            problem = guess_problem(table.column("puzzle")[0])
        except InvalidInput as error:
            raise table.error(0, error) from error
    return checked(table, problem)


def checked(table: Table, problem: Problem) -> NumpyBatch:
    """The rows as instances whose solutions break no rule; the first that does is told."""
    batch = to_batch(table, problem)
    for start in range(0, len(batch), CHECKED_AT_ONCE):
        rows = batch[start : start + CHECKED_AT_ONCE]
        for wrong in np.flatnonzero(~problem.check(rows.inputs, rows.solution))[:1]:
            broken = problem.conflicts(rows.inputs[wrong], rows.solution[wrong])[0][0]
            raise table.error(start + int(wrong), f"the solution is wrong: it breaks {broken!r}")
    return batch


def write_csv(problem: Problem, batch: NumpyBatch, path: str | Path) -> None:
    """Write a batch as a CSV file that `read_puzzles` reads, whole or not at all; compressed if it ends in `.gz`."""
    path = Path(path)
    content = digit_lines(batch.inputs, batch.solution + 1) if batch.inputs.ndim == 2 else b""
    if content.splitlines()[:1] != csv_lines(problem, batch[:1]).splitlines():  # not how this problem is written
        content = csv_lines(problem, batch)
    content = b"puzzle,solution\n" + content
    write_bytes(path, gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)


def csv_lines(problem: Problem, batch: NumpyBatch) -> bytes:
    """CSV lines of any problem, written row by row."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for inputs, solution, given in zip(batch.inputs, batch.solution, batch.given, strict=True):
        writer.writerow([problem.write(Instance(inputs=inputs, given=given)), problem.write_answer(solution)])
    return text.getvalue().encode()


def digit_lines(puzzles: NDArray[Any], solutions: NDArray[Any]) -> bytes:
    """CSV lines of boards (B, V) whose tokens are single digits, all at once."""
    comma, newline = (np.full((len(puzzles), 1), ord(mark), np.uint8) for mark in ",\n")
    digits = [(board + ord("0")).astype(np.uint8) for board in (puzzles, solutions)]
    return np.hstack([digits[0], comma, digits[1], newline]).tobytes()
