"""Pictures: the recurrences solving a board, learning curves, accuracy against recurrences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mull.constraints import UNKNOWN, BoolArray, IntArray
from mull.errors import InvalidInput
from mull.files import atomic_path
from mull.problem import Instance, Problem
from mull.runtime import FloatArray
from mull.solve import Solver

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, FAINT, MODEL, WRONG, WRONG_FILL = "#1b1f24", "#c9ced6", "#1f5fbf", "#c0392b", "#fbe3df"
PANELS = 7
"""Boards after some recurrence, beside the puzzle itself."""
DPI = 200
WIDTH = 6.0
"""Inches; with DPI, 1200 pixels: the width of a README."""


def recurrences(solver: Solver, puzzle: str, path: Path, steps: int | None = None) -> None:
    """Draw how a board is solved: what the model believes after some of the recurrences.

    Givens are black; the others show the most likely value, the surer the larger and darker; red cells break a rule.
    """
    problem = solver.problem
    shape = problem.variables().shape
    if len(shape) != 2:
        raise InvalidInput(f"only boards can be drawn, and {problem.name} is none")
    instance = problem.parse(puzzle)
    problem.validate(instance)
    history_SVD = solver.history(puzzle, steps)
    checks = problem.check(np.repeat(instance.inputs[None], len(history_SVD), axis=0), history_SVD.argmax(axis=-1))
    solved = int(checks.argmax()) + 1 if checks.any() else None
    shown = moments(solved or len(history_SVD), PANELS)
    columns = math.ceil((len(shown) + 1) / 2) if len(shown) > 3 else len(shown) + 1
    rows = math.ceil((len(shown) + 1) / columns)
    figure, axes = _figure(rows, columns, WIDTH, WIDTH / columns * rows * (1.12 * shape[0] / shape[1]))
    size = 0.66 * 72 * WIDTH / columns / shape[1]
    panels = axes.ravel().tolist()
    for axis in panels[len(shown) + 1 :]:
        axis.set_axis_off()
    for axis, step in zip(panels, [0, *shown], strict=False):
        _board(axis, problem, instance, history_SVD[step - 1] if step else None, size)
        title = f"{step} recurrence{'s' * (step != 1)}" if step else "puzzle"
        axis.set_title(title + (" – verified" if step == solved else ""), fontsize=7, color=INK, pad=4)
    _save(figure, path)


def moments(last: int, count: int) -> list[int]:
    """Up to `count` recurrences from 1 to `last`, close together at first, when most happens."""
    return sorted({round(step) for step in np.geomspace(1, last, count)})


def _board(axis: Axes, problem: Problem, instance: Instance, belief_VD: FloatArray | None, size: float) -> None:
    """One board, with characters of `size` points; without a belief, its givens alone."""
    width = problem.variables().shape[1]
    given = problem.given_values(instance)
    values = given if belief_VD is None else belief_VD.argmax(axis=-1)
    sure = np.ones(len(given)) if belief_VD is None else belief_VD.max(axis=-1)
    bad = _broken(problem, instance, values)
    _grid(axis, problem)
    for cell, value in enumerate(values.tolist()):
        row, column = divmod(cell, width)
        if bad[cell]:
            axis.add_patch(_square(column, row))
        if value == UNKNOWN:
            continue
        is_given = given[cell] != UNKNOWN
        share = 1.0 if is_given else float(sure[cell])
        axis.text(
            column + 0.5,
            row + 0.53,
            problem.write_answer(np.array([value])),
            ha="center",
            va="center",
            color=WRONG if bad[cell] else INK if is_given else MODEL,
            alpha=0.25 + 0.75 * share,
            fontsize=size * (0.45 + 0.55 * share),
            fontweight="bold" if is_given else "normal",
        )


def _grid(axis: Axes, problem: Problem) -> None:
    """An empty board: lines between cells, thick ones where neighbours share fewer constraints than others do."""
    height, width = problem.variables().shape
    axis.set(xlim=(-0.04, width + 0.04), ylim=(height + 0.04, -0.04), aspect="equal", xticks=[], yticks=[])
    for side in axis.spines.values():
        side.set_visible(False)
    cells, shared = problem.variables().index, _shared(problem)
    upright = shared[cells[:, :-1], cells[:, 1:]]
    level = shared[cells[:-1], cells[1:]]
    most = max(upright.max(initial=0), level.max(initial=0))
    thin: dict[str, Any] = {"color": FAINT, "linewidth": 0.4, "zorder": 2}
    thick: dict[str, Any] = {"color": INK, "linewidth": 0.9, "zorder": 3}
    for row, column in np.ndindex(upright.shape):
        axis.plot([column + 1] * 2, [row, row + 1], **thick if upright[row, column] < most else thin)
    for row, column in np.ndindex(level.shape):
        axis.plot([column, column + 1], [row + 1] * 2, **thick if level[row, column] < most else thin)
    axis.plot([0, width, width, 0, 0], [0, 0, height, height, 0], **thick)


def _shared(problem: Problem) -> IntArray:
    """(V, V): how many groups two variables share."""
    scopes = [scope for constraint in problem.constraints() for scope in constraint.scopes()]
    member = np.zeros((len(scopes), problem.variables().count), dtype=np.int64)
    for group, scope in enumerate(scopes):
        member[group, scope] = 1
    shared: IntArray = member.T @ member
    return shared


def _square(column: int, row: int) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((column, row), 1, 1, facecolor=WRONG_FILL, edgecolor="none", zorder=1)


def _broken(problem: Problem, instance: Instance, values: IntArray) -> BoolArray:
    """(V,): variables whose value another variable of a broken group has too, or that contradict the givens."""
    bad = np.zeros(len(values), dtype=bool)
    for _, scope in problem.conflicts(instance.inputs, values):
        own = values[scope]
        twice = (own[:, None] == own[None, :]).sum(axis=1) > 1
        bad[scope] |= twice if len(scope) > 1 else True
    given = problem.given_values(instance)
    altered: BoolArray = instance.given & (values != given)
    return (bad & ~instance.given) | altered


def learning_curve(rows: Sequence[dict[str, float]], path: Path) -> None:
    """Draw a training's loss and its accuracy on validation data from the rows of its log."""
    figure, axes = _figure(1, 2, WIDTH, 2.2)
    loss = [(row["step"], row["loss"]) for row in rows if "loss" in row]
    boards = [(row["step"], 100 * row["valid_board"]) for row in rows if "valid_board" in row]
    for axis, points, title in zip(axes.ravel(), (loss, boards), ("loss", "boards solved, %"), strict=True):
        axis.plot(*zip(*points, strict=True) if points else ([], []), color=MODEL, linewidth=1.2)
        _plain(axis, title, "updates")
    if loss:
        axes.ravel()[0].set_yscale("log")
    _save(figure, path)


