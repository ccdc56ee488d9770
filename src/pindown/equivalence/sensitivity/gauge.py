r"""Scale units by powers of two, exactly, so that norms of layers say what the function does.

The gap of two networks does not depend on how hidden units are scaled, but bounds by norms do. Scales
near those that balance incoming and outgoing weights make them small, and powers of two change no digit.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

import numpy as np
import scipy.sparse as sp

from pindown.affine import Array, Matrix
from pindown.equivalence.sensitivity.change import Change
from pindown.equivalence.symmetry import Symmetry, apply, identity, moved_columns, scaled_rows
from pindown.network import ReluNetwork
from pindown.relaxation.operator_norms import balancing_scales
from pindown.rounding import TINY


def balanced(
    net: ReluNetwork, changes: Mapping[int, Change], *, until: float = inf
) -> tuple[ReluNetwork, dict[int, Change]]:
    """Return the network and its changes with balanced units, the same numbers times powers of two.

    Both are returned as they are where scaling would leave the normal numbers of float64.
    """
    scales = [
        np.exp2(np.round(np.log2(np.where(s > 0.0, s, 1.0))))
        for s in balancing_scales([layer.weight for layer in net.layers], until=until)
    ]
    parts: list[Matrix] = [part for layer in net.layers for part in layer]
    for c in changes.values():
        parts += [c.weight, c.bias, c.weight_slack, c.bias_slack]
    extremes = [_extremes(part) for part in parts]
    spread = max((float(np.max(np.maximum(s, 1.0 / s))) for s in scales), default=1.0) ** 2
    low, high = min(e[0] for e in extremes), max(e[1] for e in extremes)
    if spread == 1.0 or low / spread < TINY or not high * spread < inf:
        return net, dict(changes)
    symmetry = Symmetry(identity(net).permutations, scales)
    moved = {}
    for i, c in changes.items():
        left = scales[i] if i < len(scales) else np.ones(len(c.bias))
        right = scales[i - 1] if i else np.ones(c.weight.shape[1])
        moved[i] = Change(
            _scaled(c.weight, left, right),
            left * c.bias,
            _scaled(_spread_out(c.weight_slack, c.weight.shape), left, right),
            left * c.bias_slack,
        )
    return apply(symmetry, net), moved


def _scaled(W: Matrix, left: Array, right: Array) -> Matrix:
    if np.ndim(W) == 0 and not sp.issparse(W):
        return W
    return scaled_rows(moved_columns(W, np.arange(len(right)), right), left)


def _spread_out(slack: Matrix | float, shape: tuple[int, int]) -> Matrix | float:
    """Return a single slack other than zero as a matrix: after scaling the entries differ."""
    if np.ndim(slack) == 0 and not sp.issparse(slack) and float(slack) != 0.0:
        return np.full(shape, float(slack))
    return slack


def _extremes(part: Matrix) -> tuple[float, float]:
    numbers = np.abs(np.asarray(part.data if sp.issparse(part) else part))
    return float(np.min(numbers, initial=1.0, where=numbers > 0.0)), float(np.max(numbers, initial=0.0))
