r"""A network, or values on a triangulation, as a function with its affine pieces, and back.

From convex pieces :math:`P_i` with maps :math:`\ell_i` the function is

.. math:: f = \max_i \min_{j \in S_i} \ell_j, \qquad S_i = \{j : \ell_j \ge \ell_i \text{ on } P_i\},

if no :math:`\ell_j - \ell_i` changes its sign inside :math:`P_i`; pieces where one does are cut first.
(On the way from a point of :math:`P_i` to x, f passes some piece whose map is not below f where the way
starts, so it is in :math:`S_i`, and not above f at x.) All of it in exact arithmetic.

:func:`compile_function` is the one way in for everything that can be compiled into a network.

Ovchinnikov 2002; Mukherjee 2020, Theorem 2.2.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm
from typing import Any

from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.box import Box, as_box
from pindown.circuits._radon import Map
from pindown.circuits.arithmetic import Net, alike, require_networks
from pindown.circuits.lattice import LatticeForm, compile_lattice
from pindown.circuits.max_affine import MaxAffineSum, compile_max_affine
from pindown.circuits.piecewise_1d import PiecewiseLinear1D, compile_1d
from pindown.circuits.tuning import MAX_CELLS, MAX_TERMS
from pindown.geometry.exact.complex import exact_complex
from pindown.geometry.exact.polytope import (
    Cell,
    Vertex,
    cut,
    homogeneous,
    merged,
    neighbour_pairs,
    value_at,
)
from pindown.network import ReluNetwork
from pindown.rational import RationalNetwork, reduce_rows, solve

_MAX_FLOAT_INTEGER = 2**53


@dataclass(frozen=True, eq=False, repr=False)
class PiecewiseLinear:
    """A continuous function that is affine on each of finitely many convex cells.

    Attributes:
        maps: The distinct affine maps, rows ``(g_1, ..., g_n, b)`` of fractions.
        map_of: For each cell the index of its map.
        cells: The cells: vertices in exact integers, with the facets they lie on.
        n_pieces: Number of maximal connected unions of cells with one map.

    Example:
        >>> net = ReluNetwork.from_layers([([[1.0, 0.0], [-1.0, 0.0]], [0, 0]), ([[1.0, 1.0]], [0])])
        >>> f = extract(net, (-1, 1))
        >>> f, f.lattice().at([-3, 7])
        (PiecewiseLinear(2 inputs, 2 pieces in 2 cells, 2 maps), Fraction(3, 1))
    """

    maps: tuple[Map, ...]
    map_of: tuple[int, ...]
    cells: tuple[Cell, ...]
    n_pieces: int

    @property
    def in_features(self) -> int:
        """Number n of variables."""
        return len(self.maps[0]) - 1

    @property
    def vertices(self) -> list[list[tuple[Fraction, ...]]]:
        """Vertices of each cell."""
        return [[vertex.fractions for vertex in cell] for cell in self.cells]

    def lattice(self) -> LatticeForm:
        r"""Return :math:`\max_i \min_{j \in S_i} \ell_j`, equal to the function on its domain.

        The domain must be convex; outside of it the lattice form continues the function somehow.
        """
        return self._lattice

    @cached_property
    def _lattice(self) -> LatticeForm:
        groups: set[frozenset[int]] = set()
        for i, cell in zip(self.map_of, self.cells, strict=True):
            differences = [_difference(row, self.maps[i]) for row in self.maps]
            for part in _refined(cell, differences):
                groups.add(
                    frozenset(
                        j
                        for j, form in enumerate(differences)
                        if all(value_at(form, vertex) >= 0 for vertex in part)
                    )
                )
        return LatticeForm.of(self.maps, groups)

    def __call__(self, X: ArrayLike) -> Array:
        """Evaluate rows (N, n) in float64: (N,)."""
        return self.lattice()(X)

    def __repr__(self) -> str:
        n = self.in_features
        return (
            f"PiecewiseLinear({n} input{'s' if n > 1 else ''}, {self.n_pieces} pieces in "
            f"{len(self.cells)} cells, {len(self.maps)} maps)"
        )


def extract(
    net: Net, box: Box | tuple[ArrayLike, ArrayLike], *, max_cells: int = MAX_CELLS
) -> PiecewiseLinear:
    """Return the piecewise linear function that a network computes on a box, exactly.

    Weights in float64 are taken as the rational numbers they are: pieces that only rounding tells apart
    are two.

    Args:
        net: A network with one output, in float64 or over the rationals.
        box: The domain, with interior.
        max_cells: Give up beyond this many cells.

    Raises:
        ValueError: If the network has several outputs or too many cells.

    Example:
        >>> net = ReluNetwork.from_layers([([[1.0]], [0]), ([[2.0]], [1])])
        >>> extract(net, (-1, 1)).maps
        ((Fraction(2, 1), Fraction(1, 1)), (Fraction(0, 1), Fraction(1, 1)))
    """
    require_networks(net)
    integer, scale = (net, Fraction(1)) if isinstance(net, ReluNetwork) else _integer_network(net)
    if integer.out_features != 1:
        raise ValueError(f"extract takes networks with one output; this one has {integer.out_features}.")
    found = exact_complex(integer, as_box(box, integer.in_features), max_cells=max_cells)
    if not found.complete:
        raise ValueError(
            f"the network has more than max_cells={max_cells} cells on this box; raise max_cells, or "
            "take a smaller box."
        )
    rows = [tuple(v / scale for v in map_[0]) for map_ in found.maps]
    return _piecewise(rows, found.cells)


def from_triangulation(
    vertices: Sequence[Sequence[Any]], simplices: Sequence[Sequence[int]], values: Sequence[Any]
) -> PiecewiseLinear:
    """Return the function that is affine on each simplex and has the given values at the vertices.

    Args:
        vertices: The points, in n dimensions; floats are taken exactly.
        simplices: For each simplex the indices of its n + 1 vertices. Together they must fill a convex
            set and meet in whole faces, as a Delaunay triangulation does.
        values: The value at each vertex.

    Raises:
        ValueError: If the numbers do not fit or a simplex is flat.

    Example:
        A pyramid over the square, from its four sides:

        >>> corners = [[0, 0], [1, 1], [-1, 1], [-1, -1], [1, -1]]
        >>> sides = [[0, 1, 2], [0, 2, 3], [0, 3, 4], [0, 4, 1]]
        >>> from_triangulation(corners, sides, [1, 0, 0, 0, 0]).lattice()
        LatticeForm(2 inputs, maximum of 1 minima over 4 maps, exact)
    """
    points = [tuple(Fraction(v) for v in alike(p, "vertices")) for p in vertices]
    heights = [Fraction(v) for v in alike(values, "values")]
    dims = {len(p) for p in points}
    if len(dims) != 1 or len(points) != len(heights) or not len(simplices):
        raise ValueError(
            f"a triangulation needs vertices of one dimension, a value for each and a simplex; got "
            f"dimensions {sorted(dims)}, {len(points)} vertices, {len(heights)} values, "
            f"{len(simplices)} simplices."
        )
    (n,) = dims
    cells, rows = [], []
    for simplex in simplices:
        chosen = [int(i) for i in simplex]
        if len(set(chosen)) != n + 1 or not all(0 <= i < len(points) for i in chosen):
            raise ValueError(f"a simplex in {n} dimensions has {n + 1} vertices; got {list(simplex)}.")
        rows.append(_interpolated([points[i] for i in chosen], [heights[i] for i in chosen]))
        cells.append(_simplex([points[i] for i in chosen]))
    return _piecewise(rows, cells)


def compile_function(
    f: PiecewiseLinear1D | MaxAffineSum | LatticeForm | PiecewiseLinear,
    *,
    shallow: bool = True,
    max_terms: int = MAX_TERMS,
) -> Net:
    r"""Return a network that computes a piecewise linear function of n variables.

    Args:
        f: The function in any of its forms. What :func:`~pindown.circuits.piecewise.extract` finds on a
            box is equal there.
        shallow: Whether to keep to :math:`\lceil \log_2(n + 1) \rceil` hidden layers, at the price of
            many ReLUs. Otherwise trees of maxima and minima are built as deep as it takes.
        max_terms: Limit for the shallow form.

    Returns:
        A rational network if the numbers are fractions, one in float64 otherwise.

    Raises:
        ValueError: If the shallow form has too many terms.
        TypeError: If f is none of these.

    Example:
        >>> net = compile_function(PiecewiseLinear1D([0], [0], left_slope=0, right_slope=1))
        >>> net([-2]), net([5])
        ([Fraction(0, 1)], [Fraction(5, 1)])

    Mukherjee 2020, Theorems 2.2.1 and 2.2.2.
    """
    if isinstance(f, PiecewiseLinear1D):
        return compile_1d(f)
    if isinstance(f, MaxAffineSum):
        return compile_max_affine(f, max_terms=max_terms, reduce=shallow)
    if isinstance(f, PiecewiseLinear):
        return compile_lattice(f.lattice(), shallow=shallow, max_terms=max_terms)
    if isinstance(f, LatticeForm):
        return compile_lattice(f, shallow=shallow, max_terms=max_terms)
    raise TypeError(
        f"compile_function takes a PiecewiseLinear1D, MaxAffineSum, LatticeForm or PiecewiseLinear; "
        f"got {type(f).__name__}."
    )


def _piecewise(rows: Sequence[Map], cells: Sequence[Cell]) -> PiecewiseLinear:
    index: dict[Map, int] = {}
    map_of = tuple(index.setdefault(row, len(index)) for row in rows)
    pieces = merged(map_of, neighbour_pairs(cells))
    return PiecewiseLinear(tuple(index), map_of, tuple(cells), len(set(pieces)))


def _interpolated(points: Sequence[Sequence[Fraction]], heights: Sequence[Fraction]) -> Map:
    n = len(points[0])
    columns = [[*point, Fraction(1)] for point in points]
    row = solve(columns, heights)
    if row is None or len(reduce_rows(columns)[1]) <= n:
        raise ValueError(f"a simplex is flat: its vertices are {[[str(v) for v in p] for p in points]}.")
    return tuple(row)


def _simplex(points: Sequence[Sequence[Fraction]]) -> Cell:
    """Return a simplex as a cell: facet f lies opposite to vertex f, so all others are on it."""
    everything = (1 << len(points)) - 1
    return [
        Vertex(homogeneous(point), 0, 0, everything & ~(1 << k), 0) for k, point in enumerate(points)
    ]


def _difference(row: Map, base: Map) -> tuple[int, ...]:
    """Return a positive multiple of the difference of two maps, in integers."""
    difference = [Fraction(u - v) for u, v in zip(row, base, strict=True)]
    scale = lcm(*(v.denominator for v in difference))
    return tuple(int(v * scale) for v in difference)


def _refined(cell: Cell, forms: Sequence[tuple[int, ...]]) -> list[Cell]:
    """Cut a cell until no form changes its sign inside a part."""
    used = max(vertex.tight.bit_length() for vertex in cell)
    known = (1 << used) - 1
    parts = [[Vertex(v.point, 0, 0, v.tight, 0) for v in cell]]
    for k, form in enumerate(forms):
        bit = 1 << (used + k)
        after: list[Cell] = []
        for part in parts:
            values = [value_at(form, vertex) for vertex in part]
            for vertex, value in zip(part, values, strict=True):
                vertex.see([bit], [value])
            if min(values) < 0 < max(values):
                after += cut(part, bit, form, known, 0, lambda _: None)
            else:
                after.append(part)
        parts, known = after, known | bit
    return parts


def _integer_network(net: RationalNetwork) -> tuple[ReluNetwork, Fraction]:
    """Return a network with integer weights and the same folds, and its output's scale.

    Integers are floats up to 2^53, so the exact geometry of float networks takes it.
    """
    scale, layers = Fraction(1), []
    for W, b in net.layers:
        # Inputs come multiplied by the scale so far; so must the bias.
        bias = b * scale
        up = lcm(*(v.denominator for v in (*W.ravel(), *bias)))
        layers.append((W * up, bias * up))
        scale *= up
    if any(abs(v) > _MAX_FLOAT_INTEGER for W, b in layers for v in (*W.ravel(), *b)):
        raise ValueError(
            "the fractions in this network have denominators too large for its exact cells; "
            "round it first: extract(net.to_network(), box)."
        )
    return ReluNetwork.from_layers([(W.astype(float), b.astype(float)) for W, b in layers]), scale
