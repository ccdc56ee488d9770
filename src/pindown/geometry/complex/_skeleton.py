"""How the cells of a complex hang together: vertices and edges, each once, and the dual graph.

Cells that share a facet are neighbours in the dual graph; those that share their affine map as well are
one piece.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array

from pindown.affine import Array
from pindown.box import Box
from pindown.geometry.complex._cells import Cells, following, unpack_patterns
from pindown.geometry.nearness import SAME, layer_scales, relative, same_place, zero_bounds
from pindown.geometry.tuning import MAX_GROUPING_COORDINATES
from pindown.network import ReluNetwork

Ids = NDArray[np.int64]


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
    if points.shape[1] > MAX_GROUPING_COORDINATES:
        mix = rng.standard_normal((points.shape[1], MAX_GROUPING_COORDINATES))
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
        from pindown.geometry._compiled.faces import cell_edges

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


class Dual(NamedTuple):
    """Ids i < j of cells that share a facet, sorted.

    Attributes:
        pairs: The cells, (m, 2).
        units: The unit whose zero set holds the facet, (m,).
        sides: The facet as each of the two lists it, places in ``cells.facets``, -1 if unknown.
    """

    pairs: Ids
    units: NDArray[np.int64]
    sides: Ids


def dual_graph(cells: Cells, box: Box) -> Dual:
    """Find the cells that share a facet.

    Across a facet one unit changes its state, as a rule; the cell there is found by its pattern.
    Where several units change at once, the facets of both cells are matched by their centres:
    cells of a network meet face to face.
    """
    n_facets = len(cells.facets)
    table = np.full(1 << max(4, int(2 * cells.n).bit_length()), -1, np.int64)
    pairs, sides = np.empty((n_facets, 2), np.int64), np.empty((n_facets, 2), np.int64)
    unmatched = np.empty((n_facets, 2), np.int64)
    from pindown.geometry._compiled.faces import match_neighbours

    n, n_open = match_neighbours(
        cells.keys, cells.facet_starts, cells.facets, cells.flips, table, pairs, sides, unmatched
    )
    pairs, sides = pairs[:n], sides[:n]
    if n_open:
        more, facets = matched_by_place(cells, box, unmatched[:n_open])
        pairs, sides = np.concatenate([pairs, more]), np.concatenate([sides, facets])
    order = np.lexsort(pairs.T[::-1])
    new = np.append(True, np.any(np.diff(pairs[order], axis=0) != 0, axis=1))  # convex cells share one
    order = order[new[: len(order)]]
    pairs, sides = pairs[order], sides[order]
    labels = cells.facets[sides]
    units = np.where(sides[:, 1] < 0, labels[:, 0], labels.min(axis=1, initial=2**31 - 1))
    return Dual(pairs, units.astype(np.int64), sides)


def matched_by_place(cells: Cells, box: Box, unmatched: Ids) -> tuple[Ids, Ids]:
    """Pair facets of different cells that have the same centre and lie between them.

    In cells thinner than the rounding several facets do. Between neighbours only units whose zero sets
    hold the facet change, and units of later layers that these switch on or off. So pairs that differ
    in the fewest units of the first layer, then of the second, are made first, each facet once.
    """
    from scipy.spatial import cKDTree

    centers = relative(facet_centers(cells, unmatched[:, 1]), box)
    near = cKDTree(centers).query_pairs(same_place(box), output_type="ndarray")
    i, j = unmatched[near[:, 0], 0], unmatched[near[:, 1], 0]
    near = np.where((i < j)[:, None], near, near[:, ::-1])
    i, j = unmatched[near, 0].T
    changed = unpack_patterns(cells.patterns[i] ^ cells.patterns[j], cells.hidden_widths)
    here, there = cells.facets[unmatched[near, 1]].T
    rows = np.arange(len(near))
    between = changed[rows, here] & changed[rows, there]
    first_units = np.cumsum([0, *cells.hidden_widths[:-1]])
    order = np.lexsort(np.add.reduceat(changed, first_units, axis=1, dtype=np.int64).T[::-1])
    used, kept = np.zeros(len(unmatched), bool), []
    for row in order[between[order]].tolist():
        f, g = near[row]
        if not used[f] and not used[g]:
            used[f] = used[g] = True
            kept.append(row)
    chosen = near[kept].reshape(-1, 2)
    return unmatched[chosen, 0], unmatched[chosen, 1]


def facet_centers(cells: Cells, facets: NDArray[np.int64]) -> Array:
    """Return the mean of the vertices of some facets, given as places in ``cells.facets``."""
    if cells.dim == 1:
        # Two facets per cell, its two ends.
        return cells.coords[facets]
    if cells.dim == 2:
        return cells.coords[facets] / 2 + cells.coords[following(cells.vertex_starts)[facets]] / 2
    assert cells.masks is not None
    owner = np.searchsorted(cells.facet_starts, facets, side="right") - 1
    centers = np.empty((len(facets), cells.dim))
    for row, (facet, cell) in enumerate(zip(facets, owner, strict=True)):
        bit = int(facet - cells.facet_starts[cell])
        own = slice(cells.vertex_starts[cell], cells.vertex_starts[cell + 1])
        on = cells.masks[own, bit // 64] >> np.uint64(bit % 64) & np.uint64(1)
        centers[row] = cells.coords[own][on == 1].mean(axis=0)
    return centers


def merge_pieces(net: ReluNetwork, cells: Cells, pairs: Ids, box: Box) -> NDArray[np.int64]:
    """Return for each cell its piece: neighbours with the same affine map are joined."""
    i, j = pairs[equal_maps(net, cells.maps, pairs, box)].T
    return _joined(cells.n, i, j)


def equal_maps(net: ReluNetwork, maps: Array, pairs: Ids, box: Box) -> NDArray[np.bool_]:
    """Return for pairs of cells whether they have one affine map, to rounding, anywhere on the box.

    Rounding is measured by the terms of the output, not by its value, for they may cancel.
    """
    i, j = pairs.T
    reach = np.append(np.maximum(np.abs(box.lower), np.abs(box.upper)), 1.0)
    gap = np.einsum("pck,c->pk", np.abs(maps[i] - maps[j]), reach)
    return np.all(gap <= SAME * layer_scales(net, box)[-1], axis=1)
