"""Solving on a Ray cluster: the same solver in every worker, Ray Data in between, answers in order.

Needs the extra `mull[ray]`, here and on every node; a model file or a problem of one's own must lie at the same place
on all of them. `RAY_ADDRESS` names a cluster; without it, one is started on this machine and ends with the process.
"""

from __future__ import annotations

import logging
import os
import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mull.errors import UserError
from mull.hub import find_model, shipped
from mull.own import load_problem
from mull.runtime import Precision
from mull.solve import Answer, Puzzle, Solver, load

WINDOW = 1 << 16
"""Puzzles that are handed to Ray in one go: what bounds memory, and pays for starting the workers."""
BLOCK = 256
"""Puzzles that a worker takes at a time."""


@dataclass(frozen=True)
class Settings:
    """What every worker needs to make the same solver."""

    model: str = "sudoku"
    steps: int | None = None
    exact: bool | None = None
    search: int = 0
    precision: Precision = "auto"
    problem: str | None = None
    """FILE:NAME of a problem of one's own."""

    def solver(self) -> Solver:
        """The solver."""
        if self.problem is not None:
            load_problem(self.problem)
        return load(self.model, steps=self.steps, exact=self.exact, search=self.search, precision=self.precision)

    def anywhere(self) -> Settings:
        """The same with absolute paths: workers have working folders of their own."""
        ours = self.model in shipped()
        model = self.model if ours else str(find_model(self.model).resolve())
        if self.problem is None:
            return replace(self, model=model)
        file, colon, name = self.problem.rpartition(":")
        return replace(self, model=model, problem=f"{Path(file).resolve()}{colon}{name}")


class Worker:
    """A solver in a process of its own, on one core."""

    def __init__(self, settings: Settings) -> None:
        """Load the model."""
        self.solver = settings.solver()
        self.solver.runtime.workers = 1

    def __call__(self, batch: Any) -> Any:
        """Answers to a table of puzzles; what is wrong with one comes instead of its answer, and ends the table."""
        import pyarrow

        puzzles = map(Puzzle, batch["text"].to_pylist(), batch["place"].to_pylist())
        results: list[Answer | UserError] = []
        try:
            for answer in self.solver.solve_many(puzzles):
                results.append(answer)  # extend might lose those before an error
        except UserError as error:
            results.append(error)
        return pyarrow.table({"result": pyarrow.array(map(pickle.dumps, results), pyarrow.binary())})


def solve_many(settings: Settings, puzzles: Iterable[Puzzle]) -> Iterator[Answer]:
    """`Solver.solve_many` on as many workers as the cluster has cores."""
    ray = _begin()
    workers = max(1, int(ray.cluster_resources().get("CPU", 1)))
    stream, failure = iter(puzzles), None
    while failure is None:
        window, failure = _window(stream)
        if not window:
            break
        blocks = -(-len(window) // BLOCK)
        data = ray.data.from_items([vars(puzzle) for puzzle in window], override_num_blocks=blocks)
        solved = data.map_batches(
            Worker,
            fn_constructor_args=(settings.anywhere(),),
            batch_size=None,
            batch_format="pyarrow",
            concurrency=min(workers, blocks),
            num_cpus=1,
        )
        for row in solved.iter_rows():
            result = pickle.loads(row["result"])  # from our own workers, through the cluster's own pickles
            if isinstance(result, UserError):
                raise result
            yield result
    if failure is not None:
        raise failure


def _window(puzzles: Iterator[Puzzle]) -> tuple[list[Puzzle], UserError | None]:
    """The next puzzles, and what went wrong with the one after them."""
    window: list[Puzzle] = []
    try:
        for puzzle in puzzles:
            window.append(puzzle)
            if len(window) == WINDOW:
                break
    except UserError as error:
        return window, error
    return window, None


def _begin() -> Any:
    """Ray, with a cluster that it joined or started, quietly."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray
    import ray.data

    if not ray.is_initialized():
        try:
            ray.init(log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False)
        except (OSError, RuntimeError, ValueError) as error:  # Ray's ways to say that there is no cluster
            place = os.environ.get("RAY_ADDRESS", "this machine")
            raise UserError(f"cannot use Ray on {place}: {str(error).splitlines()[0]}") from error
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = False
    return ray
