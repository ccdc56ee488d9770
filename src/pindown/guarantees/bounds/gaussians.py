r"""Relative entropies of Gaussians over weights, against one Gaussian and against a mixture."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from pindown.affine import Array
from pindown.guarantees.bounds.bound import half_square, outward, positive
from pindown.rounding import UNIT_ROUNDOFF, norm_up

_ROUNDINGS = 8  # of a ratio, its square, its logarithm and their difference


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
