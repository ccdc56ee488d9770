r"""How far a process that drifts down can rise: Azuma and Hoeffding's inequality for supermartingales.

.. math:: P[X_n - X_0 \ge \lambda] \le \exp\Big(-\frac{\lambda^2}{2 \sum_{i=1}^n c_i^2}\Big)

if :math:`X_0` is constant, :math:`|X_i - X_{i-1}| \le c_i` and :math:`E[X_i - X_{i-1} \mid \text{past}]
\le 0`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pindown.learn.gates.numbers import positive, probability


def azuma_hoeffding(rise: float, increments: ArrayLike) -> float:
    r"""Bound the probability that a supermartingale rises by :math:`\lambda` or more.

    It bounds the probability of a rise at *any* of the n times as well: stop the process there.

    Args:
        rise: :math:`\lambda > 0`.
        increments: :math:`c_1, \dots, c_n`, bounds on the size of each step; not negative.

    Returns:
        The bound, at most 1.

    Raises:
        ValueError: If the rise is not positive, or an increment is negative or not finite.

    Example:
        Four steps of size one rise by four with probability 1/16; the bound is exp(-2):

        >>> round(azuma_hoeffding(4, [1, 1, 1, 1]), 4)
        0.1353

    Mukherjee 2020, Theorem 3.D.1.
    """
    lift, total = positive("rise", rise), _length(increments)
    if total == 0:
        return 0.0
    return math.exp(-((lift / total) ** 2) / 2)


def azuma_rise(failure: float, increments: ArrayLike) -> float:
    r"""Return the rise that a supermartingale stays below but with a given probability.

    .. math:: \lambda = \sqrt{2 \log(1/p) \sum c_i^2}

    Args:
        failure: The probability p.
        increments: :math:`c_1, \dots, c_n`.

    Returns:
        The rise; :func:`azuma_hoeffding` of it is p.

    Raises:
        ValueError: If p is not between 0 and 1, or an increment is negative or not finite.

    Example:
        >>> rise = azuma_rise(0.05, [0.5] * 100)
        >>> round(azuma_hoeffding(rise, [0.5] * 100), 12)
        0.05

    Mukherjee 2020, Theorem 3.D.1.
    """
    return math.sqrt(2 * math.log(1 / probability("failure", failure))) * _length(increments)


def _length(increments: ArrayLike) -> float:
    c = np.asarray(increments, dtype=np.float64).ravel()
    if not c.size or not np.isfinite(c).all() or c.min() < 0:
        raise ValueError(
            "increments must be finite, not negative and at least one; "
            f"got {np.array2string(c, threshold=6)}."
        )
    largest = float(c.max())  # divided out first: squares of huge numbers overflow
    return largest * float(np.linalg.norm(c / largest)) if largest > 0 else 0.0
