"""The page in Chromium: typing, drawing, photographs, slider, attention, search, keyboard alone, a phone.

Skipped without a browser.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from browsing import CHROMIUM, PHONE, WAIT, Visits, launched, places, tab_to, texts
from mull.images import PREFIX, png, write_image
from mull.problems import get_problem
from serving import served

pytest.importorskip("fastapi")
expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")

SUDOKU = "530070000600195000098000060800060003400803001700020006060000280000419005000080079".replace("0", ".")
SOLUTION = "534678912672195348198342567859761423426853791713924856961537284287419635345286179"
HARD_FOR_ONE_STEP = "1......4..2....."
ENDED = ".status.good, .status.warn"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served() as one:
        yield one


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as one:
        yield one


@pytest.fixture
def visit(browser: Any, address: str) -> Iterator[Visits]:
    visits = Visits(browser, address)
    yield visits
    visits.end()


def ended(page: Any) -> None:
    expect(page.locator(ENDED)).to_be_visible(timeout=WAIT)


def verified(page: Any, how: str = "") -> None:
    expect(page.locator("#status.good")).to_contain_text(f"Verified {how}", timeout=WAIT)


def says(page: Any, text: str) -> None:
    expect(page.locator("#status")).to_contain_text(text, timeout=WAIT)


def drop(page: Any, image: np.ndarray) -> None:
    """Let go of a photograph over the page."""
    script = """text => {
        const dataTransfer = new DataTransfer(), bytes = Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
        dataTransfer.items.add(new File([bytes], "photo.png", { type: "image/png" }));
        for (const type of ["dragover", "drop"]) dispatchEvent(new DragEvent(type, { dataTransfer, cancelable: true }));
    }"""
    page.evaluate(script, write_image(image).removeprefix(PREFIX))


def test_typing_conflicts_and_the_slider(visit: Visits) -> None:
    page = visit("sudoku")
    page.click("#clear")
    cells = page.locator("[role=gridcell]")
    for place in (0, 1):
        cells.nth(place).click()
        page.keyboard.press("5")
    expect(page.locator(".cell.wrong")).to_have_count(2)
    says(page, "row 1 holds 5 once")
    page.keyboard.press("Backspace")
    expect(page.locator(".cell.wrong")).to_have_count(0)
    for place, digit in enumerate(SUDOKU[1:], start=1):
        if digit != ".":
            cells.nth(place).focus()
            page.keyboard.press(digit)
    assert texts(page) == SUDOKU
    page.click("#solve")
    verified(page, "in ")
    assert texts(page) == SOLUTION
    last = int(page.get_attribute("#slider", "max"))
    sure = "document.querySelectorAll('.cell')[3].style.getPropertyValue('--sure')"
    certain = float(page.evaluate(sure))
    page.locator("#slider").fill("1")
    expect(page.locator("#where")).to_have_text(f"1 of {last}")
    says(page, "After recurrence 1")
    assert texts(page) != SOLUTION and float(page.evaluate(sure)) < certain
    assert "% sure" in page.locator(".cell").nth(3).get_attribute("aria-label")
    page.locator("#slider").focus()
    page.keyboard.press("End")
    verified(page)
    assert texts(page) == SOLUTION
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#where")).to_have_text(f"{last - 1} of {last}")
    page.click("#edit")
    assert texts(page) == SUDOKU


def test_attention_of_each_head(visit: Visits) -> None:
    page = visit("sudoku")
    page.click("#solve")
    verified(page)
    page.locator("[role=gridcell]").nth(40).click()
    expect(page.locator("#heads button")).to_have_count(5)
    expect(page.locator("#attending")).to_contain_text("row 5, column 5")
    script = "[...document.querySelectorAll('.cell')].map(one => Number(one.style.getPropertyValue('--hot')))"
    before = page.evaluate(script)
    assert max(before) > 0.1
    page.locator("#heads button").nth(2).click()
    assert page.evaluate(script) != before
    page.locator("#slider").fill("2")
    expect(page.locator("#attending")).to_contain_text("recurrence 2")
    page.keyboard.press("Escape")
    expect(page.locator("#attention")).to_be_hidden()
    assert max(page.evaluate(script)) == 0


def test_drawing(visit: Visits) -> None:
    page = visit("visual-sudoku", seed=8)
    page.click("#solve")
    verified(page)
    read = texts(page)
    one = next(place for place in places(page, ".given") if read[place] == "1")
    page.click("#edit")
    page.locator(".cell").nth(one).click()
    box = page.locator("#ink").bounding_box()
    x, y = box["x"] + 145, box["y"]
    page.mouse.move(x + 8, y + 50)
    page.mouse.down()
    page.mouse.move(x - 8, y + 230, steps=12)
    page.mouse.up()
    page.click("#pad-ok")
    page.click("#solve")
    verified(page)
    assert one in places(page, ".given") and texts(page)[one] == "1"


def test_search_further(visit: Visits) -> None:
    page = visit("sudoku-4x4")
    page.click("#text-card summary")
    page.fill("#text", HARD_FOR_ONE_STEP)
    page.click("text=Options")
    page.fill("#steps", "1")
    page.click("#solve")
    says(page, "Not verified")
    page.click("text=Search further")
    verified(page, "by search")
    answer, problem = texts(page), get_problem("sudoku-4x4")
    values = np.array([int(value) - 1 for value in answer])
    assert problem.check(problem.parse(HARD_FOR_ONE_STEP).inputs[None], values[None])[0]
    assert all(given in (".", value) for given, value in zip(HARD_FOR_ONE_STEP, answer, strict=True))
    expect(page.locator("#where")).to_have_text("search")
    page.locator(".cell").nth(1).click()  # the heads of the last recurrence
    expect(page.locator("#attending")).to_contain_text("in recurrence 1.")
    page.locator("#slider").fill("1")
    says(page, "After recurrence 1")


def test_keyboard_alone(visit: Visits) -> None:
    page = visit("sudoku-4x4")
    tab_to(page, "#clear")
    page.keyboard.press("Enter")
    page.evaluate("document.activeElement.blur()")
    tab_to(page, ".cell")
    for line in ("1234", "3412", "21..", "...."):
        for digit in line:
            page.keyboard.press("Delete" if digit == "." else digit)
            page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowDown")
    assert texts(page) == "1234341221......"
    page.keyboard.press("Control+Enter")
    verified(page)
    page.keyboard.press("ArrowUp")
    expect(page.locator("#attention")).to_be_visible()
    assert page.evaluate("document.activeElement.className").startswith("cell")
    ring = "getComputedStyle(document.activeElement, '::after').borderTopWidth"
    assert page.evaluate(ring) == "3px"  # where the focus is can be seen
    for stop in ("#play", "#slider", "#solve", "#edit", "#heads button", "summary"):
        tab_to(page, stop)


@pytest.mark.parametrize("problem", ["sudoku", "sudoku-4x4", "sudoku-16x16", "nonogram-15"])
def test_a_phone(visit: Visits, problem: str) -> None:
    page = visit(problem, **PHONE, color_scheme="dark")
    for narrow in (320, 390):
        page.set_viewport_size({"width": narrow, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") <= narrow
    small = """[...document.querySelectorAll("button, select, summary, nav a, input[type=range]")]
        .filter((one) => one.offsetParent && !one.matches(".cell, .pixel, .line"))
        .map((one) => [one.id || one.textContent, one.getBoundingClientRect()])
        .filter(([_, box]) => Math.min(box.width, box.height) < 40).map(([name]) => name)"""
    assert page.evaluate(small) == []
    width = page.locator("[role=gridcell]").first.bounding_box()["width"]
    assert width >= {"sudoku": 40, "sudoku-4x4": 80, "sudoku-16x16": 24, "nonogram-15": 20}[problem]
    if problem != "sudoku":
        return
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.click("#clear")
    page.locator(".cell").nth(4).tap()
    page.locator("#keypad button").nth(6).tap()
    assert page.locator(".cell").nth(4).inner_text() == "7"
    page.click("#generate")
    page.locator("#solve").tap()
    ended(page)
    page.locator(".cell").nth(40).tap()
    expect(page.locator("#attention")).to_be_visible()
    assert page.evaluate(small) == []
    page.click("#theme")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"


@pytest.mark.parametrize("problem", ["nonogram", "shortest-path", "mnist-mapping"])
def test_other_boards(visit: Visits, problem: str) -> None:
    page = visit(problem, width=390)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.click("#solve")
    ended(page)
    part = page.locator(".graph .node" if problem == "shortest-path" else "[role=gridcell]").first
    part.click()
    if problem == "mnist-mapping":  # one variable has nothing else to attend to
        page.wait_for_timeout(100)
        expect(page.locator("#attention")).to_be_hidden()
        return
    expect(page.locator("#attention")).to_be_visible()
    if problem == "nonogram":
        page.locator(".line.column").first.click()
        page.locator(".line-editor input").fill("7 7")
        says(page, "does not fit into 7 cells")
        expect(page.locator(".line.wrong")).to_have_count(1)
    if problem == "shortest-path":
        page.click("#edit")
        page.click("#clear")
        page.locator(".graph .node").nth(0).click()
        page.locator(".graph .node").nth(5).click()
        page.click("#solve")
        verified(page)


def test_a_photograph_in_doubt(visit: Visits, tmp_path: Path) -> None:
    page = visit("sudoku-4x4")
    image = write_image(np.full((9, 9), 200, dtype=np.uint8))
    changes = ["row 1 column 3: empty instead of 7"]
    reading = {"model": "sudoku", "puzzle": SUDOKU, "certainty": [0.5, 1, 0.6] + [1.0] * 78, "changes": changes}
    page.route("**/api/health*", lambda route: route.fulfill(json={**route.fetch().json(), "photos": True}))
    page.route("**/api/read-photo", lambda route: route.fulfill(json={**reading, "board": image}))
    page.reload()
    page.wait_for_selector("html[data-ready]")
    photo = tmp_path / "photo.png"
    photo.write_bytes(png(np.zeros((40, 30), dtype=np.uint8)))
    page.set_input_files("#file", photo)
    says(page, "Look it over")
    expect(page.locator("#taken")).to_contain_text(changes[0])
    assert places(page, ".unsure") == [0, 2]
    page.locator(".cell").nth(0).click()
    page.keyboard.press("5")  # looked at: it was right
    assert places(page, ".unsure") == [2]
    page.click("#solve")
    verified(page)
    assert texts(page) == SOLUTION
    page.unroute("**/api/health*")
    page.route("**/api/health*", lambda route: route.fulfill(json={**route.fetch().json(), "photos": False}))
    page.reload()
    page.wait_for_selector("html[data-ready]")
    page.click("#photo")
    says(page, "cannot read photographs")


def test_a_photograph_is_read_and_mended(visit: Visits) -> None:
    """One digit is not on the photograph, and does not make it ambiguous: only a person can tell."""
    pytest.importorskip("cv2")
    from mull.photo import render

    place = 13  # a 9 in the second row
    printed = [0 if digit == "." or at == place else int(digit) for at, digit in enumerate(SUDOKU)]
    image, _ = render.photograph(np.array(printed), "", np.random.default_rng(0), 0.3)
    page = visit("sudoku-4x4")
    drop(page, image)
    says(page, "Look it over")
    expect(page.locator("#photographed")).to_be_visible()
    assert page.evaluate("document.getElementById('photographed').naturalWidth") > 200
    assert texts(page) == "".join(str(digit or ".") for digit in printed)
    page.locator(".cell").nth(place).click()
    page.keyboard.press("8")
    expect(page.locator(".cell.wrong")).not_to_have_count(0)
    page.keyboard.press(SUDOKU[place])
    expect(page.locator(".cell.wrong")).to_have_count(0)
    assert texts(page) == SUDOKU
    page.click("#solve")
    verified(page)
    assert texts(page) == SOLUTION


def test_a_photograph_from_a_camera(visit: Visits, photographs: Path) -> None:
    pytest.importorskip("cv2")
    name, folder = "image1024.jpg", photographs
    with (folder / "labels.csv").open(newline="") as file:
        (puzzle,) = (row["puzzle"].replace("0", ".") for row in csv.DictReader(file) if row["file"] == name)
    page = visit("sudoku")
    page.set_input_files("#file", folder / name)
    says(page, "Look it over")
    assert texts(page) == puzzle
    page.click("#solve")
    verified(page)
    assert re.fullmatch(puzzle, texts(page))


def test_pasted_text(visit: Visits) -> None:
    page = visit("sudoku")
    page.click("#text-card summary")
    page.fill("#text", SUDOKU)
    expect(page.locator(".cell.given")).to_have_count(30)
    page.fill("#text", "123")
    says(page, "expected 81 characters")
    page.goto(f"{visit.address}/docs")
    expect(page.locator(".operation")).to_have_count(9)
