"""Figures: a puzzle or its answer, the recurrences solving it, learning curves, accuracy against recurrences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mull.constraints import IntArray
from mull.files import atomic_path
from mull.picture import Circle, Line, Mark, Picture, Pixels, Rect, Role, Text
from mull.problem import Instance, Problem
from mull.solve import Solver

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, FAINT, MODEL, WRONG = "#1b1f24", "#c9ced6", "#1f5fbf", "#c0392b"
COLOURS: dict[Role, str] = {"ink": INK, "given": INK, "faint": FAINT, "paper": "white", "model": MODEL, "wrong": WRONG}
DPI = 200
WIDTH = 6.0
"""Inches; with DPI, 1200 pixels: the width of a README."""
COLUMNS = 4
"""Pictures in a row at most; there are up to two rows."""
LEGIBLE = 0.1
"""Inches of a cell below which fewer pictures stand in a row."""
MARGIN, GAP, TITLE = 0.05, 0.1, 0.24
"""Inches around all pictures, between two of them, and for the line above each."""
CAPITAL = 0.73
"""Height of digits and capitals in the font, as a share of its size."""


def recurrences(solver: Solver, puzzle: str, path: Path, steps: int | None = None) -> None:
    """Draw how a puzzle is solved: what the model believes after some of the recurrences.

    Givens are black; the others show the most likely value, the surer the clearer; what breaks a rule is red.
    """
    problem = solver.problem
    instance = problem.parse(puzzle)
    problem.validate(instance)
    pictures = [problem.picture(instance, problem.given_values(instance))]
    history_SVD = solver.history(puzzle, steps)
    values_SV = history_SVD.argmax(axis=-1)
    checks = problem.check(np.repeat(instance.inputs[None], len(values_SV), axis=0), values_SV)
    solved = int(checks.argmax()) + 1 if checks.any() else None
    columns = min(COLUMNS, max(2, int(WIDTH / pictures[0].width / LEGIBLE)))
    titles = ["puzzle"]
    for step in moments(solved or len(values_SV), 2 * columns - 1):
        pictures.append(problem.picture(instance, values_SV[step - 1], history_SVD[step - 1].max(axis=-1)))
        titles.append(f"{step} recurrence{'s' * (step != 1)}" + " – verified" * (step == solved))
    if len(pictures) > columns:
        columns = math.ceil(len(pictures) / 2)
    _save(_panels(pictures, titles, columns, max(WIDTH, 0.7 * LEGIBLE * columns * pictures[0].width)), path)


def drawing(problem: Problem, instance: Instance, path: Path, values: IntArray | None = None) -> None:
    """Draw one picture: an answer (V,), or, without one, the puzzle."""
    picture = problem.picture(instance, problem.given_values(instance) if values is None else values)
    _save(_panels([picture], [], 1, max(WIDTH / 2, 1.4 * LEGIBLE * picture.width)), path)


def moments(last: int, count: int) -> list[int]:
    """Up to `count` recurrences from 1 to `last`, close together at first, when most happens."""
    return sorted({round(step) for step in np.geomspace(1, last, count)})


def _panels(pictures: Sequence[Picture], titles: Sequence[str], columns: int, width: float) -> Figure:
    """Pictures of one size in rows, each below its title, in a figure of `width` inches."""
    rows, one = math.ceil(len(pictures) / columns), pictures[0]
    across = (width - 2 * MARGIN + GAP) / columns  # from one picture to the next
    scale = (across - GAP) / one.width
    above = TITLE if titles else MARGIN
    down = above + scale * one.height
    figure, axes = _figure(1, 1, width, rows * down + MARGIN)
    figure.set_layout_engine("none")
    axis: Axes = axes[0, 0]
    axis.set(position=(0, 0, 1, 1), xlim=(0, width), ylim=(figure.get_figheight(), 0))
    axis.set_axis_off()
    for place, picture in enumerate(pictures):
        row, column = divmod(place, columns)
        left, top = MARGIN + column * across, above + row * down
        if titles:
            middle = left + scale * picture.width / 2
            axis.text(middle, top - 0.06, titles[place], ha="center", va="baseline", fontsize=7, color=INK)
        for mark in picture.marks:
            _draw(axis, mark, left, top, scale)
    return figure


def _draw(axis: Axes, mark: Mark, left: float, top: float, scale: float) -> None:
    """One mark of a picture whose corner is at (left, top), with units of `scale` inches."""
    from matplotlib import patches
    from matplotlib.colors import to_rgba
    from matplotlib.lines import Line2D

    colour, points = to_rgba(COLOURS[mark.role], mark.opacity), 72 * scale
    order = len(axis.get_children())  # later marks cover earlier ones, whatever they are
    match mark:
        case Line():
            x, y = zip(*mark.points, strict=True)
            stroke: dict[str, Any] = {"linewidth": mark.width * points, "color": colour, "zorder": order}
            strokes = Line2D(left + scale * np.array(x), top + scale * np.array(y), **stroke)
            strokes.set(solid_capstyle="round", solid_joinstyle="miter")
            axis.add_line(strokes)
        case Text():
            size, middle = mark.size * points, top + scale * (mark.y + CAPITAL / 2 * mark.size)
            weight = "bold" if mark.bold else "normal"
            at = (left + scale * mark.x, middle)
            axis.text(*at, mark.text, ha="center", color=colour, fontsize=size, fontweight=weight, zorder=order)
        case Rect():
            corner = (left + scale * mark.x, top + scale * mark.y)
            sides = (scale * mark.width, scale * mark.height)
            axis.add_patch(patches.Rectangle(corner, *sides, facecolor=colour, edgecolor="none", zorder=order))
        case Circle():
            middle_xy = (left + scale * mark.x, top + scale * mark.y)
            inside = COLOURS["paper"] if mark.width else colour
            disc = patches.Circle(middle_xy, scale * mark.radius, facecolor=inside, edgecolor=colour, zorder=order)
            disc.set_linewidth(mark.width * points)
            axis.add_patch(disc)
        case Pixels():
            rgba = np.broadcast_to(np.array(colour), (*mark.grey.shape, 4)).copy()
            rgba[..., 3] *= mark.grey / 255
            x0, y0 = left + scale * mark.x, top + scale * mark.y
            extent = (x0, x0 + scale * mark.width, y0 + scale * mark.height, y0)
            axis.imshow(rgba, extent=extent, aspect="auto", interpolation="bilinear", zorder=order)


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
