"""Shortest path: constraints and metrics against brute force, text, the SP4 file, and a short training."""

from __future__ import annotations

import gzip
import re
from dataclasses import replace
from itertools import combinations, pairwise, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.constraints import UNKNOWN, IntArray
from mull.data import sets
from mull.data.sp4 import read_line
from mull.data.streams import stream
from mull.errors import InvalidInput
from mull.problem import Batch, Instance, NumpyBatch
from mull.problems.shortest_path import EDGE, END, REMOVED, ShortestPath
from mull.testing import check_problem

SP4 = ShortestPath()
LINE = "4x4 ends=3-9 removed=3-6-11-12-13-19-21-23"


@pytest.mark.parametrize("problem", [ShortestPath(3), SP4, ShortestPath(12), ShortestPath(5, removed=0)], ids=str)
def test_it_keeps_the_contract(problem: ShortestPath) -> None:
    check_problem(problem)


def test_sizes_and_numbers_are_those_of_the_paper() -> None:
    for side, tokens in ((4, 40), (12, 408)):
        problem = ShortestPath(side)
        assert problem.variables().count == tokens and problem.input_kind().vocabulary == 4
        inputs = problem.generate(stream(0, "sizes")).inputs
        assert (inputs == END).sum() == 2 and 3 * (inputs == REMOVED).sum() == problem.grid.edges
        assert set(inputs[: side**2]) == {0, END} and set(inputs[side**2 :]) == {REMOVED, EDGE}
    assert SP4.grid.ends[[0, 3, 12, 15, 23]].tolist() == [[0, 1], [4, 5], [0, 4], [1, 5], [11, 15]]


# --- brute force, which shares no code with the problem


def edges_of(side: int) -> list[tuple[int, int]]:
    level = [(row * side + column, row * side + column + 1) for row in range(side) for column in range(side - 1)]
    return level + [
        (row * side + column, (row + 1) * side + column) for column in range(side) for row in range(side - 1)
    ]


def all_paths(side: int, removed: set[int], start: int, goal: int) -> list[tuple[int, ...]]:
    """Every simple path as its nodes."""
    kept = {pair for edge, pair in enumerate(edges_of(side)) if edge not in removed}
    found, waiting = [], [(start,)]
    while waiting:
        path = waiting.pop()
        if path[-1] == goal:
            found.append(path)
            continue
        for pair in kept:
            if path[-1] in pair:
                node = sum(pair) - path[-1]
                if node not in path:
                    waiting.append((*path, node))
    return found


def shortest_paths(side: int, removed: set[int], start: int, goal: int) -> list[tuple[int, ...]]:
    paths = all_paths(side, removed, start, goal)
    least = min(map(len, paths), default=0)
    return [path for path in paths if len(path) == least]


def edge_set(side: int, path: tuple[int, ...]) -> frozenset[int]:
    numbers = {pair: edge for edge, pair in enumerate(edges_of(side))}
    return frozenset(numbers[min(step), max(step)] for step in pairwise(path))


def answers(side: int, nodes_free: bool) -> IntArray:
    """All answers, or those in which the nodes are the ones that an edge in the path has."""
    edges = edges_of(side)
    choices = np.array(list(product((0, 1), repeat=len(edges))))
    if nodes_free:
        nodes = np.array(list(product((0, 1), repeat=side**2)))
        return np.hstack([np.repeat(nodes, len(choices), axis=0), np.tile(choices, (len(nodes), 1))])
    touched = [choices[:, [node in pair for pair in edges]].any(axis=1) for node in range(side**2)]
    return np.hstack([np.stack(touched, axis=1).astype(int), choices])


