"""SP4, the shortest paths of the semantic loss paper: 4x4 grids with 8 of 24 edges removed, 50 graphs in all.

A line of its file is `removed edges, end nodes, path, path...`, with every shortest path listed as its edges:

    21-12-6-19-23-11-13-3,3-9,2-1-15-16,2-18-4-16

As in the paper, the parts for training, validation and test share the 50 graphs; a graph with the same end nodes, or a
mirror image of it, is in one of them alone.
"""

from __future__ import annotations

import numpy as np

from mull.problem import Instance
from mull.problems.shortest_path import ShortestPath

PROBLEM = ShortestPath(side=4)


def to_csv(content: bytes) -> bytes:
    """The file as CSV with the columns `puzzle` and `solution`: of the listed paths, the one that is our label."""
    lines = ["puzzle,solution"]
    for line in content.decode().splitlines():
        instance, paths = read_line(line)
        lines.append(f"{PROBLEM.write(instance)},{PROBLEM.write_answer(PROBLEM.answer(min(paths)))}")
    return "\n".join(lines).encode()


def read_line(line: str) -> tuple[Instance, list[list[int]]]:
    """The instance, and its shortest paths as nodes in order, from the lesser end node on."""
    removed, ends, *listed = ([int(number) for number in part.split("-")] for part in line.split(","))
    paths = []
    for edges in listed:
        path = PROBLEM.grid.walk(np.isin(np.arange(PROBLEM.grid.edges), edges))
        if path is None:
            raise ValueError(f"the edges {edges} form no path")
        paths.append(path)
    return PROBLEM.instance((ends[0], ends[1]), removed), paths
