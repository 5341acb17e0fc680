"""A server in a process of its own, for tests that need real connections."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mull import hub


@contextmanager
def served(*arguments: str) -> Iterator[str]:
    """The address of a server that runs meanwhile."""
    environment = {**os.environ, "PYTHONPATH": str(Path(hub.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "mull", "serve", "--port", "0", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://[\w.:]+", process.stdout.readline())
            assert found, "the server did not start"
            yield found[0]
        finally:
            process.terminate()
            process.wait(timeout=10)
