r"""Steepest descent in a norm, and the margin that it maximises.

On the exponential loss :math:`L(w) = \sum_i e^{-y_i\langle w, x_i\rangle}` of separable samples

.. math:: w \leftarrow w - \eta\,\frac{\lVert\nabla L\rVert_*}{L}\, v, \qquad
          v = \arg\max_{\lVert v\rVert\le1}\langle\nabla L, v\rangle, \qquad
          \frac{\min_iy_i\langle w, x_i\rangle}{\lVert w\rVert} \to
          \max_{\lVert v\rVert\le1}\min_iy_i\langle v, x_i\rangle.

In l2 it is gradient descent, in linf sign descent, in l1 the largest coordinate alone moves. The loss
is kept as a logarithm, so no run is too long for floats.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.bias.flow import gradient_flow
from pindown.bias.margins.hard_margin import MaxMargin, labelled, max_margin
from pindown.evidence import Kind
from pindown.validation import choice, integer, vector

ORDERS = {"l1": 1.0, "l2": 2.0, "linf": np.inf}
_DUALS = {"l1": np.inf, "l2": 2.0, "linf": 1.0}


@dataclass(frozen=True)
class SteepestDescent:
    r"""A run of steepest descent beside its limit.

    Attributes:
        w: Last weights (d,).
        norm: The norm of the steps.
        steps: Numbers of the recorded steps (k,).
        margins: Margins :math:`\min_i y_i\langle w, x_i\rangle/\lVert w\rVert` there (k,).
        limit: The classifier of largest margin in that norm.
        kind: ``"estimate"``: a run of finite length.
    """

    w: Array = field(repr=False)
    norm: str
    steps: Array = field(repr=False)
    margins: Array = field(repr=False)
    limit: MaxMargin = field(repr=False)
    kind: Kind = "estimate"

    @property
    def ratio(self) -> float:
        """The last margin over the largest possible one, at most 1."""
        return float(self.margins[-1] / self.limit.margin)

    def __str__(self) -> str:
        return (
            f"steepest descent in {self.norm}: margin {self.margins[-1]:.6g} after "
            f"{self.steps[-1]:.0f} steps, "
            f"{100 * self.ratio:.4g} % of the largest, {self.limit.margin:.6g}"
        )


def steepest_direction(gradient: Array, norm: str) -> Array:
    r"""Return :math:`\lVert g\rVert_* \arg\max_{\lVert v\rVert\le1}\langle g, v\rangle`.

    >>> g = np.array([3.0, -4.0])
    >>> [steepest_direction(g, norm).tolist() for norm in ("l2", "l1", "linf")]
    [[3.0, -4.0], [0.0, -4.0], [7.0, -7.0]]
    """
    if norm == "l2":
        return gradient
    if norm == "linf":
        return np.asarray(np.abs(gradient).sum() * np.sign(gradient))
    step = np.zeros_like(gradient)
    largest = int(np.argmax(np.abs(gradient)))
    step[largest] = gradient[largest]
    return step


def log_loss_gradient(Z: Array) -> Callable[[Array], Array]:
    r"""Return the gradient of :math:`\log\sum_i e^{-\langle w, z_i\rangle}`, a soft minimum of margins.

    >>> log_loss_gradient(np.array([[2.0, 0.0], [0.0, 2.0]]))(np.zeros(2)).tolist()
    [-1.0, -1.0]
    """

    def gradient(w: Array) -> Array:
        values = Z @ w
        weights = np.exp(values.min() - values)
        return np.asarray(-(weights / weights.sum()) @ Z)

    return gradient


def steepest_descent(
    X: ArrayLike, y: ArrayLike, norm: str = "l2", *, steps: int = 20_000, start: ArrayLike | None = None
) -> SteepestDescent:
    r"""Run loss-normalised steepest descent and compare its margin with the largest.

    The step is :math:`1/B^2` with :math:`B = \max_i\lVert x_i\rVert_*`, for which the loss never rises;
    the margin is then within :math:`O(\log n/t)` of its limit after t steps.

    Args:
        X: Samples (n, d), separable without offset.
        y: Labels of at most two classes.
        norm: ``"l1"``, ``"l2"`` or ``"linf"``: the norm that measures steps, and w.
        steps: How many.
        start: First weights; zero if None.

    Returns:
        A :class:`SteepestDescent`.

    Raises:
        ValueError: If the samples cannot be separated, or an argument is out of range.

    Example:
        >>> run = steepest_descent([[2.0, 1.0], [-1.0, -3.0]], [1, -1], "linf", steps=2000)
        >>> run.ratio > 0.999, (run.w / np.abs(run.w).max()).round(3).tolist()
        (True, [1.0, 1.0])

    Lecture course, section on the implicit bias of steepest descent; Gunasekar et al. 2018.
    """
    points, labels = labelled(X, y)
    choice("norm", norm, ORDERS)
    steps = integer("steps", steps)
    limit = max_margin(points, labels, norm)
    Z = labels[:, None] * points
    with np.errstate(over="ignore", under="ignore"):
        reach = float(np.linalg.norm(Z, _DUALS[norm], axis=1).max())
        step = float(np.float64(1.0) / reach / reach) if reach > 0 else np.inf
    if not 0 < step < np.inf:
        raise ValueError(f"squares of X, up to {np.abs(Z).max():.2g}, leave the floats: scale it first")
    gradient = log_loss_gradient(Z)
    first = np.zeros(Z.shape[1]) if start is None else vector("start", start, Z.shape[1])
    asked = np.unique(np.rint(np.geomspace(1, steps, 60))) * step
    asked[-1] = steps * step
    path = gradient_flow(
        lambda w: steepest_direction(gradient(w), norm), first, time=steps * step, step=step,
        record=asked.tolist(),
    )  # fmt: skip
    sizes = np.linalg.norm(path.points[1:], ORDERS[norm], axis=1)
    margins = (path.points[1:] @ Z.T).min(axis=1) / np.where(sizes > 0, sizes, 1.0)
    return SteepestDescent(path.end, norm, np.rint(path.times[1:] / step), margins, limit)
