"""What the server does for a request, without HTTP: read, solve, explain, watch, attend, each within its limits."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from mull import exact as exact_solver
from mull.constraints import UNKNOWN
from mull.errors import InvalidInput, UserError
from mull.problem import Images, Instance
from mull.serve import further, reading
from mull.serve.catalogue import Catalogue
from mull.serve.engine import Engine, Job, Watcher
from mull.serve.schemas import AnswerOut, StreamRequest
from mull.serve.settings import Settings
from mull.serve.threads import Threads
from mull.solve import Answer, Solver


@dataclass(frozen=True)
class Order:
    """A request that was read: its model, its puzzles, and how far to go."""

    engine: Engine
    texts: list[str]
    instances: list[Instance]
    steps: int
    search: int
    exact: bool
    explain: bool

    def jobs(self, watcher: Watcher | None = None) -> list[Job]:
        """The puzzles as jobs."""
        return [Job(text, one, self.steps, watcher) for text, one in zip(self.texts, self.instances, strict=True)]


class Service:
    """The catalogue, and helper threads for all that is no recurrence."""

    def __init__(self, catalogue: Catalogue, settings: Settings) -> None:
        self.catalogue, self.settings = catalogue, settings
        self._helpers = Threads("helper", settings.helpers, settings.helping)
        self._searchers = Threads("searcher", settings.searchers, settings.searching)
        self.help = self._helpers.run

    @property
    def searching(self) -> int:
        """Puzzles that are searched, or wait for it."""
        return self._searchers.inside

    def close(self) -> None:
        """Stop all threads."""
        self._helpers.close()
        self._searchers.close()
        self.catalogue.close()

    async def read(self, request: StreamRequest, puzzles: list[str], places: list[str]) -> Order:
        """Check a request and read its puzzles."""
        card, limits = self.catalogue.card(request.model), self.settings
        if not puzzles:
            raise InvalidInput("there is no puzzle in the request")
        if len(puzzles) > limits.batch:
            raise InvalidInput(f"{len(puzzles)} puzzles in one request; the most is {limits.batch}")
        if request.steps is not None and request.steps > limits.steps:
            raise InvalidInput(f"{request.steps} recurrences; the most is {limits.steps}")
        if request.search > limits.search:
            raise InvalidInput(f"a search with {request.search} model calls; the most is {limits.search}")
        if request.exact and not exact_solver.available():
            raise InvalidInput("the exact solver is not installed: install mull[exact]")

        def work() -> Order:
            named = zip(puzzles, places, strict=True)
            side = limits.image_side
            instances = [reading.read(card.problem, text, side, place) for text, place in named]
            engine = self.catalogue.engine(request.model)
            wanted = request.search, request.exact, request.explain
            return Order(engine, puzzles, instances, min(request.steps or card.steps, limits.steps), *wanted)

        # One line of text is read faster than a thread is asked to; images, lists and loading a model are not.
        quick = len(puzzles) == 1 and not isinstance(card.problem.input_kind(), Images)
        return work() if quick and request.model in self.catalogue.engines else await self.help(work)

    async def solve(self, order: Order) -> list[AnswerOut]:
        """Answers in the order of the puzzles; a cancelled call takes its puzzles out of the batch."""
        jobs = order.jobs()
        order.engine.submit(jobs)
        answers = await asyncio.gather(*(asyncio.wrap_future(job.result) for job in jobs))
        both = zip(order.instances, answers, strict=True)
        return [written(await self.finish(order, instance, answer)) for instance, answer in both]

    async def finish(
        self, order: Order, instance: Instance, answer: Answer, watcher: further.Watcher | None = None
    ) -> Answer:
        """The answer after a search, settled or explained, where that is asked for and there is need of it."""
        solver = Solver(order.engine.solver.runtime, order.steps, order.exact or None, order.search)
        solver.exact_seconds = seconds = self.settings.further
        if not solver.problem.rules:
            return answer
        if order.search and not answer.verified:
            stop = threading.Event()
            try:
                call = further.search, solver, answer, instance, seconds, stop, watcher
                answer = await self._searchers.run(*call)
            finally:
                stop.set()  # the client may be gone
        if order.exact and (order.explain or not answer.verified):
            return await self._searchers.run(further.settle, solver, answer)
        if order.explain:
            return await self.help(further.explain, solver, answer)
        return answer

    async def watch(self, order: Order) -> AsyncIterator[str]:
        """Server-sent events: `start`, `step` for each recurrence, `search` now and then, `answer`; or `error`."""
        loop, events = asyncio.get_running_loop(), asyncio.Queue[dict[str, Any] | None]()

        def tell(event: dict[str, Any] | None) -> None:
            with suppress(RuntimeError):  # the loop is closed: the server is going down
                loop.call_soon_threadsafe(events.put_nowait, event)

        def watcher(step: int, values: Any, sure: Any) -> None:
            tell({"step": step, "values": values.tolist(), "sure": np.round(sure.astype(float), 3).tolist()})

        (job,) = order.jobs(watcher)
        job.result.add_done_callback(lambda _: tell(None))  # after the last step
        order.engine.submit([job])
        return self._events(order, job, events)

    async def _events(self, order: Order, job: Job, events: asyncio.Queue[dict[str, Any] | None]) -> AsyncIterator[str]:
        loop, givens = asyncio.get_running_loop(), order.engine.solver.problem.given_values(job.instance)
        deadline = loop.time() + self.settings.seconds
        rest: asyncio.Task[Answer] | None = None

        def watcher(steps: int, values: Any) -> None:
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(events.put_nowait, {"steps": steps, "values": values.tolist()})

        async def of(name: str) -> AsyncIterator[str]:
            while (found := await asyncio.wait_for(events.get(), deadline - loop.time())) is not None:
                yield event(name, found)

        try:
            yield event("start", {"steps": order.steps, "givens": _values(givens)})
            async for text in of("step"):
                yield text
            rest = asyncio.ensure_future(self.finish(order, job.instance, job.result.result(), watcher))
            rest.add_done_callback(lambda _: events.put_nowait(None))
            async for text in of("search"):
                yield text
            yield event("answer", shown(order, job, rest.result()))
        except asyncio.TimeoutError:
            yield event("error", {"detail": f"not done after {self.settings.seconds:g} s"})
        except UserError as error:
            yield event("error", {"detail": str(error)})
        finally:
            job.result.cancel()
            if rest is not None:
                rest.cancel()


def written(answer: Answer) -> AnswerOut:
    """An answer for the wire."""
    return AnswerOut(
        puzzle=answer.puzzle,
        solution=answer.solution,
        verified=answer.verified,
        steps=answer.steps,
        method=answer.method,
        ms=answer.ms,
        givens=answer.givens,
        note=answer.note.partition(": try --")[0] or None,  # what to try is said in words of the command line
    )


def shown(order: Order, job: Job, answer: Answer) -> dict[str, Any]:
    """An answer with what a page needs besides: values, the givens that were read, and which rules are broken."""
    problem = order.engine.solver.problem
    wrong = [] if answer.verified or answer.values is None else reading.broken(problem, job.instance, answer.values)
    return {
        **written(answer).model_dump(exclude_none=True),
        "values": None if answer.values is None else _values(answer.values),
        "read": None if answer.given_values is None else _values(answer.given_values),
        "broken": [one.model_dump() for one in wrong],
        "wrong": [] if answer.values is None else reading.at_fault(wrong, answer.values),
    }


def event(name: str, data: dict[str, Any]) -> str:
    """One server-sent event."""
    return f"event: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n"


def _values(values: Any) -> list[int | None]:
    return [None if value == UNKNOWN else value for value in values.tolist()]
