"""Chromium for the tests of the page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PHONE = {"width": 390, "height": 844, "has_touch": True, "is_mobile": True}
WAIT = 20_000
"""Milliseconds that something on the page may take."""


@contextmanager
def launched() -> Iterator[Any]:
    """A browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        one = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield one
        one.close()


class Visits:
    """Opens the page; at the end, nothing may have gone wrong in it, and nothing been asked of another host."""

    def __init__(self, browser: Any, address: str) -> None:
        self.address, self._browser, self._contexts = address, browser, list[Any]()
        self._troubles: list[str] = []

    def __call__(self, problem: str, width: int = 1100, height: int = 860, seed: int = 3, **options: Any) -> Any:
        """A page that is ready, with the puzzle of a seed."""
        options = {"reduced_motion": "reduce", "viewport": {"width": width, "height": height}, **options}
        context = self._browser.new_context(**options)
        self._contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(WAIT)
        page.on("pageerror", lambda error: self._troubles.append(str(error)))
        page.on("console", lambda one: self._troubles.append(one.text) if one.type == "error" else None)
        page.on("request", lambda one: self._asked(one.url))
        page.goto(f"{self.address}/?seed={seed}#{problem}")
        page.wait_for_selector("html[data-ready]")
        return page

    def end(self) -> None:
        """Close all pages."""
        for context in self._contexts:
            context.close()
        assert not self._troubles

    def _asked(self, url: str) -> None:
        if not url.startswith((self.address, "data:")):
            self._troubles.append(url)


def texts(page: Any) -> str:
    """What the cells show, row by row; a point for an empty one."""
    return page.evaluate("[...document.querySelectorAll('.cell span')].map(one => one.textContent || '.').join('')")


def places(page: Any, selector: str) -> list[int]:
    """The numbers of the cells that a selector takes."""
    script = "selector => [...document.querySelectorAll('.cell')].flatMap((one, i) => one.matches(selector) ? [i] : [])"
    return page.evaluate(script, selector)


def tab_to(page: Any, selector: str, most: int = 25) -> None:
    """Press Tab until the focus is there."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"Tab does not lead to {selector}")
