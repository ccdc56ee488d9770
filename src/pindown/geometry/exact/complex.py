"""The cells of a network in exact rational arithmetic: no tolerance, no rounding, no special case.

Every float64 is a rational number, so a network has one true list of cells. This module computes
it, whatever the weights: duplicated units, folds through corners, units that vanish on a whole
cell. It is the arbiter for ties that float64 cannot decide, and what the fast code is tested against.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.box import Box, as_box
from pindown.deadline import Deadline
from pindown.geometry.exact._traversal import Walk
from pindown.geometry.exact.integer_network import affine_map, integer_network
from pindown.geometry.exact.polytope import (
    Cell,
    facet_labels,
    in_order,
    merged,
    neighbour_pairs,
    signs,
    volume,
)
from pindown.io.accepting import on_network
from pindown.network import ReluNetwork
from pindown.validation import positive


@dataclass(frozen=True, eq=False, repr=False)
class ExactComplex:
    """The full-dimensional cells of a network on a box, in exact arithmetic.

    Attributes:
        net: The network.
        box: The domain.
        patterns: Which units are on in each cell, (n, size), in the order of ``net.pattern``.
        cells: For each cell its vertices in homogeneous integers with exact signs, in any order.
        complete: Whether these are all cells.
        growth: Number of cells after each hidden layer.
    """

    net: ReluNetwork
    box: Box
    patterns: NDArray[np.bool_]
    cells: tuple[Cell, ...]
    complete: bool
    growth: tuple[int, ...]

    @property
    def n_regions(self) -> int:
        """Number of cells found."""
        return len(self.cells)

    @cached_property
    def vertices(self) -> list[list[tuple[Fraction, ...]]]:
        """Vertices of each cell: ascending in 1-D, counter-clockwise in 2-D."""
        return [[vertex.fractions for vertex in in_order(cell)] for cell in self.cells]

    @cached_property
    def volumes(self) -> list[Fraction]:
        """Volume of each cell."""
        return [volume([v.point for v in cell], [v.tight for v in cell]) for cell in self.cells]

    @cached_property
    def vertex_signs(self) -> dict[tuple[Fraction, ...], NDArray[np.int8]]:
        """For each vertex of the complex the signs -1, 0, 1 of all units there."""
        bits = {v.fractions: (v.positive, v.negative) for cell in self.cells for v in cell}
        size = self.net.size
        return {x: _unpack(p, size).astype(np.int8) - _unpack(n, size) for x, (p, n) in bits.items()}

    @cached_property
    def facets(self) -> list[list[frozenset[int]]]:
        """For each facet of each cell the labels of all units and box sides that hold it.

        Unit j has label j; the side ``x_i >= lower_i`` has ``size + 2 i``, ``x_i <= upper_i`` one more.
        """
        return [facet_labels(cell) for cell in self.cells]

    @cached_property
    def neighbours(self) -> list[tuple[int, int]]:
        """Pairs i < j of cells that share a facet."""
        return neighbour_pairs(self.cells)

    @cached_property
    def maps(self) -> list[tuple[tuple[Fraction, ...], ...]]:
        """Affine map of each cell: one row ``(a_1, ..., a_d, c)`` for each output."""
        integers = integer_network(self.net)
        return [affine_map(integers, self.net.by_layer(pattern)) for pattern in self.patterns]

    @cached_property
    def pieces(self) -> list[int]:
        """Piece of each cell: cells joined through shared facets where the affine map is the same."""
        return merged(self.maps, self.neighbours)

    @property
    def n_pieces(self) -> int:
        """Number of maximal connected unions of cells with one affine map."""
        return len(set(self.pieces))

    def __repr__(self) -> str:
        more = "" if self.complete else " so far (incomplete)"
        return f"ExactComplex({self.n_regions} cells{more} of {self.net!r}, exact)"


@on_network
def exact_complex(
    net: ReluNetwork,
    box: Box | tuple[ArrayLike, ArrayLike],
    *,
    max_cells: int | None = None,
    budget: float | None = None,
) -> ExactComplex:
    """Enumerate all full-dimensional activation cells of a network on a box, exactly.

    A unit that is zero on a whole cell counts as on there and cuts nothing; cells are told apart by
    the units that take a strict sign in their interior.

    Args:
        net: The network, of small input dimension.
        box: The domain, with interior: a Box or a pair ``(lower, upper)``.
        max_cells: Stop after this many cells.
        budget: Stop after this many seconds.

    Returns:
        The cells; ``complete`` says whether a limit ended the search.

    Raises:
        ValueError: If the box does not fit the network or is flat in a coordinate.

    Example:
        The fold of ``relu(x + y)`` runs through two corners of the square, and halves it:

        >>> net = ReluNetwork.from_layers([([[1, 1]], [0]), ([[1]], [0])])
        >>> halves = exact_complex(net, (-1, 1))
        >>> halves
        ExactComplex(2 cells of ReluNetwork(2 -> 1 -> 1, 5 parameters), exact)
        >>> halves.volumes
        [Fraction(2, 1), Fraction(2, 1)]

    Mukherjee 2020, chapter 2 (pieces of ReLU networks).
    """
    return exact_cells_within(net, box, None, max_cells=max_cells, budget=budget)


@on_network
def exact_cells_within(
    net: ReluNetwork,
    box: Box | tuple[ArrayLike, ArrayLike],
    states: ArrayLike | None,
    *,
    max_cells: int | None = None,
    budget: float | None = None,
) -> ExactComplex:
    """Enumerate the cells in which units have the given states, exactly.

    States of layers below fix the affine form of a unit; a state asks for that form's sign. If no
    full-dimensional set satisfies all of them there are no cells. A unit that vanishes on a whole
    cell satisfies both states there, and is on in the pattern.

    Args:
        net: The network.
        box: The domain, with interior. Any box that holds the wanted cells gives the same cells;
            a smaller one is faster.
        states: For each unit 1 (on), -1 (off) or 0 (undecided); None leaves all undecided.
        max_cells: Stop after this many cells.
        budget: Stop after this many seconds.

    Returns:
        The cells; ``growth`` counts cells that satisfy the states of the layers so far.

    Raises:
        ValueError: If the box or the states do not fit the network.

    Example:
        Of the quarters cut by the two axes, two are right of the vertical one:

        >>> net = ReluNetwork.from_layers([([[1, 0], [0, 1]], [0, 0]), ([[1, 1]], [0])])
        >>> exact_cells_within(net, (-1, 1), [1, 0]).patterns.astype(int)
        array([[1, 1],
               [1, 0]])
    """
    walk = _walk(net, box, states, max_cells, budget)
    cells = tuple(walk.cells())
    patterns = np.array([_unpack(~signs(cell)[1], net.size) for cell in cells], dtype=bool)
    patterns = patterns.reshape(len(cells), net.size)
    patterns.flags.writeable = False
    domain = as_box(box, net.in_features)
    return ExactComplex(net, domain, patterns, cells, walk.complete, tuple(walk.growth))


@on_network
def exact_count(
    net: ReluNetwork,
    box: Box | tuple[ArrayLike, ArrayLike],
    states: ArrayLike | None = None,
    *,
    max_cells: int | None = None,
    budget: float | None = None,
) -> tuple[int, bool]:
    """Count the cells in which units have the given states, in memory that grows with depth only.

    Takes the arguments of :func:`exact_cells_within`.

    Returns:
        The number of cells found, and whether these are all.

    Example:
        >>> net = ReluNetwork.from_layers([([[1, 0], [0, 1]], [0, 0]), ([[1, 1]], [0])])
        >>> exact_count(net, (-1, 1)), exact_count(net, (-1, 1), [0, -1])
        ((4, True), (2, True))
    """
    walk = _walk(net, box, states, max_cells, budget)
    found = walk.count()
    return found, walk.complete


def _walk(
    net: ReluNetwork,
    box: Box | tuple[ArrayLike, ArrayLike],
    states: ArrayLike | None,
    max_cells: int | None,
    budget: float | None,
) -> Walk:
    domain = as_box(box, net.in_features)
    flat = np.flatnonzero(domain.lower == domain.upper)
    if flat.size:
        raise ValueError(
            f"cells need a box with interior; coordinate {flat[0]} has lower = upper = "
            f"{domain.lower[flat[0]]:g}. Fix that input and drop its column of the first layer."
        )
    limit = inf if max_cells is None else positive("max_cells", max_cells, zero=True, infinite=True)
    wanted = None if states is None else _checked(states, net.size)
    return Walk(net, domain, wanted, max_cells=limit, deadline=Deadline.of(budget))


def _checked(states: ArrayLike, size: int) -> list[int]:
    array = np.asarray(states)
    if array.shape != (size,) or not np.isin(array, (-1, 0, 1)).all():
        raise ValueError(
            f"states must hold 1 (on), -1 (off) or 0 (undecided) for each of the {size} units; "
            f"got shape {array.shape} with values {np.unique(array)[:5].tolist()}."
        )
    return [int(state) for state in array]


def _unpack(bits: int, size: int) -> NDArray[np.bool_]:
    """Return the lowest ``size`` bits of an integer as an array."""
    wanted = bits & ((1 << size) - 1)
    raw = np.frombuffer(wanted.to_bytes(size // 8 + 1, "little"), dtype=np.uint8)
    return np.unpackbits(raw, bitorder="little", count=size).astype(bool)
