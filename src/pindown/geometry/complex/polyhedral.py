r"""The polyhedral complex of a network on a box: every cell, with its affine map and its neighbours.

A ReLU network is affine on each of finitely many convex cells. They are found layer by layer: a unit
of layer l is affine on every cell of layers below l, so its zero set cuts that cell along a
hyperplane or not at all.

Phuong 2021, section 2.2 and appendix A.2 (cells and folds); Mukherjee 2020, chapter 2 (pieces).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.box import Box
from pindown.deadline import Deadline, Stopwatch
from pindown.evidence import Kind
from pindown.geometry.complex import _skeleton as skeleton
from pindown.geometry.complex._cells import Cells, full_box
from pindown.geometry.complex._skeleton import Dual, dual_graph, merge_pieces
from pindown.geometry.regions.region import Region
from pindown.geometry.tuning import MAX_CELLS
from pindown.io.accepting import on_network
from pindown.network import ReluNetwork
from pindown.progress import Report
from pindown.text import card
from pindown.validation import number


@dataclass(frozen=True, eq=False, repr=False)
class PolyhedralComplex:
    """All full-dimensional cells of a network on a box, or those found within a budget.

    Attributes:
        net: The network.
        box: The domain.
        complete: Whether these are all cells.
        certified: Whether every sign was proved or decided in exact arithmetic.
        growth: Number of cells after each hidden layer.
        cells: The arrays everything else is read from.
        seconds: Time spent finding them, compilation included.

    Example:
        The absolute value of x times the square: two cells, each an affine piece.

        >>> net = ReluNetwork.from_layers([([[1.0, 0.0], [-1.0, 0.0]], [0, 0]), ([[1.0, 1.0]], [0])])
        >>> cx = polyhedral_complex(net, (-1, 1))
        >>> cx
        PolyhedralComplex(2 cells, 2 pieces, complete)
        >>> sorted(region.A.round(9).tolist() for region in cx.regions), cx.volumes
        ([[[-1.0, 0.0]], [[1.0, 0.0]]], array([2., 2.]))
    """

    net: ReluNetwork
    box: Box
    complete: bool
    certified: bool
    growth: tuple[int, ...]
    cells: Cells = field(repr=False)
    seconds: float = 0.0

    @property
    def kind(self) -> Kind:
        """``"exact"`` for all cells, ``"estimate"`` for those found until a search was stopped.

        Signs are proved if ``certified``, else those that float64 gives.
        """
        return "exact" if self.complete else "estimate"

    @property
    def n_regions(self) -> int:
        """Number of cells found."""
        return self.cells.n

    def __len__(self) -> int:
        return self.cells.n

    def first(self, n: int) -> PolyhedralComplex:
        """Return the complex of the n cells that were found first, itself if there are no more."""
        if n >= self.n_regions:
            return self
        return replace(self, cells=self.cells.first(n), complete=False)

    @property
    def regions(self) -> Sequence[Region]:
        """The cells, one object each, made when asked for."""
        return _Regions(self)

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Vertices of cell i are the rows ``offsets[i] : offsets[i + 1]`` of ``cell_vertices``."""
        return self.cells.vertex_starts

    @property
    def cell_vertices(self) -> Array:
        """Vertices of all cells, one cell after the other: in 2-D counter-clockwise."""
        return self.cells.coords

    @property
    def facet_offsets(self) -> NDArray[np.int64]:
        """Facets of cell i: entries ``facet_offsets[i] : facet_offsets[i + 1]`` of ``cell_facets``."""
        return self.cells.facet_starts

    @property
    def cell_facets(self) -> NDArray[np.int32]:
        """Facet labels of all cells (see :class:`Region`); in 2-D that of the side after each vertex."""
        return self.cells.facets

    @cached_property
    def patterns(self) -> NDArray[np.bool_]:
        """Which units are on in each cell, (n, size)."""
        return self.cells.unpacked_patterns()

    @property
    def A(self) -> Array:  # noqa: N802 - as in f(x) = A x + c
        """Matrices of the affine maps, (n, k, d)."""
        return self.cells.maps[:, :-1, :].transpose(0, 2, 1)

    @property
    def c(self) -> Array:
        """Offsets of the affine maps, (n, k)."""
        return self.cells.maps[:, -1, :]

    @cached_property
    def volumes(self) -> Array:
        """Volume of each cell (length in 1-D, area in 2-D)."""
        return self.cells.volumes()

    @cached_property
    def _dual(self) -> Dual:
        return dual_graph(self.cells, self.box)

    @property
    def neighbours(self) -> NDArray[np.int64]:
        """Pairs i < j of cells that share a facet, (m, 2)."""
        return self._dual.pairs

    @property
    def neighbour_units(self) -> NDArray[np.int64]:
        """For each pair the unit whose zero set holds the shared facet, (m,)."""
        return self._dual.units

    @cached_property
    def _adjacency(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Neighbours of all cells, one cell after the other, and where those of each start."""
        both = np.concatenate([self.neighbours, self.neighbours[:, ::-1]])
        both = both[np.lexsort(both.T[::-1])]
        return both[:, 1], np.searchsorted(both[:, 0], np.arange(self.n_regions + 1))

    def neighbours_of(self, i: int) -> NDArray[np.int64]:
        """Return the cells that share a facet with cell i."""
        cells, starts = self._adjacency
        k = range(self.n_regions)[i]
        return cells[starts[k] : starts[k + 1]]

    @cached_property
    def pieces(self) -> NDArray[np.int64]:
        """For each cell its piece: a maximal connected union of cells with one affine map."""
        return merge_pieces(self.net, self.cells, self.neighbours, self.box)

    @property
    def n_pieces(self) -> int:
        """Number of pieces."""
        return int(self.pieces.max(initial=-1)) + 1

    @cached_property
    def n_maps(self) -> int:
        """Number of distinct affine maps; fewer than pieces where distant ones share a map."""
        return skeleton.distinct_maps(self.net, self.cells, self.box)

    @cached_property
    def _vertices(self) -> tuple[Array, NDArray[np.int64]]:
        return skeleton.merged_vertices(self.cells, self.box, self._dual.sides, self.complete)

    @property
    def vertices(self) -> Array:
        """All vertices, each once, (V, d)."""
        return self._vertices[0]

    @property
    def vertex_ids(self) -> NDArray[np.int64]:
        """For each row of ``cell_vertices`` its row in ``vertices``."""
        return self._vertices[1]

    @cached_property
    def vertex_signs(self) -> NDArray[np.int8]:
        """Sign of every unit at every vertex, (V, size)."""
        return skeleton.vertex_signs(self.net, self.box, self.cells, *self._vertices)

    @cached_property
    def edges(self) -> NDArray[np.int64]:
        """All edges, each once, as pairs of rows of ``vertices``, (E, 2)."""
        return skeleton.edges(self.cells, self.vertex_ids)

    @cached_property
    def edge_signs(self) -> NDArray[np.int8]:
        """Sign of every unit inside every edge, (E, size); zero where it vanishes on all of the edge."""
        return skeleton.edge_signs(self.net, self.box, self.vertices, self.vertex_signs, self.edges)

    def locate(self, X: ArrayLike) -> NDArray[np.int64]:
        """Return for each row of X the cell that contains it, -1 where none found does."""
        return skeleton.locate(self.net, self.cells, self.box, X)

    _repr_html_ = card

    def __repr__(self) -> str:
        cells = "1 cell" if self.n_regions == 1 else f"{self.n_regions:,} cells"
        pieces = "1 piece" if self.n_pieces == 1 else f"{self.n_pieces:,} pieces"
        return f"PolyhedralComplex({cells}, {pieces}, {'complete' if self.complete else 'not complete'})"


@on_network
def polyhedral_complex(
    net: ReluNetwork,
    box: Box | tuple[ArrayLike, ArrayLike],
    *,
    budget: float | None = None,
    max_cells: int = MAX_CELLS,
    certified: bool = False,
    progress: Report | None = None,
) -> PolyhedralComplex:
    """Find every full-dimensional cell of a network on a box.

    Args:
        net: The network; its input should have few dimensions, 1 to about 6.
        box: The inputs, full-dimensional.
        budget: Seconds; when they are over, the cells found so far are returned.
        max_cells: Cells at most, which bounds the memory; those found so far are returned.
        certified: Prove every sign; cells with undecided ones go to exact rational arithmetic.
        progress: Called with what is done, the number of cells so far and None, a few times per second.

    Returns:
        The cells; ``complete`` says whether they are all.

    Raises:
        ValueError: If the box does not fit, is flat, or has too many dimensions.

    >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
    >>> cx = polyhedral_complex(net, (-1, 1))
    >>> cx.n_regions, sorted(cx.A.ravel().tolist()), cx.complete
    (2, [-1.0, 1.0], True)
    """
    from pindown.geometry.complex._cell_search import cells_of

    watch, deadline = Stopwatch(), Deadline.of(budget)
    domain = full_box(box, net.in_features)
    number("max_cells", max_cells, 1.0, infinite=True)
    found = cells_of(net, domain, deadline, max_cells, certified, progress)
    return PolyhedralComplex(
        net, domain, found.complete, certified, found.growth, found.cells, watch.seconds
    )


class _Regions(Sequence[Region]):
    """The cells of a complex as objects."""

    def __init__(self, cx: PolyhedralComplex) -> None:
        self._complex = cx

    def __len__(self) -> int:
        return self._complex.n_regions

    @overload
    def __getitem__(self, i: int) -> Region: ...
    @overload
    def __getitem__(self, i: slice) -> list[Region]: ...
    def __getitem__(self, i: int | slice) -> Region | list[Region]:
        if isinstance(i, slice):
            return [self[k] for k in range(*i.indices(len(self)))]
        k = range(len(self))[i]
        cells = self._complex.cells
        pattern = cells.unpacked_patterns(k)
        return Region(self._complex.net, self._complex.box, pattern, cells.labels(k), cells.vertices(k))

    def __iter__(self) -> Iterator[Region]:
        return (self[k] for k in range(len(self)))
