"""Finding a board of 9 x 9 cells in a photograph, and flattening it.

Outlines in thresholded images give candidates; what decides is how grid-like the image is inside each of them: ink
along the twenty lines of a board, and less of it beside them. The best ones are moved until their lines fit best.
Boards that lie on curved paper are straightened line by line afterwards.

Shapes: H height, W width, Q candidate. Points are (x, y). A board's own unit is one cell: its corners are 0 and 9.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

SIDE, BOX = 9, 3
FLAT = 64
"""Pixels of a cell in a flattened board."""
MARGIN = 0.5
"""Cells around a board that are flattened with it."""
LARGEST = 1000
"""Pixels of the longer side while searching: enough for lines, and fast."""
SMALLEST = 90
"""Pixels of the shorter side: with fewer, no digit can be read."""
SMALLEST_SHARE = 0.03
"""Of the image's area; a smaller outline is no board."""
GOOD, ENOUGH = 0.6, 0.45
"""Grid scores: above the first no further candidates are looked for, below the second nothing was found."""

Points = NDArray[np.float32]
Ink = NDArray[np.float32]

SQUARE = np.array([[0, 0], [SIDE, 0], [SIDE, SIDE], [0, SIDE]], np.float32)


def ink(grey: NDArray[np.uint8], cell: float) -> Ink:
    """How much darker each pixel is than the paper around it, 0 to 1; `cell` is the side of a cell in pixels."""
    size = 2 * round(0.35 * cell) + 1
    paper = cv2.morphologyEx(grey, cv2.MORPH_CLOSE, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (size, size)))
    paper = cv2.GaussianBlur(paper, (0, 0), 0.3 * cell).astype(np.float32)
    return np.asarray(np.clip((paper - grey) / np.maximum(paper, 1), 0, 1), np.float32)


def find_board(grey: NDArray[np.uint8]) -> tuple[Points, float]:
    """Corners (4, 2), clockwise, of what looks most like a board, and its grid score from 0 to 1."""
    best, score = np.zeros((4, 2), np.float32), 0.0
    if min(grey.shape) < SMALLEST:
        return best, score
    scale = min(1.0, LARGEST / max(grey.shape))
    small = cv2.resize(grey, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA) if scale < 1 else grey
    pad = round(0.06 * max(small.shape))  # a board may reach a little over the edge
    small = cv2.copyMakeBorder(small, pad, pad, pad, pad, cv2.BORDER_REPLICATE)
    quads = _distinct(list(_outlines(small)))
    if quads:
        best, score = _best(small, quads)
    if score < GOOD:
        others = [whole for quad in quads[:12] for whole in _as_part(quad)]
        if others:
            best, score = max((best, score), _best(small, others), key=lambda found: found[1])
    return ((best - pad) / scale).astype(np.float32), score


def _best(small: NDArray[np.uint8], quads: list[Points], refined: int = 4) -> tuple[Points, float]:
    """The candidate that scores best after its corners were moved to where they fit best."""
    cells = np.array([np.sqrt(cv2.contourArea(quad)) / SIDE for quad in quads])
    sheets = {size: ink(small, size) for size in {_round(cell) for cell in cells}}
    blurred = {size: cv2.GaussianBlur(sheet, (0, 0), 0.08 * size) for size, sheet in sheets.items()}
    rough = [grid_score(blurred[_round(cell)], quad) for quad, cell in zip(quads, cells, strict=True)]
    best, score, prize = quads[0], 0.0, 0.0
    for place in np.argsort(rough)[::-1][:refined]:
        size = _round(cells[place])
        quad = _refine(blurred[size], quads[place], 0.25)
        quad = _refine(cv2.GaussianBlur(sheets[size], (0, 0), 0.03 * size), quad, 0.08)
        got = grid_score(sheets[size], quad)
        preferred = got * cv2.contourArea(quad) ** 0.15  # of two boards, the larger one
        if preferred > prize:
            best, score, prize = quad, got, preferred
    return best, score


def _round(cell: float) -> float:
    """A few sizes of cells share one image of ink."""
    return float(max(6, 2 ** (round(2 * np.log2(max(cell, 1))) / 2)))


