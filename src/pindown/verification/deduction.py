r"""Cutting and concluding: is an unsafe set reached? For networks where one thing follows from another.

A part is a box for the input and for what enters every ReLU. What follows from the box, from the signs
that it fixes and from the unsafe set is concluded (:mod:`~pindown.relaxation.propagation`); a part with
a contradiction is proved. Any other is cut in two, an input in the middle or a ReLU's input at zero,
whichever presses most on the rows that are closest to their limits. The last part comes first, so that
few wait.

On formulas that were written as networks this is the procedure of Davis, Putnam, Logemann and Loveland,
with the rule of Jeroslow and Wang to choose a variable.

Davis, Logemann and Loveland 1962, "A machine program for theorem-proving"; Jeroslow and Wang 1990,
"Solving propositional satisfiability problems".
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.deadline import Deadline
from pindown.model.graph import Model
from pindown.model.operations.affine_operation import AffineOperation
from pindown.model.operations.operation import Interval, Shape
from pindown.model.operations.relu import Relu
from pindown.parallel import in_threads
from pindown.relaxation.propagation import Goal, forms_met, propagated
from pindown.relaxation.relaxed_model import RelaxedModel
from pindown.verification.properties import UnsafeSet
from pindown.verification.tuning import (
    DEDUCTION_BATCH_NUMBERS,
    DEDUCTION_JUDGED_PARTS,
    DEDUCTION_MAX_BATCH,
    DEDUCTION_MIN_PROVED,
    DEDUCTION_SUM_SHARE,
    DEDUCTION_THIN,
    WAITING_BYTES,
)


class _Part(NamedTuple):
    """A part that waits: the bounds of the part it is a half of, and where that is cut.

    Attributes:
        ends: Bounds on the kept tensors, (2, size), lower and upper.
        at: The entry that is cut, or -1 for none.
        limit: Where.
        side: 0 for below, 1 for above.
    """

    ends: Array
    at: int
    limit: float
    side: int


@dataclass(eq=False)
class Deduction:
    """A search that cuts inputs and ReLUs and draws conclusions.

    Attributes:
        model: The model.
        lower: Lower corner of the box, (d,).
        upper: Upper corner.
        goal: What must be shown.
        threads: How many to work in.
        n_parts: How many parts were looked at.
        n_proved: How many of them hold a contradiction.
        n_stuck: How many could not be cut any more.
        corners: Middles and corners of parts that are left: points to try.
    """

    model: Model
    lower: Array
    upper: Array
    goal: Goal
    threads: int = 1
    n_parts: int = 0
    n_proved: int = 0
    n_stuck: int = 0
    corners: list[Array] = field(default_factory=list)
    waiting: list[_Part] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.kept = [0]  # the input, and what enters ReLUs
        self.reads: dict[int, int] = {}  # what a ReLU makes, and what enters it
        for i, node in enumerate(self.model.nodes, 1):
            if isinstance(node.operation, Relu):
                (j,) = node.inputs
                self.reads[i] = j
                if j not in self.kept:
                    self.kept.append(j)
        shapes = [self.model.literal_shape, *(node.shape for node in self.model.nodes)]
        self.shapes = [shapes[j] for j in self.kept]
        self.starts = np.cumsum([0, *(math.prod(shape) for shape in self.shapes)])
        ends = np.empty((2, self.starts[-1]))
        ends[0], ends[1] = -np.inf, np.inf
        ends[0, : len(self.lower)], ends[1, : len(self.upper)] = self.lower, self.upper
        self.waiting.append(_Part(ends, -1, 0.0, 0))

    @property
    def done(self) -> bool:
        """Whether nothing is left to cut, or cutting does not lead anywhere."""
        idle = self.n_parts >= DEDUCTION_JUDGED_PARTS
        return not self.waiting or (idle and self.n_proved < DEDUCTION_MIN_PROVED * self.n_parts)

    @property
    def proved(self) -> bool:
        """Whether every part holds a contradiction."""
        return not self.waiting and not self.n_stuck

    @property
    def _part_bytes(self) -> int:
        return 16 * int(self.starts[-1])

    @property
    def held(self) -> int:
        """Bytes of the bounds of parts that wait, at most: halves share theirs."""
        return len(self.waiting) * self._part_bytes

    @property
    def batch(self) -> int:
        """How many parts to look at together."""
        numbers = int(self.starts[-1]) + sum(math.prod(node.shape) for node in self.model.nodes)
        return max(1, min(DEDUCTION_MAX_BATCH, DEDUCTION_BATCH_NUMBERS // numbers))

    def round(self) -> None:
        """Look at the last parts, and cut those that are left."""
        room = (WAITING_BYTES - self.held) // self._part_bytes
        size = int(max(1, min(self.batch, 1 + self.n_parts // 4, room)))
        taken = self.waiting[-size:]
        chunks = np.array_split(np.arange(len(taken)), min(self.threads, len(taken)))
        found = in_threads(lambda few: self._halves([taken[k] for k in few]), chunks, self.threads)
        del self.waiting[-size:]
        self.n_parts += len(taken)
        for halves, points in found:
            self.waiting += halves
            self.corners.append(points)
            self.n_stuck += len(points) // 2 - len(halves) // 2
            self.n_proved -= len(points) // 2
        self.n_proved += len(taken)

    def _halves(self, parts: list[_Part]) -> tuple[list[_Part], Array]:
        """Return the halves of parts that are left, and two points of each of these parts."""
        relaxed, empty = propagated(self._loaded(parts), self.goal)
        left, d = np.flatnonzero(~empty), len(self.lower)
        if not len(left):
            return [], np.zeros((0, d))
        few = RelaxedModel(relaxed.model, [Interval(*(end[left] for end in v)) for v in relaxed.values])
        ends = np.stack(
            [
                np.concatenate([few.values[j][side].reshape(len(left), -1) for j in self.kept], axis=1)
                for side in (0, 1)
            ],
            axis=1,
        )
        at, limit, first = self._cuts(few, ends)
        own = {k: ends[k].copy() for k in np.flatnonzero(at >= 0)}  # a view would keep those of all
        halves = [
            _Part(own[k], int(at[k]), float(limit[k, at[k]]), int(side))
            for k in own
            for side in (1 - first[k, at[k]], first[k, at[k]])  # the last is looked at first
        ]
        low, high, first = ends[:, 0, :d], ends[:, 1, :d], first[:, :d]
        middles = low / 2 + high / 2
        # An end that was never cut is better than one that conclusions came to, all but for rounding.
        corners = np.where((low == self.lower) & ((high < self.upper) | (first == 0)), low, high)
        corners = np.where((low > self.lower) & (high < self.upper), middles, corners)
        return halves, np.concatenate([middles, corners])

    def _loaded(self, parts: list[_Part]) -> RelaxedModel:
        """Return the bounds of parts, carried forwards."""
        ends = np.stack([part.ends for part in parts])
        for k, part in enumerate(parts):
            if part.at >= 0:
                ends[k, 1 - part.side, part.at] = part.limit
        known = {
            j: Interval(*(ends[:, side, a:b].reshape(len(parts), *shape) for side in (0, 1)))
            for j, shape, a, b in zip(
                self.kept, self.shapes, self.starts[:-1], self.starts[1:], strict=True
            )
        }
        values = [known[0]]
        for i, node in enumerate(self.model.nodes, 1):
            box = node.operation.interval(*(values[j] for j in node.inputs))
            if i in known:
                box = Interval(np.fmax(box.lower, known[i].lower), np.fmin(box.upper, known[i].upper))
            values.append(box)
        return RelaxedModel(self.model, values)

    # ------------------------------------------------------------------ where to cut

    @np.errstate(all="ignore")
    def _cuts(
        self, relaxed: RelaxedModel, ends: Array
    ) -> tuple[NDArray[np.intp], Array, NDArray[np.intp]]:
        """Return the entry to cut of every part, -1 for none; where to cut entries; which side first."""
        low, high = ends[:, 0], ends[:, 1]
        d = len(self.lower)
        limit = np.zeros(low.shape)
        limit[:, :d] = low[:, :d] / 2 + high[:, :d] / 2
        scale = DEDUCTION_THIN * (high - low)
        scale[:, :d] = DEDUCTION_THIN * (self.upper - self.lower)
        can = np.minimum(high - limit, limit - low) > scale
        up, down = self._pressures(relaxed)
        score = np.nan_to_num(up * down) + DEDUCTION_SUM_SHARE * np.nan_to_num(up + down)
        score = np.where(can, score, -1.0)
        at = np.argmax(score, axis=1)
        return np.where(can[np.arange(len(at)), at], at, -1), limit, (up < down).astype(np.intp)

    def _pressures(self, relaxed: RelaxedModel) -> tuple[Array, Array]:
        """Return how much kept entries press on rows when they go up, and down, both (n, size)."""
        n = len(relaxed.values[0].lower)
        up, down = np.zeros((n, self.starts[-1])), np.zeros((n, self.starts[-1]))
        place = dict(zip(self.kept, zip(self.starts[:-1], self.starts[1:], strict=True), strict=True))

        def count(j: int, more: tuple[Array, Array]) -> None:
            j = self.reads.get(j, j)
            if j in place:
                here = slice(*place[j])
                up[:, here] += more[0]
                down[:, here] += more[1]

        for i, node in enumerate(self.model.nodes, 1):
            operation = node.operation
            rows = operation.linear_rows if isinstance(operation, AffineOperation) else None
            if rows is not None:
                (j,) = node.inputs
                box = relaxed.values[j]
                if math.prod(box.lower.shape[1:]) != rows.shape[1]:
                    continue
                own = operation.interval(box)
                flat = (
                    Interval(*(e.reshape(n, -1) for e in at)) for at in (box, own, relaxed.values[i])
                )
                count(j, rows.pressure(*flat))
        for j, slope, most in forms_met(relaxed, self.goal):
            count(j, _form_pressure(relaxed.values[j], slope, most))
        return up, down


def _form_pressure(box: Interval, slope: Array, most: Array) -> tuple[Array, Array]:
    """Return how much moving entries up, or down, brings forms below zero."""
    width = (box.upper - box.lower).reshape(len(box.lower), 1, -1)
    steps = np.abs(slope) * width
    largest = steps.max(axis=2, initial=0.0)
    safe = np.where(largest > 0, largest, 1.0)
    binds = (largest > 0) & (most < steps.sum(axis=2))
    count = np.where(binds, np.exp2(-np.maximum(most, 0.0) / safe), 0.0)
    shares = np.nan_to_num(count[:, :, None] * steps / safe[:, :, None])
    return np.where(slope < 0, shares, 0.0).sum(axis=1), np.where(slope > 0, shares, 0.0).sum(axis=1)


def goal_of(unsafe: UnsafeSet, shape: Shape) -> Goal:
    """Return what must be shown of an unsafe set: that one of its rows is above its limit everywhere."""
    if not len(unsafe.limits):  # the whole box is unsafe: 0 <= 0
        return Goal(np.zeros((1, *shape)), None, np.zeros(1))
    at_input = None if unsafe.input_rows is None else -unsafe.input_rows
    return Goal(-unsafe.rows.reshape(-1, *shape), at_input, unsafe.limits)


@dataclass(eq=False)
class Deductions:
    """Cutting and concluding for all open sets, in turns.

    Attributes:
        proved: The sets that are out of reach.
        corners: Points to try, and the sets that they are from.
    """

    searches: dict[int, Deduction]
    proved: set[int] = field(default_factory=set)
    corners: tuple[Array, NDArray[np.intp]] | None = None
    _finished_parts: int = 0

    @classmethod
    def of(cls, model: Model, sets: dict[int, UnsafeSet], threads: int) -> Deductions:
        """Return the state at the beginning."""
        return cls(
            {
                s: Deduction(
                    model, unsafe.lower, unsafe.upper, goal_of(unsafe, model.output_shape), threads
                )
                for s, unsafe in sets.items()
            }
        )

    @property
    def n_parts(self) -> int:
        """How many parts were looked at."""
        return self._finished_parts + sum(one.n_parts for one in self.searches.values())

    @property
    def fruitful(self) -> bool:
        """Whether cuts of a set that is open led to contradictions."""
        return any(one.n_proved for one in self.searches.values())

    @property
    def done(self) -> bool:
        """Whether nothing is left to do."""
        return all(one.done for one in self.searches.values())

    def round(self, open_sets: Collection[int], deadline: Deadline) -> None:
        """Go on with every open set."""
        points, owner = [], []
        for s, one in list(self.searches.items()):
            if s in open_sets and not one.done and not deadline.passed:
                one.round()
                points += one.corners
                owner += [s] * sum(map(len, one.corners))
                one.corners.clear()
                if one.proved:
                    self.proved.add(s)
            if s not in open_sets or one.proved:
                self._finished_parts += self.searches.pop(s).n_parts
        self.corners = (np.concatenate(points), np.array(owner, np.intp)) if points else None
