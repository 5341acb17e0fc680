"""A square grid graph: numbering of nodes and edges, its symmetries, distances and paths, for whole batches at once.

Nodes are numbered row by row. Edges are numbered as in the SP4 file: for each row its horizontal edges from left to
right, then for each column its vertical ones from top to bottom.

Shapes: B batch, N node (side**2), E edge, K edge of one node (4; -1 fills up).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from mull.constraints import BoolArray, IntArray
from mull.picture import Circle, FloatArray, Line, Mark, Picture, Role, hairline

FAR = -1
"""The distance of a node that cannot be reached."""
OPEN = 2
"""How `Grid.draw` is told of an edge that is there but not in the path; 1 is in the path, 0 is none, else unknown."""

RADIUS, QUIET = 0.12, 0.5
"""Of a node in a picture, where neighbours are 1 apart; opacity of nodes and edges that are not in the path."""


@dataclass(frozen=True)
class Grid:
    """The grid with `side` rows of `side` nodes; get it from `grid`, which keeps its tables."""

    side: int

    @property
    def nodes(self) -> int:
        """Number of nodes (N)."""
        return self.side**2

    @property
    def edges(self) -> int:
        """Number of edges (E)."""
        return 2 * self.side * (self.side - 1)

    @cached_property
    def ends(self) -> IntArray:
        """(E, 2): the two nodes of each edge, the lesser first."""
        nodes = np.arange(self.nodes).reshape(self.side, self.side)
        level = np.stack([nodes[:, :-1].ravel(), nodes[:, 1:].ravel()], axis=1)
        upright = np.stack([nodes.T[:, :-1].ravel(), nodes.T[:, 1:].ravel()], axis=1)
        return np.concatenate([level, upright])

    @cached_property
    def edge_between(self) -> dict[tuple[int, int], int]:
        """The edge between two neighbours, in either order."""
        pairs = [(int(a), int(b)) for a, b in self.ends]
        return {key: edge for edge, (a, b) in enumerate(pairs) for key in ((a, b), (b, a))}

    @cached_property
    def neighbours(self) -> list[list[int]]:
        """The neighbours of each node in ascending order."""
        return [sorted(b for a, b in self.edge_between if a == node) for node in range(self.nodes)]

    @cached_property
    def edges_of(self) -> IntArray:
        """(N, 4): the edges of each node, -1 where the border has fewer."""
        table = np.full((self.nodes, 4), -1)
        for node, others in enumerate(self.neighbours):
            table[node, : len(others)] = [self.edge_between[node, other] for other in others]
        return table

    @cached_property
    def symmetries(self) -> IntArray:
        """(8, N + E): rotations and reflections as permutations of the nodes and, after them, the edges."""
        square = np.arange(self.nodes).reshape(self.side, self.side)
        rows = []
        for turned in (np.rot90(board, turns) for board in (square, square.T) for turns in range(4)):
            moved = turned.ravel()
            edges = [self.edge_between[int(moved[a]), int(moved[b])] for a, b in self.ends]
            rows.append(np.concatenate([moved, self.nodes + np.array(edges)]))
        return np.stack(rows)

    def degrees(self, edges_BE: BoolArray) -> IntArray:
        """(B, N): how many of the chosen edges each node has."""
        padded = np.concatenate([edges_BE, np.zeros((len(edges_BE), 1), dtype=bool)], axis=1)
        degrees: IntArray = padded[:, self.edges_of].sum(axis=-1)
        return degrees

    def distances(self, open_BE: BoolArray, start_B: IntArray) -> IntArray:
        """(B, N): edges on a shortest way from the start through open edges; FAR where there is none."""
        batch, side = len(open_BE), self.side
        level, upright = np.split(open_BE, 2, axis=1)
        level_BRC = level.reshape(batch, side, side - 1)
        upright_BRC = upright.reshape(batch, side, side - 1).swapaxes(1, 2)
        reached = np.zeros((batch, side, side), dtype=bool)
        reached.reshape(batch, -1)[np.arange(batch), start_B] = True
        distance = np.where(reached, 0, FAR)
        for step in range(1, self.nodes):
            new = np.zeros_like(reached)
            new[:, :, 1:] |= reached[:, :, :-1] & level_BRC
            new[:, :, :-1] |= reached[:, :, 1:] & level_BRC
            new[:, 1:] |= reached[:, :-1] & upright_BRC
            new[:, :-1] |= reached[:, 1:] & upright_BRC
            new &= ~reached
            if not new.any():
                break
            distance[new] = step
            reached |= new
        flat: IntArray = distance.reshape(batch, -1)
        return flat

    def first_path(self, open_E: BoolArray, start: int, goal: int) -> list[int] | None:
        """The nodes of the shortest path from start to goal that is least in lexicographic order, if there is one."""
        left = self.distances(open_E[None], np.array([goal]))[0].tolist()
        if left[start] == FAR:
            return None
        path = [start]
        while path[-1] != goal:
            here = path[-1]
            path.append(
                next(
                    node
                    for node in self.neighbours[here]
                    if left[node] == left[here] - 1 and open_E[self.edge_between[here, node]]
                )
            )
        return path

    def walk(self, edges_E: BoolArray) -> list[int] | None:
        """The nodes of the simple path that the chosen edges form, from its lesser end; None if they form none."""
        degrees = self.degrees(edges_E[None])[0]
        ends = np.flatnonzero(degrees == 1)
        if len(ends) != 2 or degrees.max() > 2:
            return None
        path = self.first_path(edges_E, int(ends[0]), int(ends[1]))
        return path if path is not None and len(path) == edges_E.sum() + 1 else None  # else there are cycles as well

    def draw(self, nodes: list[str], edges: list[int]) -> str:
        """The grid in text, from a mark for each node and the kind of each edge."""
        half, gaps = len(edges) // 2, self.side - 1
        level = [{1: "---", 0: "   ", OPEN: " . "}.get(kind, "...") for kind in edges[:half]]
        upright = [{1: "|", 0: " ", OPEN: "."}.get(kind, ":") for kind in edges[half:]]
        lines = []
        for row in range(self.side):
            joints = [*level[row * gaps : (row + 1) * gaps], ""]
            marks = nodes[row * self.side : (row + 1) * self.side]
            lines.append("".join(mark + joint for mark, joint in zip(marks, joints, strict=True)))
            if row < gaps:
                lines.append("   ".join(upright[row::gaps]))
        return "\n".join(line.rstrip() for line in lines)

    def picture(self, shares: FloatArray, end: BoolArray, there: BoolArray, wrong: BoolArray) -> Picture:
        """The grid, from what is known of each node and, after them, of each edge (N + E).

        `shares`: how surely it is in the path, 0 if it is not; `end`: an end node; `there`: not removed; `wrong`: red.
        """
        thin, margin = hairline(self.side), 2 * RADIUS
        at = [(margin + x, margin + y) for y in range(self.side) for x in range(self.side)]
        lines = [(at[a], at[b]) for a, b in self.ends.tolist()]
        roles: list[Role] = ["wrong" if bad else "model" for bad in wrong.tolist()]
        marks: list[Mark] = [Line(lines[edge], thin, opacity=QUIET) for edge in np.flatnonzero(there[self.nodes :])]
        for edge, share in enumerate(shares[self.nodes :].tolist()):
            if share > 0:
                marks.append(Line(lines[edge], RADIUS, roles[self.nodes + edge], share))
        for node, (x, y) in enumerate(at):
            if end[node]:
                marks.append(Circle(x, y, 1.5 * RADIUS, "wrong" if wrong[node] else "given"))
                continue
            marks.append(Circle(x, y, RADIUS, opacity=QUIET, width=thin))
            if shares[node] > 0:
                marks.append(Circle(x, y, RADIUS + thin / 2, roles[node], float(shares[node])))
        side = self.side - 1 + 2 * margin
        return Picture(side, side, tuple(marks))


@cache
def grid(side: int) -> Grid:
    """The grid of a side, made once."""
    return Grid(side)
