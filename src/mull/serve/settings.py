"""What a server allows: sizes, times and queues, each with the refusal that a client gets beyond it."""

from __future__ import annotations

from dataclasses import dataclass

from mull.errors import UserError


class BusyError(UserError):
    """Too much is waiting already; the client may come back after `retry_after` seconds."""

    def __init__(self, waiting: int, retry_after: int = 1) -> None:
        super().__init__(f"busy: {waiting} puzzles are waiting already; try again in {retry_after} s")
        self.retry_after = retry_after


@dataclass(frozen=True)
class Settings:
    """The limits of a server."""

    body: int = 8 << 20
    """Bytes of a request; more is 413."""
    batch: int = 256
    """Puzzles in a request; more is 422."""
    queue: int = 512
    """Puzzles that may wait for a free place, by model; more is 503 with Retry-After."""
    seconds: float = 30.0
    """Time for a request; more is 504."""
    steps: int = 1024
    """Recurrences at most; a request that asks for more is 422, and a model whose card says more stops here."""
    image_side: int = 2048
    """Pixels along an image's side; more is 422."""
    hosts: tuple[str, ...] = ()
    """Names that the server answers to besides localhost (see `hosts.py`); others are 421."""
    search: int = 200
    """Model calls that a request may ask a search for; more is 422."""
    further: float = 10.0
    """Seconds that a search may take for a puzzle, and the exact solver for an answer; then they say so."""
    helpers: int = 2
    """Threads for what is no recurrence and quickly done: reading, explaining, attention."""
    helping: int = 64
    """Requests that may wait for a helper; more is 503."""
    searchers: int = 2
    """Threads for search and the exact solver."""
    searching: int = 6
    """Puzzles that may be searched or wait for it; more is 503."""
