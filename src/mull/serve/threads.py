"""A few threads with a short queue: what is more than that is refused at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from mull.serve.settings import BusyError

Result = TypeVar("Result")


class Threads:
    """Runs calls in `count` threads; at most `most` run or wait at a time."""

    def __init__(self, name: str, count: int, most: int) -> None:
        self._pool = ThreadPoolExecutor(count, thread_name_prefix=name)
        self._most, self._inside, self._lock = most, 0, threading.Lock()

    @property
    def inside(self) -> int:
        """Calls that run or wait."""
        return self._inside

    async def run(self, call: Callable[..., Result], *arguments: Any) -> Result:
        """What the call returns; raises BusyError if too many wait already."""
        with self._lock:
            if self._inside >= self._most:
                raise BusyError(self._inside)
            self._inside += 1
        future = self._pool.submit(call, *arguments)
        future.add_done_callback(self._left)
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Take no more; what waits is cancelled."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _left(self, _: object) -> None:
        with self._lock:
            self._inside -= 1
