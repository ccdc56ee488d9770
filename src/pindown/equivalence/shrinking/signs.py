r"""What every unit can be, without search: on a box, or on all of :math:`\mathbb R^d`.

On a box these are interval bounds. Without one the first layer is unbounded, but what a ReLU gives is
never negative, so a unit of a deeper layer with weights of one sign is bounded on one side by its
bias:

.. math:: a \ge m \ge 0, \; W_i \ge 0 \;\Longrightarrow\; W_i a + b_i \ge W_i m + b_i .

Moore 1966, "Interval Analysis".
"""

from __future__ import annotations

from math import fsum, nan

import numpy as np
import scipy.sparse as sp

from pindown.affine import Affine, Array, Matrix
from pindown.box import Box
from pindown.equivalence.shrinking.columns import row
from pindown.equivalence.shrinking.products import exact_terms
from pindown.network import ReluNetwork
from pindown.relaxation.intervals import Interval, interval_bounds
from pindown.rounding import SMALLEST, add_down, add_up, gamma

# Ends this near to zero, relative to the unit's range, may be zero but for rounding outwards.
_NEAR_ZERO = 1e-9


def unit_bounds(net: ReluNetwork, box: Box | None) -> list[Interval]:
    """Bound what enters every ReLU, and the output, for all inputs of the box or of the whole space.

    >>> net = ReluNetwork.from_layers([([[1.0]], [0]), ([[2.0]], [3.0]), ([[-1.0]], [1.0])])
    >>> [(float(z.lower[0]), float(z.upper[0].round(9))) for z in unit_bounds(net, None)]
    [(-inf, inf), (3.0, inf), (-inf, -2.0)]
    """
    if box is not None:
        return _exact_at_zero(net, box, interval_bounds(net, box))
    d = net.in_features
    bounds, inputs = [], Interval(np.full(d, -np.inf), np.full(d, np.inf))
    for layer in net.layers:
        z = _image(layer, inputs)
        bounds.append(z)
        inputs = Interval(np.maximum(z.lower, 0.0), np.maximum(z.upper, 0.0))
    return bounds


def both(first: Interval, second: Interval) -> Interval:
    """Return what both bounds say together."""
    return Interval(np.maximum(first.lower, second.lower), np.minimum(first.upper, second.upper))


def nothing_known(width: int) -> Interval:
    """Return the bounds that say nothing."""
    return Interval(np.full(width, -np.inf), np.full(width, np.inf))


def _exact_at_zero(net: ReluNetwork, box: Box, bounds: tuple[Interval, ...]) -> list[Interval]:
    """Recompute ends that rounding outwards may have pushed across zero, with exact signs."""
    sharp: list[Interval] = []
    inputs = Interval(box.lower, box.upper)
    for layer, z in zip(net.layers, bounds, strict=True):
        low, high = z.lower.copy(), z.upper.copy()
        size = np.maximum(np.abs(low), np.abs(high))
        for unit in np.flatnonzero((low < 0.0) & (low > -_NEAR_ZERO * size)).tolist():
            if _extreme(layer, unit, inputs, -1.0) >= 0.0:
                low[unit] = 0.0
        for unit in np.flatnonzero((high > 0.0) & (high < _NEAR_ZERO * size)).tolist():
            if _extreme(layer, unit, inputs, 1.0) <= 0.0:
                high[unit] = 0.0
        sharp.append(Interval(low, high))
        inputs = Interval(np.maximum(low, 0.0), np.maximum(high, 0.0))
    return sharp


def _extreme(layer: Affine, unit: int, inputs: Interval, sign: float) -> float:
    """Return the largest (with -1: smallest) value, correctly rounded; NaN where float64 cannot tell."""
    weights = row(*layer, unit)[:-1]
    ends = np.where(sign * weights > 0.0, inputs.upper, inputs.lower)
    used = weights != 0.0
    terms = exact_terms(weights[used], ends[used])
    return nan if terms is None else fsum([*terms, float(layer.bias[unit])])


def _image(layer: Affine, inputs: Interval) -> Interval:
    """Enclose ``W a + b`` where ends of the input bounds may be infinite."""
    positive, negative = _part(layer.weight, 1.0), _part(layer.weight, -1.0)
    with np.errstate(invalid="ignore"):  # infinite ends; the sums never meet infinities of both signs
        return _enclosure(layer, inputs, positive, negative)


def _enclosure(layer: Affine, inputs: Interval, positive: Matrix, negative: Matrix) -> Interval:
    low = add_down(-_end(negative, inputs.upper), -_end(positive, -inputs.lower))
    high = add_up(_end(positive, inputs.upper), _end(negative, -inputs.lower))
    return Interval(add_down(low, layer.bias) + 0.0, add_up(high, layer.bias) + 0.0)


def _part(weight: Matrix, sign: float) -> Matrix:
    if sp.issparse(weight):
        part = (weight * sign).maximum(0.0).tocsr()
        part.eliminate_zeros()
        return part
    return np.maximum(sign * weight, 0.0)


def _end(part: Matrix, ends: Array) -> Array:
    """Bound ``part @ ends`` from above for ``part >= 0``; infinite ends count only where used."""
    finite = np.isfinite(ends)
    inside = np.where(finite, ends, 0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        total = np.asarray(part @ inside)
        slack = 2.0 * gamma(len(ends) + 2) * np.asarray(part @ np.abs(inside))
        touched = np.asarray((part != 0.0) @ (inside != 0.0).astype(float)) > 0.0
        # Only where there is anything to add: zeros stay exact.
        total = np.where(touched, add_up(total, slack + len(ends) * SMALLEST), total)
        unbounded = np.asarray((part != 0.0) @ (~finite).astype(float)) > 0.0
    return np.where(unbounded | np.isnan(total), np.inf, total)
