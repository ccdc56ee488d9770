"""The certified search: a good network first, then proof that no tuple of cells holds a better one.

At any time the best network and a lower bound on all networks are known. When every tuple of cells is
examined the two meet. When there are too many tuples for the time given, groups of samples bound the
loss from below.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from math import comb, inf
from typing import TYPE_CHECKING

import numpy as np

from pindown.compiling import PLAIN_SLOWNESS, by, has_compiler, slowness
from pindown.deadline import NEVER, Deadline, Stopwatch
from pindown.learn.exact._cones.search import search_cones
from pindown.learn.exact._polish import close, interpolate, polish, refine
from pindown.learn.exact._problem import COMPLETE, Problem, Table
from pindown.learn.exact.hyperplane_arrangement import count_general
from pindown.learn.exact.tuning import (
    CELL_STARTS,
    FEW_CONES,
    FIRST_GROUPS_SHARE,
    GROUP_SAMPLES_PER_WEIGHT,
    HOPELESS_FACTOR,
    MAX_CELLS_BESIDE_RAYS,
    POINTS_PER_SECOND,
    SECONDS_PER_CELL_BESIDE_RAY,
    SECONDS_PER_TUPLE,
    SHORT_LISTING_SECONDS,
    SLICE_SECONDS,
    SLICES_PER_ROUND,
    SMALL_SEARCH_SECONDS,
    WEIGHT_STARTS,
)
from pindown.network import ReluNetwork
from pindown.progress import Report, silent

if TYPE_CHECKING:
    from pindown.learn.exact._compiled.squared import Found


_AS_GOOD = 1e-12  # among equals a vertex is preferred: its weights are moderate


@dataclass
class Search:
    """What is known about a problem, and until when it may be worked on."""

    problem: Problem
    width: int
    deadline: Deadline
    n_jobs: int | None = None
    seed: int = 0
    progress: Report = silent
    network: ReluNetwork = field(init=False)
    upper: float = field(init=False)
    lower: float = 0.0
    complete: bool = False
    fitted: bool = False  # no sample has an error beyond the rounding of evaluating it
    exhausted: bool = False  # every tuple was examined, whether or not the bounds met
    n_tuples: int = 0
    n_programs: int = 0
    history: list[tuple[float, float, float]] = field(default_factory=list)
    watch: Stopwatch = field(default_factory=Stopwatch)

    def __post_init__(self) -> None:
        self.network = self.problem.zero_network(self.width)
        self.upper = self.problem.loss_of(self.network)
        self.fitted = self.problem.is_fitted(self.network)

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
                closer = interpolate(network, self.problem)
                if (loss := self.problem.loss_of(closer)) < self.upper:
                    self.network, self.upper = closer, loss
                    self.fitted = self.problem.is_fitted(closer)

    def offer_polished(self, table: Table) -> None:
        """Offer the best network of a table, in full accuracy if its loss is small enough to need it."""
        self.offer(table.network())
        if self.upper <= self.problem.negligible and not self.fitted:
            self.offer(polish(table))

    def note(self, share: float = 0.0) -> None:
        """Record the bounds as they are now."""
        now = (self.watch.seconds, self.lower, self.upper)
        if not self.history or self.history[-1][1:] != now[1:]:
            self.history.append(now)
        self.progress(f"exact search: least loss in [{self.lower:.5g}, {self.upper:.5g}]", share, 1.0)


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
    return _visits(n_points, rank) <= MAX_CELLS_BESIDE_RAYS


def _visits(n_points: int, rank: int) -> int:
    return comb(n_points, rank) * 2 ** (rank + 1)


def can_list(n_points: int, rank: int, seconds: float) -> bool:
    """Whether the cells fit in memory, and listing them leaves half of the time for the search.

    >>> can_list(700, 2, 60.0), can_list(700, 2, 1.0), can_list(20, 2, 0.0)
    (True, False, True)
    """
    listing = SECONDS_PER_CELL_BESIDE_RAY * _visits(n_points, rank)
    return fits(n_points, rank) and listing <= max(seconds / 2, SHORT_LISTING_SECONDS)


def expected_seconds(problem: Problem, width: int, n_points: int) -> float:
    """Return about how long an enumeration takes for some of a problem's points."""
    rank = problem.rank
    seconds = SECONDS_PER_TUPLE[problem.loss] * width * (rank + 1) ** 2 / 9
    if problem.loss != "squared":
        seconds *= n_points / 10
    return n_tuples(n_points, rank, width) * seconds * slowness()


def descend_from_random_cells(search: Search) -> Table:
    """Find a good network: walk over cells from random tuples, downhill."""
    table = Table.of(search.problem, search.width, search.upper)
    rng = np.random.default_rng(search.seed)
    for start in range(CELL_STARTS):
        if search.deadline.passed or search.solved:
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
    slices = list(_slices(table.n_cells, search.width, seconds))
    examined, still_open = 0, inf
    while examined < len(slices):
        if search.deadline.left <= 0 or search.solved:
            return
        for found in _examined(search, table, slices[examined : examined + SLICES_PER_ROUND]):
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
            if search.deadline.left <= 0 or search.solved:
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
    search.complete = search.upper - search.lower <= COMPLETE * search.upper
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
    per_slice = max(1.0, total * min(1.0, SLICE_SECONDS / max(seconds, SLICE_SECONDS)))
    first = 1
    while first < n_cells:
        last, work = first, 0
        while last < n_cells and work < per_slice:
            work += comb(n_cells - last + width - 2, width - 1)
            last += 1
        yield first, last
        first = last


