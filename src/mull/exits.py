"""Exit codes: 0 everything solved and verified; 1 something was not; 2 bad input or usage, told in one line."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from mull.errors import UserError

EXTRAS = {"cpmpy": "exact", "ortools": "exact", "cv2": "photo"}
EXTRAS |= {"pyarrow": "parquet", "ray": "ray"}
EXTRAS |= {"fastapi": "serve", "uvicorn": "serve", "starlette": "serve"}
"""Which extra brings a missing module; the others come with `train`."""


def guarded(command: Callable[[], int]) -> int:
    """The exit code of a command; whatever goes wrong is told in one line."""
    try:
        code = command()
        sys.stdout.flush()
        return code
    except UserError as error:
        return complain(str(error))
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        return complain(f"this needs {module}: install mull[{EXTRAS.get(module, 'train')}]", error)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader has seen enough: `mull solve -f puzzles.txt | head -1`
        return _silence(1)
    except MemoryError:
        return complain("out of memory")
    except OSError as error:
        _silence(2)  # a full disk would complain again when Python flushes at exit
        place = f"{error.filename}: " if error.filename else ""
        return complain(f"{place}{error.strerror or error}", error)
    except Exception as error:
        return complain(f"internal error: {type(error).__name__}: {error}", error)


def complain(message: str, error: Exception | None = None) -> int:
    """One line on standard error; the whole story only with MULL_TRACEBACK=1."""
    if error is not None and os.environ.get("MULL_TRACEBACK"):
        raise error
    print("mull:", " ".join(message.split()), file=sys.stderr)
    return 2


def _silence(code: int) -> int:
    """Send what is still unwritten nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code
