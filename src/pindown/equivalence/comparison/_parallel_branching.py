"""Branch and bound by several workers: rounds of parts, the worst boxes dealt out anew in each.

One queue for all would have to be asked for every few boxes. Instead the boxes with the largest bounds
are dealt to a fixed number of parts, each goes its own way for a while, and what is left comes back. A
round is as much work as all before it, up to a limit, so that little is done on boxes that no longer
matter. Nothing here depends on the number of workers, except when the time is over, or a witness
decides first. A part is what one worker does alone: it starts from boxes with proved bounds and gives
back boxes that cover the same inputs, with proved bounds again. How much it does is counted in boxes, so
that it comes out the same wherever it runs, unless its time ends first.

Crainic, Le Cun and Roucairol 2006, "Parallel branch-and-bound algorithms".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from math import inf, isfinite
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.box import Box
from pindown.deadline import NEVER, Deadline, Stopwatch
from pindown.equivalence.comparison._branching import (
    Cover,
    Value,
    best_corners,
    cuts,
    halves,
    index_of_largest,
)
from pindown.equivalence.comparison._witness_search import gaps_at
from pindown.equivalence.comparison.bracket import GapState
from pindown.equivalence.tuning import (
    HEAD_WORK,
    MAX_BOXES,
    MAX_BOXES_AT_ONCE,
    MAX_HEAD_BOXES,
    MAX_PART_BOXES,
    MAX_PARTS,
    MIN_PARTS,
    PART_WORK,
    PROCESS_START_SECONDS,
    TURN_WORK,
)
from pindown.evidence import Bracket
from pindown.network import ReluNetwork
from pindown.parallel import each, n_workers
from pindown.relaxation.differential import gap_bounds, proved_gap
from pindown.relaxation.linear import LinearForms

# From boxes (n, d), (n, d) and ``deadline=`` to upper bounds (n,) and linear forms above the function.
Bounds: TypeAlias = Callable[..., tuple[Array, LinearForms]]


@dataclass
class Frontier:
    """How far a search has come; give it again to go on from there.

    Attributes:
        cover: Boxes that are open.
        done: The largest bound of all that are not.
        seen: The largest value seen, in float64.
        count: Boxes bounded so far.
        slowest: Seconds of the slowest turn.
        rounds: How many rounds of parts there were.
    """

    cover: Cover
    done: float = 0.0
    seen: float = 0.0
    count: int = 0
    slowest: float = 0.0
    rounds: int = 0

    @property
    def top(self) -> float:
        """An upper bound on the whole domain."""
        return max(self.done, self.cover.top)


@dataclass
class _Rounds:
    """A search while it runs."""

    bounds: Bounds
    value: Value
    proved: Callable[[Array], float]
    size: int
    tol: float | None
    precision: float
    deadline: Deadline
    n_jobs: int | None
    state: GapState
    frontier: Frontier

    def boxes(self, work: int, most: int) -> int:
        return max(2, min(most, work // max(1, self.size)))

    def begin(self, box: Box) -> None:
        """Bound the whole domain."""
        lower, upper = box.lower[None], box.upper[None]
        watch = Stopwatch()
        bound, forms = self.bounds(lower, upper, deadline=self.deadline)
        self.frontier.cover.put(lower, upper, bound, cuts(forms, lower, upper))
        self.frontier.count = 1
        self.frontier.slowest = watch.seconds

    def parts(self) -> int:
        """Return how many parts the open boxes are worth: each should fill its turns."""
        hand = self.boxes(TURN_WORK, MAX_BOXES_AT_ONCE)
        return max(MIN_PARTS, min(MAX_PARTS, len(self.frontier.cover.bound) // hand))

    def plan(self) -> list[Part]:
        """Choose boxes for the next round and take them off the frontier; none if time is too short."""
        at, left = self.frontier, self.deadline.left
        workers = n_workers(self.n_jobs)
        head = at.count < self.boxes(HEAD_WORK, MAX_HEAD_BOXES)
        n = 1 if head or (not at.rounds and left < PROCESS_START_SECONDS) else self.parts()
        fit = n if at.slowest == 0.0 else min(float(n), left * workers / at.slowest)
        if left <= 0 or fit < 1:
            return []
        most = self.boxes(PART_WORK, MAX_PART_BOXES)
        quota = max(2, min(most, 2 * at.count // n if n > 1 else at.count))
        hands = dealt(at.cover.pop(int(fit) * -(-quota // 2)), int(fit))
        floor = max(at.done, self.state.lower, 0.0 if self.tol is None else self.tol)
        seconds = left * min(1.0, workers / len(hands)) if n > 1 else left
        known = self.state.lower, floor, at.seen, self.tol, self.precision, quota, seconds
        return [Part(hand, *known) for hand in hands]

    def run(self, parts: list[Part]) -> None:
        """Explore parts and put back what is left of them; of parts not finished, what was given."""
        batch = self.boxes(TURN_WORK, MAX_BOXES_AT_ONCE)
        work = partial(explore, self.bounds, self.value, batch)
        results: list[Explored | None] = [None] * len(parts)
        try:
            where = 1 if len(parts) == 1 else self.n_jobs
            with closing(each(work, parts, n_jobs=where, batch=1)) as found:
                for index, result in found:
                    results[index] = result
                    if self.decided_by(result):
                        break
            for known in results:  # in this order, whoever was first
                self.try_point(known)
        except ChildProcessError:
            self.n_jobs = 1  # workers keep dying: this process goes on alone
        finally:
            self.frontier.rounds += len(parts) > 1
            for part, known in zip(parts, results, strict=True):
                self.put_back(part, known)

    def decided_by(self, result: Explored) -> bool:
        """Return whether a worker's point settles the question, so that the others can stop."""
        if self.tol is None or result.point is None or result.seen <= self.tol:
            return False
        self.try_point(result)
        return self.state.lower > self.tol

    def try_point(self, result: Explored | None) -> None:
        """Prove the value at a worker's point if it is the largest seen."""
        if result is None or result.point is None or result.seen <= self.frontier.seen:
            return
        self.frontier.seen = result.seen
        point = result.point.copy()
        point.flags.writeable = False
        self.state = self.state & Bracket(self.proved(point), inf, point)

    def put_back(self, part: Part, result: Explored | None) -> None:
        at, cover = self.frontier, part.cover if result is None else result.cover
        at.cover.put(cover.lower, cover.upper, cover.bound, cover.cut)
        if result is not None:
            at.done = max(at.done, result.done)
            at.count += result.bounded
            at.slowest = max(at.slowest, result.slowest)


