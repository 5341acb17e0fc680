"""Which names a server answers to.

A page from anywhere can have its own name resolve to 127.0.0.1 (DNS rebinding); a browser then takes this server for
that page's own. The request still carries the page's name, so one that names neither this machine's loopback, nor the
address that the server is bound to, nor a name that the operator allows, is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address

ANY = "*"
"""Allows every name."""
WILDCARDS = ("0.0.0.0", "::", "")
"""Bound to these, a server can be reached by any address of the machine: numbers are then allowed, since no name was
resolved to get there; names still have to be allowed one by one."""


class Hosts:
    """The names and addresses that may stand in a request's Host header."""

    def __init__(self, names: Iterable[str]) -> None:
        """`names`: the address bound to, and names allowed; `*.example.org` allows all below it."""
        found = {name.lower().strip("[]").rstrip(".") for name in names}
        self._any, self._addresses = ANY in found, not found.isdisjoint(WILDCARDS)
        self._names = {name for name in found if not name.startswith("*")}
        self._endings = tuple(name[1:] for name in found if name.startswith("*."))

    def admits(self, header: str) -> bool:
        """Whether a Host header names this server; the port may be any."""
        if self._any:
            return True
        name = named(header)
        try:
            address = ip_address(name)
        except ValueError:
            known = name in self._names or name == "localhost" or name.endswith((".localhost", *self._endings))
            return bool(name) and known
        return address.is_loopback or self._addresses or name in self._names


def named(header: str) -> str:
    """The name or address in a Host header, without its port."""
    text = header.strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0].rstrip(".")
