"""Search where the recurrence ends without a verified answer: the model proposes and ranks, the checker decides.

In batches. A node is a puzzle with some values assumed. The model recurs on it as on any puzzle; an answer that passes
the checker is an answer to the puzzle itself, since assumptions only add givens. Otherwise each of the variables that
it is least sure of gets its likely values, one child each; children that contradict the rules outright are dropped.
Nodes with the fewest assumptions go first, and among those the ones that the model is surest of: nearly every puzzle
yields to one or two right assumptions, while chasing answers that break few rules leads astray (see docs/log.md).
Where a problem's inputs cannot take assumptions (images, hints), the model looks again from other sides instead, at
images that are turned and shifted a little; without symmetries it starts again from noisy states.

Shapes: B batch, V variable, D value.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mull.constraints import UNKNOWN, BoolArray, IntArray
from mull.problem import Instance, Problem
from mull.runtime import FloatArray, Runtime, softmax

if TYPE_CHECKING:
    from mull.views import View

STEPS = 64
"""Recurrences of one call at most. Fewer save less than they lose (docs/log.md)."""
VARIABLES = 2
"""Variables of a node whose values are tried."""
LIKELY = 0.02
"""Values below this probability are left out, as long as two remain."""
DISTORT = 1.0
"""How much images are distorted when they are looked at again (see `mull.data.warp`); less finds less (docs/log.md)."""
NOISE = 0.5
"""Deviation of the noise on a restarted state, relative to the state's own; less finds less (docs/log.md)."""

Check = Callable[[NDArray[Any], IntArray], BoolArray]


@dataclass(frozen=True)
class SearchResult:
    """What a search came to."""

    values: IntArray | None
    """A verified answer (V,), if one was found."""
    calls: int
    """Times the model recurred on a node."""
    steps: int
    """Recurrences in all of them."""


class Search:
    """Looks for an answer with a budget of model calls."""

    def __init__(
        self, runtime: Runtime, check: Check, calls: int, steps: int = STEPS, assuming: bool = True, seed: int = 0
    ) -> None:
        """`calls`: how often the model may recur on a node of one puzzle; without `assuming`, it only restarts."""
        self.runtime, self.problem, self.check = runtime, runtime.problem, check
        self.calls, self.steps, self.assuming, self.seed = calls, steps, assuming, seed

    def run(self, instance: Instance) -> SearchResult:
        """Look for an answer to one instance."""
        if self.assuming and self.problem.assume(instance, 0, 0) is not None:
            return self._branch(instance)
        return self._restart(instance)

    def _branch(self, instance: Instance) -> SearchResult:
        queue: list[tuple[tuple[int, float, int], list[Instance]]] = []
        waiting, calls, spent, seen = [instance], 0, 0, {instance.inputs.tobytes()}
        while calls < self.calls and (waiting or queue):
            while len(waiting) < self.runtime.batch and queue:
                waiting += [one for one in heapq.heappop(queue)[1] if not _met(one, seen)]
            batch = waiting[: min(self.runtime.batch, self.calls - calls)]
            waiting = waiting[len(batch) :]
            if not batch:
                continue
            inputs = np.stack([one.inputs for one in batch])
            answer, logits_BVD, steps = self._recur(inputs)
            calls, spent = calls + len(batch), spent + steps * len(batch)
            if answer is not None:
                return SearchResult(answer, calls, spent)
            for place, node in enumerate(batch):
                sure, children = self._children(node, softmax(logits_BVD[place]))
                if children:
                    assumed = int(node.given.sum() - instance.given.sum())
                    heapq.heappush(queue, ((assumed, -sure, calls + place), children))
        return SearchResult(None, calls, spent)

    def _children(self, node: Instance, probability_VD: FloatArray) -> tuple[float, list[Instance]]:
        """How sure the model is where it is least so, and the node with the likely values of these variables."""
        open_V = self.problem.given_values(node) == UNKNOWN
        best_V = np.where(open_V, probability_VD.max(-1), np.inf)
        made: list[Instance | None] = []
        for variable in np.argsort(best_V)[: min(VARIABLES, int(open_V.sum()))].tolist():
            order = np.argsort(-probability_VD[variable]).tolist()
            likely = [v for rank, v in enumerate(order) if rank < 2 or probability_VD[variable, v] >= LIKELY]
            made += [self.problem.assume(node, variable, value) for value in likely]
        return float(best_V.min()), self._consistent([one for one in made if one is not None])

    def _consistent(self, nodes: list[Instance]) -> list[Instance]:
        """Those whose givens and assumptions break no rule."""
        if not nodes:
            return []
        values_BV = np.stack([self.problem.given_values(one) for one in nodes])
        wrong_B = broken(self.problem, values_BV, np.stack([one.inputs for one in nodes])) > 0
        return [one for one, wrong in zip(nodes, wrong_B, strict=True) if not wrong]

    def _restart(self, instance: Instance) -> SearchResult:
        from mull.views import view  # here, since solving seldom looks again and this takes 5 ms to import

        rng, calls, spent = np.random.default_rng(self.seed), 0, 0
        symmetric = self.problem.symmetries() is not None
        while calls < self.calls:
            count = min(self.runtime.batch, self.calls - calls)
            inputs = np.repeat(instance.inputs[None], count, axis=0)
            side = view(self.problem, count, calls, DISTORT) if symmetric else None
            answer, _, steps = self._recur(inputs, side, rng if side is None else None)
            calls, spent = calls + count, spent + steps * count
            if answer is not None:
                return SearchResult(answer, calls, spent)
        return SearchResult(None, calls, spent)

    def _recur(
        self, inputs: NDArray[Any], side: View | None = None, rng: np.random.Generator | None = None
    ) -> tuple[IntArray | None, FloatArray, int]:
        """A verified answer if any row gets one, the last logits, and the recurrences it took."""
        rows = slice(0, len(inputs))
        state = self.runtime.start(inputs if side is None else side.show(inputs, rows))
        if rng is not None:
            state = self.runtime.disturb(state, NOISE, rng)
        for step in range(1, self.steps + 1):
            state, logits_BVD = self.runtime.step(state)
            values_BV = logits_BVD.argmax(-1)
            if side is not None:
                values_BV = side.back(values_BV, rows)
            right_B = self.check(inputs, values_BV)
            if right_B.any():
                return values_BV[right_B.argmax()], logits_BVD, step
        return None, logits_BVD, self.steps


def broken(problem: Problem, values_BV: IntArray, inputs: NDArray[Any]) -> IntArray:
    """(B,): how many groups of the rules an answer, or a part of one, breaks for certain."""
    total = np.zeros(len(values_BV), dtype=np.int64)
    for rule in problem.rules:
        total += rule.violations(values_BV, inputs).sum(axis=1)
    return total


def _met(instance: Instance, seen: set[bytes]) -> bool:
    """Whether a node came up before: the same assumptions in another order."""
    key = instance.inputs.tobytes()
    if key in seen:
        return True
    seen.add(key)
    return False
