r"""Fold-sets: the exact places where a network is not differentiable, with the units they belong to.

The fold-set :math:`F(f)` of a continuous piecewise-linear function is where it is not differentiable.
The fold-set :math:`F_i^l` of unit i in layer l is where :math:`h_i^{1:l} = 0` and
:math:`h_i^{1:l} > 0` arbitrarily near. On the cells of a network,

.. math::
    F(h) \subseteq \bigcup_{l, i} F_i^l,

with equality for general transparent networks. A fold that the output does not show, because the
layers after it cancel or switch it off, is *invisible*.

Phuong 2021, section 2.3, Definitions A.8 and A.10, Lemma A.15.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.box import Box
from pindown.evidence import Kind
from pindown.geometry.complex._reading import read_cells
from pindown.geometry.complex._skeleton import equal_maps
from pindown.geometry.complex.polyhedral import PolyhedralComplex
from pindown.io.accepting import network_if_model
from pindown.io.any_model import AnyModel

_MAX_INPUTS = 3
_NAMES = {1: ("points", "in number"), 2: ("segments", "long"), 3: ("polygons", "in area")}


@dataclass(frozen=True, eq=False, repr=False)
class FoldSet:
    """Folds of a network on a box: a point, segment or polygon for each pair of neighbouring cells.

    Attributes:
        complex: The cells.
        cells: The two cells (m, 2) that each fold separates.
        units: The unit (m,) whose zero set the fold lies in, counted through all layers as in
            ``net.pattern``. Where several units share a fold this is one of them; see :meth:`of_unit`.
        layers: Its layer (m,), from 1.
        visible: Whether (m,) the gradient of the output jumps across the fold.
        points: Corners of all folds, (P, d).
        offsets: Fold i has the corners ``points[offsets[i]:offsets[i + 1]]``: one in 1-D, two in 2-D,
            three or more, in order around the polygon, in 3-D.
    """

    complex: PolyhedralComplex
    cells: NDArray[np.int64]
    units: NDArray[np.int64]
    layers: NDArray[np.int64]
    visible: NDArray[np.bool_]
    points: Array
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.units)

    @property
    def dim(self) -> int:
        """Dimension of the input."""
        return self.complex.net.in_features

    @property
    def kind(self) -> Kind:
        """How the folds are known; as ``complex.kind`` says."""
        return self.complex.kind

    @property
    def complete(self) -> bool:
        """Whether these are all folds on the box."""
        return self.complex.complete

    @property
    def segments(self) -> Array:
        """End points (m, 2, 2) of the folds in the plane."""
        if self.dim != 2:
            raise ValueError(
                f"folds are segments in the plane only; the network takes {self.dim} inputs."
            )
        return self.points.reshape(-1, 2, 2)

    @cached_property
    def centres(self) -> Array:
        """Means (m, d) of the corners: a point inside each fold."""
        sums = np.add.reduceat(self.points, self.offsets[:-1], axis=0) if len(self) else self.points
        return sums / np.diff(self.offsets)[:, None]

    @cached_property
    def sizes(self) -> Array:
        """Lengths (m,) of segments, areas of polygons, 1 for points."""
        if self.dim == 1:
            return np.ones(len(self))
        if self.dim == 2:
            return np.linalg.norm(self.segments[:, 1] - self.segments[:, 0], axis=1)
        return np.array([polygon_area(self.corners(i)) for i in range(len(self))])

    @property
    def size(self) -> float:
        """Total length, area, or number of points."""
        return float(self.sizes.sum())

    @cached_property
    def jumps(self) -> Array:
        """What crossing a fold, from its first cell to its second, adds to the gradient, (m, k, d)."""
        return self.complex.A[self.cells[:, 1]] - self.complex.A[self.cells[:, 0]]

    def corners(self, i: int) -> Array:
        """Return the corners of fold i."""
        return self.points[self.offsets[i] : self.offsets[i + 1]]

    def only(self, which: ArrayLike) -> FoldSet:
        """Return some of the folds, by a boolean mask (m,) or by their numbers.

        ``folds.only(folds.visible)`` is the fold-set of the output.
        """
        chosen = np.arange(len(self))[np.asarray(which)]
        counts = np.diff(self.offsets)[chosen]
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        rows = np.arange(offsets[-1]) + np.repeat(self.offsets[chosen] - offsets[:-1], counts)
        return FoldSet(
            self.complex,
            self.cells[chosen],
            self.units[chosen],
            self.layers[chosen],
            self.visible[chosen],
            self.points[rows],
            offsets,
        )

    def of_unit(self, unit: int) -> FoldSet:
        """Return the folds at which a unit (of all layers, from 0) switches, shared ones included."""
        patterns = self.complex.patterns[:, unit]
        return self.only(patterns[self.cells[:, 0]] != patterns[self.cells[:, 1]])

    @cached_property
    def by_layer(self) -> dict[int, FoldSet]:
        """The folds of each hidden layer, numbered from 1."""
        depth = self.complex.net.depth
        return {layer: self.only(self.layers == layer) for layer in range(1, depth)}

    def __repr__(self) -> str:
        kind, measure = _NAMES[self.dim]
        part = "" if self.complete else " so far (incomplete)"
        seen, total = int(self.visible.sum()), f"{self.size:.6g} {measure}"
        return f"FoldSet({len(self)} {kind}{part}, {seen} visible, {total})"


@overload
def fold_set(net: PolyhedralComplex) -> FoldSet: ...
@overload
def fold_set(
    net: AnyModel,
    box: Box | tuple[ArrayLike, ArrayLike],
    *,
    budget: float | None = None,
    certified: bool = False,
) -> FoldSet: ...
def fold_set(
    net: AnyModel | PolyhedralComplex,
    box: Box | tuple[ArrayLike, ArrayLike] | None = None,
    *,
    budget: float | None = None,
    certified: bool = False,
) -> FoldSet:
    """Collect the folds of a network with one, two or three inputs.

    For more inputs, restrict the network to a plane first: ``net @ embedding``, or its complex there.

    Args:
        net: The network, or its complex if it is there already.
        box: The domain; not given with a complex.
        budget: Seconds; the folds of the cells found and read by then are returned.
        certified: Find the cells with proved signs: slower, and right for networks in which folds
            coincide.

    Returns:
        The folds with units, layers, visibility and corners.

    Raises:
        TypeError: If a network comes without a box, or a complex with one.
        ValueError: If there are more than three inputs.

    Example:
        The function ``max(x, 0) + max(y, 0)`` has four folds on the square, the halves of the axes:

        >>> from pindown import ReluNetwork
        >>> net = ReluNetwork.from_layers([([[1.0, 0], [0, 1]], [0, 0]), ([[1.0, 1]], [0])])
        >>> folds = fold_set(net, (-1, 1))
        >>> folds
        FoldSet(4 segments, 4 visible, 4 long)
        >>> folds.units.tolist(), folds.sizes.tolist()
        ([0, 0, 1, 1], [1.0, 1.0, 1.0, 1.0])

    Phuong 2021, section 2.3.
    """
    given = network_if_model(net, "fold_set")
    d = given.net.in_features if isinstance(given, PolyhedralComplex) else given.in_features
    if d > _MAX_INPUTS:
        raise ValueError(
            f"fold-sets are listed for 1 to {_MAX_INPUTS} inputs; the network takes {d}. "
            "Restrict it to a plane first."
        )
    return read_cells(_folds, given, box, budget=budget, certified=certified)


def _folds(cells: PolyhedralComplex) -> FoldSet:
    order = np.lexsort([*cells.neighbours.T[::-1], cells.neighbour_units])
    pairs, units = cells.neighbours[order], cells.neighbour_units[order]
    rows, offsets = shared_corners(cells, pairs)
    layers = np.searchsorted(np.cumsum([0, *cells.net.hidden_widths]), units, side="right")
    parts = (pairs, units, layers, _bends(cells, pairs), cells.cell_vertices[rows], offsets)
    for part in parts:
        part.flags.writeable = False
    return FoldSet(cells, *parts)


def _bends(cells: PolyhedralComplex, pairs: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether the affine maps of two cells differ, by more than rounding, anywhere on the box."""
    maps = np.concatenate([cells.A.transpose(0, 2, 1), cells.c[:, None, :]], axis=1)
    return ~equal_maps(cells.net, maps, pairs, cells.box)


