"""Where rows may leave early: policies chosen on held-out rows, by operations or by the clock."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from pindown.affine import Array
from pindown.learn.multi_exit.costs import measured_costs
from pindown.learn.multi_exit.fitted import FittedExits
from pindown.learn.multi_exit.policy import ExitPolicy, budget_policy, confidence_policy
from pindown.learn.multi_exit.timed import timed_policy
from pindown.validation import integer, is_number

MODES = ("confidence", "fixed")
_TIMED_CALLS = 21  # of which medians are taken


def require_mode(mode: Any) -> None:
    """Refuse what is no way to spend a budget."""
    if mode not in MODES:
        raise ValueError(f"mode must be one of {', '.join(MODES)}, got {mode!r}.")


class ExitCalibration(FittedExits):
    """The part of a classifier with exits that decides where rows leave."""

    timed_policies_: dict[float, ExitPolicy]
    _policies: dict[tuple[float, str, bool], ExitPolicy]
    _held_probabilities: Array
    _held_labels: NDArray[np.int64]

    def calibrate(self, X: Any, y: Any = None) -> Any:
        """Choose future policies on these rows in place of those held out in training.

        Args:
            X: Rows that training has not seen.
            y: Their labels; without them policies follow confidence and cost alone.
        """
        x = self._inputs(X)
        self._held_probabilities = self._all_probabilities(x)
        self._held_labels = np.full(len(x), -1) if y is None else self._places(y, len(x))
        self.validated_on_ = "rows given to calibrate"
        self._forget_policies()
        return self

    def measure_costs(self, X: Any, *, batch_size: int = 1, runs: int = 31) -> Any:
        """Let budgets be shares of the full network's time on this machine, not of its operations.

        Args:
            X: Rows, of which the first batch is used.
            batch_size: Rows that will be handed over at once.
            runs: The median of this many is taken.
        """
        integer("batch_size", batch_size)
        self.costs_ = measured_costs(self.model_, self._inputs(X)[:batch_size], runs=runs)
        self._forget_policies()
        return self

    def keep_time(
        self, X: Any, y: Any = None, *, budget: float, batch_size: int = 1, runs: int = 5
    ) -> ExitPolicy:
        """Let this budget be a share of the time of ``predict``, checked with the clock on these rows.

        From now on ``predict(X, budget=budget)`` uses the policy that is returned.

        Args:
            X: Rows that training has not seen.
            y: Their labels, or None.
            budget: Share of the full network's time, in (0, 1].
            batch_size: Rows that will be handed over at once.
            runs: The median of this many is taken.
        """
        integer("batch_size", batch_size)
        x = self._inputs(X)
        places = None if y is None else self._places(y, len(x))
        settings: dict[str, Any] = {"batch_size": batch_size, "runs": runs, "ensemble": self.ensemble}
        share = self._overhead(X[:batch_size], x[:batch_size])
        policy = timed_policy(self.model_, x, budget, places, overhead=share, **settings)
        self.timed_policies_[float(budget)] = policy
        return policy

    def _overhead(self, rows: Any, x: Tensor) -> float:
        """Return the time that checking and scaling rows takes, in times of the full network."""
        ready, answered = [], []
        for _ in range(_TIMED_CALLS):
            start = time.perf_counter()
            self._inputs(rows)
            ready.append(time.perf_counter() - start)
            self._until(x, self.model_.n_exits)
            answered.append(time.perf_counter() - start - ready[-1])
        return float(np.median(ready) / np.median(answered))

    def policy(self, budget: float, *, mode: str = "confidence") -> ExitPolicy:
        """Return the policy for a share of the full network's operations, or of its time if measured."""
        check_is_fitted(self)
        require_mode(mode)
        if mode == "confidence" and is_number(budget) and float(budget) in self.timed_policies_:
            return self.timed_policies_[float(budget)]
        if not (is_number(budget) and 0 < budget <= 1):
            raise ValueError(f"budget must be above 0 and at most 1; got {budget!r}.")
        key = (float(budget), mode, bool(self.ensemble))
        if key not in self._policies:  # choosing takes longer than a small network answers
            self._policies[key] = self._choose(float(budget), mode)
        return self._policies[key]

    def _choose(self, budget: float, mode: str) -> ExitPolicy:
        y = None if (self._held_labels < 0).any() else self._held_labels
        P = self._held_probabilities
        if mode == "confidence":
            return confidence_policy(P, self.costs_, budget, y, ensemble=self.ensemble)
        each = self.costs_.on_the_way if self.ensemble else self.costs_.alone
        # Without labels the latest exit is taken for the best.
        accuracy = np.arange(len(P)) if y is None else self.exit_accuracy_
        m = budget_policy(accuracy, each, min(budget * self.costs_.full, max(each)))
        thresholds = tuple(2.0 if k < m else 0.0 for k in range(1, len(P)))
        shares = tuple(float(k == m) for k in range(1, len(P) + 1))
        share = tuple(cost / self.costs_.full for cost in each)
        right = float("nan") if y is None else float(self.exit_accuracy_[m - 1])
        return ExitPolicy(thresholds, share[m - 1], right, shares, P.shape[1], budget, share)

    def _forget_policies(self) -> None:
        self.timed_policies_, self._policies = {}, {}

    @property
    def exit_accuracy_(self) -> Array:
        """Accuracy of each exit (of each ensemble so far, with ``ensemble``) on the held-out rows.

        Not a number if they have no labels.
        """
        P = self._held_probabilities
        if (self._held_labels < 0).any():
            return np.full(len(P), np.nan)
        if self.ensemble:
            P = np.cumsum(P, axis=0)
        return np.asarray((P.argmax(axis=2) == self._held_labels).mean(axis=1))
