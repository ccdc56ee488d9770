"""The tables in which the compiled search looks for better networks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from pindown.affine import Integers
from pindown.learn.exact.problem import CERTIFIED_TO, LOSSES, Problem
from pindown.learn.exact.tuning import MAX_CONVEX_WALKS, MAX_OPEN_PROGRAMS, MAX_WALK_STEPS
from pindown.network import ReluNetwork

if TYPE_CHECKING:
    from pindown.learn.exact.compiled.convex import Rows
    from pindown.learn.exact.compiled.squared import Cells, Found


_LARGER = 10.0  # squared weights of the optimum, in units of those of the best network found


@dataclass(eq=False)
class Table:
    """Cells and rows of a problem, with the best network found in them."""

    problem: Problem
    cells: Cells
    rows: Rows
    best: Found
    whole: bool  # every network is in some tuple of cells, and float64 can tell what it gains
    tried: set[bytes] = field(default_factory=set)

    @classmethod
    def of(cls, problem: Problem, width: int, loss: float) -> Table:
        """Build the tables; only networks with less than a given loss count as found."""
        from pindown.learn.exact.compiled.squared import Found

        cells, rows, whole = problem.tables()
        best = Found(
            loss=np.array([loss]),
            phi=np.zeros(width * cells.points.shape[1]),
            shift=np.zeros(1),
            chosen=np.zeros(width, np.int64),
            signs=np.zeros(width, np.int64),
            counts=np.zeros(3, np.int64),
            open_bound=np.full(MAX_OPEN_PROGRAMS, np.inf),
            open_chosen=np.zeros((MAX_OPEN_PROGRAMS, width), np.int64),
            open_signs=np.zeros((MAX_OPEN_PROGRAMS, width), np.int64),
        )
        return cls(problem, cells, rows, best, whole)

    @property
    def n_cells(self) -> int:
        """How many cells there are, the one that is on nowhere included."""
        return len(self.cells.parent)

    @property
    def _squared(self) -> bool:
        return self.rows.kind == LOSSES.index("squared")

    def descend(self, start: Integers) -> None:
        """Improve the best network by walking over cells from a tuple."""
        from pindown.learn.exact.compiled.squared import blank, descend

        if self._squared:
            descend(self.cells, start, self.problem.biased, self.best, MAX_WALK_STEPS)
            return
        from pindown.learn.exact.compiled.convex import descend_convex

        guide = blank(self.best)  # where squared loss leads, in microseconds, is a good place to begin
        descend(self.cells, start, self.problem.biased, guide, MAX_WALK_STEPS)
        place = np.sort(guide.chosen)
        if place.tobytes() not in self.tried and len(self.tried) < MAX_CONVEX_WALKS:
            self.tried.add(place.tobytes())
            descend_convex(self.cells, self.rows, place, self.problem.biased, self.best, MAX_WALK_STEPS)

    def examine(self, part: tuple[int, int]) -> Found:
        """Examine all tuples whose first member is in a range, and leave the best network as it is."""
        copies: Any = tuple(array.copy() for array in self.best)
        found = type(self.best)(*copies)
        found.counts[:] = 0
        found.open_bound[:] = np.inf
        width = len(found.chosen)
        if self._squared:
            from pindown.learn.exact.compiled.squared import search_rows

            search_rows(self.cells, *part, width, self.problem.biased, found)
        else:
            from pindown.learn.exact.compiled.convex import search_convex_rows

            search_convex_rows(self.cells, self.rows, *part, width, self.problem.biased, found)
        return found

    def take(self, found: Found) -> None:
        """Make a network the best one if it is better."""
        if found.loss[0] < self.best.loss[0]:
            self.best = found

    def network(self) -> ReluNetwork | None:
        """Return the best network, or None if nothing better was found."""
        if not self.best.signs.any():
            return None
        return self.problem.network(self.best.signs, self.best.phi, float(self.best.shift[0]))

    def certified(self, loss: float) -> float:
        """Return what is proved when every program was ruled out or solved: no loss is below this."""
        room = CERTIFIED_TO * loss + float(self.cells.margins[1])
        if self._squared:  # networks with weights of about this size were bounded with the floor added
            room += _LARGER * float(self.cells.floor[0]) * float(self.best.phi @ self.best.phi)
        return max(0.0, loss - room)
