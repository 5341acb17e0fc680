"""What commands print: boards, lines, tables and JSON."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from mull.answer_files import Engine, json_line, text_line, write_answers
from mull.constraints import UNKNOWN, IntArray
from mull.errors import InvalidInput
from mull.problem import Images, Instance, NumpyBatch, Problem
from mull.problems.sudoku import Sudoku
from mull.progress import Tally
from mull.puzzle_files import Reading
from mull.solve import Answer, Puzzle, Solver

DOUBTFUL = 0.9
"""Cells of a photograph that were read with less certainty are named."""


def print_answers(solver: Solver, puzzles: Iterator[Puzzle], as_json: bool, engine: Engine | None = None) -> bool:
    """Solve and print: JSON lines, boards for a single puzzle, or one line a puzzle; whether all were verified."""
    began = time.perf_counter()
    answers = (engine or solver.solve_many)(puzzles)
    tally = Tally()
    head = [] if as_json else list(islice(answers, 2))
    if len(head) == 1:
        print(boards(solver.problem, solver.remark(head[0])))
        return head[0].verified
    for answer in chain(head, answers):
        print(json_line(answer) if as_json else text_line(answer))
        tally.add(answer.verified)
    if not as_json:
        sys.stdout.flush()  # the summary comes last, also where both streams are one
        print_summary(tally, time.perf_counter() - began)
    return tally.verified == tally.total


def solve_into(
    out: Path, engine: Engine, puzzles: Iterator[Puzzle], as_json: bool, resume: bool, reading: Reading
) -> bool:
    """Solve into a file, with a progress bar and a summary; whether all its answers are verified."""
    began = time.perf_counter()
    try:
        tally = write_answers(engine, puzzles, out, as_json, resume, reading)
    except KeyboardInterrupt:
        print(f"mull: stopped; --resume goes on with {out}", file=sys.stderr)
        raise
    print_summary(tally, time.perf_counter() - began)
    return tally.verified == tally.total


def print_summary(tally: Tally, seconds: float) -> None:
    """How many answers there are, in one line on standard error."""
    new = tally.total - tally.before
    how = f"in {seconds:.1f} s, {new / seconds:.0f}/s" + f" ({tally.before} were there already)" * bool(tally.before)
    print(f"{tally.verified} of {tally.total} solved and verified {how}", file=sys.stderr)


def print_photo(solver: Solver, file: str, as_json: bool) -> bool:
    """Read a photograph, solve what was read, and print both; whether the answer is verified."""
    if not isinstance(solver.problem, Sudoku) or solver.problem.side != 9:
        raise InvalidInput(f"a photograph shows a 9x9 Sudoku; the model is for {solver.problem.name}")
    from mull.photo import read

    reading = read(file)
    answer = solver.solve(reading.givens) if not _contradiction(solver.problem, reading.givens) else None
    if answer is None:
        note = f"contradicts itself as read: {_contradiction(solver.problem, reading.givens)}"
        answer = Answer(reading.givens, None, False, 0, "none", 0.0, note)
    values = solver.problem.given_values(solver.problem.parse(reading.givens))
    answer = replace(answer, givens=reading.givens, given_values=values)
    if as_json:
        certainty = [round(float(share), 4) for share in reading.certainty]
        changes = [str(change) for change in reading.changes]
        print(json.dumps({"photo": file, **json.loads(json_line(answer)), "changes": changes, "certainty": certainty}))
        return answer.verified
    print(boards(solver.problem, answer))
    if reading.changes:
        print("\nas first read, there was not exactly one solution; the likeliest reading that has one differs in")
        print("\n".join(f"  {change}" for change in reading.changes))
    doubtful = [cell for cell in range(len(values)) if reading.certainty[cell] < DOUBTFUL]
    if doubtful and not reading.changes:
        places = ", ".join(f"row {cell // 9 + 1} column {cell % 9 + 1}" for cell in doubtful[:8])
        print(f"\nread with doubt: {places}" + ", ..." * (len(doubtful) > 8))
    if not answer.verified or reading.changes or doubtful:
        print(f"if a digit was misread, correct it: mull solve {reading.givens}")
    return answer.verified


def _contradiction(problem: Problem, puzzle: str) -> str:
    """What rule a puzzle's givens break, or nothing."""
    instance = problem.parse(puzzle)
    return ", ".join(label for label, _ in problem.conflicts(instance.inputs, problem.given_values(instance))[:3])


