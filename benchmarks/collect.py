"""Turn the folder of a training run into one result file: python benchmarks/collect.py runs/NAME [--out FILE]."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from mull.files import write_text

RESULTS = Path(__file__).parent / "results"
CURVE_POINTS = 100
"""Rows kept of a log besides the validated ones: enough to draw the curve."""


def collect(run: Path) -> dict[str, object]:
    """Recipe, provenance and learning curve of a run."""
    recipe = json.loads((run / "recipe.json").read_text())
    rows = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    every = max(1, len(rows) // CURVE_POINTS)
    kept = [row for place, row in enumerate(rows) if "valid_board" in row or place % every == 0]
    curve = [{key: round(value, 5) for key, value in row.items()} for row in kept]
    return {"kind": "training", "provenance": recipe.pop("provenance"), "recipe": recipe, "rows": curve}


def main() -> None:
    """Read the arguments and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    result = collect(arguments.run)
    recipe = result["recipe"]
    assert isinstance(recipe, dict)
    out = arguments.out or RESULTS / f"{recipe['name']}.train.json"
    write_text(out, json.dumps(result, indent=1) + "\n")
    print(f"wrote {out}")


if __name__ == "__main__":
    main()
