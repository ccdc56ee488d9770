r"""Units that are opposite up to rounding, made exactly opposite, so that the exact rules see them.

If :math:`(W_j, b_j) \approx -t\,(W_i, b_i)` with :math:`t > 0`, unit j is rescaled by 1/t, its row
becomes exactly the negative of unit i's, and outgoing weights that cancel those of unit i up to rounding
are made to cancel exactly. What that changes is charged to the tolerance.

Phuong 2021, section 2.2; the gap is charged as in :mod:`.error_bound`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from pindown.affine import Affine, Array, Matrix, dense
from pindown.equivalence.shrinking.draft import Draft, Layer
from pindown.equivalence.shrinking.error_bound import Errors
from pindown.equivalence.shrinking.lossy import near_ratio
from pindown.equivalence.shrinking.result import Step
from pindown.equivalence.unit_relations import ParallelUnits
from pindown.rounding import SMALLEST, gamma

_NEAR = 1e-6  # rows that differ more, at length one, are not taken for opposite; the gap decides
_CANCELS = 1e-6  # outgoing weights whose sum is below this share of them
_LARGEST = 2**22  # entries of a sparse layer that may be written out; larger ones are left alone


def snap_opposites(draft: Draft, layer: int) -> bool:
    """Make nearly opposite units of a hidden layer (from 0) exactly so, if the tolerance allows it."""
    affine, following = draft.net.layers[layer : layer + 2]
    if any(_too_large(part.weight) for part in (affine, following)):
        return False
    try:
        groups = draft.nearly_parallel(layer, _NEAR)
    except TimeoutError:
        return False
    work = _Snapping(affine, following)
    for group in groups:
        work.snap(group)
    if not work.units:
        return False
    layers: list[Layer] = list(draft.net.layers)
    layers[layer] = work.rows[:, :-1], work.rows[:, -1]
    layers[layer + 1] = work.columns, following.bias
    errors: Errors = {
        layer: (work.row_error[:, :-1], work.row_error[:, -1]),
        layer + 1: (work.column_error, 0.0),
    }
    if not all(np.isfinite(part).all() for part in (work.rows, work.columns)):
        return False
    pair = (Affine.of(*layers[layer]), Affine.of(*layers[layer + 1]))
    net = replace(draft.net, layers=(*draft.net.layers[:layer], *pair, *draft.net.layers[layer + 2 :]))
    cost = draft.gap_bound(net, errors, draft.tol - draft.gap)
    reason = "opposite to other units of the layer up to rounding, made exactly so"
    step = Step("near opposite", layer + 1, tuple(sorted(work.units)), reason)
    return draft.propose(layers, {}, step, list(draft.known), cost=cost)


def _too_large(weight: Matrix) -> bool:
    return bool(sp.issparse(weight) and weight.shape[0] * weight.shape[1] > _LARGEST)


class _Snapping:
    """Rows of a layer (biases last), columns of the next one, and how far each entry was moved."""

    def __init__(self, affine: Affine, following: Affine) -> None:
        self.rows = np.column_stack([dense(affine.weight), affine.bias])
        self.columns = np.array(dense(following.weight))
        self.row_error = np.zeros_like(self.rows)
        self.column_error = np.zeros_like(self.columns)
        self.units: set[int] = set()

    def snap(self, group: ParallelUnits) -> None:
        """Make every unit that is opposite to the first one exactly its negative."""
        first = group.units[0]
        for unit, factor in zip(group.units[1:], group.factors[1:], strict=True):
            t = -near_ratio(self.rows[first], self.rows[unit])
            if factor < 0.0 < t < np.inf:
                self._make_opposite(first, unit, t)

    def _make_opposite(self, first: int, unit: int, t: float) -> None:
        target, column = -self.rows[first], self.columns[:, unit]
        exactly = np.array_equal(self.rows[unit], target)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            scaled = column if exactly else t * column
            off = np.zeros(len(column)) if exactly else gamma(2) * np.abs(scaled) + SMALLEST
            partner = self.columns[:, first]
            total = np.abs(scaled + partner)
            cancels = (total > 0.0) & (total <= _CANCELS * np.abs(partner))
            new = np.where(cancels, -partner, scaled)
            off = off + np.where(cancels, total * (1.0 + gamma(2)), 0.0)
            moved = self._row_distance(unit, t, target)
        if exactly and not cancels.any():
            return
        if not exactly:
            self.rows[unit] = target
            self.row_error[unit] = moved
        self.columns[:, unit] = new
        self.column_error[:, unit] = off
        self.units.add(unit)

    def _row_distance(self, unit: int, t: float, target: Array) -> Array:
        scaled = self.rows[unit] / t
        return np.abs(scaled - target) + gamma(3) * (np.abs(scaled) + np.abs(target)) + SMALLEST
