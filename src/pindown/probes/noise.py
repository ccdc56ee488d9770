r"""Random noise is a poor attack: what it takes to change a class by chance.

Let r be standard normal and :math:`\sigma` its scale. On a linear model with margin m (the distance
from x to the boundary) noise of scale :math:`\sigma` changes the class with probability

.. math::
    P = \Phi(-m / \sigma),

whatever the dimension. But such noise has length about :math:`\sigma \sqrt d`, so to succeed with a
given probability it has to be about :math:`\sqrt d` times as long as the shortest attack. What does
shrink with the dimension is the chance that an *average* of the noise exceeds a fixed number.

Lecture course, section on random noise, corrected: :math:`P(w \cdot r > 0)` is one half in every
dimension, and to lower :math:`w \cdot x + w_0` one moves against w.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import erfc, exp, inf, isfinite, pi, sqrt

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.probes.linear_attacks import linear_distance


@dataclass(frozen=True)
class NoiseComparison:
    """How long noise has to be to do what the shortest attack does.

    Attributes:
        margin: Length of the shortest l2 change that changes the class.
        sigma: Scale of normal noise that changes it with the given probability.
        noise_norm: Root mean square length of that noise, ``sigma * sqrt(d)``.
        ratio: ``noise_norm / margin``.
        probability: The probability asked for.
        exact: Whether the statement is exact (two classes) or an upper bound on the scale (more).
    """

    margin: float
    sigma: float
    noise_norm: float
    ratio: float
    probability: float
    exact: bool

    def __str__(self) -> str:
        if self.margin == inf:
            return "neither noise nor an attack changes the class: all inputs have the same"
        sign = "" if self.exact else "at most "
        return (
            f"noise of length {sign}{self.noise_norm:.4g} changes the class with probability "
            f"{self.probability:g}, an attack of length {self.margin:.4g} does for sure: "
            f"{self.ratio:.3g} times shorter"
        )


def noise_flip_probability(margin: ArrayLike, sigma: float) -> Array:
    r"""Return :math:`\Phi(-m / \sigma)`, the chance that normal noise crosses a plane at distance m.

    >>> noise_flip_probability([0.0, 1.0], sigma=1.0).round(4)
    array([0.5   , 0.1587])

    Lecture course, section on random noise, in terms of the margin.
    """
    from scipy.special import ndtr

    distances = np.asarray(margin, dtype=np.float64)
    if not np.all(distances >= 0):
        raise ValueError("margins are distances >= 0; got a negative one or NaN.")
    _require_positive(sigma, "sigma")
    return np.asarray(ndtr(-distances / sigma))


def mean_noise_probability(d: int, eps: float) -> float:
    r"""Return :math:`P(\tfrac1d \sum_j r_j > \epsilon) = \tfrac12 \mathrm{erfc}(\epsilon \sqrt{d/2})`.

    >>> round(mean_noise_probability(100, 0.1), 4)
    0.1587

    Lecture course, section on random noise.
    """
    if d < 1:
        raise ValueError(f"d must be at least 1; got {d}.")
    return 0.5 * erfc(eps * sqrt(d / 2.0))


def noise_tail_bound(w: ArrayLike, eps: float) -> float:
    r"""Bound :math:`P(\tfrac1d\, w \cdot r \ge \epsilon)` from above, for :math:`\epsilon > 0`.

    .. math::
        \frac{\|w\|}{\epsilon d \sqrt{2 \pi}} \exp\Bigl(-\frac{d^2 \epsilon^2}{2 \|w\|^2}\Bigr),

    the tail of a normal variable of *variance* :math:`\|w\|^2 / d^2`. For small arguments it exceeds
    one half, which always bounds the probability, and one half is returned.

    >>> noise_tail_bound(np.ones(400), 0.1) < noise_tail_bound(np.ones(100), 0.1)
    True

    Lecture course, section on random noise.
    """
    weights = np.asarray(w, dtype=np.float64)
    if weights.ndim != 1 or not weights.size or not np.isfinite(weights).all():
        raise ValueError(f"w must be a vector of finite numbers; got shape {weights.shape}.")
    _require_positive(eps, "eps")
    size = float(np.linalg.norm(weights))
    if size == 0.0:
        return 0.0
    t = eps * weights.size / size
    return min(0.5, exp(-0.5 * t * t) / (t * sqrt(2.0 * pi)))


def noise_versus_adversarial(
    W: ArrayLike, b: ArrayLike, x: ArrayLike, probability: float = 0.01
) -> NoiseComparison:
    r"""Compare noise that changes the class of a linear model now and then with the shortest attack.

    .. math::
        \sigma = \frac{m}{|\Phi^{-1}(p)|}, \qquad \|\text{noise}\| \approx \sigma \sqrt d .

    With more than two classes noise can also end in a third one, so a smaller scale may do.

    >>> found = noise_versus_adversarial(np.ones(100), 0.0, np.ones(100), probability=0.1587)
    >>> round(found.margin, 6), round(found.ratio, 2)
    (10.0, 10.0)

    Lecture course, section on random noise.
    """
    from scipy.special import ndtri

    if not 0.0 < probability < 0.5:
        raise ValueError(f"probability must lie between 0 and 0.5; got {probability}.")
    weight = np.atleast_2d(np.asarray(W, dtype=np.float64))
    margins = linear_distance(W, b, x)
    if len(margins) != 1:
        raise ValueError(f"x must be one input; got {len(margins)}.")
    margin, d, classes = float(margins[0]), weight.shape[1], len(weight)
    if not isfinite(margin):
        ratio = sqrt(d) / -float(ndtri(probability))
        return NoiseComparison(inf, inf, inf, ratio, probability, classes <= 2)
    sigma = margin / -float(ndtri(probability))
    length = sigma * sqrt(d)
    ratio = length / margin if margin > 0 else sqrt(d) / -float(ndtri(probability))
    return NoiseComparison(margin, sigma, length, ratio, probability, classes <= 2)


def _require_positive(value: float, name: str) -> None:
    if not (isfinite(value) and value > 0):
        raise ValueError(f"{name} must be a positive number; got {value}.")
