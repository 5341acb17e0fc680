"""Fetching a public file, and saying in one line why that failed; the folder where data lies."""

from __future__ import annotations

import os
from pathlib import Path

TIMEOUT_S = 60


def data_folder() -> Path:
    """The data folder: `$MULL_DATA`, or `~/.cache/mull`."""
    return Path(os.environ.get("MULL_DATA") or Path.home() / ".cache" / "mull")


def fetch(url: str) -> bytes:
    """The content at a public address; raises OSError."""
    import http.client  # here, since solving never fetches and these take 20 ms to import
    import urllib.request

    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
            content: bytes = answer.read()
            return content
    except http.client.HTTPException as error:
        raise OSError(f"broken answer ({type(error).__name__})") from error


def one_line(error: BaseException) -> str:
    """What went wrong, without the wrapping of the libraries in between."""
    import urllib.error

    bare = isinstance(error, urllib.error.URLError) and not isinstance(error, urllib.error.HTTPError)
    reason = getattr(error, "reason", error) if bare else error
    return " ".join(str(reason).split()) or type(reason).__name__
