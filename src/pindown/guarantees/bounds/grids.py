r"""Priors chosen after looking: grids that were fixed before, and what the choice costs.

If the bound for each of K priors fails with probability at most :math:`\delta`, all hold with
probability at least :math:`1 - K \delta`. Shares need not be equal: prior i may fail with probability
:math:`w_i \delta` for any weights with :math:`\sum_i w_i \le 1`, also of infinitely many priors.

Mukherjee 2020, Theorem 6.B.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from pindown.affine import Array
from pindown.guarantees.bounds.bound import outward, positive, probability

_STEPS_PER_OCTAVE = 16  # rounding a scale down takes at most 8.3 % from its square
_WEIGHT_TOTAL = 2.3  # at least the sum of 1 / (1 + |i|)**2 over all integers, pi**2 / 3 - 1
_MOST_ROUNDS = 1000
_MOST_PRIORS = 1e300


def beta_grid(
    low: float, high: float, depth: int, kind: Literal["geometric", "uniform"] = "geometric"
) -> Array:
    r"""Return points so that every x between low and high has one with :math:`|x - g| \le x / d`.

    Then :math:`x^{d-1}/e \le g^{d-1} \le e\,x^{d-1}`, which is what weight noise chosen at g instead of
    x needs.

    Args:
        low: Lower end a.
        high: Upper end b.
        depth: d, at least 2.
        kind: ``"geometric"``: :math:`a r^i (1 + 1/d)` with :math:`r = (d+1)/(d-1)`, about
            :math:`\log(b/a)/\log r` points; ``"uniform"``: the source's, :math:`d(b-a)/2a` points.

    Example:
        >>> len(beta_grid(1, 20, 5)), len(beta_grid(1, 20, 5, "uniform"))
        (8, 48)

    Mukherjee 2020, section 6.7.
    """
    a, b = positive("low", low), positive("high", high)
    if isinstance(depth, bool) or depth < 2:
        raise ValueError(f"depth must be an integer of at least 2; got {depth!r}.")
    if b < a:
        raise ValueError(f"high must not be below low; got {low} and {high}.")
    if kind == "uniform":
        n = max(1, math.ceil(depth * (b - a) / (2 * a)))
        return a + (np.arange(n) + 0.5) * (b - a) / n
    if kind != "geometric":
        raise ValueError(f"kind must be 'geometric' or 'uniform'; got {kind!r}.")
    ratio = (depth + 1) / (depth - 1)
    n = max(1, math.ceil(math.log(b / a) / math.log(ratio) * (1.0 - 1e-12)))  # b / a a power of ratio
    return np.asarray(a * ratio ** np.arange(n) * (1.0 + 1.0 / depth), dtype=np.float64)


class ScaleChoice(NamedTuple):
    """A standard deviation of the prior, fixed beforehand, and the log of one over its weight."""

    scale: float
    cost: float


def scale_below(scale: float) -> ScaleChoice:
    r"""Return the largest of the fixed scales :math:`2^{i/16}`, i any integer, that is not above.

    Scale i has weight :math:`1 / (2.3 (1 + |i|)^2)`; the weights sum to less than one. Bounds that fail
    with probability :math:`\delta` times the weight of their scale hold for all scales at once.

    Example:
        >>> scale_below(1.03).scale, round(scale_below(1.03).cost - math.log(2.3), 9)
        (1.0, 0.0)
        >>> round(scale_below(1e-4).cost, 2)
        11.56
    """
    given = positive("scale", scale)
    i = math.floor(_STEPS_PER_OCTAVE * math.log2(given))
    while 2.0 ** (i / _STEPS_PER_OCTAVE) > given:  # the logarithm may have been rounded up
        i -= 1
    return ScaleChoice(
        2.0 ** (i / _STEPS_PER_OCTAVE), outward(math.log(_WEIGHT_TOTAL) + 2.0 * math.log1p(abs(i)))
    )


def shared_delta(number_of_priors: Callable[[float], float], delta: float = 0.05) -> float:
    r"""Return a :math:`\delta'` with :math:`K(\delta')\,\delta' \le \delta`, for a K that grows slowly.

    Args:
        number_of_priors: K as a function of :math:`\delta'`, not growing faster than
            :math:`1/\delta'`.
        delta: What all priors together may fail with.

    Example:
        >>> shared_delta(lambda each: 10.0)
        0.005

    Mukherjee 2020, section 6.7 (the priors there depend on the confidence).
    """
    total = each = probability("delta", delta)
    for _ in range(_MOST_ROUNDS):
        wanted = number_of_priors(each)
        if not wanted < _MOST_PRIORS:
            break
        needed = math.ceil(wanted)
        if needed * each <= total:
            return each
        each = min(total / needed, each)
        if needed * each > total:
            each = math.nextafter(each, 0.0)
    raise ValueError(f"no share of delta={delta} serves all priors: their number grows too fast.")
