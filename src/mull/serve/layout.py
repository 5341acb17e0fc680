"""How a page lays a problem out: which kind of board, what its cells can show, and where its thick lines run."""

from __future__ import annotations

from typing import Any

import numpy as np

from mull.constraints import UNKNOWN
from mull.images import write_image
from mull.picture import Line
from mull.problem import Images, Instance, Problem
from mull.problems.nonogram import Nonogram
from mull.problems.shortest_path import ShortestPath
from mull.serve import digits


def layout(problem: Problem) -> dict[str, Any]:
    """JSON data: `kind` is board, images, nonogram, graph, or text for what has no board.

    Of images, `ink` has one of each digit from 0 to 9, for who cannot draw, and `blank` says that 0 is an empty cell.
    """
    variables = problem.variables()
    common: dict[str, Any] = {"shape": list(variables.shape), "count": variables.count}
    if isinstance(problem, ShortestPath):
        return {"kind": "graph", **common, "side": problem.side, "ends": problem.grid.ends.tolist()}
    if isinstance(problem, Nonogram):
        return {"kind": "nonogram", **common, "side": problem.side, "most": problem.width}
    if len(variables.shape) != 2:
        return {"kind": "text", **common}
    names = [problem.write_answer(np.array([value])) for value in range(variables.values)]
    kind = problem.input_kind()
    found = {"kind": "board", **common, "values": names, **_walls(problem)}
    if isinstance(kind, Images):
        found |= {"kind": "images", "cell": [kind.height, kind.width]}
        found |= {"blank": kind.givens, "ink": [write_image(image) for image in digits.examples()]}
    return found


def _walls(problem: Problem) -> dict[str, list[int]]:
    """Cells with a thick line on their right, and below them: taken from the problem's own picture."""
    (_, width), count = problem.variables().shape, problem.variables().count
    empty = Instance(np.zeros((count, *problem.input_kind().shape), np.uint8), np.zeros(count, dtype=bool))
    picture = problem.picture(empty, np.full(count, UNKNOWN))
    right, below = [], []
    for mark in picture.marks:
        if isinstance(mark, Line) and mark.role == "ink" and len(mark.points) == 2:
            (x, y), (other, _) = mark.points
            if x == other:
                right.append(int(y) * width + int(x) - 1)
            else:
                below.append((int(y) - 1) * width + int(x))
    return {"right": sorted(right), "below": sorted(below)}
