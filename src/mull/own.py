"""A problem of the user's own, from a Python file that the user names: `FILE:NAME`.

NAME is a Problem, a subclass of it, or a function that returns one. This is the only place where mull runs code that
is not its own, and only for a file on the command line: a model file names a class, and never where to find it.
"""

from __future__ import annotations

import hashlib
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from mull.errors import InvalidInput, UserError, unknown
from mull.problem import Problem
from mull.problems import CLASSES, PROBLEMS

SHIPPED = frozenset(CLASSES)


def load_problem(source: str) -> Problem:
    """The problem at `FILE:NAME`; model files and runs may name its class from now on."""
    path, colon, name = source.rpartition(":")
    if not colon or not path or not name:
        raise InvalidInput(f"a problem of your own is FILE:NAME, not {source!r}")
    module = _run(Path(path))
    if name not in vars(module):
        public = [key for key, value in vars(module).items() if not key.startswith("_") and _defines(value, module)]
        raise unknown(f"problem in {path}", name, public)
    problem = _problem(vars(module)[name], source)
    if problem.name in PROBLEMS:
        raise InvalidInput(f"{source}: the name {problem.name!r} is that of a problem of mull's: choose another")
    kind = type(problem).__name__
    if CLASSES.get(kind) is not type(problem):
        if kind in SHIPPED:
            raise InvalidInput(f"{source}: the class name {kind} is that of a problem of mull's: choose another")
        CLASSES[kind] = type(problem)
    return problem


def _run(path: Path) -> ModuleType:
    """The user's file as a module; its folder is not searched for others."""
    if not path.is_file():
        raise InvalidInput(f"there is no file {path}")
    spec = spec_from_file_location(f"mull_own_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]}", path)
    if spec is None or spec.loader is None:
        raise InvalidInput(f"{path} is no Python file")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except (UserError, ModuleNotFoundError):
        raise
    except Exception as error:  # whatever a user's file does, it is told in one line
        raise InvalidInput(f"{path}: {type(error).__name__}: {error}") from error
    return module


def _defines(value: Any, module: ModuleType) -> bool:
    return isinstance(value, Problem) or getattr(value, "__module__", None) == module.__name__


def _problem(value: Any, source: str) -> Problem:
    """A problem as it is, or what a class or function without arguments makes."""
    try:
        made = value() if callable(value) else value
    except (UserError, ModuleNotFoundError):
        raise
    except Exception as error:
        raise InvalidInput(f"{source}: {type(error).__name__}: {error}") from error
    if not isinstance(made, Problem):
        raise InvalidInput(f"{source} is no problem and makes none, but a {type(made).__name__}")
    return made
