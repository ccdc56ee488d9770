r"""How sure the breakpoints are: standard errors, confidence intervals, and Davies' test of each.

For a continuous fit with knots :math:`t_j` and slope changes :math:`\delta_j`, the derivatives of the
function in its 2K coefficients are :math:`1`, :math:`x`, :math:`(x - t_j)_+` and
:math:`-\delta_j 1[x > t_j]`. With independent errors of one variance the least-squares coefficients are
asymptotically normal with covariance :math:`s^2 (J^\top W J)^{-1}`, the breakpoints included, where
every slope really changes (Feder 1975). In samples of ordinary size intervals of so many standard errors
are too short. Those given here invert the likelihood-ratio test, the other breakpoints free to first
order:

.. math:: \bigl\{t : \mathrm{loss}(t) \le \mathrm{loss}(t_j) \, (1 + F_{1, n - 2K} / (n - 2K))\bigr\} .

Whether a breakpoint is there at all cannot be read off that: without it, its place means nothing. With
T(t) the Student statistic of a slope change at t, the other breakpoints kept, M the largest :math:`|T|`
between its neighbours and V the total variation of T there,

.. math:: p = 2 F(-M) + V e^{-M^2 / 2} / \sqrt{2 \pi}

(F the distribution of one T) is an upper bound of the chance of so large a statistic with no change of
slope (Davies 1987).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, pi, sqrt

import numpy as np
from scipy.stats import f as fisher
from scipy.stats import t as student

from pindown.affine import Array
from pindown.learn.segmented._problem import Function
from pindown.learn.segmented.tuning import DAVIES_PLACES, PROFILE_PLACES, PROFILE_REACH

# A coefficient whose column is this close to the others' span cannot be told.
_SINGULAR = 1e-10


@dataclass(frozen=True)
class Breakpoint:
    """A breakpoint with its interval: asymptotic, for independent errors of one variance.

    Attributes:
        at: Where the slope changes.
        change: By how much.
        standard_error: Standard error of ``at``; infinite where the data cannot tell (a jump between two
            points).
        lower: Lower end of the interval.
        upper: Upper end of the interval.
        confidence: How often such an interval holds the true breakpoint, in large samples.
        p_value: Davies' bound for no change of slope between the neighbouring breakpoints.
    """

    at: float
    change: float
    standard_error: float
    lower: float
    upper: float
    confidence: float
    p_value: float

    def __str__(self) -> str:
        return (
            f"{self.at:.4g} in [{self.lower:.4g}, {self.upper:.4g}] ({self.confidence:.0%}), "
            f"slope changes by {self.change:.3g}, p = {self.p_value:.2g}"
        )


def breakpoints(function: Function, x: Array, y: Array, w: Array, confidence: float) -> list[Breakpoint]:
    """Return the breakpoints of a least-squares fit with their intervals and p-values."""
    if len(function.slopes) < 2:
        return []
    x, y, w = x[w > 0], y[w > 0], w[w > 0]
    knots, changes = function.knots, np.diff(function.slopes)
    rest = len(x) - 2 * len(function.slopes)
    J = _derivatives(x, knots, changes)
    errors = np.full(len(knots), np.inf)
    if rest > 0:
        errors = _standard_errors(J, w, float(w @ (y - function(x)) ** 2) / rest)
    found = []
    for j, at in enumerate(knots):
        low = knots[j - 1] if j else x.min()
        high = knots[j + 1] if j + 1 < len(knots) else x.max()
        ends = (-np.inf, np.inf)
        if np.isfinite(errors[j]):
            reach = PROFILE_REACH * errors[j]
            places = np.linspace(max(low, at - reach), min(high, at + reach), PROFILE_PLACES)
            others = np.delete(J, [2 + j, 2 + len(knots) + j], axis=1)
            ends = _profile_interval(x, y, w, others, np.sort(np.r_[places, at]), at, rest, confidence)
        p = davies(x, y, w, np.delete(knots, j), low, high)
        found.append(Breakpoint(float(at), float(changes[j]), float(errors[j]), *ends, confidence, p))
    return found


def _profile_interval(
    x: Array, y: Array, w: Array, others: Array, places: Array, at: float, rest: int, confidence: float
) -> tuple[float, float]:
    """Return the places at which the loss is not significantly larger, up to the next one outside."""
    scores, size, told = _bends(x, y, w, others, places)
    losses = np.where(told, size - scores**2, size)
    least = losses[np.searchsorted(places, at)]
    inside = np.flatnonzero(losses <= least * (1 + fisher.ppf(confidence, 1, rest) / rest))
    first, last = max(inside[0] - 1, 0), min(inside[-1] + 1, len(places) - 1)
    return float(places[first]), float(places[last])


def _bends(x: Array, y: Array, w: Array, basis: Array, places: Array) -> tuple[Array, float, Array]:
    """Add a bend at each place: root of what it takes off the loss, that loss, whether it tells."""
    root = np.sqrt(w)
    Q, _ = np.linalg.qr(basis * root[:, None])
    residual = root * y - Q @ (Q.T @ (root * y))
    bends = np.maximum(x[:, None] - places, 0.0) * root[:, None]
    sizes = np.linalg.norm(bends, axis=0)
    bends -= Q @ (Q.T @ bends)
    norms = np.linalg.norm(bends, axis=0)
    told = norms > _SINGULAR * np.maximum(sizes, np.finfo(float).tiny)
    scores = np.where(told, bends.T @ residual / np.where(told, norms, 1.0), 0.0)
    return scores, float(residual @ residual), told


def _derivatives(x: Array, knots: Array, changes: Array) -> Array:
    """Return the derivatives in level, slope, slope changes and breakpoints, one column each."""
    behind = x[:, None] > knots
    return np.hstack(
        [np.ones((len(x), 1)), x[:, None], np.where(behind, x[:, None] - knots, 0.0), -changes * behind]
    )


def _standard_errors(J: Array, w: Array, variance: float) -> Array:
    """Return the standard errors of the breakpoints, the last columns; infinite where J lacks rank."""
    weighted = J * np.sqrt(w)[:, None]
    scale = np.linalg.norm(weighted, axis=0)
    scale[scale == 0.0] = 1.0
    _, sizes, right = np.linalg.svd(weighted / scale, full_matrices=False)
    known = sizes > _SINGULAR * sizes[0]
    shares = (right[known] / sizes[known, None]) ** 2
    errors = np.sqrt(variance * shares.sum(axis=0)) / scale
    errors[np.abs(right[~known]).max(axis=0, initial=0.0) > _SINGULAR] = np.inf
    return errors[-((J.shape[1] - 2) // 2) :]


def davies(x: Array, y: Array, w: Array, others: Array, low: float, high: float) -> float:
    """Bound the p-value of a bend between two places beside the other knots; 1 where it has no room."""
    basis = np.hstack([np.ones((len(x), 1)), x[:, None], np.maximum(x[:, None] - others, 0.0)])
    places = np.linspace(low, high, DAVIES_PLACES + 2)[1:-1]
    scores, size, told = _bends(x, y, w, basis, places)
    rest = len(x) - basis.shape[1] - 1
    if not told.any() or rest < 1:
        return 1.0
    left = np.maximum(size - scores[told] ** 2, np.finfo(float).tiny) / rest
    statistics = scores[told] / np.sqrt(left)
    largest = float(np.abs(statistics).max())
    variation = float(np.abs(np.diff(statistics)).sum())
    tail = 2 * student.sf(largest, rest) + variation * exp(-(largest**2) / 2) / sqrt(2 * pi)
    return float(min(1.0, tail))
