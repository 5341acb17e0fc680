"""Figures: a puzzle or its answer, the recurrences solving it, learning curves, accuracy against recurrences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mull.constraints import IntArray
from mull.files import atomic_path
from mull.picture import Circle, Line, Mark, Picture, Pixels, Rect, Role, Text
from mull.problem import Instance, Problem
from mull.solve import Solver

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

INK, FAINT, MODEL, WRONG = "#1b1f24", "#c9ced6", "#1f5fbf", "#c0392b"
PAPER = "#ffffff"
COLOURS: dict[Role, str] = {"ink": INK, "given": INK, "faint": FAINT, "paper": PAPER, "model": MODEL, "wrong": WRONG}
LINES = (MODEL, INK, WRONG, "#2e8b57", "#8e44ad", "#d68910", "#16a0b0", "#8d5524")
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
    pictures = [problem.picture(parsed := problem.parse(puzzle), problem.given_values(parsed))]
    problem.validate(parsed)
    instance, _ = solver.read(puzzle)
    history_SVD = solver.history(puzzle, steps)
    values_SV = history_SVD.argmax(axis=-1)
    checks = solver.verified(np.repeat(instance.inputs[None], len(values_SV), axis=0), values_SV)
    solved = int(checks.argmax()) + 1 if checks.any() else None
    columns = min(COLUMNS, max(2, int(WIDTH / pictures[0].width / LEGIBLE)))
    titles = ["puzzle"]
    for step in moments(solved or len(values_SV), 2 * columns - 1):
        pictures.append(problem.picture(instance, values_SV[step - 1], history_SVD[step - 1].max(axis=-1)))
        titles.append(f"{step} recurrence{'s' * (step != 1)}" + " – verified" * (step == solved))
    used = math.ceil(len(pictures) / 2) if len(pictures) > columns else len(pictures)
    width = max(WIDTH, 0.7 * LEGIBLE * columns * pictures[0].width) * max(used, 2) / columns
    _save(_panels(pictures, titles, used, width), path)


def drawing(problem: Problem, instance: Instance, path: Path, values: IntArray | None = None) -> None:
    """Draw one picture: an answer (V,), or, without one, the puzzle."""
    picture = problem.picture(instance, problem.given_values(instance) if values is None else values)
    _save(_panels([picture], [], 1, max(WIDTH / 2, 1.4 * LEGIBLE * picture.width)), path)


def photograph(solver: Solver, grey: NDArray[np.uint8], path: Path) -> None:
    """Draw the way from a square photograph to the answer: where the board is, flattened, as it was read, solved."""
    from mull.photo import read

    reading, problem = read(grey), solver.problem
    instance, answer = problem.parse(reading.givens), solver.solve(reading.givens)
    side = problem.variables().count ** 0.5
    outline = [(float(x), float(y)) for x, y in side / len(grey) * reading.corners]
    found = (_sheet(grey, side), Line((*outline, outline[0]), 0.12, "model"))
    pictures = [
        Picture(side, side, found),
        Picture(side, side, (_sheet(reading.flat, side),)),
        problem.picture(instance, problem.given_values(instance), reading.certainty),
    ]
    titles = ["found", "flattened", f"{int(instance.given.sum())} givens read"]
    if answer.values is not None:
        pictures.append(problem.picture(instance, answer.values))
        titles.append("solved" + " – verified" * answer.verified)
    _save(_panels(pictures, titles, len(pictures), WIDTH), path)


def _sheet(grey: NDArray[np.uint8], side: float) -> Pixels:
    return Pixels(0, 0, side, side, 255 - grey)


def moments(last: int, count: int) -> list[int]:
    """Up to `count` recurrences from 1 to `last`, close together at first, when most happens."""
    return sorted({round(step) for step in np.geomspace(1, last, count)})


def _panels(pictures: Sequence[Picture], titles: Sequence[str], columns: int, width: float) -> Figure:
    """Pictures of one size in rows, each below its title, in a figure of `width` inches."""
    from matplotlib.transforms import Affine2D

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
        at = Affine2D().scale(scale).translate(left, top) + axis.transData
        for order, mark in enumerate(picture.marks):  # later marks cover earlier ones, whatever they are
            _draw(axis, mark, 72 * scale, transform=at, zorder=order)
    return figure


def _draw(axis: Axes, mark: Mark, points: float, **where: Any) -> None:
    """One mark, with units of so many `points`; `where` tells matplotlib its place and its order."""
    from matplotlib.colors import to_rgba
    from matplotlib.lines import Line2D
    from matplotlib.patches import Circle as Disc
    from matplotlib.patches import Rectangle

    colour = to_rgba(COLOURS[mark.role], mark.opacity)
    match mark:
        case Line():
            ends: dict[str, Any] = {"solid_capstyle": "round", "solid_joinstyle": "miter"}
            x, y = zip(*mark.points, strict=True)
            axis.add_artist(Line2D(x, y, linewidth=mark.width * points, color=colour, **ends, **where))
        case Text():
            font: dict[str, Any] = {"fontsize": mark.size * points, "fontweight": "bold" if mark.bold else "normal"}
            baseline = mark.y + CAPITAL / 2 * mark.size
            axis.text(mark.x, baseline, mark.text, ha="center", color=colour, **font, **where)
        case Rect():
            axis.add_artist(Rectangle((mark.x, mark.y), mark.width, mark.height, fc=colour, ec="none", **where))
        case Circle():
            inside, width = (COLOURS["paper"], mark.width * points) if mark.width else (colour, 0.0)
            axis.add_artist(Disc((mark.x, mark.y), mark.radius, fc=inside, ec=colour, lw=width, **where))
        case Pixels():
            ink = np.tile(colour, (*mark.grey.shape, 1))
            ink[..., 3] *= mark.grey / 255
            extent = (mark.x, mark.x + mark.width, mark.y + mark.height, mark.y)
            axis.imshow(ink, extent=extent, aspect="auto", interpolation="bilinear", **where)


def learning_curve(rows: Sequence[dict[str, float]], path: Path) -> None:
    """Draw a training's loss and its accuracy on validation data from the rows of its log."""
    figure, axes = _figure(1, 2, WIDTH, 2.2)
    loss = [(row["step"], row["loss"]) for row in rows if "loss" in row]
    boards = [(row["step"], 100 * row["valid_board"]) for row in rows if "valid_board" in row]
    for axis, points, title in zip(axes.ravel(), (loss, boards), ("loss", "boards solved, %"), strict=True):
        axis.plot(*zip(*points, strict=True) if points else ([], []), color=MODEL, linewidth=1.2)
        _plain(axis, title, "updates")
    if loss:
        _logarithmic(axes.ravel()[0])
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


