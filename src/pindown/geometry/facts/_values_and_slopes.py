r"""What facts about the function are read from: values at vertices and slopes, and when two are equal.

On every cell the network is affine, so its values at the cell's vertices say everything about it
there: they hold the largest and the smallest value, and the sign of every difference.

The slopes of the outputs on a cell are sums of terms from the last hidden layer,

.. math::
    A_{kc} = \sum_j W_{kj} \, \partial_c a_j , \qquad T_{kc} = \sum_j |W_{kj}| \, |\partial_c a_j| ,

and rounding disturbs them by some units in the last place of T: below ``RESOLUTION`` times T they are
taken for zero. The maps of a complex come from updates on the way from cell to cell and carry the
rounding of steeper cells. So most slopes are judged by the largest T of the complex, and those below it
are computed anew and judged by the T of their own cell.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Affine, Array, dense
from pindown.box import Box
from pindown.geometry.complex._cells import Cells, following
from pindown.geometry.complex.polyhedral import PolyhedralComplex
from pindown.geometry.nearness import RESOLUTION, SAME, unit_scales
from pindown.geometry.tuning import PROBED_CELLS, SLOPE_NUMBERS_PER_BLOCK
from pindown.network import ReluNetwork
from pindown.rounding import TINY, gamma
from pindown.validation import integer

Ids = NDArray[np.int64]

# Of a map for each unit, before it is built anew: 2 + _UPDATES_PER_UNIT of the compiled loops.
_MAX_UPDATES = 10


def output_number(net: ReluNetwork, output: Any) -> int:
    """Return which output is meant, or say which there are.

    Raises:
        ParameterError: If it is not an integer, or the network has no such output.
    """
    return integer("output", output, least=0, most=net.out_features - 1)


def vertex_values(cx: PolyhedralComplex) -> Array:
    """Return the outputs at all vertices of a complex, (V, k)."""
    points = np.clip(cx.vertices, cx.box.lower, cx.box.upper)
    return cx.net(points) if len(points) else np.zeros((0, cx.net.out_features))


def value_ties(net: ReluNetwork, box: Box) -> Array:
    r"""Return for each output the difference below which two of its values count as equal, (k,).

    It is ``RESOLUTION`` times the terms :math:`\sum_j |W_{ij}| a_j + |b_i|` of the output: see
    :mod:`~pindown.geometry.nearness`.

    >>> net = ReluNetwork.from_layers([([[3.0, -4.0]], [1])])
    >>> value_ties(net, Box([-1, -1], [1, 1])) == 8 * RESOLUTION
    array([ True])
    """
    k = net.out_features
    as_units = ReluNetwork((*net.layers, Affine.of(np.eye(k), np.zeros(k))))
    return RESOLUTION * unit_scales(as_units, box)[-k:]


def cell_edges(cells: Cells) -> Ids:
    """Return the edges of every cell as pairs of rows of ``cells.coords``; shared ones once per cell."""
    if cells.dim == 1:
        return np.arange(len(cells.coords)).reshape(-1, 2)
    if cells.dim == 2:
        return np.stack([np.arange(len(cells.coords)), following(cells.vertex_starts)], axis=1)
    from pindown.geometry._compiled.faces import cell_edges as write_edges

    found = np.empty((cells.dim * len(cells.coords), 2), np.int64)
    count = write_edges(cells.dim, cells.vertex_starts, cells.masks, found)
    if count < 0:
        found = np.empty((-count, 2), np.int64)
        count = write_edges(cells.dim, cells.vertex_starts, cells.masks, found)
    return found[:count]


def on_box_boundary(points: Array, box: Box) -> NDArray[np.bool_]:
    """Return which points lie on a side of the box, (n,)."""
    near = SAME * (box.upper - box.lower)
    return np.any((points - box.lower <= near) | (box.upper - points <= near), axis=1)


def open_vertices(cx: PolyhedralComplex) -> NDArray[np.bool_]:
    """Return at which vertices a cell may be missing, (V,): none if the complex is complete.

    Cells meet facet to facet. Where every facet through a vertex has a cell on both sides, or lies in
    the boundary of the box, all cells around the vertex have been found.
    """
    found = np.zeros(len(cx.vertices), bool)
    if cx.complete or not cx.n_regions:
        return found
    facets, rows = _facet_corners(cx.cells)
    ids = cx.vertex_ids[rows]
    marks = np.random.default_rng(0).integers(0, 2**64, len(found), dtype=np.uint64)
    keys = np.zeros(len(cx.cell_facets), np.uint64)
    np.add.at(keys, facets, marks[ids])  # one number per set of corners
    _, which, times = np.unique(keys, return_inverse=True, return_counts=True)
    unmatched = (times[which] == 1) & (cx.cell_facets < cx.net.size)
    found[ids[unmatched[facets]]] = True
    return found


def _facet_corners(cells: Cells) -> tuple[Ids, Ids]:
    """Return pairs (place in ``cells.facets``, row of ``cells.coords``) of facets and their corners."""
    rows = np.arange(len(cells.coords))
    if cells.dim == 1:
        return rows, rows
    if cells.dim == 2:
        return np.concatenate([rows, rows]), np.concatenate([rows, following(cells.vertex_starts)])
    assert cells.masks is not None
    bits = np.unpackbits(cells.masks.view(np.uint8), axis=1, bitorder="little")
    corner, bit = np.nonzero(bits)
    owner = np.repeat(np.arange(cells.n), np.diff(cells.vertex_starts))
    return cells.facet_starts[owner[corner]] + bit, corner


def slope_signs(cx: PolyhedralComplex) -> NDArray[np.int8]:
    """Return the sign of every slope of every cell, 0 within rounding, (n, k, d).

    >>> from pindown import ReluNetwork
    >>> from pindown.geometry.complex.polyhedral import polyhedral_complex
    >>> V = [[0.1, 0.2, -0.3], [0, 0, 2]]
    >>> net = ReluNetwork.from_layers([([[1.0]] * 3, [0, 0, 0]), (V, [0, 0])])
    >>> slope_signs(polyhedral_complex(net, (-1, 1)))[:, :, 0]
    array([[0, 0],
           [0, 1]], dtype=int8)
    """
    slopes = cx.A
    sure = np.abs(slopes) > _largest_ties(cx)
    signs = np.where(sure, np.sign(slopes), 0).astype(np.int8)
    unsure = np.flatnonzero(np.any(~sure & (slopes != 0), axis=(1, 2)))
    for part in blocks(cx, unsure):
        anew, ties = computed_anew(cx, part)
        signs[part] = np.where(np.abs(anew) > ties, np.sign(anew), 0)
    return signs


def slope_jumps(cx: PolyhedralComplex, pairs: Ids) -> Array:
    """Return what each output's gradient gains from cell i to cell j, 0 within rounding, (m, k, d)."""
    i, j = pairs.T
    slopes = cx.A
    jumps = slopes[j] - slopes[i]
    seen = np.any(np.abs(jumps) > 2.0 * _largest_ties(cx), axis=2)  # two maps, each with its rounding
    unsure = np.flatnonzero(np.any(~seen & np.any(jumps != 0, axis=2), axis=1))
    for part in blocks(cx, unsure):
        (before, tie), (after, other) = computed_anew(cx, i[part]), computed_anew(cx, j[part])
        jumps[part] = after - before
        seen[part] = np.any(np.abs(jumps[part]) > tie + other, axis=2)
    return jumps * seen[:, :, None]


