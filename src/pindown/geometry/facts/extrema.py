r"""Extrema of the outputs on a box: the global ones with proofs, and all local ones with their plateaus.

A network is affine on each cell, and an affine function on a convex polytope is largest at a vertex:
:math:`\max_B f_k = \max_v f_k(v)` over the vertices v of the complex.

A *local maximum* is a connected set M on which the output f has one value t, with :math:`f < t` at all
other points of the box near M. It is a point, or a plateau.

**Vertices and edges decide.** If x in M lies in a cell C, then x maximises the affine function f over
the convex set C, so M meets C in a face: M is a union of faces, and its vertices hang together through
edges on which f is constant. Conversely, let K be vertices that hang together in this way, with no edge
of the complex leading up from any of them; on every cell at a vertex of K no edge improves it, so it
is optimal there (the simplex argument), and f is at most t on all cells that touch K, that is, near it.

Wolf, Benaim, Galanti 2019, Theorem 1, is about networks whose local maxima are given points.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from pindown.affine import Array
from pindown.box import Box
from pindown.geometry.complex._reading import BoxLike, read_cells
from pindown.geometry.complex.polyhedral import PolyhedralComplex
from pindown.geometry.facts._values_and_slopes import (
    Ids,
    on_box_boundary,
    open_vertices,
    output_number,
    value_ties,
    vertex_values,
)
from pindown.geometry.facts.dual_bounds import upper_bounds
from pindown.geometry.nearness import SAME
from pindown.geometry.tuning import MAX_RATIONAL_PARAMETERS
from pindown.io.accepting import on_network
from pindown.network import ReluNetwork
from pindown.relaxation.intervals import interval_bounds
from pindown.rounding import fraction_down, fraction_up

_ROUNDING = 1e-9  # relative to the larger bound: intervals wider than this say what rounding did
_STATUS = {
    "proved": "proved",
    "float64": "complete search in float64",
    "partial": "search not complete",
}


@dataclass(frozen=True, eq=False, repr=False)
class Extremum:
    r"""The largest, or smallest, value of one output on a box.

    ``lower <= true value <= upper`` is proved for the real-number network whatever the status is: one
    side by the value at ``point``, the other by interval arithmetic or, when certified, cell by cell.

    Attributes:
        kind: ``"maximum"`` or ``"minimum"``.
        output: Which output.
        value: The output at ``point`` in float64, moved between the bounds if it is not there.
        point: A point of the box, (d,).
        lower: Proved lower bound.
        upper: Proved upper bound.
        status: ``"proved"`` if all cells are certified: as a rule the bounds then differ by rounding
            only; ``"float64"`` if all cells were searched in float64: then ``value`` is the answer up
            to rounding, but one bound may be wide; ``"partial"`` if a budget ended the search.
    """

    kind: str
    output: int
    value: float
    point: Array
    lower: float
    upper: float
    status: str

    @property
    def exact(self) -> bool:
        """Whether all cells are certified and bounded: then the interval is the answer."""
        return self.status == "proved"

    @property
    def text(self) -> str:
        """The value, or what is proved of it where that is less than six digits."""
        ends = f"{self.lower:.6g}", f"{self.upper:.6g}"
        wide = self.upper - self.lower > _ROUNDING * max(abs(self.lower), abs(self.upper))
        return (
            f"[{', '.join(ends)}]" if self.exact and wide and ends[0] != ends[1] else f"{self.value:.6g}"
        )

    def __repr__(self) -> str:
        shown = ", ".join(f"{x:.4g}" for x in self.point[:4]) + (", ..." if len(self.point) > 4 else "")
        return (
            f"{self.kind} of output {self.output}: {self.text} at ({shown}) "
            f"({_STATUS[self.status]}; surely in [{self.lower:.6g}, {self.upper:.6g}])"
        )


@dataclass(frozen=True, eq=False, repr=False)
class OutputRange:
    """What every output can be on a box.

    Attributes:
        minima: The smallest value of each output.
        maxima: The largest value of each output.
    """

    minima: tuple[Extremum, ...]
    maxima: tuple[Extremum, ...]

    @property
    def exact(self) -> bool:
        """Whether all extrema are proved."""
        return all(found.exact for found in (*self.minima, *self.maxima))

    @property
    def lower(self) -> Array:
        """Proved lower bounds on all values of the outputs, (k,)."""
        return np.array([found.lower for found in self.minima])

    @property
    def upper(self) -> Array:
        """Proved upper bounds on all values of the outputs, (k,)."""
        return np.array([found.upper for found in self.maxima])

    def __repr__(self) -> str:
        pairs = zip(self.minima[:4], self.maxima[:4], strict=True)
        shown = ", ".join(f"{low.text} .. {high.text}" for low, high in pairs)
        more = f", {len(self.minima) - 4} more" if len(self.minima) > 4 else ""
        return f"OutputRange({shown}{more}; {_STATUS[self.maxima[0].status]})"


@on_network
def output_range(
    net: ReluNetwork | PolyhedralComplex,
    box: BoxLike | None = None,
    *,
    budget: float | None = None,
    certified: bool = False,
) -> OutputRange:
    """Find the smallest and largest value of every output on a box.

    Args:
        net: The network, or its complex.
        box: The domain; not given with a complex.
        budget: Seconds; the best values on the cells found and read by then are returned.
        certified: Prove both sides to rounding: all signs of all cells, and a dual bound for each. A
            complex that is certified already is always used so.

    Returns:
        For each output its extrema, with points and proved bounds.

    Raises:
        TypeError: If a network comes without a box, or a complex with one.
        ValueError: If the box does not fit the network.

    Example:
        >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])  # |x|
        >>> found = output_range(net, (-1, 2), certified=True)
        >>> found
        OutputRange(0 .. 2; proved)
        >>> found.maxima[0].point, found.minima[0].point
        (array([2.]), array([0.]))
    """
    return read_cells(_range, net, box, budget=budget, certified=certified)


def _range(cx: PolyhedralComplex) -> OutputRange:
    points = np.vstack([np.clip(cx.vertices, cx.box.lower, cx.box.upper), cx.box.center])
    values = np.vstack([vertex_values(cx), cx.net(cx.box.center)])
    crude = interval_bounds(cx.net, cx.box)[-1]
    outputs = range(cx.net.out_features)
    return OutputRange(
        tuple(_extremum(cx, k, -1.0, points, values, -float(crude.lower[k])) for k in outputs),
        tuple(_extremum(cx, k, 1.0, points, values, float(crude.upper[k])) for k in outputs),
    )


def _extremum(
    cx: PolyhedralComplex, output: int, sign: float, points: Array, values: Array, crude: float
) -> Extremum:
    """Return the maximum of ``sign`` times an output, put as a maximum or a minimum."""
    best = int(np.argmax(sign * values[:, output]))
    point = points[best].copy()
    point.flags.writeable = False
    attained = _attained(cx.net, point, output, sign)
    limit, status = crude, "float64" if cx.complete else "partial"
    if cx.complete and cx.certified:
        proved = float(upper_bounds(cx, output, sign).max(initial=-np.inf))
        limit, status = (min(crude, proved), "proved") if np.isfinite(proved) else (crude, status)
    low, high = (attained, limit) if sign > 0 else (-limit, -attained)
    value = float(np.clip(values[best, output], low, high))
    return Extremum("maximum" if sign > 0 else "minimum", output, value, point, low, high, status)


def _attained(net: ReluNetwork, point: Array, output: int, sign: float) -> float:
    """Bound ``sign`` times an output at a point from below; in rationals if float64 blurs it."""
    here = interval_bounds(net, Box(point, point))[-1]
    low, high = float(here.lower[output]), float(here.upper[output])
    if (
        not high - low <= _ROUNDING * max(abs(low), abs(high))
        and net.n_parameters <= MAX_RATIONAL_PARAMETERS
    ):
        value = net.as_fractions()(point.tolist())[output]
        return fraction_down(value) if sign > 0 else -fraction_up(value)
    return low if sign > 0 else -high


@dataclass(frozen=True, eq=False, repr=False)
class LocalExtrema:
    """The local maxima, or minima, of one output on a box: the highest, or lowest, first.

    Attributes:
        kind: ``"maximum"`` or ``"minimum"``.
        output: Which output.
        points: One vertex of each, (m, d).
        values: The output there, (m,).
        dims: Dimension of each: 0 for a point, more for a plateau, (m,).
        on_boundary: Whether it touches the boundary of the box, beyond which it may end, (m,).
        vertices: All vertices of each, (v_i, d).
        exact: Whether all cells were searched; their signs are proved only if the complex is certified.
            If not, these are local maxima, but there may be more.
    """

    kind: str
    output: int
    points: Array
    values: Array
    dims: NDArray[np.int64]
    on_boundary: NDArray[np.bool_]
    vertices: tuple[Array, ...]
    exact: bool

    def __len__(self) -> int:
        return len(self.values)

    @property
    def is_plateau(self) -> NDArray[np.bool_]:
        """Which of them are more than a point, (m,)."""
        return self.dims > 0

    def __repr__(self) -> str:
        m, plural = len(self), "maxima" if self.kind == "maximum" else "minima"
        notes = [
            f"{count} {what}"
            for count, what in (
                (int(self.is_plateau.sum()), "flat"),
                (int(self.on_boundary.sum()), "on the boundary"),
            )
            if count
        ]
        best = [f"{'highest' if self.kind == 'maximum' else 'lowest'} {self.values[0]:.6g}"] if m else []
        state = [] if self.exact else ["search not complete"]
        what = f"{m} local {self.kind if m == 1 else plural} of output {self.output}"
        return f"LocalExtrema({'; '.join([what, *best, *notes, *state])})"


@on_network
def local_maxima(
    net: ReluNetwork | PolyhedralComplex,
    box: BoxLike | None = None,
    *,
    output: int = 0,
    interior_only: bool = False,
    budget: float | None = None,
) -> LocalExtrema:
    """Find all local maxima of an output on a box, plateaus included.

    Args:
        net: The network, or its complex.
        box: The domain; not given with a complex.
        output: Which output.
        interior_only: Leave out those that touch the boundary of the box. What remains are local maxima
            of the function on all of space.
        budget: Seconds. Only vertices with all their cells found and read by then are judged.

    Returns:
        The maxima. Values closer than rounding (see :func:`value_ties`) count as equal.

    Raises:
        TypeError: If a network comes without a box, or a complex with one.
        ValueError: If there is no such output, or the box does not fit.

    Example:
        The function ``|x|`` has two maxima on an interval, its ends, and one minimum:

        >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
        >>> local_maxima(net, (-2, 1)).points.ravel(), local_maxima(net, (-2, 1)).values
        (array([-2.,  1.]), array([2., 1.]))
        >>> local_minima(net, (-2, 1), interior_only=True)
        LocalExtrema(1 local minimum of output 0; lowest 0)

    Wolf, Benaim, Galanti 2019, Theorem 1.
    """
    read = partial(_extrema, output=output, interior_only=interior_only, kind="maximum")
    return read_cells(read, net, box, budget=budget)


@on_network
def local_minima(
    net: ReluNetwork | PolyhedralComplex,
    box: BoxLike | None = None,
    *,
    output: int = 0,
    interior_only: bool = False,
    budget: float | None = None,
) -> LocalExtrema:
    """Find all local minima of an output on a box; takes what :func:`local_maxima` takes.

    A ReLU is flat on one side of its fold: there its minimum is a plateau.

    >>> net = ReluNetwork.from_layers([([[1.0, 0.0]], [0]), ([[1.0]], [0])])
    >>> found = local_minima(net, (-1, 1))
    >>> found
    LocalExtrema(1 local minimum of output 0; lowest 0; 1 flat; 1 on the boundary)
    >>> found.dims
    array([2])
    """
    read = partial(_extrema, output=output, interior_only=interior_only, kind="minimum")
    return read_cells(read, net, box, budget=budget)


def _extrema(cx: PolyhedralComplex, output: int, interior_only: bool, kind: str) -> LocalExtrema:
    k = output_number(cx.net, output)
    heights = vertex_values(cx)[:, k] * (1.0 if kind == "maximum" else -1.0)
    group, chosen = _tops(heights, cx.edges, float(value_ties(cx.net, cx.box)[k]), open_vertices(cx))
    outer = np.zeros(len(chosen), bool)
    np.logical_or.at(outer, group, on_box_boundary(cx.vertices, cx.box))
    if interior_only:
        chosen &= ~outer
    dims = _dimensions(cx, group, chosen)
    order = np.argsort(group, kind="stable")
    members = np.split(order, np.searchsorted(group[order], np.arange(1, len(chosen))))
    points = np.clip(cx.vertices, cx.box.lower, cx.box.upper)
    found = []
    for g in np.flatnonzero(chosen):
        own = members[g]
        best = own[np.lexsort([*points[own].T[::-1], -heights[own]])[0]]
        found.append((-heights[best], tuple(points[best]), int(best), int(g)))
    found.sort()
    tops, groups = [entry[2] for entry in found], [entry[3] for entry in found]
    arrays = (points[tops], heights[tops] * (1.0 if kind == "maximum" else -1.0) + 0.0)
    flags = (dims[groups], outer[groups])
    vertices = tuple(points[members[g]] for g in groups)
    for array in (*arrays, *flags, *vertices):
        array.flags.writeable = False
    return LocalExtrema(kind, k, *arrays, *flags, vertices, cx.complete)


def _tops(
    heights: Array, edges: Ids, tie: float, is_open: NDArray[np.bool_]
) -> tuple[Ids, NDArray[np.bool_]]:
    """Group vertices joined by level edges; return the groups, and from which no edge leads up."""
    n = len(heights)
    i, j = edges.T
    rise = heights[j] - heights[i]
    level = np.abs(rise) <= tie
    graph = coo_array((np.ones(int(level.sum()), bool), (i[level], j[level])), shape=(n, n))
    count, group = connected_components(graph, directed=False) if n else (0, np.zeros(0, int))
    top = np.ones(count, bool)
    # Inside a group small steps may add up to more than a tie; these edges lead nowhere.
    between = ~level & (group[i] != group[j])
    top[group[np.where(rise > 0, i, j)[between]]] = False
    top[group[is_open]] = False
    return group.astype(np.int64), top


def _dimensions(cx: PolyhedralComplex, group: Ids, chosen: NDArray[np.bool_]) -> Ids:
    """Return the dimension of each chosen group of vertices: that of its largest face."""
    d, ids, starts = cx.net.in_features, cx.vertex_ids, cx.offsets
    dims = np.zeros(len(chosen), np.int64)
    several = chosen & (np.bincount(group, minlength=len(chosen)) > 1)
    if not several.any():
        return dims
    owner = np.repeat(np.arange(cx.n_regions), np.diff(starts))
    rows = np.flatnonzero(several[group[ids]])
    faces = np.unique(np.stack([group[ids[rows]], owner[rows], ids[rows]]), axis=1)
    _, first, counts = np.unique(faces[:2], axis=1, return_index=True, return_counts=True)
    scaled = (cx.vertices - cx.box.lower) / (cx.box.upper - cx.box.lower)
    # A simplex of dimension r has r + 1 corners: many corners first, so that few ranks are needed.
    for at, count in sorted(zip(first, counts, strict=True), key=lambda face: -face[1]):
        g = faces[0, at]
        if dims[g] < min(d, count - 1):
            corners = scaled[faces[2, at : at + count]]
            dims[g] = max(dims[g], _flat_dimension(corners))
    return dims


def _flat_dimension(points: Array) -> int:
    """Return the dimension of the affine hull of some points."""
    lengths = np.linalg.svd(points[1:] - points[0], compute_uv=False)
    return int(np.sum(lengths > SAME * lengths.max(initial=0.0)))