def _outlines(small: NDArray[np.uint8]) -> Iterator[Points]:
    """Quadrilaterals around connected ink, the largest first in every thresholded image."""
    longest = max(small.shape)
    smooth = cv2.GaussianBlur(small, (0, 0), 1.0)
    for share, offset in product((0.02, 0.05, 0.12), (3, 7)):
        block = 2 * round(share * longest / 2) + 1
        binary = cv2.adaptiveThreshold(smooth, 255, cv2.ADAPTIVE_THRESH_MEAN_C, cv2.THRESH_BINARY_INV, block, offset)
        for thick in (0, 3):
            sheet = cv2.dilate(binary, np.ones((thick, thick), np.uint8)) if thick else binary
            contours, _ = cv2.findContours(sheet, cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
            for contour in sorted(contours, key=lambda c: -cv2.contourArea(cv2.convexHull(c)))[:10]:
                yield from _quads(contour, SMALLEST_SHARE * small.size)


def _quads(contour: NDArray[Any], smallest: float) -> Iterator[Points]:
    """The quadrilaterals that describe an outline: its hull with the fewest corners, and its extreme points."""
    hull = cv2.convexHull(contour)
    if cv2.contourArea(hull) < smallest:
        return
    length = cv2.arcLength(hull, True)
    for share in (0.01, 0.02, 0.03, 0.05, 0.08, 0.12):
        simple = cv2.approxPolyDP(hull, share * length, True)
        if len(simple) == 4:
            yield _clockwise(simple.reshape(4, 2).astype(np.float32))
            break
    points = hull.reshape(-1, 2).astype(np.float32)
    total, difference = points.sum(axis=1), points[:, 0] - points[:, 1]
    places = [total.argmin(), difference.argmax(), total.argmax(), difference.argmin()]
    if len(set(places)) == 4:
        yield _clockwise(points[places])


def _clockwise(quad: Points) -> Points:
    """Clockwise as seen, from the corner nearest to the upper left of the image."""
    centre = quad.mean(axis=0)
    quad = quad[np.argsort(np.arctan2(*(quad - centre).T[::-1]))]
    return np.roll(quad, -int(quad.sum(axis=1).argmin()), axis=0)


def _distinct(quads: list[Points]) -> list[Points]:
    """Candidates that differ by more than a little, and are not too far from a square."""
    kept: list[Points] = []
    for quad in quads:
        sides = np.linalg.norm(quad - np.roll(quad, 1, axis=0), axis=1)
        if not cv2.isContourConvex(quad) or sides.min() < 0.3 * sides.max():
            continue
        if all(np.abs(quad - other).max() > 0.03 * sides.max() for other in kept):
            kept.append(quad)
    return kept


def _as_part(quad: Points) -> Iterator[Points]:
    """Whole boards of which a candidate is only a part, or which are a part of it: lines may be broken or too many."""
    spans = [(start, start + BOX) for start in (0, 3, 6)] + [(0, 6), (3, 9), (0, 7), (2, 9), (0, 8), (1, 9), (0, 9)]
    spans += [(0, 10), (-1, 9), (0, 11), (-2, 9)]
    for (left, right), (top, bottom) in product(spans, spans):
        shape = (right - left) / (bottom - top)
        if (left, right, top, bottom) == (0, SIDE, 0, SIDE) or not 0.7 < shape < 1.4:
            continue
        part = np.array([[left, top], [right, top], [right, bottom], [left, bottom]], np.float32)
        whole = cv2.perspectiveTransform(SQUARE[None], cv2.getPerspectiveTransform(part, quad))[0]
        if cv2.isContourConvex(whole) and np.abs(whole).max() < 10 * LARGEST:
            yield whole


@lru_cache
def _segments() -> tuple[Points, Points]:
    """Points (180, 9, 2) on the line of every side of every cell, and (2, 180, 9, 2) beside it."""
    along = (np.arange(9) + 0.5) / 9
    level = [np.stack([column + along, np.full(9, row)], axis=-1) for row in range(10) for column in range(9)]
    lines = np.array(level + [side[:, ::-1] for side in level], np.float32)
    across = np.zeros_like(lines)
    across[:90, :, 1] = across[90:, :, 0] = 0.2
    return lines, np.stack([lines - across, lines + across])


def _sample(sheet: Ink, quad: Points, points: Points) -> Ink:
    """The image at points that are given in cells of a board."""
    matrix = cv2.getPerspectiveTransform(SQUARE, quad)
    places = cv2.perspectiveTransform(points.reshape(1, -1, 2), matrix)[0]
    got = cv2.remap(sheet, places[:, None], None, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(got.reshape(points.shape[:-1]), np.float32)


def grid_score(sheet: Ink, quad: Points) -> float:
    """How much a quadrilateral of an image of ink looks like a board: 1 if every line stands out as most do."""
    lines, beside = _segments()
    stroke = np.median(_sample(sheet, quad, lines), axis=-1)
    paper = np.median(_sample(sheet, quad, beside), axis=-1).mean(axis=0)
    contrast = (stroke - paper) * _inside(sheet, quad, lines)
    usual = max(float(np.median(contrast)), 0.02)
    return float(np.clip(contrast / usual, -1, 1).mean()) * min(1.0, usual / 0.04)


def _inside(sheet: Ink, quad: Points, points: Points) -> NDArray[np.bool_]:
    """(180,): which sides of cells lie in the image."""
    places = cv2.perspectiveTransform(points.mean(axis=1)[None], cv2.getPerspectiveTransform(SQUARE, quad))[0]
    return np.asarray(((places >= 0) & (places < sheet.shape[::-1])).all(axis=-1))


def _refine(sheet: Ink, quad: Points, step: float) -> Points:
    """Move one corner at a time while more ink comes to lie on the lines; `step` is in cells."""
    lines, beside = _segments()
    cell = float(np.sqrt(max(cv2.contourArea(quad), 1.0))) / SIDE
    directions = np.array([(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, -1), (1, -1), (-1, 1)], np.float32)

    def fit(corners: Points) -> float:
        return float(_sample(sheet, corners, lines).mean() - 0.5 * _sample(sheet, corners, beside).mean())

    best, value = quad.copy(), fit(quad)
    while step > 0.015:
        moved = False
        for corner, direction in product(range(4), directions):
            other = best.copy()
            other[corner] += step * cell * direction
            got = fit(other)
            if got > value:
                best, value, moved = other, got, True
        step *= 1.0 if moved else 0.5
    return best


def flatten(grey: NDArray[np.uint8], corners: Points) -> NDArray[np.uint8]:
    """The board and its margin, seen from above, with its lines made straight."""
    edge = MARGIN * FLAT
    side = round(SIDE * FLAT + 2 * edge)
    matrix = cv2.getPerspectiveTransform(corners.astype(np.float32), SQUARE * FLAT + edge)
    shrink = np.sqrt(max(cv2.contourArea(corners.astype(np.float32)), 1.0)) / (SIDE * FLAT)
    if shrink > 1.5:  # a large photograph has to be smoothed before it is sampled more coarsely
        grey = cv2.GaussianBlur(grey, (0, 0), 0.35 * shrink)
    flat = cv2.warpPerspective(grey, matrix, (side, side), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    across, down = _bends(ink(flat, FLAT))
    y, x = np.mgrid[0:side, 0:side].astype(np.float32)
    unit_x, unit_y = (x - edge) / FLAT, (y - edge) / FLAT
    map_x, map_y = x + FLAT * _surface(across, unit_x, unit_y), y + FLAT * _surface(down, unit_x, unit_y)
    straight = cv2.remap(flat, map_x, map_y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(straight, np.uint8)


def _powers(x: Ink, y: Ink, degree: int = 3) -> NDArray[Any]:
    """Products of powers of coordinates in cells, brought to -1..1, on a last axis."""
    u, v = np.clip(x / 4.5 - 1, -1.05, 1.05), np.clip(y / 4.5 - 1, -1.05, 1.05)
    return np.stack([u**i * v**j for i in range(degree + 1) for j in range(degree + 1 - i)], axis=-1)


def _surface(weights: NDArray[Any], x: Ink, y: Ink) -> Ink:
    return np.asarray(_powers(x, y) @ weights, np.float32)


def _bends(sheet: Ink) -> tuple[NDArray[Any], NDArray[Any]]:
    """How far, in cells, lines lie from where they should be: weights of a cubic surface, across and down."""
    lines, _ = _segments()
    smooth = cv2.GaussianBlur(sheet, (0, 0), 0.03 * FLAT)
    offsets = np.arange(-0.24, 0.241, 0.02, dtype=np.float32)
    found = []
    for axis, own in ((0, slice(90, 180)), (1, slice(0, 90))):
        shifted = np.repeat(lines[None, own], len(offsets), axis=0)
        shifted[..., axis] += offsets[:, None, None]
        places = shifted * FLAT + MARGIN * FLAT
        got = cv2.remap(smooth, places.reshape(-1, 1, 2), None, cv2.INTER_LINEAR).reshape(places.shape[:-1])
        seen = np.median(got, axis=-1)  # (offset, segment)
        shift, weight = offsets[seen.argmax(axis=0)], np.clip(seen.max(axis=0) - np.median(seen, axis=0), 0, None)
        found.append(_robust_fit(lines[own].mean(axis=1), shift, weight))
    return found[0], found[1]


def _robust_fit(points: Points, shift: Ink, weight: Ink) -> NDArray[Any]:
    """Least squares that trusts outliers less and less."""
    terms = _powers(points[:, 0], points[:, 1])
    trust = weight + 1e-6
    weights = np.zeros(terms.shape[1])
    damping = 1e-3 * trust.sum() * np.eye(terms.shape[1])
    for _ in range(5):
        weights = np.linalg.solve(terms.T @ (trust[:, None] * terms) + damping, terms.T @ (trust * shift))
        trust = (weight + 1e-6) / (1 + ((terms @ weights - shift) / 0.04) ** 2)
    return weights
