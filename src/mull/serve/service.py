"""What the server does for a request, without HTTP: read, solve, explain, watch, attend, each within its limits."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from mull import exact as exact_solver
from mull.constraints import UNKNOWN
from mull.errors import InvalidInput, UserError
from mull.problem import Images, Instance
from mull.serve import reading
from mull.serve.catalogue import Catalogue
from mull.serve.engine import Engine, Job, Watcher
from mull.serve.schemas import AnswerOut, StreamRequest
from mull.serve.settings import BusyError, Settings
from mull.solve import Answer, Solver

Result = TypeVar("Result")


@dataclass(frozen=True)
class Order:
    """A request that was read: its model, its puzzles, and how far to go."""

    engine: Engine
    texts: list[str]
    instances: list[Instance]
    steps: int
    exact: bool
    explain: bool

    def jobs(self, watcher: Watcher | None = None) -> list[Job]:
        """The puzzles as jobs."""
        return [Job(text, one, self.steps, watcher) for text, one in zip(self.texts, self.instances, strict=True)]


class Service:
    """The catalogue, and helper threads for all that is no recurrence."""

    def __init__(self, catalogue: Catalogue, settings: Settings) -> None:
        self.catalogue, self.settings = catalogue, settings
        self._helpers = ThreadPoolExecutor(settings.helpers, thread_name_prefix="helper")
        self._helping, self._lock = 0, threading.Lock()

    def close(self) -> None:
        """Stop all threads."""
        self._helpers.shutdown(wait=False, cancel_futures=True)
        self.catalogue.close()

    async def help(self, call: Callable[..., Result], *arguments: Any) -> Result:
        """Run something in a helper thread; raises BusyError if too many wait for one."""
        with self._lock:
            if self._helping >= self.settings.helping:
                raise BusyError(self._helping)
            self._helping += 1
        future = self._helpers.submit(call, *arguments)
        future.add_done_callback(self._helped)
        return await asyncio.wrap_future(future)

    def _helped(self, _: object) -> None:
        with self._lock:
            self._helping -= 1

    async def read(self, request: StreamRequest, puzzles: list[str], places: list[str]) -> Order:
        """Check a request and read its puzzles."""
        card, limits = self.catalogue.card(request.model), self.settings
        if not puzzles:
            raise InvalidInput("there is no puzzle in the request")
        if len(puzzles) > limits.batch:
            raise InvalidInput(f"{len(puzzles)} puzzles in one request; the most is {limits.batch}")
        if request.steps is not None and request.steps > limits.steps:
            raise InvalidInput(f"{request.steps} recurrences; the most is {limits.steps}")
        if request.exact and not exact_solver.available():
            raise InvalidInput("the exact solver is not installed: install mull[exact]")

        def work() -> Order:
            named = zip(puzzles, places, strict=True)
            side = limits.image_side
            instances = [reading.read(card.problem, text, side, place) for text, place in named]
            engine = self.catalogue.engine(request.model)
            return Order(engine, puzzles, instances, request.steps or card.steps, request.exact, request.explain)

        # One line of text is read faster than a thread is asked to; images, lists and loading a model are not.
        quick = len(puzzles) == 1 and not isinstance(card.problem.input_kind(), Images)
        return work() if quick and request.model in self.catalogue.engines else await self.help(work)

    async def solve(self, order: Order) -> list[AnswerOut]:
        """Answers in the order of the puzzles; a cancelled call takes its puzzles out of the batch."""
        jobs = order.jobs()
        order.engine.submit(jobs)
        answers = await asyncio.gather(*(asyncio.wrap_future(job.result) for job in jobs))
        return [written(await self.finish(order, answer)) for answer in answers]

    async def finish(self, order: Order, answer: Answer) -> Answer:
        """The answer, settled or explained where that is asked for."""
        problem = order.engine.solver.problem
        if not problem.rules or not (order.exact or order.explain) or (answer.verified and not order.explain):
            return answer
        solver = Solver(order.engine.solver.runtime, order.steps, exact=order.exact or None)
        call = solver.remark if answer.verified and not order.exact else solver.explain
        return await self.help(call, answer)

    async def watch(self, order: Order) -> AsyncIterator[str]:
        """Server-sent events: `start`, a `step` for each recurrence, and `answer`; `error` if time runs out."""
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
        try:
            yield event("start", {"steps": order.steps, "givens": _values(givens)})
            while (step := await asyncio.wait_for(events.get(), deadline - loop.time())) is not None:
                yield event("step", step)
            answer = await asyncio.wait_for(self.finish(order, job.result.result()), deadline - loop.time())
            yield event("answer", shown(order, job, answer))
        except asyncio.TimeoutError:
            yield event("error", {"detail": f"not done after {self.settings.seconds:g} s"})
        except UserError as error:
            yield event("error", {"detail": str(error)})
        finally:
            job.result.cancel()


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
        note=answer.note or None,
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
