"""Compiled enumeration of tuples of cells for losses that are not quadratic."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pindown.affine import Array, Integers
from pindown.learn.exact._compiled import compiled
from pindown.learn.exact._compiled.interior_point import follow, point_loss
from pindown.learn.exact._compiled.squared import (
    Cells,
    Found,
    blank,
    is_on,
    keep,
    leave_open,
    most_facets,
    skip_below,
)

# The path is followed until the bound is this much closer to the value than what counts as an
# improvement.
_CLOSER = 0.25


class Rows(NamedTuple):
    """The samples: several may share a point."""

    kind: int
    point: Integers
    y: Array
    mass: Array


@compiled
def convex_loss(cells: Cells, rows: Rows, signs: Integers, phi: Array, shift: float) -> float:
    """Return the penalised loss of the network itself, by a forward pass."""
    r, total = cells.points.shape[1], 0.0
    for j in range(len(rows.y)):
        f = shift
        for u in range(len(signs)):
            value = 0.0
            for i in range(r):
                value += phi[u * r + i] * cells.points[rows.point[j], i]
            if value * signs[u] > 0:
                f += value
        total += rows.mass[j] * point_loss(rows.kind, f, rows.y[j])
    for u in range(len(signs)):
        for i in range(r):
            total += cells.ridge[i] * phi[u * r + i] ** 2
    return total


@compiled
def _features(cells: Cells, rows: Rows, chosen: Integers, biased: bool, A: Array) -> None:
    r = cells.points.shape[1]
    for j in range(len(rows.y)):
        for u in range(len(chosen)):
            on = is_on(cells.sides, chosen[u], rows.point[j])
            for i in range(r):
                A[j, u * r + i] = cells.points[rows.point[j], i] if on else 0.0
        if biased:
            A[j, len(chosen) * r] = 1.0


@compiled
def _cones(cells: Cells, chosen: Integers, signs: Integers, K: Array, theta: Array) -> int:
    """Write the facets of the signed cones, and an interior point of them."""
    r, count = cells.points.shape[1], 0
    theta[:] = 0.0
    for u in range(len(chosen)):
        for i in range(r):
            theta[u * r + i] = signs[u] * cells.inside[chosen[u], i]
        for f in range(cells.facet_start[chosen[u]], cells.facet_start[chosen[u] + 1]):
            point = cells.facets[f]
            side = signs[u] if is_on(cells.sides, chosen[u], point) else -signs[u]
            K[count, :] = 0.0
            for i in range(r):
                K[count, u * r + i] = side * cells.points[point, i]
            count += 1
    return count


@compiled
def try_tuple(
    cells: Cells,
    rows: Rows,
    chosen: Integers,
    biased: bool,
    found: Found,
    A: Array,
    K: Array,
    penalty: Array,
) -> None:
    """Bound a tuple without its cones, then solve its cone programs for all signs."""
    width, m = len(chosen), A.shape[1]
    _features(cells, rows, chosen, biased, A)
    found.counts[0] += 1
    theta = np.zeros(m)
    skip = skip_below(cells, found.loss[0])
    precision = _CLOSER * cells.margins[1]
    if found.loss[0] < np.inf:
        precision += _CLOSER * cells.margins[0] * found.loss[0]
    no_cone = np.int64(0)  # a plain 0 would compile the path twice
    if follow(rows.kind, A, rows.y, rows.mass, penalty, K, no_cone, theta, skip, precision) >= skip:
        return
    signs = np.empty(width, np.int64)
    for code in range(2**width):
        repeated = False
        for u in range(width):
            signs[u] = 1 if (code >> u) & 1 else -1
            if u > 0 and chosen[u] == chosen[u - 1] and signs[u] < signs[u - 1]:
                repeated = True
        if repeated:
            continue
        count = _cones(cells, chosen, signs, K, theta)
        skip = skip_below(cells, found.loss[0])
        bound = follow(rows.kind, A, rows.y, rows.mass, penalty, K, count, theta, skip, precision)
        found.counts[1] += 1
        if bound >= skip:
            continue
        shift = theta[m - 1] if biased else 0.0
        loss = convex_loss(cells, rows, signs, theta, shift)
        keep(found, loss, theta[: len(found.phi)], shift, chosen, signs)
        if bound < skip_below(cells, found.loss[0]):
            leave_open(found, bound, chosen, signs)


@compiled
def _room(cells: Cells, rows: Rows, width: int, biased: bool) -> tuple[Array, Array, Array]:
    r = cells.points.shape[1]
    m = width * r + (1 if biased else 0)
    penalty = np.zeros(m)
    for u in range(width):
        penalty[u * r : (u + 1) * r] = cells.ridge
    return np.zeros((len(rows.y), m)), np.zeros((width * most_facets(cells), m)), penalty


@compiled
def search_convex_rows(
    cells: Cells, rows: Rows, first: int, last: int, width: int, biased: bool, found: Found
) -> None:
    """Examine every tuple ``c_1 <= ... <= c_w`` of cells with ``first <= c_1 < last``."""
    n = len(cells.parent)
    A, K, penalty = _room(cells, rows, width, biased)
    chosen = np.zeros(width, np.int64)
    chosen[:] = first
    while chosen[0] < last:
        try_tuple(cells, rows, chosen, biased, found, A, K, penalty)
        level = width - 1
        while level > 0 and chosen[level] == n - 1:
            level -= 1
        chosen[level:] = chosen[level] + 1


@compiled
def descend_convex(
    cells: Cells, rows: Rows, start: Integers, biased: bool, found: Found, patience: int
) -> None:
    """Walk from a tuple of cells to better neighbours across facets until none is better."""
    A, K, penalty = _room(cells, rows, len(start), biased)
    here = blank(found)
    chosen = start.copy()
    try_tuple(cells, rows, chosen, biased, here, A, K, penalty)
    for _ in range(patience):
        before, centre = here.loss[0], here.chosen.copy()
        for u in range(len(start)):
            for f in range(cells.facet_start[centre[u]], cells.facet_start[centre[u] + 1]):
                if cells.across[f] > 0:
                    chosen[:] = centre
                    chosen[u] = cells.across[f]
                    try_tuple(cells, rows, chosen, biased, here, A, K, penalty)
        if here.loss[0] >= skip_below(cells, before):
            break
    keep(found, here.loss[0], here.phi, here.shift[0], here.chosen, here.signs)
