r"""A lower bound that keeps continuity almost: functional dynamic programming over gaps, compiled.

Lines of neighbouring segments are tied instead of made to meet. A tie couples them only through one
number, so the best prefix is a lower envelope of parabolas in the value of its last line at the centre
of the gap: one envelope per class of its last segment.

Ties are continuity, made soft and convex. Two lines with slopes a, b that meet within a gap of width h
around c satisfy, for every slope r and all :math:`q, q' > 0`,

.. math:: \lambda (L(c) - R(c))^2 - q (a - r)^2 - q' (b - r)^2 \le 0 ,
    \qquad \lambda = \frac{4}{h^2} \, \frac{q q'}{q + q'} ,

since :math:`|L(c) - R(c)| \le |a - b| h / 2` and
:math:`(a - b)^2 \le (1 + q / q') (a - r)^2 + (1 + q' / q) (b - r)^2`. Adding the left side to the loss
gives a lower bound.

What a segment pays, q, is a fraction of its own curvature in the slope, so that its line stays unique;
short segments pay little and are tied softly. Segments are sorted into classes by what they can pay.
Steep ones, for which the payment would cost more than the tie brings, count as shorter; a segment too
short for any class is not tied (as with :math:`\lambda = 0`).

Rows of an array ``ties``, one column per gap: centre, width, the most a tie may take, reference slope,
and how much a slope may explain before its segment counts as steep.
"""

from __future__ import annotations

import numpy as np

from pindown.affine import Array, Integers
from pindown.learn.segmented._compiled import compiled
from pindown.learn.segmented._compiled.parabolas import extend, insert, matters

# Both ends together may take this fraction of a segment's curvature: what is left keeps its line unique.
_TAKEN_SHARE = 0.9
# The least class is for two points at this quantile of gaps; the next ones grow by this factor.
_CLASS_QUANTILE = 0.1
_CLASS_GROWTH = 4.0
_MAX_CLASSES = 12


@compiled
def add_points(stats: Array, x: Array, y: Array, w: Array, first: int, stop: int) -> None:
    """Add points to the running (W, mean x, mean y, Sxx, Sxy, Syy), without cancellation."""
    for i in range(first, stop):
        total = stats[0] + w[i]
        dx, dy = x[i] - stats[1], y[i] - stats[2]
        part = stats[0] * w[i] / total
        stats[0] = total
        stats[1] += dx * w[i] / total
        stats[2] += dy * w[i] / total
        stats[3] += part * dx * dx
        stats[4] += part * dx * dy
        stats[5] += part * dy * dy


@compiled
def line_loss(Sxx: float, Sxy: float, Syy: float) -> float:
    """Least loss of one line on its own."""
    return Syy - Sxy * Sxy / Sxx if Sxx > 0.0 else Syy


@compiled
def suffix_floors(
    x: Array,
    y: Array,
    w: Array,
    gaps: Integers,
    ties: Array,
    sizes: Array,
    floors: Array,
    rows: tuple[int, int],
) -> None:
    """Fill ``floors[k, a]``: least loss after gap a with k untied lines; last rows first."""
    n, G, pieces = len(x), len(gaps), len(floors) - 1
    stats = np.empty(6)
    for a in range(rows[1] - 1, rows[0] - 1, -1):
        stats[:] = 0.0
        for b in range(a + 1, G):
            add_points(stats, x, y, w, gaps[b - 1] + 1, gaps[b] + 1)
            _, Sxx, Sxy, Syy = tied(stats, ties, sizes, a, b)
            loss = line_loss(Sxx, Sxy, Syy)
            for k in range(2, pieces + 1):
                floors[k, a] = min(floors[k, a], loss + floors[k - 1, b])
        add_points(stats, x, y, w, gaps[G - 1] + 1, n)
        _, Sxx, Sxy, Syy = tied(stats, ties, sizes, a, -1)
        floors[1, a] = line_loss(Sxx, Sxy, Syy)
        for k in range(2, pieces + 1):
            floors[k, a] = min(floors[k, a], floors[k - 1, a])


