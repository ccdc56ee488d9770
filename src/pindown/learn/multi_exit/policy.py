r"""Where to stop for a given budget, chosen on validation data.

A *fixed* policy answers everything at one exit: the most accurate of those within the budget. A
*confidence* policy has a threshold at every exit, chosen so that the mean cost is within the budget.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.evidence import Kind
from pindown.learn.multi_exit.costs import ExitCosts
from pindown.learn.multi_exit.inference import NO_EXIT
from pindown.learn.multi_exit.tuning import MAX_SHARE_RATIO
from pindown.validation import number

_HALVINGS = 40  # of an interval that holds the answer: 1e-12 of its length
_SLACK = 1e-9  # relative: sums of costs round


@dataclass(frozen=True)
class ExitPolicy:
    """Thresholds, and what they cost on the validation data.

    Attributes:
        thresholds: One for each exit but the last; above 1 means never.
        cost: Mean cost on the validation data, as a share of the full network's.
        accuracy: On the validation data; nan if there were no labels.
        shares: Share of the validation data that leaves at each exit.
        n: Number of validation samples.
        budget: The share of the full cost that was asked for.
        exit_costs: Share of the full cost of leaving at each exit, heads on the way included.
        fixed_costs: Part of it that a whole batch pays if one of its inputs comes to the exit.
        batch_size: Inputs in a batch.
        kind: ``"estimate"``: cost and accuracy are those of a sample.
    """

    thresholds: tuple[float, ...]
    cost: float
    accuracy: float
    shares: tuple[float, ...]
    n: int
    budget: float
    exit_costs: tuple[float, ...] = ()
    fixed_costs: tuple[float, ...] = ()
    batch_size: int = 1
    kind: Kind = "estimate"

    def cost_of(self, shares: Any) -> float:
        """Return the mean share of the full cost if these shares of inputs leave at each exit."""
        return _mean_cost(self.exit_costs, self.fixed_costs, self.batch_size, shares)

    def __str__(self) -> str:
        shares = " ".join(f"{share:.0%}" for share in self.shares)
        return (
            f"{self.cost:.1%} of the full cost for a budget of {self.budget:.1%}, accuracy "
            f"{self.accuracy:.1%} ({self.kind} from {self.n} samples); exits take {shares}"
        )


def _mean_cost(each: Any, fixed: Any, batch_size: int, shares: Any) -> float:
    r"""Return the mean cost of an input if these shares leave at each exit.

    If a share r comes to an exit, some input of a batch of B does with probability
    :math:`1 - (1 - r)^B`, and then the fixed part is paid.
    """
    passing = np.diff(np.asarray(each, dtype=float), prepend=0.0)
    part = np.asarray(fixed, dtype=float) if len(fixed) else np.zeros_like(passing)
    reach = np.clip(1.0 - np.append(0.0, np.cumsum(shares)[:-1]), 0.0, 1.0)
    return float(np.dot(passing - part, reach) + np.dot(part, 1.0 - (1.0 - reach) ** batch_size))


def budget_policy(accuracy: Any, costs: Any, budget: float) -> int:
    """Return the most accurate exit within the budget; the cheaper one if there are two.

    Args:
        accuracy: Validation accuracy of each exit.
        costs: Cost of each exit, in the unit of the budget.
        budget: The most an answer may cost.

    Raises:
        ValueError: If no exit is within the budget.

    Example:
        >>> budget_policy([0.5, 0.8, 0.7], costs=[1.0, 2.0, 3.0], budget=3.5)
        2

    Phuong 2021, section 6.2.2, budget mode.
    """
    accuracy, costs = np.asarray(accuracy, dtype=float), np.asarray(costs, dtype=float)
    if accuracy.shape != costs.shape or accuracy.ndim != 1 or not len(costs):
        raise ValueError("accuracy and costs must hold one number for each exit.")
    within = costs <= budget * (1 + _SLACK)
    if not within.any():
        raise ValueError(
            f"the cheapest exit costs {costs.min():.4g}, more than the budget {budget:.4g}."
        )
    best = accuracy[within].max()
    return (
        int(np.flatnonzero(within & (accuracy >= best))[costs[within & (accuracy >= best)].argmin()]) + 1
    )


def confidence_policy(
    probabilities: Array, costs: ExitCosts, budget: float, y: Any = None, *, ensemble: bool = False
) -> ExitPolicy:
    r"""Choose thresholds so that the mean cost on validation data is at most the budget.

    Three families are searched by bisection: one threshold for all exits; shares of leavers
    proportional to :math:`q^m` (what leaves is what is surest); and answering everything at one exit or
    the next. With labels the most accurate one is taken, otherwise the second.

    Args:
        probabilities: Probabilities of all exits on validation data, (exits, n, classes).
        costs: Costs of the exits; heads on the way are paid for.
        budget: Share of the full network's cost, in (0, 1].
        y: Labels (whole numbers from 0), or None.
        ensemble: Whether answers are means over the exits so far.

    Raises:
        ValueError: If even the first exit costs more than the budget.

    Example:
        >>> sure, unsure = [0.99, 0.01], [0.6, 0.4]
        >>> early = np.array([sure, unsure]); late = np.array([sure, sure])
        >>> costs = ExitCosts(stages=(1.0, 9.0), heads=(0.0, 0.0))
        >>> policy = confidence_policy(np.stack([early, late]), costs, budget=0.55)
        >>> policy.shares, round(policy.cost, 3)  # the sure one leaves early: (1 + 10) / 2 of 10
        ((0.5, 0.5), 0.55)

    After Huang et al. 2018, section 4.2 (budgeted batch classification).
    """
    number("budget", budget, 0.0, 1.0, above=True)
    P = np.asarray(probabilities, dtype=float)
    if P.ndim != 3 or len(P) != costs.n_exits or not P.shape[1]:
        raise ValueError(
            f"probabilities must be of {costs.n_exits} exits, (exits, n, classes); got shape {P.shape}."
        )
    if ensemble:
        P = np.cumsum(P, axis=0) / np.arange(1, len(P) + 1)[:, None, None]
    if costs.on_the_way[0] > budget * costs.full * (1 + _SLACK):
        raise ValueError(
            f"the least budget is {costs.on_the_way[0] / costs.full:.3f}, the cost of the first exit; "
            f"got {budget!r}."
        )
    right = None if y is None else P.argmax(axis=2) == np.asarray(y)
    search = _Search(P.max(axis=2), costs, budget, right, ensemble)
    found = [search.policy(thresholds) for thresholds in search.candidates()]
    return max(found, key=lambda policy: policy.accuracy) if y is not None else found[0]


class _Search:
    def __init__(
        self,
        confidence: Array,
        costs: ExitCosts,
        budget: float,
        right: NDArray[np.bool_] | None,
        ensemble: bool,
    ) -> None:
        self.confidence, self.costs, self.budget, self.right = confidence, costs, budget, right
        self.ensemble = ensemble
        self.n_exits, self.n = confidence.shape

    def candidates(self) -> list[Array]:
        """Return thresholds of each family that are within the budget; the first is the default."""
        limit = float(np.log(MAX_SHARE_RATIO))
        late = bisect(lambda r: self.geometric(np.exp(r)), self.within, -limit, limit)
        found = [self.geometric(np.exp(late))]
        highest = bisect(self.common, self.within, 0.0, 1.0)
        found.append(self.common(highest))
        for m in range(self.n_exits):  # everything at exit m + 1, what is unsure there at the next
            only = np.full(self.n_exits - 1, NO_EXIT)
            only[m:] = 0.0
            if self.within(only):
                found.append(only)
                if m + 1 < self.n_exits:
                    highest = bisect(partial(self.pair, m), self.within, 0.0, 1.0)
                    found.append(self.pair(m, highest))
        return [thresholds for thresholds in found if self.within(thresholds)]

    def common(self, threshold: float) -> Array:
        return np.full(self.n_exits - 1, threshold)

    def pair(self, m: int, threshold: float) -> Array:
        found = np.full(self.n_exits - 1, NO_EXIT)
        found[m] = threshold
        found[m + 1 :] = 0.0
        return found

    def geometric(self, ratio: float) -> Array:
        """Return thresholds for shares proportional to powers of the ratio, of those still there."""
        shares = ratio ** np.arange(self.n_exits, dtype=float)
        counts = np.floor(np.cumsum(shares / shares.sum())[:-1] * self.n + 0.5).astype(int)
        found, here, gone = np.full(self.n_exits - 1, NO_EXIT), np.ones(self.n, dtype=bool), 0
        for m, count in enumerate(counts):
            leave = min(count - gone, int(here.sum()))
            if leave > 0:
                values = np.sort(self.confidence[m, here])
                found[m] = values[-leave]
                out = here & (self.confidence[m] >= found[m])
                gone += int(out.sum())
                here &= ~out
        return found

    def exits(self, thresholds: Array) -> NDArray[np.int64]:
        reached = self.confidence[:-1] >= thresholds[:, None]
        reached = np.vstack([reached, np.ones((1, self.n), dtype=bool)])
        return np.asarray(reached.argmax(axis=0))

    def each_cost(self, thresholds: Array) -> Array:
        """Return the cost of leaving at each exit; heads where nobody can leave are not computed."""
        used = np.append((thresholds <= 1.0) | self.ensemble, True)
        heads = np.cumsum(np.where(used, self.costs.heads, 0.0))
        return np.asarray((np.cumsum(self.costs.stages) + heads) / self.costs.full)

    def fixed(self, thresholds: Array) -> Array:
        """Return the part of passing each exit that a batch pays as a whole."""
        if not self.costs.fixed_stages:
            return np.zeros(self.n_exits)
        used = np.append((thresholds <= 1.0) | self.ensemble, True)
        heads = np.where(used, self.costs.fixed_heads, 0.0)
        return np.asarray((np.array(self.costs.fixed_stages) + heads) / self.costs.full)

    def mean_cost(self, thresholds: Array) -> float:
        shares = np.bincount(self.exits(thresholds), minlength=self.n_exits) / self.n
        fixed = self.fixed(thresholds)
        return _mean_cost(self.each_cost(thresholds), fixed, self.costs.batch_size, shares)

    def within(self, thresholds: Array) -> bool:
        return self.mean_cost(thresholds) <= self.budget * (1 + _SLACK)

    def policy(self, thresholds: Array) -> ExitPolicy:
        exits = self.exits(thresholds)
        accuracy = float("nan")
        if self.right is not None:
            accuracy = float(self.right[exits, np.arange(self.n)].mean())
        shares = np.bincount(exits, minlength=self.n_exits) / self.n
        return ExitPolicy(
            thresholds=tuple(thresholds.tolist()),
            cost=self.mean_cost(thresholds),
            accuracy=accuracy,
            shares=tuple(shares.tolist()),
            n=self.n,
            budget=self.budget,
            exit_costs=tuple(self.each_cost(thresholds).tolist()),
            fixed_costs=tuple(self.fixed(thresholds).tolist()),
            batch_size=self.costs.batch_size,
        )


def bisect(
    make: Callable[[float], Array], fits: Callable[[Array], bool], low: float, high: float
) -> float:
    """Return the largest number whose thresholds fit, assuming that smaller ones fit if it does."""
    if fits(make(high)):
        return high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(make(middle)) else (low, middle)
    return low
