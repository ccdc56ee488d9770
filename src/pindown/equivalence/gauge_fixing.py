r"""One representative of all symmetric copies of a network: fixed scales, fixed order of units.

Scales are fixed by a gauge. ``"unit"`` gives every hidden unit incoming weights of length one.
``"balanced"`` makes the length of what enters a unit (bias included) equal to that of what leaves it,
which is the copy of smallest sum of squares. Before that, units go that no form can tell apart or place:
those that nothing reads, constant ones, and copies of others,

.. math::
    W_{l+1} e_i = 0, \qquad W_l[i, :] = 0 \;\Longrightarrow\; b_{l+1} \mathrel{+}= \rho(b_i) W_{l+1} e_i,
    \qquad (W_j, b_j) = t (W_i, b_i),\ t > 0 \;\Longrightarrow\; W_{l+1} e_i \mathrel{+}= t W_{l+1} e_j .

These hold for every input. Rows count as multiples if they are, entry by entry, up to the few roundings
that a symmetric copy makes; so copies of a network lose the same units. What needs bounds on a box, and
a proved gap, is the work of :func:`~pindown.equivalence.shrinking.models.shrink`. Units are then put in
the order of :math:`r_l \cdot (W_l[i, :], b_l[i])`, with a fixed random vector :math:`r_l`, in the unit
gauge and after the layer before has been ordered.

Phuong 2021, section 2.2 (the symmetries, and when every unit shows); Neyshabur, Salakhutdinov,
Srebro 2015 (balancing).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from pindown.affine import Affine, Array, Matrix, dense
from pindown.equivalence.related_units import ParallelUnits, unit_relations
from pindown.equivalence.shrinking._rounded_matrices import Mask, columns_of, row, rows_of
from pindown.equivalence.tuning import BALANCING_SETTLED, BALANCING_SWEEPS
from pindown.equivalence.weight_symmetry import (
    Permutation,
    Symmetry,
    apply,
    compose,
    identity,
    moved_columns,
    scaled_rows,
)
from pindown.io.accepting import on_network
from pindown.network import ReluNetwork
from pindown.rounding import TINY, UNIT_ROUNDOFF
from pindown.validation import choice

Gauge = Literal["unit", "balanced"]
Removed = tuple[int, int]

_SEED = 20210  # of the ordering vectors; another number gives another, equally good, order
# Copies of one unit that were scaled and ordered differently have keys that differ by some 1e-13 of the
# row's length; keys nearer than this may change places from copy to copy.
_NEAR_TIE = 1e-9
# Where squares are exact enough; rows outside are first multiplied by a power of two.
_MODERATE_POWER = 400
# A copy's weights are off by two roundings, and two copies are compared by a rounded factor.
_COPY_ROUNDING = 16.0 * UNIT_ROUNDOFF
# Balancing treats weights as if they were within these, so that squares stay in float64.
_WEIGHTS = (1e-60, 1e60)


@dataclass(frozen=True, eq=False, repr=False)
class CanonicalForm:
    """The canonical network, how it was reached, and where its order is not certain.

    Attributes:
        network: The representative.
        symmetry: Maps ``merged`` to it.
        near_ties: ``(layer, i, j)`` for units i, j of the canonical network, neighbours in the order
            of hidden layer ``layer`` (from 1), whose keys are too near to be told apart: symmetric
            copies of the network may have them in the other order.
        gauge: ``"unit"`` or ``"balanced"``.
        gone: ``(layer, unit)`` of the given network for each unit that nothing read, that was constant
            or a copy of another one, and is part of the others now.
        merged: The given network without them.
    """

    network: ReluNetwork
    symmetry: Symmetry
    near_ties: tuple[tuple[int, int, int], ...]
    gauge: str
    gone: tuple[tuple[int, int], ...]
    merged: ReluNetwork

    def __repr__(self) -> str:
        ties = f"{len(self.near_ties)} near ties" if self.near_ties else "no near ties"
        gone = f", merged units: {len(self.gone)}" if self.gone else ""
        return f"CanonicalForm({self.gauge} gauge, {ties}{gone}, {self.network})"


def canonical(
    net: ReluNetwork | Any,
    gauge: Gauge = "unit",
    *,
    merge: bool = True,
    activation: str | None = None,
) -> ReluNetwork:
    """Return the representative of all symmetric copies of the network.

    Args:
        net: A network or a model, the path of a model file, a torch module or a fitted scikit-learn
            estimator; a model with convolutions becomes dense layers, which may be large.
        gauge: How scales are fixed, ``"unit"`` or ``"balanced"``.
        merge: Whether units that repeat others, are constant or are read by nothing are merged first
            (the widths get smaller then); False keeps all of them.
        activation: ``"relu"``, if a path is that of a state dict: that is what lies between its layers,
            which the file does not say.

    With ``merge=False``, a unit that is zero for every input (no incoming weights, no bias) has no scale
    of its own, so copies in which it feeds something may differ there.

    >>> net = ReluNetwork.from_layers([([[3.0], [-2.0]], [6, 0]), ([[1.0, 5.0]], [0])])
    >>> copy = ReluNetwork.from_layers([([[-4.0], [1.0]], [0, 2]), ([[2.5, 3.0]], [0])])
    >>> canonical(net) == canonical(copy)
    True
    """
    from pindown.io.any_model import as_network

    return canonical_form(as_network(net, "canonical", activation), gauge, merge=merge).network


@on_network
@np.errstate(over="ignore", invalid="ignore")  # what does not fit float64 is refused at the end
def canonical_form(net: ReluNetwork, gauge: Gauge = "unit", *, merge: bool = True) -> CanonicalForm:
    """Return the canonical network with the symmetry that leads to it and its near ties.

    Args:
        net: A network or a model.
        gauge: How scales are fixed, ``"unit"`` or ``"balanced"``.
        merge: Whether units that repeat others, are constant or are read by nothing are merged first.

    >>> net = ReluNetwork.from_layers([([[3.0], [6.0], [-1.0]], [3, 6, 0]), ([[1.0, 1.0, 2.0]], [0])])
    >>> canonical_form(net)
    CanonicalForm(unit gauge, no near ties, merged units: 1, ReluNetwork(1 -> 2 -> 1, 7 parameters))

    Raises:
        ValueError: If the gauge is unknown, or a rescaled weight does not fit float64.
    """
    choice("gauge", gauge, ("unit", "balanced"))
    net, gone = merged_units(net) if merge else (net, ())
    symmetry, ties = _unit_gauge(net)
    network = apply(symmetry, net)
    if gauge == "balanced":
        balancing = Symmetry(identity(net).permutations, _balancing_scales(network))
        symmetry = compose(balancing, symmetry)
        network = apply(symmetry, net)
    return CanonicalForm(network, symmetry, ties, gauge, gone, net)


def row_lengths(weight: Matrix, bias: Array | None = None) -> Array:
    """Return the length of every row, bias included if given, also where squares leave float64."""
    parts = weight.data if sp.issparse(weight) else weight
    largest = float(np.max(np.abs(parts), initial=0.0))
    if bias is not None:
        largest = max(largest, float(np.max(np.abs(bias), initial=0.0)))
    power = int(np.frexp(largest)[1]) if largest else 0
    shift = 0 if abs(power) < _MODERATE_POWER else -power
    squares = _squared_rows(_ldexp(weight, shift))
    if bias is not None:
        squares = squares + np.ldexp(bias, shift) ** 2
    lengths = np.sqrt(squares)
    for i in np.flatnonzero(
        lengths < 2.0**-_MODERATE_POWER
    ).tolist():  # zero, or lost beside a large row
        row = _row(weight, i) if bias is None else np.append(_row(weight, i), bias[i])
        top = float(np.max(np.abs(row), initial=0.0))
        lengths[i] = np.linalg.norm(row / top) * top if top else 0.0
        lengths[i] = np.ldexp(lengths[i], shift)
    return np.ldexp(lengths, -shift)


def _row(weight: Matrix, i: int) -> Array:
    if sp.issparse(weight):
        return np.asarray(weight.data[weight.indptr[i] : weight.indptr[i + 1]])
    return np.asarray(weight[i])


def _ldexp(weight: Matrix, shift: int) -> Matrix:
    if shift == 0:
        return weight
    if not sp.issparse(weight):
        return np.ldexp(weight, shift)
    scaled = weight.copy()
    scaled.data = np.ldexp(weight.data, shift)
    return scaled


def _squared_rows(weight: Matrix) -> Array:
    if sp.issparse(weight):
        return np.asarray((weight * weight).sum(axis=1)).reshape(-1)
    return np.einsum("ij,ij->i", weight, weight)


def _unit_gauge(net: ReluNetwork) -> tuple[Symmetry, tuple[tuple[int, int, int], ...]]:
    permutations: list[Permutation] = []
    scales: list[Array] = []
    ties: list[tuple[int, int, int]] = []
    for number, (weight, bias) in enumerate(net.layers[:-1], 1):
        if number > 1:
            weight = moved_columns(weight, permutations[-1], scales[-1])  # noqa: PLW2901
        lengths = row_lengths(weight)
        # A unit without incoming weights is a constant: its bias has length one instead.
        lengths = np.where(lengths > 0.0, lengths, np.abs(bias))
        with np.errstate(over="ignore"):
            factors = np.where(lengths > 0.0, 1.0 / np.maximum(lengths, TINY), 1.0)
        if not np.isfinite(lengths).all():
            raise ValueError(
                f"hidden layer {number}: the weights of a unit, scaled as the layers before ask, leave "
                "float64; scale the model down."
            )
        rows, offsets = scaled_rows(weight, factors), factors * bias
        r = np.random.default_rng((_SEED, number)).standard_normal(weight.shape[1] + 1)
        keys = np.asarray(rows @ r[:-1]) + offsets * r[-1]
        order = np.argsort(keys, kind="stable")
        size = 1.0 + np.abs(offsets[order])
        close = np.diff(keys[order]) <= _NEAR_TIE * np.maximum(size[1:], size[:-1])
        ties += [(number, int(i), int(i) + 1) for i in np.flatnonzero(close)]
        permutations.append(order)
        scales.append(factors[order])
    return Symmetry(permutations, scales), tuple(ties)


def _balancing_scales(net: ReluNetwork) -> list[Array]:
    r"""Return scales s at which incoming and outgoing lengths agree: a convex problem in log s.

    One sweep solves for each layer in turn, :math:`s_i^4 = \mathrm{out}_i^2 / \mathrm{in}_i^2`.
    Where one of the two is zero, the other becomes one.
    """
    Q = [_squares(layer.weight) for layer in net.layers]
    c = [_squares(layer.bias) for layer in net.layers]
    ends = [np.ones(width) for width in net.widths]  # s_l^2, input and output included
    for _ in range(BALANCING_SWEEPS):
        change = 0.0
        for i in range(1, net.depth):
            incoming = np.asarray(Q[i - 1] @ (1.0 / ends[i - 1])) + c[i - 1]
            outgoing = np.asarray(Q[i].T @ ends[i + 1])
            both = (incoming > 0.0) & (outgoing > 0.0)
            new = np.ones_like(incoming)
            new[both] = np.sqrt(outgoing[both] / incoming[both])
            only_in, only_out = (incoming > 0.0) & ~both, (outgoing > 0.0) & ~both
            new[only_in], new[only_out] = 1.0 / incoming[only_in], outgoing[only_out]
            # Layers that only feed each other have no balance: each sweep would move them on.
            new = np.clip(new, _WEIGHTS[0] ** 2, _WEIGHTS[1] ** 2)
            change = max(change, float(np.max(np.abs(np.log(new / ends[i])), initial=0.0)))
            ends[i] = new
        if change < 2.0 * BALANCING_SETTLED:
            break
    return [np.sqrt(s) for s in ends[1:-1]]


def _squares(weight: Matrix) -> Matrix:
    """Return the squares of the entries, those that are not zero clipped to the range above."""
    if not sp.issparse(weight):
        return np.where(weight == 0.0, 0.0, np.clip(np.abs(weight), *_WEIGHTS) ** 2)
    squares = weight.copy()
    squares.data = np.clip(np.abs(weight.data), *_WEIGHTS) ** 2
    return squares


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
