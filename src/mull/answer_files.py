"""Writing answers into a file as they come, such that a run that was killed goes on where it ended.

Text, CSV and JSON lines have one line an answer, in the order of the puzzles. To resume, the lines that are there are
compared with the puzzles, the puzzles that have one are passed over, and a torn last line is dropped. A Parquet file
can be read only when it is complete, so its answers wait as JSON lines beside it, and it is written at the end.
"""

from __future__ import annotations

import csv
import fcntl
import io
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from itertools import chain
from pathlib import Path
from typing import Any, final

from mull.errors import InvalidInput, UserError
from mull.files import atomic_path
from mull.progress import Tally, counting
from mull.puzzle_files import Reading, import_parquet, parquet_rows
from mull.solve import Answer, Puzzle

Engine = Callable[[Iterator[Puzzle]], Iterator[Answer]]
"""What makes answers of puzzles, in their order: `Solver.solve_many`, or a cluster's."""

FIELDS = ("puzzle", "solution", "verified", "steps", "method", "ms", "givens", "note")
LONGEST = 8 << 20
"""Bytes of a line; what is longer is none of ours."""
GROUP_BYTES = 4 << 20
"""JSON lines of a row group of a Parquet file: some 15,000 Sudoku boards."""


def text_line(answer: Answer) -> str:
    """An answer on one line: puzzle, solution, whether it is verified, recurrences, note."""
    state = "verified" if answer.verified else "NOT VERIFIED"
    how = "exact" if answer.method == "exact" else f"{answer.steps:3d}"
    note = f"  ({answer.note})" if answer.note else ""
    return f"{Text().begin(answer.puzzle)}{answer.solution or 'none'}  {state}  {how}{note}"


def json_line(answer: Answer) -> str:
    """An answer as one JSON object; `givens` (as recognised) and `note` are there only where there are any."""
    keys = [*FIELDS[:6]] + ["givens"] * (answer.givens is not None) + ["note"] * bool(answer.note)
    return json.dumps({key: getattr(answer, key) for key in keys})


class Form(ABC):
    """How an answer is written on a line, and what of it is read again."""

    header: str = ""
    """The first line, if there is one."""

    @abstractmethod
    def line(self, answer: Answer) -> str:
        """An answer."""

    @abstractmethod
    def begin(self, puzzle: str) -> str:
        """What the line of a puzzle's answer begins with."""

    @abstractmethod
    def verified(self, line: str) -> bool:
        """Whether a line says that its answer is verified; anything else than an answer raises ValueError."""


@final
class Text(Form):
    """`PUZZLE -> SOLUTION  verified    7`."""

    def line(self, answer: Answer) -> str:
        return text_line(answer)

    def begin(self, puzzle: str) -> str:
        return f"{'(image)' if puzzle.startswith('data:') else ' '.join(puzzle.splitlines())} -> "

    def verified(self, line: str) -> bool:
        if "  verified  " not in line and "  NOT VERIFIED  " not in line:
            raise ValueError
        return "  verified  " in line


@final
class Json(Form):
    """JSON lines."""

    def line(self, answer: Answer) -> str:
        return json_line(answer)

    def begin(self, puzzle: str) -> str:
        return json.dumps({"puzzle": puzzle})[:-1] + ","

    def verified(self, line: str) -> bool:
        return bool(json.loads(line)["verified"])


@final
class Csv(Form):
    """Comma-separated values with a header; a line break within a puzzle becomes a space."""

    header = ",".join(FIELDS)

    def line(self, answer: Answer) -> str:
        values: list[Any] = [getattr(answer, key) for key in FIELDS[1:]]
        values[FIELDS.index("verified") - 1] = str(answer.verified).lower()
        return self.begin(answer.puzzle) + self._row(values)

    def begin(self, puzzle: str) -> str:
        return self._row([" ".join(puzzle.splitlines())]) + ","

    def verified(self, line: str) -> bool:
        (row,) = csv.reader([line])
        return {"true": True, "false": False}[row[FIELDS.index("verified")]]

    def _row(self, values: list[Any]) -> str:
        out = io.StringIO()
        csv.writer(out, lineterminator="").writerow(values)
        return out.getvalue()


def form_of(path: Path, as_json: bool) -> Form:
    """How answers are written into a file of this name: by its ending, or as text."""
    ending = path.suffix.lower()
    if ending in (".gz", ".zst", ".bz2", ".xz"):
        raise InvalidInput(f"{path}: answers are not compressed while they are written; leave out {ending}")
    if ending in (".csv", ".parquet"):
        if as_json:
            raise InvalidInput(f"{path}: --json writes JSON lines, not {ending}")
        return Csv() if ending == ".csv" else Json()
    return Json() if as_json or ending in (".jsonl", ".ndjson", ".json") else Text()


