r"""Margins :math:`u = y f(x)`: distances to a hyperplane, and losses with their first two derivatives.

.. math:: \ell_{0/1}(u) = [u \le 0], \qquad \ell_{\log}(u) = \ln(1 + e^{-u}), \qquad
          \ell_{hinge}(u) = \max(0, 1 - u).

Lecture course, slides on the maximum margin, binary classification and the logistic loss.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.learn.kernels.gram_matrix import samples

# The norm that measures w when points are measured in the key's norm.
_DUAL_ORDER = {1: np.inf, 2: 2, np.inf: 1}


def hyperplane_distance(
    X: ArrayLike, w: ArrayLike, b: float = 0.0, *, norm: float = 2, y: ArrayLike | None = None
) -> Array:
    r"""Return the distance of each sample to a hyperplane.

    .. math:: \operatorname{dist}(x) = |\langle w, x\rangle + b| \,/\, \lVert w \rVert_*

    Args:
        X: Samples (n, d).
        w: Normal vector (d,), not zero.
        b: Offset.
        norm: Norm that measures points: 1, 2 or infinity; w is measured in its dual.
        y: Labels -1 and 1: with them distances are signed, negative for samples on the wrong side.

    Returns:
        The n distances.

    Raises:
        ValueError: If w is zero, shapes differ, the norm is another one, or labels are not -1 and 1.

    Example:
        >>> hyperplane_distance([[3.0, 4.0], [0.0, 0.0]], [3.0, 4.0]).tolist()
        [5.0, 0.0]
        >>> hyperplane_distance([[1.0, 1.0]], [1.0, 1.0], norm=float("inf"), y=[-1]).tolist()
        [-1.0]

    Lecture course, slides on the maximum margin.
    """
    X, w = samples(X), _normal(w)
    if norm not in _DUAL_ORDER:
        raise ValueError(f"norm must be 1, 2 or inf; got {norm!r}")
    if X.shape[1] != len(w):
        raise ValueError(f"samples have {X.shape[1]} features, the normal vector has {len(w)}")
    largest = np.abs(w).max()  # scaled first: squares of huge or tiny weights leave the range of floats
    values = (X @ (w / largest) + b / largest) / np.linalg.norm(w / largest, _DUAL_ORDER[norm])
    return np.abs(values) if y is None else signs(y, len(X)) * values


def margin(X: ArrayLike, y: ArrayLike, w: ArrayLike, b: float = 0.0, *, norm: float = 2) -> float:
    r"""Return the margin :math:`\min_i y_i(\langle w, x_i\rangle + b)/\lVert w\rVert_*`.

    It is positive exactly when the hyperplane separates the classes. (With an absolute value instead of
    the label it would be positive for any hyperplane that misses all samples.)

    Example:
        >>> margin([[-1.0], [3.0]], [-1, 1], [2.0])
        1.0
        >>> margin([[-1.0], [3.0]], [1, 1], [2.0])
        -1.0

    Lecture course, slides on the maximum margin.
    """
    return float(hyperplane_distance(X, w, b, norm=norm, y=y).min())


def project_to_hyperplane(X: ArrayLike, w: ArrayLike, b: float = 0.0) -> Array:
    r"""Return the nearest point of a hyperplane to each sample, :math:`x - \frac{wx + b}{ww}\, w`.

    Example:
        >>> project_to_hyperplane([[2.0, 5.0]], [0.0, 1.0], -1.0).tolist()
        [[2.0, 1.0]]

    Lecture course, slides on the maximum margin.
    """
    X, w = samples(X), _normal(w)
    unit = w / np.abs(w).max()
    heights = (X @ unit + b / np.abs(w).max()) / (unit @ unit)
    return X - heights[:, None] * unit


def signs(y: ArrayLike, n: int) -> Array:
    """Return labels as floats -1 and 1, n of them, or say what is wrong with them.

    >>> signs([1, -1], 2).tolist()
    [1.0, -1.0]
    """
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise ValueError(
            f"there must be one label for each of the {n} samples; got shape {labels.shape}"
        )
    if not np.isin(labels, (-1, 1)).all():
        raise ValueError(f"labels must be -1 and 1; got {np.unique(labels)[:5].tolist()}")
    return labels.astype(np.float64)


def _normal(w: ArrayLike) -> Array:
    w = np.asarray(w, dtype=np.float64)
    if w.ndim != 1 or not w.any() or not np.isfinite(w).all():
        raise ValueError("w must be a finite vector that is not zero; a zero vector has no hyperplane")
    return w


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
