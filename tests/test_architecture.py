"""Imports point down one order, and nothing heavy is on the import path of solving."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src"

# A module imports only from modules above it in this list (and from its own package).
ORDER = [
    *("errors", "files", "fetch", "images", "processor", "constraints", "picture", "problem", "problems", "own"),
    *(
        "data",
        "testing",
        "kernels",
        "models",
        "losses",
        "recipes",
        "checkpoint",
        "graphs",
        "quantise",
        "hub",
        "tensor_check",
        "adaptive",
        "runtime",
    ),
    *(
        "pool",
        "looks",
        "candidates",
        "views",
        "search",
        "provenance",
        "predict",
        "evaluate",
        "optimisers",
        "givens",
        "slots",
        "trainer",
        "train",
        "progress",
        "export",
        "count",
    ),
    *(
        "photo",
        "exact",
        "solve",
        "puzzle_files",
        "answer_files",
        "cluster",
        "plots",
        "terminal",
        "scoring",
        "int8",
        "fit",
    ),
    *("listing", "serve", "exits", "cli", "start", "__main__"),
]
HEAVY = {"torch", "numba", "cpmpy", "ortools", "matplotlib", "safetensors", "onnx", "pandas", "tensorboard", "PIL"}
HEAVY |= {"pyarrow", "ray", "rich", "cv2", "fastapi", "uvicorn", "starlette"}
LIGHT = ["mull", "mull.problem", "mull.problems", "mull.files", "mull.hub", "mull.runtime", "mull.exact", "mull.count"]
LIGHT += ["mull.graphs", "mull.processor", "mull.pool", "mull.solve", "mull.puzzle_files", "mull.answer_files"]
LIGHT += ["mull.terminal", "mull.cli"]
LIGHT += ["mull.start"]


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(SOURCE.rglob("*.py"))}


def imported(node: ast.AST) -> list[str]:
    """The modules that an import statement names; `from mull import files` names `mull.files`."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, "relative imports hide where a name comes from"
        base = node.module or ""
        below = [f"{base}.{alias.name}" for alias in node.names if f"{base}.{alias.name}" in MODULES]
        return below if len(below) == len(node.names) else [base, *below]
    return []


def at_import_time(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run when a module is imported: not those in functions or for type checkers."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.unparse(statement.test):
            yield from at_import_time(statement.orelse)
        elif not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for field in ("body", "orelse", "finalbody"):
                yield from at_import_time(getattr(statement, field, []))
            for handler in getattr(statement, "handlers", []):
                yield from at_import_time(handler.body)


def loaded_by(name: str) -> dict[str, str]:
    """Every module that importing `name` loads, with the module of ours that asks for it."""
    found, waiting = {name: name}, [name]
    while waiting:
        module = waiting.pop()
        tree = ast.parse(MODULES[module].read_text())
        for statement in at_import_time(tree.body):
            for target in imported(statement):
                parts = target.split(".")
                for end in range(1, len(parts) + 1):  # importing a.b loads a first
                    part = ".".join(parts[:end])
                    if part not in found:
                        found[part] = module
                        waiting += [part] * (part in MODULES)
    return found


def unit(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_down(module: str) -> None:
    if module == "mull":  # hands out names of all the others, on first use
        return
    assert unit(module) in ORDER, f"{module} has no place in the order of imports: add it to ORDER"
    place = ORDER.index(unit(module))
    for node in ast.walk(ast.parse(MODULES[module].read_text())):
        for target in imported(node):
            other = unit(target) if target.startswith("mull.") else ""
            if other and other != unit(module):
                assert other in ORDER[:place], f"{module} imports {target}, which stands above it"


def test_the_order_names_no_module_that_is_gone() -> None:
    assert set(ORDER) <= {unit(module) for module in MODULES}


@pytest.mark.parametrize("module", LIGHT)
def test_nothing_heavy_is_imported_to_solve(module: str) -> None:
    by = loaded_by(module)
    heavy = {f"{asker} imports {name}" for name, asker in by.items() if name.split(".")[0] in HEAVY}
    assert not heavy


@pytest.mark.parametrize("module", ["mull.photo", "mull.photo.find", "mull.photo.reader", "mull.photo.repair"])
def test_photographs_are_read_with_opencv_alone(module: str) -> None:
    heavy = HEAVY - {"cv2"} if module in ("mull.photo.find", "mull.photo.reader") else HEAVY
    assert not {name for name in loaded_by(module) if name.split(".")[0] in heavy}
