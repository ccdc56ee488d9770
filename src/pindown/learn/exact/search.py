"""The certified search: a good network first, then proof that no tuple of cells holds a better one.

At any time the best network and a lower bound on all networks are known. When every tuple of cells is
examined the two meet. When there are too many tuples for the time given, groups of samples bound the
loss from below.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from math import comb, inf
from typing import TYPE_CHECKING

import numpy as np

from pindown.learn.exact.dichotomies import count_general
from pindown.learn.exact.problem import Problem
from pindown.learn.exact.tables import Table
from pindown.network import ReluNetwork

if TYPE_CHECKING:
    from pindown.learn.exact.kernels.squared import Found

Progress = Callable[[float, float, float], None]  # share done, lower, upper

# Seconds per tuple and unit, as measured for ten points in the plane (for all but squared loss they grow
# with the number of samples): to choose what to attempt, and in what slices.
_SECONDS = {"squared": 2e-7, "absolute": 3e-5, "hinge": 4e-5, "logistic": 8e-5}
_SLICE_SECONDS = 0.3
# More cells beside rays than this, counted with repetition, do not fit in the memory of a small machine.
_MOST_VISITS = 10_000_000
# Seconds to list one of these, with all that is stored about it; a listing this short always pays.
_SECONDS_PER_VISIT = 4e-6
_MOMENT = 0.1
_STARTS = 60
_ROUND = 32  # slices between two exchanges of the best network
# Bounds this close, relative to the loss, have met: programs left open may end a little below those
# ruled out.
_COMPLETE = 1e-5


@dataclass
class Search:
    """What is known about a problem, and until when it may be worked on (``time.monotonic`` seconds)."""

    problem: Problem
    width: int
    deadline: float
    n_jobs: int | None = None
    seed: int = 0
    progress: Progress | None = None
    network: ReluNetwork = field(init=False)
    upper: float = field(init=False)
    lower: float = 0.0
    complete: bool = False
    fitted: bool = False  # no sample has an error beyond the rounding of evaluating it
    exhausted: bool = False  # every tuple was examined, whether or not the bounds met
    n_tuples: int = 0
    n_programs: int = 0
    history: list[tuple[float, float, float]] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.network = self.problem.zero_network(self.width)
        self.upper = self.problem.loss_of(self.network)
        self.fitted = self.problem.is_fitted(self.network)

    @property
    def remaining(self) -> float:
        """Seconds left."""
        return self.deadline - time.monotonic()

    @property
    def solved(self) -> bool:
        """Whether nothing is left to find: the bounds meet, or every sample is fitted to rounding."""
        return self.complete or self.fitted

    def offer(self, network: ReluNetwork | None, *, as_good: float = 0.0) -> None:
        """Keep a network if it is the best so far, or as good relative to the best."""
        if network is not None and (loss := self.problem.loss_of(network)) < self.upper * (1 + as_good):
            self.network, self.upper = network, loss
            self.fitted = self.problem.is_fitted(network)
            if loss <= self.problem.negligible and not self.fitted:
                from pindown.learn.exact.refine import interpolate

                closer = interpolate(network, self.problem)
                if (loss := self.problem.loss_of(closer)) < self.upper:
                    self.network, self.upper = closer, loss
                    self.fitted = self.problem.is_fitted(closer)

    def offer_polished(self, table: Table) -> None:
        """Offer the best network of a table, in full accuracy if its loss is small enough to need it."""
        from pindown.learn.exact.polish import polish

        self.offer(table.network())
        if self.upper <= self.problem.negligible and not self.fitted:
            self.offer(polish(table))

    def note(self, share: float = 0.0) -> None:
        """Record the bounds as they are now."""
        now = (time.monotonic() - self.started, self.lower, self.upper)
        if not self.history or self.history[-1][1:] != now[1:]:
            self.history.append(now)
        if self.progress is not None:
            self.progress(share, self.lower, self.upper)


def n_tuples(n_points: int, rank: int, width: int) -> int:
    """Return how many unordered tuples of cells that are on somewhere there are, in general position.

    >>> n_tuples(10, 2, 1), n_tuples(10, 2, 2)
    (91, 4186)
    """
    cells = count_general(n_points, rank) - 1
    return comb(cells + width - 1, width)


def fits(n_points: int, rank: int) -> bool:
    """Whether the cells of points in general position can be listed: each is seen from each of its rays.

    >>> fits(100, 2), fits(1000, 2), fits(100, 5)
    (True, True, False)
    """
    return _visits(n_points, rank) <= _MOST_VISITS


def _visits(n_points: int, rank: int) -> int:
    return comb(n_points, rank) * 2 ** (rank + 1)


def can_list(n_points: int, rank: int, seconds: float) -> bool:
    """Whether the cells fit in memory, and listing them leaves half of the time for the search.

    >>> can_list(700, 2, 60.0), can_list(700, 2, 1.0), can_list(20, 2, 0.0)
    (True, False, True)
    """
    listing = _SECONDS_PER_VISIT * _visits(n_points, rank)
    return fits(n_points, rank) and listing <= max(seconds / 2, _MOMENT)


def expected_seconds(problem: Problem, width: int, n_points: int) -> float:
    """Return about how long an enumeration takes for some of a problem's points."""
    rank = problem.rank
    seconds = _SECONDS[problem.loss] * width * (rank + 1) ** 2 / 9
    if problem.loss != "squared":
        seconds *= n_points / 10
    return n_tuples(n_points, rank, width) * seconds


