r"""Branch and bound on the input box: always a proved interval, better with time.

A linear bound is as wrong as the box is wide. So the box with the largest bound is cut in two at the
middle of the coordinate that moves the bound most, again and again, many boxes at a time. The largest
bound of the boxes that cover the domain bounds the gap; points where the bounds would be attained are
tried as witnesses.

Moore 1966, "Interval Analysis" (subdivision); Wang et al. 2018, "Efficient formal safety analysis of
neural networks" (input splitting by influence).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.box import Box
from pindown.deadline import NEVER, Deadline, Stopwatch
from pindown.equivalence.comparison._witness_search import gaps_at
from pindown.equivalence.comparison.bracket import GapState
from pindown.equivalence.tuning import BRANCHING_TURN_SECONDS, MAX_BOXES, MAX_BOXES_AT_ONCE
from pindown.evidence import Bracket
from pindown.network import ReluNetwork
from pindown.relaxation.differential import gap_bounds, proved_gap
from pindown.relaxation.linear import LinearForms

Bounder = Callable[[Array, Array], tuple[Array, LinearForms]]
Value = Callable[[Array], Array]


def gap_by_branching(
    a: ReluNetwork,
    b: ReluNetwork,
    box: Box,
    *,
    start: GapState | None = None,
    tol: float | None = None,
    precision: float | None = 1e-6,
    deadline: Deadline = NEVER,
) -> Iterator[GapState]:
    """Yield ever better proved bounds on the largest gap on a box.

    Args:
        a: A network; up to about ten inputs the bounds get good.
        b: One with as many inputs and outputs; like units at like places help.
        box: The inputs.
        start: What is known already.
        tol: Stop once the bounds are both above, or the upper at most, this.
        precision: Stop once they differ by this share; None to go on whatever is known, so that whoever
            asks can stop and go on later.
        deadline: When to stop.

    Example:
        >>> nets = [ReluNetwork.from_layers([([[1.0]], [b]), ([[1.0]], [0])]) for b in (0.0, -1.0)]
        >>> *_, last = gap_by_branching(*nets, Box([-2], [2]))
        >>> round(last.lower, 6), round(last.upper, 6)
        (1.0, 1.0)

    Wang et al. 2018, section 3.3.
    """

    def bounder(lower: Array, upper: Array) -> tuple[Array, LinearForms]:
        return gap_bounds(a, b, lower, upper, deadline=deadline)

    def value(points: Array) -> Array:
        return gaps_at(a, b, points)

    def proved(point: Array) -> float:
        return proved_gap(a, b, point)

    return branch(
        bounder, value, proved, box, start=start, tol=tol, precision=precision, deadline=deadline
    )


def branch(
    bounder: Bounder,
    value: Value,
    proved: Callable[[Array], float],
    box: Box,
    *,
    start: GapState | None = None,
    tol: float | None = None,
    precision: float | None = 1e-6,
    deadline: Deadline = NEVER,
) -> Iterator[GapState]:
    """Bound the largest value of a function on a box from both sides, ever better.

    Args:
        bounder: From boxes (n, d), (n, d) to upper bounds (n,) and linear forms above the function.
        value: The function in float64, (n, d) -> (n,).
        proved: The function at one point, rounded down.
        box: The domain.
        start: What is known already.
        tol: Stop once the bounds decide about this value.
        precision: Stop once they differ by this share.
        deadline: When to stop.
    """
    state = start or GapState()
    cover = Cover.empty(box.dim)
    lower, upper, known = box.lower[None], box.upper[None], np.array([inf])
    done = 0.0  # the largest bound of boxes that cannot be cut, or need not be
    batch, seen = 1, state.lower
    shown: GapState | None = None
    while True:
        watch = Stopwatch()
        bound, forms = bounder(lower, upper)
        bound = np.fmin(bound, known)  # what held for both halves holds
        points = best_corners(forms, lower, upper)
        seen, state = _try_points(points, value, proved, seen, state)
        finished = bound <= max(done, state.lower, 0.0 if tol is None else tol)
        done = max(done, float(np.max(bound[finished], initial=0.0)))
        cover.put(
            lower[~finished], upper[~finished], bound[~finished], cuts(forms, lower, upper)[~finished]
        )
        state = state & Bracket(0.0, max(done, cover.top))
        spent = watch.seconds  # not of the time until it is gone on with
        if precision is None or state is not shown:
            shown = state
            yield state
        batch = _next_batch(batch, spent)
        over = spent > deadline.left or len(cover.bound) > MAX_BOXES
        settled = precision is not None and state.settled(tol, precision)
        if settled or over or not len(cover.bound):
            return
        parents = cover.pop(batch)
        lower, upper, stuck = halves(parents.lower, parents.upper, parents.cut)
        known = np.tile(parents.bound[~stuck], 2)
        done = max(done, float(np.max(parents.bound[stuck], initial=0.0)))
        if not len(lower):
            return


def _next_batch(batch: int, spent: float) -> int:
    if spent > BRANCHING_TURN_SECONDS:
        return max(1, batch // 2)
    return min(2 * batch, MAX_BOXES_AT_ONCE) if spent < BRANCHING_TURN_SECONDS / 3 else batch


def halves(lower: Array, upper: Array, cut: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Cut each box at the middle of a coordinate; leave out those too thin to be cut, and mark them."""
    rows = np.arange(len(lower))
    middle = lower[rows, cut] / 2 + upper[rows, cut] / 2
    stuck = (middle <= lower[rows, cut]) | (middle >= upper[rows, cut])
    left, right = upper.copy(), lower.copy()
    left[rows, cut], right[rows, cut] = middle, middle
    free = ~stuck
    return (
        np.concatenate([lower[free], right[free]]),
        np.concatenate([left[free], upper[free]]),
        stuck,
    )


