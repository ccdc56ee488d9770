r"""The distance to another class by walking from cell to cell, nearest first.

On a cell the margins are affine, so the nearest point of another class *in this cell* is the nearest
point of a polyhedron. The cells that a ball around x meets are connected across facets inside the ball:
a segment from x runs through them. So cells are taken in the order of their distance, neighbours of each
are added, and when the next cell is no nearer than the best point found, that point is the nearest of
all.

Jordan, Lewis and Dimakis 2019, "Provable certificates for adversarial examples: fitting a ball in the
union of polytopes".
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from math import inf, isfinite

import numpy as np

from pindown.affine import Array
from pindown.geometry.box import Box
from pindown.geometry.regions.inner_point import varying_sides
from pindown.geometry.regions.neighbours import Crossing, crossings
from pindown.geometry.regions.region import Region, region_at
from pindown.guarantees.robustness.balls import Balls
from pindown.guarantees.robustness.distance_state import DistanceState, Problem
from pindown.guarantees.robustness.nearest import LEFT_OUT, LEFT_OUT_MOVES, nearest_point
from pindown.guarantees.robustness.norms import DUALS, lengths

SAFETY = 1e-8  # of a distance: what float64 and the solvers may have lost
_AROUND = 1.25  # how much larger than the best distance the box is that cells are cut to
_METHOD = "cell walking"


@dataclass
class _Walk:
    """Cells to visit, by a lower bound on their distance."""

    problem: Problem
    deadline: float
    heap: list[tuple[float, int, bool, Crossing]] = field(default_factory=list)
    seen: set[bytes] = field(default_factory=set)
    numbers: count[int] = field(default_factory=count)
    floor: float = inf  # the distance of a cell that could not be entered: no proof beyond it
    tie: float = inf  # the nearest point found where another output is as large
    visited: int = 0
    room: Box | None = None  # in which cells are looked at: none beyond it matters

    def run(self, state: DistanceState) -> DistanceState:
        """Visit cells until the nearest point is proved, or the time is over."""
        problem = self.problem
        key, reached = 0.0, inf
        self.room = _room(problem, state.upper)
        region: Region | None = region_at(problem.net, problem.x, self.room)
        while True:
            if region is not None:
                self.seen.add(region.pattern.tobytes())
                state = self._search(region, state)
                self._add_neighbours(region, key)
            if not self.heap or self.heap[0][0] >= state.upper:
                reached = state.upper
                break
            if time.monotonic() > self.deadline:
                reached = min(state.upper, self.heap[0][0])
                break
            key, region = self._next()
        return state.raised(min(reached, self.tie, self.floor) * (1.0 - SAFETY), _METHOD)

    def _next(self) -> tuple[float, Region | None]:
        """Return the nearest cell, or None if it turned out to be farther and went back."""
        key, _, exact, crossing = heappop(self.heap)
        if not exact:
            G, h = self._sides(crossing)
            try:
                near = nearest_point(G, h, self.problem.x, self.problem.norm)
            except ArithmeticError:  # its bound from below stays
                near = None
            distance = key if near is None else max(key, near.distance)
            if distance > key:
                heappush(self.heap, (distance, next(self.numbers), True, crossing))
                return key, None
        try:
            return key, crossing.region()
        except (ArithmeticError, ValueError):  # thinner than float64 can tell
            self.floor = min(self.floor, key)
            return key, None

    def _search(self, region: Region, state: DistanceState) -> DistanceState:
        """Look for the nearest point of another class in one cell."""
        self.visited += 1
        problem = self.problem
        rows = problem.differences
        A, c = rows @ region.A, rows @ region.c
        value = A @ problem.x + c
        sizes = lengths(A, DUALS[problem.norm])
        with np.errstate(divide="ignore", invalid="ignore"):
            least = np.where(sizes > 0, np.maximum(value, 0.0) / sizes, np.where(value > 0, inf, 0.0))
        H = region.halfspaces
        for j in np.argsort(least):
            if least[j] >= state.upper:
                break
            try:
                state, distance = state.tried_on(problem, (H[:, :-1], -H[:, -1]), A[j], float(c[j]))
            except ArithmeticError:
                self.floor = min(self.floor, float(least[j]))
                continue
            self.tie = min(self.tie, distance)
        return state

    def _add_neighbours(self, region: Region, key: float) -> None:
        if _blurred(varying_sides(self.problem.net, region.pattern)[1][:, :-1], self.room):
            self.floor = min(self.floor, key)  # a neighbour may be overlooked
        try:
            for crossing in crossings(region):
                name = crossing.pattern.tobytes()
                if name not in self.seen:
                    self.seen.add(name)
                    G, h = self._sides(crossing)
                    distance = _least_distance(G, h, self.problem)
                    heappush(self.heap, (distance, next(self.numbers), False, crossing))
        except (ArithmeticError, ValueError):
            self.floor = min(self.floor, key)

    def _sides(self, crossing: Crossing) -> tuple[Array, Array]:
        _, sides = varying_sides(self.problem.net, crossing.pattern)
        G, h = self.problem.box_rows()
        return np.concatenate([sides[:, :-1], G]), np.concatenate([-sides[:, -1], h])


def _room(problem: Problem, upper: float) -> Box | None:
    """Return a box that holds all points nearer than ``upper``: bounded cells are kinder to float64."""
    if not isfinite(upper):
        return problem.box
    ball = Balls.around(problem.x[None], np.array([_AROUND * upper]), problem.norm, problem.box)
    return Box(ball.lower[0], ball.upper[0])


def _blurred(sides: Array, room: Box | None) -> bool:
    """Return whether linear programs over the room leave out entries of the sides that matter there."""
    sizes = np.abs(sides)
    small = np.where(sizes < LEFT_OUT * sizes.max(axis=1, keepdims=True, initial=0.0), sizes, 0.0)
    if room is None or not small.any():
        return bool(small.any())
    widths = room.upper - room.lower
    return bool(np.any(small @ widths > LEFT_OUT_MOVES * (sizes @ widths)))


def _least_distance(G: Array, h: Array, problem: Problem) -> float:
    """Bound the distance of a cell from below: the distance of its farthest violated side."""
    if not len(G):
        return 0.0
    gaps = (G @ problem.x - h) / lengths(G, DUALS[problem.norm])
    return max(0.0, float(gaps.max()))


def walk_cells(problem: Problem, state: DistanceState, *, deadline: float = inf) -> DistanceState:
    """Improve bounds on the distance to another class by walking cells outwards from x.

    Args:
        problem: The question.
        state: What is known already; a near witness saves cells.
        deadline: When to stop, as ``time.monotonic()`` counts.

    Returns:
        Bounds that meet if the walk was completed. The lower one is computed in float64 and by
        solvers; ``SAFETY`` is taken off for what they may lose.

    >>> from pindown.network import ReluNetwork
    >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0], [0.0, 0.0]], [0, 2])])
    >>> found = walk_cells(Problem(net, np.array([0.5]), 1, "l2", None), DistanceState())  # |x| < 2
    >>> round(found.lower, 6), round(found.upper, 6)
    (1.5, 1.5)

    Jordan, Lewis and Dimakis 2019, Theorem 3.
    """
    return _Walk(problem, deadline).run(state)
