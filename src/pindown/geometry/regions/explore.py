"""Cells around data, found one after the other across their facets."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.box import Box, as_box
from pindown.geometry.regions.inner_point import locate
from pindown.geometry.regions.neighbours import Crossing, crossings
from pindown.geometry.regions.region import Region, bounded_region
from pindown.network import ReluNetwork

Progress = Callable[[int, int], None]


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


def explore(
    net: ReluNetwork,
    X: ArrayLike,
    *,
    box: Box | tuple[Any, Any] | None = None,
    budget: float | None = None,
    max_cells: int = 1_000,
    progress: Progress | None = None,
) -> Exploration:
    """Visit the cells of inputs, then their neighbours, then theirs, breadth first.

    Args:
        net: The network.
        X: Inputs (n, d) or (d,), in the box.
        box: The box, a pair ``(lower, upper)``, or None for all of :math:`R^d`.
        budget: Seconds; looked at between cells, so one cell may overrun it.
        max_cells: Visit at most this many.
        progress: Called with the numbers of cells visited and waiting after each visit.

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
    if budget is not None and not budget >= 0:
        raise ValueError(f"budget must be a number of seconds >= 0; got {budget}.")
    if max_cells < 1:
        raise ValueError(f"max_cells must be at least 1; got {max_cells}.")
    search = _Search(
        net, limits, time.monotonic() + (inf if budget is None else budget), max_cells, progress
    )
    try:
        stopped = search.run(rows)
    except KeyboardInterrupt:
        stopped = "interrupted"
    return search.result(len(rows), stopped)


@dataclass
class _Search:
    net: ReluNetwork
    box: Box | None
    deadline: float
    max_cells: int
    progress: Progress | None
    regions: list[Region] = field(default_factory=list)
    numbers: dict[bytes, int] = field(default_factory=dict)  # pattern -> order of discovery
    waiting: deque[Callable[[], Region]] = field(default_factory=deque)
    touching: dict[tuple[int, int], int] = field(default_factory=dict)
    starts: list[int] = field(default_factory=list)

    def run(self, rows: NDArray[np.float64]) -> str:
        """Search until nothing waits; return why it stopped early, or an empty string."""
        for x in rows:
            if time.monotonic() >= self.deadline:
                return "budget"
            located = locate(self.net, x, self.box)
            make = lambda located=located: bounded_region(self.net, self.box, located)  # noqa: E731
            self.starts.append(self._meet(located.pattern, make))
        while self.waiting:
            if len(self.regions) >= self.max_cells:
                return "max_cells"
            if time.monotonic() >= self.deadline:
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
            self.progress(len(self.regions), len(self.waiting))

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
