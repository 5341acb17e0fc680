"""Losses on a trace: supervised, and the constraints of a problem read as losses. See `docs/losses.md`."""

from mull.losses.supervised import supervised
from mull.losses.total import total_loss
from mull.losses.weights import LossWeights

__all__ = ["LossWeights", "supervised", "total_loss"]