def shared_corners(
    cells: PolyhedralComplex, pairs: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return, for each pair, the corners of the first cell that are corners of the second as well.

    Cells meet face to face, so these are the corners of the fold.

    Returns:
        Rows of ``cells.cell_vertices``, and where those of each pair start.
    """
    if not len(pairs):
        return np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64)
    ids, starts = cells.vertex_ids, cells.offsets
    n = int(ids.max(initial=0)) + 1
    owner = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    known = np.append(np.sort(owner * n + ids), -1)
    counts = np.diff(starts)[pairs[:, 0]]
    pair = np.repeat(np.arange(len(pairs)), counts)
    first = np.repeat(starts[pairs[:, 0]] - np.cumsum(counts) + counts, counts)
    rows = first + np.arange(len(pair))
    wanted = pairs[pair, 1] * n + ids[rows]
    shared = known[np.searchsorted(known[:-1], wanted)] == wanted
    rows, pair = rows[shared], pair[shared]
    parts = np.split(rows, np.searchsorted(pair, np.arange(1, len(pairs))))
    for i, part in enumerate(parts):
        if not len(part):
            parts[i] = _nearest(cells, *pairs[i])
    order = {1: _one, 2: _two_ends, 3: _around}[cells.net.in_features]
    parts = [part[order(cells.cell_vertices[part])] for part in parts]
    return np.concatenate(parts), np.cumsum([0, *map(len, parts)]).astype(np.int64)


def _nearest(cells: PolyhedralComplex, i: int, j: int) -> NDArray[np.int64]:
    """Return the corner of cell i nearest to cell j, for cells too thin to have corners of their own."""
    first = np.arange(cells.offsets[i], cells.offsets[i + 1])
    others = cells.cell_vertices[cells.offsets[j] : cells.offsets[j + 1]]
    gaps = np.abs(cells.cell_vertices[first][:, None] - others).sum(axis=2).min(axis=1)
    return first[[int(gaps.argmin())]]


def _one(corners: Array) -> NDArray[np.int64]:
    """Return the corner of a point."""
    return np.zeros(1, dtype=np.int64)


def _two_ends(corners: Array) -> NDArray[np.int64]:
    """Return the ends of a segment, which may have more corners on it."""
    if len(corners) == 2:
        return np.arange(2)
    far = int(((corners - corners[0]) ** 2).sum(axis=1).argmax())
    return np.array([int(((corners - corners[far]) ** 2).sum(axis=1).argmax()), far])


def _around(corners: Array) -> NDArray[np.int64]:
    """Return the order of a planar polygon's corners in space, around it."""
    if len(corners) <= 3:
        return np.arange(len(corners))
    arms = corners - corners.mean(axis=0)
    plane = np.linalg.svd(arms, full_matrices=False)[2][:2]
    x, y = plane @ arms.T
    return np.argsort(np.arctan2(y, x))


def polygon_area(corners: Array) -> float:
    """Return the area of a planar polygon in space."""
    arms = corners[1:] - corners[0]
    return float(np.linalg.norm(np.cross(arms[:-1], arms[1:]).sum(axis=0))) / 2.0