def descend_from_random_cells(search: Search) -> Table:
    """Find a good network: walk over cells from random tuples, downhill."""
    table = Table.of(search.problem, search.width, search.upper)
    rng = np.random.default_rng(search.seed)
    for start in range(_STARTS):
        if search.remaining <= 0 or search.solved:
            break
        table.descend(np.sort(rng.integers(1, table.n_cells, search.width)))
        if start % 10 == 0:
            search.offer_polished(table)
            search.note()
    search.offer_polished(table)
    search.note()
    return table


def examine_all(search: Search, table: Table, seconds: float) -> None:
    """Examine all tuples, slice by slice; the bounds meet at the end.

    The slices of a round all begin with the best network that was known before it, and are taken over
    in order: what is found does not depend on who examines them.
    """
    from pindown.learn.exact.polish import close, polish

    slices = list(_slices(table.n_cells, search.width, seconds))
    examined, still_open = 0, inf
    while examined < len(slices):
        if search.remaining <= 0 or search.solved:
            return
        for found in _examined(search, table, slices[examined : examined + _ROUND]):
            examined += 1
            search.n_tuples += int(found.counts[0])
            search.n_programs += int(found.counts[1])
            table.take(found)
            bound, networks = close(table, found, search.upper)
            still_open = min(still_open, bound)
            for network in networks:
                search.offer(network)
            if table.best is found:
                search.offer_polished(table)
            search.note(examined / len(slices))
            if search.remaining <= 0 or search.solved:
                break
        search.offer_polished(table)
        table.best.loss[0] = min(float(table.best.loss[0]), search.upper)
        search.note(examined / len(slices))
    if not table.whole:
        return
    # Tuples were compared with losses at merged points, which samples can differ from a little.
    search.offer(polish(table))
    least = min(search.upper, float(table.best.loss[0]))
    search.lower = max(search.lower, min(table.certified(least), still_open))
    search.exhausted = True
    search.complete = search.upper - search.lower <= _COMPLETE * search.upper
    search.note(1.0)


def _examined(search: Search, table: Table, part: list[tuple[int, int]]) -> Iterator[Found]:
    """Yield what is in slices, in their order; workers examine them in any."""
    from pindown.parallel import each

    waiting: dict[int, Found] = {}
    examine, following = replace(table).examine, 0
    for index, found in each(examine, part, n_jobs=search.n_jobs, threads=True):
        waiting[index] = found
        while following in waiting:
            yield waiting.pop(following)
            following += 1


def _slices(n_cells: int, width: int, seconds: float) -> Iterator[tuple[int, int]]:
    """Cut the first members of tuples into ranges of about equal work."""
    total = comb(n_cells - 1 + width - 1, width)
    per_slice = max(1.0, total * min(1.0, _SLICE_SECONDS / max(seconds, _SLICE_SECONDS)))
    first = 1
    while first < n_cells:
        last, work = first, 0
        while last < n_cells and work < per_slice:
            work += comb(n_cells - last + width - 2, width - 1)
            last += 1
        yield first, last
        first = last
