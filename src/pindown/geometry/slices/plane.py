r"""Exact restriction of a network to planes in its input space.

On :math:`x(s, t) = o + s u + t v` a network is a network with two inputs: its first layer becomes
:math:`(W_1 [u\ v],\; W_1 o + b_1)` and the others stay. Its cells on a rectangle are found like those of
any network in the plane, however many inputs there were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.box import Box
from pindown.deadline import Deadline
from pindown.evidence import Kind
from pindown.geometry.complex.counting import n_threads
from pindown.geometry.complex.polyhedral import PolyhedralComplex, polyhedral_complex
from pindown.geometry.nearness import SAME
from pindown.geometry.regions.region import Region
from pindown.geometry.tuning import MAX_CELLS
from pindown.io.accepting import on_network
from pindown.network import ReluNetwork
from pindown.validation import positive

Extent = tuple[tuple[float, float], tuple[float, float]]


@on_network
def on_plane(
    net: ReluNetwork,
    origin: ArrayLike,
    u: ArrayLike,
    v: ArrayLike,
    *,
    extent: Extent = ((-1.0, 1.0), (-1.0, 1.0)),
    budget: float | None = None,
    max_cells: int = MAX_CELLS,
    certified: bool = False,
    n_jobs: int | None = None,
) -> Any:
    """Find every cell of a network on a rectangle in a plane, or on many.

    Args:
        net: The network, with any number of inputs.
        origin: The point :math:`o`, (d,) or (n, d); one point serves for all planes.
        u: The direction of s, (d,) or (n, d); its length is the unit of s.
        v: The direction of t, likewise, not parallel to u.
        extent: ``((s_min, s_max), (t_min, t_max))``.
        budget: Seconds for all planes together; when they are over, the cells found so far are returned.
        max_cells: Cells of each plane at most; when there are so many, those found are returned.
        certified: Prove every sign, for the network as it is after its first layer was restricted to the
            plane and rounded.
        n_jobs: Threads that share the planes; None means one, -1 all cores.

    Returns:
        A :class:`PlaneSlice` if origin, u and v have shape (d,), else a tuple of them.

    Raises:
        ValueError: If shapes do not fit, or directions are parallel or zero.

    >>> net = ReluNetwork.from_layers([([[1.0, 0.0, 0.0]], [0.0]), ([[1.0]], [0.0])])
    >>> on_plane(net, [0, 0, 1], [1, 0, 0], [0, 1, 0])
    PlaneSlice(2 cells, 2 pieces, complete; -1 <= s <= 1, -1 <= t <= 1)

    Phuong 2021, section A.2; the cells of a fold-set on a two-dimensional slice.
    """
    (origins, one), (us, one_u), (vs, one_v) = (net.as_rows(part) for part in (origin, u, v))
    counts = {len(part) for part in (origins, us, vs)} - {1}
    if len(counts) > 1:
        raise ValueError(
            "origin, u and v need as many rows each, or one; "
            f"got {len(origins)}, {len(us)} and {len(vs)}."
        )
    n = counts.pop() if counts else 1
    planes = [np.broadcast_to(part, (n, net.in_features)) for part in (origins, us, vs)]
    _require_planes(planes[1], planes[2])
    box = _rectangle(extent)
    deadline = Deadline.of(budget)
    threads = 1 if n == 1 else n_threads(n_jobs)

    def cut(i: int) -> PlaneSlice:
        # What the planes before have left over goes to those still to come.
        share = deadline.left * min(1.0, threads / (n - i))
        place = tuple(part[i] for part in planes)
        return _cut(net, place, box, np.zeros((0, 2)), share, max_cells, certified)

    if threads == 1:
        slices = tuple(cut(i) for i in range(n))
    else:
        from joblib import Parallel, delayed

        slices = tuple(Parallel(n_jobs=threads, prefer="threads")(delayed(cut)(i) for i in range(n)))
    return slices[0] if one and one_u and one_v else slices


@on_network
def plane_through(
    net: ReluNetwork,
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike,
    *,
    margin: float = 0.25,
    budget: float | None = None,
    max_cells: int = MAX_CELLS,
    certified: bool = False,
) -> PlaneSlice:
    """Find the cells of a network on the plane through three inputs, on a square around them.

    Both coordinates are distances, and a is at (0, 0): s grows from a towards b, t at right angles to
    it towards c.

    Args:
        net: The network.
        a: An input (d,).
        b: Another.
        c: A third, not on the line through a and b.
        margin: How far the square reaches beyond the three points, as a share of its side.
        budget: Seconds; as in :func:`on_plane`, and so the rest.
        max_cells: Most cells.
        certified: Whether to prove every sign.

    Returns:
        The slice; its ``marks`` are the three points.

    Raises:
        ValueError: If the points lie on one line.

    >>> net = ReluNetwork.from_layers([([[1.0, 1, 1]], [-2]), ([[1.0]], [0])])
    >>> part = plane_through(net, [0, 0, 0], [4, 0, 0], [0, 3, 0], margin=0)
    >>> part.marks.tolist(), part
    ([[0.0, 0.0], [4.0, 0.0], [0.0, 3.0]],
     PlaneSlice(2 cells, 2 pieces, complete; 0 <= s <= 4, -0.5 <= t <= 3.5))
    """
    corners = [net.as_rows(point) for point in (a, b, c)]
    if any(len(rows) != 1 for rows, _ in corners):
        raise ValueError(f"a, b and c must be one input of {net.in_features} numbers each; got batches.")
    positive("margin", margin, zero=True)
    start, second, third = (rows[0] for rows, _ in corners)
    with np.errstate(over="ignore", invalid="ignore"):
        u, length = _unit(second - start)
        rest = third - start
        v, height = _unit(rest - (rest @ u) * u)
        v, _ = _unit(v - (v @ u) * u)  # a second time: the first leaves rounding of the longer side
        flat = not height > SAME * np.linalg.norm(rest)
    if length == 0.0 or flat:
        raise ValueError(
            "the three points lie on one line, so many planes pass through them; choose a third "
            "point off the line, or use along_segment."
        )
    marks = np.array([[0.0, 0.0], [length, 0.0], [rest @ u, height]])
    lower, upper = marks.min(axis=0), marks.max(axis=0)
    half = float(np.max(upper - lower)) * (0.5 + margin)
    center = lower / 2 + upper / 2
    box = _rectangle(tuple((m - half, m + half) for m in center.tolist()))
    return _cut(net, (start, u, v), box, marks, budget, max_cells, certified)


def _cut(
    net: ReluNetwork,
    place: tuple[Array, ...],
    box: Box,
    marks: Array,
    budget: float | None,
    max_cells: int,
    certified: bool,
) -> PlaneSlice:
    origin, u, v = (np.array(part) for part in place)
    embedding = ReluNetwork.from_layers([(np.stack([u, v], axis=1), origin)])
    found = polyhedral_complex(
        net @ embedding, box, budget=budget, max_cells=max_cells, certified=certified
    )
    for array in (origin, u, v, marks):
        array.flags.writeable = False
    return PlaneSlice(net, origin, u, v, found, marks)


def _unit(vector: Array) -> tuple[Array, float]:
    """Return the direction and the length of a vector."""
    length = float(np.linalg.norm(vector))
    return (vector / length if length > 0 else vector), length


def _rectangle(extent: Any) -> Box:
    ends = np.asarray(extent, dtype=np.float64)
    if ends.shape != (2, 2) or not np.isfinite(ends).all() or not (ends[:, 0] < ends[:, 1]).all():
        raise ValueError(
            "extent must be ((s_min, s_max), (t_min, t_max)) with finite numbers, the smaller ones "
            f"first; got {extent}."
        )
    return Box(ends[:, 0], ends[:, 1])


def _require_planes(us: Array, vs: Array) -> None:
    """Refuse directions that span no plane."""
    lengths = np.linalg.norm(us, axis=1, keepdims=True), np.linalg.norm(vs, axis=1, keepdims=True)
    for name, length in zip("uv", lengths, strict=True):
        if not (length > 0).all():
            where = _of_plane(int(np.argmin(length > 0)), us)
            raise ValueError(f"the direction {name} is zero{where}; a plane needs two directions.")
    a, b = us / lengths[0], vs / lengths[1]
    gaps = np.minimum(np.linalg.norm(a - b, axis=1), np.linalg.norm(a + b, axis=1))
    if (gaps <= SAME).any():
        where = _of_plane(int(np.argmax(gaps <= SAME)), us)
        raise ValueError(f"u and v are parallel{where} and span a line; use along_segment for lines.")


def _of_plane(i: int, us: Array) -> str:
    return f" for plane {i}" if len(us) > 1 else ""


@dataclass(frozen=True, eq=False, repr=False)
class PlaneSlice:
    r"""A network on a rectangle in a plane, :math:`x = o + s u + t v`.

    Attributes:
        net: The network, with all its inputs.
        origin: The point :math:`o`, (d,).
        u: The direction of s, (d,).
        v: The direction of t, (d,).
        complex: Its cells on the plane, in the coordinates (s, t).
        marks: Points of interest in these coordinates, (m, 2); the three of :func:`plane_through`.

    Example:
        The plane :math:`x_3 = 1` cuts ``relu(x_1) + relu(x_3)`` into two cells:

        >>> net = ReluNetwork.from_layers([([[1.0, 0, 0], [0, 0, 1]], [0, 0]), ([[1.0, 1]], [0])])
        >>> from pindown.geometry.slices.plane import on_plane
        >>> part = on_plane(net, [0, 0, 1], [1, 0, 0], [0, 1, 0])
        >>> part
        PlaneSlice(2 cells, 2 pieces, complete; -1 <= s <= 1, -1 <= t <= 1)
        >>> part([0.5, 0.25]), part.lift([0.5, 0.25])
        (array([1.5]), array([0.5 , 0.25, 1.  ]))

    Phuong 2021, section A.2 (fold-sets), restricted to a plane.
    """

    net: ReluNetwork
    origin: Array
    u: Array
    v: Array
    complex: PolyhedralComplex
    marks: Array

    @property
    def restricted(self) -> ReluNetwork:
        """The network as a function of (s, t)."""
        return self.complex.net

    @property
    def box(self) -> Box:
        """The rectangle in (s, t)."""
        return self.complex.box

    @property
    def kind(self) -> Kind:
        """How the cells are known; as ``complex.kind`` says."""
        return self.complex.kind

    @property
    def complete(self) -> bool:
        """Whether these are all cells on the rectangle."""
        return self.complex.complete

    @property
    def n_regions(self) -> int:
        """Number of cells."""
        return self.complex.n_regions

    @property
    def n_pieces(self) -> int:
        """Number of pieces, the maximal connected unions of cells with one affine map of (s, t)."""
        return self.complex.n_pieces

    @property
    def regions(self) -> Sequence[Region]:
        """The cells, one object each, in (s, t)."""
        return self.complex.regions

    @property
    def patterns(self) -> NDArray[np.bool_]:
        """Which units are on in each cell, (n, size)."""
        return self.complex.patterns

    def lift(self, st: ArrayLike) -> Array:
        """Return the inputs at points of the plane: (n, 2) -> (n, d), (2,) -> (d,)."""
        points = np.asarray(st, dtype=np.float64)
        if points.shape[-1:] != (2,):
            raise ValueError(f"points of a plane have shape (n, 2) or (2,); got {points.shape}.")
        lifted = points @ np.stack([self.u, self.v])
        lifted += self.origin
        return lifted

    def project(self, X: ArrayLike) -> Array:
        """Return (s, t) of the points of the plane nearest to inputs: (n, d) -> (n, 2), (d,) -> (2,)."""
        rows, single = self.net.as_rows(X)
        directions = np.stack([self.u, self.v], axis=1)
        solved = np.linalg.lstsq(directions, (rows - self.origin).T, rcond=None)[0]
        st = solved.T.astype(np.float64)
        return st[0] if single else st

    def distance(self, X: ArrayLike) -> Array:
        """Return how far inputs (n, d), or one (d,), are from the plane, (n,)."""
        rows, _ = self.net.as_rows(X)
        return np.sqrt(np.sum((rows - self.lift(self.project(rows))) ** 2, axis=1))

    def __call__(self, st: ArrayLike) -> Array:
        """Return the outputs at points of the plane: (n, 2) -> (n, k), (2,) -> (k,)."""
        return self.net(self.lift(st))

    def input_map(self, i: int) -> tuple[Array, Array]:
        """Return ``(A, c)``, (k, d) and (k,), with ``A x + c`` what the network computes in cell i.

        It holds in the whole d-dimensional cell that the plane cuts there; ``complex.A`` and
        ``complex.c`` are the same in the coordinates (s, t).
        """
        return self.net.affine_of_pattern(self.patterns[i])

    def __repr__(self) -> str:
        (s, t), (s_end, t_end) = self.box.lower, self.box.upper
        cells = repr(self.complex).partition("(")[2].rstrip(")")
        return f"PlaneSlice({cells}; {s:g} <= s <= {s_end:g}, {t:g} <= t <= {t_end:g})"
