"""The outer wall: no body larger than allowed reaches the application, and no page of another origin gets in."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mull.serve.hosts import Hosts, named

HEADERS = {
    "content-security-policy": "default-src 'self'; img-src 'self' data: blob:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}


class _BodyError(Exception):
    """The body went over a limit while it was read."""


class Guard:
    """ASGI middleware: refuses bodies over `limit` bytes with 413, told or not how long they are, and adds headers.

    A body that takes longer than `seconds` is refused with 408, requests to a name that is not ours with 421, and what
    another site's page sends with 403.
    """

    def __init__(self, app: ASGIApp, limit: int, seconds: float, hosts: Hosts) -> None:
        self._app, self._limit, self._seconds, self._hosts = app, limit, seconds, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        clock = asyncio.get_running_loop().time
        refused, whole, read, deadline = False, False, 0, clock() + self._seconds
        trouble: tuple[int, str] | None = None
        too_large = 413, f"the request is larger than {self._limit} bytes"

        async def counted() -> Message:
            nonlocal read, whole, trouble
            if whole:  # what comes next is that the client hangs up, some day
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), deadline - clock())
            except asyncio.TimeoutError as error:
                trouble = 408, f"the request was not there after {self._seconds:g} s"
                raise _BodyError from error
            whole = not message.get("more_body", False)
            read += len(message.get("body", b""))
            if read > self._limit:
                trouble = too_large
                raise _BodyError
            return message

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                extra = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", []), *extra]}
            await send(message)

        async def unless_refused(message: Message) -> None:
            nonlocal refused
            if trouble is None:
                await with_headers(message)
            elif not refused:  # what the application made of half a body
                refused = True
                await _refuse(with_headers, *trouble)

        wrong = self._stranger(scope)
        announced = _header(scope, b"content-length")
        if wrong is None and announced.isdigit() and int(announced) > self._limit:
            wrong = too_large
        if wrong is not None:
            await _refuse(with_headers, *wrong)
            return
        try:
            await self._app(scope, counted, unless_refused)
        except _BodyError:
            if trouble is not None and not refused:
                await _refuse(with_headers, *trouble)

    def _stranger(self, scope: Scope) -> tuple[int, str] | None:
        """Status and reason for a request that was not meant for this server, or not by its own page."""
        host = _header(scope, b"host")
        if not self._hosts.admits(host):
            name = named(host)[:100]
            return 421, f"this server is not called {name!r}: whoever runs it can allow that with --allow-host"
        if scope["method"] not in ("GET", "HEAD") and _header(scope, b"sec-fetch-site") == "cross-site":
            return 403, "the request comes from a page of another site"
        return None


async def _refuse(send: Send, status: int, detail: str) -> None:
    content = json.dumps({"detail": detail}).encode()
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    headers.append((b"content-length", str(len(content)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})


def _header(scope: dict[str, Any] | Scope, wanted: bytes) -> str:
    """What a request's header says; nothing if it is not there, or there twice."""
    found = [value for name, value in scope["headers"] if name == wanted]
    return found[0].decode("latin-1") if len(found) == 1 else ""
