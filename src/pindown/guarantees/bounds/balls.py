r"""The largest value of a network in balls around points, bounded from above."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.geometry.linear_bounds import relax
from pindown.geometry.rounding import gamma
from pindown.guarantees.bounds.bound import positive
from pindown.network import ReluNetwork

_ROWS_AT_ONCE = 256
_EVALUATION_ERROR = 1e-9  # relative, of values at breakpoints that are float64 numbers


@dataclass(frozen=True, eq=False)
class BallMaxima:
    """Upper bounds on the largest value of a network in balls around points.

    Attributes:
        upper: One upper bound per point, (n,).
        method: ``"cells"`` (all breakpoints of an interval, in float64) or ``"linear bounds"`` (proved,
            but they can be wide).
    """

    upper: Array
    method: str


def ball_maxima(
    net: ReluNetwork, X: ArrayLike, radius: float, *, exact: bool | None = None
) -> BallMaxima:
    r"""Bound :math:`\max_{\|u - x\|_2 \le \epsilon} v(u)` from above at every row of X.

    Args:
        net: A network with one output.
        X: Points, (n, d).
        radius: :math:`\epsilon`.
        exact: Search all cells of the interval around x (one input); None does so there. Other
            dimensions always use linear bounds on the box around the ball, maximised over the ball.

    Example:
        >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])  # |x|
        >>> ball_maxima(net, [[0.0], [2.0]], 0.5).upper.round(9)
        array([0.5, 2.5])
    """
    rows, _ = net.as_rows(X)
    eps = positive("radius", radius, zero=True)
    require_one_output("v", net)
    if exact is None:
        exact = net.in_features == 1
    if exact and net.in_features != 1:
        raise ValueError(f"exact maxima need a network with one input; got {net.in_features} inputs.")
    if exact:
        return BallMaxima(_largest_on_intervals(net, rows[:, 0], eps), "cells")
    upper = np.empty(len(rows))
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        part = rows[start : start + _ROWS_AT_ONCE]
        upper[start : start + len(part)] = _linear_upper(net, part, eps)
    return BallMaxima(upper, "linear bounds")


def _linear_upper(net: ReluNetwork, rows: Array, eps: float) -> Array:
    low, high = np.nextafter(rows - eps, -np.inf), np.nextafter(rows + eps, np.inf)
    known = relax(net, low, high)
    weight, offset = known.upper_forms([[1.0]])
    A, c = weight[:, 0, :], offset[:, 0]
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = np.abs(A) * np.maximum(np.abs(low), np.abs(high))
        slack = 4.0 * gamma(A.shape[1] + 8) * (sizes.sum(axis=1) + np.abs(c))
        ball = np.einsum("ij,ij->i", A, rows) + c + eps * np.linalg.norm(A, axis=1) + slack
    ball = np.where(np.isfinite(ball), ball, np.inf)
    return np.minimum(ball, known.upper_bounds([[1.0]])[:, 0])


def _largest_on_intervals(net: ReluNetwork, x: Array, eps: float) -> Array:
    """Return the largest values at the ends and breakpoints of intervals, which are all that count."""
    from pindown.geometry.slices.segment import along_segments

    low, high = np.nextafter(x - eps, -np.inf), np.nextafter(x + eps, np.inf)
    pieces = along_segments(net, low[:, None], high[:, None])
    values = pieces.values.reshape(len(pieces.values), -1)[:, 0]
    starts = pieces.knot_offsets[:-1]
    size = np.maximum.reduceat(np.abs(values), starts)
    return np.asarray(np.maximum.reduceat(values, starts) + _EVALUATION_ERROR * size)


def require_one_output(name: str, net: ReluNetwork) -> None:
    """Refuse a network with several outputs."""
    if net.out_features != 1:
        raise ValueError(f"{name} must have one output; got {net.out_features}.")
