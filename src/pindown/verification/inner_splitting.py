r"""Cutting ranges inside a model, with all that follows bounded anew: are unsafe sets reached?

A part is a range for every number that enters a ReLU or another function of numbers. Cutting one of them
in two, a ReLU's at zero, makes bounds of all later ones tighter, and what enters early layers makes most
of what deep networks lose. A part costs as much as bounds of the whole model, thousands of times what a
sign costs inside one linear bound (:mod:`~pindown.verification.unit_splitting`), and serves all sets at
once. The last part comes first, so that few wait.

Where to cut: lines at a distance :math:`h_k` around entry k, of which a bound takes :math:`c_k` times,
cost it :math:`|c_k| h_k`. The distance depends on the width of what enters, and that on lines around
earlier entries: from back to front

.. math::
    t_j = |c_j| h_j + \sum_k \frac{t_k}{h_k} \frac{\partial h_k}{\partial w_k} |c_{kj}| h_j ,

with :math:`c_{kj}` what the bound of entry k takes of entry j. The largest :math:`t_j` is cut.

Bak 2021, "nnenum: verification of ReLU neural networks with optimized abstraction refinement"; Henriksen
and Lomuscio 2021, "DEEPSPLIT: an efficient splitting method for neural network verification via indirect
effect analysis".
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.deadline import Deadline
from pindown.model.operations.elementwise import Elementwise
from pindown.model.operations.operation import EntrywiseLines, Interval, Relaxation, in_float32
from pindown.model.operations.relu import Relu, Triangles
from pindown.model.operations.smooth_function import Smooth
from pindown.parallel import in_threads
from pindown.relaxation.descent import Descent
from pindown.relaxation.model_bounds import tighten, usual_slopes
from pindown.relaxation.propagation import Goal
from pindown.relaxation.relaxed_model import Choice, Estimate, RelaxedModel
from pindown.rounding import add_up
from pindown.verification.tuning import (
    INNER_BATCH_NUMBERS,
    INNER_FEWEST_PARTS,
    INNER_JUDGED_PARTS,
    INNER_LAST_STEPS,
    INNER_MAX_BATCH,
    INNER_MIN_PROVED,
    INNER_STEPS,
    INNER_TRACED,
    WAITING_BYTES,
)

_NOTHING = Choice({}, {})


class _Part(NamedTuple):
    """A part that waits, and where it is cut.

    Attributes:
        ends: Bounds on the kept tensors, (2, size), lower and upper.
        signs: Of entries that were cut at zero, (size,).
        open: Which sets are, (m,).
        at: The entry that is cut, or -1 for none.
        limit: Where.
    """

    ends: Array
    signs: NDArray[np.int8]
    open: NDArray[np.bool_]
    at: int
    limit: float


@dataclass(eq=False)
class InnerSplitting:
    """A search on one box, for all sets on it.

    Attributes:
        root: The model on the box, with the best bounds known.
        goals: What must be shown, by set.
        threads: How many to bound parts in.
        n_parts: How many were bounded.
        n_proved: How many of them are proved.
        stuck: Sets of parts that nothing can be cut in.
        corners: Points at which bounds are attained, and the sets they are from.
    """

    root: RelaxedModel
    goals: dict[int, Goal]
    threads: int = 1
    n_parts: int = 0
    n_proved: int = 0
    stuck: set[int] = field(default_factory=set)
    corners: list[tuple[Array, NDArray[np.intp]]] = field(default_factory=list)
    waiting: list[_Part] = field(default_factory=list)

    def __post_init__(self) -> None:
        model = self.root.model
        self.index = len(self.root.values) - 1
        self.nodes: dict[int, int] = {}  # functions of numbers, and what enters them
        for i, node in enumerate(model.nodes, 1):
            if isinstance(node.operation, Elementwise) and node.inputs[0] > 0:
                self.nodes[i] = node.inputs[0]
        self.kept = sorted(set(self.nodes.values()))
        self.shapes = [model.nodes[j - 1].shape for j in self.kept]
        self.starts = np.cumsum([0, *map(math.prod, self.shapes)])
        self.smooth = np.zeros(self.starts[-1], bool)  # cut in the middle, others at zero
        for i, j in self.nodes.items():
            if isinstance(model.nodes[i - 1].operation, Smooth):
                self.smooth[self._place(j)] = True
        self.sets = np.array(list(self.goals), np.intp)
        r = max(len(goal.rows) for goal in self.goals.values())
        goals = [(goal, np.arange(r) % len(goal.rows)) for goal in self.goals.values()]
        self.rows = np.stack([goal.rows[k] for goal, k in goals])  # (m, r, *shape)
        self.constant = np.stack([goal.constant[k] for goal, k in goals])
        self.at_input = None
        if any(goal.at_input is not None for goal, _ in goals):
            none = np.zeros((r, math.prod(self.root.values[0].lower.shape[1:])))
            self.at_input = np.stack(
                [none if goal.at_input is None else goal.at_input[k] for goal, k in goals]
            )
        self._begun = False

    def _place(self, j: int) -> slice:
        k = self.kept.index(j)
        return slice(self.starts[k], self.starts[k + 1])

    @property
    def done(self) -> bool:
        """Whether nothing is left to cut, or cutting does not lead anywhere."""
        idle = self.n_parts >= INNER_JUDGED_PARTS
        idle = idle and self.n_proved < INNER_MIN_PROVED * self.n_parts
        return self._begun and (not self.waiting or idle)

    @property
    def proved(self) -> set[int]:
        """The sets that no part is left of."""
        if not self._begun:
            return set()
        left = np.zeros(len(self.sets), bool)
        for part in self.waiting:
            left |= part.open
        return set(self.sets[~left].tolist()) - self.stuck

    @cached_property
    def cost(self) -> float:
        """About how many multiplications a part takes."""
        opened = 0
        for i, j in self.nodes.items():
            low, high = self.root.values[j]
            relu = isinstance(self.root.model.nodes[i - 1].operation, Relu)
            opened += int(np.count_nonzero((low < 0) & (high > 0) if relu else low < high))
        return float(2 * opened * self.root.model.multiply_adds)

    @property
    def batch(self) -> int:
        """How many parts to cut together."""
        numbers = sum(math.prod(value.lower.shape[1:]) for value in self.root.values)
        return max(1, min(INNER_MAX_BATCH, INNER_BATCH_NUMBERS // numbers))

    def round(self, open_sets: Collection[int], deadline: Deadline) -> None:
        """Cut the last parts and bound their halves; a finished round keeps what it proved."""
        wanted = np.isin(self.sets, list(open_sets))
        if not self._begun:
            self._begin(wanted, deadline)
            return
        own = 17 * int(self.starts[-1])
        room = WAITING_BYTES // own - len(self.waiting)
        size = int(max(1, min(self.batch * self.threads, 1 + self.n_parts // 8, room)))
        taken = self.waiting[-size:]
        live = [part for part in taken if (part.open & wanted).any()]
        chunks = np.array_split(np.arange(len(live)), max(1, min(self.threads, len(live))))
        found = in_threads(
            lambda few: self._halves([live[k] for k in few], wanted, deadline), chunks, self.threads
        )
        del self.waiting[-size:]
        for parts, n, points in found:
            self._keep(parts, n, points)

    def _begin(self, wanted: NDArray[np.bool_], deadline: Deadline) -> None:
        """Find out where to cut the whole."""
        ends = np.stack(
            [np.concatenate([self.root.values[j][side].ravel() for j in self.kept]) for side in (0, 1)]
        )
        signs = np.zeros(ends.shape[1], np.int8)
        self._keep(*self._bounded(ends[None], signs[None], wanted[None], deadline))
        self._begun = True

    def _keep(self, parts: list[_Part], n: int, points: tuple[Array, NDArray[np.intp]] | None) -> None:
        self.n_parts += n
        self.n_proved += n - len(parts)
        for part in parts:
            if part.at < 0:
                self.stuck |= set(self.sets[part.open].tolist())
            else:
                self.waiting.append(part)
        if points is not None:
            self.corners.append(points)

    def _halves(
        self, parts: Sequence[_Part], wanted: NDArray[np.bool_], deadline: Deadline
    ) -> tuple[list[_Part], int, tuple[Array, NDArray[np.intp]] | None]:
        """Bound both halves of parts."""
        if not parts:
            return [], 0, None
        ends = np.stack([part.ends for part in parts for _ in (0, 1)])
        signs = np.stack([part.signs for part in parts for _ in (0, 1)])
        for k, part in enumerate(parts):
            ends[2 * k, 1, part.at] = ends[2 * k + 1, 0, part.at] = part.limit
            if part.limit == 0.0:
                signs[2 * k, part.at], signs[2 * k + 1, part.at] = -1, 1
        open_ = np.stack([part.open & wanted for part in parts for _ in (0, 1)])
        return self._bounded(ends, signs, open_, deadline)

    @np.errstate(all="ignore")  # what leaves float64 proves nothing
    def _bounded(
        self, ends: Array, signs: NDArray[np.int8], open_: NDArray[np.bool_], deadline: Deadline
    ) -> tuple[list[_Part], int, tuple[Array, NDArray[np.intp]] | None]:
        """Bound n parts: return those that are left, n, and points to try."""
        n, relaxed = len(ends), self._loaded(ends, signs)
        tighten(relaxed, deadline=deadline)
        ends = np.stack(
            [
                np.concatenate([relaxed.values[j][side].reshape(n, -1) for j in self.kept], axis=1)
                for side in (0, 1)
            ],
            axis=1,
        )
        crossed = np.count_nonzero(ends[:, 0] > ends[:, 1], axis=1)  # in a part without points
        open_ = open_ & (crossed == 0)[:, None]
        bounds = self._by_rows(relaxed)
        open_ &= ~(bounds < 0.0)
        left = np.flatnonzero(open_.any(axis=1))
        if not len(left):
            return [], n, None
        relaxed, ends, signs, open_ = (
            relaxed.of_boxes(left, self.index),
            ends[left],
            signs[left],
            open_[left],
        )
        descent, asked = self._descent(relaxed, open_)
        descent.run(INNER_STEPS, goal=0.0, deadline=deadline)
        found = descent.proved()
        bounds = np.where(open_[:, asked], found, -np.inf)
        open_[:, asked] &= ~(found < 0.0)
        worst = np.argmax(np.where(np.isnan(bounds), np.inf, bounds), axis=1)
        every = np.arange(len(left))
        form = np.einsum("nr,nr...->n...", descent.best_weights[every, worst], self.rows[asked[worst]])[
            :, None
        ]
        at, limit = self._cuts(relaxed, form, ends)
        for k in np.flatnonzero((at < 0) & open_.any(axis=1)):  # all is linear: the last word
            last, still = self._descent(relaxed.of_boxes(np.array([k]), self.index), open_[[k]])
            last.run(INNER_LAST_STEPS, goal=0.0, deadline=deadline)
            open_[k, still] &= ~(last.proved()[0] < 0.0)
        keep = np.flatnonzero(open_.any(axis=1))
        if not len(keep):
            return [], n, None
        assert descent.last is not None
        points = descent.last.point.reshape(len(left), len(asked), -1)[every, worst]
        owner = self.sets[asked[worst]]
        nearest = np.lexsort((-bounds[keep].max(axis=1), -open_[keep].sum(axis=1)))
        parts = [
            _Part(ends[k].copy(), signs[k].copy(), open_[k].copy(), int(at[k]), float(limit[k]))
            for k in keep[nearest]
        ]
        return parts, n, (points[keep], owner[keep])

    def _loaded(self, ends: Array, signs: NDArray[np.int8]) -> RelaxedModel:
        """Return the model with the bounds of n parts."""
        n = len(ends)
        values = [
            Interval(*(np.broadcast_to(end, (n, *end.shape[1:])) for end in value))
            for value in self.root.values
        ]
        assumed = {}
        for j, shape in zip(self.kept, self.shapes, strict=True):
            here = self._place(j)
            values[j] = Interval(*(ends[:, side, here].reshape(n, *shape) for side in (0, 1)))
            if signs[:, here].any():
                assumed[j] = signs[:, here].reshape(n, *shape)
        balls = self.root.balls
        balls = None if balls is None else balls.take(np.zeros(n, np.intp))
        return RelaxedModel(self.root.model, values, assumed, balls)

    def _by_rows(self, relaxed: RelaxedModel) -> Array:
        """Return proved upper bounds (n, m) on the smallest row of every set."""
        n, (m, r) = len(relaxed.values[0].lower), self.constant.shape
        rows = self.rows.reshape(1, m * r, *self.rows.shape[2:])
        at_input = self.at_input
        if at_input is not None:
            at_input = np.broadcast_to(at_input.reshape(1, m * r, -1), (n, m * r, at_input.shape[2]))
        form = np.broadcast_to(rows, (n, *rows.shape[1:]))
        found = relaxed.upper_ends(self.index, form, at_input=at_input)
        return np.asarray(add_up(found, self.constant.reshape(1, -1)).reshape(n, m, r).min(axis=2))

    def _descent(
        self, relaxed: RelaxedModel, open_: NDArray[np.bool_]
    ) -> tuple[Descent, NDArray[np.intp]]:
        """Return bounds of the open sets with slopes, multipliers and weights that can be chosen."""
        asked = np.flatnonzero(open_.any(axis=0))
        n, q, r = len(open_), len(asked), self.constant.shape[1]
        rows = np.broadcast_to(self.rows[asked], (n, q, *self.rows.shape[1:]))
        at_input = self.at_input
        if at_input is not None:
            at_input = np.broadcast_to(at_input[asked], (n, q, r, at_input.shape[2]))
        choice = Choice(
            usual_slopes(relaxed, self.index, n, q),
            {j: np.zeros((n, q, *sign.shape[1:])) for j, sign in relaxed.signs.items()},
        )
        weights = np.full((n, q, r), 1.0 / r)
        constant = np.broadcast_to(self.constant[asked], (n, q, r))
        descent = Descent(relaxed, self.index, rows, at_input, constant, choice, weights, single=True)
        return descent, asked

    # ------------------------------------------------------------------ where to cut

    def _cuts(self, relaxed: RelaxedModel, form: Array, ends: Array) -> tuple[NDArray[np.intp], Array]:
        """Return the entry to cut of every part, -1 for none, and where."""
        low, high = ends[:, 0], ends[:, 1]
        middle = low / 2 + high / 2
        limit = np.where(self.smooth | ~((low < 0) & (high > 0)), middle, 0.0)
        can = (low < limit) & (limit < high)
        total = self._traced(relaxed, form, low, high)
        score = np.where(can, np.nan_to_num(total), 0.0)
        at = np.argmax(score, axis=1)
        n = np.arange(len(at))
        return np.where(score[n, at] > 0, at, -1), limit[n, at]

    def _traced(self, relaxed: RelaxedModel, form: Array, low: Array, high: Array) -> Array:
        """Return what lines around entries cost the bound of a form, also by way of later lines."""
        n = len(form)
        gaps = {i: _gap(relaxed.relaxation(i), low[:, self._place(j)]) for i, j in self.nodes.items()}
        total = np.zeros(low.shape)
        self._count(total, relaxed.estimate(self.index, in_float32(form), _NOTHING), gaps)
        for j, shape in list(zip(self.kept, self.shapes, strict=True))[:0:-1]:
            here = self._place(j)
            width = high[:, here] - low[:, here]
            share = 2.0 / width
            if not self.smooth[here].any():  # of a triangle's height, by what either end moves
                own_low, own_high = low[:, here], high[:, here]
                share = (own_low**2 + own_high**2) / (width * -own_low * own_high)
            cost = np.where(width > 0, np.nan_to_num(total[:, here] * share, posinf=0.0), 0.0)
            q = min(INNER_TRACED, cost.shape[1], int(np.count_nonzero(cost > 0, axis=1).max()))
            if not q:
                continue
            which = np.argpartition(-cost, q - 1, axis=1)[:, :q]
            rows = np.zeros((n, q, cost.shape[1]), np.float32)
            rows[np.arange(n)[:, None], np.arange(q), which] = np.take_along_axis(cost, which, axis=1)
            self._count(total, relaxed.estimate(j, rows.reshape(n, q, *shape), _NOTHING), gaps)
        return total

    def _count(self, total: Array, found: Estimate, gaps: dict[int, Array]) -> None:
        for i, (form, _) in found.forms.items():
            if i in self.nodes:
                own = np.abs(form.reshape(*form.shape[:2], -1)).sum(axis=1) * gaps[i]
                total[:, self._place(self.nodes[i])] += own


def _gap(made: Relaxation, like: Array) -> Array:
    """Return the distance of the lines around every entry, in the middle of its range."""
    if isinstance(made, Triangles):
        return made.shift.reshape(like.shape)
    if isinstance(made, EntrywiseLines):
        (box,) = made.boxes
        at = box.lower / 2 + box.upper / 2
        gap = (made.upper_slopes[0] - made.lower[0]) * at + made.above - made.below
        return np.maximum(gap, 0.0).reshape(like.shape)
    return np.zeros(like.shape)


@dataclass(eq=False)
class InnerSplittings:
    """Cutting inside for all open sets, box by box, in turns.

    Attributes:
        searches: Those that are not done.
        proved: The sets that are out of reach.
        corners: Points to try, and the sets that they are from.
        work: Multiplications that were made, about.
    """

    searches: list[InnerSplitting]
    proved: set[int] = field(default_factory=set)
    corners: tuple[Array, NDArray[np.intp]] | None = None
    work: float = 0.0
    n_parts: int = 0

    @property
    def done(self) -> bool:
        """Whether nothing is left to do."""
        return not self.searches

    @property
    def fruitful(self) -> bool:
        """Whether cuts of some box led to proofs."""
        return any(
            one.n_proved and one.n_proved >= INNER_MIN_PROVED * one.n_parts for one in self.searches
        )

    def affordable(self, work: float) -> bool:
        """Return whether so many multiplications bound some parts."""
        return any(INNER_FEWEST_PARTS * one.cost <= work for one in self.searches)

    def round(self, open_sets: Collection[int], work: float, deadline: Deadline) -> None:
        """Go on with every box that some parts of cost no more than so many multiplications."""
        found = []
        for one in list(self.searches):
            if INNER_FEWEST_PARTS * one.cost > work or deadline.passed:
                continue
            before = one.n_parts
            one.round(open_sets, deadline)
            found += one.corners
            one.corners.clear()
            self.n_parts += one.n_parts - before
            self.work += (one.n_parts - before) * one.cost
            self.proved |= one.proved
            if one.done or not set(one.goals) & set(open_sets) - one.proved:
                self.searches.remove(one)
        points, owner = zip(*found, strict=True) if found else ((), ())
        self.corners = (np.concatenate(points), np.concatenate(owner)) if found else None
