"""What a fitted classifier does with new rows: full, budgeted, and anytime answers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch.nn.functional import softmax

from pindown.affine import Array
from pindown.datasets.checks import is_number, require_whole
from pindown.learn.multi_exit.costs import ExitCosts, measured_costs
from pindown.learn.multi_exit.early import EarlyAnswers, anytime, early_exit
from pindown.learn.multi_exit.export import export_prefixes, prefix_network
from pindown.learn.multi_exit.frame import InputFrame
from pindown.learn.multi_exit.model import MultiExitModel
from pindown.learn.multi_exit.policy import ExitPolicy, budget_policy, confidence_policy
from pindown.learn.multi_exit.profiling import LatencyCurve, latency_curve
from pindown.learn.multi_exit.rows import checked_rows
from pindown.learn.multi_exit.timed import timed_policy
from pindown.network import ReluNetwork

_CHUNK = 256  # rows at a time: the states of more do not fit into a cache
MODES = ("confidence", "fixed")


_TIMED_CALLS = 21  # of which medians are taken


def _require_mode(mode: Any) -> None:
    if mode not in MODES:
        raise ValueError(f"mode must be one of {', '.join(MODES)}, got {mode!r}.")


class ExitPrediction(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The answering half of a classifier with exits."""

    ensemble: bool
    classes_: NDArray[Any]
    model_: MultiExitModel
    frame_: InputFrame
    costs_: ExitCosts
    timed_policies_: dict[float, ExitPolicy]
    _policies: dict[tuple[float, str, bool], ExitPolicy]
    n_features_in_: int
    _held_probabilities: Array
    _held_labels: NDArray[np.int64]

    # ------------------------------------------------------------------ answers

    def predict(
        self, X: Any, *, budget: float | None = None, exit: int | None = None, mode: str = "confidence"
    ) -> NDArray[Any]:
        """Return classes; arguments as in :meth:`predict_proba`."""
        probabilities = self.predict_proba(X, budget=budget, exit=exit, mode=mode)
        return self.classes_[probabilities.argmax(axis=1)]

    def predict_proba(
        self, X: Any, *, budget: float | None = None, exit: int | None = None, mode: str = "confidence"
    ) -> Array:
        """Return the probabilities of the classes, (n, classes).

        Args:
            X: Rows, or images.
            budget: Share of the full network's operations to spend per row on average, in (0, 1]; None
                for the whole network.
            exit: The exit to answer at, from 1, in place of a budget.
            mode: ``"confidence"``: rows leave where the network is sure; ``"fixed"``: all at the most
                accurate exit within the budget.
        """
        _require_mode(mode)
        if budget is not None:
            if exit is not None:
                raise ValueError("give a budget or an exit, not both.")
            return self.early_answers(X, budget, mode=mode).probabilities.double().numpy()
        x = self._inputs(X)
        m = self.model_.n_exits if exit is None else exit
        self.model_._require_exit(m)
        parts = [self._until(part, m) for part in torch.split(x, _CHUNK)]
        return torch.cat(parts).double().numpy()

    def _until(self, x: Tensor, m: int) -> Tensor:
        with torch.inference_mode():
            if not self.ensemble:
                return softmax(self.model_.exit_only(x, m), dim=1).cpu()
            logits = self.model_.forward_until(x, m)
            return torch.stack([softmax(z, dim=1) for z in logits]).mean(dim=0).cpu()

    def early_answers(self, X: Any, budget: float, *, mode: str = "confidence") -> EarlyAnswers:
        """Return probabilities and the exit at which each row left, computing no more than needed."""
        x = self._inputs(X)
        thresholds = self.policy(budget, mode=mode).thresholds
        parts = [
            early_exit(self.model_, part, thresholds, ensemble=self.ensemble)
            for part in torch.split(x, _CHUNK)
        ]
        return EarlyAnswers(
            torch.cat([part.probabilities for part in parts]).cpu(),
            torch.cat([part.exits for part in parts]),
        )

    def anytime(self, X: Any) -> Iterator[tuple[int, Array]]:
        """Yield after every exit its number and the mean probabilities of the exits so far.

        The next stage is computed when it is asked for: leave the loop to stop.
        """
        for m, answer in anytime(self.model_, self._inputs(X)):
            yield m, answer.cpu().double().numpy()

    def predict_within(self, X: Any, seconds: float) -> NDArray[Any]:
        """Return the classes of the last anytime answer that was begun before the time was over.

        The first exit is always waited for, and a stage that has begun is finished.
        """
        if not is_number(seconds, 0):
            raise ValueError(f"seconds must be a number, zero or positive; got {seconds!r}.")
        due = time.monotonic() + float(seconds)
        answers = self.anytime(X)
        _, answer = next(answers)
        while time.monotonic() < due:
            try:
                _, answer = next(answers)
            except StopIteration:
                break
        return self.classes_[answer.argmax(axis=1)]

    # ------------------------------------------------------------------ policies

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
        require_whole("batch_size", batch_size)
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
        require_whole("batch_size", batch_size)
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
        _require_mode(mode)
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

    def exit_scores(self, X: Any, y: Any) -> Array:
        """Return the accuracy of each exit on rows with labels."""
        x = self._inputs(X)
        places = self._places(y, len(x))
        return np.asarray((self._all_probabilities(x).argmax(axis=2) == places).mean(axis=1))

    def latency_curve(
        self,
        X: Any,
        y: Any = None,
        budgets: Any = (0.25, 0.5, 0.75, 1.0),
        *,
        batch_size: int = 1,
        runs: int = 11,
    ) -> LatencyCurve:
        """Measure speed and accuracy at several budgets; those below the first exit's are left out."""
        x = self._inputs(X)
        least = self.costs_.on_the_way[0] / self.costs_.full
        # A budget that means nothing is refused by the policy.
        policies = [self.policy(b) for b in budgets if not (is_number(b) and 0 < b < least)]
        if not policies:
            raise ValueError(
                f"no budget is enough for the first exit, which costs {least:.3f}; got {budgets!r}."
            )
        places = None if y is None else self._places(y, len(x))
        return latency_curve(
            self.model_, x, policies, places, batch_size=batch_size, runs=runs, ensemble=self.ensemble
        )

    # ------------------------------------------------------------------ files

    def exit_network(self, exit: int) -> ReluNetwork:
        """Return an exit as a :class:`pindown.ReluNetwork` from rows to logits, scaling included."""
        check_is_fitted(self)
        return prefix_network(self.model_, exit, self.frame_.shape, self.frame_.module(self._dtype))

    def export(self, folder: str | PathLike[str]) -> list[Path]:
        """Write every exit as an ONNX file from unscaled rows to logits; return the files."""
        check_is_fitted(self)
        return export_prefixes(
            self.model_, folder, self.frame_.shape, before=self.frame_.module(self._dtype)
        )

    # ------------------------------------------------------------------ rows

    @property
    def _dtype(self) -> torch.dtype:
        return next((p.dtype for p in self.model_.parameters()), torch.float32)

    def _inputs(self, X: Any) -> Tensor:
        rows = checked_rows(self, X)
        device = next((p.device for p in self.model_.parameters()), torch.device("cpu"))
        return self.frame_.inputs(rows, self._dtype).to(device)

    def _all_probabilities(self, x: Tensor) -> Array:
        """Return the probabilities of all exits, (exits, n, classes)."""
        with torch.inference_mode():
            parts = [
                torch.stack([softmax(z, dim=1) for z in self.model_(part)])
                for part in torch.split(x, _CHUNK)
            ]
        return torch.cat(parts, dim=1).cpu().double().numpy()

    def _places(self, y: Any, n: int) -> NDArray[np.int64]:
        y = np.asarray(y)
        if y.shape != (n,):
            raise ValueError(f"y must hold {n} labels, got shape {y.shape}.")
        places = np.searchsorted(self.classes_, y).clip(max=len(self.classes_) - 1)
        # A class that was never learned is always wrong.
        return np.where(self.classes_[places] == y, places, len(self.classes_))