def boards(problem: Problem, answer: Answer) -> str:
    """The board before and after, and what can be said about it."""
    instance = problem.parse(answer.puzzle)
    given = problem.given_values(instance)
    if answer.given_values is not None:  # the puzzle is an image: what the model read off it
        given = answer.given_values
        instance = replace(instance, given=given != UNKNOWN)
    parts = [problem.draw(instance, given, colourful())]
    if answer.given_values is not None:
        parts[0] = f"{int(instance.given.sum())} givens recognised:\n\n{parts[0]}"
    if answer.values is not None:
        parts.append(problem.draw(instance, answer.values, colourful()))
    return "\n\n".join([*parts, verdict(answer)])


def verdict(answer: Answer) -> str:
    """What became of a puzzle, in one line."""
    how = "by exact search" if answer.method == "exact" else f"in {answer.steps} recurrence{'s' * (answer.steps != 1)}"
    if answer.verified:
        certain = "verified" if answer.givens is None else "verified with the givens as recognised"
        return f"solved {how}, {certain}" + (f"; but it {answer.note}" if answer.note else "")
    if answer.method == "none":
        return f"not solved: it {answer.note}"
    note = answer.note or "no verified answer"
    return f"not verified: {note if note.startswith('no ') else f'it {note}'}"


def int8_verdict(about: dict[str, Any]) -> str:
    """Whether a model may run in int8, and why, in one line."""
    shares = [
        f"{name} {100 * row['fp32']:.2f} % in fp32 and {100 * row['int8']:.2f} % in int8"
        for name, row in about.items()
        if name in ("right", "verified") and any(row.values())
    ]
    use = "will be used where it is faster" if about["allowed"] else "will not be used"
    return f"int8 {use}: on {about['instances']:,} of {about['data']}, {'; '.join(shares)}"


def print_puzzle(problem: Problem, instance: Instance, values: IntArray) -> None:
    """A puzzle with its givens (V,), and what they already break."""
    print(problem.draw(instance, values, colourful()))
    print(f"\n{int(instance.given.sum())} givens" + " recognised" * isinstance(problem.input_kind(), Images))
    for label, _ in problem.conflicts(instance.inputs, values):
        print(f"conflict: {label}")


def print_csv(problem: Problem, batch: NumpyBatch) -> None:
    """Puzzles and solutions as CSV."""
    from mull.data.tables import csv_lines

    print("puzzle,solution")
    for row in range(len(batch)):
        print(csv_lines(problem, batch[row : row + 1]).decode(), end="")


def colourful() -> bool:
    """Whether standard output is a terminal that wants styles."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Aligned columns, numbers to the right."""
    cells = [list(header), *([_cell(value) for value in row] for row in rows)]
    numeric = [all(_is_number(row[place]) for row in cells[1:]) for place in range(len(header))]
    widths = [max(len(row[place]) for row in cells) for place in range(len(header))]
    lines = []
    for row in cells:
        parts = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ]
        lines.append("  ".join(parts).rstrip())
    return "\n".join(lines)


def _cell(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _is_number(text: str) -> bool:
    return text.replace(",", "").replace(".", "").replace("%", "").strip().isdigit() or text == "-"


def scores(result: dict[str, Any]) -> str:
    """The accuracies of an evaluation as a table, in per cent."""
    names = list(next(iter(result["steps"].values())))
    header = ["recurrences", *(name.replace("_", " ") for name in names)]
    rows = [[steps, *(f"{100 * row[name]:.2f}" for name in names)] for steps, row in result["steps"].items()]
    return table(header, rows)
