"""The loss of a trace: the weighted sum of the terms that are switched on."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

from mull.errors import InvalidInput
from mull.losses.attention import attention
from mull.losses.cardinality import cardinality
from mull.losses.clste import clste
from mull.losses.path import path
from mull.losses.supervised import supervised
from mull.losses.weights import LossWeights
from mull.models.recurrent_transformer import Trace
from mull.problem import Batch, Problem


def total_loss(
    trace: Trace,
    batch: Batch[Tensor],
    problem: Problem,
    weights: LossWeights,
    constraints: Tensor | float = 1.0,
    attentive: Tensor | float = 1.0,
) -> tuple[Tensor, dict[str, Tensor]]:
    """The weighted sum to minimise, and its terms by name. What has weight 0 is not computed.

    `constraints` scales all terms but the supervised one, `attentive` that on attention besides: schedules.
    """
    logits = trace.logits_SLBVD[-1:, -1:] if weights.last_step_only else trace.logits_SLBVD
    estimator, terms = weights.estimator, dict[str, Tensor]()
    if weights.supervised:
        terms["supervised"] = supervised(logits, batch, trace.fused_on_cpu)
    if weights.cardinality:
        terms["cardinality"] = cardinality(logits, batch, problem, estimator, weights.fixed_bounds_only)
    if weights.attention:
        if trace.watched_SLBNV is None:
            raise InvalidInput("the attention loss needs a model that watches adjacent variables")
        terms["attention"] = attention(trace.watched_SLBNV, weights.attention_at_once, estimator)
    if weights.path:
        terms["path"] = path(logits, batch, problem, weights.path_label_free, estimator)
    if weights.clste:
        terms["clste"] = clste(logits, batch, problem, weights.clste_first_step, estimator)
    total, scales = logits.new_zeros(()), {"supervised": 1.0, "attention": constraints * attentive}
    for name, term in terms.items():
        total = total + getattr(weights, name) * term * scales.get(name, constraints)
    if trace.given_BV is not None:  # reaches the layer that tells it alone, so its weight would change nothing
        terms["given"] = F.binary_cross_entropy_with_logits(trace.given_BV.float(), batch.given.float())
        total = total + terms["given"]
    return total, terms
