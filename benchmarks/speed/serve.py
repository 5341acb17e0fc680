"""How fast `mull serve` answers on loopback: 1, 8 and 64 clients, beside clients that misbehave, and over its limit.

Clients and server share the machine's cores. Every client sends one Sudoku puzzle after the other; the time of a
request is from before it is sent until its answer is read.

    python benchmarks/speed/serve.py            # writes benchmarks/results/serve_speed.json
    python benchmarks/speed/serve.py --quick    # seconds; for the tests
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from mull.files import write_text
from mull.problems import get_problem
from mull.provenance import provenance
from mull.serve import puzzles

RESULTS = Path(__file__).parents[1] / "results"
CLIENTS = (1, 8, 64)
SMALL_QUEUE = 16
HARD = "8..........36......7..9.2...5...7.......457.....1...3...1....68..85...1..9....4.."
"""For clients that ask for a search and hang up."""


@contextmanager
def server(*arguments: str) -> Iterator[tuple[str, int]]:
    """The address of a server in a process of its own, and the process's number."""
    command = [sys.executable, "-m", "mull", "serve", "--port", "0", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://[\w.:]+", process.stdout.readline())
            if found is None:
                raise RuntimeError("the server did not start")
            httpx.post(f"{found[0]}/api/solve", json={"puzzle": "." * 81})  # the model is loaded
            yield found[0], process.pid
        finally:
            process.terminate()
            process.wait(timeout=10)


async def client(
    http: httpx.AsyncClient, lines: list[str], until: float, seed: int, seen: list[tuple[int, float, bool]]
) -> None:
    """One client: status, seconds, and whether the answer is verified or the refusal says when to come back."""
    order = random.Random(seed)
    while time.perf_counter() < until:
        began = time.perf_counter()
        answer = await http.post("/api/solve", json={"puzzle": order.choice(lines)})
        seconds = time.perf_counter() - began
        good = answer.json()["verified"] if answer.status_code == 200 else "retry-after" in answer.headers
        seen.append((answer.status_code, seconds, good))
        if answer.status_code == 503:
            await asyncio.sleep(0.05)  # less patient than it was asked to be


async def nuisance(address: str, until: float, seed: int) -> int:
    """A client that sends rubbish, or hangs up in the middle of a request or of a stream."""
    order, host, port = random.Random(seed), *address.removeprefix("http://").split(":")
    head = b"POST /api/solve/stream HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    head += b"content-length: %d\r\n\r\n"
    bodies = [json.dumps(body).encode() for body in ({"puzzle": "." * 81}, {"puzzle": HARD, "steps": 1, "search": 200})]
    whole, searched = (head % len(body) + body for body in bodies)
    tricks = [order.randbytes(200), whole[: len(whole) // 2], whole, searched, head % 10 + b"not { json"]
    count = 0
    while time.perf_counter() < until:
        with suppress(OSError):
            _, writer = await asyncio.open_connection(host, int(port))
            writer.write(order.choice(tricks))
            await writer.drain()
            await asyncio.sleep(0.01)
            writer.close()
        count += 1
        await asyncio.sleep(0.02)
    return count


def core_seconds(process: int) -> float:
    """Processor time that a process has used (Linux)."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def press(
    place: tuple[str, int], clients: int, seconds: float, lines: list[str], nuisances: int = 0
) -> dict[str, Any]:
    """Many clients at a time: how long the answers took, and what else came back."""
    address, process = place
    seen: list[tuple[int, float, bool]] = []
    async with AsyncExitStack() as stack:
        plain = {"base_url": address, "timeout": 60, "verify": False, "trust_env": False}
        doors = [await stack.enter_async_context(httpx.AsyncClient(**plain)) for _ in range(clients)]
        for door in doors:
            await door.get("/api/health")  # connected before the clock starts
        began, used = time.perf_counter(), core_seconds(process)
        until = began + seconds
        good = [client(http, lines, until, seed, seen) for seed, http in enumerate(doors)]
        bad = [nuisance(address, until, seed) for seed in range(nuisances)]
        _, *counts = await asyncio.gather(asyncio.gather(*good), *bad)
        took_all = time.perf_counter() - began
    took = 1000 * np.array([one for status, one, _ in seen if status == 200])
    found = {
        "clients": clients,
        "requests": len(seen),
        "statuses": dict(sorted(Counter(str(status) for status, _, _ in seen).items())),
        "verified": sum(ok for status, _, ok in seen if status == 200),
        "refusals_with_retry_after": sum(ok for status, _, ok in seen if status == 503),
        "p50_ms": float(np.percentile(took, 50)),
        "p99_ms": float(np.percentile(took, 99)),
        "answers_per_s": len(took) / took_all,
        "core_ms": 1000 * (core_seconds(process) - used) / len(seen),
    }
    return found | ({"misbehaving": nuisances, "misdeeds": sum(counts)} if nuisances else {})


def measure(seconds: float, count: int) -> dict[str, Any]:
    """All the settings, each for some seconds."""
    problem = get_problem("sudoku")
    lines = [puzzles.make(problem, np.random.default_rng(seed)) for seed in range(count)]
    with server() as place:
        below = [asyncio.run(press(place, clients, seconds, lines)) for clients in CLIENTS]
        beside = asyncio.run(press(place, 8, seconds, lines, nuisances=4))
        healthy = httpx.get(f"{place[0]}/api/health").json()
    with server("--queue", str(SMALL_QUEUE)) as place:
        over = asyncio.run(press(place, CLIENTS[-1], seconds, lines))
    return {
        "seconds": seconds,
        "puzzles": count,
        "below_the_limit": below,
        "beside_misbehaving_clients": beside,
        "waiting_afterwards": sum(healthy["waiting"].values()) + healthy["searching"],
        "over_the_limit": {"queue": SMALL_QUEUE, **over},
    }


def main() -> None:
    """Measure and write the result file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a fraction of a second each")
    parser.add_argument("--out", type=Path, default=RESULTS / "serve_speed.json")
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sizes = (0.6, 10) if arguments.quick else (12.0, 500)
    load = round(os.getloadavg()[0], 2)
    about = {"kind": "serve_speed", "provenance": provenance(), "load_before": load, "model": "sudoku"}
    result = {**about, **measure(*sizes)}
    write_text(arguments.out, json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
