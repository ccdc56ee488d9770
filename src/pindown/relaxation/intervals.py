r"""Interval bounds: what every unit can be on a box, proved in one pass through the layers.

If :math:`l \le a \le u` coordinate by coordinate, then :math:`z = W a + b` satisfies

.. math::
    W^+ l - W^- u + b \;\le\; z \;\le\; W^+ u - W^- l + b,
    \qquad W = W^+ - W^-, \quad W^\pm \ge 0,

and ReLU maps intervals to intervals. The bounds are valid for the exact real-number network:
what float64 rounding can add is bounded and put on the outside. (The midpoint-radius form costs
half as much, but blurs zeros: after a ReLU many lower ends are exactly 0, and whether a unit is
proved always on often hangs on such a 0.)

Moore 1966, "Interval Analysis"; Gowal et al. 2018, "On the effectiveness of interval bound
propagation".
"""

from __future__ import annotations

import numpy as np

from pindown.affine import Affine, Array, Matrix, stored_numbers
from pindown.box import Box
from pindown.io.accepting import on_network
from pindown.model.operations.operation import Interval
from pindown.network import ReluNetwork
from pindown.relaxation.tuning import INTERVAL_BLOCK_ENTRIES
from pindown.rounding import SAFE_PRODUCT, TINY, add_down, add_up, gamma, smallest_nonzero


@on_network
def interval_bounds(net: ReluNetwork, box: Box) -> tuple[Interval, ...]:
    """Bound what enters every ReLU, and the output, for all inputs in the box.

    Args:
        net: The network.
        box: The inputs; ``box.dim`` must equal ``net.in_features``.

    Returns:
        One :class:`Interval` per affine layer, the output last. Exact up to rounding for the
        first layer; deeper ones ignore that units depend on each other, so they can be wide.

    >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, -3]), ([[1.0, 1.0]], [0])])
    >>> [(z.lower.round(9), z.upper.round(9)) for z in interval_bounds(net, Box([0], [2]))]
    [(array([ 0., -5.]), array([ 2., -3.])), (array([0.]), array([2.]))]
    """
    if box.dim != net.in_features:
        raise ValueError(
            f"the box has {box.dim} dimensions; the network takes {net.in_features} inputs."
        )
    bounds, lower, upper = [], box.lower, box.upper
    for layer in net.layers:
        image = _affine_image(layer, lower, upper)
        bounds.append(image)
        lower, upper = np.maximum(image.lower, 0.0), np.maximum(image.upper, 0.0)
    return tuple(bounds)


def _affine_image(layer: Affine, lower: Array, upper: Array) -> Interval:
    """Enclose ``W a + b`` for ``lower <= a <= upper``."""
    out = layer.out_features
    if not (np.isfinite(lower).all() and np.isfinite(upper).all()):
        return Interval(np.full(out, -np.inf), np.full(out, np.inf))
    n, b = layer.in_features, layer.bias
    ends = np.stack([lower, upper, np.abs(lower), np.abs(upper)], axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        P, N = _signed_products(layer.weight, ends)
        # Two sums of n products each, their difference and the bias; twice, for this sum is rounded too.
        rounding = 2.0 * gamma(n + 8)
        low_slack = rounding * (P[:, 2] + N[:, 3] + np.abs(b))
        high_slack = rounding * (P[:, 3] + N[:, 2] + np.abs(b))
        if (
            smallest_nonzero(stored_numbers(layer.weight)) * smallest_nonzero(lower, upper)
            < SAFE_PRODUCT
        ):
            low_slack, high_slack = low_slack + (n + 1) * TINY, high_slack + (n + 1) * TINY
        low = add_down(P[:, 0] - N[:, 1] + b, -low_slack)
        high = add_up(P[:, 1] - N[:, 0] + b, high_slack)
        unknown = ~(np.isfinite(low) & np.isfinite(high))
    low[unknown], high[unknown] = -np.inf, np.inf
    return Interval(low + 0.0, high + 0.0)  # no negative zeros


def _signed_products(weight: Matrix, ends: Array) -> tuple[Array, Array]:
    r"""Return :math:`W^+ e` and :math:`W^- e`, a dense W by blocks of rows to stay in cache."""
    if not isinstance(weight, np.ndarray):
        return np.asarray(weight.maximum(0.0) @ ends), np.asarray((-weight).maximum(0.0) @ ends)
    P, N = np.empty((len(weight), ends.shape[1])), np.empty((len(weight), ends.shape[1]))
    step = max(1, INTERVAL_BLOCK_ENTRIES // weight.shape[1])
    for start in range(0, len(weight), step):
        rows = slice(start, start + step)
        np.matmul(np.maximum(weight[rows], 0.0), ends, out=P[rows])
        np.matmul(np.maximum(-weight[rows], 0.0), ends, out=N[rows])
    return P, N
