"""Across the facets of a cell: which cells are next to it, and all that can be reached from data."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.box import Box, as_box
from pindown.deadline import Deadline
from pindown.geometry.regions._polar import ScaledCell, deep_point
from pindown.geometry.regions._redundancy import (
    Separation,
    ahead_by_program,
    ahead_by_projection,
    first_met,
    independent_rows,
)
from pindown.geometry.regions.point_location import locate, pattern_along, step_inside
from pindown.geometry.regions.region import Region, bounded_region
from pindown.geometry.tuning import (
    FEW_SEPARATION_STEPS,
    MANY_SEPARATION_STEPS,
    MAX_PROJECTION_DIM,
    MIN_BOXLESS_DIM,
)
from pindown.io.accepting import on_network
from pindown.network import ReluNetwork
from pindown.progress import Report
from pindown.validation import number


def neighbours(region: Region) -> list[Region]:
    """Return the cell across each facet, in the order of ``facets``; sides of the box have none.

    Only units that vanish on a facet can switch there. Each one is on or off by its slope beyond, found
    layer by layer: the slope of a deeper unit may change where a shallower one switches.

    >>> from pindown.geometry.regions.region import region_at
    >>> net = ReluNetwork.from_layers([([[1.0], [-2.0]], [0, 0]), ([[1.0, 1.0]], [0])])
    >>> [other.pattern.tolist() for other in neighbours(region_at(net, [1.0]))]
    [[False, True]]
    """
    return list(iter_neighbours(region))


def iter_neighbours(region: Region) -> Iterator[Region]:
    """Yield what :func:`neighbours` lists, one at a time."""
    for crossing in crossings(region):
        yield crossing.region()


class Crossing(NamedTuple):
    """A way out of a cell through one facet.

    Attributes:
        net: The network.
        box: The box or None.
        label: Which unit's fold, or side of the box, the facet lies on.
        pattern: Which units are on in the cell across, (size,).
        point: On the facet and on no other, (d,).
        outward: The facet's unit normal, (d,).
        size: How large the numbers were that the point was computed from.
    """

    net: ReluNetwork
    box: Box | None
    label: int
    pattern: NDArray[np.bool_]
    point: Array
    outward: Array
    size: float

    def region(self) -> Region:
        """Return the cell across; finding its facets is what takes time."""
        located = step_inside(self.net, self.pattern, self.point, self.outward, self.box, self.size)
        if located is None:
            raise ArithmeticError(
                f"no cell was found across the fold of unit {self.label}; it is too thin."
            )
        return bounded_region(self.net, self.box, located)


def crossings(region: Region) -> Iterator[Crossing]:
    """Yield the ways out of a cell, one for each facet that is not a side of the box."""
    net, box = region.net, region.box
    which = np.flatnonzero(region.facets < net.size)
    sides = region.halfspaces[which]
    points = facet_points(sides, region.inner, box)
    near = float(np.abs(region.inner).max())
    for label, side, point in zip(region.facets[which], sides, points, strict=True):
        outward, size = side[:-1], max(near, float(np.abs(point).max()))
        pattern = pattern_along(net, point, outward, size)
        yield Crossing(net, box, int(label), pattern, point, outward, size)


def facet_points(halfspaces: Array, inner: Array, box: Box | None = None) -> Array:
    """Return for each facet a point on it that is strictly inside all other rows and the box.

    Args:
        halfspaces: Unit rows (m, d + 1), all of them facets.
        inner: A point strictly inside.
        box: The box that cuts the cell, or None.

    >>> facet_points(np.array([[1.0, -1.0], [-1.0, 0.0]]), np.array([0.3])).ravel().round(12)
    array([1., 0.])
    """
    m, d = len(halfspaces), len(inner)
    if not m:
        return np.zeros((0, d))
    center = deep_point(halfspaces, inner, box)
    cell = ScaledCell.around(halfspaces, center, box)
    directions = (
        _directions(cell) if box is not None or d < MIN_BOXLESS_DIM else _directions_without_box(cell)
    )
    rates = np.einsum("ij,ij->i", directions, cell.rows)
    return center + directions / rates[:, None] + 0.0


def _directions(cell: ScaledCell) -> Array:
    """Return for each row a direction that meets it before all other sides, (n, d)."""
    rows, facet = np.arange(len(cell.rows)), np.zeros(cell.n_sides, dtype=bool)
    directions = np.zeros_like(cell.rows)
    separation, small = Separation(cell), cell.rows.shape[1] <= MAX_PROJECTION_DIM
    for max_steps in (FEW_SEPARATION_STEPS,) if small else (FEW_SEPARATION_STEPS, MANY_SEPARATION_STEPS):
        separation.try_all(rows[~facet[rows]], max_steps, facet, directions)
    for row in rows[~facet[rows]]:
        others = np.delete(rows, row)
        for ahead in (ahead_by_projection, ahead_by_program) if small else (ahead_by_program,):
            found = ahead(cell, int(row), others)
            if found is not None and first_met(cell, found[None], np.array([row]))[0]:
                directions[row] = found
                break
        else:
            raise ArithmeticError(
                f"row {row} was given as a facet, but no point of the cell lies on it."
            )
    return directions


def _directions_without_box(cell: ScaledCell) -> Array:
    """Return the same in the span of the rows that depend on each other, which is often small."""
    alone, rest, span = independent_rows(cell.rows)
    directions = np.zeros_like(cell.rows)
    if len(rest):
        smaller = ScaledCell(cell.rows[rest] @ span, cell.names[rest], cell.low, cell.high)
        directions[rest] = _directions(smaller) @ span.T
    # Directions orthogonal to that span move the independent rows at will: here, one of them or none.
    free = cell.rows[alone] - (cell.rows[alone] @ span) @ span.T
    push = np.linalg.pinv(free)  # (d, n_alone)
    directions[rest] -= (directions[rest] @ cell.rows[alone].T) @ push.T
    directions[alone] = push.T
    return directions


@dataclass(frozen=True, eq=False, repr=False)
class Exploration:
    """The cells found, and how they touch.

    Attributes:
        net: The network.
        box: The box, or None.
        regions: The cells with their facets, in the order of discovery.
        neighbours: Pairs i < j of cells that share a facet, (m, 2).
        neighbour_units: The unit on whose fold the shared facet lies, (m,).
        start: For each input the number of its cell; -1 if the search stopped before, (n,).
        n_waiting: Cells seen across a facet but not visited.
        complete: Whether every cell that can be reached was visited; with a box, that is all of them.
        stopped: ``""`` when complete, else ``"budget"``, ``"max_cells"`` or ``"interrupted"``.
    """

    net: ReluNetwork
    box: Box | None
    regions: tuple[Region, ...]
    neighbours: NDArray[np.int64]
    neighbour_units: NDArray[np.int64]
    start: NDArray[np.int64]
    n_waiting: int
    complete: bool
    stopped: str

    @property
    def n_regions(self) -> int:
        """Number of cells visited."""
        return len(self.regions)

    @property
    def patterns(self) -> NDArray[np.bool_]:
        """Their patterns, (n_regions, size)."""
        rows = [region.pattern for region in self.regions]
        return np.array(rows, dtype=bool).reshape(len(rows), self.net.size)

    def __repr__(self) -> str:
        state = (
            "complete" if self.complete else f"stopped by {self.stopped}, {self.n_waiting:,} more seen"
        )
        return f"Exploration({self.n_regions:,} cells, {len(self.neighbours):,} shared facets; {state})"


@on_network
def explore(
    net: ReluNetwork,
    X: ArrayLike,
    *,
    box: Box | tuple[Any, Any] | None = None,
    budget: float | None = None,
    max_cells: int = 1_000,
    progress: Report | None = None,
) -> Exploration:
    """Visit the cells of inputs, then their neighbours, then theirs, breadth first.

    Args:
        net: The network.
        X: Inputs (n, d) or (d,), in the box.
        box: The box, a pair ``(lower, upper)``, or None for all of :math:`R^d`.
        budget: Seconds; looked at between cells, so one cell may overrun it.
        max_cells: Visit at most this many.
        progress: Called after each visit with what is done, the cells visited, and all cells seen.

    Returns:
        What was found. The search ends early, without an error, when the budget or ``max_cells`` is used
        up, or at Ctrl-C.

    >>> net = ReluNetwork.from_layers([([[1.0, 0.0], [0.0, 1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
    >>> explore(net, [[2.0, 3.0]], box=(-5, 5))
    Exploration(4 cells, 4 shared facets; complete)
    """
    rows, _ = net.as_rows(X)
    limits = None if box is None else as_box(box, net.in_features)
    if limits is not None and not limits.contains(rows).all():
        outside = int(np.count_nonzero(~limits.contains(rows)))
        raise ValueError(f"{outside} of {len(rows)} inputs lie outside the box.")
    number("max_cells", max_cells, 1.0, infinite=True)
    search = _Search(net, limits, Deadline.of(budget), max_cells, progress)
    try:
        stopped = search.run(rows)
    except KeyboardInterrupt:
        stopped = "interrupted"
    return search.result(len(rows), stopped)


@dataclass
class _Search:
    net: ReluNetwork
    box: Box | None
    deadline: Deadline
    max_cells: int
    progress: Report | None
    regions: list[Region] = field(default_factory=list)
    numbers: dict[bytes, int] = field(default_factory=dict)  # pattern -> order of discovery
    waiting: deque[Callable[[], Region]] = field(default_factory=deque)
    touching: dict[tuple[int, int], int] = field(default_factory=dict)
    starts: list[int] = field(default_factory=list)

    def run(self, rows: NDArray[np.float64]) -> str:
        """Search until nothing waits; return why it stopped early, or an empty string."""
        for x in rows:
            if self.deadline.passed:
                return "budget"
            located = locate(self.net, x, self.box)
            make = lambda located=located: bounded_region(self.net, self.box, located)  # noqa: E731
            self.starts.append(self._meet(located.pattern, make))
        while self.waiting:
            if len(self.regions) >= self.max_cells:
                return "max_cells"
            if self.deadline.passed:
                return "budget"
            # A cell leaves the queue only when it is done, so that an interrupt loses nothing.
            region = self.waiting[0]()
            found = [
                (crossing, self._meet(crossing.pattern, crossing.region))
                for crossing in crossings(region)
            ]
            self._visited(region, found)
        return ""

    def _meet(self, pattern: NDArray[np.bool_], make: Callable[[], Region]) -> int:
        key = np.packbits(pattern).tobytes()
        if key not in self.numbers:
            self.numbers[key] = len(self.numbers)
            self.waiting.append(make)
        return self.numbers[key]

    def _visited(self, region: Region, found: list[tuple[Crossing, int]]) -> None:
        number = len(self.regions)
        self.regions.append(region)
        self.waiting.popleft()
        for crossing, other in found:
            self.touching.setdefault((min(number, other), max(number, other)), crossing.label)
        if self.progress is not None:
            done = len(self.regions)
            self.progress("exploring cells", done, done + len(self.waiting))

    def result(self, n_inputs: int, stopped: str) -> Exploration:
        """Return what was found; cells not visited, and facets to them, are left out."""
        n = len(self.regions)
        pairs = sorted(pair for pair in self.touching if pair[1] < n)
        start = np.full(n_inputs, -1, dtype=np.int64)
        start[: len(self.starts)] = [number if number < n else -1 for number in self.starts]
        return Exploration(
            self.net,
            self.box,
            tuple(self.regions),
            np.array(pairs, dtype=np.int64).reshape(-1, 2),
            np.array([self.touching[pair] for pair in pairs], dtype=np.int64),
            start,
            len(self.waiting),
            complete=not stopped,
            stopped=stopped,
        )
