r"""Ways to go down: samples, gradients, slopes of linear bounds on shrinking boxes, walks over corners.

A gradient sees one side of every kink. A linear bound on a box around the point sees both, so its slope
still points somewhere where the gradient vanishes or leads into a corner; as the box shrinks it becomes
the gradient. Steps are shares of the half widths :math:`h` of the region,

.. math::
    x \leftarrow \Pi\bigl(x - \rho\, h\, \operatorname{sign} s\bigr), \qquad
    s = \text{slope of the lower bound of } w \cdot r \text{ on } \{|x' - x| \le \rho h\},

or with gradients in place of s, and then also with Adam's steps. Madry et al. 2018, "Towards deep
learning models resistant to adversarial attacks" (projected descent); Kingma and Ba 2015 (Adam); Selman,
Kautz and Cohen 1994, "Noise strategies for improving local search" (walks over corners).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.model.gradients import gradients, outputs, relaxed_gradients
from pindown.model.operations.operation import Interval
from pindown.relaxation.lp_balls import Balls
from pindown.verification._goals import OPEN, Indices, corners, half_widths, moved, uniform
from pindown.verification._searching import Searching
from pindown.verification.tuning import (
    DESCENT_LAST_STEP,
    DESCENT_MOMENTUM,
    DESCENT_SQUARES,
    FOLLOW_MAX_BYTES,
    SEARCH_ALL_SAMPLES,
    SEARCH_FEW_INPUTS,
    SEARCH_MAX_SAMPLES,
    SEARCH_SAMPLES_OF_MANY,
    SEARCH_SAMPLES_WORK,
    WALK_CHAINS,
    WALK_FLIPS,
    WALK_MAX_FREE,
    WALK_MAX_WORK,
    WALK_NOISE,
)

Flags = NDArray[np.bool_]

_MERE_ROUNDING = 1e-9  # of the largest residual: a spread below says nothing about its size


# ---------------------------------------------------------------------- samples


def sample(search: Searching) -> None:
    """Try the centre and random points of every region, corners among them, and set the units."""
    goals, regions = search.goals, search.goals.regions
    most = SEARCH_MAX_SAMPLES if search.most_free <= SEARCH_FEW_INPUTS else SEARCH_SAMPLES_OF_MANY
    n = int(np.clip(SEARCH_SAMPLES_WORK // search.work, 1, most))
    n = int(np.clip(SEARCH_ALL_SAMPLES // len(regions), 1, n))
    search.by = "samples"
    order = np.argsort(goals.region_of, kind="stable")
    ends = np.cumsum(np.bincount(goals.region_of))
    together = max(1, SEARCH_MAX_SAMPLES // n)
    for start in range(0, len(regions), together):
        if search.over:
            return
        stop = min(len(regions), start + together)
        balls = regions.take(np.repeat(np.arange(start, stop), n))
        points = _samples(balls, stop - start, search.rng)
        own = order[ends[start - 1] if start else 0 : ends[stop - 1]]
        at = ((goals.region_of[own] - start)[:, None] * n + np.arange(n)).ravel()
        _note_samples(search, own, points, outputs(search.model, points), at)


def _note_samples(search: Searching, own: Indices, points: Array, made: Array, at: Indices) -> None:
    """Keep samples: of goals ``own`` those in the rows ``at``, equally many for each."""
    every, n = np.repeat(own, len(at) // len(own)), len(at) // len(own)
    residuals = search.goals.residuals(every, points[at], made[at])
    units = np.zeros_like(search.goals.units)
    units[own] = _spread(residuals.reshape(len(own), n, -1))
    search.goals = search.goals.measured(units)
    search.note(every, points[at], residuals)


def _samples(balls: Balls, regions: int, rng: np.random.Generator) -> Array:
    """Return the centre, then points and corners of some regions, one after the other."""
    points, ends = uniform(balls, rng), corners(balls, rng)
    odd = np.arange(len(points)) % 2 == 1
    points[odd] = ends[odd]
    first = np.arange(regions) * (len(points) // regions)
    points[first] = balls.center[first]
    return points


def _spread(residuals: Array) -> Array:
    """Return the standard deviation of residuals (m, n, q) over n points; zero if it is rounding."""
    with np.errstate(all="ignore"):
        known = np.isfinite(residuals)
        count = np.maximum(known.sum(axis=1), 1)
        values = np.where(known, residuals, 0.0)
        mean = values.sum(axis=1) / count
        off = np.where(known, values - mean[:, None], 0.0)
        spread = np.sqrt((off * off).sum(axis=1) / count)
        return np.where(spread > _MERE_ROUNDING * np.abs(values).max(axis=1), spread, 0.0)


# ---------------------------------------------------------------------- gradients


def descend(
    search: Searching,
    which: Indices,
    points: Array,
    kinds: Indices,
    adam: Flags,
    rates: Array,
    steps: int,
) -> Array:
    """Take gradient steps from points for one goal each, and return where they end.

    Args:
        search: The search; best points and finds are kept there.
        which: The goals, (n,).
        points: The starts, (n, d).
        kinds: How rows are weighted, (n,).
        adam: Which starts take Adam's steps instead of signs, (n,).
        rates: First steps in half widths, (n,).
        steps: How many.
    """
    balls = search.goals.balls(which)
    shape = _largest_one(half_widths(balls))
    mean, square = np.zeros_like(points), np.zeros_like(points)
    shrink = (DESCENT_LAST_STEP / rates) ** (1.0 / max(1, steps - 1))
    for step in range(1, steps + 1):
        way, residuals = _gradient(search, which, points, kinds)
        search.note(which, points, residuals)
        if search.over:
            return points
        way = _largest_one(_largest_one(way) * shape)
        mean += (1.0 - DESCENT_MOMENTUM) * (way - mean)
        square += (1.0 - DESCENT_SQUARES) * (way * way - square)
        with np.errstate(all="ignore"):
            first = mean / (1.0 - DESCENT_MOMENTUM**step)
            second = np.sqrt(square / (1.0 - DESCENT_SQUARES**step))
            smooth = np.clip(first / np.where(second > 0, second, 1.0), -1.0, 1.0)
        chosen = np.where(adam[:, None], smooth, np.sign(way) if balls.norm == "linf" else way)
        points = moved(balls, points, chosen, rates)
        flat = ~way.any(axis=1)
        if flat.any():  # nothing shows the way: start anew
            points[flat] = uniform(balls.take(np.flatnonzero(flat)), search.rng)
        rates = rates * shrink
        kept = search.open[which]
        if not kept.all():
            which, points, kinds, adam = which[kept], points[kept], kinds[kept], adam[kept]
            rates, shrink, mean, square = rates[kept], shrink[kept], mean[kept], square[kept]
            balls, shape = balls.take(np.flatnonzero(kept)), shape[kept]
    search.tried(which, points)
    return points


def _largest_one(rows: Array) -> Array:
    """Return rows divided by their largest absolute entry; rows of zeros stay."""
    size = np.abs(rows).max(axis=1, keepdims=True)
    return np.asarray(rows / np.where(size > 0, size, 1.0))


def _gradient(search: Searching, which: Indices, points: Array, kinds: Indices) -> tuple[Array, Array]:
    """Return gradients (n, d) of weighted residuals, and the residuals (n, q)."""
    goals = search.goals
    weights = np.empty((len(which), goals.limits.shape[1]))

    def forms(made: Array, part: slice) -> Array:
        own = which[part]
        weights[part] = goals.weights(own, goals.residuals(own, points[part], made), kinds[part])
        return goals.forms(own, weights[part])

    made, slopes = gradients(search.model, points, forms)
    np.add.at(search.gradients, which, 1)
    return slopes + goals.input_forms(which, weights), goals.residuals(which, points, made)


# ---------------------------------------------------------------------- slopes on shrinking boxes


def follow(
    search: Searching, which: Indices, points: Array, kinds: Indices, shares: tuple[float, ...]
) -> tuple[Indices, Array, Indices]:
    """Step by the slopes of linear bounds on boxes around points, smaller from step to step.

    Args:
        search: The search; best points and finds are kept there.
        which: The goals, (n,).
        points: The starts, (n, d).
        kinds: How rows are weighted, (n,).
        shares: Half widths of the boxes, in those of the regions.

    Returns:
        The goals that are still open, where their points ended, and how their rows are weighted.
    """
    goals = search.goals
    residuals = search.tried(which, points)
    if search.model.nbytes > FOLLOW_MAX_BYTES:
        shares = ()
    for share in shares:
        kept = search.open[which]
        which, points, kinds, residuals = which[kept], points[kept], kinds[kept], residuals[kept]
        if search.over:
            break
        balls = goals.balls(which)
        reach = share * half_widths(balls)
        middle = np.clip(points, np.minimum(balls.lower + reach, balls.upper), balls.upper)
        middle = np.clip(middle, balls.lower, np.maximum(balls.upper - reach, balls.lower))
        box = Interval(np.maximum(middle - reach, balls.lower), np.minimum(middle + reach, balls.upper))
        weights = goals.weights(which, residuals, kinds)
        way = -relaxed_gradients(search.model, box, -goals.forms(which, weights))
        way = way + goals.input_forms(which, weights)
        flat = ~way.any(axis=1)
        if flat.any():
            way[flat] = _gradient(search, which[flat], points[flat], kinds[flat])[0]
        linf = balls.norm == "linf"
        points = moved(
            balls, middle if linf else points, np.sign(way) if linf else way, np.full(len(way), share)
        )
        residuals = search.tried(which, points)
    kept = search.open[which]
    return which[kept], points[kept], kinds[kept]


# ---------------------------------------------------------------------- walks over corners


def can_walk(search: Searching) -> bool:
    """Return whether walking over corners is bearable, and the regions have several."""
    work = search.work * WALK_CHAINS * WALK_FLIPS
    boxes = search.goals.regions.norm == "linf"
    return boxes and 1 < search.most_free <= WALK_MAX_FREE and work <= WALK_MAX_WORK


def walk(search: Searching, steps: int) -> None:
    """Walk from corner to neighbouring corner: mostly the best of some flips that the gradient likes.

    Of the flips that lower the open residuals to first order some are tried, and the one that leaves the
    least is taken, even if that is more than before; now and then any of them is.
    """
    goals, rng = search.goals, search.rng
    which = np.resize(search.promising()[:WALK_CHAINS], WALK_CHAINS)
    balls = goals.balls(which)
    best, anywhere = search.point[which], corners(balls, rng)
    at_upper = best - balls.lower > balls.upper - best
    anew = rng.random(len(which)) < 0.5
    points = np.where(anew[:, None], anywhere, np.where(at_upper, balls.upper, balls.lower))
    kinds = np.full(len(which), OPEN)
    search.by = "walk over corners"
    for _ in range(steps):
        slopes, residuals = _gradient(search, which, points, kinds)
        search.note(which, points, residuals)
        if search.over:
            return
        points = _flipped(search, which, balls, points, slopes)


def _flipped(search: Searching, which: Indices, balls: Balls, points: Array, slopes: Array) -> Array:
    """Return points with one coordinate each taken from one end to the other."""
    (n, d), rng = points.shape, search.rng
    free, low = balls.upper > balls.lower, points == balls.lower
    hopeful = free & (np.where(low, -slopes, slopes) > 0.0)
    # Hopeful flips first, in random order; others where there are too few; fixed coordinates last.
    rank = rng.random((n, d)) - 1.0 * ~hopeful - 1.0 * ~free
    k = min(WALK_FLIPS, d)
    flips = np.argpartition(-rank, k - 1, axis=1)[:, :k]
    at = np.arange(n)[:, None]
    tries = np.repeat(points[:, None], k, axis=1)
    tries[at, np.arange(k), flips] = np.where(low, balls.upper, balls.lower)[at, flips]
    every = np.repeat(which, k)
    residuals = search.tried(every, tries.reshape(n * k, d))
    with np.errstate(all="ignore"):
        left = np.maximum(residuals / search.goals.units[every], 0.0).sum(axis=1).reshape(n, k)
    allowed = hopeful[at, flips]
    allowed |= ~allowed.any(axis=1, keepdims=True)
    best = np.argmin(np.where(allowed, left, np.inf), axis=1)
    blind = np.argmax(np.where(allowed, rng.random((n, k)), -1.0), axis=1)
    taken = np.where(rng.random(n) < WALK_NOISE, blind, best)
    return np.asarray(tries[np.arange(n), taken])