def accuracy_by_steps(result: dict[str, Any], path: Path) -> None:
    """Draw an evaluation's accuracies against the number of recurrences."""
    figure, axes = _figure(1, 1, WIDTH * 0.6, 2.4)
    axis = axes.ravel()[0]
    steps = sorted(result["steps"], key=int)
    for metric, colour in (("whole_board", MODEL), ("whole_cell", INK)):
        shares = [100 * result["steps"][step][metric] for step in steps]
        axis.plot([int(step) for step in steps], shares, "o-", color=colour, markersize=3, linewidth=1.2, label=metric)
    axis.set_xscale("log", base=2)
    axis.set_xticks([int(step) for step in steps], steps)
    axis.legend([name.replace("_", " ") for name in ("whole_board", "whole_cell")], frameon=False, fontsize=7)
    _plain(axis, "accuracy, %", "recurrences")
    _save(figure, path)


def _plain(axis: Axes, title: str, below: str) -> None:
    axis.set_title(title, fontsize=8, color=INK, loc="left")
    axis.set_xlabel(below, fontsize=7)
    axis.tick_params(labelsize=7, color=FAINT)
    axis.grid(color=FAINT, linewidth=0.4)
    axis.spines[["top", "right"]].set_visible(False)


def _figure(rows: int, columns: int, width: float, height: float) -> tuple[Figure, Any]:
    """A white figure that belongs to no window."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=DPI, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False)


def _save(figure: Figure, path: Path) -> None:
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format=path.suffix.lstrip(".").lower() or "png")
