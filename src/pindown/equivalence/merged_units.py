r"""What goes before a canonical form: units that nothing reads, constant units, and copies of others.

.. math::
    W_{l+1} e_i = 0, \qquad W_l[i, :] = 0 \;\Longrightarrow\; b_{l+1} \mathrel{+}= \rho(b_i) W_{l+1} e_i,
    \qquad (W_j, b_j) = t (W_i, b_i),\ t > 0 \;\Longrightarrow\; W_{l+1} e_i \mathrel{+}= t W_{l+1} e_j .

These hold for every input. Rows count as multiples if they are, entry by entry, up to the few roundings
that a symmetric copy makes; so copies of a network lose the same units. What needs bounds on a box, and
a proved gap, is the work of :func:`~pindown.equivalence.shrinking.models.shrink`.

Phuong 2021, section 2.2: the complements of the conditions under which every unit shows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from pindown.affine import Affine, Array, Matrix, dense
from pindown.equivalence.related_units import ParallelUnits, unit_relations
from pindown.equivalence.shrinking._rounded_matrices import Mask, columns_of, row, rows_of
from pindown.network import ReluNetwork
from pindown.rounding import UNIT_ROUNDOFF

# A copy's weights are off by two roundings, and two copies are compared by a rounded factor.
_COPY_ROUNDING = 16.0 * UNIT_ROUNDOFF
Removed = tuple[int, int]


def merged_units(net: ReluNetwork) -> tuple[ReluNetwork, tuple[Removed, ...]]:
    """Return the network without unread, constant and repeated units, and which went.

    Returns:
        The smaller network, the same function up to the rounding of its weights, and ``(layer, unit)``
        for each unit of the given network that is gone, layers from 1.

    >>> W = [[1.0, 2.0], [3.0, 6.0], [0.0, 0.0], [1.0, 0.0]]
    >>> net = ReluNetwork.from_layers([(W, [1, 3, 5, 0]), ([[1.0, 1.0, 2.0, 0.0]], [0.5])])
    >>> small, gone = merged_units(net)
    >>> small.layers[1].weight, small.layers[1].bias, gone
    (array([[4.]]), array([10.5]), ((1, 1), (1, 2), (1, 3)))
    """
    layers = list(net.layers)
    names = [list(range(width)) for width in net.hidden_widths]
    numbers = list(range(1, net.depth))
    gone: list[Removed] = []
    index = 0
    while index < len(layers) - 1:
        found = _without_redundant(layers[index], layers[index + 1])
        if found is None:
            index += 1
            continue
        keep, pair = found
        gone += [(numbers[index], names[index][unit]) for unit in np.flatnonzero(~keep).tolist()]
        layers[index : index + 2] = pair
        if len(pair) == 1:
            del names[index], numbers[index]
        else:
            names[index] = [names[index][unit] for unit in np.flatnonzero(keep).tolist()]
        index = max(index - 1, 0)  # what fed a unit that is gone may be unread now
    return (replace(net, layers=tuple(layers)) if gone else net), tuple(sorted(gone))


def _without_redundant(layer: Affine, following: Affine) -> tuple[Mask, list[Affine]] | None:
    """Return which units of a layer stay, and the two layers then; None if all do."""
    width = layer.out_features
    two = ReluNetwork((layer, following))
    (relations,) = unit_relations(two, relative=_COPY_ROUNDING)
    keep = np.ones(width, dtype=bool)
    keep[list(relations.unused)] = False
    offset = following.bias
    constant = [unit for unit in relations.constant if keep[unit]]
    if constant:
        values = np.maximum(layer.bias[constant], 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            offset = offset + np.asarray(columns_of(following.weight, constant) @ values)
        if not np.isfinite(offset).all():
            constant, offset = [], following.bias
        keep[constant] = False
    copies = _copies(layer, relations.parallel, keep)
    with np.errstate(over="ignore", invalid="ignore"):
        weight = _taken_over(following.weight, copies)
    if not np.isfinite(weight.data if sp.issparse(weight) else weight).all():
        copies, weight = {}, following.weight
    keep[list(copies)] = False
    if keep.all():
        return None
    if not keep.any():
        nothing = np.zeros((following.out_features, layer.in_features))
        return keep, [Affine.of(nothing, offset)]
    first = Affine.of(rows_of(layer.weight, keep), layer.bias[keep])
    return keep, [first, Affine.of(columns_of(weight, keep), offset)]


def _copies(
    layer: Affine, groups: tuple[ParallelUnits, ...], keep: Mask
) -> dict[int, tuple[int, float]]:
    """Return for each unit that repeats another which one, and how many times."""
    found: dict[int, tuple[int, float]] = {}
    for group in groups:
        kept: list[int] = []
        for unit in group.units:
            if not keep[unit] or unit in found:
                continue
            mine = row(layer.weight, layer.bias, unit)
            for of in kept:
                factor = _factor(row(layer.weight, layer.bias, of), mine)
                if factor > 0.0:
                    found[unit] = of, factor
                    break
            else:
                kept.append(unit)
    return {unit: _followed(found, unit) for unit in found}


def _followed(copies: dict[int, tuple[int, float]], unit: int) -> tuple[int, float]:
    """Return which unit that stays another one repeats: one exact group may stand for another."""
    of, factor = copies[unit]
    while of in copies:
        of, more = copies[of]
        factor *= more
    return of, factor


def _factor(first: Array, second: Array) -> float:
    """Return t > 0 with ``second = t first`` up to a few roundings of each entry, else 0."""
    pivot = int(np.argmax(np.abs(first)))
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        t = float(second[pivot] / first[pivot])
        if not 0.0 < t < np.inf:
            return 0.0
        near = np.abs(second - t * first) <= _COPY_ROUNDING * np.abs(second)
    return t if bool(near.all()) else 0.0


def _taken_over(following: Matrix, copies: dict[int, tuple[int, float]]) -> Matrix:
    """Return the next layer's weights, columns of copies added to those of the units they repeat."""
    if not copies:
        return following
    width = following.shape[1]
    units = list(copies)
    into = [copies[unit][0] for unit in units]
    factors = [copies[unit][1] for unit in units]
    add = sp.csr_array((factors, (units, into)), shape=(width, width))
    if sp.issparse(following):
        total, size = following + following @ add, abs(following) + abs(following) @ add
        return sp.csr_array(total.multiply(abs(total) > _COPY_ROUNDING * size))
    total = following + dense(add.T @ following.T).T
    size = np.abs(following) + dense(add.T @ np.abs(following).T).T
    return np.where(np.abs(total) > _COPY_ROUNDING * size, total, 0.0)  # else they cancel
