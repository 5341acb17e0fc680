"""Pictures of the page for the docs: light, dark, on a phone, what the heads attend to, and a photograph that was read.

python benchmarks/screenshots.py     # writes docs/images/serve_*.png; needs Chromium, playwright and OpenCV
"""

from __future__ import annotations

import argparse
import io
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright

from mull.images import png
from mull.photo import render

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
COLOURS = 256
PUZZLE = "530070000600195000098000060800060003400803001700020006060000280000419005000080079"
DESKTOP, PHONE = {"width": 1120, "height": 800}, {"width": 390, "height": 844}


@contextmanager
def server() -> Iterator[str]:
    """The address of a server."""
    command = [sys.executable, "-m", "mull", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://[\w.:]+", process.stdout.readline())
            if found is None:
                raise RuntimeError("the server did not start")
            yield found[0]
        finally:
            process.terminate()
            process.wait(timeout=10)


def solved(page: Any, address: str, problem: str, seed: int) -> None:
    """Open a problem with the puzzle of a seed, and let it be solved."""
    page.goto(f"{address}/?seed={seed}#{problem}")
    page.wait_for_selector("html[data-ready]")
    page.click("#solve")
    page.wait_for_selector(".status.good, .status.warn", timeout=30_000)


def take(page: Any, name: str, folder: Path) -> None:
    """Write a picture, when nothing moves any more; a few colours are enough."""
    page.mouse.move(1, 1)
    page.wait_for_timeout(700)
    with Image.open(io.BytesIO(page.screenshot())) as image:
        few = image.convert("RGB").quantize(COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    few.save(folder / f"serve_{name}.png", optimize=True)


def main() -> None:
    """Take all pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=IMAGES)
    folder = parser.parse_args().out
    with server() as address, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])

        def page(size: dict[str, int], scheme: str, scale: int = 1) -> Any:
            options = {"color_scheme": scheme, "reduced_motion": "reduce", "device_scale_factor": scale}
            return browser.new_context(viewport=size, **options).new_page()

        light = page(DESKTOP, "light")
        solved(light, address, "sudoku", 11)
        half = int(light.get_attribute("#slider", "max")) // 2
        light.locator("#slider").fill(str(half))
        take(light, "light", folder)
        light.locator("#slider").fill(light.get_attribute("#slider", "max"))
        light.locator("[role=gridcell]").nth(40).click()
        light.wait_for_selector("#heads button")
        take(light, "attention", folder)
        dark = page(DESKTOP, "dark")
        solved(dark, address, "visual-sudoku", 8)
        take(dark, "dark", folder)
        others = ("nonogram-15", "nonogram", 4), ("shortest-path", "path", 3), ("sudoku-16x16", "16x16", 4)
        for problem, name, seed in others:
            board = page(DESKTOP, "light")
            solved(board, address, problem, seed)
            take(board, name, folder)
        reading = page(DESKTOP, "light")
        reading.goto(f"{address}/#sudoku-4x4")
        reading.wait_for_selector("html[data-ready]")
        photo, _ = render.photograph(np.array(list(map(int, PUZZLE))), "", np.random.default_rng(1), 0.6)
        reading.set_input_files("#file", {"name": "photo.png", "mimeType": "image/png", "buffer": png(photo)})
        reading.wait_for_selector("#photograph:not([hidden])", timeout=30_000)
        take(reading, "photo", folder)
        phone = page(PHONE, "light", scale=2)
        solved(phone, address, "sudoku", 5)
        take(phone, "phone", folder)
        browser.close()


if __name__ == "__main__":
    main()
