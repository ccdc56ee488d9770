r"""How far inputs are from the nearest fold.

In its own cell unit i is :math:`z_i(x) = G_i x + g_i`, and x is at distance
:math:`|z_i(x)| / \|G_i\|` from where it vanishes. The smallest of these is the exact distance from x to
the boundary of its cell: behind the nearest of these hyperplanes begins another cell, before it none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array, dense
from pindown.box import Box, as_box
from pindown.geometry.nearness import RESOLUTION
from pindown.geometry.tuning import GRADIENT_NUMBERS_PER_BLOCK, MIN_GATHERED_WIDTH
from pindown.io.accepting import on_network
from pindown.network import ReluNetwork


@dataclass(frozen=True, eq=False, repr=False)
class FoldDistances:
    """Distances of n inputs to the boundaries of their cells.

    Attributes:
        distance: Euclidean, infinite where the network is affine everywhere, (n,).
        label: Which unit's fold, or side of the box, is nearest (as in :class:`Region`); -1: none, (n,).
    """

    distance: Array
    label: NDArray[np.int64]

    def __repr__(self) -> str:
        n = self.distance.size
        if not n:
            return "FoldDistances(0 inputs)"
        low, middle, high = np.quantile(self.distance, [0.0, 0.5, 1.0])
        return (
            f"FoldDistances({n:,} inputs; nearest {low:.3g}, median {middle:.3g}, farthest {high:.3g})"
        )


@on_network
def distance_to_nearest_fold(
    net: ReluNetwork, X: ArrayLike, box: Box | tuple[Any, Any] | None = None
) -> FoldDistances:
    r"""Return the Euclidean distance of each input to the boundary of its cell.

    .. math::
        \min_i |z_i(x)| / \|\nabla z_i(x)\|.

    Args:
        net: The network.
        X: Inputs (n, d), or one (d,).
        box: If given, its sides count as boundary, too, and the inputs must lie in it.

    Returns:
        Distances and labels, (n,).

    Raises:
        ValueError: If an input lies outside the box.

    >>> net = ReluNetwork.from_layers([([[3.0, 4.0], [1.0, 0.0]], [0, -9]), ([[1.0, 1.0]], [0])])
    >>> found = distance_to_nearest_fold(net, [[1.0, 0.5], [8.0, 9.0]])
    >>> found.distance, found.label
    (array([1., 1.]), array([0, 1]))
    """
    rows, _ = net.as_rows(X)
    limits = None if box is None else as_box(box, net.in_features)
    if limits is not None and not limits.contains(rows).all():
        outside = int(np.count_nonzero(~limits.contains(rows)))
        raise ValueError(f"{outside} of {len(rows)} inputs lie outside the box.")
    distance, label = np.full(len(rows), np.inf), np.full(len(rows), -1, dtype=np.int64)
    turned = _turned_first_layer(net)
    widest = max(net.hidden_widths, default=1)
    step = max(1, GRADIENT_NUMBERS_PER_BLOCK // (widest * turned.shape[1]))
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        _nearest_units(net, rows[part], turned, distance[part], label[part])
    if limits is not None:
        gaps = np.stack([rows - limits.lower, limits.upper - rows], axis=2).reshape(len(rows), -1)
        side = gaps.argmin(axis=1)
        nearest = gaps[np.arange(len(rows)), side]
        label[:] = np.where(nearest < distance, net.size + side, label)
        np.minimum(distance, nearest, out=distance)
    return FoldDistances(distance, label)


def _turned_first_layer(net: ReluNetwork) -> Array:
    """Return the first weight matrix after a rotation of the input space that shortens its rows.

    Lengths of gradients are all that is asked for, and the gradients of all units are combinations
    of the rows of the first matrix: their triangular factor does as well and may be much narrower.
    """
    W = dense(net.layers[0].weight)
    out, d = W.shape
    if d <= out:
        return W
    R: Array = np.linalg.qr(W.T).R
    return R.T


def _nearest_units(
    net: ReluNetwork, X: Array, turned: Array, distance: Array, label: NDArray[np.int64]
) -> None:
    """Lower ``distance`` and ``label`` to those of the nearest units."""
    n, first = len(X), 0
    a, on, lengths, J = X, np.ones((n, 0), bool), np.zeros((n, 0)), np.zeros((n, 0, 0))
    for level, layer in enumerate(net.layers[:-1]):
        z = layer(a)
        if level == 0:
            J = np.broadcast_to(turned, (n, *turned.shape))
            scale = np.broadcast_to(np.linalg.norm(turned, axis=1), z.shape)
            lengths = scale
        else:
            scale = (lengths * on) @ np.abs(dense(layer.weight)).T
            J = _next_gradients(dense(layer.weight), on, J)
            lengths = np.sqrt(np.einsum("nij,nij->ni", J, J))
        varies = (lengths > RESOLUTION * scale) & (lengths > 0.0)
        gaps = np.where(varies, np.abs(z) / np.where(varies, lengths, 1.0), np.inf)
        nearest = gaps.argmin(axis=1)
        gap = gaps[np.arange(n), nearest]
        label[:] = np.where(gap < distance, first + nearest, label)
        np.minimum(distance, gap, out=distance)
        first, on, a = first + layer.out_features, z >= 0.0, np.maximum(z, 0.0)


def _next_gradients(W: Array, on: NDArray[np.bool_], J: Array) -> Array:
    """Return the gradients of a layer's units from those of the layer below, (n, out, r)."""
    if max(W.shape) < MIN_GATHERED_WIDTH:
        return np.matmul(W, J * on[:, :, None])
    result = np.empty((len(J), len(W), J.shape[2]))
    for i in range(len(J)):
        np.matmul(W[:, on[i]], J[i][on[i]], out=result[i])
    return result
