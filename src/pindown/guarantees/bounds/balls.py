r"""The largest value of a network in balls around points, bounded from above."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.guarantees.bounds.bound import positive
from pindown.network import ReluNetwork
from pindown.relaxation.linear import relax
from pindown.rounding import gamma

_ROWS_AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class BallMaxima:
    """Upper bounds on the largest value of a network in balls around points.

    Attributes:
        upper: One upper bound per point, (n,).
        method: ``"cells"`` (linear bounds on every piece of an interval) or ``"linear bounds"`` (on the
            whole box around the ball, which can be wide). Both round outwards.
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
        exact: Cut the interval around x at its breakpoints (one input), so that the bounds are tight;
            None does so there. Other dimensions always use linear bounds on the box around the ball,
            maximised over the ball.

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
    """Return bounds on intervals, each cut at its breakpoints: misplaced, they cost tightness only."""
    from pindown.geometry.slices.segment import along_segments

    low, high = np.nextafter(x - eps, -np.inf), np.nextafter(x + eps, np.inf)
    found = along_segments(net, low[:, None], high[:, None])
    which = np.repeat(np.arange(len(x)), np.diff(found.knot_offsets))
    cuts = np.clip(low[which] + found.knots * (high - low)[which], low[which], high[which])
    cuts[found.knot_offsets[:-1]], cuts[found.knot_offsets[1:] - 1] = low, high
    left = np.flatnonzero(which[:-1] == which[1:])
    bounds = np.empty(len(left))
    for start in range(0, len(left), _ROWS_AT_ONCE):
        part = left[start : start + _ROWS_AT_ONCE]
        ends = np.minimum(cuts[part], cuts[part + 1]), np.maximum(cuts[part], cuts[part + 1])
        known = relax(net, ends[0][:, None], ends[1][:, None])
        bounds[start : start + len(part)] = known.upper_bounds([[1.0]])[:, 0]
    upper = np.full(len(x), -np.inf)
    np.maximum.at(upper, which[left], bounds)
    return upper


def require_one_output(name: str, net: ReluNetwork) -> None:
    """Refuse a network with several outputs."""
    if net.out_features != 1:
        raise ValueError(f"{name} must have one output; got {net.out_features}.")
