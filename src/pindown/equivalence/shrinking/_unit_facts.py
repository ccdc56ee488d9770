r"""What is known about units without search: bounds on what enters them, and which are multiples.

On a box the bounds are intervals. Without one the first layer is unbounded, but what a ReLU gives is
never negative, so a unit of a deeper layer with weights of one sign is bounded on one side by its
bias:

.. math:: a \ge m \ge 0, \; W_i \ge 0 \;\Longrightarrow\; W_i a + b_i \ge W_i m + b_i .

Units are multiples if their rows :math:`(W_i, b_i)` are. Most multiples in practice are :math:`\pm 2^k`:
copies and opposites. Scaled by a power of two to size one, with the first non-zero made positive, their
rows hold the same bits, so a dictionary finds them in one pass; only one unit of each such family enters
the search for other multiples.

Moore 1966, "Interval Analysis"; Phuong and Lampert 2020, "Functional vs. parametric equivalence of ReLU
networks".
"""

from __future__ import annotations

from math import fsum, nan

import numpy as np
import scipy.sparse as sp

from pindown.affine import Affine, Array, Matrix
from pindown.box import Box
from pindown.equivalence.related_units import unit_relations
from pindown.equivalence.shrinking._rounded_matrices import exact_terms, row, rows_of, used_rows
from pindown.model.operations.operation import Interval
from pindown.network import ReluNetwork
from pindown.relaxation.intervals import interval_bounds
from pindown.rounding import SMALLEST, add_down, add_up, gamma

# Ends this near to zero, relative to the unit's range, may be zero but for rounding outwards.
_NEAR_ZERO = 1e-9
Sides = tuple[list[int], list[int]]


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


def parallel_units(layer: Affine) -> list[Sides]:
    """Return groups of two or more exact multiples, each as (same direction, opposite direction).

    >>> layer = Affine.of([[1.0], [3.0], [-1.0], [2.0]], [1, 3, -1, 5])
    >>> parallel_units(layer)
    [([0, 1], [2])]
    """
    families = _families(layer)
    firsts = [same[0] for same, _ in families]
    if len(firsts) < 2:
        return [family for family in families if len(family[0]) + len(family[1]) > 1]
    some = Affine.of(rows_of(layer.weight, np.array(firsts)), layer.bias[firsts])
    read = Affine.of(np.ones((1, len(firsts))), [0.0])
    (relations,) = unit_relations(ReluNetwork((some, read)), relative=0.0)
    joined: set[int] = set()
    groups: list[Sides] = []
    for group in relations.parallel:
        members = [(families[i], t > 0) for i, t, same in zip(*_fields(group), strict=True) if same]
        if len(members) > 1:
            joined.update(family[0][0] for family, _ in members)
            same = [unit for family, forward in members for unit in family[0 if forward else 1]]
            other = [unit for family, forward in members for unit in family[1 if forward else 0]]
            groups.append((sorted(same), sorted(other)))
    alone = [family for family in families if family[0][0] not in joined]
    groups += [family for family in alone if len(family[0]) + len(family[1]) > 1]
    return sorted(groups)


def _fields(group: object) -> tuple[tuple[int, ...], tuple[float, ...], tuple[bool, ...]]:
    return group.units, group.factors, group.exact  # type: ignore[attr-defined]


def _families(layer: Affine) -> list[Sides]:
    """Group rows that differ by a sign and a power of two only; rows without weights belong nowhere."""
    keys, signs = _row_keys(layer)
    families: dict[bytes, Sides] = {}
    for unit in np.flatnonzero(used_rows(layer.weight)).tolist():
        same, other = families.setdefault(keys[unit], ([], []))
        forward = not same or signs[unit] == signs[same[0]]
        (same if forward else other).append(unit)
    return list(families.values())


def _row_keys(layer: Affine) -> tuple[list[bytes], Array]:
    """Return for each row bytes that are equal for multiples by powers of two, and its sign."""
    if sp.issparse(layer.weight):
        return _sparse_row_keys(layer)
    rows = np.column_stack([layer.weight, layer.bias])
    first = np.argmax(rows != 0.0, axis=1)
    signs = np.where(rows[np.arange(len(rows)), first] < 0.0, -1.0, 1.0)
    powers = np.frexp(np.abs(rows).max(axis=1))[1]
    scaled = np.ldexp(rows * signs[:, None], -powers[:, None]) + 0.0
    # Where scaling lost bits (entries 300 digits apart) the row's number makes its key its own.
    lossless = (np.ldexp(scaled, powers[:, None]) == rows * signs[:, None]).all(axis=1)
    own = np.where(lossless, -1, np.arange(len(rows)))
    return [scaled[i].tobytes() + own[i].tobytes() for i in range(len(rows))], signs


def _sparse_row_keys(layer: Affine) -> tuple[list[bytes], Array]:
    W, b = layer
    keys, signs = [], np.ones(len(b))
    for unit, (start, end) in enumerate(zip(W.indptr[:-1].tolist(), W.indptr[1:].tolist(), strict=True)):
        row = np.append(W.data[start:end], b[unit])
        signs[unit] = -1.0 if row[0] < 0.0 else 1.0
        power = int(np.frexp(np.abs(row).max())[1])
        scaled = np.ldexp(row * signs[unit], -power) + 0.0
        lossless = (np.ldexp(scaled, power) == row * signs[unit]).all()
        keys.append(
            b"%d" % (-1 if lossless else unit) + W.indices[start:end].tobytes() + scaled.tobytes()
        )
    return keys, signs
