r"""What enters each ReLU, as an affine function of the input, where the on/off pattern holds.

.. math::
    z_l(x) = W_l D_{l-1} W_{l-1} \cdots D_1 W_1 x + \text{const},

with :math:`D_l` the 0/1 diagonal matrix of layer l's states.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array, dense
from pindown.geometry.nearness import RESOLUTION
from pindown.network import ReluNetwork


def unit_forms(
    net: ReluNetwork, pattern: NDArray[np.bool_], units: NDArray[np.int64] | None = None
) -> tuple[Array, Array]:
    r"""Return :math:`(G, g)` with :math:`z_i(x) = G_i x + g_i` for units i where the pattern holds.

    Args:
        net: The network.
        pattern: Which units are on, (size,).
        units: Which rows to return, ascending or not; all when not given.

    Returns:
        ``G`` (len(units), d) and ``g`` (len(units),).

    >>> net = ReluNetwork.from_layers([([[1.0], [1.0]], [0, -1]), ([[1.0, -1.0]], [-3]), ([[1.0]], [0])])
    >>> G, g = unit_forms(net, np.array([True, False, True]))
    >>> G.ravel(), g
    (array([1., 1., 1.]), array([ 0., -1., -3.]))
    """
    wanted = np.arange(net.size) if units is None else np.asarray(units, dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(net.hidden_widths)]).astype(np.int64)
    owner = np.searchsorted(starts, wanted, side="right") - 1
    # From the deepest layer down, rows of shallower layers join on the way: wanted rows only.
    order = np.argsort(-owner, kind="stable")
    G, g = np.zeros((0, net.in_features)), np.zeros(0)
    masks = net.by_layer(pattern)
    for level in range(len(masks) - 1, -1, -1):
        layer = net.layers[level]
        chosen = wanted[order[owner[order] == level]] - starts[level]
        if len(g):
            rows = G * masks[level]
            g = g + rows @ layer.bias
            G = layer.pull_back(rows)
        G = np.concatenate([G.reshape(len(g), layer.in_features), dense(layer.weight[chosen])])
        g = np.concatenate([g, layer.bias[chosen]])
    back = np.empty(len(wanted), dtype=np.int64)
    back[order] = np.arange(len(wanted))
    return G[back], g[back]


def unit_halfspaces(net: ReluNetwork, pattern: NDArray[np.bool_], units: NDArray[np.int64]) -> Array:
    """Return unit rows [a, b] of the sides that the units give a cell; constant units give zero rows."""
    G, g = unit_forms(net, pattern, units)
    signs = np.where(pattern[units], -1.0, 1.0)
    lengths = np.linalg.norm(G, axis=1)
    scale = signs / np.where(lengths > 0.0, lengths, 1.0)
    return np.column_stack([G, g]) * scale[:, None]


def varying_units(net: ReluNetwork, pattern: NDArray[np.bool_], G: Array) -> NDArray[np.bool_]:
    r"""Return which units change at all where the pattern holds, (size,).

    :math:`G_i` is a sum over the units of the layer below; where it is smaller than ``RESOLUTION``
    times the sum of its terms' lengths, the terms cancelled and rounding is all that is left.

    Args:
        net: The network.
        pattern: Which units are on, (size,).
        G: The gradients of all units from :func:`unit_forms`, (size, d).

    >>> net = ReluNetwork.from_layers([([[0.1], [0.3]], [0, 0]), ([[3.0, -1.0]], [1]), ([[1.0]], [0])])
    >>> varying_units(net, np.ones(3, bool), unit_forms(net, np.ones(3, bool))[0])
    array([ True,  True, False])
    """
    lengths = np.linalg.norm(G, axis=1)
    scales = [np.zeros(0)]
    below = None
    for layer, length, on in zip(net.layers, net.by_layer(lengths), net.by_layer(pattern), strict=False):
        scales.append(length if below is None else np.asarray(abs(layer.weight) @ below))
        below = length * on
    scale = np.concatenate(scales)
    return (lengths > RESOLUTION * scale) & (lengths > 0.0)
