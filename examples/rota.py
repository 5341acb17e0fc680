"""A rota, stated in CPMpy: who works early, late or at night, day by day, for a week.

Six workers by seven days; 0 is a day off, 1 early, 2 late, 3 night. Every shift of every day has one worker, nobody
works more than four days or nights more than twice, and after a late or a night shift nobody is early the next day.
Some wishes are fixed and the rest is to be filled in: any rota that keeps the rules will do.

    mull train examples/rota.py:rota --out runs/rota
    mull export runs/rota --out rota.mull
    mull solve --model rota.mull "$(python examples/rota.py)"

Run as a script it prints wishes. Needs mull[train,exact]; `mull solve` does not.
"""

from __future__ import annotations

from itertools import pairwise

import cpmpy as cp
import numpy as np

from mull import Problem

OFF, EARLY, LATE, NIGHT = range(4)


def rota(workers: int = 6, days: int = 7) -> Problem:
    """The rules as a problem; wishes for 8 to 20 of the worker's days are given."""
    shift = cp.intvar(OFF, NIGHT, shape=(workers, days), name="shift")
    model = cp.Model()
    for day in range(days):
        model += [cp.Count(shift[:, day], kind) == 1 for kind in (EARLY, LATE, NIGHT)]
    for week in shift:
        model += cp.sum(week != OFF) <= 4
        model += cp.Count(week, NIGHT) <= 2
        model += [(today >= LATE).implies(tomorrow != EARLY) for today, tomorrow in pairwise(week)]
    return Problem.from_cpmpy(model, shift, name="rota", givens=(8, 20), one_solution=False)


if __name__ == "__main__":
    problem = rota()
    print(problem.write(problem.generate(np.random.default_rng())))
