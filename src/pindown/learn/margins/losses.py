r"""Losses of a margin :math:`u = y f(x)`, with their first two derivatives, safe for every float.

.. math:: \ell_{0/1}(u) = [u \le 0], \qquad \ell_{\log}(u) = \ln(1 + e^{-u}), \qquad
          \ell_{hinge}(u) = \max(0, 1 - u).

Lecture course, slides on binary classification and the logistic loss.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array


@dataclass(frozen=True)
class MarginLoss:
    """A convex loss of the margin with its slope and curvature, each a function of arrays.

    >>> LOGISTIC
    logistic loss of the margin
    >>> round(float(LOGISTIC.value(0.0)), 6), float(LOGISTIC.slope(0.0)), float(LOGISTIC.curvature(0.0))
    (0.693147, -0.5, 0.25)
    >>> HINGE.value([-1.0, 0.5, 2.0]).tolist()
    [2.0, 0.5, 0.0]
    """

    name: str
    value: Callable[[ArrayLike], Array] = field(repr=False)
    slope: Callable[[ArrayLike], Array] = field(repr=False)
    curvature: Callable[[ArrayLike], Array] = field(repr=False)

    def __repr__(self) -> str:
        return f"{self.name} loss of the margin"


def zero_one(u: ArrayLike) -> Array:
    """Return 1 where the margin is zero or negative: a tie counts as a mistake, as everywhere here.

    >>> zero_one([-0.1, 0.0, 0.1]).tolist()
    [1.0, 1.0, 0.0]
    """
    return (np.asarray(u, dtype=np.float64) <= 0).astype(np.float64)


def probability(u: ArrayLike) -> Array:
    r"""Return :math:`p(y \mid f) = 1/(1 + e^{-u})`, the probability of the label.

    >>> probability([0.0, np.log(3.0)]).tolist()
    [0.5, 0.75]
    """
    from scipy.special import expit

    return np.asarray(expit(np.asarray(u, dtype=np.float64)))


def _logistic(u: ArrayLike) -> Array:
    return np.logaddexp(0.0, -np.asarray(u, dtype=np.float64))


def _logistic_slope(u: ArrayLike) -> Array:
    return -probability(-np.asarray(u, dtype=np.float64))


def _logistic_curvature(u: ArrayLike) -> Array:
    u = np.asarray(u, dtype=np.float64)
    return probability(u) * probability(-u)


def _hinge(u: ArrayLike) -> Array:
    return np.maximum(0.0, 1.0 - np.asarray(u, dtype=np.float64))


def _hinge_slope(u: ArrayLike) -> Array:
    return -(np.asarray(u, dtype=np.float64) < 1.0).astype(np.float64)


def _hinge_curvature(u: ArrayLike) -> Array:
    return np.zeros_like(np.asarray(u, dtype=np.float64))


LOGISTIC = MarginLoss("logistic", _logistic, _logistic_slope, _logistic_curvature)
HINGE = MarginLoss("hinge", _hinge, _hinge_slope, _hinge_curvature)
