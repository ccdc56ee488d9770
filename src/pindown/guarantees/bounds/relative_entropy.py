r"""Relative entropies: of two coins, with its inverse rounded outwards, and of Gaussians over weights.

That of two coins (*small kl*) is

.. math::
    \mathrm{kl}(q \| p) = q \log\frac{q}{p} + (1 - q) \log\frac{1 - q}{1 - p}

Written with :math:`h(x) = x - \log(1 + x) \ge 0` it is a sum of two numbers that are not negative,

.. math::
    \mathrm{kl}(q \| p) = q\, h\Big(\frac{p - q}{q}\Big) + (1 - q)\, h\Big(-\frac{p - q}{1 - q}\Big),

so nothing cancels, and float64 gives it to a few dozen units in the last place. The inverse is guessed
by Newton's method and then lifted to a number at which a proved lower bound on kl exceeds the level.

Gaussians are compared with one Gaussian, and with a mixture of them.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from pindown.affine import Array
from pindown.guarantees.bounds.bound import half_square, outward
from pindown.rounding import UNIT_ROUNDOFF, norm_up
from pindown.validation import positive

# Where |x| is below this, h is summed as a series: x - log1p(x) would cancel.
_SERIES = 0.25
_SERIES_TERMS = 26  # 0.25**26 is below rounding; leaving out the rest makes h smaller, never larger
# Rounding in all of kl is below a hundred units in the last place; this is ten times that.
_RELATIVE_ERROR = 1000 * 2.0**-53
# Below this, ratios p / q could leave float64; q is replaced by it, which makes the inverse larger.
_MIN_SHARE = 1e-290
_NEWTON_STEPS = 9  # of a guess that nobody has to trust
_LIFTS = 60  # doublings of a step that starts at rounding
_ROUNDINGS = 8  # of a ratio, its square, its logarithm and their difference


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
    safe = np.where(share > 0, np.maximum(share, _MIN_SHARE), 0.0)
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


def gaussian_kl(
    mean: ArrayLike, scale: float, prior_mean: ArrayLike, prior_scale: float | None = None
) -> float:
    r"""Return the relative entropy of two isotropic Gaussians, rounded up.

    .. math::
        \mathrm{KL} = \frac{\|a - b\|^2}{2 s_P^2}
            + \frac n2 \Big(\frac{s_Q^2}{s_P^2} - 1\Big) + n \log\frac{s_P}{s_Q}

    Args:
        mean: a, the mean of the posterior.
        scale: :math:`s_Q`, its standard deviation in every direction.
        prior_mean: b.
        prior_scale: :math:`s_P`; None is :math:`s_Q`.

    Example:
        >>> round(gaussian_kl([3.0, 4.0], 1.0, [0.0, 0.0]), 9)
        12.5
    """
    a, b = _vector("mean", mean), _vector("prior_mean", prior_mean)
    if a.shape != b.shape:
        raise ValueError(f"both means need the same length; got {a.size} and {b.size}.")
    mine, prior = _scales(scale, prior_scale)
    return outward(half_square(norm_up(a - b), prior) + _width_term(a.size, mine, prior))


def mixture_kl_bound(
    mean: ArrayLike,
    scale: float,
    centres: ArrayLike,
    *,
    prior_scale: float | None = None,
    weights: ArrayLike | None = None,
) -> float:
    r"""Bound the relative entropy of a Gaussian to a mixture of Gaussians.

    .. math::
        \mathrm{KL}\Big(N(a, s_Q^2 I) \Big\| \sum_r w_r N(b_r, s_P^2 I)\Big) \le
        -\log \sum_r w_r e^{-\|a - b_r\|^2 / 2 s_P^2}
            + \frac n2 \Big(\frac{s_Q^2}{s_P^2} - 1\Big) + n \log\frac{s_P}{s_Q}

    With one component it is the relative entropy itself.

    Args:
        mean: a.
        scale: :math:`s_Q`.
        centres: :math:`b_1, \dots, b_k`, of shape (k, n).
        prior_scale: :math:`s_P`; None is :math:`s_Q`.
        weights: :math:`w_r`; None is 1/k each.

    Example:
        A second component far away costs its share of the prior, log 2, and no more:

        >>> one = mixture_kl_bound([3.0], 1.0, [[0.0]])
        >>> round(mixture_kl_bound([3.0], 1.0, [[0.0], [99.0]]) - one, 6)
        0.693147

    Mukherjee 2020, Theorem 6.A.1.
    """
    a, b = _vector("mean", mean), np.asarray(centres, dtype=np.float64)
    if b.ndim != 2 or b.shape[1] != a.size or not len(b) or not np.isfinite(b).all():
        raise ValueError(f"centres must be finite, of shape (k, {a.size}) with k >= 1; got {b.shape}.")
    mine, prior = _scales(scale, prior_scale)
    distances = np.array([norm_up(a - row) for row in b])
    shares = np.full(len(b), 1.0 / len(b)) if weights is None else _weights(weights, len(b))
    return outward(mixture_exponent(distances, prior, shares) + _width_term(a.size, mine, prior))


def mixture_exponent(distances: Array, scale: float, weights: Array | None = None) -> float:
    r"""Return :math:`-\log \sum_r w_r e^{-d_r^2 / 2 s^2}`, rounded up.

    >>> round(mixture_exponent(np.array([2.0, 2.0]), 1.0), 9)
    2.0
    """
    shares = np.full(len(distances), 1.0 / len(distances)) if weights is None else weights
    with np.errstate(over="ignore"):
        exponents = -0.5 * (np.asarray(distances, dtype=float) / scale) ** 2
    kept = shares > 0
    if not np.isfinite(exponents[kept]).any():
        return math.inf
    return max(0.0, outward(-float(logsumexp(exponents[kept], b=shares[kept]))))


def _width_term(n: int, scale: float, prior: float) -> float:
    """Return n(x - 1 - log x)/2 at x = (scale / prior)**2, which is not negative, rounded up."""
    if scale == prior:
        return 0.0
    ratio = scale / prior
    if not 0.0 < ratio < math.inf:
        return math.inf
    x, log = ratio * ratio, 2.0 * math.log(ratio)
    lost = _ROUNDINGS * UNIT_ROUNDOFF * (1.0 + x + abs(log))  # near x = 1 the difference cancels
    return 0.5 * n * (max(0.0, x - 1.0 - log) + lost)


def _vector(name: str, values: ArrayLike) -> Array:
    vector = np.asarray(values, dtype=np.float64).ravel()
    if not vector.size or not np.isfinite(vector).all():
        raise ValueError(f"{name} must hold finite numbers, at least one; got {vector.size} numbers.")
    return vector


def _scales(scale: float, prior_scale: float | None) -> tuple[float, float]:
    mine = positive("scale", scale)
    return mine, mine if prior_scale is None else positive("prior_scale", prior_scale)


def _weights(values: ArrayLike, k: int) -> Array:
    w = np.asarray(values, dtype=np.float64).ravel()
    if w.size != k or not (w >= 0).all() or not 0 < w.sum() <= 1.0 + k * 2.0**-52:
        raise ValueError(f"weights must be {k} numbers of at least 0 that sum to one; got {w}.")
    return w