@compiled
def first_level(
    x: Array, y: Array, w: Array, gaps: Integers, ties: Array, sizes: Array, limit: Array
) -> tuple[Integers, Array, Array]:
    """Prefixes of one piece: how many parabolas end at each gap, the parabolas, the untied floors."""
    G = len(gaps)
    counts = np.zeros(G, dtype=np.int64)
    parabolas = np.empty((4, G))
    untied = np.full(G, np.inf)
    stats = np.zeros(6)
    done = total = np.int64(0)  # a plain 0 would compile add_points twice
    for b in range(G):
        add_points(stats, x, y, w, done, gaps[b] + 1)
        done = gaps[b] + 1
        size, Sxx, Sxy, Syy = tied(stats, ties, sizes, b, -1)
        if size < 0:
            untied[b] = line_loss(Sxx, Sxy, Syy)
            continue
        k, c, f = extend(stats[0], ties[0, b] - stats[1], stats[2], Sxx, -Sxy, Syy, 0.0, 0.0, 0.0, 0.0)
        if f < limit[b]:
            parabolas[0, total], parabolas[1, total], parabolas[2, total] = k, c, f
            parabolas[3, total] = taken(ties, sizes, size, b)
            counts[b] = 1
            total += 1
    return counts, parabolas[:, :total].copy(), untied


@compiled
def least(starts: Integers, parabolas: Array, untied: Array) -> Array:
    """Least floor of a prefix that ends at each gap, however it ends."""
    floors = untied.copy()
    for b in range(len(untied)):
        for i in range(starts[b], starts[b + 1]):
            floors[b] = min(floors[b], parabolas[2, i])
    return floors


@compiled
def _keep(
    store: Array, total: int, pieces: Array, count: int, cap: float, q: float
) -> tuple[Array, int]:
    """Append each parabola of an envelope once, except the cap, with what its segment pays."""
    if total + count > store.shape[1]:
        larger = np.empty((4, 2 * store.shape[1] + count))
        larger[:, :total] = store[:, :total]
        store = larger
    first = total
    for i in range(count):
        again = pieces[1, i] == 0.0 and pieces[3, i] == cap
        for j in range(first, total):  # one parabola may own several pieces
            same = store[0, j] == pieces[1, i] and store[1, j] == pieces[2, i]
            again = again or (same and store[2, j] == pieces[3, i])
        if not again:
            store[:3, total] = pieces[1:, i]
            store[3, total] = q
            total += 1
    return store, total