def gap_in_rounds(
    a: ReluNetwork, b: ReluNetwork, box: Box, *, start: GapState | None = None, **goal: Any
) -> Iterator[GapState]:
    """Yield ever better proved bounds on the largest gap on a box, found by all workers.

    Args:
        a: A network; up to about ten inputs the bounds get good.
        b: One with as many inputs and outputs; like units at like places help.
        box: The inputs.
        start: What is known already.
        goal: ``tol``, ``precision``, ``deadline``, ``n_jobs``, ``frontier``: see
            :func:`branch_in_rounds`.

    Example:
        >>> nets = [ReluNetwork.from_layers([([[1.0]], [b]), ([[1.0]], [0])]) for b in (0.0, -1.0)]
        >>> *_, last = gap_in_rounds(*nets, Box([-2], [2]), n_jobs=2)
        >>> round(last.lower, 6), round(last.upper, 6)
        (1.0, 1.0)

    Crainic, Le Cun and Roucairol 2006.
    """
    ways = partial(gap_bounds, a, b), partial(gaps_at, a, b), partial(proved_gap, a, b)
    return branch_in_rounds(*ways, box, size=a.n_parameters + b.n_parameters, start=start, **goal)


def branch_in_rounds(
    bounds: Bounds,
    value: Value,
    proved: Callable[[Array], float],
    box: Box,
    *,
    size: int,
    start: GapState | None = None,
    tol: float | None = None,
    precision: float = 1e-6,
    deadline: Deadline = NEVER,
    n_jobs: int | None = None,
    frontier: Frontier | None = None,
) -> Iterator[GapState]:
    """Bound the largest value of a function on a box from both sides, ever better, by all workers.

    Args:
        bounds: From boxes (n, d), (n, d) and ``deadline=`` to upper bounds (n,) and linear forms above
            the function; a function that other processes find by name, or a partial of one.
        value: The function in float64, (n, d) -> (n,), likewise.
        proved: The function at one point, rounded down.
        box: The domain.
        size: Weights that bounding one box goes through: how many boxes make a turn.
        start: What is known already.
        tol: Stop once the bounds decide about this value.
        precision: Stop once they differ by this share.
        deadline: When to stop.
        n_jobs: Workers, as for :func:`pindown.parallel.each`.
        frontier: Go on from there, ``start`` being what was found on the way; it is changed. Empty, with
            count 0, to begin.

    Crainic, Le Cun and Roucairol 2006.
    """
    state = start or GapState()
    at = Frontier(Cover.empty(box.dim)) if frontier is None else frontier
    run = _Rounds(bounds, value, proved, size, tol, precision, deadline, n_jobs, state, at)
    at.seen = state.lower  # what was seen and is not in the state would never be proved
    if not at.count:
        run.begin(box)
    shown: GapState | None = None
    while True:
        run.state = run.state & Bracket(0.0, at.top)
        if run.state is not shown:
            shown = run.state
            yield shown
        full = len(at.cover.bound) > MAX_BOXES
        if run.state.settled(tol, precision) or full or not len(at.cover.bound):
            return
        parts = run.plan()
        if not parts:
            return
        run.run(parts)


