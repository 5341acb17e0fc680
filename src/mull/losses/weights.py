"""Which terms the loss has, how they add up, and the options of each."""

from __future__ import annotations

from dataclasses import dataclass

from mull.errors import InvalidInput, unknown
from mull.losses.straight_through import ESTIMATORS

TERMS = ("supervised", "cardinality", "attention", "path", "clste")


@dataclass(frozen=True)
class LossWeights:
    """How the terms of the loss add up. A term of weight 0 is not computed."""

    supervised: float = 1.0
    """Weight of the cross entropy against known labels."""
    cardinality: float = 0.0
    """Weight of L_[l,u] on the groups of atoms of all cardinality constraints (the paper's alpha for Sudoku)."""
    attention: float = 0.0
    """Weight of the demand that variables attend to those that they share a constraint with (the paper's beta)."""
    path: float = 0.0
    """Weight of L_path, for shortest paths alone."""
    clste: float = 0.0
    """Weight of the CL-STE loss on the constraints as a CNF, for comparison."""
    last_step_only: bool = False
    """Count the last output alone instead of all recurrences and blocks (the paper's ablation); not for attention."""
    estimator: str = "identity"
    """Gradient of the binarisation: `identity` (the paper's), or `clipped`: none far from probability 1/2."""
    fixed_bounds_only: bool = False
    """Count only groups whose bounds do not depend on the instance: for Sudoku the paper's, without the givens."""
    attention_at_once: bool = False
    """One count over all cells, as the paper's text has it, instead of one for each, as its code does."""
    path_label_free: bool = False
    """L_path without labels: an end node has one edge, any other node none or two."""
    clste_first_step: bool = True
    """CL-STE on the first recurrence alone, as its authors do; all recurrences cost R times as much."""

    def __post_init__(self) -> None:
        for name in TERMS:
            if not getattr(self, name) >= 0:
                raise InvalidInput(f"the weight of a loss is 0 or more, not {name}={getattr(self, name)}")
        if not self.terms:
            raise InvalidInput(f"nothing to learn from: all of {', '.join(TERMS)} have weight 0")
        if self.estimator not in ESTIMATORS:
            raise unknown("estimator", self.estimator, ESTIMATORS)

    @property
    def terms(self) -> list[str]:
        """The names of the terms that are switched on."""
        return [name for name in TERMS if getattr(self, name) > 0]

    @property
    def needs_bounds(self) -> bool:
        """Whether a batch has to carry the bounds that its instances set."""
        return bool(self.cardinality and not self.fixed_bounds_only) or self.clste > 0
