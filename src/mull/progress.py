"""How a training goes, or the solving of a file, in the terminal: a live bar; plain lines elsewhere."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from mull.recipes.recipe import Recipe
    from mull.train import Reporter

BLOCKS = " ▁▂▃▄▅▆▇█"
PLAIN_SECONDS = 10.0
"""Time between the lines of a training whose output is no terminal."""


@contextmanager
def reporting() -> Iterator[Reporter]:
    """A live bar on a terminal, plain lines elsewhere; the terminal is left in order whatever happens."""
    if not sys.stderr.isatty():
        yield PlainReporter()
        return
    live = LiveReporter()
    try:
        yield live
    finally:
        live.stop()


@final
class LiveReporter:
    """A progress bar with the loss, board accuracy on validation data, puzzles a second and the time left."""

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._valid = "-"

    def begin(self, recipe: Recipe, total_steps: int, start_step: int) -> None:
        """Draw the bar."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("loss {task.fields[loss]}  boards {task.fields[valid]}  {task.fields[rate]} puzzles/s"),
            TimeRemainingColumn(compact=True, elapsed_when_finished=True),
            console=Console(stderr=True),
        )
        self._task = self._progress.add_task(
            recipe.name, total=total_steps, completed=start_step, loss="-", valid="-", rate="-"
        )
        self._progress.start()

    def ready(self) -> None:
        """Nothing more to show."""

    def progress(self, step: int, metrics: dict[str, float]) -> None:
        """Move the bar."""
        if self._progress is None or self._task is None:
            return
        if "valid_board" in metrics:
            self._valid = percent(metrics["valid_board"])
        rate = f"{metrics.get('puzzles_per_s', 0.0):,.0f}"
        loss = f"{metrics.get('loss', math.nan):.4f}"
        self._progress.update(self._task, completed=step, loss=loss, valid=self._valid, rate=rate)

    def end(self, summary: dict[str, Any]) -> None:
        """Take the bar down, and draw the learning curve."""
        self.stop()
        print(closing(summary))

    def stop(self) -> None:
        """Take the bar down."""
        if self._progress is not None:
            self._progress.stop()


@final
class PlainReporter:
    """One line from time to time, for logs and pipes."""

    def __init__(self) -> None:
        self._total, self._first, self._began, self._said = 0, 0, 0.0, 0.0

    def begin(self, recipe: Recipe, total_steps: int, start_step: int) -> None:
        """Say what is trained."""
        self._total, self._first = total_steps, start_step
        self._began = self._said = time.monotonic()
        print(f"training {recipe.name}: {total_steps:,} updates" + (f", from {start_step:,}" if start_step else ""))

    def ready(self) -> None:
        """Nothing more to show."""

    def progress(self, step: int, metrics: dict[str, float]) -> None:
        """Say where it is, after each validation and every few seconds."""
        now = time.monotonic()
        if "valid_board" not in metrics and now - self._said < PLAIN_SECONDS:
            return
        self._said = now
        left = (now - self._began) / max(1, step - self._first) * (self._total - step)
        valid = f"  boards {percent(metrics['valid_board'])}" if "valid_board" in metrics else ""
        rate = f"{metrics.get('puzzles_per_s', 0.0):,.0f} puzzles/s"
        loss = metrics.get("loss", math.nan)
        print(f"{step:,}/{self._total:,}  loss {loss:.4f}{valid}  {rate}  {left:.0f} s left", flush=True)

    def end(self, summary: dict[str, Any]) -> None:
        """Draw the learning curve."""
        print(closing(summary))


@dataclass
class Tally:
    """How many answers there are, and how many of them are verified."""

    total: int = 0
    verified: int = 0
    before: int = 0
    """Those of an earlier run."""

    def add(self, verified: bool) -> None:
        """Count an answer."""
        self.total, self.verified = self.total + 1, self.verified + verified


