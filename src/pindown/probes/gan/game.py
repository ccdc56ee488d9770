r"""The game of generator and discriminator on finitely many outcomes, where its optimum is known.

A discriminator D says with which probability an outcome comes from the data; the generator wants it to
be wrong, and so to draw outcomes as the data do. With data p and generator q the value is

.. math:: V(D, q) = \sum_x p(x) \ln D(x) + \sum_x q(x) \ln (1 - D(x)), \qquad
          D^* = \frac{p}{p + q}, \qquad V(D^*, q) = 2\,\mathrm{JS}(p \| q) - 2 \ln 2,

so that the generator's best is q = p, with D = 1/2 and the value -2 ln 2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import rel_entr, xlog1py, xlogy

from pindown.affine import Array

_TOTAL_ERROR = 1e-9  # probabilities given as floats sum to one up to rounding


def optimal_discriminator(p: ArrayLike, q: ArrayLike) -> Array:
    r"""Return the best discriminator of two distributions, :math:`D^* = p / (p + q)`.

    Where neither has mass nothing is ever decided; it is 1/2 there.

    Args:
        p: Probabilities of the data, (k,).
        q: Probabilities of the generator, (k,).

    Raises:
        ValueError: If they are no distributions on the same outcomes.

    Example:
        >>> optimal_discriminator([0.75, 0.25, 0.0], [0.25, 0.25, 0.5]).tolist()
        [0.75, 0.5, 0.0]

    Lecture course, section on generative adversarial networks; Goodfellow et al. 2014, Proposition 1.
    """
    data, made = _pair(p, q)
    total = data + made
    return np.divide(data, total, out=np.full_like(total, 0.5), where=total > 0)


def gan_value(p: ArrayLike, q: ArrayLike, discriminator: ArrayLike) -> float:
    r"""Return :math:`\sum p \ln D + \sum q \ln (1 - D)`; minus infinity where D is certain and wrong.

    Args:
        p: Probabilities of the data, (k,).
        q: Probabilities of the generator, (k,).
        discriminator: D, probabilities (k,), or one for all.

    Example:
        >>> round(gan_value([0.5, 0.5], [0.5, 0.5], 0.5), 4)  # -2 ln 2
        -1.3863

    Lecture course, section on generative adversarial networks.
    """
    data, made = _pair(p, q)
    D = np.broadcast_to(np.asarray(discriminator, dtype=np.float64), data.shape)
    if not ((D >= 0) & (D <= 1)).all():
        raise ValueError("discriminator must hold probabilities from 0 to 1; some are outside, or NaN.")
    return float(np.sum(xlogy(data, D)) + np.sum(xlog1py(made, -D)))


def jensen_shannon(p: ArrayLike, q: ArrayLike) -> float:
    r"""Return the Jensen-Shannon divergence in nats, between 0 and ln 2.

    .. math:: \mathrm{JS} = \tfrac12 \sum p \ln \frac{2 p}{p + q} + \tfrac12 \sum q \ln \frac{2 q}{p + q}

    Example:
        >>> round(jensen_shannon([1.0, 0.0], [0.0, 1.0]), 6), jensen_shannon([0.3, 0.7], [0.3, 0.7])
        (0.693147, 0.0)

    Lecture course, section on generative adversarial networks, where the second logarithm is missing.
    """
    data, made = _pair(p, q)
    middle = 0.5 * (data + made)
    return float(0.5 * np.sum(rel_entr(data, middle)) + 0.5 * np.sum(rel_entr(made, middle)))


def cross_entropy(labels: ArrayLike, scores: ArrayLike) -> Array:
    r"""Return the loss of a discriminator that gives scores z, :math:`D = 1 / (1 + e^{-z})`.

    .. math:: -y \ln D - (1 - y) \ln (1 - D) = y \ln(1 + e^{-z}) + (1 - y) \ln(1 + e^{z})

    The right side loses no digits where D is near 0 or 1.

    Args:
        labels: y, 1 for data and 0 for the generator's, or shares between.
        scores: z.

    Example:
        >>> cross_entropy([1, 1, 0], [0.0, 800.0, 800.0]).round(6).tolist()
        [0.693147, 0.0, 800.0]

    Lecture course, section on generative adversarial networks, where the label is lost.
    """
    y, z = np.asarray(labels, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    if not ((y >= 0) & (y <= 1)).all():
        raise ValueError("labels must lie between 0 and 1; some are outside, or NaN.")
    if np.isnan(z).any():
        raise ValueError("scores must be numbers; some are NaN.")
    return np.asarray(y * np.logaddexp(0.0, -z) + (1.0 - y) * np.logaddexp(0.0, z))


def _pair(p: ArrayLike, q: ArrayLike) -> tuple[Array, Array]:
    found = []
    for name, values in (("p", p), ("q", q)):
        array = np.asarray(values, dtype=np.float64)
        if array.ndim != 1 or not len(array):
            raise ValueError(f"{name} must hold one probability per outcome, (k,); got {array.shape}.")
        if not (array >= 0).all() or not abs(float(array.sum()) - 1.0) <= _TOTAL_ERROR:
            raise ValueError(f"{name} must be at least 0 and sum to 1; its sum is {array.sum():g}.")
        found.append(array)
    if found[0].shape != found[1].shape:
        raise ValueError(f"p and q need the same outcomes; got {len(found[0])} and {len(found[1])}.")
    return found[0], found[1]
