"""The result files that the blocks of `report.py` are written from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
NOT_YET = "Not measured yet."


def result(name: str) -> dict[str, Any]:
    """A result file's content."""
    content: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return content


def maybe(name: str) -> dict[str, Any] | None:
    """The same, or None if nobody has measured that yet."""
    return result(name) if (RESULTS / f"{name}.json").exists() else None