def computed_anew(cx: PolyhedralComplex, cells: Ids) -> tuple[Array, Array]:
    """Return the slopes of some cells from their patterns, and the size below which they count as zero.

    Both have shape (m, k, d).
    """
    net = cx.net
    weight = net.layers[-1].weight
    if net.depth == 1:
        slopes = np.asarray(weight @ np.eye(net.in_features))
        both = np.stack([slopes, RESOLUTION * np.abs(slopes)])
        return np.repeat(both[0][None], len(cells), 0), np.repeat(both[1][None], len(cells), 0)
    patterns = np.array([cx.cells.unpacked_patterns(int(i)) for i in cells]).reshape(
        len(cells), net.size
    )
    below = net.size - net.hidden_widths[-1]
    gradients, _ = net[:-1].affine_of_pattern(patterns[:, :below])
    gradients = gradients * patterns[:, below:, None]
    slopes = np.stack([np.asarray(weight @ G) for G in gradients])
    terms = np.stack([np.asarray(abs(weight) @ np.abs(G)) for G in gradients])
    return slopes, RESOLUTION * terms


def slopes_with_errors(net: ReluNetwork, patterns: NDArray[np.bool_]) -> tuple[Array, Array]:
    r"""Return the slopes where patterns (n, size) hold, and what rounding may have done to them, proved.

    Both have shape (n, k, d). Rounding is relative to :math:`|W_L| D_{L-1} |W_{L-1}| \cdots |W_1|`.

    >>> from pindown import ReluNetwork
    >>> net = ReluNetwork.from_layers([([[0.1], [0.3]], [0, 0]), ([[3.0, -1.0]], [0])])
    >>> slopes, errors = slopes_with_errors(net, np.array([[True, True]]))
    >>> bool(abs(slopes[0, 0, 0]) <= errors[0, 0, 0] < 1e-14)
    True
    """
    n, k = len(patterns), net.out_features
    A = np.broadcast_to(dense(net.layers[-1].weight), (n, k, net.widths[-2])).copy()
    terms, lost, operations = np.abs(A), np.zeros((1, 1, A.shape[2])), 8
    with np.errstate(over="ignore", invalid="ignore"):
        for layer, on in zip(net.layers[-2::-1], net.by_layer(patterns)[::-1], strict=True):
            W = dense(layer.weight)
            # What underflow takes from each product counts with the weights that come after it.
            lost = lost @ np.abs(W) + TINY
            A, terms = (A * on[:, None]) @ W, (terms * on[:, None]) @ np.abs(W)
            operations += layer.out_features + 2
        errors = 2.0 * gamma(operations) * terms + 2.0 * lost
    return A, errors


