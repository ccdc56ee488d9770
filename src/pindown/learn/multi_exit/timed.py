"""Thresholds for a share of the full network's time, checked with a clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from pindown.learn.multi_exit.costs import measured_costs
from pindown.learn.multi_exit.model import MultiExitModel
from pindown.learn.multi_exit.policy import ExitPolicy, confidence_policy
from pindown.learn.multi_exit.profiling import latency_curve

_TIMED = 100  # inputs, or two batches if that is more: timed, evenly spaced among all
_TRIES = 4  # each takes the excess of the one before out of the budget


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
        P = torch.cat([torch.stack(model(part)).softmax(dim=2) for part in torch.split(x, 256)], dim=1)
    least = costs.on_the_way[0] / costs.full
    some = x[:: max(1, len(x) // max(_TIMED, 2 * batch_size))]
    wanted = budget if budget < least else max(budget - (1.0 - budget) * overhead, least)
    for _ in range(_TRIES):
        policy = confidence_policy(P.cpu().double().numpy(), costs, wanted, y, ensemble=ensemble)
        settings: dict[str, Any] = {"batch_size": batch_size, "runs": runs, "ensemble": ensemble}
        curve = latency_curve(model, some, [policy], clock=clock, **settings)
        spent = (1.0 / curve.points[0].speedup + overhead) / (1.0 + overhead)
        if spent <= budget or wanted <= least:
            break
        wanted = max(wanted * budget / spent, least)
    return replace(policy, budget=float(budget), cost=spent)
