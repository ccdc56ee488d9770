"""Compiled walks over tuples of cells for squared loss: where other losses begin."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pindown.affine import Array, Integers
from pindown.learn.exact._compiled import compiled
from pindown.learn.exact._compiled.cone_projection import backward, extend, forward, project


class Cells(NamedTuple):
    """What the search reads: points with weights, the cells' graph, each cell's own least squares."""

    points: Array  # (D, r) whitened, last coordinate one
    mass: Array  # sample weights, summed over equal points
    target: Array  # weighted mean of y over equal points
    sides: npt.NDArray[np.uint8]
    parent: Integers
    added: Integers
    facet_start: Integers
    facets: Integers
    across: Integers
    inside: Array  # (N, r) weights in the interior of each cell
    outer: Array  # (D, r, r) mass * p p^T
    block: Array  # (N, r, r) sum of those over the points that are on, plus the ridge
    moment: Array  # (N, r) sum of mass * p * target
    share: Array  # (N, r) sum of mass * p / sqrt(total mass); zero without an output bias
    ridge: Array  # (r,) penalty on each coordinate
    floor: Array  # (r,) what keeps factorisations of dependent columns positive
    shift: float  # weighted mean of the target; zero without an output bias
    constant: float  # loss that no prediction can avoid: spread of y over equal points
    energy: float  # sum of mass * (target - shift)^2
    margins: Array  # (2,) what counts as no improvement: relative to the best loss, and absolute


@compiled
def is_on(sides: npt.NDArray[np.uint8], cell: int, point: int) -> int:
    """Return 1 if a cell's unit is on at a point."""
    return (sides[cell, point >> 3] >> (7 - (point & 7))) & 1


@compiled
def own_sums(
    parent: Integers, added: Integers, outer: Array, moment: Array, share: Array
) -> tuple[Array, Array, Array]:
    """Sum over the points that are on, for every cell, each from its parent by one addition."""
    n, r = len(parent), outer.shape[1]
    blocks, moments, shares = np.zeros((n, r, r)), np.zeros((n, r)), np.zeros((n, r))
    for c in range(1, n):  # entry by entry: sums of whole arrays take seconds to compile
        before, point = parent[c], added[c]
        for i in range(r):
            moments[c, i] = moments[before, i] + moment[point, i]
            shares[c, i] = shares[before, i] + share[point, i]
            for k in range(r):
                blocks[c, i, k] = blocks[before, i, k] + outer[point, i, k]
    return blocks, moments, shares


@compiled
def _cone_normals(cells: Cells, chosen: Integers, L: Array, normals: Array, owner: Integers) -> int:
    """Write the facets of all cones as unit normals in the coordinates ``z = L^T phi``, for signs +1."""
    width, r = len(chosen), cells.points.shape[1]
    m, count = width * r, 0
    for u in range(width):
        for f in range(cells.facet_start[chosen[u]], cells.facet_start[chosen[u] + 1]):
            row, point = normals[count], cells.facets[f]
            side = 1.0 if is_on(cells.sides, chosen[u], point) else -1.0
            for i in range(m):
                row[i] = 0.0
            for i in range(r):
                row[u * r + i] = side * cells.points[point, i]
            forward(L, row, m)
            length = 0.0
            for i in range(m):
                length += row[i] * row[i]
            length = np.sqrt(length)
            for i in range(m):
                row[i] /= length
            owner[count] = u
            count += 1
    return count


@compiled
def loss_of(cells: Cells, signs: Integers, phi: Array, shift: float) -> float:
    """Return the penalised loss of the network itself, by a forward pass."""
    r, width = cells.points.shape[1], len(signs)
    total = cells.constant
    for j in range(len(cells.points)):
        error = shift - cells.target[j]
        for u in range(width):
            value = 0.0
            for i in range(r):
                value += phi[u * r + i] * cells.points[j, i]
            if value * signs[u] > 0:
                error += value
        total += cells.mass[j] * error * error
    for u in range(width):
        for i in range(r):
            total += cells.ridge[i] * phi[u * r + i] ** 2
    return total


@compiled
def _best_shift(cells: Cells, chosen: Integers, phi: Array, biased: bool) -> float:
    if not biased:
        return 0.0
    r, total = cells.points.shape[1], cells.shift
    mass = cells.mass.sum()
    for u in range(len(chosen)):
        for i in range(r):
            total -= cells.share[chosen[u], i] * phi[u * r + i] / np.sqrt(mass)
    return total


@compiled
def skip_below(cells: Cells, best: float) -> float:
    """Return the value from which a bound rules a program out: it could improve by rounding only."""
    if best == np.inf:
        return best
    return best - cells.margins[0] * best - cells.margins[1]


class Found(NamedTuple):
    """The best network so far; arrays of one element are counters that compiled code can write."""

    loss: Array  # (1,)
    phi: Array  # (width * r,)
    shift: Array  # (1,)
    chosen: Integers
    signs: Integers
    counts: Integers  # (3,) tuples bounded, cone programs solved, programs left open
    # The bounds of programs that float64 could not decide; the last holds all that do not fit.
    open_bound: Array
    open_chosen: Integers  # (len(open_bound), width) their cells
    open_signs: Integers


@compiled
def keep(found: Found, loss: float, phi: Array, shift: float, chosen: Integers, signs: Integers) -> None:
    """Keep a network if it is the best so far."""
    if loss < found.loss[0]:
        found.loss[0] = loss
        found.phi[:] = phi
        found.shift[0] = shift
        found.chosen[:] = chosen
        found.signs[:] = signs


