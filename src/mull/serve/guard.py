"""The outer wall: no body larger than allowed reaches the application, and no page of another origin gets into ours."""

from __future__ import annotations

import json
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "content-security-policy": "default-src 'self'; img-src 'self' data: blob:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}


class _TooLargeError(Exception):
    """The body went over the limit while it was read."""


class Guard:
    """ASGI middleware: refuses bodies over `limit` bytes with 413, told or not how long they are, and adds headers."""

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self._app, self._limit = app, limit

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
                await self._refuse(with_headers)

        if _announced(scope) > self._limit:
            await self._refuse(with_headers)
            return
        try:
            await self._app(scope, counted, unless_refused)
        except _TooLargeError:
            if not refused:
                await self._refuse(with_headers)

    async def _refuse(self, send: Send) -> None:
        content = json.dumps({"detail": f"the request is larger than {self._limit} bytes"}).encode()
        headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
        headers.append((b"content-length", str(len(content)).encode()))
        await send({"type": "http.response.start", "status": 413, "headers": headers})
        await send({"type": "http.response.body", "body": content})


def _announced(scope: dict[str, Any] | Scope) -> int:
    """The length that the request says it has."""
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value)
    return 0
