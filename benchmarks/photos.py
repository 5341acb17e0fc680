"""How many photographs of printed boards are read without a mistake: the 80 labelled ones under $MULL_DATA/photos.

They are in two parts: every fourth by name is for development (the finder of boards and the
augmentation of the reader's training were tuned on them), the others are the test. No digit of either was trained on.

    python benchmarks/photos.py                       # writes benchmarks/results/photos.json
    python benchmarks/photos.py --part development    # while changing something; writes nothing
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from mull import photo
from mull.errors import UserError
from mull.files import write_text
from mull.photo.reader import GRAPH, WEIGHTS
from mull.provenance import provenance

RESULTS = Path(__file__).parent / "results"
DEVELOPMENT = (
    *("image1003.jpg", "image1024.jpg", "image1045.jpg", "image1059.jpg", "image1076.jpg", "image109.jpg"),
    *("image119.jpg", "image126.jpg", "image147.jpg", "image157.jpg", "image162.jpg", "image172.jpg", "image176.jpg"),
    *("image195.jpg", "image209.jpg", "image36.jpg", "image56.jpg", "image73.jpg", "image8.jpg", "image85.jpg"),
)
"""Every fourth of the sorted names, fixed before anything was measured: names go by camera, so both parts have all."""
NEAR = 0.5
"""A board counts as found if each of its corners is within this many cells of the labelled one."""


def labels(folder: Path) -> list[dict[str, str]]:
    """The labelled photographs, by name."""
    with (folder / "labels.csv").open(newline="") as file:
        return sorted(csv.DictReader(file), key=lambda row: row["file"])


def corner_error(corners: np.ndarray, wanted: str) -> float | None:
    """The farthest corner from its labelled place, in cells, whichever corner comes first; None without a label."""
    if not wanted:
        return None
    points = np.array(wanted.split(), float).reshape(4, 2)
    cell = np.linalg.norm(points - np.roll(points, 1, axis=0), axis=1).mean() / 9
    return float(min(np.linalg.norm(np.roll(corners, k, axis=0) - points, axis=1).max() for k in range(4)) / cell)


def measure(folder: Path, row: dict[str, str]) -> dict[str, Any]:
    """What became of one photograph. Wrong digits are givens misread or missed; wrong cells count empty ones too."""
    puzzle = np.array(list(map(int, row["puzzle"])))
    result: dict[str, Any] = {"file": row["file"], "part": part(row["file"])}
    began = time.perf_counter()
    try:
        got = photo.read(folder / row["file"])
    except UserError as error:
        error_line = str(error).replace(str(folder), "photos")
        failed = {"found": False, "digits_wrong": int((puzzle > 0).sum()), "cells_wrong": 81, "cells_wrong_as_read": 81}
        return {**result, **failed, "error": error_line, "seconds": round(time.perf_counter() - began, 3)}
    seconds = time.perf_counter() - began
    off = corner_error(got.corners, row["corners_xy"])
    read, plain = (np.array(list(map(int, text))) for text in (got.givens, got.as_read))
    wrong = np.flatnonzero(read != puzzle)
    return {
        **result,
        "found": off is None or off < NEAR,
        "corner_error_cells": None if off is None else round(off, 3),
        "score": round(got.score, 3),
        "givens": int((puzzle > 0).sum()),
        "digits_wrong": int(((read != puzzle) & (puzzle > 0)).sum()),
        "cells_wrong": len(wrong),
        "cells_wrong_as_read": int((plain != puzzle).sum()),
        "mistakes": [f"row {c // 9 + 1} column {c % 9 + 1}: {read[c]}, not {puzzle[c]}" for c in wrong.tolist()],
        "repaired": [str(change) for change in got.changes],
        "solutions": got.solutions,
        "least_certain": round(float(got.certainty.min()), 4),
        "seconds": round(seconds, 3),
    }


def part(name: str) -> str:
    """Which part a photograph belongs to."""
    return "development" if name in DEVELOPMENT else "test"


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Totals over photographs."""
    seconds = [row["seconds"] for row in rows]
    return {
        "photos": len(rows),
        "found": sum(row["found"] for row in rows),
        "right": sum(row["found"] and not row["cells_wrong"] for row in rows),
        "right_as_read": sum(row["found"] and not row["cells_wrong_as_read"] for row in rows),
        "cells_wrong": sum(row["cells_wrong"] for row in rows if row["found"]),
        "seconds_median": float(np.median(seconds)),
        "seconds_most": float(max(seconds)),
    }


def main() -> None:
    """Measure, list what fails, and write the result file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("development", "test"), help="one part only; writes nothing without --out")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    folder = Path(os.environ.get("MULL_DATA", "~/.cache/mull")).expanduser() / "photos"
    photo.read(folder / DEVELOPMENT[0])  # loading the network is not timed
    chosen = [row for row in labels(folder) if arguments.part in (None, part(row["file"]))]
    rows = []
    for row in chosen:
        rows.append(measure(folder, row))
        if not rows[-1]["found"] or rows[-1]["cells_wrong"] or rows[-1]["repaired"]:
            print(json.dumps(rows[-1]), flush=True)
    names = (arguments.part,) if arguments.part else ("development", "test", "all")
    parts = {name: [row for row in rows if name in (row["part"], "all")] for name in names}
    result = {
        "kind": "photos",
        "provenance": provenance(),
        "data": "photos",
        "reader_bytes": GRAPH.stat().st_size + WEIGHTS.stat().st_size,
        "summary": {name: summary(some) for name, some in parts.items()},
        "photos": rows,
    }
    print(json.dumps(result["summary"], indent=1))
    out = arguments.out or (None if arguments.part else RESULTS / "photos.json")
    if out is not None:
        write_text(out, json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