@contextmanager
def counting(tally: Tally, share: Callable[[], float | None]) -> Iterator[Callable[[], None]]:
    """Show on standard error how many answers there are; call what this gives after each.

    `share`: how much of the input has been read, if that can be told.
    """
    began = said = time.monotonic()
    bar = _bar() if sys.stderr.isatty() else None
    every = 0.2 if bar else PLAIN_SECONDS
    task = bar.add_task("solving", total=None, about="") if bar else None

    def tell() -> None:
        nonlocal said
        now = time.monotonic()
        if now - said < every:
            return
        said, read = now, share()
        about = f"{tally.total:,} answers, {percent(tally.verified / tally.total)} verified"
        about += f", {(tally.total - tally.before) / (now - began):,.0f}/s"
        if bar is not None and task is not None:
            bar.update(task, total=None if read is None else 1.0, completed=read or 0.0, about=about)
        else:
            print(about + (f", {percent(read)} of the input read" if read is not None else ""), file=sys.stderr)

    with bar or nullcontext():
        yield tell


def _bar() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[about]}"), TimeRemainingColumn()
    return Progress(*columns, console=Console(stderr=True), transient=True)


def percent(share: float) -> str:
    """A share as the best number of digits: 99.87 %."""
    return f"{100 * share:.2f} %"


def closing(summary: dict[str, Any]) -> str:
    """The learning curve, and where the weights are."""
    parts = [learning_curve(summary.get("rows", []))]
    out, best = summary.get("out"), summary.get("best", 0.0)
    if best < 0:
        parts.append(f"stopped before the first validation: no weights kept; {out} can be resumed")
        return "\n".join(part for part in parts if part)
    if "best" in summary:
        parts.append(f"best on validation data: {percent(best)} of boards")
    if out:
        parts.append(f"weights in {out}; to solve with them: mull export {out} --out NAME.mull")
    return "\n".join(part for part in parts if part)


def learning_curve(rows: Sequence[dict[str, float]], width: int = 64) -> str:
    """Loss (logarithmic) and validation accuracy against updates, as block characters."""
    losses = [(row["step"], math.log(row["loss"])) for row in rows if row.get("loss", 0.0) > 0.0]
    boards = [(row["step"], row["valid_board"]) for row in rows if "valid_board" in row]
    panels = []
    if len(losses) > 1:
        panels.append(panel("loss, log scale", losses, lambda y: f"{math.exp(y):.3g}", width))
    if len(boards) > 1:
        panels.append(panel("boards", boards, lambda y: f"{100 * y:.1f} %", width, floor=0.0))
    return "\n".join(panels)


def panel(
    title: str,
    points: Sequence[tuple[float, float]],
    label: Callable[[float], str],
    width: int,
    height: int = 6,
    floor: float = math.inf,
) -> str:
    """Points (x, y) as a bar chart of `width` columns: the last y in each column's stretch of x.

    Bars begin at the least y, or at `floor` if that is lower.
    """
    blocks = BLOCKS if _prints(BLOCKS) else " " * 4 + "#" * 5
    first, last = points[0][0], points[-1][0]
    low, high = min(floor, *(y for _, y in points)), max(y for _, y in points)
    heights, place = [], 0
    for column in range(width):
        limit = first + (last - first) * (column + 1) / width
        while place + 1 < len(points) and points[place + 1][0] <= limit:
            place += 1
        share = (points[place][1] - low) / (high - low) if high > low else 0.0
        heights.append(max(1, round(share * 8 * height)))
    margin = max(len(label(low)), len(label(high)))
    lines = [title]
    for row in reversed(range(height)):
        side = label(high) if row == height - 1 else label(low) if row == 0 else ""
        bars = "".join(blocks[min(8, max(0, filled - 8 * row))] for filled in heights)
        lines.append(f"{side.rjust(margin)} {bars}")
    end = f"{last:,.0f} updates"
    lines.append(" " * (margin + 1) + f"{first:,.0f}".ljust(width - len(end)) + end)
    return "\n".join(lines)


def _prints(text: str) -> bool:
    """Whether standard output can show a text."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True
