"""How much `gpu.py` measures, and its result file, which is written after every measurement."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from mull.files import write_text
from mull.provenance import provenance


@dataclass(frozen=True)
class Sizes:
    """How much to measure."""

    small: bool = False
    """A tiny model on tiny boards."""
    seconds: float = 1.0
    """Of every timing, about."""
    naive_training: tuple[int, ...] = (16, 128, 512)
    naive_inference: tuple[int, ...] = (128, 512, 2048)
    training: tuple[int, ...] = (16, 128, 512, 2048)
    best: tuple[int, ...] = (1024, 2048)
    visual: tuple[int, ...] = (128,)
    inference: tuple[int, ...] = (2048, 8192)
    steps: int = 64
    puzzles: int | None = None
    """Of the test set; None: all."""
    fixed: tuple[tuple[int, int], ...] = ((2048, 64), (4500, 64), (9000, 64))
    leaving: tuple[tuple[int, int], ...] = ((2048, 4), (4096, 4), (2048, 2), (1024, 4))
    """Batch, and recurrences between two checks, with every puzzle kept for all recurrences or leaving when solved."""
    copied: int = 1 << 31
    """Numbers of bfloat16 in the copy that measures bandwidth."""
    product: int = 8192
    """Side of the matrices whose product measures operations."""


QUICK = Sizes(
    small=True, seconds=0.0, naive_training=(2,), naive_inference=(2,), training=(2,), best=(2,), visual=(2,),
    inference=(2,), steps=4, puzzles=5, fixed=((4, 4),), leaving=((4, 2),), copied=1 << 16, product=64,
)  # fmt: skip


class Run:
    """One run: its result file, its device and its time."""

    def __init__(self, sizes: Sizes, device: torch.device, out: Path, limit: float) -> None:
        self.sizes, self.device, self.out = sizes, device, out
        self.began, self.limit = time.perf_counter(), limit
        self.result: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {}
        self.result |= {"kind": "gpu_speed", "provenance": provenance(str(device))}

    def left(self) -> float:
        """Seconds."""
        return self.limit - (time.perf_counter() - self.began)

    def row(self, rows: list[dict[str, Any]], about: dict[str, Any], measure: Callable[[], dict[str, Any]]) -> None:
        """Measure one thing, note it or what went wrong, and write the file."""
        row = dict(about)
        if self.left() <= 0:
            row["failed"] = "no time left"
        else:
            try:
                row |= measure()
            except Exception as error:
                lines = str(error).strip().splitlines() or [""]
                row["failed"] = f"{type(error).__name__}: {lines[0][:150]} ... {lines[-1][:150]}"
        rows.append(row)
        print(json.dumps(row), flush=True)
        self.write()

    def write(self) -> None:
        """The file as far as it goes."""
        write_text(self.out, json.dumps(self.result, indent=1) + "\n")
