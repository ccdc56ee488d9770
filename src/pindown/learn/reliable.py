r"""Reliable learning: how often a prediction is a false positive, and how good it is on the positives.

Labels lie in [0, 1]; a prediction other than 0 on a label 0 is a false positive.

Mukherjee 2020, section 2.4.1, Definition 9 (after Goel et al. 2016).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.validation import positive

Loss = Callable[[Array, Array], Array]


def squared(predicted: Array, label: Array) -> Array:
    """Return the squared difference."""
    return (predicted - label) ** 2


def false_positive_loss(
    y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    r"""Return :math:`L_{=0}(h) = P[h(x) \ne 0 \text{ and } y = 0]`, a share of all points.

    Args:
        y_true: Labels in [0, 1].
        y_pred: Predictions :math:`h(x)`.
        sample_weight: Weights, or None for equal ones.

    Returns:
        The share of the weight on false positives.

    Raises:
        ValueError: If shapes differ, numbers are not finite, or labels leave [0, 1].

    Example:
        One zero of four points is missed:

        >>> false_positive_loss([0, 0, 1, 0.5], [0, 0.1, 1, 0])
        0.25

    Mukherjee 2020, Definition 9.
    """
    y, h, w = _checked(y_true, y_pred, sample_weight)
    return float(w @ ((h != 0.0) & (y == 0.0)))


def positive_loss(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    loss: Loss = squared,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Return :math:`L_{>0}(h) = E[\ell(h(x), y)\, 1_{y > 0}]`: an average over all points.

    Args:
        y_true: Labels in [0, 1].
        y_pred: Predictions :math:`h(x)`.
        loss: :math:`\ell`, of arrays of predictions and labels; not negative.
        sample_weight: Weights, or None for equal ones.

    Returns:
        The average, with zero for the points labelled 0.

    Raises:
        ValueError: If shapes differ, numbers are not finite, or labels leave [0, 1].

    Example:
        >>> positive_loss([0, 0, 1, 0.5], [0, 0.1, 1, 0])
        0.0625

    Mukherjee 2020, Definition 9.
    """
    y, h, w = _checked(y_true, y_pred, sample_weight)
    return float(w @ np.where(y > 0.0, loss(h, y), 0.0))


@dataclass(frozen=True)
class Reliability:
    """Whether a prediction is reliable against some competitors, and why; true if it is."""

    reliable: bool
    eps: float
    false_positive_loss: float
    positive_loss: float
    best_competitor: int | None
    competitor_loss: float

    def __bool__(self) -> bool:
        return self.reliable

    def __str__(self) -> str:
        share = self.false_positive_loss
        zeros = f"false positives {share:.6g} {_sign(share, self.eps)} "
        if self.best_competitor is None:
            rest = "no competitor is free of false positives, so the loss on positives is not limited"
        else:
            limit = self.eps + self.competitor_loss
            rest = (
                f"loss on positives {self.positive_loss:.6g} {_sign(self.positive_loss, limit)} "
                f"{limit:.6g} = eps + loss of competitor {self.best_competitor}"
            )
        return f"{'' if self.reliable else 'not '}reliable: {zeros}eps = {self.eps:.6g}; {rest}"


def is_reliable(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    competitors: Iterable[ArrayLike],
    eps: float,
    *,
    loss: Loss = squared,
    sample_weight: ArrayLike | None = None,
) -> Reliability:
    r"""Check :math:`L_{=0}(h) \le \epsilon` and :math:`L_{>0}(h) \le \epsilon + \min_c L_{>0}(c)`.

    The minimum is over the competitors without a false positive. If there is none it is infinite.

    Args:
        y_true: Labels in [0, 1].
        y_pred: Predictions of h.
        competitors: Predictions of each competitor on the same points.
        eps: :math:`\epsilon`, not negative.
        loss: :math:`\ell`, of arrays of predictions and labels.
        sample_weight: Weights, or None for equal ones.

    Returns:
        The answer, which prints its reasons.

    Raises:
        ValueError: If eps is negative or not a number, or arrays do not match.

    Example:
        >>> print(is_reliable([0, 1], [0, 1], [[0, 0.5]], eps=0))
        reliable: false positives 0 <= eps = 0; loss on positives 0 <= 0.125 = eps + loss of competitor 0
        >>> bool(is_reliable([0, 1], [0.2, 1], [[0, 0.5]], eps=0.25))
        False

    Mukherjee 2020, Definition 9, on a sample in place of the distribution.
    """
    eps = positive("eps", eps, zero=True)
    zeros = false_positive_loss(y_true, y_pred, sample_weight=sample_weight)
    positives = positive_loss(y_true, y_pred, loss=loss, sample_weight=sample_weight)
    best, least = None, np.inf
    for i, competitor in enumerate(competitors):
        if false_positive_loss(y_true, competitor, sample_weight=sample_weight) > 0.0:
            continue
        value = positive_loss(y_true, competitor, loss=loss, sample_weight=sample_weight)
        if best is None or value < least:
            best, least = i, value
    reliable = zeros <= eps and positives <= eps + least
    return Reliability(reliable, float(eps), zeros, positives, best, least)


def _sign(value: float, limit: float) -> str:
    return "<=" if value <= limit else ">"


def _checked(
    y_true: ArrayLike, y_pred: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[Array, Array, Array]:
    """Return labels, predictions and weights of sum one."""
    y = np.asarray(y_true, dtype=float).ravel()
    h = np.asarray(y_pred, dtype=float).ravel()
    w = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=float).ravel()
    if not len(y) or not len(y) == len(h) == len(w):
        raise ValueError(
            "labels, predictions and weights must match and not be empty; "
            f"got {len(y)}, {len(h)} and {len(w)}."
        )
    for name, values in (("labels", y), ("predictions", h), ("weights", w)):
        if not np.isfinite(values).all():
            raise ValueError(f"{name} must be finite; got NaN or infinity at {_where(values)}.")
    if y.min() < 0.0 or y.max() > 1.0:
        raise ValueError(
            f"labels must lie in [0, 1]; got {y.min():g} to {y.max():g}: divide by their range."
        )
    if w.min() < 0.0 or not w.any():
        raise ValueError("weights must not be negative, nor all zero.")
    return y, h, w / w.sum()


def _where(values: Array) -> str:
    return ", ".join(map(str, np.flatnonzero(~np.isfinite(values))[:3]))