@compiled
def leave_open(found: Found, bound: float, chosen: Integers, signs: Integers) -> None:
    """Write down a program whose bound is below the best loss though no better network was found."""
    place = min(found.counts[2], len(found.open_bound) - 1)
    found.open_bound[place] = min(bound, found.open_bound[place])
    found.open_chosen[place] = chosen
    found.open_signs[place] = signs
    found.counts[2] += 1


@compiled
def _try_cones(
    cells: Cells, chosen: Integers, L: Array, p: Array, biased: bool, found: Found, room: Any, work: Any
) -> None:
    """Solve the cone programs of a tuple for all signs, and keep the best network."""
    normals, signed, owner = room
    width, m = len(chosen), len(p)
    count = _cone_normals(cells, chosen, L, normals, owner)
    signs = np.empty(width, np.int64)
    for code in range(2**width):
        repeated = False
        for u in range(width):
            signs[u] = 1 if (code >> u) & 1 else -1
            if u > 0 and chosen[u] == chosen[u - 1] and signs[u] < signs[u - 1]:
                repeated = True  # the same two units in the other order
        if repeated:
            continue
        for k in range(count):
            for i in range(m):
                signed[k, i] = signs[owner[k]] * normals[k, i]
        skip = skip_below(cells, found.loss[0])
        enough = cells.energy + cells.constant - skip
        length, active = project(signed, count, p, enough, work)
        found.counts[1] += 1
        bound = cells.energy + cells.constant - length
        if active == -1 or bound >= skip:
            continue
        phi = work[5].copy()
        backward(L, phi, m)
        shift = _best_shift(cells, chosen, phi, biased)
        loss = loss_of(cells, signs, phi, shift)
        keep(found, loss, phi, shift, chosen, signs)
        if bound < skip_below(cells, found.loss[0]):
            leave_open(found, bound, chosen, signs)


@compiled
def _workspace(m: int, most: int) -> Any:
    return (
        np.empty(m + 1, np.int64),
        np.empty(m + 1),
        np.empty(m + 1),
        np.empty((m + 1, m)),
        np.empty((m + 1, m + 1)),
        np.empty(m),
    )


@compiled
def most_facets(cells: Cells) -> int:
    """Return the largest number of facets of a cell."""
    most = 0
    for c in range(len(cells.parent)):
        most = max(most, cells.facet_start[c + 1] - cells.facet_start[c])
    return most


@compiled
def descend(cells: Cells, start: Integers, biased: bool, found: Found, patience: int) -> None:
    """Walk from a tuple of cells to better neighbours across facets until none is better."""
    width, r = len(start), cells.points.shape[1]
    m = width * r
    L, p, block = np.zeros((m, m)), np.zeros(m), np.zeros((r, r))
    most = width * most_facets(cells)
    room = (np.empty((most, m)), np.empty((most, m)), np.empty(most, np.int64))
    work = _workspace(m, most)
    here = blank(found)
    chosen = start.copy()
    _solve_tuple(cells, chosen, L, p, block, biased, here, room, work)
    for _ in range(patience):
        before = here.loss[0]
        centre = here.chosen.copy()
        for u in range(width):
            for f in range(cells.facet_start[centre[u]], cells.facet_start[centre[u] + 1]):
                if cells.across[f] > 0:
                    chosen[:] = centre
                    chosen[u] = cells.across[f]
                    _solve_tuple(cells, chosen, L, p, block, biased, here, room, work)
        if here.loss[0] >= skip_below(cells, before):
            break
    keep(found, here.loss[0], here.phi, here.shift[0], here.chosen, here.signs)


@compiled
def blank(found: Found) -> Found:
    """Return a record of the same shape in which nothing is found yet."""
    return Found(
        np.full(1, np.inf),
        np.zeros_like(found.phi),
        np.zeros(1),
        np.zeros_like(found.chosen),
        np.zeros_like(found.signs),
        np.zeros(3, np.int64),
        np.full(len(found.open_bound), np.inf),
        np.zeros_like(found.open_chosen),
        np.zeros_like(found.open_signs),
    )


@compiled
def _solve_tuple(
    cells: Cells,
    chosen: Integers,
    L: Array,
    p: Array,
    block: Array,
    biased: bool,
    found: Found,
    room: Any,
    work: Any,
) -> None:
    """Solve all cone programs of one tuple, from its points."""
    width, r = len(chosen), cells.points.shape[1]
    for level in range(width):
        new, size = chosen[level], level * r
        for q in range(level):
            for i in range(r):
                for k in range(r):
                    L[size + i, q * r + k] = -cells.share[new, i] * cells.share[chosen[q], k]
            for j in range(len(cells.points)):
                if is_on(cells.sides, new, j) and is_on(cells.sides, chosen[q], j):
                    for i in range(r):
                        for k in range(r):
                            L[size + i, q * r + k] += cells.outer[j, i, k]
        for i in range(r):
            for k in range(i + 1):
                block[i, k] = cells.block[new, i, k] - cells.share[new, i] * cells.share[new, k]
        extend(L, p, size, r, block, cells.moment[new], cells.floor)
    bound = cells.energy + cells.constant
    for i in range(len(p)):
        bound -= p[i] * p[i]
    if bound < skip_below(cells, found.loss[0]):
        _try_cones(cells, chosen, L, p, biased, found, room, work)
