"""Which cells share a facet, and which of them share their affine map as well."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

from pindown.affine import Array
from pindown.box import Box
from pindown.geometry.complex.cells import Cells, following, unpack_patterns
from pindown.geometry.nearness import SAME, layer_scales, relative, same_place
from pindown.network import ReluNetwork

Pairs = NDArray[np.int64]


class Dual(NamedTuple):
    """Pairs i < j of cells that share a facet, sorted.

    Attributes:
        pairs: The cells, (m, 2).
        units: The unit whose zero set holds the facet, (m,).
        sides: The facet as each of the two lists it, places in ``cells.facets``, -1 if unknown.
    """

    pairs: Pairs
    units: NDArray[np.int64]
    sides: Pairs


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
    from pindown.geometry.kernels.adjacency import match_neighbours

    n, n_open = match_neighbours(
        cells.keys, cells.facet_starts, cells.facets, cells.flips, table, pairs, sides, unmatched
    )
    pairs, sides = pairs[:n], sides[:n]
    if n_open:
        more, facets = _matched_by_place(cells, box, unmatched[:n_open])
        pairs, sides = np.concatenate([pairs, more]), np.concatenate([sides, facets])
    order = np.lexsort(pairs.T[::-1])
    new = np.append(True, np.any(np.diff(pairs[order], axis=0) != 0, axis=1))  # convex cells share one
    order = order[new[: len(order)]]
    pairs, sides = pairs[order], sides[order]
    labels = cells.facets[sides]
    units = np.where(sides[:, 1] < 0, labels[:, 0], labels.min(axis=1, initial=2**31 - 1))
    return Dual(pairs, units.astype(np.int64), sides)


def _matched_by_place(cells: Cells, box: Box, unmatched: Pairs) -> tuple[Pairs, Pairs]:
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


def merge_pieces(net: ReluNetwork, cells: Cells, pairs: Pairs, box: Box) -> NDArray[np.int64]:
    """Return for each cell its piece: neighbours with the same affine map are joined."""
    from scipy.sparse.csgraph import connected_components

    same = equal_maps(net, cells.maps, pairs, box)
    i, j = pairs[same].T
    graph = coo_array((np.ones(len(i), bool), (i, j)), shape=(cells.n, cells.n))
    return connected_components(graph, directed=False)[1].astype(np.int64)


def equal_maps(net: ReluNetwork, maps: Array, pairs: Pairs, box: Box) -> NDArray[np.bool_]:
    """Return for pairs of cells whether they have one affine map, to rounding, anywhere on the box.

    Rounding is measured by the terms of the output, not by its value, for they may cancel.
    """
    i, j = pairs.T
    reach = np.append(np.maximum(np.abs(box.lower), np.abs(box.upper)), 1.0)
    gap = np.einsum("pck,c->pk", np.abs(maps[i] - maps[j]), reach)
    return np.all(gap <= SAME * layer_scales(net, box)[-1], axis=1)
