"""The page in Chromium: typing, drawing, the slider, attention, keyboard alone, a phone. Skipped without a browser."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mull.images import png
from serving import served

pytest.importorskip("fastapi")
playwright = pytest.importorskip("playwright.sync_api")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")

SUDOKU = "530070000600195000098000060800060003400803001700020006060000280000419005000080079"
SOLUTION = "534678912672195348198342567859761423426853791713924856961537284287419635345286179"
expect = playwright.expect


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served() as one:
        yield one


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        one = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield one
        one.close()


@pytest.fixture
def visit(browser: Any, address: str) -> Iterator[Any]:
    """Open the page; at the end, nothing may have gone wrong in it, and nothing been asked of another host."""
    contexts, troubles = [], []

    def opened(problem: str, width: int = 1100, height: int = 860, **options: Any) -> Any:
        options = {"reduced_motion": "reduce", "viewport": {"width": width, "height": height}, **options}
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("console", lambda one: troubles.append(one.text) if one.type == "error" else None)
        page.on("request", lambda one: troubles.append(one.url) if not one.url.startswith((address, "data:")) else None)
        page.goto(f"{address}/?seed=3#{problem}")
        page.wait_for_selector("html[data-ready]")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not troubles


def address_of(page: Any) -> str:
    return page.evaluate("location.origin")


def texts(page: Any) -> str:
    return "".join(page.locator(".cell span").all_inner_texts())


def verified(page: Any) -> None:
    expect(page.locator("#status")).to_contain_text("Verified", timeout=15_000)


def test_typing_conflicts_and_the_slider(visit: Any) -> None:
    page = visit("sudoku")
    page.click("#clear")
    cells = page.locator("[role=gridcell]")
    for place in (0, 1):
        cells.nth(place).click()
        page.keyboard.press("5")
    expect(page.locator(".cell.wrong")).to_have_count(2)
    expect(page.locator("#status")).to_contain_text("row 1 holds 5 once")
    page.keyboard.press("Backspace")
    expect(page.locator(".cell.wrong")).to_have_count(0)
    for place, digit in enumerate(SUDOKU):
        if digit != "0" and place:
            cells.nth(place).focus()
            page.keyboard.press(digit)
    page.click("#solve")
    verified(page)
    assert texts(page) == SOLUTION
    last = int(page.get_attribute("#slider", "max"))
    page.locator("#slider").fill("1")
    expect(page.locator("#where")).to_have_text(f"1 of {last}")
    page.locator("#slider").focus()
    page.keyboard.press("End")
    verified(page)
    assert texts(page) == SOLUTION
    page.click("#edit")
    assert texts(page) == SUDOKU.replace("0", "")


def test_attention_of_each_head(visit: Any) -> None:
    page = visit("sudoku")
    page.click("#solve")
    verified(page)
    page.locator("[role=gridcell]").nth(40).click()
    expect(page.locator("#heads button")).to_have_count(5)
    expect(page.locator("#attending")).to_contain_text("row 5, column 5")
    hot = "el => Number(el.style.getPropertyValue('--hot'))"
    before = [cell.evaluate(hot) for cell in page.locator(".cell").all()[36:45]]
    assert max(before) > 0.1
    page.locator("#heads button").nth(2).click()
    assert [cell.evaluate(hot) for cell in page.locator(".cell").all()[36:45]] != before
    page.locator("#slider").fill("2")
    expect(page.locator("#attending")).to_contain_text("recurrence 2")


def test_drawing(visit: Any) -> None:
    page = visit("visual-sudoku")
    page.click("#solve")
    expect(page.locator(".status.good, .status.warn")).to_be_visible(timeout=15_000)
    read = [i for i, cell in enumerate(page.locator(".cell").all()) if "given" in (cell.get_attribute("class") or "")]
    ones = [i for i in read if page.locator(".cell span").nth(i).inner_text() == "1"]
    page.click("#edit")
    page.locator(".cell").nth(ones[0]).click()
    box = page.locator("#ink").bounding_box()
    x, y = box["x"] + 145, box["y"]
    page.mouse.move(x + 8, y + 50)
    page.mouse.down()
    page.mouse.move(x - 8, y + 230, steps=12)
    page.mouse.up()
    page.click("#pad-ok")
    page.click("#solve")
    expect(page.locator(".status.good, .status.warn")).to_be_visible(timeout=15_000)
    cell = page.locator(".cell").nth(ones[0])
    expect(cell).to_have_class(re.compile(r"\bgiven\b"))
    assert cell.locator("span").inner_text() == "1"


def test_keyboard_alone(visit: Any) -> None:
    page = visit("sudoku-4x4")
    page.focus("#clear")
    page.keyboard.press("Enter")
    page.focus(".cell[tabindex='0']")
    for row, line in enumerate(("1234", "3412", "21..", "....")):
        for digit in line:
            page.keyboard.press("Delete" if digit == "." else digit)
            page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowDown")
        assert row < 4
    page.keyboard.press("Control+Enter")
    verified(page)
    page.keyboard.press("ArrowUp")
    expect(page.locator("#attention")).to_be_visible()
    assert page.evaluate("document.activeElement.className").startswith("cell")


def test_a_phone(visit: Any) -> None:
    page = visit("sudoku", width=390, height=844, has_touch=True, is_mobile=True, color_scheme="dark")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.locator(".cell").first.bounding_box()["width"] >= 36
    page.click("#clear")
    page.locator(".cell").nth(4).tap()
    page.locator("#keypad button").nth(6).tap()
    assert page.locator(".cell").nth(4).inner_text() == "7"
    page.click("#generate")
    page.locator("#solve").tap()
    expect(page.locator(".status.good, .status.warn")).to_be_visible(timeout=15_000)
    page.click("#theme")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"


@pytest.mark.parametrize("problem", ["nonogram", "shortest-path", "mnist-mapping"])
def test_other_boards(visit: Any, problem: str) -> None:
    page = visit(problem, width=390)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.click("#solve")
    expect(page.locator(".status.good, .status.warn")).to_be_visible(timeout=15_000)
    part = page.locator(".graph .node" if problem == "shortest-path" else "[role=gridcell]").first
    part.click()
    expect(page.locator("#attention")).to_be_visible()
    if problem == "nonogram":
        page.locator(".line.column").first.click()
        page.locator(".line-editor input").fill("7 7")
        expect(page.locator("#status")).to_contain_text("does not fit into 7 cells")
        expect(page.locator(".line.wrong")).to_have_count(1)
    if problem == "shortest-path":
        page.click("#edit")
        page.click("#clear")
        page.locator(".graph .node").nth(0).click()
        page.locator(".graph .node").nth(5).click()
        page.click("#solve")
        verified(page)


def test_a_photograph(visit: Any, address: str, tmp_path: Path) -> None:
    page = visit("sudoku-4x4")
    if not page.request.get(f"{address}/api/health").json()["photos"]:
        page.click("#photo")
        expect(page.locator("#status")).to_contain_text("cannot read photographs")
    reading = {"model": "sudoku", "puzzle": SUDOKU, "certainty": [0.5] + [1.0] * 80}
    health = {"status": "ok", "version": "0", "waiting": {}, "exact": False, "photos": True}
    page.route("**/api/health*", lambda route: route.fulfill(json=health))
    page.route("**/api/read-photo", lambda route: route.fulfill(json=reading))
    page.reload()
    page.wait_for_selector("html[data-ready]")
    photo = tmp_path / "photo.png"
    photo.write_bytes(png(np.zeros((40, 30), dtype=np.uint8)))
    page.set_input_files("#file", photo)
    expect(page.locator("#status")).to_contain_text("Look it over")
    expect(page.locator(".cell.unsure")).to_have_count(1)
    page.click("#solve")
    verified(page)
    assert texts(page) == SOLUTION


def test_pasted_text(visit: Any) -> None:
    page = visit("sudoku")
    page.click("#text-card summary")
    page.fill("#text", SUDOKU)
    expect(page.locator(".cell.given")).to_have_count(30)
    page.fill("#text", "123")
    expect(page.locator("#status")).to_contain_text("expected 81 characters")
    page.goto(address_of(page) + "/docs")
    expect(page.locator(".operation")).to_have_count(9)
