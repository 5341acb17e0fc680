"""Boards as a camera might see them: rendered in some font, then bent, blurred, unevenly lit, noisy and compressed.

What the reader is trained on, and what the tests and the pictures of the docs show: no photograph is needed for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from mull.photo.find import BOX, SIDE, SQUARE, Points

Grey = NDArray[np.uint8]
Font = str
"""The name of a font's file; empty for the one that Pillow brings."""

CELL = 56
"""Pixels of a cell as it is drawn."""
GLYPH = 64
"""Pixels of a font's size when its digits are drawn once and kept."""
ODD = (
    *("d050000l", "symbol", "math", "emoji", "music", "icons", "awesome", "braille", "cmex", "cmsy", "cmmi"),
    *("stixnon", "stixsiz", "initials", "signwriting", "biolinumk", "breip", "thin", "hairline"),
)
"""Parts of names of fonts whose digits are no digits as people print them."""


def find_fonts(folders: Iterable[Path]) -> list[Font]:
    """The fonts in some folders that have digits, each look only once, in an order that depends on names alone."""
    found: dict[bytes, Font] = {}
    paths = [path for folder in folders for path in folder.rglob("*") if path.suffix.lower() in (".ttf", ".otf", ".t1")]
    for path in sorted(paths, key=lambda path: (path.name.lower(), str(path))):
        if any(word in path.name.lower().replace("-", "").replace("_", "") for word in ODD):
            continue
        try:
            masks, nothing = digits(str(path)), _glyph(_load(str(path)), "\uffff")
        except (OSError, ValueError):
            continue
        contents = {mask.tobytes() for mask in masks}
        if len(contents) == SIDE and nothing.tobytes() not in contents:
            found.setdefault(b"".join(mask.tobytes() for mask in masks), str(path))
    return list(found.values())


def _load(font: Font) -> Any:
    return ImageFont.truetype(font, GLYPH) if font else ImageFont.load_default(GLYPH)


def _glyph(font: Any, character: str) -> Grey:
    """A character's ink, cut to its outline."""
    sheet = Image.new("L", (3 * GLYPH, 3 * GLYPH))
    ImageDraw.Draw(sheet).text((GLYPH, GLYPH), character, fill=255, font=font)
    box = sheet.getbbox()
    if box is None or (box[3] - box[1]) < GLYPH // 4:
        raise ValueError("a font without this character")
    return np.asarray(sheet.crop(box), np.uint8)


@lru_cache(maxsize=2048)
def digits(font: Font) -> tuple[Grey, ...]:
    """The ink of 1 to 9."""
    loaded = _load(font)
    return tuple(_glyph(loaded, str(digit)) for digit in range(1, SIDE + 1))


def draw_board(tokens: NDArray[Any], font: Font, rng: np.random.Generator, margin: int = CELL) -> Grey:
    """A printed board (81 tokens, 0 for an empty cell): dark on light, with lines of some style, and some wear."""
    side = SIDE * CELL + 2 * margin
    paper = rng.uniform(190, 255)
    sheet = np.full((side, side), paper, np.float32)
    _shade(sheet, margin, rng)
    _rule(sheet, margin, rng)
    dark = rng.uniform(0.45, 1.0)  # coloured digits are lighter than black ones
    height, stretch, slant = rng.uniform(0.38, 0.78) * CELL, rng.uniform(0.85, 1.15), rng.normal(0, 0.03)
    aside = rng.normal(0, 0.03, 2) * CELL
    masks = digits(font)
    tallest = max(mask.shape[0] for mask in masks)
    for cell in np.flatnonzero(tokens):
        mask = masks[int(tokens[cell]) - 1]
        scale = height / tallest
        row, column = divmod(int(cell), SIDE)
        centre = np.array([column + 0.5, row + 0.5]) * CELL + margin + aside + rng.normal(0, 0.015, 2) * CELL
        _stamp(sheet, mask, centre, scale * stretch, scale, slant + rng.normal(0, 0.02), dark)
    _specks(sheet, rng)
    return np.clip(sheet, 0, 255).astype(np.uint8)


def _stamp(
    sheet: NDArray[np.float32], mask: Grey, centre: Any, across: float, down: float, angle: float, dark: float
) -> None:
    """Put ink around a point."""
    height, width = mask.shape
    cosine, sine = np.cos(angle), np.sin(angle)
    matrix = np.array([[across * cosine, -down * sine, 0], [across * sine, down * cosine, 0]], np.float64)
    reach = int(0.75 * CELL)
    low = np.floor(centre).astype(int) - reach
    matrix[:, 2] = centre - low - matrix[:, :2] @ [width / 2, height / 2]
    mask = cv2.GaussianBlur(mask, (0, 0), max(0.1, 0.4 / across))
    ink = cv2.warpAffine(mask, matrix, (2 * reach, 2 * reach), flags=cv2.INTER_LINEAR).astype(np.float32) / 255
    x, y = (int(value) for value in low)
    part = sheet[y : y + 2 * reach, x : x + 2 * reach]
    part *= 1 - dark * ink[: part.shape[0], : part.shape[1]]


