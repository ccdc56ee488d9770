r"""The most robust linear classifier for each kind of input change, with its certified radius.

A change :math:`\delta` with :math:`\lVert\delta\rVert\le\epsilon` moves the score
:math:`y(\langle w, x\rangle + b)` by at most :math:`\epsilon\lVert w\rVert_*`, and by exactly that in
the worst case. So three problems are one:

.. math:: \max_{w,b}\{\epsilon : y_i(\langle w, x_i + \delta\rangle + b) > 0
          \ \forall\lVert\delta\rVert<\epsilon\}
          = \max_{\lVert w\rVert_*\le1}\min_iy_i(\langle w, x_i\rangle + b)
          = 1 / \min\{\lVert w\rVert_* : y_i(\langle w, x_i\rangle + b)\ge1\}.

======================  ======================  ============================  ========================
changes small in        least norm of w         worst change                  training that goes there
======================  ======================  ============================  ========================
``"l2"``                l2                      along w                       gradient descent
``"linf"``              l1                      the signs of w                coordinate descent
``"l1"``                linf                    the largest entry of w        sign descent
``"fourier"``           l1 of Fw                flat spectrum, phases of Fw   two circular convolutions
======================  ======================  ============================  ========================

Lecture course, section on robust classification; the margin is over the *dual* norm, see docs/errata.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.bias.margins import fourier_norm, max_fourier_margin, max_margin, signed_labels, spectrum
from pindown.bias.margins import worst_fourier_perturbation as _worst_in_frequencies
from pindown.evidence import Kind
from pindown.relaxation.lp_balls import DUALS, as_norm, lengths, steepest_step
from pindown.rounding import gamma
from pindown.text import rounded_down, rounded_up

Change: TypeAlias = Literal["l1", "l2", "linf", "fourier"]
CHANGES: tuple[Change, ...] = ("l1", "l2", "linf", "fourier")
Shape: TypeAlias = tuple[int, ...] | None
# A fast Fourier transform errs by far less than this many roundings per sample, relative to l2.
_TRANSFORM_ROUNDINGS = 64


@dataclass(frozen=True, eq=False)
class RobustLinear:
    r"""A linear classifier and how far every sample is from its boundary.

    Attributes:
        w: Weights (d,).
        b: Offset.
        norm: The norm in which changes are measured.
        radius: Certified, rounded down: no change shorter than this takes any sample to the other side;
            at most 0 if a sample is on the wrong side.
        radii: The same for each sample (n,).
        weakest: The sample with the smallest.
        upper: No linear classifier of this form has a larger radius, proved by convex weights of the
            samples; infinite if that was not asked.
        kind: ``"exact"``.
    """

    w: Array = field(repr=False)
    b: float
    norm: Change
    radius: float
    radii: Array = field(repr=False)
    weakest: int
    upper: float = np.inf
    kind: Kind = "exact"

    def __str__(self) -> str:
        where = f"{rounded_down(self.radius, 6)} in {self.norm}, attained at sample {self.weakest}"
        best = f"; no linear classifier exceeds {rounded_up(self.upper, 6)}"
        return f"radius {where}{best if np.isfinite(self.upper) else ''} ({self.kind})"


def most_robust_classifier(
    X: ArrayLike, y: ArrayLike, norm: str = "linf", *, bias: bool = False, shape: Shape = None
) -> RobustLinear:
    r"""Return the linear classifier that tolerates the largest changes of its inputs.

    Args:
        X: Samples (n, d) of two classes that a hyperplane separates.
        y: Labels of two classes; the larger is positive.
        norm: How changes are measured: ``"l1"``, ``"l2"``, ``"linf"``, or ``"fourier"``, the largest
            modulus of the unitary transform.
        bias: Whether there is an offset; not for ``"fourier"``.
        shape: For ``"fourier"``: the shape of a sample, if it is an image.

    Returns:
        A :class:`RobustLinear`. Except in l2 there may be other optima.

    Raises:
        ValueError: If the samples cannot be separated (with the proof), or arguments do not fit.

    Example:
        Against linf changes the longest coordinate counts alone; against l1 changes the sum does.

        >>> X, y = [[2.0, 1.0], [-2.0, -1.0]], [1, -1]
        >>> [round(most_robust_classifier(X, y, norm).radius, 6) for norm in ("linf", "l2", "l1")]
        [2.0, 2.236068, 3.0]

    Lecture course, section on robust classification.
    """
    kind = as_change(norm)
    if shape is not None and kind != "fourier":
        raise ValueError(f"shape belongs to norm='fourier'; got it with norm={norm!r}.")
    if kind == "fourier":
        if bias:
            raise ValueError("norm='fourier' takes no offset (bias=True): convolutions have none.")
        found = max_fourier_margin(X, y, shape=shape)
        return replace(linear_robustness(found.w, 0.0, X, y, kind, shape=shape), upper=found.upper)
    margin = max_margin(X, y, DUALS[as_norm(kind)], bias=bias)
    return replace(linear_robustness(margin.w, margin.offset, X, y, kind), upper=margin.upper)


def linear_robustness(
    w: ArrayLike, b: float, X: ArrayLike, y: ArrayLike, norm: str = "l2", *, shape: Shape = None
) -> RobustLinear:
    r"""Certify a linear classifier, :math:`\epsilon_i = y_i(wx_i + b)/\lVert w\rVert_*`.

    Radii are rounded down by bounds on all roundings, so that they are proved for the numbers given.

    Args:
        w: Weights (d,); of a linear convolutional network, the filter of the whole network.
        b: Offset.
        X: Samples (n, d).
        y: Labels of at most two classes; the larger is positive. One class alone is positive unless its
            label is zero, negative or False.
        norm: As in :func:`most_robust_classifier`.
        shape: Shape of a sample for ``"fourier"``.

    Returns:
        A :class:`RobustLinear`; radii are infinite where w is zero and the side is right.

    Example:
        >>> print(linear_robustness([3.0, 4.0], -5.0, [[3.0, 4.0], [0.0, 0.0]], [1, 0]))
        radius 0.999999 in l2, attained at sample 1 (exact)
    """
    kind = as_change(norm)
    weights, points = np.asarray(w, dtype=np.float64), np.asarray(X, dtype=np.float64)
    if points.ndim != 2 or points.size == 0 or weights.shape != points.shape[1:]:
        raise ValueError(
            f"w must be (d,) for X (n, d) with n, d > 0; got {weights.shape} for {points.shape}."
        )
    if not (np.isfinite(points).all() and np.isfinite(weights).all() and np.isfinite(b)):
        raise ValueError("w, b and X must be finite; some number is NaN or infinite.")
    labels = signed_labels(y, len(points))
    with np.errstate(over="ignore", invalid="ignore"):
        scores = labels * (points @ weights + b)
        slack = gamma(len(weights) + 2) * (np.abs(points) @ np.abs(weights) + abs(b))
    size = dual_length(weights, kind, shape)
    if not (np.isfinite(scores).all() and np.isfinite(slack).all() and np.isfinite(size)):
        raise ValueError("scores of w, b and X leave float64; scale them down.")
    with np.errstate(divide="ignore", invalid="ignore"):
        radii = np.nextafter((scores - slack) / size, -np.inf)
    if size == 0.0:
        radii = np.where(scores > 0, np.inf, np.where(scores < 0, -np.inf, 0.0))
    weakest = int(np.argmin(radii))
    return RobustLinear(weights, float(b), kind, float(radii[weakest]), radii, weakest)


def dual_length(w: ArrayLike, norm: str, shape: Shape = None) -> float:
    r"""Return :math:`\max_{\lVert\delta\rVert\le1}\langle w, \delta\rangle`, rounded up.

    >>> [round(dual_length([3.0, -4.0], norm), 9) for norm in ("l1", "l2", "linf")]
    [4.0, 5.0, 7.0]
    """
    kind, weights = as_change(norm), np.asarray(w, dtype=np.float64)
    d = weights.size
    if kind != "fourier":
        return float(lengths(weights, DUALS[as_norm(kind)])) * (1.0 + gamma(d + 4))
    rounding = _TRANSFORM_ROUNDINGS * d * np.finfo(np.float64).eps * float(np.linalg.norm(weights))
    return fourier_norm(weights, 1.0, shape) * (1.0 + gamma(d + 4)) + rounding


def worst_change(w: ArrayLike, label: float, radius: float, norm: str, *, shape: Shape = None) -> Array:
    r"""Return the change of length ``radius`` that takes most from a sample of a class.

    .. math:: y\langle w, \delta\rangle = -\epsilon\lVert w\rVert_*

    Args:
        w: Weights (d,).
        label: y; positive or negative.
        radius: :math:`\epsilon`.
        norm: As in :func:`most_robust_classifier`.
        shape: Shape of a sample for ``"fourier"``.

    Example:
        >>> [(worst_change([3.0, -4.0], -1, 5.0, norm) + 0.0).tolist() for norm in ("l1", "l2", "linf")]
        [[0.0, -5.0], [3.0, -4.0], [5.0, -5.0]]
    """
    kind, weights = as_change(norm), np.asarray(w, dtype=np.float64)
    if not (np.isfinite(radius) and radius >= 0):
        raise ValueError(f"radius must be a finite number >= 0; got {radius}.")
    if label == 0 or not np.isfinite(label):
        raise ValueError(f"label must be positive or negative; got {label}.")
    gradient = np.sign(label) * weights
    if kind == "fourier":
        return _worst_in_frequencies(gradient, radius, shape)
    return np.asarray(-radius * steepest_step(gradient, as_norm(kind)))


def change_length(change: ArrayLike, norm: str, *, shape: Shape = None) -> float:
    """Return the length of a change; in ``"fourier"`` its largest modulus.

    >>> change_length([1.0, 1.0, 1.0, 1.0], "fourier")
    2.0
    """
    kind, values = as_change(norm), np.asarray(change, dtype=np.float64)
    if kind == "fourier":
        return float(np.abs(spectrum(values, shape)).max())
    return float(lengths(values, as_norm(kind)))


def as_change(norm: str) -> Change:
    """Return the name of a measure of changes, or refuse it."""
    if norm == "fourier":
        return "fourier"
    try:
        return as_norm(norm)
    except ValueError:
        raise ValueError(f"norm must be one of {', '.join(CHANGES)}; got {norm!r}.") from None


@dataclass(frozen=True, eq=False)
class RobustnessTable:
    """Radii of the most robust classifiers of each kind, each measured in every way.

    Attributes:
        norms: The kinds; row i is the classifier for ``norms[i]``, column j its radius in ``norms[j]``.
        radii: (m, m). Every column is largest on the diagonal.
        kind: ``"exact"``.
    """

    norms: tuple[Change, ...]
    radii: Array
    kind: Kind = "exact"

    def __str__(self) -> str:
        head = "best for  " + "".join(f"{name:>10}" for name in self.norms)
        rows = [
            f"{name:<10}" + "".join(f"{value:>10.4g}" for value in row)
            for name, row in zip(self.norms, self.radii, strict=True)
        ]
        return "\n".join([head, *rows])


def robustness_table(X: ArrayLike, y: ArrayLike, *, shape: Shape = None) -> RobustnessTable:
    """Compare the most robust classifiers, without offset, in all norms.

    Example:
        >>> print(robustness_table([[2.0, 1.0], [-2.0, -1.0]], [1, -1]))
        best for          l1        l2      linf   fourier
        l1                 3     2.121       1.5     2.121
        l2               2.5     2.236     1.667     1.768
        linf               2         2         2     1.414
        fourier            3     2.121       1.5     2.121

    Lecture course, section on steepest descent and robustness (each method is best in its own norm).
    """
    rows = []
    for name in CHANGES:
        best = most_robust_classifier(X, y, name, shape=shape if name == "fourier" else None)
        rows.append(
            [linear_robustness(best.w, best.b, X, y, other, shape=shape).radius for other in CHANGES]
        )
    return RobustnessTable(CHANGES, np.array(rows))