@dataclass(frozen=True)
class Panel:
    """Lines by name, each as points (x, y), over a logarithmic height unless that is in percent."""

    title: str
    below: str
    lines: Mapping[str, Sequence[tuple[float, float]]]
    both: bool = False
    """Whether x is logarithmic too."""
    percent: bool = False
    """A height from 0 to 100 instead."""


def line_panels(panels: Sequence[Panel], path: Path) -> None:
    """Draw panels of lines, up to three in a row; the first line of each is solid, the others are not."""
    columns = min(3, len(panels))
    rows = math.ceil(len(panels) / columns)
    figure, axes = _figure(rows, columns, WIDTH, 2.2 * rows)
    for axis in axes.ravel()[len(panels) :]:
        axis.set_axis_off()
    for axis, panel in zip(axes.ravel(), panels, strict=False):
        styles = zip(("o-", "s--", "^:", "d-.", "v-", "x--", "P-", "*:"), LINES, strict=True)
        for (name, points), (style, colour) in zip(panel.lines.items(), cycle(styles), strict=False):
            x, y = zip(*points, strict=True) if points else ([], [])
            axis.plot(x, y, style, color=colour, markersize=2.5, linewidth=1.0, label=name)
        if len(panel.lines) > 1:
            axis.legend(framealpha=0.8, edgecolor="none", fontsize=6)
        _plain(axis, panel.title, panel.below)
        if panel.percent:
            axis.set_ylim(-2, 102)
        else:
            _logarithmic(axis, panel.both)
    _save(figure, path)


def heat_maps(maps: Mapping[str, NDArray[np.uint8]], path: Path) -> None:
    """Draw matrices by name, such as what variables attend to, five in a row; dark is much."""
    columns = min(5, len(maps))
    rows = math.ceil(len(maps) / columns)
    figure, axes = _figure(rows, columns, WIDTH, 1.4 * rows)
    for axis in axes.ravel():
        axis.set_axis_off()
    for axis, (name, values) in zip(axes.ravel(), maps.items(), strict=False):
        axis.imshow(values, cmap="Greys", interpolation="nearest")
        axis.set_title(name, fontsize=6, color=INK)
    _save(figure, path)


def _logarithmic(axis: Axes, both: bool = False) -> None:
    """A logarithmic height with plain numbers at 1, 2 and 5; `both` axes if asked for, x with powers of two."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis.set_yscale("log")
    axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    scales: list[Axis] = [axis.yaxis]
    if both:
        axis.set_xscale("log", base=2)
        scales.append(axis.xaxis)
    for scale in scales:
        scale.set_minor_locator(NullLocator())
        scale.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


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
