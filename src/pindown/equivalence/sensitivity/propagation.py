r"""Carry a bound on a difference of activations through the layers.

Two copies of a network whose preactivations at layer l differ by s differ further on by

.. math::
    e_k = \Lambda_k W_k e_{k-1}, \qquad 0 \le \Lambda_k \le 1 \text{ diagonal},

the slopes of the ReLUs between the two values. So :math:`|e_k| \le |W_k| |e_{k-1}|` entry by entry and
:math:`\|e_k\| \le \|W_k\| \|e_{k-1}\|`; keeping both, each improves the other.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import inf

import numpy as np

from pindown.affine import Array, Matrix
from pindown.equivalence.sensitivity.upwards import product_above, row_norms_above, sum_above
from pindown.relaxation.operator_norms import spectral_norm, tight_cost
from pindown.rounding import norm_up, product_up


@dataclass(frozen=True, eq=False)
class Spread:
    """Bounds on a vector: entry by entry, and its Euclidean length.

    Attributes:
        entries: At least the absolute values.
        length: At least the length.
    """

    entries: Array
    length: float

    @staticmethod
    def of(entries: Array, length: float = inf) -> Spread:
        """Return both bounds, each used to improve the other."""
        return Spread(np.minimum(entries, length), min(length, norm_up(entries)))

    def plus(self, other: Spread) -> Spread:
        """Bound the sum of two vectors."""
        length = float(sum_above(self.length, other.length))
        return Spread.of(sum_above(self.entries, other.entries), length)


class Propagation:
    r"""The weights of a network with what bounds their products.

    Args:
        weights: :math:`W_1, \dots, W_L`.
        norms: Whether to use Euclidean norms of the matrices besides rows and absolute values.
        until: Time (``time.monotonic``) after which no further norm is computed tightly.

    >>> chain = Propagation([np.eye(2), np.array([[3.0, 4.0], [4.0, -3.0]])], norms=True)
    >>> chain.through(1, Spread.of(np.array([1.0, 0.0]))).entries.round(6)
    array([3., 4.])
    """

    def __init__(self, weights: list[Matrix], *, norms: bool = False, until: float = inf) -> None:
        self.weights = weights
        self.norms = [inf] * len(weights)
        self.rows = [row_norms_above(W) for W in weights]
        if norms:
            for i in sorted(range(len(weights)), key=lambda i: tight_cost(weights[i])):
                left = max(0.0, until - time.monotonic())
                self.norms[i] = spectral_norm(weights[i], budget=left).value

    def through(self, layer: int, e: Spread) -> Spread:
        r"""Bound :math:`W e` for the layer with that index, from 0."""
        entries = product_above(self.weights[layer], e.entries)
        rows = self.rows[layer]
        if not 0.0 < e.length < inf:
            return Spread.of(entries)
        with np.errstate(over="ignore"):
            entries = np.minimum(entries, np.where(rows > 0.0, np.nextafter(rows * e.length, inf), 0.0))
        return Spread.of(entries, product_up([self.norms[layer], e.length]))

    def to_output(self, layer: int, source: Spread) -> Array:
        """Bound what a source at the preactivations of a layer does to every output."""
        e = source
        for i in range(layer + 1, len(self.weights)):
            e = self.through(i, e)
        return e.entries
