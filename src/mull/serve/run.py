"""Starting the server."""

from __future__ import annotations

import os
import socket
import sys
from dataclasses import replace

import uvicorn

from mull.errors import UserError
from mull.serve.app import create_app
from mull.serve.settings import Settings


def run(host: str, port: int, models: list[str], settings: Settings) -> None:
    """Serve until interrupted; prints the address, with the port that was chosen if `port` is 0."""
    sys.setswitchinterval(0.0005)  # the threads that step models must not keep the one that answers waiting
    app = create_app(replace(settings, hosts=(*settings.hosts, host)), models)
    with _listen(host, port) as listening:
        shown = f"[{host}]" if ":" in host else host
        print(f"mull serves on http://{shown}:{listening.getsockname()[1]} (interrupt to stop)", flush=True)
        level = "info" if os.environ.get("MULL_ACCESS_LOG") else "warning"
        config = uvicorn.Config(app, log_level=level, timeout_graceful_shutdown=2, server_header=False)
        uvicorn.Server(config).run(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    """A socket that says it is TCP: asyncio sends answers at once (TCP_NODELAY) only on connections of such a one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(1024)
    except (OSError, OverflowError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"cannot listen on {host}:{port}: {reason}") from error
    return listening