def run(search: Search) -> None:
    """Search until the bounds meet or the time is over."""
    search.note()
    if search.problem.loss == "squared":
        search_cones(
            search, search.deadline.share(1 / 2) if search.problem.is_crowded else search.deadline
        )
    else:
        examine_cells(search)
    if not search.solved:
        merge_groups(search, search.deadline)
    search.note(1.0)


def examine_cells(search: Search) -> None:
    """Examine all tuples of cells if that can be done in time, else find a good network."""
    points = len(search.problem.distinct()[0])
    if not can_list(points, search.problem.rank, search.deadline.left):
        descend_from_random_weights(search)
    elif not search.solved:
        seconds = expected_seconds(search.problem, search.width, points)
        table = descend_from_random_cells(search)
        if seconds > search.deadline.left / 3:  # something to show if it does not end in time
            merge_groups(search, search.deadline.share(1 / 6))
        if seconds <= HOPELESS_FACTOR * search.deadline.left:
            examine_all(search, table, seconds)
        search.offer(polish(table), as_good=_AS_GOOD)


def descend_from_random_weights(search: Search) -> None:
    """Find a good network where cells are too many to list: random weights, then downhill."""
    rng = np.random.default_rng(search.seed)
    problem, width = search.problem, search.width
    for _ in range(WEIGHT_STARTS):
        if search.deadline.passed or search.solved:
            break
        signs = rng.choice([-1, 1], size=width)
        start = problem.network(signs, rng.normal(size=width * (problem.rank + 1)), 0.0)
        search.offer(refine(start, problem))
        search.note()


def compile_loops(search: Search) -> None:
    """Compile the loops on a toy problem, if there is much to do: the budget pays for that, too."""
    problem = search.problem
    points = len(problem.distinct()[0])
    if problem.loss == "squared":
        seconds = FEW_CONES * points * search.width / POINTS_PER_SECOND
    else:
        seconds = expected_seconds(problem, search.width, points)
    if has_compiler() and PLAIN_SLOWNESS * seconds > SMALL_SEARCH_SECONDS:
        with by("compiled"):
            search_a_toy(problem.loss)


@cache
def search_a_toy(loss: str) -> None:
    """Run every loop of a loss once."""
    X, y = np.array([[-1.0], [0.0], [1.0], [3.0]]), np.array([1.0, -1.0, 1.0, -1.0])
    run(Search(Problem.of(X, y, np.ones(4), loss, 0.0, False), 1, NEVER))


def merge_groups(search: Search, deadline: Deadline) -> None:
    r"""Raise the lower bound by groups of samples, each with its own network.

    .. math:: \min_f \sum_j \ell(f(x_j), y_j) \;\ge\;
              \sum_g \min_{f_g} \sum_{j \in g} \ell(f_g(x_j), y_j),

    for any division into groups. Larger groups give a better bound and cost more; merging them two by
    two raises the bound for as long as there is time. The networks of the groups are starting points
    for all samples.
    """
    problem, width = search.problem, search.width
    order = np.random.default_rng(search.seed).permutation(len(problem.X))
    smallest = GROUP_SAMPLES_PER_WEIGHT * (width * (problem.rank + 1) + problem.biased)
    if len(order) < 2 * smallest:
        return
    size = _first_size(search, smallest, FIRST_GROUPS_SHARE * deadline.left)
    groups = np.array_split(order, max(2, len(order) // size))
    bounds = np.zeros(len(groups))
    while len(groups) > 1:
        for index, rows in enumerate(groups):
            part = problem.part(rows)
            if not _affordable(part, width, deadline.left):
                return
            bounds[index] = max(bounds[index], _bound_of_part(search, part, deadline))
            search.lower = max(search.lower, min(float(bounds.sum()), search.upper))
            search.note(index / len(groups))
        pairs = range(0, len(groups), 2)
        bounds = np.array([bounds[i : i + 2].sum() for i in pairs])
        groups = [np.concatenate(groups[i : i + 2]) for i in pairs]


def _affordable(part: Problem, width: int, seconds: float) -> bool:
    n_points = len(part.X)
    if part.loss == "squared":
        return seconds > 0
    return can_list(n_points, part.rank, seconds) and expected_seconds(part, width, n_points) <= seconds


def _first_size(search: Search, smallest: int, seconds: float) -> int:
    size, n = smallest, len(search.problem.X)
    if search.problem.loss == "squared":
        return max(size, n // 2)
    while size < n // 2:
        larger = min(n // 2, size + max(1, size // 4))
        if expected_seconds(search.problem, search.width, larger) * n / larger > seconds:
            break
        size = larger
    return size


def _bound_of_part(search: Search, part: Problem, deadline: Deadline) -> float:
    """Return a lower bound for a group, and try its network on all samples."""
    inner = Search(part, search.width, deadline, search.n_jobs, search.seed)
    if part.loss == "squared":
        search_cones(inner, deadline)
    else:
        table = descend_from_random_cells(inner)
        if not inner.solved:
            examine_all(inner, table, expected_seconds(part, search.width, len(part.X)))
    search.n_tuples += inner.n_tuples
    search.n_programs += inner.n_programs
    search.offer(refine(inner.network, search.problem))
    return inner.lower
