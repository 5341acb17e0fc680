"""The outer wall: no body larger than allowed reaches the application, and no page of another origin gets in."""

from __future__ import annotations

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


class _TooLargeError(Exception):
    """The body went over the limit while it was read."""


class Guard:
    """ASGI middleware: refuses bodies over `limit` bytes with 413, told or not how long they are, and adds headers.

    Requests to a name that is not ours are refused with 421, and what another site's page sends with 403.
    """

    def __init__(self, app: ASGIApp, limit: int, hosts: Hosts) -> None:
        self._app, self._limit, self._hosts = app, limit, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refused, read = False, 0

        async def counted() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > self._limit:
                raise _TooLargeError
            return message

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                extra = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", []), *extra]}
            await send(message)

        async def unless_refused(message: Message) -> None:
            nonlocal refused
            if read <= self._limit:
                await with_headers(message)
            elif not refused:  # what the application made of half a body
                refused = True
                await self._too_large(with_headers)

        host = _header(scope, b"host")
        if not self._hosts.admits(host):
            why = f"this server is not called {named(host)[:100]!r}: whoever runs it can allow that with --allow-host"
            await _refuse(with_headers, 421, why)
            return
        if scope["method"] not in ("GET", "HEAD") and _header(scope, b"sec-fetch-site") == "cross-site":
            await _refuse(with_headers, 403, "the request comes from a page of another site")
            return
        announced = _header(scope, b"content-length")
        if announced.isdigit() and int(announced) > self._limit:
            await self._too_large(with_headers)
            return
        try:
            await self._app(scope, counted, unless_refused)
        except _TooLargeError:
            if not refused:
                await self._too_large(with_headers)

    async def _too_large(self, send: Send) -> None:
        await _refuse(send, 413, f"the request is larger than {self._limit} bytes")


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