@final
class AnswerFile:
    """A file of lines that answers are appended to; one process at a time."""

    def __init__(self, path: Path, form: Form) -> None:
        """Open or make the file."""
        self.path, self.form, self.tally = path, form, Tally()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._stream = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b")
            fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._stream.close()
            raise UserError(f"{path}: another process writes it") from error
        except OSError as error:
            raise UserError(f"cannot write {path}: {error.strerror or error}") from error

    def left(self, puzzles: Iterator[Puzzle]) -> Iterator[Puzzle]:
        """The puzzles without the first ones, which have answers here; what was torn off of the next one is dropped.

        The file is not touched if it holds anything but the answers to these puzzles.
        """
        end, number = 0, 0
        for puzzle in chain([None] * bool(self.form.header), puzzles):
            raw, number = self._stream.readline(LONGEST), number + 1
            begin = self.form.header if puzzle is None else self.form.begin(puzzle.text)
            line, whole = raw.decode(errors="ignore").rstrip("\r\n"), raw.endswith(b"\n")
            if not line.startswith(begin) and (whole or not begin.startswith(line)):
                what = "the header" if puzzle is None else f"the answer to {puzzle.place or 'the puzzle'}"
                raise InvalidInput(f"{self.path}:{number}: not {what}, so there is nothing to resume")
            if not whole:
                self._cut(end)
                if puzzle is None:
                    self._write(self.form.header)
                    return puzzles
                return chain([puzzle], puzzles)
            if puzzle is not None:
                self.tally.add(self._verified(line, number))
            end += len(raw)
        if self._stream.readline(LONGEST):
            raise InvalidInput(f"{self.path}:{number + 1}: more than the answers to these puzzles")
        self._cut(end)
        return puzzles

    def _cut(self, end: int) -> None:
        """Go on writing here."""
        self.tally.before = self.tally.total
        self._stream.seek(end)
        self._stream.truncate()

    def _verified(self, line: str, number: int) -> bool:
        try:
            return self.form.verified(line)
        except (ValueError, LookupError, TypeError) as error:
            raise InvalidInput(f"{self.path}:{number}: not an answer, so there is nothing to resume") from error

    def write(self, answer: Answer) -> None:
        """Append an answer; it is with the system when this returns."""
        self._write(self.form.line(answer))
        self.tally.add(answer.verified)

    def _write(self, line: str) -> None:
        self._stream.write(f"{line}\n".encode())
        self._stream.flush()

    def close(self) -> None:
        """Let others write the file."""
        with suppress(OSError):  # what could not be written was told when it was tried
            os.fsync(self._stream.fileno())
        with suppress(OSError):
            self._stream.close()


def write_answers(
    solve: Engine,
    puzzles: Iterator[Puzzle],
    path: Path,
    as_json: bool = False,
    resume: bool = False,
    reading: Reading | None = None,
) -> Tally:
    """Solve into a file, and show how far it is; `resume` goes on with what is there, or begins if nothing is."""
    form, whole = form_of(path, as_json), path.suffix.lower() == ".parquet"
    lines = path.with_name(f"{path.name}.partial.jsonl") if whole else path
    for file in (path, lines):
        if file.exists() and not file.is_file():
            raise InvalidInput(f"{file} is not a file")
        if file.exists() and file.stat().st_size and not resume:
            raise InvalidInput(f"{file} is there already: add --resume to go on with it, or name another file")
    if whole:
        import_parquet()  # it had better be missing now than in the end
        if path.exists() and path.stat().st_size and not lines.exists():
            return _compare(path, puzzles)
    with closing(AnswerFile(lines, form)) as answers:
        left = answers.left(puzzles)
        with counting(answers.tally, (reading or Reading()).share) as tell:
            for answer in solve(left):
                answers.write(answer)
                tell()
        if whole:
            _to_parquet(lines, path)
            lines.unlink()
    return answers.tally


def _to_parquet(lines: Path, path: Path) -> None:
    """JSON lines as a Parquet file, whole or not at all, a row group at a time."""
    import pyarrow.json as json_lines

    arrow, parquet = import_parquet()
    kinds = {"verified": arrow.bool_(), "steps": arrow.int32(), "ms": arrow.float64()}
    schema = arrow.schema([(name, kinds.get(name, arrow.string())) for name in FIELDS])
    with (
        lines.open("rb") as stream,
        atomic_path(path) as temporary,
        parquet.ParquetWriter(temporary, schema, compression="zstd") as writer,
    ):
        parse = json_lines.ParseOptions(explicit_schema=schema)
        while group := b"".join(stream.readlines(GROUP_BYTES)):
            options = json_lines.ReadOptions(use_threads=False, block_size=len(group))
            writer.write_table(json_lines.read_json(io.BytesIO(group), options, parse).select(FIELDS))


def _compare(path: Path, puzzles: Iterator[Puzzle]) -> Tally:
    """What a complete Parquet file holds, if that is the answers to these puzzles."""
    tally = Tally()
    for row in parquet_rows(path, ["puzzle", "verified"]):
        puzzle = next(puzzles, None)
        if puzzle is None or row["puzzle"] != puzzle.text:
            raise InvalidInput(
                f"{path}, row {tally.total + 1}: not the answer to {puzzle.place if puzzle else 'any puzzle'}"
            )
        tally.add(row["verified"])
    if (more := next(puzzles, None)) is not None:
        raise InvalidInput(f"{path} is complete, without an answer to {more.place}: name another file")
    tally.before = tally.total
    return tally
