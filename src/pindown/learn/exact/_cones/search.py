r"""The best network for squared loss: cones of units are cut until each product of them is ruled out.

A unit is a vector in one of r + 1 cones that cover all of space, with one of two signs. The bounds of
:mod:`~pindown.learn.exact._cones.bounds` hold for all units in a cone at once, and where a bound is
below the best loss one of the cones is cut in two, along the edge on which its relaxation misses most.
Nothing is listed beforehand, and the least bound of what is left holds at any time.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from itertools import combinations_with_replacement
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from pindown.affine import Array, Integers
from pindown.compiling import PLAIN_SLOWNESS, slowness
from pindown.deadline import Deadline
from pindown.learn.exact._cones.bounds import bound_all
from pindown.learn.exact._polish import interpolate, on_its_pattern, refine, round_weights
from pindown.learn.exact._problem import CERTIFIED_TO, COMPLETE, FLOOR, Problem
from pindown.learn.exact.tuning import (
    CONES_PER_SLICE,
    MAX_CONE_BYTES,
    MAX_CONES_PER_ROUND,
    POINTS_PER_SECOND,
    ROUND_SECONDS,
    SHARE_PER_ROUND,
    SLICE_SHARE_OF_TIME,
)
from pindown.network import ReluNetwork

if TYPE_CHECKING:
    from pindown.learn.exact._search import Search

# A unit of r weights has coordinates in its cone's generators that sum to at most 2 r of its length,
# and cutting leaves the sum as it is: a floor for the weights is this much less for coordinates, over
# r^2.
_COORDINATES = 4.0
# Squared weights of the optimum, in units of those of the best network found.
_LARGER = 10.0
# A network better by this share is worth a descent from it.
_MUCH_BETTER = 1e-3
# A loss that may be zero with larger weights, in units of one that is as good as zero.
_NEARLY_NOTHING = 1e6


@dataclass(frozen=True, eq=False)
class Open:
    """Products of cones that may hold a better network, one in each row.

    Attributes:
        V: ``(N, width, r, r)`` generators of each unit's cone.
        signs: ``(N, width)`` output weights.
        weights: ``(N, width r)``, and the output bias if there is one, in the generators.
        bounds: ``(N,)`` no network of the row has a smaller loss.
        losses: ``(N,)`` of the networks at the weights.
        splits: ``(N, 4)`` where to cut: unit, two generators, share of the second. -1 for nowhere.
    """

    V: Array
    signs: Integers
    weights: Array
    bounds: Array
    losses: Array
    splits: Array

    def __len__(self) -> int:
        return len(self.V)

    def __getitem__(self, rows: object) -> Open:
        return Open(*(getattr(self, field.name)[rows] for field in fields(self)))

    @classmethod
    def joined(cls, parts: list[Open]) -> Open:
        """Put the rows of several in one."""
        return cls(*(np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(cls)))

    @classmethod
    def everything(cls, rank: int, width: int, biased: bool) -> Open:
        """Return products of cones in which all networks are, up to the order of their units."""
        generators = np.vstack([np.eye(rank), np.full((1, rank), -1 / np.sqrt(rank))])
        cones = [(np.delete(generators, i, axis=0), s) for i in range(rank + 1) for s in (1, -1)]
        chosen = list(combinations_with_replacement(range(len(cones)), width))
        V = np.array([[cones[i][0] for i in units] for units in chosen])
        signs = np.array([[cones[i][1] for i in units] for units in chosen])
        weights = np.zeros((len(V), width * rank + biased))
        return cls._unseen(V, signs, weights, np.zeros(len(V)))

    @classmethod
    def _unseen(cls, V: Array, signs: Integers, weights: Array, bounds: Array) -> Open:
        return cls(V, signs, weights, bounds, np.full(len(V), inf), np.full((len(V), 4), -1.0))

    def cut(self) -> Open:
        """Cut every row in two along its split; both begin at its network, or next to it."""
        rows, rank, t = np.arange(len(self)), self.V.shape[2], self.splits[:, 3]
        u, i, k = self.splits[:, :3].astype(np.int64).T
        between = (1 - t)[:, None] * self.V[rows, u, i] + t[:, None] * self.V[rows, u, k]
        near, far = self.V.copy(), self.V.copy()
        near[rows, u, k], far[rows, u, i] = between, between
        a, b = u * rank + i, u * rank + k
        one, two = self.weights.copy(), self.weights.copy()
        one[rows, b] = self.weights[rows, b] / t
        one[rows, a] = np.maximum(0.0, self.weights[rows, a] - (1 - t) * one[rows, b])
        two[rows, a] = self.weights[rows, a] / (1 - t)
        two[rows, b] = np.maximum(0.0, self.weights[rows, b] - t * two[rows, a])
        return Open._unseen(
            np.concatenate([near, far]),
            np.concatenate([self.signs, self.signs]),
            np.concatenate([one, two]),
            np.concatenate([self.bounds, self.bounds]),
        )

    def network(self, row: int, problem: Problem) -> ReluNetwork:
        """Return the network at a row's weights."""
        _, width, rank, _ = self.V.shape
        units = self.weights[row, : width * rank].reshape(width, 1, rank)
        phi = self.signs[row][:, None] * (units @ self.V[row])[:, 0]
        shift = float(self.weights[row, -1]) if problem.biased else 0.0
        return problem.network(self.signs[row], phi.ravel(), shift)


