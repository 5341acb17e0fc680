"""What the processor can do that decides how to compute."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
INT8 = frozenset({"avx512_vnni", "avx_vnni"})
"""Instructions that multiply 8-bit numbers and add into 32 bits, as Linux calls them."""
BF16 = frozenset({"avx512_bf16", "amx_bf16"})
"""Instructions that multiply bfloat16 numbers."""
AVX512 = frozenset({"avx512f", "avx512bw", "avx512_vnni", "avx512_bf16"})
"""Instructions that our own kernel for solving is written for."""


def usable_cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def has_int8_products() -> bool:
    """Whether 8-bit products are fast here and exact: an x86 processor with VNNI, where they were measured.

    Older x86 processors add pairs of products in 16 bits, which can overflow; then int8 is neither faster nor as
    accurate as the model's card says. On other processors nobody measured it.
    """
    return not INT8.isdisjoint(_flags())


def has_bf16_products() -> bool:
    """Whether bfloat16 products are faster here than float32: an x86 processor with instructions for them."""
    return not BF16.isdisjoint(_flags())


def has_avx512_products() -> bool:
    """Whether there are products of 8-bit and of bfloat16 numbers in vectors of 64 bytes."""
    return _flags() >= AVX512


@cache
def _flags() -> frozenset[str]:
    """What Linux says that an x86 processor can do; nothing elsewhere."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return frozenset()
    try:
        with CPUINFO.open() as lines:
            for line in lines:
                if line.startswith("flags"):  # all cores have the same
                    return frozenset(line.split())
    except OSError:  # not Linux
        pass
    return frozenset()
