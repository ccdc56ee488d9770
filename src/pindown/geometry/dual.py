"""Which cells share a facet, and which of them share their affine map as well."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from pindown.affine import Array
from pindown.geometry.box import Box
from pindown.geometry.cells import Cells, following
from pindown.geometry.nearness import SAME, layer_scales
from pindown.network import ReluNetwork

Pairs = NDArray[np.int64]


def dual_graph(cells: Cells, box: Box) -> tuple[Pairs, NDArray[np.int64]]:
    """Return pairs i < j of cells that share a facet, and the label of the unit that holds it.

    Across a facet one unit changes its state, as a rule; the cell there is found by its pattern.
    Where several units change at once, the facets of both cells are matched by their centres:
    cells of a network meet face to face.
    """
    n_facets = len(cells.facets)
    table = np.full(1 << max(4, int(2 * cells.n).bit_length()), -1, np.int64)
    pairs, labels = np.empty((n_facets, 2), np.int64), np.empty(n_facets, np.int64)
    unmatched = np.empty((n_facets, 2), np.int64)
    from pindown.geometry.kernels.adjacency import match_neighbours

    n, n_open = match_neighbours(
        cells.keys, cells.facet_starts, cells.facets, cells.flips, table, pairs, labels, unmatched
    )
    pairs, labels = pairs[:n], labels[:n]
    if n_open:
        more, units = _matched_by_place(cells, box, unmatched[:n_open])
        pairs, labels = np.concatenate([pairs, more]), np.concatenate([labels, units])
    order = np.lexsort(pairs.T[::-1])
    return pairs[order], labels[order]


def _matched_by_place(cells: Cells, box: Box, unmatched: Pairs) -> tuple[Pairs, NDArray[np.int64]]:
    """Pair facets of different cells that have the same centre."""
    centers = facet_centers(cells, unmatched[:, 1])
    near = cKDTree(centers).query_pairs(SAME * float(np.max(box.radius)), output_type="ndarray")
    i, j = unmatched[near[:, 0], 0], unmatched[near[:, 1], 0]
    apart = i != j
    labels = np.minimum(*cells.facets[unmatched[near, 1]].T)[apart]
    pairs = np.sort(np.stack([i, j], axis=1)[apart], axis=1)
    return pairs.astype(np.int64), labels.astype(np.int64)


def facet_centers(cells: Cells, facets: NDArray[np.int64]) -> Array:
    """Return the mean of the vertices of some facets, given as places in ``cells.facets``."""
    if cells.dim == 1:
        # Two facets per cell, its two ends.
        return cells.coords[facets]
    if cells.dim == 2:
        return (cells.coords[facets] + cells.coords[following(cells.vertex_starts)[facets]]) / 2
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
    same = equal_maps(net, cells, pairs, box)
    i, j = pairs[same].T
    graph = coo_array((np.ones(len(i), bool), (i, j)), shape=(cells.n, cells.n))
    return connected_components(graph, directed=False)[1].astype(np.int64)


def equal_maps(net: ReluNetwork, cells: Cells, pairs: Pairs, box: Box) -> NDArray[np.bool_]:
    """Return for pairs of cells whether they have one affine map, to rounding, anywhere on the box.

    Rounding is measured by the terms of the output, not by its value, for they may cancel.
    """
    i, j = pairs.T
    reach = np.append(np.maximum(np.abs(box.lower), np.abs(box.upper)), 1.0)
    gap = np.einsum("pck,c->pk", np.abs(cells.maps[i] - cells.maps[j]), reach)
    return np.all(gap <= SAME * layer_scales(net, box)[-1], axis=1)
