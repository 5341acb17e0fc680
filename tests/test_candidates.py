"""Of several answers, the one that supports itself best by the median counts."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mull.candidates import AGREED, LOOKED_AT, Candidates


def add(found: Candidates, answers: list[list[int]], supports: dict[int, list[float]]) -> list[tuple[int, int, int]]:
    """Tries (A, B) whose answers are a single value; each value's supports by the way to part it. What was asked."""
    asked = list[tuple[int, int, int]]()

    def support(places: NDArray[Any], answers_CV: NDArray[Any], ways_C: NDArray[Any]) -> NDArray[Any]:
        asked.extend(zip(places.tolist(), answers_CV[:, 0].tolist(), ways_C.tolist(), strict=True))
        return np.array([supports[value][way] for _, value, way in asked])

    found.add(np.arange(len(answers[0])), np.array(answers)[:, :, None], support)
    return asked


def test_the_median_counts_and_an_answer_is_looked_at_in_other_ways_each_time() -> None:
    found, supports = Candidates(1), {7: [-2.5, -0.1, -0.1, -0.1, -0.1], 8: [-0.8, -5.0, -5.0]}
    assert add(found, [[7], [8]], supports) == [(0, 7, 0), (0, 8, 0)]
    assert found.best()[0].answer_V.tolist() == [8]  # what is right may be ambiguous in some parts
    assert add(found, [[7], [7], [8]], supports) == [(0, 7, 1), (0, 7, 2), (0, 8, 1)]
    (best,) = found.best()
    assert (best.answer_V.tolist(), best.times, best.support) == ([7], 3, -0.1)
    assert add(found, [[7]] * 4, supports) == [(0, 7, 3), (0, 7, 4)] and best.times == 7


def test_open_is_what_few_tries_agree_on_or_hardly_supports_itself() -> None:
    found = Candidates(6)
    supports = {value: [-0.1] * LOOKED_AT for value in range(4)} | {8: [-0.9] * LOOKED_AT, 9: [-0.12] * LOOKED_AT}
    for number in range(AGREED):
        last = 5 if number else 0  # the last instance has another answer the first time
        add(found, [[0, 1, 8, 9, 2, last % 4]], supports)
    assert found.open().tolist() == [2, 3, 5]
    alone = Candidates(1)
    add(alone, [[9]] * AGREED, supports)
    assert not len(alone.open())  # nothing to compare with: likelier than not is enough


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30), st.randoms())
def test_tries_at_once_come_to_what_tries_one_after_the_other_do(values: list[int], random: Any) -> None:
    supports = {value: [-random.random() for _ in range(LOOKED_AT)] for value in range(4)}
    together, alone = Candidates(1), Candidates(1)
    add(together, [[value] for value in values], supports)
    for value in values:
        add(alone, [[value]], supports)
    medians = {value: np.median(supports[value][: min(values.count(value), LOOKED_AT)]) for value in values}
    best = max(medians, key=medians.__getitem__)  # of equal ones the first that was found
    for found in (together, alone):
        assert found.best()[0].answer_V.item() == best and found.best()[0].times == values.count(best)
