"""The state of a search for violations: goals, the best points so far, what was found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.deadline import Deadline
from pindown.model.gradients import outputs
from pindown.model.graph import Model
from pindown.verification._goals import Goals, Indices
from pindown.verification.tuning import (
    SEARCH_BATCH_WORK,
    SEARCH_MAX_BATCH,
    SEARCH_MAX_REFUSALS,
)


class Found(NamedTuple):
    """A point in an unsafe set, as float64 sees it.

    Attributes:
        goal: Which set.
        point: The point, (d,).
        by: What found it, in words.
    """

    goal: int
    point: Array
    by: str


@dataclass(eq=False)
class Searching:
    """A search that goes on until every group of goals has one that is reached, or time is over.

    Attributes:
        model: The model.
        goals: What to reach.
        groups: To which group each goal belongs, (m,): a group is finished when one of its goals is.
        rng: Where random points come from.
        deadline: When to stop.
        accept: What counts of a point that float64 says is in a goal: it, or one beside it, or None;
            then the search goes on.
        open: Which goals are still looked for, (m,).
        loss: The smallest loss seen of each goal, (m,).
        point: Where it was seen, (m, d).
        found: What was found, by group.
        by: What is being done, in words.
        gradients: Gradients computed for each goal, (m,).
    """

    model: Model
    goals: Goals
    groups: Indices
    rng: np.random.Generator
    deadline: Deadline
    accept: Callable[[int, Array], Array | None] | None = None
    open: NDArray[np.bool_] = field(init=False)
    loss: Array = field(init=False)
    gradients: NDArray[np.intp] = field(init=False)
    point: Array = field(init=False)
    found: dict[int, Found] = field(default_factory=dict)
    by: str = ""

    def __post_init__(self) -> None:
        m = len(self.goals)
        self.open, self.loss = np.ones(m, bool), np.full(m, inf)
        self.point = self.goals.regions.center[self.goals.region_of]
        self.gradients = np.zeros(m, np.intp)
        self._refused, self._refusals = np.full(m, inf), np.zeros(m, np.intp)
        self.work = max(1, self.model.multiply_adds)
        self.batch = int(np.clip(SEARCH_BATCH_WORK // self.work, 1, SEARCH_MAX_BATCH))

    @property
    def over(self) -> bool:
        """Whether there is nothing left to do, or no time."""
        return not self.open.any() or self.deadline.passed

    @property
    def most_free(self) -> int:
        """The largest number of inputs that can vary in one of the regions."""
        regions = self.goals.regions
        return int((regions.upper > regions.lower).sum(axis=1).max())

    def promising(self) -> Indices:
        """Return the open goals, those of the smallest loss first."""
        goals = np.flatnonzero(self.open)
        return goals[np.argsort(self.loss[goals], kind="stable")]

    def tried(self, which: Indices, points: Array) -> Array:
        """Evaluate points for one goal each, keep what is better, and return their residuals (n, q)."""
        residuals = self.goals.residuals(which, points, outputs(self.model, points))
        self.note(which, points, residuals)
        return residuals

    def note(self, which: Indices, points: Array, residuals: Array) -> None:
        """Keep the best points, and finish the goals that are reached."""
        losses = self.goals.losses(which, residuals)
        order = np.argsort(losses, kind="stable")
        first = order[np.unique(which[order], return_index=True)[1]]
        better = first[losses[first] < self.loss[which[first]]]
        self.loss[which[better]], self.point[which[better]] = losses[better], points[better]
        self.finish(which, points, residuals)

    def finish(self, which: Indices, points: Array, residuals: Array) -> None:
        """Close the groups of goals that are reached, by the deepest points first."""
        reached = np.flatnonzero(self.goals.reached(which, residuals))
        losses = self.goals.losses(which[reached], residuals[reached])
        for i in np.argsort(losses, kind="stable"):
            goal, point = int(which[reached[i]]), points[reached[i]]
            counts = self._counted(goal, point, float(losses[i])) if self.open[goal] else None
            if counts is not None:
                self.found[int(self.groups[goal])] = Found(goal, counts.copy(), self.by)
                self.open[self.groups == self.groups[goal]] = False

    def _counted(self, goal: int, point: Array, loss: float) -> Array | None:
        """Return what counts of a point; after some refusals it has to be deeper to be looked at."""
        if self.accept is None:
            return point
        refused, times = self._refused[goal], self._refusals[goal]
        if times and self.deadline.passed:
            return None
        if times >= SEARCH_MAX_REFUSALS and not loss < 2.0 * refused:
            return None
        counts = self.accept(goal, point)
        if counts is None:
            self._refused[goal], self._refusals[goal] = min(refused, loss), times + 1
        return counts
