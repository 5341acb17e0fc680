"""mull: small recurrent Transformers that learn to solve constraint satisfaction problems.

    >>> import mull
    >>> mull.load("sudoku").solve("53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79")

Names are imported when they are first used: `import mull` is fast, and only training imports torch.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mull.evaluate import evaluate
    from mull.problem import Problem
    from mull.solve import Answer, Solver, load
    from mull.train import train

    __version__: str

__all__ = ["Answer", "Problem", "Solver", "__version__", "evaluate", "load", "train"]

_HOMES = {
    "Answer": "mull.solve",
    "Problem": "mull.problem",
    "Solver": "mull.solve",
    "evaluate": "mull.evaluate",
    "load": "mull.solve",
    "train": "mull.train",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("mull")
        except PackageNotFoundError:  # run from a source tree
            return "unknown"
    if name not in _HOMES:
        raise AttributeError(f"module 'mull' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__


class _Package(ModuleType):
    """Keeps `mull.train` and `mull.evaluate` functions: importing the modules of those names would replace them."""

    def __setattr__(self, name: str, value: object) -> None:
        if name in _HOMES and isinstance(value, ModuleType):
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
