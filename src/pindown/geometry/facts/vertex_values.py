"""What facts about the function are read from: its values at the vertices, and when two are equal.

On every cell the network is affine, so its values at the cell's vertices say everything about it
there: they hold the largest and the smallest value, and the sign of every difference.
"""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Affine, Array
from pindown.box import Box
from pindown.geometry.complex.cells import Cells, following
from pindown.geometry.complex.polyhedral import PolyhedralComplex, polyhedral_complex
from pindown.geometry.nearness import RESOLUTION, SAME, unit_scales
from pindown.network import ReluNetwork

Ids = NDArray[np.int64]
BoxLike = Box | tuple[ArrayLike, ArrayLike]


def complex_of(
    net: ReluNetwork | PolyhedralComplex,
    box: BoxLike | None = None,
    *,
    budget: float | None = None,
    certified: bool = False,
) -> PolyhedralComplex:
    """Return the complex that was given, or find that of a network on a box.

    Raises:
        TypeError: If a network comes without a box, or a complex with a box or a budget.

    >>> net = ReluNetwork.from_layers([([[1.0]], [0]), ([[1.0]], [0])])
    >>> complex_of(net, (-1, 1))
    PolyhedralComplex(2 cells, 2 pieces, complete)
    """
    if isinstance(net, PolyhedralComplex):
        if box is not None or budget is not None:
            raise TypeError(
                "a complex has its own box and is found already; give it without box and budget."
            )
        if certified and not net.certified:
            raise TypeError("this complex is not certified; give the network and the box instead.")
        return net
    if not isinstance(net, ReluNetwork):
        raise TypeError(f"a ReluNetwork or a PolyhedralComplex is needed; got {type(net).__name__}.")
    if box is None:
        raise TypeError("a network needs a box beside it, such as box=(-1, 1).")
    return polyhedral_complex(net, box, budget=budget, certified=certified)


def output_number(net: ReluNetwork, output: Any) -> int:
    """Return which output is meant, or say which there are.

    Raises:
        TypeError: If it is not an integer.
        ValueError: If the network has no such output.
    """
    number, k = index(output), net.out_features
    if not 0 <= number < k:
        raise ValueError(f"outputs are numbered 0 to {k - 1}; got {number}.")
    return number


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
    from pindown.geometry.kernels.adjacency import cell_edges as write_edges

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
