r"""How far a process that drifts down can rise, at any time.

With :math:`X_0` constant and :math:`E[X_i - X_{i-1} \mid \text{past}] \le 0`,

.. math::
    P[\max_i X_i - X_0 \ge \lambda] \le \exp\Big(-\frac{\lambda^2}{2 \sum_i c_i^2}\Big)
    \qquad\text{and}\qquad
    P[\max_i X_i - X_0 \ge \lambda] \le \exp\Big(-\frac{\lambda^2}{2 (V + c \lambda / 3)}\Big),

the first if :math:`|X_i - X_{i-1}| \le c_i`, the second if no step goes up by more than c and the
conditional variances of the steps sum to at most V. The maximum costs nothing: stop the process there.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.evidence import Assumption
from pindown.guarantees.bounds.bound import Bound, exp_up, half_square, outward
from pindown.validation import positive, probability


def supermartingale_bound(rise: float, increments: ArrayLike, *, variance: float | None = None) -> Bound:
    r"""Bound the probability that a supermartingale ever rises by :math:`\lambda` or more.

    Args:
        rise: :math:`\lambda > 0`.
        increments: :math:`c_1, \dots, c_n`, bounds on the size of each step.
        variance: V, if known: a bound on the sum of conditional variances. The smaller of both bounds
            is returned; they hold for certain, so that takes no share of a confidence.

    Returns:
        A bound on a probability; its own confidence is 1.

    Example:
        Four steps of size one rise by four with probability 1/16; the bound is exp(-2):

        >>> round(supermartingale_bound(4, [1, 1, 1, 1]).value, 4)
        0.1353
        >>> supermartingale_bound(10, np.ones(1000), variance=5.0).terms["freedman"] < 0.003
        True

    Azuma 1967; Freedman 1975, Theorem 1.6; Mukherjee 2020, Theorem 3.D.1.
    """
    lift, c = positive("rise", rise), _increments(increments)
    total = _length(c)
    terms = {"azuma": _azuma(lift, total), "root of sum of squares": total}
    rests = [
        Assumption("steps have no upward drift, given the past"),
        Assumption("steps are no larger than the increments"),
    ]
    if variance is not None:
        V = positive("variance", variance, zero=True)
        terms["freedman"] = _freedman(lift, V, float(c.max()))
        rests.append(Assumption(f"conditional variances sum to at most {V:g}"))
    value = min(terms["azuma"], terms.get("freedman", 1.0))
    about = f"probability of a rise of {lift:g} at any time"
    return Bound("supermartingale", value, 0.0, about, terms, tuple(rests), "Azuma 1967; Freedman 1975")


def supermartingale_rise(
    failure: float, increments: ArrayLike, *, variance: float | None = None
) -> float:
    r"""Return the rise that a supermartingale exceeds with at most a given probability.

    .. math:: \lambda = \sqrt{2 \log(1/p) \sum c_i^2}, \qquad
              \lambda = \tfrac13 c \ell + \sqrt{\tfrac19 c^2 \ell^2 + 2 V \ell}, \quad \ell = \log(1/p)

    Example:
        >>> round(supermartingale_bound(supermartingale_rise(0.05, [1, 2]), [1, 2]).value, 12)
        0.05
    """
    nats, c = math.log(1.0 / probability("failure", failure)), _increments(increments)
    rise = math.sqrt(2.0 * nats) * _length(c)
    if variance is not None:
        V, largest = positive("variance", variance, zero=True), float(c.max())
        rise = min(rise, largest * nats / 3 + math.sqrt((largest * nats / 3) ** 2 + 2 * V * nats))
    return outward(rise)


def _azuma(lift: float, total: float) -> float:
    return exp_up(-half_square(lift, total)) if total > 0 else 0.0


def _freedman(lift: float, variance: float, largest: float) -> float:
    below = 2.0 * (variance + largest * lift / 3)
    return exp_up(-lift * (lift / below)) if below > 0 else 0.0


def _increments(increments: ArrayLike) -> Array:
    c = np.asarray(increments, dtype=np.float64).ravel()
    if not c.size or not np.isfinite(c).all() or c.min() < 0:
        raise ValueError(
            "increments must be finite, not negative and at least one; "
            f"got {np.array2string(c, threshold=6)}."
        )
    return c


def _length(c: Array) -> float:
    largest = float(c.max())  # divided out first: squares of huge numbers overflow
    return outward(largest * float(np.linalg.norm(c / largest))) if largest > 0 else 0.0
