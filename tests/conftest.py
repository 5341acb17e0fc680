"""What all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent
SHARED_DATA = ROOT.parent / "shared" / "data"

# Before anything of mull is imported: the external data sets, where a checkout has them beside it.
if "MULL_DATA" not in os.environ and SHARED_DATA.is_dir():
    os.environ["MULL_DATA"] = str(SHARED_DATA)

# A first call may compile a generator, so no deadline; the same examples on every run, so that CI cannot flake.
settings.register_profile("mull", deadline=None, derandomize=True, database=None)
settings.load_profile("mull")


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's root folder."""
    return ROOT


@pytest.fixture(scope="session")
def external_data() -> Path:
    """The folder of external data sets; skips the test where there is none."""
    folder = Path(os.environ.get("MULL_DATA", ""))
    if not os.environ.get("MULL_DATA") or not folder.is_dir():
        pytest.skip("MULL_DATA names no folder of external data sets")
    return folder


@pytest.fixture
def photographs(external_data: Path) -> Path:
    """The folder of labelled photographs, which nobody can download; skips the test where there is none."""
    folder = external_data / "photos"
    if not folder.is_dir():
        pytest.skip("MULL_DATA has no photographs")
    return folder


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests marked gpu where there is no CUDA device."""
    on_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if not on_gpu:
        return
    import torch

    if not torch.cuda.is_available():
        for item in on_gpu:
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))
