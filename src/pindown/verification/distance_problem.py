"""The question of the distance to another class, and what is known of it: both ends and a witness."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.box import Box
from pindown.model.graph import Model
from pindown.network import ReluNetwork
from pindown.relaxation.lp_balls import DUALS, Norm, lengths, steepest_step
from pindown.verification.ball_proofs import distance_up, margins_at
from pindown.verification.classes import margin_rows, margin_slopes
from pindown.verification.counterexamples import float32_outputs
from pindown.verification.least_distance import contradiction, nearest_point
from pindown.verification.witnesses import rounded_outputs

# Of the distance: how far behind the boundary to look inside a cell.
_DEEPER = 1e-8
# Shares of the distance by which to step further in for float32.
_FLOAT32_STEPS = 10.0 ** np.arange(-9, -1.75, 0.25)
# How far beyond the boundary float64 may have to look for the other class, in shares of the way.
NUDGES = (0.0, *(10.0**power for power in range(-15, -5)))


@dataclass(frozen=True, eq=False)
class Problem:
    """One question: how far from x is another class?

    Attributes:
        net: A network or model with at least two outputs.
        x: The input, (d,).
        label: Its class.
        norm: In which lengths are measured.
        box: Where inputs lie, or None.
    """

    net: ReluNetwork | Model
    x: Array
    label: int
    norm: Norm
    box: Box | None

    @property
    def network(self) -> ReluNetwork:
        """The network, for what walks cells or writes programs."""
        assert isinstance(self.net, ReluNetwork)
        return self.net

    @property
    def differences(self) -> Array:
        """Rows of the class's output minus each other one, (k-1, k)."""
        return -margin_rows(np.array([self.label]), self.net.out_features)[0]

    def margins(self, points: Array) -> Array:
        """Bound the class's output minus the best other one from above at points, rounding included."""
        return margins_at(self.net, points, self.label)

    def changed(self, points: Array) -> NDArray[np.bool_]:
        """Return which points certainly have another class, whatever the order of float64 sums."""
        return np.asarray(self.margins(points) < 0.0)

    def box_rows(self) -> tuple[Array, Array]:
        """Return the box as rows ``G x <= h``."""
        if self.box is None:
            return np.zeros((0, len(self.x))), np.zeros(0)
        eye = np.eye(len(self.x))
        return np.concatenate([-eye, eye]), np.concatenate([-self.box.lower, self.box.upper])


@dataclass(frozen=True, eq=False)
class DistanceState:
    """``lower <= distance <= upper``; ``witness`` has another class and lies at ``upper``."""

    lower: float = 0.0
    upper: float = inf
    witness: Array | None = None
    method: str = ""

    def raised(self, lower: float, method: str) -> DistanceState:
        """Return the state with a better lower bound, if it is one."""
        if lower <= self.lower:
            return self
        return replace(self, lower=min(lower, self.upper), method=method)

    def tried(self, problem: Problem, points: Array) -> DistanceState:
        """Return the state with the nearest of some points that have another class, if it is nearer."""
        if not len(points):
            return self
        if problem.box is not None:
            points = np.clip(points, problem.box.lower, problem.box.upper)
        candidates = points[problem.changed(points)]
        if not len(candidates):
            return self
        gaps = lengths(candidates - problem.x, problem.norm)
        best = candidates[int(np.argmin(gaps))].copy()
        upper = distance_up(best, problem.x, problem.norm)
        if upper >= self.upper:
            return self
        best.flags.writeable = False
        return replace(self, upper=upper, witness=best, lower=min(self.lower, upper))

    def tried_on(self, problem: Problem, G: Array, h: Array) -> tuple[DistanceState, Array]:
        """Look for the nearest point with ``G x <= h``, of which the last row falls behind a boundary.

        Returns:
            The state, and multipliers for all rows that show how far that point is, or that there is
            none nearer than known.

        Raises:
            ArithmeticError: If the solver cannot tell.
        """
        near = nearest_point(G, h, problem.x, problem.norm, limit=self.upper)
        if near is None:
            return self, contradiction(G, h, problem.x)
        form = G[-1]
        state = self.tried(problem, beyond(problem, near.point, form))
        if state.upper <= near.distance * (1.0 + _DEEPER):
            return state, near.weights
        # Straight on may leave the cell, where the form means nothing: stay in it, a little deeper.
        deeper = h.copy()
        deeper[-1] -= _DEEPER * near.distance * float(lengths(form, DUALS[problem.norm]))
        inside = nearest_point(G, deeper, problem.x, problem.norm, limit=self.upper)
        return (state if inside is None else state.tried(problem, inside.point[None])), near.weights


def beyond(problem: Problem, point: Array, form: Array) -> Array:
    """Return points at and just behind a boundary point, along which ``form`` falls fastest."""
    size = float(lengths(form, DUALS[problem.norm]))
    if size == 0.0:
        return point[None]
    way = float(lengths(point - problem.x, problem.norm)) + 1e-3 * float(np.abs(point).max())
    steps = np.array(NUDGES)[:, None] * way * steepest_step(form, problem.norm)
    along = np.array(NUDGES)[:, None] * (point - problem.x)  # keeps the length where the form allows
    return np.concatenate([point - steps, point + along])


@np.errstate(over="ignore", invalid="ignore")
def float32_margins(problem: Problem, points: Array) -> Array:
    """Return the class's output minus the best other one, evaluated in float32, (n,)."""
    net = problem.net
    made = rounded_outputs(net, points) if isinstance(net, Model) else float32_outputs(net, points)
    return np.asarray((made @ problem.differences.T).min(axis=1))


@np.errstate(over="ignore", invalid="ignore")
def stepped_in(problem: Problem, witness: Array) -> Array | None:
    """Return the nearest point found beyond a witness that has another class in float32 as well.

    Its margin is twice the largest difference of float32 and float64 that was seen nearby, so that other
    orders of sums agree as a rule. None if no step of up to 1 % of the distance leads to one.
    """
    slope = margin_slopes(problem.net, witness[None], np.array([problem.label])).gradient[0]
    way = float(lengths(witness - problem.x, problem.norm))
    steps = np.concatenate([[0.0], _FLOAT32_STEPS])[:, None]
    points = np.concatenate(
        [
            witness - steps * way * steepest_step(slope, problem.norm),
            witness + steps * (witness - problem.x),
        ]
    )
    if problem.box is not None:
        points = np.clip(points, problem.box.lower, problem.box.upper)
    margins = float32_margins(problem, points)
    rounding = np.abs(margins - (problem.net(points) @ problem.differences.T).min(axis=1)).max()
    good = np.flatnonzero((margins < 0.0) & (margins <= -2.0 * rounding) & problem.changed(points))
    if not len(good):
        return None
    gaps = [distance_up(points[i], problem.x, problem.norm) for i in good]
    best = points[good[int(np.argmin(gaps))]].copy()
    best.flags.writeable = False
    return best
