from __future__ import annotations

import platform
from collections.abc import Iterator
from pathlib import Path

import pytest

from mull import processor


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    processor._flags.cache_clear()
    yield
    processor._flags.cache_clear()


def test_there_is_a_core() -> None:
    assert processor.usable_cores() >= 1


@pytest.mark.parametrize(
    ("machine", "flags", "int8", "bf16"),
    [
        ("x86_64", "sse avx2 avx512_vnni avx512_bf16", True, True),
        ("AMD64", "avx2 avx_vnni", True, False),
        ("x86_64", "sse avx2 avx512f", False, False),
        ("aarch64", "asimddp avx_vnni avx512_bf16", False, False),
    ],
)
def test_products(
    machine: str, flags: str, int8: bool, bf16: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"processor\t: 0\nflags\t\t: fpu {flags}\n\nprocessor\t: 1\n")
    monkeypatch.setattr(processor, "CPUINFO", cpuinfo)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    assert processor.has_int8_products() is int8
    assert processor.has_bf16_products() is bf16
    assert processor.has_avx512_products() is False  # each of these lacks something


@pytest.mark.parametrize("missing", [None, "avx512f", "avx512bw", "avx512_vnni", "avx512_bf16"])
def test_what_our_kernel_needs(missing: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"flags\t\t: fpu {chr(32).join(processor.AVX512 - {missing})}\n")
    monkeypatch.setattr(processor, "CPUINFO", cpuinfo)
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    assert processor.has_avx512_products() is (missing is None)


def test_no_cpuinfo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "CPUINFO", tmp_path / "none")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    assert processor.has_int8_products() is False