@compiled
def next_level(
    x: Array,
    y: Array,
    w: Array,
    gaps: Integers,
    ties: Array,
    sizes: Array,
    starts: Integers,
    parabolas: Array,
    untied: Array,
    floors: Array,
    limit: Array,
    rows: tuple[int, int],
) -> tuple[Integers, Array, Array]:
    """Prefixes with one piece more, for the gaps in ``rows``; what exceeds ``limit`` is left out."""
    height = rows[1] - rows[0]
    counts = np.zeros(height, dtype=np.int64)
    new_untied = np.full(height, np.inf)
    store = np.empty((4, 64 * height + 64))
    total = np.int64(0)  # a plain 0 would compile _keep twice
    envelopes, spare = np.empty((len(sizes), 4, 64)), np.empty((4, 64))
    held = np.empty(len(sizes), dtype=np.int64)
    stats = np.empty(6)
    for b in range(rows[0], rows[1]):
        cap = limit[b]
        best_untied = floors[b]  # an empty segment: a jump, which uses up a piece
        held[:] = 1
        envelopes[:, 0, 0], envelopes[:, 1:3, 0], envelopes[:, 3, 0] = -np.inf, 0.0, cap
        stats[:] = 0.0
        for a in range(b - 1, -1, -1):
            add_points(stats, x, y, w, gaps[a] + 1, gaps[a + 1] + 1)
            if floors[a] >= cap:
                continue
            size, Sxx, Sxy, Syy = tied(stats, ties, sizes, a, b)
            alone = line_loss(Sxx, Sxy, Syy)
            if floors[a] + alone >= cap:
                continue
            if size < 0:
                best_untied = min(best_untied, floors[a] + alone)
                continue
            W, reach, mean, length = stats[0], ties[0, b] - stats[1], stats[2], ties[0, b] - ties[0, a]
            paid = taken(ties, sizes, size, a)
            for i in range(starts[a], starts[a + 1] + 1):
                if i == starts[a + 1]:
                    k, c, f = 0.0, 0.0, untied[a]
                else:
                    k, c, f = parabolas[0, i], parabolas[1, i], parabolas[2, i]
                    k = softened(k, strength(ties, a, parabolas[3, i], paid))
                if f + alone >= cap:
                    continue
                k, c, f = extend(W, reach, mean, Sxx, -Sxy, Syy, k, length, c, f)
                count = held[size]
                if f >= cap or not matters(envelopes[size], count, k, c, f):
                    continue
                if 3 * count + 3 > envelopes.shape[2]:
                    bigger = np.empty((len(sizes), 4, 6 * count))
                    bigger[:, :, : envelopes.shape[2]] = envelopes
                    envelopes, spare = bigger, np.empty((4, 6 * count))
                held[size] = insert(envelopes[size], count, spare, k, c, f)
                envelopes[size, :, : held[size]] = spare[:, : held[size]]
        new_untied[b - rows[0]] = best_untied if best_untied < cap else np.inf
        first = total
        for size in range(len(sizes)):
            paid = taken(ties, sizes, size, b)
            store, total = _keep(store, total, envelopes[size], held[size], cap, paid)
        counts[b - rows[0]] = total - first
    return counts, store[:, :total].copy(), new_untied


def classes(x: Array, w: Array, most: Array) -> Array:
    """Return the least curvatures of the classes, from two points to what any tie can take."""
    pair = w[:-1] * w[1:] / (w[:-1] + w[1:]) * np.diff(x) ** 2
    low = float(np.quantile(pair, _CLASS_QUANTILE))
    high = max(2 * float(most.max()) / _TAKEN_SHARE, low * (1 + 1e-9))
    count = int(np.clip(np.ceil(np.log(high / low) / np.log(_CLASS_GROWTH)), 1, _MAX_CLASSES))
    return low * (high / low) ** (np.arange(count + 1) / count)


@compiled
def taken(ties: Array, sizes: Array, size: int, g: int) -> float:
    """Curvature that the tie at a gap takes from a segment of some class."""
    return min(0.5 * _TAKEN_SHARE * sizes[size], ties[2, g]) if size >= 0 else 0.0


@compiled
def tied(
    stats: Array, ties: Array, sizes: Array, left: int, right: int
) -> tuple[int, float, float, float]:
    """Class of a segment, and (Sxx, Sxy, Syy) less what ties take (-1: no tie, or no class)."""
    near = max(left, right)
    explained = (stats[4] - ties[3, near] * stats[3]) ** 2
    curvature = stats[3]
    if explained > 0.0:
        curvature *= ties[4, near] / (explained / stats[3] + ties[4, near])
    size = len(sizes) - 1
    while size >= 0 and sizes[size] > curvature:
        size -= 1
    if size < 0:
        return -1, stats[3], stats[4], stats[5]
    m = mr = mrr = 0.0
    for g in (left, right):
        if g >= 0:
            q = taken(ties, sizes, size, g)
            m += q
            mr += q * ties[3, g]
            mrr += q * ties[3, g] ** 2
    return size, stats[3] - m, stats[4] - mr, stats[5] - mrr


@compiled
def strength(ties: Array, g: int, q: float, q2: float) -> float:
    """Stiffness of the tie between two segments that pay q and q2 for it."""
    return 4.0 * q * q2 / ((q + q2) * ties[1, g] ** 2) if q > 0.0 and q2 > 0.0 else 0.0


@compiled
def softened(k: float, tie: float) -> float:
    """Curvature of a parabola behind a tie: two springs in a row."""
    return k * tie / (k + tie) if k > 0.0 and tie > 0.0 else 0.0
