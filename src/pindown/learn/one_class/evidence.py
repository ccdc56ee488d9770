r"""Whether the networks learned anything: what members cost them, beside untrained copies of them.

Networks that failed to train would hide behind the density part: scores stay good, and nothing is said.
So the price of telling rows from generic negatives is measured after training,

.. math:: E_x[-\log c(x)] + E_x[-\log(1 - c(\tilde x))] ,

for the networks and for their copies with the weights that they began with; and the share of pairs of a
row and a negative that they put in the right order, because a price also rises with too much confidence.
Networks that learned nothing have no vote beside the density: what they prefer is luck.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor, nn

from pindown.learn.one_class.ensemble import Ensemble, settled
from pindown.learn.one_class.negatives import generic_negatives
from pindown.learn.one_class.networks import build, initialise
from pindown.learn.one_class.presets import Plan

_MOST_ROWS = 500
_SEED = 0  # always the same negatives, and none of the numbers that training draws
# After fewer steps nobody expects networks to know anything: those few were asked for.
_STEPS_TO_LEARN = 40
_LEAST_ROWS = 10  # fewer say little about what networks know
_PROGRESS = 0.99  # of the untrained price: what costs more did not learn
_BETTER_ORDER = 0.02  # more pairs in the right order than untrained: something was learned


class Prices(NamedTuple):
    """Prices of telling rows from made-up ones.

    Attributes:
        trained: Of the networks c.
        untrained: Of the same networks with the weights that they began with.
        trained_order: Share of pairs of a row and a made-up one that c puts in the right order.
        untrained_order: The same before training.
    """

    trained: float
    untrained: float
    trained_order: float
    untrained_order: float

    @property
    def learned_nothing(self) -> bool:
        """Whether training made neither the price lower nor the order better.

        >>> Prices(1.4, 1.4, 0.5, 0.5).learned_nothing, Prices(0.9, 1.4, 0.8, 0.5).learned_nothing
        (True, False)
        """
        same_price = self.trained >= _PROGRESS * self.untrained
        return same_price and self.trained_order < self.untrained_order + _BETTER_ORDER


def prices(ensemble: Ensemble, plan: Plan, inputs: Tensor, spacing: float) -> Prices | None:
    """Return the prices, or None where c was not trained against generic negatives.

    Args:
        ensemble: The networks, with what trained them.
        plan: What was trained.
        inputs: Training inputs.
        spacing: Typical distance of neighbouring inputs.
    """
    if plan.printed or plan.ablation == "h" or not plan.has("negatives"):
        return None
    rows = inputs[:: math.ceil(len(inputs) / _MOST_ROWS)]
    negatives, _ = generic_negatives(rows, torch.Generator().manual_seed(_SEED), spacing)
    begun = [_untrained(plan, seed) for seed in ensemble.beginnings]
    (price, order), (price_before, order_before) = (
        _judged(nets, rows, negatives) for nets in (ensemble.members, begun)
    )
    return Prices(price, price_before, order, order_before)


def _untrained(plan: Plan, seed: int) -> nn.Module:
    """Return c as a member had it before its first step: the first network drawn from its seed."""
    return settled(initialise(build(plan.membership), torch.Generator().manual_seed(seed)))


def _judged(nets: Sequence[nn.Module], rows: Tensor, negatives: Tensor) -> tuple[float, float]:
    """Return the price of the mean of some networks, and the share of pairs in the right order."""
    together = Ensemble(False, list(nets), [])
    inside, outside = (together.membership(x.double()).mean(axis=0) for x in (rows, negatives))
    price = np.logaddexp(0, -inside).mean() + np.logaddexp(0, outside).mean()
    difference = inside[:, None] - outside
    return float(price), float((difference > 0).mean() + (difference == 0).mean() / 2)


def may_vote(found: Prices | None, ensemble: Ensemble) -> bool:
    """Whether the networks were trained and, as far as prices tell, learned something."""
    return bool(ensemble.history) and (found is None or not found.learned_nothing)


def warn_of_nothing_learned(found: Prices | None, ensemble: Ensemble, n: int) -> None:
    """Say it if the networks had time to learn and are no better on n rows than untrained ones."""
    steps = 0 if found is None else max(member.steps for member in ensemble.trainers or ())
    if found is None or n < _LEAST_ROWS or steps < _STEPS_TO_LEARN or not found.learned_nothing:
        return
    warnings.warn(
        f"the networks learned nothing in {steps} steps: telling rows from made-up ones costs them "
        f"{found.trained:.2f}, their untrained copies {found.untrained:.2f}; where distances take part, "
        "they alone make the score. Change learning_rate or hidden.",
        ConvergenceWarning,
        stacklevel=4,
    )
