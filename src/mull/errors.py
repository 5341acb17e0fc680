"""The one exception that reaches users: what is wrong, in one line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Something the user gave us cannot be used; the message is one line and says what and where."""


class InvalidInput(UserError, ValueError):
    """A puzzle, a file or a value that does not fit the problem."""


class CorruptFile(UserError):
    """A weights or checkpoint file that is truncated, altered or not ours."""


def unknown(what: str, name: str, known: Iterable[str]) -> InvalidInput:
    """The error for a name that does not exist: suggests the nearest and lists all."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return InvalidInput(f"no {what} is called {name!r}; {hint}there are: {', '.join(names) or 'none'}")
