r"""What independent samples of one distribution say about it, with a stated confidence.

Let n rows be drawn independently from one distribution.

- If k of them have a property, the share p of all that have it is, with probability at least
  :math:`1 - \delta`, at most :math:`\bar p`, where :math:`P[\mathrm{Bin}(n, \bar p) \le k] = \delta`.
- The quantile :math:`q_s` of a number is, with the same probability, at most the r-th smallest value
  seen, for the least r with :math:`P[\mathrm{Bin}(n, s) \le r - 1] \ge 1 - \delta`, whatever the
  distribution is.

Clopper and Pearson 1934, "The use of confidence or fiducial limits illustrated in the case of the
binomial"; Thompson 1936, "On confidence ranges for the median and other expectation distributions"
(order statistics).
"""

from __future__ import annotations

from math import inf, nextafter

import numpy as np

from pindown.affine import Array

_SCIPY_ERROR = 1e-11
_SLACK = 4e-14  # far more than rounding in a short formula takes


def clopper_pearson(successes: int, n: int, delta: float) -> float:
    """Return an upper confidence limit for a share, rounded outwards.

    >>> clopper_pearson(10, 10, 0.05)
    1.0
    >>> round(clopper_pearson(0, 59, 0.05), 4)  # 1 - 0.05^(1/59)
    0.0495
    """
    from scipy.special import bdtr, betainccinv

    if successes >= n:
        return 1.0
    # SciPy's inverse is right to about 1e-12; the check below does not trust it.
    found = float(betainccinv(successes + 1, n - successes, delta))
    value = nextafter(found + found * _SLACK, inf)
    step = _SCIPY_ERROR * value
    while value < 1.0 and bdtr(successes, n, value) * (1.0 + _SCIPY_ERROR) > delta:
        value, step = min(1.0, value + step), 2.0 * step
    return value


def quantile_upper(values: Array, share: float, delta: float) -> float:
    r"""Return an upper confidence limit for a quantile: one of the values seen, or infinity.

    Args:
        values: Independent draws of a number, (n,).
        share: Which quantile: with probability ``share`` a new draw is at most that.
        delta: Probability with which the limit may be too low.

    >>> [quantile_upper(np.arange(n) + 1.0, 0.95, 0.05) for n in (59, 58)]
    [59.0, inf]
    """
    from scipy.special import bdtr

    ordered = np.sort(values)
    below = bdtr(np.arange(len(ordered)), len(ordered), share)  # r - 1 = 0, 1, ..., n - 1
    sure = np.flatnonzero(below * (1.0 - _SCIPY_ERROR) >= 1.0 - delta)
    return float(ordered[sure[0]]) if len(sure) else inf
