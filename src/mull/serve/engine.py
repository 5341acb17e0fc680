"""Merging requests: the puzzles of all clients share one running batch, and come and go with every recurrence.

A puzzle that arrives joins the batch at the next recurrence, so nobody waits for a batch to fill up or to end. It
leaves when its answer is verified, when its recurrences are used up, or when nobody waits for it any more. Requests
take turns, so one with many puzzles does not hold up the others.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mull.constraints import UNKNOWN, BoolArray, IntArray
from mull.problem import Instance
from mull.runtime import FloatArray, State
from mull.serve.settings import BusyError
from mull.solve import NO_RULES, Answer, Solver

Watcher = Callable[[int, IntArray, FloatArray], None]
"""Told after each recurrence: its number, the values (V,) and the probability of each (V,)."""


@dataclass(eq=False)
class Job:
    """One puzzle on its way: what it is, who wants to know, and how far it is."""

    text: str
    instance: Instance
    limit: int
    """Recurrences at most."""
    watcher: Watcher | None = None
    result: Future[Answer] = field(default_factory=Future)
    step: int = 0
    seconds: float = 0.0

    @property
    def abandoned(self) -> bool:
        """Whether its client has hung up or given up."""
        return self.result.cancelled()


class Engine:
    """A model and the threads that step it."""

    def __init__(self, solver: Solver, queue: int) -> None:
        """`queue`: how many puzzles may wait for a place."""
        self.solver, self._queue = solver, queue
        self._waiting: deque[deque[Job]] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self.merged: deque[int] = deque(maxlen=1024)
        """Puzzles in each of the last recurrences."""
        runtime = solver.runtime
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(runtime.workers)]
        for thread in self._threads:
            thread.start()

    @property
    def waiting(self) -> int:
        """Puzzles that have no place yet."""
        with self._changed:
            return self._count()

    def submit(self, jobs: Sequence[Job]) -> None:
        """Queue the puzzles of a request; raises BusyError if too many are waiting already."""
        with self._changed:
            waiting = self._count()
            if self._closed or (waiting and waiting + len(jobs) > self._queue):
                raise BusyError(waiting)
            self._waiting.append(deque(jobs))
            self._changed.notify_all()

    def close(self) -> None:
        """Stop the threads; what is unanswered is cancelled."""
        with self._changed:
            self._closed = True
            for jobs in self._waiting:
                for job in jobs:
                    job.result.cancel()
            self._waiting.clear()
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(timeout=5)

    def _count(self) -> int:
        """Puzzles that still have a client; those of clients that hung up are dropped here."""
        for jobs in self._waiting:
            if any(job.abandoned for job in jobs):
                kept = [job for job in jobs if not job.abandoned]
                jobs.clear()
                jobs.extend(kept)
        return sum(map(len, self._waiting))

    def _take(self, places: int, wait: bool) -> list[Job]:
        """Up to `places` puzzles, one of each request in turn; waits for the first if there is nothing else to do."""
        with self._changed:
            while wait and not self._waiting and not self._closed:
                self._changed.wait()
            taken: list[Job] = []
            while self._waiting and len(taken) < places:
                jobs = self._waiting.popleft()
                while jobs and jobs[0].abandoned:
                    jobs.popleft()
                if jobs:
                    taken.append(jobs.popleft())
                if jobs:
                    self._waiting.append(jobs)
            return taken

    def _work(self) -> None:
        """A thread's life: a batch that is empty, grows and shrinks, until the engine is closed."""
        batch = _Batch(self.solver)
        while not self._closed:
            try:
                batch.admit(self._take(self.solver.runtime.batch - len(batch), wait=not len(batch)))
                if len(batch):
                    self.merged.append(len(batch))
                    batch.step()
            except Exception as error:  # one bad batch must not end the thread
                batch.fail(error)


class _Batch:
    """The puzzles that one thread steps together."""

    def __init__(self, solver: Solver) -> None:
        self._solver = solver
        self._jobs: list[Job] = []
        self._inputs: NDArray[Any] = np.empty(0)
        self._state: State | None = None

    def __len__(self) -> int:
        return len(self._jobs)

    def admit(self, jobs: list[Job]) -> None:
        """Start new puzzles."""
        if not jobs:
            return
        self._jobs, before = [*self._jobs, *jobs], len(self._jobs)
        inputs = np.stack([job.instance.inputs for job in jobs])
        state = self._solver.runtime.start(inputs)
        self._inputs = np.concatenate([self._inputs, inputs]) if before else inputs
        self._state = state if self._state is None or not before else joined(self._state, state)

    def step(self) -> None:
        """One recurrence of all; what is done leaves."""
        assert self._state is not None
        began = time.perf_counter()
        self._state, logits_BVD = self._solver.runtime.step(self._state)
        values_BV = logits_BVD.argmax(axis=-1)
        solved = self._solver.verified(self._inputs, values_BV)
        share = (time.perf_counter() - began) / len(self._jobs)
        keep = np.zeros(len(self._jobs), dtype=bool)
        for row, job in enumerate(self._jobs):
            job.step, job.seconds = job.step + 1, job.seconds + share
            if job.abandoned:
                continue
            if job.watcher is not None:
                job.watcher(job.step, values_BV[row], certainties(logits_BVD[row]))
            keep[row] = not solved[row] and job.step < job.limit
            if not keep[row] and job.result.set_running_or_notify_cancel():
                given = None if self._state.given_BV is None else self._state.given_BV[row]
                job.result.set_result(self._answer(job, values_BV[row], bool(solved[row]), given))
        if not keep.all():
            rows = np.flatnonzero(keep)
            self._jobs, self._inputs = [self._jobs[row] for row in rows], self._inputs[rows]
            self._state = self._state[rows]

    def fail(self, error: Exception) -> None:
        """Tell everybody in the batch, and start anew."""
        for job in self._jobs:
            if not job.result.done() and job.result.set_running_or_notify_cancel():
                job.result.set_exception(error)
        self._jobs, self._state = [], None

    def _answer(self, job: Job, values: IntArray, verified: bool, given: BoolArray | None) -> Answer:
        problem = self._solver.problem
        recognised = None if given is None else np.where(given, values, UNKNOWN)
        note = "" if verified else f"no verified answer after {job.step} recurrences" if problem.rules else NO_RULES
        return Answer(
            puzzle=job.text,
            solution=problem.write_answer(values),
            verified=verified,
            steps=job.step,
            method="recurrence",
            ms=round(1000 * job.seconds, 3),
            note=note,
            givens=None if recognised is None else problem.write_answer(recognised),
            values=values,
            given_values=recognised,
        )


def certainties(logits_VD: FloatArray) -> FloatArray:
    """(V,): the probability of each variable's most likely value."""
    top = logits_VD.max(axis=-1, keepdims=True)
    return np.asarray(1.0 / np.exp(logits_VD - top).sum(axis=-1))


def joined(first: State, second: State) -> State:
    """Two batches as one."""
    tensors = zip(first.tensors, second.tensors, strict=True)
    given = None
    if first.given_BV is not None and second.given_BV is not None:
        given = np.concatenate([first.given_BV, second.given_BV])
    return State(tuple(_concatenate(one, other) for one, other in tensors), given)


def _concatenate(one: Any, other: Any) -> Any:
    if isinstance(one, np.ndarray):
        return np.concatenate([one, other])
    import torch

    return torch.cat([one, other])
