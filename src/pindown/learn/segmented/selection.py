r"""How many pieces: the Bayesian information criterion, or cross-validation.

A fit with K pieces has 2K coefficients: K slopes, one level, K - 1 breakpoints. With n points of equal
weight and mean loss m,

.. math:: \mathrm{BIC} = n \log m + 2 K \log n \quad\text{or}\quad 2 n \log m + 2 K \log n

for squared loss (normal errors) and absolute loss (Laplace errors). A weight counts as so many points,
so n
is the sum of the weights.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pindown.affine import Array
from pindown.learn.segmented.solve import SegmentedFit, solve

# A squared loss below this fraction of that of a constant is rounding: more pieces add nothing.
_EXACT = 1e-22


@dataclass(frozen=True)
class Trial:
    """One number of pieces: its fit, a lower bound on its least loss, and its score (less is better)."""

    n_pieces: int
    loss: float
    lower_bound: float
    score: float


class Budget:
    """Seconds shared fairly among the fits that are still to come."""

    def __init__(self, seconds: float | None, fits: int) -> None:
        self.end = np.inf if seconds is None else time.perf_counter() + seconds
        self.fits = fits

    def share(self) -> float | None:
        """Return the seconds for the next fit, None if there is no limit."""
        left = max(self.end - time.perf_counter(), 0.0) / max(self.fits, 1)
        self.fits -= 1
        return None if np.isinf(left) else left


def by_bic(
    x: Array, y: Array, w: Array, loss: str, max_pieces: int, budget: float | None
) -> tuple[SegmentedFit, list[Trial]]:
    """Return the fit with the least BIC; for the others it is enough to prove that theirs is no less."""
    power = 1.0 if loss == "squared" else 2.0
    n = scale = float(w.sum())
    level = np.log(max(n, 2.0))
    spread = float(w @ (y - np.average(y, weights=w)) ** 2)
    exact = _EXACT * spread if loss == "squared" else np.sqrt(_EXACT * spread * scale)
    seconds = Budget(budget, max_pieces)
    tried: list[tuple[SegmentedFit, Trial]] = []
    best = np.inf
    for K in range(1, max_pieces + 1):
        # The loss at which K pieces would win.
        cap = scale * np.exp((best - 2 * K * level) / (power * n)) if tried else np.inf
        fit = solve(x, y, w, K, loss, seconds.share(), cap)
        score = -np.inf
        if fit.loss > exact:
            score = power * n * np.log(fit.loss / scale) + 2 * K * level
        tried.append((fit, Trial(K, fit.loss, fit.lower_bound, score)))
        best = min(best, score)
        if fit.loss <= exact:
            break
    chosen, _ = min(tried, key=lambda pair: pair[1].score)
    return chosen, [trial for _, trial in tried]


def by_cross_validation(
    x: Array,
    y: Array,
    w: Array,
    loss: str,
    max_pieces: int,
    budget: float | None,
    folds: Sequence[tuple[Any, Any]],
) -> tuple[SegmentedFit, list[Trial]]:
    """Return the fit with the least loss on held-out folds (train, test), refitted on all points."""
    seconds = Budget(budget, max_pieces * len(folds) + 1)
    trials = []
    for K in range(1, max_pieces + 1):
        held_out = trained = bound = 0.0
        for train, test in folds:
            if not w[train].any():
                continue
            fit = solve(x[train], y[train], w[train], K, loss, seconds.share())
            error = np.abs(y[test] - fit.function(x[test]))
            held_out += float(w[test] @ (error**2 if loss == "squared" else error))
            trained, bound = trained + fit.loss, bound + fit.lower_bound
        trials.append(Trial(K, trained, bound, held_out))
    best = min(trials, key=lambda trial: trial.score)
    return solve(x, y, w, best.n_pieces, loss, seconds.share()), trials
