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
from sklearn.utils.validation import check_is_fitted

from pindown.affine import Array
from pindown.learn.multi_exit.calibration import ExitCalibration, require_mode
from pindown.learn.multi_exit.early import EarlyAnswers, anytime, early_exit
from pindown.learn.multi_exit.export import export_prefixes, prefix_network
from pindown.learn.multi_exit.fitted import CHUNK
from pindown.learn.multi_exit.profiling import LatencyCurve, latency_curve
from pindown.network import ReluNetwork
from pindown.validation import is_number


class ExitPrediction(ExitCalibration):
    """The answering half of a classifier with exits."""

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
        require_mode(mode)
        if budget is not None:
            if exit is not None:
                raise ValueError("give a budget or an exit, not both.")
            return self.early_answers(X, budget, mode=mode).probabilities.double().numpy()
        x = self._inputs(X)
        m = self.model_.n_exits if exit is None else exit
        self.model_._require_exit(m)
        parts = [self._until(part, m) for part in torch.split(x, CHUNK)]
        return torch.cat(parts).double().numpy()

    def early_answers(self, X: Any, budget: float, *, mode: str = "confidence") -> EarlyAnswers:
        """Return probabilities and the exit at which each row left, computing no more than needed."""
        x = self._inputs(X)
        thresholds = self.policy(budget, mode=mode).thresholds
        parts = [
            early_exit(self.model_, part, thresholds, ensemble=self.ensemble)
            for part in torch.split(x, CHUNK)
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

    # ------------------------------------------------------------------ measures

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

    def export(self, folder: str | PathLike[str], *, dtype: str = "auto") -> list[Path]:
        """Write every exit as an ONNX file from unscaled rows to logits; return the files.

        Args:
            folder: Where to; made if it is not there.
            dtype: Numbers that the files take: ``"float32"``, ``"float64"``, or ``"auto"`` for those of
                the training.
        """
        check_is_fitted(self)
        before = self.frame_.module(self._dtype)
        return export_prefixes(self.model_, folder, self.frame_.shape, before=before, dtype=dtype)
