"""Answers that several tries of an instance came to, and which of them counts.

Each time that an answer is found again it is looked at in other parts (`mull.predict.Looker.support`), and the median
counts: taken back together, the values of a few variables may be ambiguous although their answer is right, and a wrong
answer may not show by one way to part it.

Shapes: B batch, V variable, A tries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

import numpy as np

from mull.constraints import IntArray
from mull.runtime import FloatArray

AGREED = 3
"""Tries with the same answer after which no other is looked for, if it is supported well enough."""
LIKELY = float(np.log(0.5))
"""Support of an answer that the model holds for likelier than not, all of its values together: less is too little."""
SPREAD, SLACK = 5.0, 0.05
"""Too little is also what is below the support of most answers of a batch by so many times the distance to that of the
best quarter, and by such a share of it: right answers have nearly the same support, wrong ones hardly less, at times
(docs/log.md)."""
LOOKED_AT = 5
"""Times that an answer is looked at, at most: in other parts each time."""

Support = Callable[[IntArray, IntArray, IntArray], FloatArray]
"""(instances, answers, ways to part them) to how well answers support themselves."""


@dataclass
class Candidate:
    """One answer."""

    answer_V: IntArray
    times: int = 0
    """Tries that came to it."""
    supports: list[float] = field(default_factory=list)

    @property
    def support(self) -> float:
        """How well it supports itself."""
        return median(self.supports)


class Candidates:
    """Answers to the instances of a batch."""

    def __init__(self, count: int) -> None:
        """No answers to `count` instances."""
        self.by_answer_B: list[dict[bytes, Candidate]] = [{} for _ in range(count)]

    def add(self, places: IntArray, answers_ABV: IntArray, support: Support) -> None:
        """Some tries' answers to the instances at these places."""
        waiting = list[tuple[int, Candidate, int]]()
        for answers_BV in answers_ABV:
            for place, answer_V in zip(places.tolist(), answers_BV, strict=True):
                candidate = self.by_answer_B[place].setdefault(answer_V.tobytes(), Candidate(answer_V))
                if candidate.times < LOOKED_AT:
                    waiting.append((place, candidate, candidate.times))
                candidate.times += 1
        if waiting:
            rows, looked_at, ways = zip(*waiting, strict=True)
            answers_CV = np.stack([candidate.answer_V for candidate in looked_at])
            for candidate, found in zip(looked_at, support(np.array(rows), answers_CV, np.array(ways)), strict=True):
                candidate.supports.append(float(found))

    def best(self) -> list[Candidate]:
        """Of each instance the answer that supports itself best; of equal ones the first."""
        return [max(answers.values(), key=lambda one: one.support) for answers in self.by_answer_B]

    def open(self) -> IntArray:
        """Places of instances for which another answer is to be looked for."""
        best = self.best()
        times_B, support_B = np.array([one.times for one in best]), np.array([one.support for one in best])
        usual, good = np.quantile(support_B, [0.5, 0.75])
        too_little = max(LIKELY, usual - max(SPREAD * (good - usual), SLACK * abs(usual)))
        return np.flatnonzero((times_B < AGREED) | (support_B <= too_little))
