r"""All of the line or plane in a few boxes: coordinates that reach infinity.

For a network f the function :math:`F(x, s) = s f(x / s)` is again a network for :math:`s \ge 0`: biases
become weights of s. It is homogeneous, so f on all of :math:`R^d` is F on any surface that every ray
meets: the box :math:`s = 1, |x_i| \le \rho R`, and beside it, for every coordinate and sign,
:math:`x_i = \pm 1, |x_j| \le \rho, 0 \le s \le 1/R`, where s = 0 is infinity. Lines stay lines. With
:math:`\rho > 1` the pieces overlap, so that a fold along the edge of one is inside another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pindown.affine import Array, dense
from pindown.box import Box
from pindown.network import ReluNetwork

_OVERLAP = 1.25


@dataclass(frozen=True, eq=False)
class Chart:
    """A box of coordinates u and the map ``(x, s) = matrix @ u + offset``."""

    box: Box
    matrix: Array
    offset: Array

    def restrict(self, homogeneous: ReluNetwork) -> ReluNetwork:
        """Return the homogeneous network in the coordinates u; its units keep their order."""
        return homogeneous @ ReluNetwork.from_layers([(self.matrix, self.offset)])

    def rays(self, points: Array) -> Array:
        """Return (x, s) for coordinates u (n, d): (n, d + 1)."""
        return points @ self.matrix.T + self.offset


def homogenise(net: ReluNetwork) -> ReluNetwork:
    """Return ``(x, s) -> s net(x / s)`` for ``s >= 0``; every hidden layer gets one more unit, s itself.

    >>> net = ReluNetwork.from_layers([([[1.0]], [-2]), ([[1.0]], [3])])
    >>> homogenise(net)([[5.0, 1.0], [10.0, 2.0]]).ravel()  # relu(5 - 2) + 3 = 6, and twice that
    array([ 6., 12.])
    """
    layers = []
    for i, (weight, bias) in enumerate(net.layers, 1):
        rows = np.column_stack([dense(weight), bias])
        if i < net.depth:
            rows = np.concatenate([rows, np.eye(1, rows.shape[1], rows.shape[1] - 1)])
        layers.append((rows, np.zeros(len(rows))))
    return ReluNetwork.from_layers(layers)


def box_chart(box: Box) -> Chart:
    """Return the chart of a box: x itself, with s = 1."""
    d = box.dim
    return Chart(box, np.eye(d + 1, d), np.eye(1, d + 1, d)[0])


def charts_of_space(d: int, radius: float) -> Iterator[Chart]:
    """Yield charts that together cover all of R^d; finite folds should lie within the radius."""
    yield box_chart(Box.cube(d, -_OVERLAP * radius, _OVERLAP * radius))
    others = np.full(d - 1, _OVERLAP)
    box = Box(np.append(-others, 0.0), np.append(others, 1.0 / radius))
    for i in range(d):
        for sign in (1.0, -1.0):
            rest = [j for j in range(d + 1) if j != i]
            matrix, offset = np.zeros((d + 1, d)), np.zeros(d + 1)
            matrix[rest, np.arange(d)] = 1.0
            offset[i] = sign
            yield Chart(box, matrix, offset)


def fold_radius(net: ReluNetwork) -> float:
    """Return a length of the order of the first folds' distances from the origin, 1 if all are 0."""
    weight, bias = net.layers[0]
    lengths = np.linalg.norm(dense(weight), axis=1)
    distances = np.abs(bias)[lengths > 0] / lengths[lengths > 0]
    return 2.0 * float(distances.max(initial=0.0)) or 1.0