@dataclass(frozen=True, eq=False)
class _Data:
    """The samples as the bounds read them: one for each distinct point."""

    points: Array
    mass: Array
    target: Array
    ridge: Array
    floor: float
    constant: float  # loss that no prediction can avoid: spread of y over equal points

    @classmethod
    def of(cls, problem: Problem) -> _Data:
        points, point = problem.distinct()
        lifted = np.column_stack([points, np.ones(len(points))])
        mass = np.bincount(point, problem.mass).astype(np.float64)
        target = np.bincount(point, problem.mass * problem.y) / mass
        constant = float(problem.mass @ (problem.y - target[point]) ** 2)
        floor = FLOOR * float(mass.sum()) / (_COORDINATES * lifted.shape[1] ** 2)
        return cls(lifted, mass, target, np.append(problem.penalty, 0.0), floor, constant)

    def bounded(self, some: Open, best: float, skip: float) -> Open:
        """Bound every row; rows whose bounds reach ``skip`` are done with."""
        bound_all(
            self.points, self.mass, self.target, self.ridge, self.floor, some.V, some.signs,
            some.weights, best - self.constant, skip - self.constant, some.bounds, some.losses,
            some.splits,
        )  # fmt: skip
        return some


def search_cones(search: Search, deadline: Deadline) -> None:
    """Raise the lower bound and lower the upper one until they meet or the time is over."""
    problem, crowded = search.problem, search.problem.is_crowded
    data, decided = _Data.of(problem), inf  # the least bound of rows that cannot be cut
    left = Open.everything(problem.rank + 1, search.width, problem.biased)
    left = _examined(search, data, left, deadline)
    while len(left) and not deadline.passed and not search.solved:
        stuck = left.splits[:, 0] < 0
        decided = min(decided, float(left.bounds[stuck].min(initial=inf)))
        left = left[~stuck]
        if len(left):
            chosen = _next(left, len(data.points) * search.width)
            rest = np.ones(len(left), bool)
            rest[chosen] = False
            new = _examined(search, data, left[chosen].cut(), deadline)
            left = Open.joined([left[rest], new])
            left = left[left.bounds < _skip(search) - data.constant]
        if not crowded:  # bounds of close points are those of networks with small weights
            least = min(decided, float(left.bounds.min(initial=inf))) + data.constant
            search.lower = max(search.lower, min(least, _skip(search)) - _large_weights(search, data))
        search.note()
    search.offer(on_its_pattern(search.network, problem))
    if search.upper <= _NEARLY_NOTHING * problem.negligible and not search.fitted:
        search.offer(interpolate(search.network, problem))  # the floor holds large weights back
    if not len(left) and not search.fitted:
        search.exhausted = True
        search.complete = search.upper - search.lower <= COMPLETE * search.upper


def _skip(search: Search) -> float:
    """Return the bound from which nothing is left to find."""
    return search.upper * (1 - CERTIFIED_TO) - search.problem.negligible


def _large_weights(search: Search, data: _Data) -> float:
    """Return what the floor has added to the bounds, for weights of about the best network's size."""
    phi = round_weights(search.network, search.problem)
    return _LARGER * FLOOR * float(data.mass.sum()) * float((phi**2).sum())


def _next(left: Open, points: int) -> Integers:
    """Choose the rows to cut: those of least bounds, or of largest ones while there are too many."""
    most = min(MAX_CONES_PER_ROUND, int(ROUND_SECONDS * POINTS_PER_SECOND / slowness()) // points)
    count = min(len(left), max(1, most), max(CONES_PER_SLICE, int(SHARE_PER_ROUND * len(left))))
    first = left.bounds if left.V.nbytes < MAX_CONE_BYTES else -left.bounds
    return np.argpartition(first, count - 1)[:count]


def _rows_per_slice(deadline: Deadline, points: int) -> int:
    """Return how many rows to bound before the next look at the clock, compiled or not."""
    plain = min(deadline.left, 1e9) * POINTS_PER_SECOND / PLAIN_SLOWNESS / points
    return int(np.clip(SLICE_SHARE_OF_TIME * plain, 1, CONES_PER_SLICE))


def _examined(search: Search, data: _Data, some: Open, deadline: Deadline) -> Open:
    """Bound rows, in slices that begin with the best network before, and return those left open."""
    from pindown.parallel import each

    best, skip = search.upper, _skip(search)
    size = _rows_per_slice(deadline, len(data.points) * search.width)
    slices = [some[i : i + size] for i in range(0, len(some), size)]
    done = dict(enumerate(slices))  # what there is no time for keeps the bound it came with
    if len(slices) == 1:
        done[0] = data.bounded(slices[0], best, skip)
    else:
        bounded = partial(data.bounded, best=best, skip=skip)
        for index, found in each(bounded, slices, n_jobs=search.n_jobs, threads=True):
            done[index] = found
            if deadline.passed:
                break
    found = Open.joined([done[index] for index in sorted(done)])
    search.n_tuples += len(found)
    lowest = int(np.argmin(found.losses))
    if found.losses[lowest] + data.constant < search.upper:
        search.offer(found.network(lowest, search.problem))
        if search.upper < best * (1 - _MUCH_BETTER):
            search.offer(refine(search.network, search.problem))
    return found[found.bounds < _skip(search) - data.constant]
