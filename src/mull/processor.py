"""What the processor can do that decides how to compute."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
DOT_PRODUCTS = frozenset({"avx512_vnni", "avx_vnni"})
"""Instructions that multiply and add 8-bit numbers into 32-bit sums, as Linux calls them."""


def usable_cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def has_int8_products() -> bool:
    """Whether 8-bit products are fast here and exact: an x86 processor with VNNI, where they were measured.

    Older x86 processors add pairs of products in 16 bits, which can overflow; then int8 is neither faster nor as
    accurate as the model's card says. On other processors nobody measured it.
    """
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return False
    try:
        with CPUINFO.open() as lines:
            for line in lines:
                if line.startswith("flags"):  # all cores have the same
                    return not DOT_PRODUCTS.isdisjoint(line.split())
    except OSError:  # not Linux
        pass
    return False
