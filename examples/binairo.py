"""Binairo (Takuzu), stated in CPMpy: rules in, a trained solver out.

Fill a board with 0 and 1: every row and every column holds as many of each, and never three equal ones side by side.

    mull train examples/binairo.py:binairo --out runs/binairo
    mull export runs/binairo --out binairo.mull
    mull eval binairo.mull
    mull solve --model binairo.mull "$(python examples/binairo.py)"

Run as a script it prints a puzzle. Needs mull[train,exact]; `mull solve` does not.
"""

from __future__ import annotations

import cpmpy as cp
import numpy as np

from mull import Problem


def binairo(side: int = 6, distinct: bool = False) -> Problem:
    """A board of even side; with `distinct`, no two rows and no two columns are equal either."""
    cells = cp.boolvar(shape=(side, side), name="cell")
    model = cp.Model()
    for lines in (cells, cells.T):
        for line in lines:
            model += cp.sum(line) == side // 2
            for start in range(side - 2):
                three = cp.sum(line[start : start + 3])
                model += [three >= 1, three <= 2]
        if distinct:
            model += [cp.any(a != b) for i, a in enumerate(lines) for b in lines[:i]]
    return Problem.from_cpmpy(model, cells, name=f"binairo-{side}x{side}" + "-distinct" * distinct)


if __name__ == "__main__":
    problem = binairo()
    print(problem.write(problem.generate(np.random.default_rng())))