def _shade(sheet: NDArray[np.float32], margin: int, rng: np.random.Generator) -> None:
    """Some boards have every other box, or some cells, on a darker ground."""
    kind = rng.random()
    if kind > 0.25:
        return
    tint, size = rng.uniform(0.75, 0.95), (BOX if kind < 0.18 else 1)
    for row in range(SIDE // size):
        for column in range(SIDE // size):
            if (row + column) % 2 if size == BOX else rng.random() < 0.3:
                y, x = margin + row * size * CELL, margin + column * size * CELL
                sheet[y : y + size * CELL, x : x + size * CELL] *= tint


def _rule(sheet: NDArray[np.float32], margin: int, rng: np.random.Generator) -> None:
    """The lines: thick ones around boxes, thin ones between cells, which may be light."""
    thin, thick = rng.uniform(0.5, 2.5), rng.uniform(1.5, 5.5)
    light, dark = rng.uniform(0.15, 0.9), rng.uniform(0.6, 1.0)
    frame = thick * rng.uniform(1, 1.6)
    ink = np.zeros_like(sheet)
    for place in range(SIDE + 1):
        whole = place % BOX == 0
        width = frame if place % SIDE == 0 else thick if whole else thin
        strength = dark if whole else light
        at = margin + place * CELL
        profile = strength * np.clip(width / 2 + 0.5 - np.abs(np.arange(len(sheet)) - at), 0, 1)
        inside = slice(max(0, int(margin - frame / 2)), int(margin + SIDE * CELL + frame / 2) + 1)
        ink[:, inside] = np.maximum(ink[:, inside], profile[:, None])
        ink[inside, :] = np.maximum(ink[inside, :], profile[None, :])
    sheet *= 1 - ink


def _specks(sheet: NDArray[np.float32], rng: np.random.Generator) -> None:
    """Dots, scratches, and on some boards soft stains and creases."""
    if rng.random() < 0.5:
        _stain(sheet, rng)
    for _ in range(rng.poisson(4)):
        x, y = (int(value) for value in rng.integers(0, len(sheet), 2))
        tone = float(rng.uniform(0.4, 0.95)) * float(sheet[y, x])
        if rng.random() < 0.6:
            cv2.circle(sheet, (x, y), int(rng.integers(1, 4)), tone, -1)
        else:
            dx, dy = (int(value) for value in rng.normal(0, 12, 2))
            cv2.line(sheet, (x, y), (x + dx, y + dy), tone, int(rng.integers(1, 3)))


def _stain(sheet: NDArray[np.float32], rng: np.random.Generator) -> None:
    """Smudges about as large as digits, and creases across the board: darker, a few lighter, and always soft."""
    ground = np.zeros_like(sheet)
    for _ in range(rng.poisson(8)):
        length = rng.uniform(0, 0.8) * CELL if rng.random() < 0.85 else rng.uniform(1, 6) * CELL
        angle = rng.uniform(0, 2 * np.pi)
        bend = np.cumsum(np.concatenate([[0.0], rng.normal(0, 0.4, 3)]))
        steps = np.stack([np.cos(angle + bend), np.sin(angle + bend)], axis=-1) * length / 4
        path = rng.uniform(0, len(sheet), 2) + np.concatenate([[[0.0, 0.0]], np.cumsum(steps, axis=0)])
        depth = float(rng.uniform(0.05, 0.4)) * (1 if rng.random() < 0.8 else -0.4)
        cv2.polylines(ground, [path.round().astype(np.int32)], False, depth, int(rng.integers(3, 16)))
    sheet *= 1 - cv2.GaussianBlur(ground, (0, 0), float(rng.uniform(1.5, 5)))


def worsen(image: Grey, cell: float, rng: np.random.Generator, amount: float = 1.0) -> Grey:
    """Blur, uneven light, noise and JPEG's traces; `cell` is the side of a cell in pixels, `amount` 1 the worst."""
    sheet = image.astype(np.float32)
    sheet = cv2.GaussianBlur(sheet, (0, 0), max(0.3, float(rng.uniform(0, 0.085 * amount)) * cell))
    if rng.random() < 0.25 * amount:
        length = 1 + 2 * round(float(rng.uniform(0, 0.07)) * cell)
        trace = np.zeros((length, length), np.float32)
        angle = rng.uniform(0, np.pi)
        for step in np.linspace(-1, 1, 4 * length):
            at = np.round((length // 2) * (1 + step * np.array([np.sin(angle), np.cos(angle)]))).astype(int)
            trace[tuple(at)] = 1
        sheet = cv2.filter2D(sheet, -1, trace / trace.sum())
    sheet = _light(sheet, rng, amount)
    sheet += rng.normal(0, rng.uniform(0, 9 * amount), sheet.shape).astype(np.float32)
    if rng.random() < 0.3:  # grains larger than a pixel
        coarse = rng.normal(0, rng.uniform(0, 10 * amount), tuple(max(2, side // 3) for side in sheet.shape))
        sheet += cv2.resize(coarse.astype(np.float32), sheet.shape[::-1], interpolation=cv2.INTER_CUBIC)
    quality = int(rng.uniform(95 - 65 * amount, 96))
    _, content = cv2.imencode(".jpg", np.clip(sheet, 0, 255).astype(np.uint8), [cv2.IMWRITE_JPEG_QUALITY, quality])
    return np.asarray(cv2.imdecode(content, cv2.IMREAD_GRAYSCALE), np.uint8)


def _light(sheet: NDArray[np.float32], rng: np.random.Generator, amount: float) -> NDArray[np.float32]:
    """Darker to one side, a soft shadow, a camera's range of grey."""
    y, x = np.mgrid[0 : sheet.shape[0], 0 : sheet.shape[1]].astype(np.float32)
    x, y = x / sheet.shape[1] - 0.5, y / sheet.shape[0] - 0.5
    angle, slope = rng.uniform(0, 2 * np.pi), rng.uniform(0, 0.6 * amount)
    light = 1 + slope * (np.cos(angle) * x + np.sin(angle) * y)
    if rng.random() < 0.3 * amount:
        angle, at, soft = rng.uniform(0, 2 * np.pi), rng.uniform(-0.3, 0.3), rng.uniform(0.01, 0.15)
        side = (np.cos(angle) * x + np.sin(angle) * y - at) / soft
        light *= 1 - rng.uniform(0.1, 0.5) / (1 + np.exp(-np.clip(side, -30, 30)))
    gain, lift = 1 - rng.uniform(0, 0.5 * amount), rng.uniform(0, 70 * amount)
    return np.asarray(sheet * light * gain + lift, np.float32)


def photograph(
    tokens: NDArray[Any], font: Font, rng: np.random.Generator, amount: float = 0.5, width: int = 800, height: int = 640
) -> tuple[Grey, Points]:
    """A whole photograph with a board somewhere in it, and the board's corners (4, 2)."""
    board = draw_board(tokens, font, rng)
    page = np.full((height, width), rng.uniform(40, 130), np.uint8)
    reach = 0.4 * min(width, height)
    centre = np.array([width, height]) / 2 + rng.normal(0, 0.02, 2) * reach
    angle = rng.normal(0, 0.08 * amount + 0.01)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    corners = ((SQUARE / 4.5 - 1) @ turn + rng.normal(0, 0.12 * amount, (4, 2)).clip(-0.15, 0.15)) * reach + centre
    edge = CELL
    matrix = cv2.getPerspectiveTransform(SQUARE * CELL + edge, corners.astype(np.float32))
    seen = cv2.warpPerspective(board, matrix, (width, height), flags=cv2.INTER_AREA)
    sheet = cv2.warpPerspective(np.full_like(board, 255), matrix, (width, height))
    page = np.where(sheet > 0, seen, page).astype(np.uint8)
    return worsen(page, 2 * reach / SIDE, rng, amount), corners.astype(np.float32)


def random_tokens(rng: np.random.Generator) -> NDArray[np.int64]:
    """Digits and empty cells as they fall: what a cell holds must not be guessed from the others."""
    return np.where(rng.random(SIDE * SIDE) < rng.uniform(0.3, 0.7), rng.integers(1, SIDE + 1, SIDE * SIDE), 0)


def flattened(tokens: NDArray[Any], fonts: Sequence[Font], rng: np.random.Generator, cell: int) -> Grey:
    """A board as `find.flatten` leaves one: worsened at a camera's size, and not quite where it should be."""
    board = draw_board(tokens, fonts[int(rng.integers(len(fonts)))], rng)
    size = float(np.exp(rng.uniform(np.log(13), np.log(48))))
    scale = size / CELL
    small = cv2.resize(board, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    small = worsen(small, size, rng, float(rng.uniform(0.1, 1)))
    scale = len(small) / len(board)
    jitter = rng.normal(0, rng.uniform(0, 0.06), (4, 2)).clip(-0.12, 0.12)
    corners = ((SQUARE + jitter) * CELL + CELL) * scale
    matrix = cv2.getPerspectiveTransform(corners.astype(np.float32), SQUARE * cell + cell / 2)
    side = (SIDE + 1) * cell
    flags = cv2.INTER_LINEAR if rng.random() < 0.7 else cv2.INTER_AREA
    return np.asarray(cv2.warpPerspective(small, matrix, (side, side), flags=flags), np.uint8)
