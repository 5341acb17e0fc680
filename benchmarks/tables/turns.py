"""Several scripts at a time on one GPU, one of them training: the others meanwhile load, measure or wait.

Updates of two trainings that share a GPU take twice as long, but what comes before and after them needs other things.
"""

from __future__ import annotations

import fcntl
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from mull.recipes import Recipe


class Turn:
    """Reports nothing; holds a file's lock from a training's first update to its last, or to its failure."""

    def __init__(self, path: Path) -> None:
        """`path` names the file, which is made where it is not there."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self.file = path.open("w")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.file.close()

    def begin(self, recipe: Recipe, total_steps: int, start_step: int) -> None:
        """Nothing: compiling needs no turn."""

    def ready(self) -> None:
        """Wait until no other training runs."""
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def progress(self, step: int, metrics: dict[str, float]) -> None:
        """Nothing: it is the log's to tell."""

    def end(self, summary: dict[str, Any]) -> None:
        """Let the next one train."""
        fcntl.flock(self.file, fcntl.LOCK_UN)
