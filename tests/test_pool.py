from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from mull.errors import InvalidInput
from mull.export import random_inputs
from mull.models.recurrent_transformer import ModelConfig, RecurrentTransformer
from mull.pool import Crew, Pool, recur
from mull.problems.sudoku import Sudoku
from mull.runtime import FloatArray, State, TorchRuntime
from tiny import OTHER, PROBLEM, STEPS, LookupRuntime, puzzle


def instances(*empty: int) -> list[NDArray[Any]]:
    return [PROBLEM.parse(puzzle(number)).inputs for number in empty]


def crew(runtime: LookupRuntime) -> Crew:
    return Crew(runtime, STEPS, PROBLEM.check)


class Slow(LookupRuntime):
    """Takes longer for a recurrence than reading the next instances takes, as real models do."""

    def step(self, state: State, count: int = 1) -> tuple[State, FloatArray]:
        time.sleep(0.02)
        return super().step(state, count)


def test_the_batch_stays_full() -> None:
    runtime = Slow(batch=2, workers=1)
    found = list(crew(runtime).results(iter(instances(5, 1, 1, 2, 1, 3))))
    assert [each.steps for each in found] == [5, 1, 1, 2, 1, 3]
    assert runtime.sizes == [2, 2, 2, 2, 2, 1, 1, 1]  # in waves of two it would be 5 + 2 + 3 steps


def test_workers_share_what_there_is() -> None:
    runtime = Slow(batch=8, workers=2)
    assert all(each.verified for each in crew(runtime).results(iter(instances(*[6] * 8))))
    assert max(runtime.sizes) < 8


@pytest.mark.parametrize(("leaving", "entering"), [([1], 1), ([0, 2], 1), ([1], 3), ([], 1), ([0, 1, 2], 0), ([2], 0)])
@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_fill(leaving: list[int], entering: int, kind: str) -> None:
    old, new = np.arange(12.0).reshape(3, 4), 100 + np.arange(4.0 * entering).reshape(entering, 4)
    make = torch.from_numpy if kind == "torch" else np.asarray
    state = State((make(old.copy()), make(old[:, 0].copy())), old[:, :2] > 3)
    filled = state.fill(np.array(leaving, dtype=np.int64), State((make(new), make(new[:, 0])), new[:, :2] > 3))
    wanted = [row for place, row in enumerate(old) if place not in leaving] + list(new)
    rows, firsts = (np.asarray(tensor) for tensor in filled.tensors)
    assert sorted(map(tuple, rows)) == sorted(map(tuple, wanted))
    assert filled.given_BV is not None and len(filled) == len(filled.given_BV) == len(wanted)
    np.testing.assert_array_equal(firsts, rows[:, 0])
    np.testing.assert_array_equal(filled.given_BV, rows[:, :2] > 3)
    for place in set(range(min(3, len(rows)))) - set(leaving):
        if len(leaving) <= entering:
            np.testing.assert_array_equal(rows[place], old[place])  # nobody else was moved


def test_slots_do_not_mix_in_torch() -> None:
    torch.manual_seed(0)
    model = RecurrentTransformer(Sudoku(2), ModelConfig(width=16, heads=2, feedback=True, inject=True))
    runtime = TorchRuntime(model, Sudoku(2))
    runtime.batch = 3
    inputs = list(random_inputs(Sudoku(2), 10).numpy())

    def check(seen: NDArray[Any], values: NDArray[Any]) -> NDArray[Any]:
        return (values.sum(axis=1) + seen.sum(axis=1)) % 3 == 0  # leaves at some time or other

    together = list(Crew(runtime, 6, check).results(iter(inputs)))
    alone = [recur(runtime, 6, check, each) for each in inputs]
    assert {each.steps for each in alone} > {1, 6}
    for one, other in zip(together, alone, strict=True):
        assert (one.steps, one.verified) == (other.steps, other.verified)
        np.testing.assert_array_equal(one.values, other.values)


def test_times_are_shared() -> None:
    pool = Pool(LookupRuntime(), STEPS, lambda _, values: time.sleep(0.02) or np.zeros(len(values), dtype=bool))  # type: ignore[func-returns-value]
    pool.steps = 2
    pool.enter(list(enumerate(instances(3, 3))))
    assert pool.step() == {}
    (first, second) = pool.step().values()
    assert first.seconds == second.seconds >= 0.02
    assert first.steps == 2 and not first.verified
    assert len(pool) == 0


class Broken(LookupRuntime):
    def step(self, state: State, count: int = 1) -> tuple[State, FloatArray]:
        raise RuntimeError("no more")


def test_an_error_in_a_worker_is_raised() -> None:
    with pytest.raises(RuntimeError, match="no more"):
        list(crew(Broken()).results(iter(instances(1, 2, 3))))
    assert threading.active_count() < 10


def test_an_error_of_the_source_comes_last() -> None:
    def source() -> Iterator[NDArray[Any]]:
        yield from instances(*[2] * 13)
        raise InvalidInput("the fourteenth is wrong")

    results = crew(LookupRuntime(batch=4)).results(source())
    assert len(list(islice(results, 13))) == 13
    with pytest.raises(InvalidInput, match="fourteenth"):
        next(results)


def test_nobody_works_on_when_nobody_asks() -> None:
    before = threading.active_count()
    results = crew(LookupRuntime(batch=2)).results(iter(instances(*[3] * 500)))
    next(results)
    results.close()
    assert threading.active_count() == before


def test_unsolved_ones_do_not_hold_up_the_others() -> None:
    runtime = Slow(batch=4, workers=1)
    hard = PROBLEM.parse(OTHER).inputs
    found = list(crew(runtime).results(iter([hard, *instances(*[2] * 40)])))
    assert [each.verified for each in found] == [False, *[True] * 40]
    assert len(runtime.sizes) < 20 + 40 * 2 / 3
