"""A share of branch and bound that one worker does alone: some boxes, cut for a while.

A part starts from boxes with proved bounds and gives back boxes that cover the same inputs, with proved
bounds again. How much it does is counted in boxes, so that it comes out the same wherever it runs,
unless its time ends first.

Wang et al. 2018, section 3.3 (input splitting); Crainic, Le Cun and Roucairol 2006, "Parallel
branch-and-bound algorithms" (subtrees as tasks).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from math import isfinite
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.equivalence.gap.branching import Value, best_corners, cuts, halves, index_of_largest
from pindown.equivalence.gap.cover import Cover
from pindown.relaxation.linear import LinearForms

# From boxes (n, d), (n, d) and ``deadline=`` to upper bounds (n,) and linear forms above the function.
Bounds: TypeAlias = Callable[..., tuple[Array, LinearForms]]


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
    deadline = time.monotonic() + part.seconds
    cover = replace(part.cover)  # the one given stays whole: it counts if this work is lost
    done, seen, count, slowest = 0.0, part.seen, 0, 0.0
    point: Array | None = None
    while len(cover.bound) and count < part.quota:
        turn = time.monotonic()
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
        spent = time.monotonic() - turn
        slowest = max(slowest, spent)
        # Only the first time: a point whose value cannot be proved to be so large is no reason to stop.
        decides = part.tol is not None and part.seen <= part.tol < seen
        if decides or time.monotonic() + spent > deadline:
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