def some_graphs(side: int, count: int) -> list[tuple[set[int], int, int]]:
    """Graphs with few and many edges, and with end nodes that may not be connected."""
    rng = stream(side, "graphs")
    edges = len(edges_of(side))
    made = []
    for number in range(count):
        removed = rng.choice(edges, number % (edges // 2 + 1), replace=False).tolist()
        start, goal = sorted(rng.choice(side**2, 2, replace=False).tolist())
        made.append((set(removed), start, goal))
    return made


def every_graph_of_side_2() -> list[tuple[set[int], int, int]]:
    removals = [set(removed) for count in range(4) for removed in combinations(range(4), count)]
    return [(removed, *ends) for removed in removals for ends in combinations(range(4), 2)]


GRAPHS = [(2, *graph) for graph in every_graph_of_side_2()] + [(3, *graph) for graph in some_graphs(3, 40)]


def repeated(instance: Instance, count: int) -> NumpyBatch:
    inputs = np.repeat(instance.inputs[None], count, axis=0)
    given_BV = np.repeat(instance.given[None], count, axis=0)
    return Batch(inputs, np.zeros(inputs.shape, dtype=np.int64), given_BV, np.ones_like(given_BV))


def test_exactly_the_shortest_paths_pass_the_check() -> None:
    for side, removed, start, goal in GRAPHS:
        problem = ShortestPath(side)
        tried = answers(side, nodes_free=side == 2)
        batch = repeated(problem.instance((start, goal), sorted(removed)), len(tried))
        right = {(frozenset(path), edge_set(side, path)) for path in shortest_paths(side, removed, start, goal)}
        nodes = side**2
        passed = problem.right(batch, tried)
        found = {(frozenset(np.flatnonzero(a[:nodes])), frozenset(np.flatnonzero(a[nodes:]))) for a in tried[passed]}
        assert found == right, (side, removed, start, goal)
        assert passed.sum() == len(right)


def test_metrics_agree_with_brute_force() -> None:
    for side, removed, start, goal in GRAPHS:
        problem, nodes = ShortestPath(side), side**2
        tried = answers(side, nodes_free=False)
        batch = repeated(problem.instance((start, goal), sorted(removed)), len(tried))
        chosen = [frozenset(np.flatnonzero(a[nodes:])) for a in tried]
        paths = {edge_set(side, path) for path in all_paths(side, set(), start, goal)}
        shortest = {edge_set(side, path) for path in shortest_paths(side, removed, start, goal)}
        expected = {
            "path": [edges in paths for edges in chosen],
            "no_removed_edges": [not edges & removed for edges in chosen],
            "shortest_path": [edges in shortest for edges in chosen],
        }
        measured = problem.metrics(batch, tried)
        assert measured == {name: float(np.mean(right)) for name, right in expected.items()}
        for row in stream(0, "rows", side).integers(len(tried), size=8):  # means alone could hide what cancels out
            one = problem.metrics(batch[row : row + 1], tried[row : row + 1])
            assert one == {name: float(right[row]) for name, right in expected.items()}
        tried[:, :nodes] = 0  # the metrics judge edges alone
        assert problem.metrics(batch, tried) == measured


def test_partial_answers_break_only_what_no_completion_repairs() -> None:
    problem, complete = ShortestPath(2), answers(2, nodes_free=True)
    partial = np.array(list(product((UNKNOWN, 0, 1), repeat=8)))
    agrees = ((partial[:, None] == UNKNOWN) | (partial[:, None] == complete)).all(axis=-1)  # (partial, complete)
    for removed, start, goal in every_graph_of_side_2()[::5]:
        inputs = problem.instance((start, goal), sorted(removed)).inputs[None]
        for constraint in problem.constraints():
            broken = constraint.violations(partial, inputs)
            kept = ~constraint.violations(complete, inputs)
            assert not (broken & (agrees.astype(int) @ kept.astype(int) > 0)).any()


def test_the_label_is_the_first_shortest_path() -> None:
    for side, removed, start, goal in GRAPHS:
        problem = ShortestPath(side)
        paths = shortest_paths(side, removed, start, goal)
        instance = problem.instance((goal, start), sorted(removed))
        if paths:
            assert problem.write_answer(problem.solve(instance)) == "-".join(map(str, min(paths)))
        else:
            with pytest.raises(InvalidInput, match="no path is left"):
                problem.solve(instance)


def test_the_exact_solver_finds_every_shortest_path() -> None:
    from mull.count import count_solutions

    for side, removed, start, goal in GRAPHS[::7]:
        problem = ShortestPath(side)
        instance = problem.instance((start, goal), sorted(removed))
        found = count_solutions(problem, instance, limit=10, seconds=60)
        assert found == len(shortest_paths(side, removed, start, goal))


# --- symmetries, text


def test_symmetries_are_the_eight_of_the_square() -> None:
    table = SP4.grid.symmetries
    assert len(np.unique(table, axis=0)) == 8
    images = {tuple(row) for row in table.tolist()}
    assert {tuple(one[two]) for one in table for two in table} == images  # a group
    ends = {tuple(pair) for pair in SP4.grid.ends.tolist()}
    for row in table:
        for edge, (a, b) in enumerate(SP4.grid.ends):
            moved = tuple(SP4.grid.ends[row[16 + edge] - 16].tolist())
            assert moved in ends and set(moved) == {row[a], row[b]}


def test_text_and_drawing() -> None:
    instance = SP4.parse(LINE)
    answer = SP4.solve(instance)
    assert SP4.write(instance) == LINE and SP4.write_answer(answer) == "3-2-1-5-9"
    assert SP4.parse("4x4 ends=15-0").inputs.tolist() == SP4.parse(" 4x4 ends=0-15 removed=\n").inputs.tolist()
    assert (SP4.parse_answer("9-5-1-2-3") == answer).all()
    drawing = ["o   @---@---@", "    |", "o   @   o   o", "    |", "o   @   o   o", "", "o   o   o   o"]
    assert SP4.render(answer).splitlines() == drawing
    styled = SP4.draw(instance, answer, styled=True)
    assert styled.count("\x1b[1m@") == 2
    drawing = [
        "o . @---@---@",
        "    |   .",
        "o   @ . o . o",
        "    |       .",
        "o   @ . o . o",
        ".   .   .",
        "o . o . o   o",
    ]
    assert SP4.draw(instance, answer).splitlines() == drawing == re.sub(r"\x1b\[\d*m", "", styled).splitlines()
    assert SP4.write_answer(np.where(np.arange(40) < 1, UNKNOWN, 0)) == "nodes=0? edges=none"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ends=0-15", "expected 4x4 ends=A-B removed=E-E-E, got 'ends=0-15'"),
        ("4x4 ends=0-15 removed=1,2", "expected 4x4 ends=A-B"),
        ("4x4 ends=0-\u0661", "expected 4x4 ends=A-B"),
        ("5x5 ends=0-15", "expected a grid of 4x4, got 5x5"),
        ("4x4 ends=0-16", "there is no node 16: nodes have the numbers 0 to 15"),
        ("4x4 ends=3-3", "node 3 is named twice"),
        ("4x4 ends=0-15 removed=1-24", "there is no edge 24"),
        ("4x4 ends=0-15 removed=1-5-1", "edge 1 is named twice"),
        ("4x4 ends=0-15 removed=0-12", "no path is left between the end nodes 0 and 15"),
    ],
)
def test_bad_text_is_told_in_one_line(text: str, message: str) -> None:
    with pytest.raises(InvalidInput) as error:
        SP4.parse(text)
    assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"), [("0-2", "no edge joins"), ("0-1-0", "none of them twice"), ("3", "two nodes"), ("a", "A-B-C")]
)
def test_bad_answers_are_told(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        SP4.parse_answer(text)


@pytest.mark.parametrize(("side", "removed"), [(1, None), (33, None), (4, 24), (4, -1)])
def test_impossible_grids_are_refused(side: int, removed: int | None) -> None:
    with pytest.raises(InvalidInput):
        ShortestPath(side, removed)


NEARLY = st.from_regex(r"4x4 ends=[0-9]{1,2}-[0-9]{1,2} removed=[0-9]{1,2}(-[0-9]{1,2}){0,6}", fullmatch=True)


@given(st.text() | NEARLY | st.text("0123456789-x ends=removed,", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        instance = SP4.parse(text)
    except InvalidInput as error:
        complaint = str(error)
    else:
        complaint = ""
    if complaint:
        assert len(complaint.splitlines()) == 1
        return
    again = SP4.parse(SP4.write(instance))
    assert (again.inputs == instance.inputs).all() and (again.given == instance.given).all()
    assert SP4.check(instance.inputs[None], SP4.solve(instance)[None]).all()


@given(st.lists(st.integers(-1, 1), min_size=40, max_size=40))
def test_any_answer_can_be_written_and_drawn(values: list[int]) -> None:
    assert len(SP4.write_answer(np.array(values)).splitlines()) == 1
    assert len(SP4.render(np.array(values)).splitlines()) == 7


def test_what_is_written_to_a_file_can_be_read(tmp_path: Path) -> None:
    for problem in (SP4, ShortestPath(12)):
        batch = sets.load(f"{problem.name}_valid", 5)
        sets.write_csv(problem, batch, tmp_path / "paths.csv")
        read = sets.read_puzzles(tmp_path / "paths.csv")
        assert (read.inputs == batch.inputs).all() and (read.solution == batch.solution).all()


# --- the SP4 file


def test_the_file_lists_exactly_the_shortest_paths(external_data: Path) -> None:
    lines = gzip.decompress((external_data / "shortest_path/sp4_1610.data.gz").read_bytes()).decode().splitlines()
    assert len(lines) == 1610
    for line in lines:
        instance, listed = read_line(line)
        start, goal = np.flatnonzero(instance.inputs[:16] == END).tolist()
        removed = set(np.flatnonzero(instance.inputs[16:] == REMOVED).tolist())
        assert sorted(map(tuple, listed)) == sorted(shortest_paths(4, removed, start, goal)), line
        assert (SP4.answer(min(listed)) == SP4.solve(instance)).all()


def test_the_parts_of_sp4_share_no_class(external_data: Path) -> None:
    parts = {part: sets.load(f"sp4_{part}") for part in ("train", "valid", "test")}
    assert {part: len(batch) for part, batch in parts.items()} == {"train": 966, "valid": 322, "test": 322}
    keys = {
        part: {SP4.canonical(Instance(*row)) for row in zip(b.inputs, b.given, strict=True)}
        for part, b in parts.items()
    }
    for one, two in combinations(keys, 2):
        assert not keys[one] & keys[two]
    assert all(SP4.check(batch.inputs, batch.solution).all() for batch in parts.values())


# --- training


@pytest.mark.slow
def test_a_short_training_learns() -> None:
    import torch

    from mull.data.generated import generate
    from mull.evaluate import metrics
    from mull.predict import predict
    from mull.recipes import get_recipe
    from mull.runtime import TorchRuntime
    from mull.trainer import Trainer

    base, problem = get_recipe("shortest-path.paper"), ShortestPath(3, removed=2)
    settings = replace(base.training, updates=300, batch=32, recurrences=4, warmup=20, learning_rate=3e-3, ema=0.9)
    model = replace(base.model, width=64, dropout=0.0, embedding_std=0.5)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # so small a model only waits for a second one
    try:
        recipe = replace(base, problem=problem, model=model, training=settings)
        trainer = Trainer(recipe, generate(problem, "train", 1500), torch.device("cpu"))
        trainer.update()
        first = trainer.read_metrics()["loss"]
        while trainer.step < settings.updates:
            if trainer.step == settings.updates - 20:
                trainer.read_metrics()
            trainer.update()
        assert trainer.read_metrics()["loss"] < 0.5 * first
        valid = generate(problem, "valid", 200)
        scores = metrics(problem, predict(TorchRuntime(trainer.ema, problem), valid.inputs, [8])[0], valid)
    finally:
        torch.set_num_threads(threads)
    chance = max((valid.solution[~valid.given] == value).mean() for value in (0, 1))
    assert scores["solution_cell"] > chance + 0.01
    assert scores["no_removed_edges"] > 0.9 and scores["shortest_path"] > 0.2  # guesses hardly ever form a path
