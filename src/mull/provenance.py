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
    """The command line of this process; of paths outside the working folder, the last part alone."""
    words = [Path(word).name if Path(word).is_absolute() else word for word in sys.argv]
    return " ".join(["mull" if words[0] == "__main__.py" else words[0], *words[1:]])


def hardware(device: str | None = None) -> str:
    """The device in words."""
    if device is not None and device.startswith("cuda"):
        import torch

        return torch.cuda.get_device_name(device)
    return f"{platform.machine()} CPU, {os.cpu_count()} cores"


def commit() -> str:
    """The commit of the source tree, with a + if it was changed since; `MULL_COMMIT` goes before."""
    if os.environ.get("MULL_COMMIT"):  # a copy of the tree may lie in another repository, or in an older state of ours
        return os.environ["MULL_COMMIT"]
    here = Path(__file__).parent
    if not (here.parents[1] / "pyproject.toml").exists():  # installed: a repository around it is not ours
        return "unknown"
    describe = ["git", "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*"]
    try:
        run = subprocess.run(describe, cwd=here, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return run.stdout.strip()


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
