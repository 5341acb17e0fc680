"""The server's API: every problem, every limit, bad input, merging, streaming, and clients that hang up."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import sys
import threading
import time
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi")

from fastapi.testclient import TestClient
from numpy.typing import NDArray

from mull import cli, exact, hub, load
from mull.cli import main
from mull.count import count_solutions
from mull.errors import UserError
from mull.images import PREFIX, png, write_image
from mull.problems import get_problem
from mull.runtime import State, load_runtime
from mull.serve import attention, further, photos, puzzles
from mull.serve.app import create_app
from mull.serve.engine import Engine, Job
from mull.serve.hosts import Hosts
from mull.serve.settings import BusyError, Settings
from mull.solve import Answer, Solver
from tiny import BOARD, OTHER, PROBLEM, LookupRuntime, puzzle, write_tiny

MODELS = list(hub.shipped())
SUDOKU = puzzles.prepared("sudoku")[0]


@pytest.fixture(scope="module")
def client() -> Any:
    with visiting(create_app()) as one:
        yield one


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_tiny(tmp_path_factory.mktemp("models") / "tiny.mull"))


def visiting(app: Any, host: str = "127.0.0.1:8000") -> TestClient:
    """A client of an application, which calls it by a name."""
    return TestClient(app, base_url=f"http://{host}")


def events(text: str) -> list[tuple[str, dict[str, Any]]]:
    found = []
    for block in text.strip().split("\n\n"):
        name, data = block.split("\n")
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


@pytest.mark.parametrize("model", MODELS)
def test_every_problem(client: TestClient, model: str) -> None:
    text = client.get("/api/generate", params={"model": model, "seed": 1}).json()["puzzle"]
    assert client.post("/api/check", json={"model": model, "puzzle": text}).json()["error"] is None
    answer = client.post("/api/solve", json={"model": model, "puzzle": text}).json()
    direct = load(model, exact=False).solve(text)
    assert (answer["solution"], answer["verified"], answer["steps"]) == (
        direct.solution,
        direct.verified,
        direct.steps,
    )
    assert answer.get("givens") == direct.givens
    both = client.post("/api/solve", json={"model": model, "puzzle": [text, text]}).json()
    assert [one["solution"] for one in both] == [answer["solution"]] * 2
    (first, *steps, last) = events(client.post("/api/solve/stream", json={"model": model, "puzzle": text}).text)
    assert first[0] == "start" and last[0] == "answer" and {name for name, _ in steps} == {"step"}
    assert len(steps) == answer["steps"] == last[1]["steps"] and steps[-1][1]["values"] == last[1]["values"]
    assert all(0 <= share <= 1 for share in steps[0][1]["sure"])
    heads = client.post("/api/attention", json={"model": model, "puzzle": text, "step": 2, "cell": 0}).json()["heads"]
    assert np.allclose(np.sum(heads, axis=1), 1, atol=0.01)


def test_a_model_that_takes_more_recurrences_stops_where_the_server_says() -> None:
    with visiting(create_app(Settings(steps=2))) as client:
        assert client.post("/api/solve", json={"puzzle": SUDOKU}).json()["steps"] == 2


def test_models_and_health(client: TestClient) -> None:
    models = client.get("/api/models").json()
    assert [one["name"] for one in models] == MODELS
    layouts = {one["name"]: one["layout"] for one in models}
    assert {name: layout["kind"] for name, layout in layouts.items()} == {
        **dict.fromkeys(["sudoku", "sudoku-4x4", "sudoku-16x16", "sudoku-extreme"], "board"),
        **dict.fromkeys(["visual-sudoku", "mnist-mapping"], "images"),
        **dict.fromkeys(["nonogram", "nonogram-15"], "nonogram"),
        "shortest-path": "graph",
    }
    assert layouts["sudoku"]["right"][:4] == [2, 5, 11, 14] and layouts["sudoku"]["below"][:2] == [18, 19]
    health = client.get("/api/health").json()
    assert health["status"] == "ok" and health["photos"] is photos.available()


def test_lines_of_text(client: TestClient) -> None:
    plain = {"content-type": "text/plain"}
    for text in (f"{SUDOKU}\n# no puzzle\n{SUDOKU}\n", f"id,puzzle\n1,{SUDOKU}\n2,{SUDOKU}\n"):
        answer = client.post("/api/solve/lines", content=text, headers=plain)
        assert answer.status_code == 200
        assert [json.loads(line)["verified"] for line in answer.text.splitlines()] == [True, True]
    bad = client.post("/api/solve/lines", content=f"{SUDOKU}\n123\n", headers=plain)
    assert bad.status_code == 422 and bad.json()["detail"].startswith("line:2: expected 81 characters")


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (404, {"model": "sudok", "puzzle": SUDOKU}, "did you mean 'sudoku'?"),
        (404, {"model": "/etc/passwd", "puzzle": SUDOKU}, "no model is called"),
        (404, {"model": "src/mull/weights/sudoku.mull", "puzzle": SUDOKU}, "no model is called"),
        (422, {"puzzle": "123"}, "expected 81 characters"),
        (422, {"puzzle": "11" + "." * 79}, "contradict each other"),
        (422, {"puzzle": [SUDOKU, "x"]}, "puzzle 2: expected 81"),
        (422, {"puzzle": []}, "no puzzle"),
        (422, {"puzzle": [SUDOKU] * 300}, "the most is 256"),
        (422, {"puzzle": SUDOKU, "steps": 0}, "steps"),
        (422, {"puzzle": SUDOKU, "steps": 1100}, "the most is 1024"),
        (422, {"puzzle": 5}, "puzzle"),
        (422, {}, "puzzle: Field required"),
        (422, {"puzzle": SUDOKU, "problem": "evil.py:Evil"}, "Extra inputs"),
        (422, {"model": "visual-sudoku", "puzzle": "README.md"}, "expected an image in the text"),
        (422, {"model": "visual-sudoku", "puzzle": PREFIX + "AAAA"}, "no PNG"),
        (422, {"model": "visual-sudoku", "puzzle": PREFIX + "!!!!"}, "not base64"),
    ],
)
def test_refusals_say_why(client: TestClient, status: int, body: dict[str, Any], says: str) -> None:
    answer = client.post("/api/solve", json=body)
    assert answer.status_code == status
    assert says in answer.json()["detail"]
    assert "\n" not in answer.json()["detail"]


def test_a_large_image_is_refused_before_it_is_decoded(client: TestClient) -> None:
    text = write_image(np.zeros((8, 3000), dtype=np.uint8))
    answer = client.post("/api/solve", json={"model": "visual-sudoku", "puzzle": text})
    assert answer.status_code == 422 and "3000x8 pixels" in answer.json()["detail"]


def test_rubbish(client: TestClient) -> None:
    headers = {"content-type": "application/json"}
    assert client.post("/api/solve", content=b"\xff{", headers=headers).status_code in (400, 422)
    assert client.post("/api/solve", content=b"[" * 100_000, headers=headers).status_code in (400, 422)
    assert client.get("/api/solve").status_code == 405
    assert client.get("/page/../app.py").status_code == 404
    assert client.get("/page/%2e%2e/app.py").status_code == 404


def test_photographs_have_their_place(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(photos, "available", lambda: False)
    answer = client.post("/api/read-photo", content=b"x", headers={"content-type": "image/png"})
    assert answer.status_code == 501 and "cannot read photographs" in answer.json()["detail"]


def test_a_photograph_is_read_where_that_can_be_done(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    class Found:
        givens, certainty, changes, flat = SUDOKU, np.ones(81), (), np.zeros((90, 90), np.uint8)

    seen: list[tuple[int, ...]] = []
    reader = types.ModuleType("mull.photo")
    reader.read = lambda image: seen.append(image.shape) or Found()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mull.photo", reader)
    monkeypatch.setattr(photos, "available", lambda: True)
    image = png(np.zeros((30, 20), dtype=np.uint8))
    answer = client.post("/api/read-photo", content=image, headers={"content-type": "image/png"})
    assert answer.status_code == 200 and answer.json()["puzzle"] == SUDOKU and seen == [(30, 20, 3)]
    for rubbish in (b"", b"x" * 100, image[:40]):
        bad = client.post("/api/read-photo", content=rubbish, headers={"content-type": "image/png"})
        assert bad.status_code == 422 and "expected a photograph" in bad.json()["detail"]


def test_the_body_is_limited_whether_its_length_is_told_or_not() -> None:
    with visiting(create_app(Settings(body=1000))) as client:
        assert client.post("/api/solve", json={"puzzle": "." * 2000}).status_code == 413
        pieces = (b"x" * 400 for _ in range(5))  # sent in chunks, without a length
        assert client.post("/api/solve", content=pieces).status_code == 413
        assert client.post("/api/solve", json={"puzzle": SUDOKU}).status_code == 200


def test_the_page_needs_nothing_from_elsewhere(client: TestClient) -> None:
    for path in ("/", "/docs"):
        page = client.get(path)
        assert page.status_code == 200 and "default-src 'self'" in page.headers["content-security-policy"]
        assert "://" not in page.text.replace("http://www.w3.org", "")


@pytest.mark.parametrize(
    ("bound", "allowed", "refused"),
    [
        ("127.0.0.1", ["localhost:8000", "127.0.0.1:1", "[::1]:8000", "LOCALHOST.", "a.localhost"], ["10.0.0.1"]),
        ("10.0.0.1", ["10.0.0.1", "localhost"], ["10.0.0.2:8000", "[fe80::1]"]),
        ("0.0.0.0", ["10.0.0.1:8000", "[fe80::1]:8000"], ["0x7f000001"]),
        ("::", ["10.0.0.1"], []),
        ("box", ["box:8000", "Box."], ["box.evil.example"]),
        ("*.example.org", ["a.example.org"], ["example.org.evil.example", "badexample.org"]),
        ("*", ["evil.example"], []),
    ],
)
def test_names_that_the_server_answers_to(bound: str, allowed: list[str], refused: list[str]) -> None:
    hosts = Hosts([bound])
    assert [name for name in allowed if not hosts.admits(name)] == []
    always = [] if bound == "*" else ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", ":8000"]
    assert [name for name in (*refused, *always) if hosts.admits(name)] == []


def test_pages_of_other_sites_are_kept_out(client: TestClient) -> None:
    for path in ("/", "/api/models", "/page/app.js"):
        answer = client.get(path, headers={"host": "evil.example:8000"})  # its name was made to resolve to us
        assert answer.status_code == 421 and "'evil.example'" in answer.json()["detail"]
    body = {"puzzle": SUDOKU}
    assert client.post("/api/solve", json=body, headers={"host": "evil.example"}).status_code == 421
    assert client.post("/api/solve", json=body, headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert client.post("/api/solve", json=body, headers={"sec-fetch-site": "same-origin"}).status_code == 200
    assert client.get("/", headers={"sec-fetch-site": "cross-site"}).status_code == 200  # a link may lead here
    assert "access-control-allow-origin" not in client.get("/", headers={"origin": "http://evil.example"}).headers


def test_explained_and_settled(tiny: str) -> None:
    with visiting(create_app(models=[tiny])) as client:
        body = {"model": "tiny", "puzzle": puzzle(3, OTHER)}
        plain = client.post("/api/solve", json=body).json()
        assert not plain["verified"] and plain["note"] == "no verified answer after 20 recurrences"
        explained = client.post("/api/solve", json={**body, "explain": True}).json()
        assert explained["note"].endswith("which the model did not find")
        (*_, (_, answer)) = events(client.post("/api/solve/stream", json=body).text)
        assert answer["broken"] and answer["wrong"]
        pytest.importorskip("ortools")
        settled = client.post("/api/solve", json={**body, "exact": True}).json()
        assert settled["verified"] and settled["method"] == "exact" and settled["solution"] == OTHER
        several = client.post("/api/solve", json={"model": "tiny", "puzzle": "." * 16, "explain": True}).json()
        assert several["verified"] and several["note"] == "has several solutions"
        no_attention = client.post("/api/attention", json={**body, "step": 1, "cell": 0})
        assert no_attention.status_code == 422 and "no attention" in no_attention.json()["detail"]


SHORT = {"model": "sudoku-4x4", "puzzle": "1......4..2.....", "steps": 1}
"""One recurrence is too few for this one."""


def test_search(client: TestClient) -> None:
    plain = client.post("/api/solve", json=SHORT).json()
    assert not plain["verified"] and plain["method"] == "recurrence" and plain["steps"] == 1
    found = client.post("/api/solve", json={**SHORT, "search": 50}).json()
    assert found["verified"] and found["method"] == "search" and found["steps"] > 1 and "note" not in found
    solution, problem = found["solution"], get_problem("sudoku-4x4")
    values = np.array([int(value) - 1 for value in solution])
    assert problem.check(problem.parse(SHORT["puzzle"]).inputs[None], values[None])[0]  # type: ignore[arg-type]
    both = client.post("/api/solve", json={**SHORT, "puzzle": [solution, SHORT["puzzle"]], "search": 50}).json()
    assert [one["method"] for one in both] == ["recurrence", "search"] and all(one["verified"] for one in both)
    lines = client.post(
        "/api/solve/lines", params={"search": 5}, content=SUDOKU, headers={"content-type": "text/plain"}
    )
    assert json.loads(lines.text)["verified"]
    too_much = client.post("/api/solve", json={**SHORT, "search": 201})
    assert too_much.status_code == 422 and "the most is 200" in too_much.json()["detail"]
    health = client.get("/api/health").json()
    assert health["search"] == 200 and health["searching"] == 0


def test_a_search_on_images_tells_what_it_read(client: TestClient) -> None:
    text = client.get("/api/generate", params={"model": "visual-sudoku", "seed": 8}).json()["puzzle"]
    body = {"model": "visual-sudoku", "puzzle": text, "steps": 3, "search": 32}
    answer = client.post("/api/solve", json=body).json()
    assert answer["verified"] and answer["method"] == "search"
    read = [(given, value) for given, value in zip(answer["givens"], answer["solution"], strict=True) if given != "0"]
    assert len(read) > 17 and all(given == value for given, value in read)


def test_a_search_ends_with_its_calls_its_time_or_its_client(tiny: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(further, "PAUSE", 0.0)
    body = {"model": "tiny", "puzzle": puzzle(3, OTHER), "steps": 2}
    with visiting(create_app(Settings(further=5), models=[tiny])) as client:
        (*most, (name, last)) = events(client.post("/api/solve/stream", json={**body, "search": 3}).text)
        assert name == "answer" and last["note"].endswith("nor by a search with 3 model calls")
        told = [data for name, data in most if name == "search"]
        assert told and last["steps"] >= told[-1]["steps"] > 2 and len(told[0]["values"]) == 16
    with visiting(create_app(Settings(further=0), models=[tiny])) as client:
        ended = client.post("/api/solve", json={**body, "search": 100}).json()
        assert ended["note"].endswith("nor by a search of 0 s") and not ended["verified"]
    with visiting(create_app(Settings(searching=0), models=[tiny])) as client:
        busy = client.post("/api/solve", json={**body, "search": 100})
        assert busy.status_code == 503 and busy.headers["retry-after"]
        pytest.importorskip("ortools")
        assert client.post("/api/solve", json={**body, "exact": True}).status_code == 503
    stop, slow = threading.Event(), Solver(SlowRuntime(), 2, exact=False, search=100)
    start = Answer(body["puzzle"], None, False, 2, "recurrence", 0.0, "nothing")
    slow.runtime.gate.release(3)  # type: ignore[attr-defined]
    watcher = lambda steps, _: stop.set() if steps >= 4 else None  # noqa: E731
    gone = further.search(slow, start, PROBLEM.parse(start.puzzle), 9, stop, watcher)
    assert not gone.verified and gone.steps == 4


def test_what_the_exact_solver_cannot_be_told(client: TestClient) -> None:
    pytest.importorskip("ortools")
    text = client.get("/api/generate", params={"model": "nonogram", "seed": 4}).json()["puzzle"]
    answer = client.post("/api/solve", json={"model": "nonogram", "puzzle": text, "steps": 1, "exact": True}).json()
    assert not answer["verified"] and answer["solution"] and "cannot be stated exactly" in answer["note"]
    able = {one["name"]: one["exact"] for one in client.get("/api/models").json()}
    assert able["sudoku"] and not able["nonogram"]


def test_the_exact_solver_has_a_time_limit(tiny: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ortools")
    seen: list[float | None] = []

    def undecided(problem: Any, instance: Any, limit: int, seconds: float | None, **_: Any) -> None:
        seen.append(seconds)
        raise exact.UndecidedError(f"the exact solver did not know after {seconds} s")

    monkeypatch.setattr(exact, "solutions", undecided)
    with visiting(create_app(Settings(further=3), models=[tiny])) as client:
        body = {"model": "tiny", "puzzle": puzzle(3, OTHER), "exact": True}
        answer = client.post("/api/solve", json=body).json()
        assert not answer["verified"] and "did not know after 3 s" in answer["note"] and seen == [3]


class SlowRuntime(LookupRuntime):
    """Holds every recurrence until it is let go."""

    def __init__(self, batch: int = 4) -> None:
        super().__init__(batch, workers=1)
        self.gate = threading.Semaphore(0)

    def step(self, state: State, count: int = 1) -> tuple[State, NDArray[Any]]:
        assert self.gate.acquire(timeout=10)
        return super().step(state, count)


def jobs(*empties: int, limit: int = 20) -> list[Job]:
    return [Job(puzzle(empty), PROBLEM.parse(puzzle(empty)), limit) for empty in empties]


def test_requests_share_a_batch_and_come_and_go() -> None:
    runtime = SlowRuntime()
    engine = Engine(Solver(runtime, 20, exact=False), queue=8)
    first, second = jobs(6), jobs(2)
    engine.submit(first)
    for _ in range(2):
        runtime.gate.release()
    while len(runtime.sizes) < 2:
        time.sleep(0.001)
    engine.submit(second)  # while the first is on its way
    for _ in range(6):
        runtime.gate.release()
    answers = [job.result.result(timeout=5) for job in (*first, *second)]
    assert [(answer.solution, answer.steps, answer.verified) for answer in answers] == [
        (BOARD, 6, True),
        (BOARD, 2, True),
    ]
    assert 2 in runtime.sizes and runtime.sizes[0] == 1
    engine.close()


def test_requests_take_turns() -> None:
    runtime = SlowRuntime(batch=2)
    engine = Engine(Solver(runtime, 20, exact=False), queue=64)
    many, one = jobs(*[1] * 12), jobs(1)
    engine.submit(many)
    engine.submit(one)
    for _ in range(3):
        runtime.gate.release()
    assert one[0].result.result(timeout=5).verified
    assert sum(job.result.done() for job in many) <= 5
    runtime.gate.release(20)
    engine.close()


def test_a_full_queue_refuses_and_hanging_up_makes_room() -> None:
    runtime = SlowRuntime(batch=1)
    engine = Engine(Solver(runtime, 20, exact=False), queue=2)
    running, waiting = jobs(3), jobs(3, 3)
    engine.submit(running)
    while engine.waiting:
        time.sleep(0.001)
    engine.submit(waiting)
    with pytest.raises(BusyError, match="2 puzzles are waiting"):
        engine.submit(jobs(3))
    waiting[0].result.cancel()
    engine.submit(last := jobs(3))
    running[0].result.cancel()  # leaves the batch at the next recurrence
    runtime.gate.release(20)
    assert last[0].result.result(timeout=5).verified and waiting[1].result.result(timeout=5).verified
    engine.close()
    with pytest.raises(BusyError):
        engine.submit(jobs(1))


def test_a_failing_batch_tells_and_goes_on() -> None:
    runtime = LookupRuntime(workers=1)
    engine = Engine(Solver(runtime, 20, exact=False), queue=8)
    (broken,) = jobs(2)
    broken.watcher = lambda *_: 1 / 0  # type: ignore[assignment, return-value]
    engine.submit([broken])
    with pytest.raises(ZeroDivisionError):
        broken.result.result(timeout=5)
    engine.submit(good := jobs(2))
    assert good[0].result.result(timeout=5).verified
    engine.close()


def test_limits_of_time_and_queue_have_their_codes() -> None:
    app = create_app(Settings(seconds=0.3, queue=1))
    with visiting(app) as client:
        engine = app.state.service.catalogue.engine("sudoku-4x4")
        runtime = SlowRuntime(batch=1)
        engine.close()
        slow = Engine(Solver(runtime, 20, exact=False), queue=1)
        app.state.service.catalogue.engines["sudoku-4x4"] = slow
        body = {"model": "sudoku-4x4", "puzzle": puzzle(4)}
        late = client.post("/api/solve", json=body)
        assert late.status_code == 504 and "0.3 s" in late.json()["detail"]
        (*_, (name, data)) = events(client.post("/api/solve/stream", json=body).text)
        assert name == "error" and "0.3 s" in data["detail"]
        with ThreadPoolExecutor(4) as pool:
            codes = [one.status_code for one in pool.map(lambda _: client.post("/api/solve", json=body), range(4))]
        assert 503 in codes and set(codes) <= {503, 504}
        slow.submit(jobs(4))
        busy = client.post("/api/solve", json={**body, "puzzle": [puzzle(4)] * 2})
        assert busy.status_code in (503, 504)
        runtime.gate.release(100)
        slow.close()


async def call(app: Any, path: str, body: dict[str, Any], held: float | None) -> list[Any]:
    """Post to an application as a client that hangs up after some seconds, or with None never sends all of its body."""
    content, gone, answer = json.dumps(body).encode(), asyncio.Event(), list[Any]()
    sent = [{"type": "http.request", "body": content, "more_body": held is None}]

    async def receive() -> dict[str, Any]:
        if sent:
            return sent.pop()
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        answer.append(message)

    headers = [(b"content-type", b"application/json"), (b"host", b"localhost")]
    scope = {"type": "http", "method": "POST", "path": path, "headers": headers, "query_string": b""}
    running = asyncio.ensure_future(app(scope, receive, send))
    await asyncio.sleep(held or 0)
    if held is not None:
        gone.set()
    await asyncio.wait_for(running, 5)
    return answer


def test_a_client_that_hangs_up_frees_its_place() -> None:
    app = create_app(Settings(seconds=20))
    runtime = SlowRuntime(batch=1)
    service = app.state.service
    slow = service.catalogue.engines["sudoku-4x4"] = Engine(Solver(runtime, 20, exact=False), queue=4)
    blocker = jobs(4)
    slow.submit(blocker)
    while slow.waiting:
        time.sleep(0.001)
    for path in ("/api/solve", "/api/solve/stream"):
        asyncio.run(call(app, path, {"model": "sudoku-4x4", "puzzle": puzzle(4)}, 0.15))
        assert slow.waiting == 0
    runtime.gate.release(100)
    assert blocker[0].result.result(timeout=5).verified
    service.close()


@pytest.mark.parametrize("path", ["/api/solve", "/api/solve/stream"])
def test_a_client_that_hangs_up_ends_its_search(path: str) -> None:
    app = create_app(Settings(seconds=20))
    runtime, service = SlowRuntime(), app.state.service
    service.catalogue.engines["sudoku-4x4"] = Engine(Solver(runtime, 20, exact=False), queue=4)
    runtime.gate.release(3)  # one recurrence, then two of the search
    body = {"model": "sudoku-4x4", "puzzle": puzzle(3, OTHER), "steps": 1, "search": 200}
    asyncio.run(call(app, path, body, 0.15))
    assert service.searching == 1
    runtime.gate.release(1000)
    until = time.monotonic() + 5
    while service.searching and time.monotonic() < until:
        time.sleep(0.005)
    assert service.searching == 0 and len(runtime.sizes) <= 5  # it did not go on
    service.close()


def test_a_body_that_never_ends_is_refused() -> None:
    answer = asyncio.run(call(create_app(Settings(seconds=0.1)), "/api/solve", {"puzzle": SUDOKU}, None))
    assert answer[0]["status"] == 408 and b"0.1 s" in answer[1]["body"]


@pytest.mark.parametrize("name", ["sudoku", "sudoku-4x4", "sudoku-16x16", "nonogram", "nonogram-15"])
def test_prepared_puzzles_are_proper(name: str) -> None:
    problem, lines = get_problem(name), puzzles.prepared(name)
    assert len(lines) >= 8
    for line in lines[:: max(1, len(lines) // 8)]:
        problem.validate(problem.parse(line))
    if name in ("sudoku", "sudoku-4x4"):  # and remain so under symmetries
        made = [puzzles.make(problem, np.random.default_rng(seed)) for seed in range(6)]
        assert len(set(made)) == 6
        assert all(count_solutions(problem, problem.parse(line), limit=2, seconds=5) == 1 for line in made)


@pytest.mark.parametrize("model", ["sudoku", "nonogram", "visual-sudoku"])
def test_attention_is_that_of_torch(model: str) -> None:
    torch = pytest.importorskip("torch")
    from mull.checkpoint import model_from_weights

    path = hub.find_model(model)
    card, members = hub.read_model(path, ("weights.safetensors",))
    network = model_from_weights(card.problem, dict(card.model), members["weights.safetensors"]).eval()
    text = puzzles.make(card.problem, np.random.default_rng(0))
    inputs = card.problem.parse(text).inputs
    with torch.inference_mode():
        whole = network(torch.as_tensor(inputs[None]), 4, attention=True).attention_SLBNVV[:, 0, 0]
    states, context = attention.states(load_runtime(path), inputs, 4)
    for step in (0, 3):
        ours = attention.Heads(path).maps(states[step], context, cell=7)
        assert np.allclose(ours, whole[step, :, 7].numpy(), atol=1e-3)


def test_nobody_else_is_let_in_unless_told() -> None:
    assert inspect.signature(cli.serve).parameters["host"].default == "127.0.0.1"


def test_the_command_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["serve", "--help"]) == 0
    assert "--host" in capsys.readouterr().out
    assert main(["serve", "--host", "256.0.0.1"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "mull.serve.run", raising=False)
    assert main(["serve"]) == 2
    assert capsys.readouterr().err.strip() == "mull: this needs uvicorn: install mull[serve]"


def test_puzzles_that_cannot_be_made_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = get_problem("sudoku-25x25")

    def no_numba(*_: Any) -> None:
        raise ModuleNotFoundError("no", name="numba")

    monkeypatch.setattr(type(problem), "generate", no_numba)
    with pytest.raises(UserError, match="needs numba"):
        puzzles.make(problem, np.random.default_rng(0))


def test_the_package_holds_the_page() -> None:
    folder = Path(puzzles.__file__).parent / "page"
    assert {"index.html", "style.css", "app.js"} <= {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_can_be_told_apart(theme: str) -> None:
    style = (Path(puzzles.__file__).parent / "page" / "style.css").read_text()
    block = style.split(':root[data-theme="dark"]')[theme == "dark"].split("}")[0]
    hexadecimal = re.findall(r"--([\w-]+): #([0-9a-f]{6});", block)
    colours = {name: np.frombuffer(bytes.fromhex(code), np.uint8) / 255 for name, code in hexadecimal}
    heat = np.array(re.findall(r"--heat: (\d+) (\d+) (\d+)", block)[0], dtype=float) / 255
    share = 0.8 * (0.62 if theme == "dark" else 1)  # the most that boards.css and dom.js lay over a cell
    colours["hottest"] = share * heat + (1 - share) * colours["paper"]

    def light(name: str) -> float:
        """Relative luminance, as WCAG has it."""
        parts = colours[name]
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    def contrast(one: str, other: str) -> float:
        low, high = sorted((light(one), light(other)))
        return (high + 0.05) / (low + 0.05)

    grounds = {name: (name + "-ground", "paper") for name in ("good", "warn", "wrong")}
    grounds |= {"ink": ("ground", "paper", "hottest"), "soft": ("ground", "paper"), "model": ("ground", "paper")}
    pairs = [(name, ground) for name, all_of in grounds.items() for ground in all_of]
    assert [pair for pair in pairs if contrast(*pair) < 4.5] == []  # AA for text
    assert contrast("focus", "paper") >= 3 and contrast("rule", "paper") >= 3