def index_of_largest(values: Array) -> int:
    """Return where the largest value is; one that is not a number is no value.

    >>> index_of_largest(np.array([np.nan, 1.0, 2.0]))
    2
    """
    return int(np.argmax(np.where(np.isnan(values), -inf, values)))


def cuts(forms: LinearForms, lower: Array, upper: Array) -> Array:
    """Return the coordinate of each box whose width moves the bounds most; the widest in a tie."""
    width = upper / 2 - lower / 2
    influence = np.max(np.abs(forms.weight), axis=1)
    scale = np.max(influence, axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(np.isfinite(influence / scale), influence / scale, 1.0)
    # A coordinate whose slopes cancel here need not be harmless: the width counts a little by itself.
    return np.argmax(width * (share + 0.05), axis=1)


def best_corners(forms: LinearForms, lower: Array, upper: Array) -> Array:
    """Return for each box where its largest form is largest, and its middle."""
    A, c = forms
    with np.errstate(over="ignore", invalid="ignore"):
        tops = np.matmul(np.maximum(A, 0.0), upper[:, :, None])[:, :, 0]
        tops = tops - np.matmul(np.maximum(-A, 0.0), lower[:, :, None])[:, :, 0] + c
    row = np.argmax(np.where(np.isnan(tops), -inf, tops), axis=1)
    slope = A[np.arange(len(A)), row]
    return np.concatenate([np.where(slope > 0, upper, lower), lower / 2 + upper / 2])


def _try_points(
    points: Array,
    value: Value,
    proved: Callable[[Array], float],
    seen: float,
    state: GapState,
) -> tuple[float, GapState]:
    """Evaluate points; the best is proved if it is better than all that were seen."""
    values = value(points)
    best = index_of_largest(values)
    if not values[best] > seen:
        return seen, state
    point = points[best].copy()
    point.flags.writeable = False
    return float(values[best]), state & Bracket(proved(point), inf, point)


@dataclass
class Cover:
    """Boxes that cover the domain, each with its bound and the coordinate to cut next.

    A bound that is not a number, as where infinities cancelled, is none: it is kept as infinity.
    """

    lower: Array
    upper: Array
    bound: Array
    cut: Array

    def __post_init__(self) -> None:
        self.bound = _known(self.bound)

    def pop(self, n: int) -> Cover:
        """Remove the n boxes with the largest bounds and return them."""
        n = min(n, len(self.bound))
        chosen = np.argpartition(-self.bound, n - 1)[:n]
        taken = self[chosen]
        keep = np.ones(len(self.bound), bool)
        keep[chosen] = False
        self.lower, self.upper = self.lower[keep], self.upper[keep]
        self.bound, self.cut = self.bound[keep], self.cut[keep]
        return taken

    def __getitem__(self, rows: NDArray[np.intp]) -> Cover:
        return Cover(self.lower[rows], self.upper[rows], self.bound[rows], self.cut[rows])

    @classmethod
    def empty(cls, dim: int) -> Cover:
        """Return a cover without boxes."""
        return cls(np.zeros((0, dim)), np.zeros((0, dim)), np.zeros(0), np.zeros(0, np.intp))

    @property
    def top(self) -> float:
        """The largest bound, 0 if there are no boxes."""
        return float(np.max(self.bound, initial=0.0))

    def put(self, lower: Array, upper: Array, bound: Array, cut: Array) -> None:
        """Add boxes."""
        self.lower = np.concatenate([self.lower, lower])
        self.upper = np.concatenate([self.upper, upper])
        self.bound = np.concatenate([self.bound, _known(bound)])
        self.cut = np.concatenate([self.cut, cut])


def _known(bound: Array) -> Array:
    return np.where(np.isnan(bound), inf, bound)
