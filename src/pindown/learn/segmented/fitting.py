r"""The best fit with a number of pieces, and how many pieces: by BIC or by cross-validation.

A fit with K pieces has 2K coefficients: K slopes, one level, K - 1 breakpoints. With n points of equal
weight and mean loss m,

.. math:: \mathrm{BIC} = n \log m + 2 K \log n \quad\text{or}\quad 2 n \log m + 2 K \log n

for squared loss (normal errors) and absolute loss (Laplace errors). A weight counts as so many points,
so n is the sum of the weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from pindown.affine import Array
from pindown.deadline import NEVER, Deadline
from pindown.learn.segmented.problem import RESOLUTION, Function, Scaled, vertices
from pindown.learn.segmented.tuning import ABSOLUTE_START_SECONDS, CLOSED_GAP

# A squared loss below this fraction of that of a constant is rounding: more pieces add nothing.
_EXACT = 1e-22


@dataclass(frozen=True, repr=False)
class SegmentedFit:
    """A continuous piecewise-linear function, its loss (a weighted sum), and what is proved about it."""

    function: Function
    loss: float
    lower_bound: float
    proved: bool  # the two meet up to rounding, or every point is fitted up to rounding
    n_programs: int

    @property
    def n_pieces(self) -> int:
        """Pieces that differ in slope."""
        return len(self.function.slopes)

    def __repr__(self) -> str:
        bound = "optimal" if self.proved else f"optimum above {self.lower_bound:.6g}"
        return f"SegmentedFit({self.n_pieces} pieces, loss {self.loss:.6g}, {bound})"


def solve(
    x: Array,
    y: Array,
    w: Array,
    n_pieces: int,
    loss: str,
    deadline: Deadline = NEVER,
    cap: float = np.inf,
) -> SegmentedFit:
    """Return the best continuous piecewise-linear fit with at most ``n_pieces`` pieces.

    Args:
        x: Any finite numbers, in any order, repeated or not.
        y: Targets.
        w: Weights, not negative and not all zero.
        n_pieces: At least 1.
        loss: ``"squared"`` or ``"absolute"``.
        deadline: When to stop.
        cap: A loss of interest: among fits above it, a good one will do.
    """
    from pindown.learn.segmented.squared import least_squares

    compile_loops(loss)
    data = Scaled.of(x, y, w)
    at, means, weights, within = data.merged()
    K = min(n_pieces, max(len(at) - 1, 1))
    with np.errstate(over="ignore"):  # the caller sees an infinite loss
        size = np.float64(data.y_size)
        unit = float((size * size if loss == "squared" else size) * data.w_size)
    limit = cap / unit if unit > 0.0 and cap < np.inf else np.inf
    if loss == "squared":
        fit = least_squares(at, means, weights, K, deadline, limit - within)
        unavoidable = within
    else:
        from pindown.learn.segmented.absolute import least_absolute

        fit = least_squares(at, means, weights, K, Deadline.after(ABSOLUTE_START_SECONDS))
        fit = least_absolute(data.x, data.y, data.w, data.first, fit.gaps, K, deadline, limit)
        unavoidable = 0.0
    floor = float((fit.lower_bound + unavoidable) * unit)
    function = _in_units(vertices(fit, at), data)
    with np.errstate(over="ignore"):
        error = np.abs(y - function(x))
        value = float(w @ (error**2 if loss == "squared" else error))
    # The loss as the search saw it, from moments, can have lost all its digits.
    seen = max(fit.loss + unavoidable, value / unit if 0.0 < unit < np.inf else 0.0)
    gap = seen - unavoidable - fit.lower_bound
    small = gap <= 2 * RESOLUTION * float(data.w.sum())
    closed = small and gap <= CLOSED_GAP * seen
    proved = closed or (small and _is_fitted(function, x[w > 0], y[w > 0]))
    return SegmentedFit(function, value, min(floor, value), proved, fit.leaves)


def _is_fitted(function: Function, x: Array, y: Array) -> bool:
    """Whether no point, light or heavy, has an error beyond rounding: then the loss is as good as zero.

    A small sum is not enough, since one outlier or one heavy point makes all others look small.
    """
    return bool((np.abs(y - function(x)) <= function.rounding(x)).all())


def _in_units(function: Function, data: Scaled) -> Function:
    """Undo the scaling."""
    return Function(
        data.x_centre + data.x_half * function.knots,
        data.y_centre + data.y_size * function.values,
        function.slopes * (data.y_size / data.x_half),
    )


@cache
def compile_loops(loss: str) -> None:
    """Compile the loops on a toy problem, outside of anybody's budget."""
    from pindown.learn.segmented.absolute import least_absolute
    from pindown.learn.segmented.squared import least_squares

    x = np.linspace(-1.0, 1.0, 7)
    y = np.array([0.3, -0.2, 0.5, 1.0, 0.1, -0.8, 0.4])
    fit = least_squares(x, y, np.ones(7), 3, NEVER)
    if loss == "absolute":
        least_absolute(x, y, np.ones(7), np.arange(8), fit.gaps, 3, NEVER)


@dataclass(frozen=True)
class Trial:
    """One number of pieces: its fit, a lower bound on its least loss, and its score (less is better)."""

    n_pieces: int
    loss: float
    lower_bound: float
    score: float


def by_bic(
    x: Array, y: Array, w: Array, loss: str, max_pieces: int, deadline: Deadline
) -> tuple[SegmentedFit, list[Trial]]:
    """Return the fit with the least BIC; for the others it is enough to prove that theirs is no less."""
    power = 1.0 if loss == "squared" else 2.0
    n = scale = float(w.sum())
    level = np.log(max(n, 2.0))
    spread = float(w @ (y - np.average(y, weights=w)) ** 2)
    exact = _EXACT * spread if loss == "squared" else np.sqrt(_EXACT * spread * scale)
    tried: list[tuple[SegmentedFit, Trial]] = []
    best = np.inf
    for K in range(1, max_pieces + 1):
        # The loss at which K pieces would win.
        cap = scale * np.exp((best - 2 * K * level) / (power * n)) if tried else np.inf
        fit = solve(x, y, w, K, loss, deadline.share(1 / (max_pieces + 1 - K)), cap)
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
    deadline: Deadline,
    folds: Sequence[tuple[Any, Any]],
) -> tuple[SegmentedFit, list[Trial]]:
    """Return the fit with the least loss on held-out folds (train, test), refitted on all points."""
    fits = max_pieces * len(folds) + 1  # still to come; they share the time fairly
    trials = []
    for K in range(1, max_pieces + 1):
        held_out = trained = bound = 0.0
        for train, test in folds:
            if not w[train].any():
                continue
            fit = solve(x[train], y[train], w[train], K, loss, deadline.share(1 / fits))
            fits -= 1
            error = np.abs(y[test] - fit.function(x[test]))
            held_out += float(w[test] @ (error**2 if loss == "squared" else error))
            trained, bound = trained + fit.loss, bound + fit.lower_bound
        trials.append(Trial(K, trained, bound, held_out))
    best = min(trials, key=lambda trial: trial.score)
    return solve(x, y, w, best.n_pieces, loss, deadline.share(1 / fits)), trials
