r"""Condition G3: no two local maps of units are multiples of each other.

A unit i of layer l with the pattern I below it is the affine function
:math:`x \mapsto w_i^l(I) \cdot x + b_i^l(I)`. For any two *distinct* pairs (unit, pattern below it),
both patterns with at least one unit on in every layer below, and all numbers c,

.. math::
    [w_i^l(I), b_i^l(I)] \ne c \, [w_j^k(J), b_j^k(J)],

where c = 0 says that no local map is identically zero. Maps that differ modulo a prime (after the first
entry is scaled to one) are not parallel, which is a proof; integers decide the rest.

Phuong 2021, Lemma A.11. Section 2.2 states the condition without "distinct" and without "non-trivial
patterns", and then every network violates it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from pindown.affine import dense
from pindown.geometry.conditions._full_rank import (
    Mask,
    all_patterns,
    homogeneous,
    masked_product,
    on_units,
)
from pindown.geometry.conditions._generality_report import Violation, say_pattern
from pindown.geometry.exact.linear_algebra import (
    PRIME,
    Integers,
    Residues,
    as_integers,
    direction,
    directions,
    multiply,
    residues,
)
from pindown.geometry.tuning import MAX_LOCAL_MAPS, MAX_UNITS_INTEGER_MAPS, SKETCH_ENTRIES
from pindown.network import ReluNetwork


@dataclass(frozen=True)
class _LocalMap:
    """One unit under one pattern of the layers below it."""

    layer: int
    unit: int
    on: tuple[tuple[int, ...], ...]

    def __str__(self) -> str:
        given = f" with these units on: {say_pattern(self.on)}" if self.on else ""
        return f"unit {self.unit} of layer {self.layer}{given}"


def parallel_violations(net: ReluNetwork) -> list[Violation]:
    """Check G3 on all patterns, exactly; the work grows like 2 to the number of units.

    >>> net = ReluNetwork.from_layers([([[1.0, 2.0], [2.0, 4.0]], [1, 2]), ([[1.0, 3.0]], [5])])
    >>> print(parallel_violations(net)[0])
    G3, layer 1, unit 1: 2 times unit 0 of layer 1
    """
    everything = np.eye(net.in_features + 1, dtype=np.int64)
    layers = range(1, net.depth + 1)
    return _find(net, everything, ((n, m) for n in layers for m in all_patterns(net.widths[1:n])))


def seen_parallel_violations(
    net: ReluNetwork, patterns: Mask, rng: np.random.Generator
) -> list[Violation]:
    """Check G3 on given patterns (n, size)."""
    rows = len(patterns) * (net.size + net.out_features)
    patterns = patterns[: max(1, len(patterns) * MAX_LOCAL_MAPS // max(rows, 1))]
    sketch = rng.integers(1, PRIME, size=(net.in_features + 1, min(SKETCH_ENTRIES, net.in_features + 1)))
    masks = net.by_layer(patterns)
    blocks = []
    for layer in range(1, net.depth + 1):
        below = np.concatenate([np.zeros((len(patterns), 0), dtype=bool), *masks[: layer - 1]], axis=1)
        alive = (
            np.all([mask.any(axis=1) for mask in masks[: layer - 1]], axis=0) if layer > 1 else [True]
        )
        distinct = np.unique(below[alive], axis=0) if layer > 1 else below[:1]
        blocks.append(
            (layer, np.split(distinct, np.cumsum(net.widths[1 : layer - 1]), axis=1)[: layer - 1])
        )
    return _find(net, sketch, blocks)


def _find(
    net: ReluNetwork, start: Residues, blocks: Iterable[tuple[int, list[Mask]]]
) -> list[Violation]:
    """Return one violation for each pair of units with parallel local maps, and for each zero map."""
    weights = [residues(homogeneous(dense(W), b)) for W, b in net.layers]
    places: list[tuple[int, list[Mask], int]] = []  # layer, patterns, first row
    vectors: list[Residues] = []
    rows = 0
    for layer, masks in blocks:
        ones = [np.pad(mask, ((0, 0), (0, 1)), constant_values=True) for mask in masks]
        values = masked_product(weights[:layer], ones, start)[:, :-1]
        vectors.append(values.reshape(-1, start.shape[1]))
        places.append((layer, masks, rows))
        rows += len(vectors[-1])
    zeros, groups = _alike(directions(np.concatenate(vectors)))
    zero_maps = [_at(net, places, row) for row in zeros]
    alike = [[_at(net, places, row) for row in group] for group in groups]
    exact = _ExactMaps(net) if max(net.size, net.in_features) <= MAX_UNITS_INTEGER_MAPS else None
    if exact is not None:
        zero_maps = [local for local in zero_maps if exact.is_zero(local)]
        alike = [same for group in alike for same in exact.regroup(group)]
    simplest = {(local.layer, local.unit): local for local in reversed(zero_maps)}
    found = [_zero(local, exact=exact is not None) for local in simplest.values()]
    found += _multiples(alike, exact)
    return sorted(found, key=lambda violation: (violation.layer, violation.units, violation.detail))


def _alike(rows: Residues) -> tuple[NDArray[np.int64], list[NDArray[np.int64]]]:
    """Return the zero rows, and the other rows that are repeated, group by group."""
    # Two random combinations in one number sort faster than rows, and tell them apart as well.
    mix = np.random.default_rng(0).integers(1, PRIME, size=(rows.shape[1], 2))
    first, second = multiply(rows, mix).T
    keys = first * PRIME + second
    _, label, counts = np.unique(keys, return_inverse=True, return_counts=True)
    zero = ~rows.any(axis=1)
    repeated = np.flatnonzero((counts[label] > 1) & ~zero)
    order = repeated[np.argsort(label[repeated], kind="stable")]
    cuts = np.flatnonzero(np.diff(label[order])) + 1
    return np.flatnonzero(zero), np.split(order, cuts) if order.size else []


def _at(net: ReluNetwork, places: Sequence[tuple[int, list[Mask], int]], row: int) -> _LocalMap:
    """Return which local map a row holds."""
    starts = [first for _, _, first in places]
    layer, masks, first = places[int(np.searchsorted(starts, row, side="right")) - 1]
    pattern, unit = divmod(int(row) - first, net.widths[layer])
    return _LocalMap(layer, unit, tuple(map(tuple, on_units(masks, pattern))))


class _ExactMaps:
    """Local maps as rational numbers: integers over a scale."""

    def __init__(self, net: ReluNetwork) -> None:
        self._layers = [as_integers(homogeneous(dense(W), b)) for W, b in net.layers]
        self._known: dict[tuple[int, tuple[tuple[int, ...], ...]], tuple[Integers, int]] = {}

    def regroup(self, group: list[_LocalMap]) -> list[list[_LocalMap]]:
        """Split a group into those that are parallel indeed."""
        parts: dict[tuple[int, ...], list[_LocalMap]] = defaultdict(list)
        for local in group:
            parts[direction(self._map(local)[0])].append(local)
        return [part for part in parts.values() if len(part) > 1]

    def is_zero(self, local: _LocalMap) -> bool:
        """Return whether the map is identically zero."""
        return not any(self._map(local)[0])

    def factor(self, top: _LocalMap, bottom: _LocalMap) -> Fraction:
        """Return c with ``top = c bottom``, both not zero."""
        (a, a_scale), (b, b_scale) = self._map(top), self._map(bottom)
        place = next(i for i, entry in enumerate(b) if entry)
        return Fraction(int(a[place]) * b_scale, int(b[place]) * a_scale)

    def _map(self, local: _LocalMap) -> tuple[Integers, int]:
        key = local.layer, local.on
        if key not in self._known:
            (product, scale), *rest = self._layers[: local.layer]
            for (weight, factor), units in zip(rest, local.on, strict=True):
                chosen = [*units, len(product) - 1]
                product, scale = weight[:, chosen] @ product[chosen], scale * factor
            self._known[key] = product, scale
        product, scale = self._known[key]
        return product[local.unit], scale


def _zero(local: _LocalMap, *, exact: bool) -> Violation:
    given = f" with these units on: {say_pattern(local.on)}" if local.on else ""
    return Violation("G3", local.layer, (local.unit,), f"identically zero{given}", exact)


def _multiples(groups: list[list[_LocalMap]], exact: _ExactMaps | None) -> list[Violation]:
    """Return one violation for each pair of units that have parallel maps: the simplest."""
    pairs: dict[tuple[int, ...], tuple[_LocalMap, _LocalMap]] = {}
    for group in groups:
        bottom, *others = sorted(group, key=_complexity)
        for local in others:
            key = (local.layer, local.unit, bottom.layer, bottom.unit)
            if key not in pairs or _complexity(local) < _complexity(pairs[key][0]):
                pairs[key] = local, bottom
    found = []
    for local, bottom in pairs.values():
        factor = "a multiple of" if exact is None else f"{_short(exact.factor(local, bottom))} times"
        given = f"with these units on: {say_pattern(local.on)}, it is " if local.on else ""
        detail = f"{given}{factor} {bottom}"
        found.append(Violation("G3", local.layer, (local.unit,), detail, exact is not None))
    return found


def _complexity(local: _LocalMap) -> tuple[int, int, int]:
    return local.layer, sum(map(len, local.on)), local.unit


def _short(ratio: Fraction) -> str:
    try:
        return f"{float(ratio):.6g}"
    except OverflowError:
        return "a large number of"
