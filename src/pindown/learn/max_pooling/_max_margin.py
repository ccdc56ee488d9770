r"""Logistic regression by gradient descent goes to the largest margin; a bound says how far it is.

With labels :math:`y_i`, points :math:`z_i` and :math:`v_i = -y_i\, a \cdot z_i`, the weights
:math:`q_i` in proportion to :math:`\ell'(v_i)` say more than the next step: for every q,

.. math:: \max_{\lVert a \rVert \le 1} \min_i y_i\, a \cdot z_i \;\le\;
          \Big\lVert \sum_i q_i y_i z_i \Big\rVert \Big/ \sum_i q_i,

so that each step comes with an upper bound on the largest margin.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pindown.affine import Array
from pindown.progress import watched
from pindown.rounding import gamma
from pindown.text import rounded_up

# A gradient this far below the largest norm of the points is rounding; descent has ended.
_SMALL_GRADIENT = 1e-10
# Below this, losses and their derivatives are equal to float64 precision.
_TINY_LOSS = 1e-12


@dataclass(frozen=True, eq=False)
class MarginDescent:
    """Where gradient descent went.

    Attributes:
        weights: Output weights, scaled so that the least margin is 1 if the points are separated.
        margin: Least :math:`y_i a z_i / |a|`; negative if a point is on the wrong side.
        upper: No weights have a larger margin: rounded up.
        n_iter: Steps taken.
        separated: Whether all points are on their side.
        interrupted: Whether it was stopped from outside; the best weights so far are kept.
    """

    weights: Array
    margin: float
    upper: float
    n_iter: int
    separated: bool
    interrupted: bool = False

    def __str__(self) -> str:
        if not self.separated:
            return f"points not separated after {self.n_iter} steps"
        return (
            f"margin {self.margin:.4g} after {self.n_iter} steps; the largest is at most "
            f"{rounded_up(self.upper, 4)} (proved): {self.margin / self.upper:.0%} of it"
        )


def max_margin_descent(
    Z: Array,
    y: Array,
    *,
    max_iter: int = 2000,
    tol: float = 0.01,
    step: float | None = None,
    watch: Callable[[int, float, float], None] | None = None,
    verbose: int = 0,
) -> MarginDescent:
    r"""Minimise :math:`\frac1m \sum_i \ln(1 + e^{-y_i a \cdot z_i})` from zero by gradient descent.

    With ``step=None`` steps grow as the loss falls, by :math:`1 / \ell'(\psi)` with
    :math:`\psi = \ell^{-1}(\sum_i \ell(v_i))` for points of norm one, once all points are separated;
    before that they are the inverse smoothness. Half of the largest margin :math:`\gamma` (of points
    with norm at most one) is reached in :math:`O(\gamma^{-2} \ln m)` of these.

    Args:
        Z: Points (m, k).
        y: Labels 1 and -1.
        max_iter: Most steps.
        tol: Stop when the margin is within this share of its upper bound.
        step: A constant step size in place of the growing one.
        watch: Called after every step with its number, the margin and the upper bound.
        verbose: 0 for silence; else a progress bar after two seconds, on a terminal.

    Returns:
        The weights with their margin and the bound on all margins.

    Example:
        >>> found = max_margin_descent(np.array([[2.0, 0.0], [-2.0, 0.0]]), np.array([1, -1]))
        >>> found.margin, found.weights.tolist()
        (2.0, [0.5, 0.0])

    Soudry et al. 2018, Theorem 3; Ji and Telgarsky 2019, Theorem 4.2, as used in Brutzkus and Globerson
    2021, supplement A and E.
    """
    scale = float(np.linalg.norm(Z, axis=1).max(initial=0.0))
    if scale == 0.0:  # nothing to go by
        return MarginDescent(np.zeros(Z.shape[1]), 0.0, 0.0, 0, separated=False)
    signed = y[:, None] * Z / scale
    eta = None if step is None else step * scale**2  # in units of the scaled points
    wide = signed.shape[1] > len(signed)  # then descend on combinations of points
    gram = signed @ signed.T if wide else None
    state = np.zeros(len(signed) if wide else signed.shape[1])
    best, upper, t, interrupted = (-np.inf, state), np.inf, 0, False
    try:
        for step_number in watched(range(max_iter), "output weights", verbose=verbose):
            t = step_number + 1
            margins = gram @ state if gram is not None else signed @ state
            # As large as can be: far beyond the margin all weights would underflow together.
            log_q = -np.logaddexp(0.0, margins)
            q = np.exp(log_q - log_q.max())
            move = gram @ q if gram is not None else signed.T @ q
            length = np.sqrt(max(q @ move, 0.0)) if wide else np.linalg.norm(move)
            upper = min(upper, _length_up(q, float(length), signed.shape, wide=wide))
            if length <= _SMALL_GRADIENT * q.sum():
                break
            state = state + _step(log_q, margins, eta) * (q if wide else move)
            margins = gram @ state if gram is not None else signed @ state
            norm = np.sqrt(state @ margins) if wide else np.linalg.norm(state)
            margin = float(margins.min() / norm)
            if margin > best[0]:
                best = margin, state
            if watch is not None:
                watch(t, scale * margin, scale * upper)
            if best[0] >= (1.0 - tol) * upper:
                break
    except KeyboardInterrupt:
        warnings.warn("interrupted: the best output weights so far are kept", stacklevel=3)
        interrupted = True
    separated = best[0] > 0.0
    a = signed.T @ (best[1] if separated else state) if wide else (best[1] if separated else state)
    least = float((signed @ a).min())
    a = a / (least if separated and least > 0.0 else 1.0)
    return MarginDescent(a / scale, scale * max(best[0], -1.0), scale * upper, t, separated, interrupted)


def _length_up(q: Array, length: float, shape: tuple[int, int], *, wide: bool) -> float:
    """Return the length of a sum of points of norm at most one, over the sum of q, rounded up.

    By products of points it is a square, whose rounding is large beside a small length.
    """
    m, k = shape
    total, error = float(q.sum()), gamma(2 * m + 2 * k + 8)
    exact = np.sqrt(length**2 + error * total**2) if wide else length + error * np.sqrt(k) * total
    return float(exact / total * (1.0 + gamma(m + k + 8)))


def _step(log_q: Array, margins: Array, eta: float | None) -> float:
    """Return the step on the sum of losses, for points of norm at most one and q scaled to largest 1."""
    largest = float(log_q.max())
    if eta is not None:
        return float(eta / len(margins) * np.exp(largest))
    total = float(np.logaddexp(0.0, -margins).sum())
    if total >= np.log(2.0):  # some point may be on the wrong side
        return float(4.0 / len(margins) * np.exp(largest))
    if total > _TINY_LOSS:
        return float(np.exp(largest) / -np.expm1(-total))
    return float(1.0 / np.exp(log_q - largest).sum())
