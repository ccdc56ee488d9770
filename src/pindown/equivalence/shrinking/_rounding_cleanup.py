r"""What is redundant up to rounding only, made exactly so, so that the exact rules see it.

A weight is faint beside the others of its row, each times the size :math:`\|(W_i, b_i)\|` of the unit it
reads, so that the scales of units do not matter. Setting it to zero moves the layer as if it had been
off by its size. Unlike a bound on a unit's value this needs no box.

A ReLU whose input is at most 0 on the box, and 0 somewhere, is dead; after its weights were rescaled and
rounded it may reach :math:`10^{-16}`, which no search can prove or refute. Its bias is moved by what is
missing, :math:`b_i \mathrel{\pm}= \delta_i`, and the unit is dead, or never off, for good.

If :math:`(W_j, b_j) \approx -t\,(W_i, b_i)` with :math:`t > 0`, unit j is rescaled by 1/t, its row
becomes exactly the negative of unit i's, and outgoing weights that cancel those of unit i up to
rounding are made to cancel exactly. What all this changes is charged to the tolerance.

Phuong 2021, section 2.2.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from pindown.affine import Affine, Array, Matrix, dense
from pindown.deadline import OutOfTime
from pindown.equivalence.related_units import ParallelUnits
from pindown.equivalence.shrinking._duplicate_and_dead_units import near_ratio
from pindown.equivalence.shrinking._proposals import Draft, Errors, Layer
from pindown.equivalence.shrinking.result import Step
from pindown.equivalence.tuning import CANCELLING_SHARE, MAX_WRITTEN_OUT, NEAR_OPPOSITES
from pindown.rounding import SMALLEST, gamma

_FAINT = 2.0**-42  # of the largest part of the row: what a few roundings leave; the gap decides
_ROUNDING = 2.0**-42  # of the unit's range: what a few roundings leave; the gap decides
_ROOM = 4.0  # times what is missing, so that the new bounds, rounded again, see it too


def clear_faint(draft: Draft, layer: int) -> bool:
    """Clear weights and biases of the layer after a hidden one (from 0) that are only rounding."""
    affine, (following, offset) = draft.net.layers[layer : layer + 2]
    sizes = _sizes(*affine)
    if not sp.issparse(following) and not _any_faint(following, offset, sizes):
        return False
    entries = sp.coo_array(following)
    with np.errstate(over="ignore", under="ignore"):
        parts = np.abs(entries.data) * sizes[entries.col]
    largest = np.abs(offset)
    np.maximum.at(largest, entries.row, parts)
    small = (parts <= _FAINT * largest[entries.row]) & (entries.data != 0.0)
    quiet = (np.abs(offset) <= _FAINT * largest) & (offset != 0.0)
    if not (small.any() or quiet.any()) or not np.isfinite(largest).all():
        return False
    where, rest = (entries.row[small], entries.col[small]), (entries.row[~small], entries.col[~small])
    error = sp.csr_array((np.abs(entries.data[small]), where), following.shape)
    cleared = sp.csr_array((entries.data[~small], rest), following.shape)
    layers: list[Layer] = list(draft.net.layers)
    weight = cleared if sp.issparse(following) else cleared.toarray()
    layers[layer + 1] = weight, np.where(quiet, 0.0, offset)
    errors = {layer + 1: (error, np.where(quiet, np.abs(offset), 0.0))}
    cost = draft.gap_bound(draft.net, errors, draft.tol - draft.gap)
    units = tuple(np.unique(entries.col[small]).tolist())
    count = int(small.sum() + quiet.sum())
    reason = f"{count} weights that read them are rounding beside the others, now zero"
    return draft.propose(layers, {}, Step("faint", layer + 1, units, reason), draft.known, cost=cost)


def _any_faint(weight: Array, offset: Array, sizes: Array) -> bool:
    """Return whether there is anything to clear: a look at large dense layers that mostly says no."""
    with np.errstate(over="ignore", under="ignore"):
        parts = np.abs(weight)
        parts *= sizes
        largest = np.maximum(np.abs(offset), parts.max(axis=1, initial=0.0))
        faint = parts <= (_FAINT * largest)[:, None]
    if faint.any() and (faint & (weight != 0.0)).any():
        return True
    return bool(((np.abs(offset) <= _FAINT * largest) & (offset != 0.0)).any())


def _sizes(weight: Matrix, bias: Array) -> Array:
    """Return the largest number of each unit's row and bias."""
    rows = np.asarray(dense(abs(weight).max(axis=1))).reshape(-1)
    return np.maximum(rows, np.abs(bias))


def move_off_zero(draft: Draft, layer: int) -> bool:
    """Decide the signs of units of a hidden layer (from 0) whose bounds miss zero by rounding only."""
    z = draft.bounds(layer)
    with np.errstate(over="ignore", invalid="ignore"):
        size = _ROUNDING * np.maximum(np.abs(z.lower), np.abs(z.upper))
        up = (z.lower < 0.0) & (-z.lower <= size) & np.isfinite(size)
        down = (z.upper > 0.0) & (z.upper <= size) & np.isfinite(size)
    weight, bias = draft.net.layers[layer]
    moved = bias + _ROOM * (np.where(up, -z.lower, 0.0) - np.where(down, z.upper, 0.0))
    change = moved != bias  # not if what is missing is below the bias' last digit
    if not change.any():
        return False
    off = np.where(change, np.nextafter(np.abs(moved - bias), np.inf), 0.0)
    layers: list[Layer] = list(draft.net.layers)
    layers[layer] = weight, moved
    cost = draft.gap_bound(draft.net, {layer: (0.0, off)}, draft.tol - draft.gap)
    units = tuple(np.flatnonzero(change).tolist())
    step = Step("off zero", layer + 1, units, f"reach zero {draft.where} by rounding only, no longer")
    return draft.propose(layers, {}, step, list(draft.known), cost=cost)


def snap_opposites(draft: Draft, layer: int) -> bool:
    """Make nearly opposite units of a hidden layer (from 0) exactly so, if the tolerance allows it."""
    affine, following = draft.net.layers[layer : layer + 2]
    if any(_too_large(part.weight) for part in (affine, following)):
        return False
    try:
        groups = draft.nearly_parallel(layer, NEAR_OPPOSITES)
    except OutOfTime:
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
    return bool(sp.issparse(weight) and weight.shape[0] * weight.shape[1] > MAX_WRITTEN_OUT)


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
            cancels = (total > 0.0) & (total <= CANCELLING_SHARE * np.abs(partner))
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
