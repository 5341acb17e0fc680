from __future__ import annotations

import platform
from collections.abc import Iterator
from pathlib import Path

import pytest

from mull import processor


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    processor.has_int8_products.cache_clear()
    yield
    processor.has_int8_products.cache_clear()


def test_there_is_a_core() -> None:
    assert processor.usable_cores() >= 1


@pytest.mark.parametrize(
    ("machine", "flags", "fast"),
    [
        ("x86_64", "sse avx2 avx512_vnni", True),
        ("AMD64", "avx2 avx_vnni", True),
        ("x86_64", "sse avx2 avx512f", False),
        ("aarch64", "asimddp avx_vnni", False),
    ],
)
def test_int8_products(machine: str, flags: str, fast: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"processor\t: 0\nflags\t\t: fpu {flags}\n\nprocessor\t: 1\n")
    monkeypatch.setattr(processor, "CPUINFO", cpuinfo)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    assert processor.has_int8_products() is fast


def test_no_cpuinfo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "CPUINFO", tmp_path / "none")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    assert processor.has_int8_products() is False
