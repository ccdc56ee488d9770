r"""Counting what hyperplanes cut a polytope into, without building the pieces.

A new hyperplane adds one cell for every cell that the earlier ones cut *it* into:

.. math::
    r(P; H_1, \dots, H_k) = 1 + \sum_j r(P \cap H_j;\; H_1, \dots, H_{j-1}),

where hyperplanes that do not cut :math:`P \cap H_j` are left out, and a :math:`H_j` that meets P
where an earlier one does adds nothing. So cells are counted by slices of ever lower dimension,
down to points on segments. (Deletion and restriction: Zaslavsky 1975, "Facing up to arrangements".)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.geometry._compiled import copy, inner
from pindown.geometry._compiled.arrays import ROW
from pindown.geometry._compiled.exact_residues import USED, new_vertex, put_facet
from pindown.geometry._compiled.faces import adjacent, is_simple, is_torn
from pindown.geometry._compiled.layer_maps import CROSSES, UNKNOWN, VANISHES, row_of, settle, side
from pindown.geometry._compiled.polygon import UNDECIDED, count_distinct
from pindown.geometry._compiled.polytope import (
    norm_of,
    put_shared_facets,
    shared_labels,
    signs_at,
    zeros_are_exact,
)
from pindown.geometry._compiled.vertex_errors import ULP, edge_error, vertex_error

NO_SPACE = -2

N_VERTICES, N_EDGES, N_LINES, TAKEN, CUT_BY, NUMBERED = range(6)  # columns of Slices.counts


class Slices(NamedTuple):
    """Nested slices: entry s of each array has dimension d - s, the polytope itself at 0."""

    counts: NDArray[np.int64]
    coords: Array
    masks: NDArray[np.uint64]
    edges: NDArray[np.int32]
    lines: NDArray[np.int32]  # units whose zero sets cut the slice
    signs: NDArray[np.int32]
    values: Array


def new_slices(dim: int, columns: int, words: int, vertices: int, edges: int, lines: int) -> Slices:
    """Reserve room for slices of at most this many vertices, edges and hyperplanes."""
    return Slices(
        counts=np.zeros((dim, 6), np.int64),
        coords=np.zeros((dim, vertices, columns)),
        masks=np.zeros((dim, vertices, words), np.uint64),
        edges=np.zeros((dim, edges, 2), np.int32),
        lines=np.zeros((dim, lines), np.int32),
        signs=np.zeros(vertices, np.int32),
        values=np.zeros(vertices),
    )


@inner
def count_polytope(net, work, certified, level, labels, slices):
    """Count the cells of the polytope in entry 0 of ``slices``; negative if it could not be done."""
    counts, total, s = slices.counts, 1, 0
    counts[0, TAKEN] = 0
    if certified is not None:
        counts[0, NUMBERED] = certified.state[USED]
    while s >= 0:
        if counts[s, TAKEN] == counts[s, N_LINES]:
            s -= 1
            continue
        counts[s, TAKEN] += 1
        status = _slice(net, work, certified, level, labels, slices, s)
        if status > 0:
            status = _lines_across(net, work, certified, level, slices, s + 1)
        if status < 0:
            return status
        if status == 0:  # it coincides with an earlier one
            continue
        total += 1
        if s + 2 == net.dim:
            distinct = _points(net, work, certified, level, slices, s + 1)
            if distinct < 0:
                return distinct
            total += distinct
        else:
            s += 1
            counts[s, TAKEN] = 0
    return total


@inner
def _slice(net, work, certified, level, labels, slices, s):
    """Fill entry s + 1 with the slice of entry s by the hyperplane last taken."""
    d, unit = net.dim, slices.lines[s, slices.counts[s, TAKEN] - 1]
    label = net.starts[level] + unit
    row, bound = work.vectors[ROW], work.bounds[label]
    row_of(net, work.maps, level, unit, row)
    coords, masks, edges, n = (
        slices.coords[s],
        slices.masks[s],
        slices.edges[s],
        slices.counts[s, N_VERTICES],
    )
    signs, values, new, new_masks = (
        slices.signs,
        slices.values,
        slices.coords[s + 1],
        slices.masks[s + 1],
    )
    certain = signs_at(d, certified, row, bound, coords, n, signs, values)
    if certified is not None and not certain:
        certain = zeros_are_exact(net, work, certified, label, row, coords, n, signs)
    if not certain:
        return UNDECIDED
    norm = norm_of(row, d)
    slices.counts[s, CUT_BY] = label
    count = 0
    for k in range(n):
        if signs[k] == 0:
            copy(new[count], coords[k])
            copy(new_masks[count], masks[k])
            count += 1
    n_edges = slices.counts[s, N_EDGES]
    if certified is not None:
        certified.state[USED] = slices.counts[s, NUMBERED]
        if certified.state[USED] + n_edges + 1 > len(certified.facets):
            return NO_SPACE
    if count > 1 and is_torn(d - s, signs, masks, n, edges, n_edges):
        return UNDECIDED
    for e in range(n_edges):
        u, v = edges[e, 0], edges[e, 1]
        if signs[u] * signs[v] < 0:
            if count == len(new):
                return NO_SPACE
            t = values[u] / (values[u] - values[v])
            for c in range(d):
                new[count, c] = coords[u, c] + t * (coords[v, c] - coords[u, c])
            for w in range(masks.shape[1]):
                new_masks[count, w] = masks[u, w] & masks[v, w]
            new[count, d] = 0.0
            if certified is not None:
                new[count, d] = edge_error(
                    d, work, coords[u], coords[v], values[u], values[v], norm, bound
                )
                if new[count, d] == np.inf:
                    shared_labels(masks[u], masks[v], labels, work.labels)
                    for k in range(s + 1):
                        work.labels[d - 1 - k] = slices.counts[k, CUT_BY]
                    new[count, d] = vertex_error(net, work, new[count])
                number = new_vertex(certified)
                for k in range(s + 1):
                    put_facet(certified, number, slices.counts[k, CUT_BY], True)
                put_shared_facets(certified, number, masks[u], masks[v], labels)
                new[count, d + 1] = number
            count += 1
    slices.counts[s + 1, N_VERTICES] = count
    if certified is not None:
        slices.counts[s + 1, NUMBERED] = certified.state[USED]
    return 1 if _join(d - s - 1, slices, s + 1) else NO_SPACE


@inner
def _join(dim, slices, s):
    """Find the edges of the slice in entry s, which has dimension ``dim``."""
    n, masks, edges, count = slices.counts[s, N_VERTICES], slices.masks[s], slices.edges[s], 0
    if dim > 1:
        simple = is_simple(dim, masks, n)
        for p in range(n):
            for q in range(p):
                if adjacent(dim, masks, n, p, q, simple):
                    if count == len(edges):
                        return False
                    edges[count, 0], edges[count, 1] = p, q
                    count += 1
    slices.counts[s, N_EDGES] = count
    return True


@inner
def _lines_across(net, work, certified, level, slices, s):
    """Keep the earlier hyperplanes that cut the slice in entry s: 1, or 0 if one contains it."""
    n, coords, kept, row = slices.counts[s, N_VERTICES], slices.coords[s], 0, work.vectors[ROW]
    for k in range(slices.counts[s - 1, TAKEN] - 1):
        unit = slices.lines[s - 1, k]
        row_of(net, work.maps, level, unit, row)
        label = net.starts[level] + unit
        verdict = side(net.dim, row, work.bounds[label], certified, coords, n)
        if certified is not None and verdict == UNKNOWN:
            verdict = settle(net, work, certified, label, row, coords, n)
        if verdict == CROSSES:
            slices.lines[s, kept] = unit
            kept += 1
        elif verdict == UNKNOWN:
            return UNDECIDED
        elif verdict == VANISHES:
            return 0
    slices.counts[s, N_LINES] = kept
    return 1


@inner
def _points(net, work, certified, level, slices, s):
    """Count the distinct points in which hyperplanes cut the segment in entry s."""
    d, coords, found, row = net.dim, slices.coords[s], work.found, work.vectors[ROW]
    end = _far_end(d, coords, slices.counts[s, N_VERTICES])
    n = slices.counts[s, N_LINES]
    for k in range(n):
        unit = slices.lines[s, k]
        row_of(net, work.maps, level, unit, row)
        a = b = row[d]
        norm = 0.0
        for c in range(d):
            a += row[c] * coords[0, c]
            b += row[c] * coords[end, c]
            norm += abs(row[c])
        zero = work.bounds[net.starts[level] + unit] + norm * max(coords[0, d], coords[end, d])
        found[k, 0] = a / (a - b)
        found[k, 1] = zero / abs(a - b) + 4 * ULP
        found[k, 2], found[k, 3] = net.starts[level] + unit, abs(a - b)
    for k in range(d - 1):
        work.labels[k] = slices.counts[k, CUT_BY]
    return count_distinct(net, work, certified, n)


@inner
def _far_end(d, coords, n):
    """Return the vertex farthest from vertex 0: rounding may give a segment more than two."""
    best, end = -1.0, 0
    for k in range(1, n):
        distance = 0.0
        for c in range(d):
            distance += abs(coords[k, c] - coords[0, c])
        if distance > best:
            best, end = distance, k
    return end
