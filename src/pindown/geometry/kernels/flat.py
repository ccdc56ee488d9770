"""A network as flat arrays, the form compiled loops read fastest."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array, dense
from pindown.geometry.complex.twins import find_twins
from pindown.network import ReluNetwork

Integers = NDArray[np.int64]


class FlatNetwork(NamedTuple):
    r"""All layers in a few arrays.

    Hidden layer :math:`l` (from 0) has its units at ``starts[l] : starts[l + 1]``; the output layer
    comes last. Weights stand column by column: what unit j of layer l - 1 feeds into layer l, of
    width n, is ``weights[weight_starts[l] + j * n : ... + n]``.
    """

    dim: int
    hidden: int  # number of ReLU layers
    widths: Integers  # of the hidden layers, then of the output
    starts: Integers
    weight_starts: Integers
    weights: Array
    biases: Array
    leader: NDArray[np.int32]  # which unit of a layer stands for which (see twins.py)
    follower: NDArray[np.int32]
    opposite: NDArray[np.uint8]

    @classmethod
    def of(cls, net: ReluNetwork) -> FlatNetwork:
        """Lay out ``net``."""
        widths = np.array(net.widths[1:], dtype=np.int64)
        twins = find_twins(net)
        columns = [np.ascontiguousarray(dense(layer.weight).T).ravel() for layer in net.layers]
        return cls(
            dim=net.in_features,
            hidden=net.depth - 1,
            widths=widths,
            starts=np.concatenate([[0], np.cumsum(widths)]).astype(np.int64),
            weight_starts=np.concatenate([[0], np.cumsum([c.size for c in columns])]).astype(np.int64),
            weights=np.concatenate(columns),
            biases=np.concatenate([layer.bias for layer in net.layers]).astype(np.float64),
            leader=twins.leader,
            follower=twins.follower,
            opposite=twins.opposite,
        )

    @property
    def size(self) -> int:
        """Number of ReLUs."""
        return int(self.starts[self.hidden])

    @property
    def widest(self) -> int:
        """Width of the widest layer, output included."""
        return int(self.widths.max())
