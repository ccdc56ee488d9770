r"""The distance to another class by walking from cell to cell, nearest first, with a proof at each step.

On the cell of a pattern P the margins are affine, so the nearest point of another class *in this cell*
is the nearest point of a polyhedron. A *wall* (P, u) is the part of the cell where unit u is zero. Let S
be a set of patterns with that of x, such that for every P in S and every unit u the pattern with u
switched is in S, or the wall is proved to be at least r away. Then the cells of S cover the ball of
radius r:

    A segment from x that leaves the cell of P does so at a point p where the units that switch are zero.
    Switch them one after the other. All patterns on the way have p in their cell, since units that are
    zero at p add nothing there; so p is in the wall of each next unit, which is nearer than r, and the
    pattern behind it is in S.

So walls are taken in the order of their distance; when the next one is no nearer than the best point
found, that point is the nearest of all. Distances of walls and of other classes are bounded from below
by weak duality with all rounding (``cell_forms.py``): solvers only suggest multipliers. Units that are
exact multiples of each other switch together.

Jordan, Lewis and Dimakis 2019, "Provable certificates for adversarial examples: fitting a ball in the
union of polytopes".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from heapq import heappop, heappush
from itertools import count
from math import inf, isfinite

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.deadline import NEVER, Deadline
from pindown.geometry.complex.proportional_units import proportional_units
from pindown.geometry.exact.integer_network import exact_signs
from pindown.relaxation.lp_balls import length_up
from pindown.rounding import add_up
from pindown.verification._cell_forms import (
    CellForms,
    Sides,
    cell_forms,
    contradict,
    exact_rows,
    rounded_forms,
)
from pindown.verification.distance_problem import DistanceState, Problem
from pindown.verification.least_distance import contradiction
from pindown.verification.tuning import WALK_CONTRADICTION_BOUND, WALK_MAX_RATIONAL_PARAMETERS

_METHOD = "cell walking"
_ROUNDING = 1e-9

Pattern = NDArray[np.bool_]


@dataclass
class _Walk:
    """Walls to look behind, by a proved lower bound on their distance."""

    problem: Problem
    deadline: Deadline
    heap: list[tuple[float, int, bool, CellForms, int]] = field(default_factory=list)
    seen: set[bytes] = field(default_factory=set)
    numbers: count[int] = field(default_factory=count)
    tie: float = inf  # proved: no nearer point of the cells seen has another class or a tie

    def __post_init__(self) -> None:
        net = self.problem.network
        groups = proportional_units(net)
        starts = np.repeat(np.cumsum([0, *net.hidden_widths])[:-1], net.hidden_widths)
        leaders = np.where(groups.leader >= 0, starts + groups.leader, -1)
        self.leaders = np.unique(leaders[leaders >= 0])
        self.led = {int(u): np.flatnonzero(leaders == u) for u in self.leaders}
        self.opposite = groups.opposite.astype(bool)
        self.box = self._box_sides()
        self.box_rows = [[Fraction(v) for v in row] for row in np.column_stack([self.box.a, self.box.b])]
        self.farthest = inf
        if self.problem.box is not None:
            ends = self.box.b.reshape(2, -1).max(axis=0)
            self.farthest = length_up(ends, self.problem.norm)

    def run(self, state: DistanceState) -> DistanceState:
        """Look behind walls until the nearest point is proved, or the time is over."""
        state = self._visit(self._first_pattern(), state)
        while self.heap and self.heap[0][0] < state.upper:
            if self.deadline.passed:
                return state.raised(min(self.heap[0][0], self.tie), _METHOD)
            bound, _, refined, cell, unit = heappop(self.heap)
            pattern = self._across(cell, unit)
            if pattern.tobytes() in self.seen:
                continue
            if refined:
                state = self._visit(pattern, state)
            else:
                bound = max(bound, self._wall_distance(cell, unit, state.upper))
                if bound < state.upper:
                    heappush(self.heap, (bound, next(self.numbers), True, cell, unit))
        return state.raised(min(state.upper, self.tie), _METHOD)

    def _first_pattern(self) -> Pattern:
        """Return the pattern of x, where float64 cannot tell in rational numbers."""
        problem = self.problem
        pattern = problem.network.pattern(problem.x)
        units = self._in_float64(pattern).units
        if np.all(units.b > units.errors):
            return pattern
        pattern = exact_signs(problem.network, problem.x) >= 0
        for unit, led in self.led.items():  # at zero as elsewhere: opposites are not both on
            pattern[led] = pattern[unit] ^ self.opposite[led]
        return pattern

    def _in_float64(self, pattern: Pattern) -> CellForms:
        problem = self.problem
        return cell_forms(problem.network, problem.x, pattern, problem.differences, problem.norm)

    def _forms(self, pattern: Pattern, upper: float) -> CellForms:
        """Return a cell as seen from x, of a small network in rational numbers if float64 is coarse."""
        problem = self.problem
        cell = self._in_float64(pattern)
        scale = upper if isfinite(upper) else float(np.abs(problem.x).max())
        near = (-cell.units).distances() < upper
        coarse = cell.margins.coarse(scale).any() or (near & cell.units.coarse(scale)).any()
        if coarse and problem.network.n_parameters <= WALK_MAX_RATIONAL_PARAMETERS:
            return rounded_forms(problem.network, problem.x, pattern, problem.differences, problem.norm)
        return cell

    def _box_sides(self) -> Sides:
        problem, d = self.problem, len(self.problem.x)
        if problem.box is None:
            return Sides(np.zeros((0, d)), *(np.zeros(0),) * 3, problem.norm)
        room = add_up(problem.x, -problem.box.lower), add_up(problem.box.upper, -problem.x)
        none = np.zeros(2 * d)
        return Sides(
            np.concatenate([-np.eye(d), np.eye(d)]), np.concatenate(room), none, none, problem.norm
        )

    def _across(self, cell: CellForms, unit: int) -> Pattern:
        pattern = cell.pattern.copy()
        pattern[self.led[unit]] ^= True
        return pattern

    def _visit(self, pattern: Pattern, state: DistanceState) -> DistanceState:
        """Look for the nearest point of another class in one cell, and put its walls on the heap."""
        self.seen.add(pattern.tobytes())
        cell = self._forms(pattern, state.upper)
        here = float(max(cell.units.distances().max(initial=0.0), self.box.distances().max(initial=0.0)))
        least = np.maximum(cell.margins.distances(), here)
        for j in np.argsort(least):
            if least[j] >= state.upper:
                break
            sides, names = self._near(cell, state.upper)
            sides = sides + cell.margins[np.array([j])]
            state, bound = self._nearest_in(cell, sides, [*names, int(j)], state)
            self.tie = min(self.tie, max(bound, float(least[j])))
        walls = np.maximum((-cell.units)[self.leaders].distances(), here)
        for unit, bound in zip(self.leaders.tolist(), walls.tolist(), strict=True):
            if bound < state.upper and self._across(cell, unit).tobytes() not in self.seen:
                heappush(self.heap, (bound, next(self.numbers), False, cell, unit))
        return state

    def _near(self, cell: CellForms, upper: float) -> tuple[Sides, list[int]]:
        """Return the sides of a cell that come nearer to x than ``upper``, then those of the box."""
        near = np.flatnonzero((-cell.units).distances() < upper)
        return cell.units[near] + self.box, near.tolist()

    def _nearest_in(
        self, cell: CellForms, sides: Sides, names: list[int], state: DistanceState
    ) -> tuple[DistanceState, float]:
        """Look for a witness where all sides hold; return a proved bound on its distance as well."""
        problem = self.problem
        G, h = sides.a, sides.b + sides.a @ problem.x
        weights, bound = self._shown(sides, G, h)
        if bound < state.upper:
            try:
                state, weights = state.tried_on(problem, G, h)
            except ArithmeticError:
                return state, bound
            bound = max(bound, self._beyond(sides.distance(weights)))
        if bound > WALK_CONTRADICTION_BOUND and isfinite(bound) and state.upper == inf:
            units, margins = exact_rows(problem.network, problem.x, cell.pattern, problem.differences)
            every = [*(units[u] for u in names[:-1]), *self.box_rows, margins[names[-1]]]
            bound = inf if contradict([every[i] for i in _used(weights)]) else bound
        return state, bound

    def _wall_distance(self, cell: CellForms, unit: int, upper: float) -> float:
        """Bound the distance of a wall from below: by the multipliers of l2, in every norm.

        Those of the norm itself take a linear program, which costs more than the cells it saves.
        """
        problem, here = self.problem, cell.units[np.array([unit])]
        sides, names = self._near(cell, upper)
        sides = sides + here + -here
        G, h = sides.a, sides.b + sides.a @ problem.x
        weights, bound = self._shown(sides, G, h)
        if bound > WALK_CONTRADICTION_BOUND and isfinite(bound) and upper == inf:
            units, _ = exact_rows(problem.network, problem.x, cell.pattern, problem.differences)
            own = units[unit]
            every = [*(units[u] for u in names), *self.box_rows, own, [-v for v in own]]
            bound = inf if contradict([every[i] for i in _used(weights)]) else bound
        return bound

    def _shown(self, sides: Sides, G: Array, h: Array) -> tuple[Array, float]:
        """Return multipliers that are the best in l2, and show any contradiction; and what they show."""
        try:
            weights = contradiction(G, h, self.problem.x)
        except ArithmeticError:
            return np.zeros(len(G)), 0.0
        return weights, self._beyond(sides.distance(weights))

    def _beyond(self, bound: float) -> float:
        """Return a bound on a distance, infinite if it leads out of the box."""
        return inf if bound > self.farthest else bound


def _used(weights: Array) -> list[int]:
    """Return which multipliers are not rounding."""
    found: list[int] = np.flatnonzero(weights > _ROUNDING * weights.max(initial=0.0)).tolist()
    return found


def walk_cells(problem: Problem, state: DistanceState, *, deadline: Deadline = NEVER) -> DistanceState:
    """Improve bounds on the distance to another class by walking cells outwards from x.

    Args:
        problem: The question.
        state: What is known already; a near witness saves cells.
        deadline: When to stop.

    Returns:
        Bounds that meet, to rounding, if the walk was completed. Both are proved, for the real-number
        network.

    >>> from pindown.network import ReluNetwork
    >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0], [0.0, 0.0]], [0, 2])])
    >>> found = walk_cells(Problem(net, np.array([0.5]), 1, "l2", None), DistanceState())  # |x| < 2
    >>> round(found.lower, 6), round(found.upper, 6)
    (1.5, 1.5)

    Jordan, Lewis and Dimakis 2019, Theorem 3.
    """
    return _Walk(problem, deadline).run(state)
