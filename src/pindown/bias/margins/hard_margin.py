r"""The classifier of largest margin in a norm: what training chooses on separable data.

.. math:: \min_w \lVert w\rVert \ \text{ s.t. }\ y_i\langle w, x_i\rangle \ge 1 \ \forall i, \qquad
          \gamma = \frac{1}{\lVert w\rVert} = \max_{\lVert v\rVert\le 1}\min_i y_i\langle v, x_i\rangle
          = \min_{a \in \Delta} \Bigl\lVert\sum_i a_iy_ix_i\Bigr\rVert_*.

The last equation is the proof that comes with every answer: convex weights a bound every margin from
above, and w attains one from below. Where the origin is such a combination, no margin exists.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.bias.margins._solvers import (
    TOO_NEAR,
    least_norm,
    nearest_weights,
    smallest_l1,
    smallest_maximum,
    with_offset,
)
from pindown.evidence import Kind
from pindown.learn.kernels.gram_matrix import samples
from pindown.learn.margins import NotSeparableError
from pindown.rounding import gamma
from pindown.validation import refuse

_NAMES = {"l1": "l1", "l2": "l2", "linf": "linf", 1: "l1", 2: "l2", np.inf: "linf"}
_ORDERS = {"l1": 1.0, "l2": 2.0, "linf": np.inf}
_DUALS = {"l1": "linf", "l2": "l2", "linf": "l1"}
# Constraints this close to 1 are active: linear programs are solved to 1e-10, least norms better.
_SUPPORT = 1e-8


@dataclass(frozen=True)
class MaxMargin:
    r"""A classifier of largest margin, with its proof.

    Attributes:
        w: Weights (d,), scaled so that the smallest :math:`y_i(\langle w, x_i\rangle + b)` is 1.
        offset: b; zero unless it was asked for.
        margin: :math:`1/\lVert w\rVert` less what rounding may have taken from it: no sample can change
            its side by moving less than this, in the *dual* norm. Infinite if w is zero (one class with
            an offset).
        upper: Upper bound of the margin of any classifier, from ``weights``, rounded up.
        support: Indices of samples with :math:`y_i(\langle w, x_i\rangle + b) = 1` (to 1e-8).
        weights: Convex weights (n,): :math:`\lVert\sum_ia_iy_ix_i\rVert_*` = ``upper``.
        norm: The norm of w that is minimal: ``"l1"``, ``"l2"`` or ``"linf"``.
        kind: ``"exact"``: optimal up to the gap, which counts rounding.
    """

    w: Array
    offset: float
    margin: float
    upper: float = field(repr=False)
    support: NDArray[np.int64]
    weights: Array = field(repr=False)
    norm: str
    kind: Kind = "exact"

    @property
    def gap(self) -> float:
        """Upper bound minus margin, relative to the margin: rounding, if all went well."""
        return (self.upper - self.margin) / self.margin if np.isfinite(self.margin) else 0.0

    @property
    def distance_norm(self) -> str:
        """The norm in which the margin is a distance: the dual of ``norm``."""
        return _DUALS[self.norm]

    @property
    def direction(self) -> Array:
        """W over its Euclidean norm; zero stays zero."""
        unit = float(np.abs(self.w).max())  # first: squares stay within the floats
        return self.w / unit / float(np.linalg.norm(self.w / unit)) if unit > 0 else self.w

    def __str__(self) -> str:
        return (
            f"{self.norm} classifier: margin {self.margin:.6g} in {self.distance_norm} distance, "
            f"{len(self.support)} support samples; within {max(self.gap, 0.0):.1g} of the optimum "
            f"(proved)"
        )


def max_margin(X: ArrayLike, y: ArrayLike, norm: str | float = "l2", *, bias: bool = False) -> MaxMargin:
    r"""Return the linear classifier of least norm that separates two classes with products at least 1.

    .. math:: \min \lVert w\rVert_{\text{norm}} \ \text{ s.t. }\ y_i(\langle w, x_i\rangle + b) \ge 1

    ``norm`` is the norm of **w**; distances between samples and the separator are then measured in its
    dual: ``"l1"`` gives sparse weights and the largest margin against :math:`\ell_\infty` perturbations,
    ``"linf"`` the largest against :math:`\ell_1` perturbations, ``"l2"`` the usual one. Gradient
    descent on an exponential or logistic loss goes to ``"l2"``, coordinate descent to ``"l1"``, sign
    descent to ``"linf"``.

    Args:
        X: Samples (n, d).
        y: Labels, at most two classes; of two the larger is positive. A class that is alone is positive
            unless its label is zero, negative or False.
        norm: ``"l1"``, ``"l2"`` or ``"linf"`` (or 1, 2, infinity).
        bias: Add an offset b that costs nothing. With one class alone w is then zero.

    Returns:
        A :class:`MaxMargin`: ``w``, ``margin``, ``support``. In l1 and linf w need not be the only
        optimum.

    Raises:
        NoMarginError: A ValueError: the classes cannot be separated; carries convex weights that prove
            it.
        ValueError: If shapes, labels, numbers or the norm are not as above.

    Example:
        >>> answer = max_margin([[1.0, 1.0], [-1.0, -1.0], [3.0, 4.0]], [1, -1, 1])
        >>> answer.w.round(9).tolist(), round(answer.margin, 6), answer.support.tolist()
        ([0.5, 0.5], 1.414214, [0, 1])
        >>> max_margin([[2.0, 1.0], [-2.0, -1.0]], [1, -1], norm="l1").w.round(9).tolist()
        [0.5, 0.0]

    Lecture course, section on robust classification (largest margin = least dual norm = most robust).
    """
    points, labels = labelled(X, y)
    if not isinstance(norm, (str, int, float)) or norm not in _NAMES:
        refuse("norm", "'l1', 'l2' or 'linf' (the norm of w)", norm)
    name = _NAMES[norm]
    if bias and abs(labels.sum()) == len(labels):
        n = len(labels)
        nothing = np.zeros(points.shape[1])
        every = np.arange(n)
        return MaxMargin(nothing, float(labels[0]), np.inf, np.inf, every, np.full(n, 1 / n), name)
    centre = points.mean(axis=0) if bias else np.zeros(points.shape[1])
    moved = points - centre
    # In units of the largest number first: no square leaves the floats.
    unit = float(np.abs(moved).max()) or 1.0
    scale = float(np.linalg.norm(moved / unit, axis=1).max()) or 1.0
    w, offset, weights = _solve(moved / unit / scale, labels, name, bias)
    with np.errstate(over="ignore"):
        w = w / scale / unit
    if not np.isfinite(w).all():
        raise ValueError(f"X is too small for floats, at most {unit:.2g}: multiply it by a large number")
    offset = offset - float(w @ centre) if bias else 0.0
    return _finished(points, labels, w, offset, weights, name, bias)


def _solve(points: Array, labels: Array, norm: str, bias: bool) -> tuple[Array, float, Array]:
    """Return w, b and convex weights for points of length at most 1, or the proof that there is no w."""
    Z = labels[:, None] * points
    if bias:
        w, offset, weights = with_offset(points, labels)
        hopeless = not w.any()
    else:
        weights = nearest_weights(Z)
        hopeless = bool(np.linalg.norm(weights @ Z) <= TOO_NEAR)
    if hopeless:
        raise NoMarginError(weights, float(np.linalg.norm(weights @ Z)), offset=bias)
    if norm == "l2":
        return (w, offset, weights) if bias else _without_offset(Z, weights)
    program = smallest_l1 if norm == "l1" else smallest_maximum
    # In units of the least Euclidean norm the numbers of the program are near 1.
    unit = float(np.linalg.norm(weights @ Z))
    w, offset, multipliers = program(Z / unit, labels, bias=bias)
    multipliers = np.maximum(multipliers, 0.0)
    return w / unit, offset, multipliers / multipliers.sum()


def _without_offset(Z: Array, weights: Array) -> tuple[Array, float, Array]:
    w, weights = least_norm(Z, weights)
    return w, 0.0, weights


def _finished(
    points: Array, labels: Array, w: Array, offset: float, weights: Array, norm: str, bias: bool
) -> MaxMargin:
    values = labels * (points @ w + offset)
    least = float(values.min())
    w, offset, values = w / least, offset / least, values / least
    # Centred first: with an offset the weights of both classes have equal sums, so the centre cancels.
    centre = points.mean(axis=0) if bias else 0.0
    moved = points - centre
    return MaxMargin(
        w=w, offset=offset, margin=_attained(points, labels, w, offset, norm),
        upper=_bound(moved, labels, weights, norm, bias),
        support=np.flatnonzero(values <= 1.0 + _SUPPORT), weights=weights, norm=norm,
    )  # fmt: skip


def _attained(points: Array, labels: Array, w: Array, offset: float, norm: str) -> float:
    """Return the least margin of a classifier, rounded down."""
    d = len(w)
    rounding = gamma(d + 2) * (np.abs(points) @ np.abs(w) + abs(offset))
    least = float((labels * (points @ w + offset) - rounding).min())
    return max(least, 0.0) / _length(w, norm) * (1 - gamma(d + 8))


def _bound(moved: Array, labels: Array, weights: Array, norm: str, bias: bool) -> float:
    r"""Return what no margin exceeds, rounded up.

    With an offset the weights of the classes have equal sums but for rounding. What is left over
    multiplies the offset, at most the length of the longest sample for a w of norm one that separates.
    """
    n, d = moved.shape
    sizes = weights @ np.abs(moved)
    total = _length(np.abs((weights * labels) @ moved) + gamma(n + 4) * sizes, _DUALS[norm])
    if bias:
        uneven = abs(float(weights @ labels)) + gamma(n) * float(weights.sum())
        total += uneven * max(_length(x, _DUALS[norm]) for x in moved)
    return total / float(weights.sum()) * (1 + gamma(n + d + 12))


def _length(v: Array, norm: str) -> float:
    unit = float(np.abs(v).max()) or 1.0
    return unit * float(np.linalg.norm(v / unit, _ORDERS[norm]))


class NoMarginError(NotSeparableError):
    r"""No classifier of the asked form has a positive margin.

    Attributes:
        weights: Convex weights of the samples (n,) with :math:`\sum_i a_i y_i x_i = 0` (and
            :math:`\sum_i a_i y_i = 0` with an offset): no w has :math:`y_i w x_i > 0` for all of them.
        residual: Norm of that sum over the norm of the longest sample; zero up to rounding.
    """

    def __init__(self, weights: Array, residual: float, *, offset: bool) -> None:
        self.weights, self.residual = weights, residual
        used = np.flatnonzero(weights)
        shown = ", ".join(str(i) for i in used[:5]) + (", ..." if len(used) > 5 else "")
        form = "with" if offset else "without"
        remedy = (
            "drop those samples or use a soft margin" if offset else "try bias=True, or a soft margin"
        )
        super().__init__(
            f"no linear classifier {form} offset separates the samples: a convex combination of "
            f"{len(used)} signed sample{'s' if len(used) != 1 else ''} (indices {shown}) is zero to "
            f"{residual:.1g}; {remedy}"
        )


def signed_labels(y: ArrayLike, n: int) -> Array:
    """Return labels as -1 and 1: of two classes the larger is positive.

    A class that is alone is positive, unless its label is zero, negative or False.

    >>> signed_labels(["no", "yes", "no"], 3).tolist(), signed_labels([0, 0], 2).tolist()
    ([-1.0, 1.0, -1.0], [-1.0, -1.0])
    """
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise ValueError(f"y must hold one label for each of the {n} samples; got shape {labels.shape}.")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("y has NaN or infinite labels; drop those samples first")
    classes = np.unique(labels)
    if len(classes) > 2:
        raise ValueError(f"y must hold at most two classes; got {len(classes)}: compare them in pairs.")
    if len(classes) == 1:
        negative = labels.dtype.kind in "biuf" and classes[0] <= 0
        return np.full(n, -1.0 if negative else 1.0)
    return np.where(labels == classes[1], 1.0, -1.0)


def labelled(X: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    """Return samples (n, d) as floats and their labels as -1 and 1.

    >>> labelled([[1, 2]], [7])[1].tolist()
    [1.0]
    """
    points = samples(X)
    return points, signed_labels(y, len(points))
