"""Starting the server."""

from __future__ import annotations

import os
import socket

import uvicorn

from mull.errors import UserError
from mull.serve.app import create_app
from mull.serve.settings import Settings


def run(host: str, port: int, models: list[str], settings: Settings) -> None:
    """Serve until interrupted; prints the address, with the port that was chosen if `port` is 0."""
    app = create_app(settings, models)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=1024)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"cannot listen on {host}:{port}: {reason}") from error
    with listening:
        shown = f"[{host}]" if ":" in host else host
        print(f"mull serves on http://{shown}:{listening.getsockname()[1]} (interrupt to stop)", flush=True)
        level = "info" if os.environ.get("MULL_ACCESS_LOG") else "warning"
        config = uvicorn.Config(app, log_level=level, timeout_graceful_shutdown=2, server_header=False)
        uvicorn.Server(config).run(sockets=[listening])
