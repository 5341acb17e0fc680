"""Where the `mull` command starts: `mull solve` without any option needs no parser, and all else goes to `cli.py`.

Importing the parser takes more than a third of the time from start to answer.
"""

from __future__ import annotations

import os
import sys
from contextlib import closing

from mull.exits import guarded


def main(args: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    args = sys.argv[1:] if args is None else args
    if len(args) > 1 and args[0] == "solve" and not any(arg.startswith("-") for arg in args):
        return guarded(lambda: _solve(args[1:]))
    from mull.cli import main as parse

    return parse(args)


def _solve(puzzles: list[str]) -> int:
    """What `mull.cli.solve` does by default."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # unused here, and starting its threads takes 50 ms
    from mull.puzzle_files import all_puzzles
    from mull.solve import load
    from mull.terminal import print_answers

    solver = load()
    with closing(all_puzzles(puzzles, None)) as wanted:
        return 0 if print_answers(solver, wanted, as_json=False) else 1
