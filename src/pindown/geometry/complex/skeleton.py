"""Vertices and edges of a complex, each once, with the signs of all units there."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array

from pindown.affine import Array
from pindown.box import Box
from pindown.geometry.complex.cells import Cells, following
from pindown.geometry.nearness import SAME, layer_scales, relative, same_place, zero_bounds
from pindown.network import ReluNetwork

Ids = NDArray[np.int64]

_MOST_COORDINATES = 12


def merged_vertices(cells: Cells, box: Box, sides: Ids, complete: bool) -> tuple[Array, Ids]:
    """Return all vertices, each once, and for every vertex of every cell which one it is.

    Args:
        cells: The cells.
        box: Their domain.
        sides: Facets that two cells share, as each lists it, (m, 2).
        complete: Whether these are all cells; in the plane, those around a vertex are then joined by
            sides, which tell vertices apart however close they are. Else coordinates do.
    """
    if cells.dim == 2 and complete:
        ids = _joined(len(cells.coords), *_shared_ends(cells, sides))
    else:
        ids = group_near(relative(cells.coords, box), same_place(box))
    n = int(ids.max(initial=-1)) + 1
    first = np.full(n, len(ids))
    np.minimum.at(first, ids, np.arange(len(ids)))
    return cells.coords[first], ids


def _shared_ends(cells: Cells, sides: Ids) -> tuple[Ids, Ids]:
    """Return pairs of rows of ``cells.coords`` that are one vertex.

    Two polygons, both counter-clockwise, run along the side between them in opposite directions.
    """
    here, there = sides[sides[:, 1] >= 0].T
    after = following(cells.vertex_starts)
    return np.concatenate([here, after[here]]), np.concatenate([after[there], there])


def _joined(n: int, i: Ids, j: Ids) -> Ids:
    """Number n things from 0 such that i and j get one number, for all pairs given."""
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(i), bool), (i, j)), shape=(n, n))
    return connected_components(graph, directed=False)[1].astype(np.int64)


def group_near(points: Array, width: float) -> Ids:
    """Number points such that those much nearer than ``width`` share a number.

    Points are put on a grid; since near points may fall on two sides of a grid line, d + 1 grids are
    used, each shifted: in one of them at least, near points share a box. Points of many coordinates
    are told apart by a few random combinations of these.
    """
    rng = np.random.default_rng(0)
    if points.shape[1] > _MOST_COORDINATES:
        mix = rng.standard_normal((points.shape[1], _MOST_COORDINATES))
        points = points @ (mix / np.sqrt(points.shape[1]))
    n, d = points.shape
    rows, columns, total = [], [], 0
    for shift in range(d + 1):
        boxes = np.floor(points / width + shift / (d + 1)).astype(np.int64).view(np.uint64)
        factors = rng.integers(0, 2**63, d, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
        with np.errstate(over="ignore"):
            _, number = np.unique((boxes * factors).sum(axis=1, dtype=np.uint64), return_inverse=True)
        rows.append(np.arange(n))
        columns.append(n + total + number)
        total += int(number.max(initial=-1)) + 1
    groups = _joined(n + total, np.concatenate(rows), np.concatenate(columns))[:n]
    return np.unique(groups, return_inverse=True)[1].astype(np.int64)


def vertex_signs(
    net: ReluNetwork, box: Box, cells: Cells, vertices: Array, ids: Ids
) -> NDArray[np.int8]:
    """Return the sign of every unit at every vertex: 0 where it vanishes, to rounding."""
    signs = signs_at(net, box, vertices)
    # Units that hold a facet vanish at its vertices, however ill-conditioned these are.
    place, label = _vertices_on_facets(cells)
    of_unit = label < net.size
    signs[ids[place[of_unit]], label[of_unit]] = 0
    return signs


def signs_at(net: ReluNetwork, box: Box, points: Array) -> NDArray[np.int8]:
    """Return the sign of every unit at some points: 0 where it vanishes, to rounding."""
    bounds = zero_bounds(net, box)
    signs = np.empty((len(points), net.size), np.int8)
    for part in net.chunks(len(points)):
        z = net.preactivations(points[part])
        signs[part] = np.where(np.abs(z) <= bounds, 0, np.sign(z))
    return signs


def _vertices_on_facets(cells: Cells) -> tuple[Ids, NDArray[np.int32]]:
    """Return pairs (row of ``cells.coords``, label of a facet through it)."""
    rows = np.arange(len(cells.coords))
    if cells.dim == 1:
        return rows, cells.facets
    if cells.dim == 2:
        after = following(cells.vertex_starts)
        return np.concatenate([rows, after]), np.concatenate([cells.facets, cells.facets])
    assert cells.masks is not None
    bits = np.unpackbits(cells.masks.view(np.uint8), axis=1, bitorder="little")
    place, bit = np.nonzero(bits)
    owner = np.repeat(np.arange(cells.n), np.diff(cells.vertex_starts))
    return place.astype(np.int64), cells.facets[cells.facet_starts[owner[place]] + bit]


def edges(cells: Cells, ids: Ids) -> Ids:
    """Return all edges of all cells, each once, as pairs of vertex numbers."""
    if cells.dim == 1:
        pairs = ids.reshape(-1, 2)
    elif cells.dim == 2:
        pairs = np.stack([ids, ids[following(cells.vertex_starts)]], axis=1)
    else:
        from pindown.geometry.kernels.adjacency import cell_edges

        found = np.empty((cells.dim * len(cells.coords), 2), np.int64)
        count = cell_edges(cells.dim, cells.vertex_starts, cells.masks, found)
        if count < 0:
            found = np.empty((-count, 2), np.int64)
            count = cell_edges(cells.dim, cells.vertex_starts, cells.masks, found)
        pairs = ids[found[:count]]
    pairs = np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1)
    n = int(ids.max(initial=-1)) + 1
    codes = np.unique(pairs[:, 0] * n + pairs[:, 1])  # many times faster than unique rows
    return np.stack(np.divmod(codes, max(n, 1)), axis=1)


def edge_signs(
    net: ReluNetwork, box: Box, vertices: Array, signs: NDArray[np.int8], pairs: Ids
) -> NDArray[np.int8]:
    """Return the sign of every unit inside every edge."""
    # A unit does not change sign inside an edge, so the sum of its signs at the ends has its sign.
    return np.sign(signs[pairs[:, 0]] + signs[pairs[:, 1]]).astype(np.int8)


def distinct_maps(net: ReluNetwork, cells: Cells, box: Box) -> int:
    """Return the number of different affine maps among the cells."""
    if cells.n == 0:
        return 0
    reach = np.append(np.maximum(np.abs(box.lower), np.abs(box.upper)), 1.0)
    scales = np.maximum(layer_scales(net, box)[-1], np.finfo(float).tiny)
    scaled = cells.maps * reach[None, :, None] / scales
    return int(group_near(scaled.reshape(cells.n, -1), SAME).max()) + 1


def locate(net: ReluNetwork, cells: Cells, box: Box, X: ArrayLike) -> Ids:
    """Return for each row of X the cell that has its pattern, -1 where there is none."""
    rows, _ = net.as_rows(X)
    order = np.argsort(cells.keys)
    found = _with_pattern(cells, order, net.pattern(rows))
    lost = np.flatnonzero(found < 0)
    # A unit that vanishes on a whole cell is on there, whatever sign rounding gives it.
    found[lost] = _with_pattern(cells, order, net.preactivations(rows[lost]) >= -zero_bounds(net, box))
    found[~box.contains(rows)] = -1
    return found


def _with_pattern(cells: Cells, order: Ids, patterns: NDArray[np.bool_]) -> Ids:
    """Return the cells with the given patterns, -1 for none; ``order`` sorts the keys of the cells."""
    keys = np.bitwise_xor.reduce(np.where(patterns, cells.hashes, np.uint64(0)), axis=1, dtype=np.uint64)
    if cells.n == 0:
        return np.full(len(keys), -1, np.int64)
    place = np.searchsorted(cells.keys, keys, sorter=order)
    found = order[np.minimum(place, cells.n - 1)]
    return np.where(cells.keys[found] == keys, found, -1).astype(np.int64)
