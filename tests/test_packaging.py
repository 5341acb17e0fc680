"""What is installed: the package with its weights and types, from one version."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel that users install."""
    if find_spec("hatchling") is None:
        pytest.skip("needs hatchling")
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=root, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return zipfile.ZipFile(path)


def test_the_wheel_holds_the_package_its_weights_and_nothing_else(root: Path, wheel: zipfile.ZipFile) -> None:
    source, names = root / "src", set(wheel.namelist())
    kinds = (".py", ".mull", ".onnx", ".safetensors", ".html", ".css", ".js", ".svg", ".txt")
    wanted = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.suffix in kinds}
    assert {"mull/py.typed", *wanted} <= names
    assert all(name.startswith(("mull/", "mull-")) for name in names)


def test_the_base_install_needs_no_torch_and_no_compiler(wheel: zipfile.ZipFile) -> None:
    (metadata,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    lines = [line for line in wheel.read(metadata).decode().splitlines() if line.startswith("Requires-Dist:")]
    base = [re.split(r"[ >=]", line.split(": ")[1])[0] for line in lines if "extra ==" not in line]
    assert sorted(base) == ["numpy", "onnxruntime", "pillow", "rich", "typer"]
