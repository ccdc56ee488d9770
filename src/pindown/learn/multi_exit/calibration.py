"""Where rows may leave early: policies chosen on held-out rows, by operations or by the clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pindown.affine import Array
from pindown.learn.multi_exit.costs import ExitCosts, measured_costs
from pindown.learn.multi_exit.inference import NO_EXIT
from pindown.learn.multi_exit.latency import latency_curve
from pindown.learn.multi_exit.model import MultiExitModel
from pindown.learn.multi_exit.policy import ExitPolicy, budget_policy, confidence_policy
from pindown.learn.multi_exit.tuning import MAX_TIMED_CHOICES, ROWS_PER_CHUNK, TIMED_INPUTS
from pindown.validation import choice, is_number, number

MODES = ("confidence", "fixed")


@dataclass(eq=False)
class ExitCalibration:
    """Answers on rows that training has not seen, what exits cost, and the policies that follow.

    Attributes:
        probabilities: Probabilities of all exits on these rows, (exits, n, classes).
        labels: Their classes, whole numbers from 0; None if they are not known.
        costs: Costs of the exits.
        validated_on: Which rows these are.
        timed: Policies that the clock has confirmed, by their budgets.
        chosen: Policies chosen so far; choosing takes longer than a small network answers.
    """

    probabilities: Array
    labels: NDArray[np.int64] | None
    costs: ExitCosts
    validated_on: str
    timed: dict[float, ExitPolicy] = field(default_factory=dict)
    chosen: dict[tuple[float, str, bool], ExitPolicy] = field(default_factory=dict)

    def with_costs(self, costs: ExitCosts) -> ExitCalibration:
        """Return the same with other costs, and no policies yet."""
        return replace(self, costs=costs, timed={}, chosen={})

    def accuracy(self, ensemble: bool) -> Array:
        """Return the accuracy of each exit, or of the mean of those so far; NaN without labels."""
        P = self.probabilities
        if self.labels is None:
            return np.full(len(P), np.nan)
        if ensemble:
            P = np.cumsum(P, axis=0)
        return np.asarray((P.argmax(axis=2) == self.labels).mean(axis=1))

    def policy(self, budget: float, mode: str, ensemble: bool) -> ExitPolicy:
        """Return the policy for a share of the full network's cost.

        Args:
            budget: The share, in (0, 1].
            mode: ``"confidence"`` or ``"fixed"``.
            ensemble: Whether exits answer with the mean of those so far.
        """
        choice("mode", mode, MODES)
        if mode == "confidence" and is_number(budget) and float(budget) in self.timed:
            return self.timed[float(budget)]
        key = (number("budget", budget, 0.0, 1.0, above=True), mode, bool(ensemble))
        if key not in self.chosen:
            self.chosen[key] = self._choose(*key)
        return self.chosen[key]

    def _choose(self, budget: float, mode: str, ensemble: bool) -> ExitPolicy:
        P, y = self.probabilities, self.labels
        if mode == "confidence":
            return confidence_policy(P, self.costs, budget, y, ensemble=ensemble)
        each = self.costs.on_the_way if ensemble else self.costs.alone
        right = self.accuracy(ensemble)
        # Without labels the latest exit is taken for the best.
        ranks = np.arange(len(P)) if y is None else right
        m = budget_policy(ranks, each, min(budget * self.costs.full, max(each)))
        thresholds = tuple(NO_EXIT if k < m else 0.0 for k in range(1, len(P)))
        shares = tuple(float(k == m) for k in range(1, len(P) + 1))
        share = tuple(cost / self.costs.full for cost in each)
        accuracy = float(right[m - 1])
        return ExitPolicy(thresholds, share[m - 1], accuracy, shares, P.shape[1], budget, share)


def timed_policy(
    model: MultiExitModel,
    x: Tensor,
    budget: float,
    y: Any = None,
    *,
    batch_size: int = 1,
    runs: int = 5,
    ensemble: bool = False,
    overhead: float = 0.0,
    clock: Callable[[], float] = time.perf_counter,
) -> ExitPolicy:
    """Choose thresholds so that early exit takes at most a share of the full network's time.

    Times of stages and heads give a first choice; early exit and the full network are then timed in
    turn on some of these inputs, and as long as the share is exceeded, thresholds are lowered.

    Args:
        model: The network, in evaluation mode.
        x: Validation inputs, which training has not seen.
        budget: Share of the full network's time, in (0, 1].
        y: Their labels, whole numbers from 0; or None.
        batch_size: Inputs that will be handed over at once.
        runs: Runs of each, of which the median is taken.
        ensemble: Whether answers are means over the exits so far.
        overhead: What every call costs besides the network, in times of the full network; a share of
            the time then is one of the whole call.
        clock: Returns seconds.

    Returns:
        The policy, whose cost is the measured share. It is above the budget only if leaving at the
        first exit is, too.

    Raises:
        ValueError: If the budget is not a share, or less than the first exit takes.
    """
    costs = measured_costs(model, x[:batch_size], clock=clock)
    with torch.inference_mode():
        chunks = torch.split(x, ROWS_PER_CHUNK)
        P = torch.cat([torch.stack(model(part)).softmax(dim=2) for part in chunks], dim=1)
    least = costs.on_the_way[0] / costs.full
    some = x[:: max(1, len(x) // max(TIMED_INPUTS, 2 * batch_size))]
    wanted = budget if budget < least else max(budget - (1.0 - budget) * overhead, least)
    for _ in range(MAX_TIMED_CHOICES):
        policy = confidence_policy(P.cpu().double().numpy(), costs, wanted, y, ensemble=ensemble)
        settings: dict[str, Any] = {"batch_size": batch_size, "runs": runs, "ensemble": ensemble}
        curve = latency_curve(model, some, [policy], clock=clock, **settings)
        spent = (1.0 / curve.points[0].speedup + overhead) / (1.0 + overhead)
        if spent <= budget or wanted <= least:
            break
        wanted = max(wanted * budget / spent, least)
    return replace(policy, budget=float(budget), cost=spent)
