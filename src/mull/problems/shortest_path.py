"""A shortest path between two nodes of a square grid, some of whose edges are removed.

The variables are the nodes, then the edges (numbered as `shortest_path_grid` says), each in the path (1) or not (0).
On a 4x4 grid that makes 16 + 24 = 40 tokens. `4x4 ends=3-9 removed=3-6-11-12-13-19-21-23` is one line of text: the
grid, the two end nodes, and the removed edges (left out if there are none). A path is written as its nodes:

    >>> problem = ShortestPath()
    >>> instance = problem.parse("4x4 ends=3-9 removed=3-6-11-12-13-19-21-23")
    >>> instance.inputs.tolist()[:4]  # node 3 is an end node
    [0, 0, 0, 1]
    >>> problem.write_answer(problem.solve(instance))
    '3-2-1-5-9'

The tokens are the paper's: 0 a node, 1 an end node, 2 a removed edge, 3 an edge. Where several paths are shortest, any
of them is right. The label is the one whose nodes, from the lesser end node on, come first in lexicographic order.

The paper gives labels to edges alone; here nodes have them too, so that an answer states every variable. The end nodes
and the removed edges are given: the inputs state their values.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mull.constraints import UNKNOWN, BoolArray, Cardinality, Constraint, IntArray
from mull.errors import InvalidInput
from mull.picture import FloatArray, Picture
from mull.problem import Instance, NumpyBatch, Problem, Symmetries, Tokens, Variables
from mull.problems.shortest_path_grid import FAR, OPEN, Grid, grid

NODE, END, REMOVED, EDGE = range(4)
LARGEST = 32
NUMBERS = r"\d{1,4}(?:-\d{1,4})*"
LINE = re.compile(rf"(\d{{1,2}})x(\d{{1,2}}) ends=(\d{{1,4}})-(\d{{1,4}})(?: removed=({NUMBERS})?)?", re.ASCII)


@dataclass(frozen=True)
class ShortestPath(Problem):
    """Find a shortest path between two nodes of an n x n grid without the removed edges."""

    one_solution = False
    text_format: ClassVar[str] = (
        "the grid, its two end nodes and the removed edges: '4x4 ends=3-9 removed=3-6-11-12-13-19-21-23'. Nodes are "
        "numbered row by row from 0; edges, the horizontal ones row by row, then the vertical ones column by column. "
        "Answer: the nodes of the path."
    )

    side: int = 4
    """Rows of the grid; it has side**2 nodes."""
    removed: int | None = None
    """Edges that `generate` removes; a third of them if not set."""

    def __post_init__(self) -> None:
        if not 2 <= self.side <= LARGEST:
            raise InvalidInput(f"a grid has side 2 to {LARGEST}, not {self.side}")
        if self.removed is not None and not 0 <= self.removed < self.grid.edges:
            raise InvalidInput(f"0 to {self.grid.edges - 1} edges can be removed, not {self.removed}")

    @property
    def grid(self) -> Grid:
        """The graph before edges are removed."""
        return grid(self.side)

    @property
    def name(self) -> str:
        return "shortest-path" if self.side == 4 else f"shortest-path-{self.side}"

    def variables(self) -> Variables:
        return Variables((self.grid.nodes + self.grid.edges,), values=2)

    def input_kind(self) -> Tokens:
        return Tokens(vocabulary=4)

    def constraints(self) -> tuple[Constraint, ...]:
        """Cardinalities alone, yet exact.

        By the degrees, the edges form a path between the end nodes and maybe cycles apart from it. That they are as
        many as the end nodes are apart leaves no edge for a cycle or a detour.
        """
        return self._fixed(), self._degrees(), self._touched(), self._passed(), self._length()

    def _fixed(self) -> Cardinality:
        """End nodes are in the path and removed edges are not."""

        def bounds(tokens: NDArray[Any]) -> tuple[IntArray, IntArray]:
            return (tokens == END).astype(np.int32), (tokens != REMOVED).astype(np.int32)

        labels = [f"node {node} is in the path if it is an end node" for node in range(self.grid.nodes)]
        labels += [f"edge {edge} is not in the path if it is removed" for edge in range(self.grid.edges)]
        return Cardinality(2, _true(np.arange(len(labels)))[:, None], bounds=bounds, labels=labels)

    def _degrees(self) -> Cardinality:
        """An end node has one edge in the path, another node at most two."""

        def bounds(tokens: NDArray[Any]) -> tuple[IntArray, IntArray]:
            is_end = tokens[:, : self.grid.nodes] == END
            return is_end.astype(np.int32), np.where(is_end, 1, 2)

        table = self.grid.edges_of
        atoms = np.where(table >= 0, _true(self.grid.nodes + table), -1)
        labels = [f"node {node} has at most 2 edges of the path, or 1 as an end node" for node in range(len(table))]
        return Cardinality(2, atoms, bounds=bounds, labels=labels)

    def _touched(self) -> Cardinality:
        """Both nodes of an edge in the path are in the path: never "edge" together with "not node"."""
        nodes, edges = self.grid.ends.ravel(), np.repeat(np.arange(self.grid.edges), 2)
        atoms = np.stack([_true(self.grid.nodes + edges), _false(nodes)], axis=1)
        labels = [f"node {node} is in the path if edge {edge} is" for node, edge in zip(nodes, edges, strict=True)]
        return Cardinality(2, atoms, upper=1, labels=labels)

    def _passed(self) -> Cardinality:
        """A node in the path that is no end has two edges in it: one at least, whichever other edge is left out."""
        rows, nodes = [], []
        for node, table in enumerate(self.grid.edges_of):
            edges = table[table >= 0]
            for left_out in edges:
                others = _true(self.grid.nodes + edges[edges != left_out])
                rows.append([_false(node), *others, *[-1] * (3 - len(others))])
                nodes.append(node)

        def bounds(tokens: NDArray[Any]) -> tuple[IntArray, IntArray]:
            return (tokens[:, nodes] != END).astype(np.int32), np.full((1, 1), 4)

        labels = [f"the path goes on from node {node} if it is no end node" for node in nodes]
        return Cardinality(2, np.array(rows), bounds=bounds, labels=labels)

    def _length(self) -> Cardinality:
        """The path has as many edges as the end nodes are apart."""

        def bounds(tokens: NDArray[Any]) -> tuple[IntArray, IntArray]:
            shortest = self.shortest(tokens)[:, None]
            impossible = self.grid.edges + 1  # no choice of edges has so many
            return np.where(shortest == FAR, impossible, shortest), np.where(shortest == FAR, 0, shortest)

        atoms = _true(self.grid.nodes + np.arange(self.grid.edges))[None]
        return Cardinality(2, atoms, bounds=bounds, labels=["the path has as few edges as possible"])

    def shortest(self, tokens_BV: NDArray[Any]) -> IntArray:
        """(B,): edges of a shortest path between the end nodes; FAR if there is none, or not two end nodes."""
        nodes_BN, edges_BE = np.split(tokens_BV, [self.grid.nodes], axis=1)
        return self._apart(nodes_BN == END, edges_BE == EDGE)

    def _apart(self, is_end_BN: BoolArray, open_BE: BoolArray) -> IntArray:
        start_B, goal_B = is_end_BN.argmax(axis=1), self.grid.nodes - 1 - is_end_BN[:, ::-1].argmax(axis=1)
        lengths_B = self.grid.distances(open_BE, start_B)[np.arange(len(goal_B)), goal_B]
        return np.where(is_end_BN.sum(axis=1) == 2, lengths_B, FAR)

    def given_values(self, instance: Instance) -> IntArray:
        return np.where(instance.inputs == END, 1, np.where(instance.inputs == REMOVED, 0, UNKNOWN))

    def right(self, batch: NumpyBatch, answers_BV: IntArray) -> BoolArray:
        return self.check(batch.inputs, answers_BV)

    def metrics(self, batch: NumpyBatch, answers_BV: IntArray) -> dict[str, float]:
        """The paper's three accuracies, which judge the edges alone.

        `path`: they form a path between the end nodes, through removed edges or not; `no_removed_edges`: none of them
        is removed; `shortest_path`: both, and no path is shorter.
        """
        nodes_BN, graph_BE = np.split(batch.inputs, [self.grid.nodes], axis=1)
        is_end_BN, edges_BE = nodes_BN == END, answers_BV[:, self.grid.nodes :] == 1
        degrees_BN, count_B = self.grid.degrees(edges_BE), edges_BE.sum(axis=1)
        fits = np.where(is_end_BN, degrees_BN == 1, (degrees_BN == 0) | (degrees_BN == 2)).all(axis=1)
        path = fits & (self._apart(is_end_BN, edges_BE) == count_B)  # more edges would be cycles
        intact = ~(edges_BE & (graph_BE == REMOVED)).any(axis=1)
        shortest = path & intact & (count_B == self.shortest(batch.inputs))
        accuracies = {"path": path, "no_removed_edges": intact, "shortest_path": shortest}
        return {name: float(right.mean()) for name, right in accuracies.items()}

    def solve(self, instance: Instance) -> IntArray:
        """The label of an instance: see the rule at the top."""
        start, goal = np.flatnonzero(instance.inputs[: self.grid.nodes] == END).tolist()
        path = self.grid.first_path(instance.inputs[self.grid.nodes :] == EDGE, start, goal)
        if path is None:
            raise InvalidInput(f"no path is left between the end nodes {start} and {goal}")
        return self.answer(path)

    def answer(self, path: list[int]) -> IntArray:
        """The values (V,) of a path, given as its nodes in order."""
        values = np.zeros(self.variables().count, dtype=np.int64)
        values[path] = 1
        values[[self.grid.nodes + self.grid.edge_between[step] for step in pairwise(path)]] = 1
        return values

    def instance(self, ends: tuple[int, int], removed: IntArray | list[int]) -> Instance:
        """The instance with these end nodes and removed edges, without its label."""
        tokens = np.repeat([NODE, EDGE], [self.grid.nodes, self.grid.edges]).astype(np.uint8)
        tokens[list(ends)] = END
        tokens[self.grid.nodes + np.asarray(removed, dtype=np.int64)] = REMOVED
        return Instance(tokens, given=(tokens == END) | (tokens == REMOVED))

    def generate(self, rng: np.random.Generator) -> Instance:
        """Random end nodes and removed edges, drawn anew until a path is left."""
        count = self.grid.edges // 3 if self.removed is None else self.removed
        while True:
            start, goal = rng.choice(self.grid.nodes, 2, replace=False).tolist()
            bare = self.instance((start, goal), rng.choice(self.grid.edges, count, replace=False))
            if self.shortest(bare.inputs[None])[0] != FAR:
                return replace(bare, solution=self.solve(bare))

    def symmetries(self) -> Symmetries:
        """Rotations and reflections of the grid."""
        return Symmetries((self.grid.symmetries,))

    def canonical(self, instance: Instance) -> bytes:
        """The least of the images under the symmetries."""
        images: NDArray[Any] = instance.inputs[self.grid.symmetries]
        return min(bytes(image.tobytes()) for image in images)

    def parse(self, text: str) -> Instance:
        found = LINE.fullmatch(text.strip())
        if found is None:
            raise InvalidInput(f"expected {self.side}x{self.side} ends=A-B removed=E-E-E, got {text.strip()[:60]!r}")
        height, width, start, goal = map(int, found.groups()[:4])
        removed = [int(edge) for edge in (found[5] or "").split("-") if edge]
        if (height, width) != (self.side, self.side):
            raise InvalidInput(f"expected a grid of {self.side}x{self.side}, got {height}x{width}")
        for what, numbers, count in (("node", [start, goal], self.grid.nodes), ("edge", removed, self.grid.edges)):
            for number in numbers:
                if number >= count:
                    raise InvalidInput(f"there is no {what} {number}: {what}s have the numbers 0 to {count - 1}")
            if len(set(numbers)) < len(numbers):
                twice = next(number for number in numbers if numbers.count(number) > 1)
                raise InvalidInput(f"{what} {twice} is named twice")
        instance = self.instance((start, goal), removed)
        if self.shortest(instance.inputs[None])[0] == FAR:
            raise InvalidInput(f"no path is left between the end nodes {start} and {goal}")
        return instance

    def write(self, instance: Instance) -> str:
        nodes, edges = np.split(instance.inputs, [self.grid.nodes])
        removed = _joined(np.flatnonzero(edges == REMOVED))
        line = f"{self.side}x{self.side} ends={_joined(np.flatnonzero(nodes == END))}"
        return f"{line} removed={removed}" if removed else line

    def write_answer(self, values: IntArray) -> str:
        """The nodes of the path in order; or, if it is none, all nodes and edges, `?` after those not known."""
        nodes, edges = np.split(np.asarray(values), [self.grid.nodes])
        path = self.grid.walk(edges == 1)
        if path is not None and np.array_equal(self.answer(path), values):
            return _joined(path)
        return f"nodes={_marked(nodes)} edges={_marked(edges)}"

    def parse_answer(self, text: str) -> IntArray:
        """The values (V,) of a path that is written as its nodes in order."""
        if re.fullmatch(NUMBERS, text.strip(), re.ASCII) is None:
            raise InvalidInput(f"expected the nodes of a path, A-B-C, got {text.strip()[:60]!r}")
        path = [int(node) for node in text.strip().split("-")]
        for step in pairwise(path):
            if step not in self.grid.edge_between:
                raise InvalidInput(f"no edge joins the nodes {step[0]} and {step[1]}")
        if len(path) < 2 or len(set(path)) < len(path):
            raise InvalidInput("a path has at least two nodes, and none of them twice")
        return self.answer(path)

    def render(self, values: IntArray, given: BoolArray | None = None) -> str:
        """The grid: `@` nodes and `---`, `|` edges of the path, `o` other nodes, `+` and `...` what is not known.

        Where `given` is passed, end nodes are bold, and a dot stands for each other edge that is not removed.
        """
        return self._drawn(values, np.ones(len(values), dtype=bool) if given is None else given, given is not None)

    def draw(self, instance: Instance, values: IntArray, styled: bool = False) -> str:
        return self._drawn(values, instance.given, styled)

    def _drawn(self, values: IntArray, given: BoolArray, styled: bool) -> str:
        nodes, edges = np.split(np.asarray(values), [self.grid.nodes])
        marks = [{1: "@", 0: "o"}.get(value, "+") for value in nodes.tolist()]
        if styled:
            marks = [f"\x1b[1m{mark}\x1b[0m" if bold else mark for mark, bold in zip(marks, given, strict=False)]
        left_open = (edges == 0) & ~given[self.grid.nodes :]
        return self.grid.draw(marks, np.where(left_open, OPEN, edges).tolist())

    def picture(
        self,
        instance: Instance,
        values: IntArray,
        sure: FloatArray | None = None,
        wrong: BoolArray | None = None,
    ) -> Picture:
        """The grid without its removed edges; the answer's nodes and edges, the bluer the surer; red if removed."""
        is_end, there = instance.inputs == END, instance.inputs != REMOVED
        if wrong is None:
            wrong = (is_end & (values == 0)) | (~there & (values == 1))
        shares = np.where(values == 1, 1.0 if sure is None else sure, 0.0)
        return self.grid.picture(shares, is_end, there, wrong)


def _true(variables: Any) -> Any:
    """The atoms "in the path" of variables."""
    return 2 * variables + 1


def _false(variables: Any) -> Any:
    """The atoms "not in the path" of variables."""
    return 2 * variables


def _joined(numbers: IntArray | list[int]) -> str:
    return "-".join(str(number) for number in numbers)


def _marked(values: IntArray) -> str:
    """Numbers of what is in the path, and with a `?` of what may be."""
    marks = [f"{number}{'?' * (value == UNKNOWN)}" for number, value in enumerate(values.tolist()) if value != 0]
    return "-".join(marks) or "none"