class Part(NamedTuple):
    """Boxes for one worker, and how far to go with them.

    Attributes:
        cover: The boxes.
        lower: The largest value proved so far, anywhere.
        floor: Boxes with a bound at most this need not be cut.
        seen: The largest value seen so far, in float64.
        tol: The value to decide about, or None.
        precision: Boxes whose bound exceeds ``lower`` by at most this share need not be cut.
        quota: How many new boxes to bound.
        seconds: When to stop at the latest, from the beginning of the work.
    """

    cover: Cover
    lower: float
    floor: float
    seen: float
    tol: float | None
    precision: float
    quota: int
    seconds: float


class Explored(NamedTuple):
    """What became of a part.

    Attributes:
        cover: Boxes that are still open.
        done: The largest bound of all boxes that are not; what was given is covered by both.
        seen: The largest value seen, in float64.
        point: Where, if that is more than was seen before.
        bounded: How many boxes were bounded.
        slowest: Seconds that the slowest turn took.
    """

    cover: Cover
    done: float
    seen: float
    point: Array | None
    bounded: int
    slowest: float


def explore(bounds: Bounds, value: Value, batch: int, part: Part) -> Explored:
    """Cut the worst boxes of a part, again and again.

    Args:
        bounds: Bounds a function on boxes from above.
        value: The function in float64, (n, d) -> (n,).
        batch: How many boxes to cut in one turn.
        part: The boxes, which are left as they are, and how far to go.

    Returns:
        Boxes and bounds that are as true, and usually better.

    Example:
        The identity on [0, 1], whose bound comes down to 1 at once:

        >>> def bounds(lower, upper, deadline):
        ...     return upper[:, 0], LinearForms(np.ones((len(upper), 1, 1)), np.zeros((len(upper), 1)))
        >>> cover = Cover(np.zeros((1, 1)), np.ones((1, 1)), np.array([9.0]), np.array([0]))
        >>> found = explore(bounds, lambda X: X[:, 0], 8, Part(cover, 0.0, 0.0, 0.0, None, 0.0, 2, 1.0))
        >>> found.cover.top, found.seen, found.point, found.bounded
        (1.0, 1.0, array([1.]), 2)

    Wang et al. 2018, section 3.3.
    """
    deadline = Deadline.after(part.seconds)
    cover = replace(part.cover)  # the one given stays whole: it counts if this work is lost
    done, seen, count, slowest = 0.0, part.seen, 0, 0.0
    point: Array | None = None
    while len(cover.bound) and count < part.quota:
        watch = Stopwatch()
        parents = cover.pop(min(batch, (part.quota - count + 1) // 2))
        lower, upper, stuck = halves(parents.lower, parents.upper, parents.cut)
        done = max(done, float(np.max(parents.bound[stuck], initial=0.0)))
        if not len(lower):
            continue
        bound, forms = bounds(lower, upper, deadline=deadline)
        bound = np.fmin(bound, np.tile(parents.bound[~stuck], 2))  # what held for both halves holds
        points = best_corners(forms, lower, upper)
        values = value(points)
        best = index_of_largest(values)
        if values[best] > seen:
            seen, point = float(values[best]), points[best].copy()
        closed = _closed(bound, part, done)
        done = max(done, float(np.max(bound[closed], initial=0.0)))
        cut = cuts(forms, lower, upper)
        cover.put(lower[~closed], upper[~closed], bound[~closed], cut[~closed])
        count += len(lower)
        spent = watch.seconds
        slowest = max(slowest, spent)
        # Only the first time: a point whose value cannot be proved to be so large is no reason to stop.
        decides = part.tol is not None and part.seen <= part.tol < seen
        if decides or spent > deadline.left:
            break
    return Explored(cover, done, seen, point, count, slowest)


def _closed(bound: Array, part: Part, done: float) -> NDArray[np.bool_]:
    """Return which boxes need not be cut: others will be as high, or the bound is as good as asked."""
    low = bound <= max(part.floor, done)
    if not isfinite(part.precision):
        return low | np.isfinite(bound)
    with np.errstate(invalid="ignore"):
        return low | (np.isfinite(bound) & (bound - part.lower <= part.precision * bound))


def dealt(cover: Cover, n: int) -> list[Cover]:
    """Deal boxes like cards, largest bounds first, so that every hand is as good; none is empty.

    >>> boxes = Cover(np.zeros((3, 1)), np.ones((3, 1)), np.array([1.0, 3.0, 2.0]), np.zeros(3, int))
    >>> [hand.bound.tolist() for hand in dealt(boxes, 2)]
    [[3.0, 1.0], [2.0]]
    """
    order = np.argsort(-cover.bound, kind="stable")
    return [cover[order[i::n]] for i in range(min(n, len(order)))]