def map_errors(net: ReluNetwork) -> Array:
    """Bound what rounding may have done to the slopes of any cell of a complex, (k, d).

    Slopes are summed unit by unit and updated from cell to cell, as in ``compiled/layer_maps.py``; the
    terms are at most those of all units on.
    """
    T, E = np.abs(dense(net.layers[0].weight)), np.zeros((net.widths[1], net.in_features))
    with np.errstate(over="ignore", invalid="ignore"):
        for layer in net.layers[1:]:
            W, n = np.abs(dense(layer.weight)), layer.in_features
            share = 2.0 * gamma(_MAX_UPDATES * n + 2 * net.in_features + 8)
            E = W @ ((1.0 + share) * E + share * T) + TINY
            T = W @ T
    return E


def _largest_ties(cx: PolyhedralComplex) -> Array:
    """Return the size below which slopes may be rounding of some cell, (k, d)."""
    probed = np.unique(np.linspace(0, cx.n_regions - 1, PROBED_CELLS).astype(np.int64))
    if not cx.n_regions:
        return np.zeros((cx.net.out_features, cx.net.in_features))
    _, ties = computed_anew(cx, probed)
    return np.maximum(ties.max(axis=0), RESOLUTION * np.abs(cx.A).max(axis=0))


def blocks(cx: PolyhedralComplex, rows: Ids) -> list[Ids]:
    """Split rows such that the gradients of the last hidden layer fit into memory."""
    each = cx.net.in_features * max(cx.net.widths)
    step = max(1, SLOPE_NUMBERS_PER_BLOCK // each)
    return [rows[start : start + step] for start in range(0, len(rows), step)]
