r"""The relative entropy of two coins, and its inverse rounded outwards.

.. math::
    \mathrm{kl}(q \| p) = q \log\frac{q}{p} + (1 - q) \log\frac{1 - q}{1 - p}

Written with :math:`h(x) = x - \log(1 + x) \ge 0` it is a sum of two numbers that are not negative,

.. math::
    \mathrm{kl}(q \| p) = q\, h\Big(\frac{p - q}{q}\Big) + (1 - q)\, h\Big(-\frac{p - q}{1 - q}\Big),

so nothing cancels, and float64 gives it to a few dozen units in the last place. The inverse is guessed
by Newton's method and then lifted to a number at which a proved lower bound on kl exceeds the level.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array

# Where |x| is below this, h is summed as a series: x - log1p(x) would cancel.
_SERIES = 0.25
_SERIES_TERMS = 26  # 0.25**26 is below rounding; leaving out the rest makes h smaller, never larger
# Rounding in all of kl is below a hundred units in the last place; this is ten times that.
_RELATIVE_ERROR = 1000 * 2.0**-53
# Below this, ratios p / q could leave float64; q is replaced by it, which makes the inverse larger.
_SMALLEST_SHARE = 1e-290
_NEWTON_STEPS = 9  # of a guess that nobody has to trust
_LIFTS = 60  # doublings of a step that starts at rounding


def small_kl(q: ArrayLike, p: ArrayLike) -> Array:
    r"""Return :math:`\mathrm{kl}(q \| p)`, entry by entry.

    Args:
        q: Shares between 0 and 1.
        p: Shares between 0 and 1.

    Returns:
        The relative entropy in nats; infinite where p is 0 or 1 and q is not.

    Example:
        A fair coin that never shows tails costs log 2:

        >>> round(float(small_kl(0.0, 0.5)), 4)
        0.6931

    Seeger 2002, "PAC-Bayesian generalisation error bounds for Gaussian process classification".
    """
    left, right = np.broadcast_arrays(_shares("q", q), _shares("p", p))
    # Where p < q, both coins are turned over: the formula below wants p above q.
    over = right >= left
    return _entropy(
        np.where(over, left, 1.0 - left),
        np.where(over, 1.0 - left, left),
        np.where(over, right, 1.0 - right),
        np.where(over, 1.0 - right, right),
    )


def small_kl_inverse(q: ArrayLike, c: ArrayLike) -> Array:
    r"""Return the largest p with :math:`\mathrm{kl}(q \| p) \le c`, rounded outwards.

    Args:
        q: Shares between 0 and 1.
        c: Levels, not negative; infinity is allowed.

    Returns:
        An array of the broadcast shape; never below the true value, and above it by rounding only.

    Raises:
        ValueError: If a share is not between 0 and 1, a level is negative, or anything is NaN.

    Example:
        For q = 0 the inverse is :math:`1 - e^{-c}`:

        >>> small_kl_inverse(0.0, [0.0, np.log(2), np.inf]).round(9)
        array([0. , 0.5, 1. ])
        >>> float(small_kl_inverse(0.1, 0.02).round(4))
        0.1704

    Maurer 2004, "A note on the PAC Bayesian theorem"; Seeger 2002.
    """
    share, level = np.broadcast_arrays(_shares("q", q), _levels(c))
    safe = np.where(share > 0, np.maximum(share, _SMALLEST_SHARE), 0.0)
    found = _proved_above(safe, level, _newton(safe, level))
    found = np.where((level == 0) & (share == safe), share, found)
    return np.where(share >= 1.0, 1.0, found)


def _newton(q: Array, level: Array) -> Array:
    """Return a guess: Newton's method from the right, where kl is convex and increasing in p."""
    rest = 1.0 - q
    with np.errstate(all="ignore"):
        entropy = -np.where(q > 0, q * np.log(q), 0.0) - np.where(rest > 0, rest * np.log(rest), 0.0)
        # Upper ends: kl is at least (p - q)**2 / 2 over the largest variance of a coin in between.
        widest = np.where(q > 0.5, q * rest, 0.25)
        starts = (q + np.sqrt(2 * widest * level), q + np.sqrt(2 * q * level) + 2 * level)
        start = np.minimum(np.minimum(*starts), -np.expm1(-(level + entropy) / rest))
        p = np.where(np.isfinite(start), np.clip(start, q, 1.0), 1.0)
        for _ in range(_NEWTON_STEPS):
            step = (_entropy(q, rest, p, 1.0 - p) - level) * p * (1.0 - p) / (p - q)
            p = np.where(np.isfinite(step), np.clip(p - step, q, 1.0), p)
    return np.asarray(p)


def _proved_above(q: Array, level: Array, guess: Array) -> Array:
    """Move guesses up until kl is proved to be at least the level; 1 always is."""
    p, step = guess, (guess - q) * 2.0**-50 + np.spacing(guess)
    for _ in range(_LIFTS):
        short = ~(_entropy(q, 1.0 - q, p, 1.0 - p) * (1.0 - _RELATIVE_ERROR) >= level) & (p < 1.0)
        if not short.any():
            return p
        p, step = np.where(short, np.minimum(p + step, 1.0), p), 2.0 * step
    return np.where(short, 1.0, p)


def _entropy(q: Array, rest: Array, p: Array, p_rest: Array) -> Array:
    """Return kl for p >= q, with ``rest = 1 - q`` and ``p_rest = 1 - p`` given."""
    d = p - q
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        up = np.where(q > 0, d / q, np.inf)
        down = np.where(rest > 0, d / rest, 0.0)
        gain = np.where(up <= _SERIES, q * _h(up), d - np.where(q > 0, q * np.log(p / q), 0.0))
        far = rest * np.log(rest / p_rest) - d
        loss = np.where(down <= _SERIES, rest * _h(-down), far)
    total = np.maximum(gain, 0.0) + np.where(d > 0, loss, 0.0)
    return np.where(d > 0, total, 0.0)


def _h(x: Array) -> Array:
    r"""Return :math:`x - \log(1 + x) = x^2/2 - x^3/3 + \dots` for small x."""
    x = np.where(np.abs(x) <= _SERIES, x, 0.0)
    total = np.zeros_like(x)
    for k in range(_SERIES_TERMS + 1, 1, -1):  # an odd last power: the alternating sum stays below
        total = 1.0 / k - x * total
    return x * x * total


def _shares(name: str, values: ArrayLike) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if not ((array >= 0) & (array <= 1)).all():
        wrong = array[~((array >= 0) & (array <= 1))].flat[0]
        raise ValueError(f"{name} must hold shares between 0 and 1; got {wrong}.")
    return array


def _levels(values: ArrayLike) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if not (array >= 0).all():
        raise ValueError(f"c must hold levels of at least 0; got {array[~(array >= 0)].flat[0]}.")
    return array
