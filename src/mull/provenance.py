"""Where a result came from: versions, hardware and commit."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path

PACKAGES = ("mull", "numpy", "torch", "onnxruntime")


def provenance(device: str | None = None) -> dict[str, str]:
    """Command, versions, hardware and commit, for every file that states a result."""
    versions = {name: version for name in PACKAGES if (version := _version(name))}
    return {
        "command": command(),
        "commit": commit(),
        "python": platform.python_version(),
        **versions,
        "hardware": hardware(device),
    }


def command() -> str:
    """The command line of this process; no path outside the working folder."""
    program = Path(sys.argv[0])
    name = program.name if program.is_absolute() else str(program)
    return " ".join(["mull" if program.name == "__main__.py" else name, *sys.argv[1:]])


def hardware(device: str | None = None) -> str:
    """The device in words."""
    if device is not None and device.startswith("cuda"):
        import torch

        return torch.cuda.get_device_name(device)
    return f"{platform.machine()} CPU, {os.cpu_count()} cores"


def commit() -> str:
    """The commit of the source tree, with a + if it was changed since; `MULL_COMMIT` where there is no git."""
    here = Path(__file__).parent
    if not (here.parents[1] / "pyproject.toml").exists():  # installed: a repository around it is not ours
        return os.environ.get("MULL_COMMIT", "unknown")
    describe = ["git", "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*"]
    try:
        run = subprocess.run(describe, cwd=here, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return os.environ.get("MULL_COMMIT", "unknown")
    return run.stdout.strip()


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
