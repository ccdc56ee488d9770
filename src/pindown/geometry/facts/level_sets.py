r"""Level sets :math:`\{x \in B : f(x) = t\}` of an output, exactly, cell by cell.

On a cell f is affine, so the level set is a piece of a hyperplane there: its corners lie on edges of the
cell, where f - t changes its sign, and at vertices where it is zero. Signs are decided once per vertex
of the complex and crossings once per edge, so that the parts of neighbouring cells fit together
without gaps.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.geometry.complex._reading import BoxLike, read_cells
from pindown.geometry.complex.polyhedral import PolyhedralComplex
from pindown.geometry.facts._values_and_slopes import (
    Ids,
    cell_edges,
    output_number,
    value_ties,
    vertex_values,
)
from pindown.geometry.facts.polylines import join_segments
from pindown.geometry.folds.fold_set import polygon_area
from pindown.io.accepting import on_network
from pindown.network import ReluNetwork
from pindown.validation import number

_MAX_INPUTS = 3
_NAMES = {1: ("points", "in number"), 2: ("segments", "long"), 3: ("polygons", "in area")}


@dataclass(frozen=True, eq=False, repr=False)
class LevelSet:
    """Where an output has a given value: a point, segment or polygon in each cell it passes through.

    Where the output has that value on whole cells, these are ``flat``, and the parts are their boundary.
    Contacts of a lower dimension, such as a single point at the top of a hill, are not listed.

    Attributes:
        complex: The cells.
        output: Which output.
        level: The value t.
        cells: The cell of each part, (m,).
        corners: All corners, each once, (P, d).
        parts: Rows of ``corners``, part by part; in the plane the larger values are on the left.
        offsets: Part i is ``parts[offsets[i] : offsets[i + 1]]``: one corner in 1-D, two in 2-D, three
            or more, in order around the polygon, in 3-D.
        flat: Cells on which the output is t throughout.
    """

    complex: PolyhedralComplex
    output: int
    level: float
    cells: Ids
    corners: Array
    parts: Ids
    offsets: Ids
    flat: Ids

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def dim(self) -> int:
        """Dimension of the input."""
        return self.complex.net.in_features

    @property
    def exact(self) -> bool:
        """Whether all cells were searched; their signs are proved only if the complex is certified."""
        return self.complex.complete

    def part(self, i: int) -> Array:
        """Return the corners of part i."""
        return self.corners[self.parts[self.offsets[i] : self.offsets[i + 1]]]

    @property
    def segments(self) -> Array:
        """Ends of the segments in the plane, (m, 2, 2)."""
        if self.dim != 2:
            raise ValueError(f"level sets are segments for two inputs; the network takes {self.dim}.")
        return self.corners[self.parts.reshape(-1, 2)]

    @cached_property
    def sizes(self) -> Array:
        """Lengths of segments, areas of polygons, 1 for points, (m,)."""
        if self.dim == 1:
            return np.ones(len(self))
        if self.dim == 2:
            return np.linalg.norm(self.segments[:, 1] - self.segments[:, 0], axis=1)
        return np.array([polygon_area(self.part(i)) for i in range(len(self))])

    @property
    def size(self) -> float:
        """Total length, area, or number of points."""
        return float(self.sizes.sum())

    @cached_property
    def chains(self) -> tuple[Array, ...]:
        """Contour lines in the plane: corners in order, (c, 2); closed ones end where they begin."""
        if self.dim != 2:
            raise ValueError(f"contour lines need two inputs; the network takes {self.dim}.")
        return tuple(self.corners[rows] for rows in join_segments(self.parts.reshape(-1, 2)))

    def __repr__(self) -> str:
        kind, measure = _NAMES[self.dim]
        cells = f"{len(self.flat)} flat cell{'' if len(self.flat) == 1 else 's'}"
        flat = f", {cells}" if len(self.flat) else ""
        part = "" if self.exact else "; search not complete"
        what = f"{len(self)} {kind if len(self) != 1 else kind[:-1]}"
        where = f"output {self.output} = {self.level:g}"
        return f"LevelSet({where}: {what}, {self.size:.6g} {measure}{flat}{part})"


@dataclass(frozen=True, repr=False)
class VolumeAbove:
    """How much of a box an output is at least a level on.

    Attributes:
        output: Which output.
        level: The level.
        volume: The volume; of the cells found only, unless ``exact``.
        share: That volume as a share of the box.
        exact: Whether all cells were searched; their signs are proved only if the complex is certified.
    """

    output: int
    level: float
    volume: float
    share: float
    exact: bool

    def __repr__(self) -> str:
        part = "" if self.exact else "; search not complete"
        what = f"output {self.output} >= {self.level:g}: {self.volume:.6g}"
        return f"VolumeAbove({what}, {100 * self.share:.4g}% of the box{part})"


@on_network
def level_set(
    net: ReluNetwork | PolyhedralComplex,
    box: BoxLike | None = None,
    *,
    level: float = 0.0,
    output: int = 0,
    budget: float | None = None,
) -> LevelSet:
    """Find where an output of a network with one, two or three inputs has a given value.

    Many levels cost little once the complex is there: find it first, and give it for the network.

    Args:
        net: The network, or its complex.
        box: The domain; not given with a complex.
        level: The value t.
        output: Which output.
        budget: Seconds for finding the cells and reading them.

    Returns:
        The parts, their sizes, and in the plane the contour lines. Values within rounding of t (see
        :func:`~pindown.geometry.facts._values_and_slopes.value_ties`) count as t.

    Raises:
        TypeError: If a network comes without a box, or a complex with one.
        ValueError: If there are more than three inputs, no such output, or the level is not finite.

    Example:
        The 1-norm is 1 on a diamond whose sides have length ``sqrt(2)``:

        >>> W = [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]
        >>> net = ReluNetwork.from_layers([(W, [0, 0, 0, 0]), ([[1.0, 1.0, 1.0, 1.0]], [0])])
        >>> found = level_set(net, (-2, 2), level=1)
        >>> found
        LevelSet(output 0 = 1: 4 segments, 5.65685 long)
        >>> found.chains[0].astype(int).tolist()
        [[0, 1], [1, 0], [0, -1], [-1, 0], [0, 1]]
    """
    read = partial(_level_set, level=level, output=output)
    return read_cells(read, net, box, budget=budget)


def _level_set(cx: PolyhedralComplex, level: float, output: int) -> LevelSet:
    k, d = output_number(cx.net, output), cx.net.in_features
    if d > _MAX_INPUTS:
        raise ValueError(f"level sets are listed for 1 to {_MAX_INPUTS} inputs; the network takes {d}.")
    signs, heights = level_signs(cx, k, level)
    nodes = section_nodes(cx, signs, heights)
    cells, parts, offsets = section_parts(cx, k, nodes)
    used, parts = np.unique(parts, return_inverse=True)
    arrays = (cells, nodes.points[used], parts.astype(np.int64), offsets, nodes.flat)
    for array in arrays:
        array.flags.writeable = False
    return LevelSet(cx, k, float(level), *arrays)


@on_network
def volume_above(
    net: ReluNetwork | PolyhedralComplex,
    box: BoxLike | None = None,
    *,
    level: float = 0.0,
    output: int = 0,
    budget: float | None = None,
) -> VolumeAbove:
    """Measure the part of a box on which an output is at least ``level``.

    Takes what :func:`level_set` takes, with any number of inputs the complex can have.

    >>> net = ReluNetwork.from_layers([([[1.0, 1.0]], [0]), ([[1.0]], [0])])  # relu(x + y)
    >>> volume_above(net, (0, 2), level=1)
    VolumeAbove(output 0 >= 1: 3.5, 87.5% of the box)
    """
    read = partial(_volume_above, level=level, output=output)
    return read_cells(read, net, box, budget=budget)


def _volume_above(cx: PolyhedralComplex, level: float, output: int) -> VolumeAbove:
    k = output_number(cx.net, output)
    signs, heights = level_signs(cx, k, level)
    whole = float(np.prod(cx.box.upper - cx.box.lower))
    own = signs[cx.vertex_ids]
    if not cx.n_regions:
        return VolumeAbove(k, float(level), 0.0, 0.0, False)
    lowest = np.minimum.reduceat(own, cx.offsets[:-1])
    highest = np.maximum.reduceat(own, cx.offsets[:-1])
    total = float(cx.volumes[lowest >= 0].sum())
    cut = np.flatnonzero((lowest < 0) & (highest > 0))
    nodes = section_nodes(cx, signs, heights)
    starts = np.searchsorted(nodes.cells, cut), np.searchsorted(nodes.cells, cut, side="right")
    for cell, first, last in zip(cut, *starts, strict=True):
        rows = slice(cx.offsets[cell], cx.offsets[cell + 1])
        corners = np.vstack([cx.cell_vertices[rows][own[rows] > 0], nodes.points[nodes.ids[first:last]]])
        total += polytope_volume(corners)
    return VolumeAbove(k, float(level), total, total / whole, cx.complete)


@dataclass(frozen=True, eq=False)
class Nodes:
    """Corners of a level set, and which cells they belong to.

    Attributes:
        points: A point for each vertex of the complex, then for each edge that is crossed, (V + E, d).
        cells: Cells, ascending, (q,); flat ones are left out.
        ids: Rows of ``points`` at which the level set meets that cell, (q,).
        flat: Cells on which all vertices are at the level.
    """

    points: Array
    cells: Ids
    ids: Ids
    flat: Ids


def level_signs(cx: PolyhedralComplex, output: int, level: float) -> tuple[NDArray[np.int8], Array]:
    """Return an output minus a level at all vertices: signs, 0 within rounding, and values."""
    heights = vertex_values(cx)[:, output] - number("level", level)
    signs = np.where(np.abs(heights) <= value_ties(cx.net, cx.box)[output], 0, np.sign(heights))
    return signs.astype(np.int8), heights


def section_nodes(cx: PolyhedralComplex, signs: NDArray[np.int8], heights: Array) -> Nodes:
    """Find where the zero set of a function, affine on every cell, meets vertices and edges."""
    ids, n = cx.vertex_ids, len(signs)
    owner = np.repeat(np.arange(cx.n_regions), np.diff(cx.offsets))
    rows = cell_edges(cx.cells)
    rows = rows[signs[ids[rows[:, 0]]] * signs[ids[rows[:, 1]]] < 0]
    pairs, number = np.unique(np.sort(ids[rows], axis=1), axis=0, return_inverse=True)
    a, b = pairs.T
    share = (heights[a] / (heights[a] - heights[b]))[:, None]
    crossings = (1.0 - share) * cx.vertices[a] + share * cx.vertices[b]
    at_zero = signs[ids] == 0
    found = np.stack(
        [
            np.concatenate([owner[rows[:, 0]], owner[at_zero]]),
            np.concatenate([n + number.reshape(-1), ids[at_zero]]),
        ]
    )
    cells, nodes = np.unique(found, axis=1)
    elsewhere = np.ones(cx.n_regions, bool)
    elsewhere[owner[~at_zero]] = False
    keep = ~elsewhere[cells]
    return Nodes(
        np.vstack([cx.vertices, crossings]), cells[keep], nodes[keep], np.flatnonzero(elsewhere)
    )


def section_parts(cx: PolyhedralComplex, output: int, nodes: Nodes) -> tuple[Ids, Ids, Ids]:
    """Return the cell and the corners of every part; one that two cells share comes once."""
    d = cx.net.in_features
    cells, first, counts = np.unique(nodes.cells, return_index=True, return_counts=True)
    seen: set[tuple[int, ...]] = set()
    owners, rows, sizes = [], [], [0]
    for cell, at, count in zip(cells, first, counts, strict=True):
        own = nodes.ids[at : at + count]
        for part in _cell_parts(own, nodes.points, cx.A[cell, output], d):
            key = tuple(sorted(part.tolist()))
            if key not in seen:
                seen.add(key)
                owners.append(cell)
                rows.append(part)
                sizes.append(len(part))
    flat_rows = np.concatenate([np.zeros(0, np.int64), *rows])
    return np.array(owners, dtype=np.int64), flat_rows, np.cumsum(sizes)


def _cell_parts(own: Ids, points: Array, slope: Array, d: int) -> list[Ids]:
    """Return the parts of the level set in one cell as rows of points."""
    if len(own) < d:
        return []
    if d == 1:
        return [own[i : i + 1] for i in range(len(own))]
    if d == 2:
        along = np.array([slope[1], -slope[0]])  # larger values on the left
        order = own[np.argsort(points[own] @ along, kind="stable")]
        return [order[i : i + 2] for i in range(len(own) - 1)]
    return [own[_around(points[own])]]


def polytope_volume(corners: Array) -> float:
    """Return the volume of the hull of corners in any order; 0 if it is flat to rounding."""
    from scipy.spatial import QhullError

    from pindown.geometry.regions._hull import volume

    if corners.shape[1] == 2:
        arms = corners - corners.mean(axis=0)
        return volume(corners[np.argsort(np.arctan2(arms[:, 1], arms[:, 0]))])
    try:
        return volume(corners)
    except QhullError:  # thinner than rounding
        return 0.0


def _around(corners: Array) -> Ids:
    """Return the order of a planar polygon's corners in space, around it."""
    arms = corners - corners.mean(axis=0)
    plane = np.linalg.svd(arms, full_matrices=False)[2][:2]
    x, y = plane @ arms.T
    return np.argsort(np.arctan2(y, x))
