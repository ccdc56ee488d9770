r"""A lower bound that keeps continuity almost: functional dynamic programming over gaps, compiled.

Two lines with slopes a, b that meet within a gap of width h around c satisfy, for every :math:`r` and
every :math:`\lambda \ge 0`,

.. math:: \lambda (L(c) - R(c))^2 - \tfrac{\lambda h^2}{2} \bigl((a - r)^2 + (b - r)^2\bigr) \le 0 ,

since :math:`|L(c) - R(c)| \le |a - b| h / 2`. Adding the left side to the loss gives a lower bound that
couples neighbouring lines only through one number, so the best prefix is a lower envelope of parabolas
in
the value of its last line at c. A segment whose own curvature in the slope does not outweigh the
subtracted term is *short*: the ties at its two ends are dropped (as with :math:`\lambda = 0`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.learn.segmented.quadratics import compiled, extend, insert, matters

Indices = NDArray[np.int64]

# A segment is long if the subtracted term takes at most this fraction of its curvature.
_TAKEN = 0.5


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
def tied(stats: Array, ties: Array, left: int, right: int) -> tuple[bool, float, float, float]:
    """Whether a segment is long, and (Sxx, Sxy, Syy) less the terms of its ties (-1: no tie there)."""
    m = mr = mrr = 0.0
    for g in (left, right):
        if g >= 0:
            m += ties[2, g]
            mr += ties[2, g] * ties[3, g]
            mrr += ties[2, g] * ties[3, g] ** 2
    if stats[3] <= 0.0 or m > _TAKEN * stats[3]:
        return False, stats[3], stats[4], stats[5]
    return True, stats[3] - m, stats[4] - mr, stats[5] - mrr


@compiled
def line_loss(Sxx: float, Sxy: float, Syy: float) -> float:
    """Least loss of one line on its own."""
    return Syy - Sxy * Sxy / Sxx if Sxx > 0.0 else Syy


@compiled
def suffix_floors(x: Array, y: Array, w: Array, gaps: Indices, ties: Array, pieces: int) -> Array:
    """Least loss of the points after each gap with 1, 2, ... untied lines: a bound for every suffix."""
    n, G = len(x), len(gaps)
    floors = np.full((pieces + 1, G), np.inf)
    stats = np.empty(6)
    for a in range(G - 1, -1, -1):
        stats[:] = 0.0
        for b in range(a + 1, G):
            add_points(stats, x, y, w, gaps[b - 1] + 1, gaps[b] + 1)
            _, Sxx, Sxy, Syy = tied(stats, ties, a, b)
            loss = line_loss(Sxx, Sxy, Syy)
            for k in range(2, pieces + 1):
                floors[k, a] = min(floors[k, a], loss + floors[k - 1, b])
        add_points(stats, x, y, w, gaps[G - 1] + 1, n)
        _, Sxx, Sxy, Syy = tied(stats, ties, a, -1)
        floors[1, a] = line_loss(Sxx, Sxy, Syy)
        for k in range(2, pieces + 1):
            floors[k, a] = min(floors[k, a], floors[k - 1, a])
    return floors


@compiled
def first_level(
    x: Array, y: Array, w: Array, gaps: Indices, ties: Array, limit: Array
) -> tuple[Indices, Array, Array]:
    """Prefixes of one piece: how many parabolas end at each gap, the parabolas, the short floors."""
    G = len(gaps)
    counts = np.zeros(G, dtype=np.int64)
    parabolas = np.empty((3, G))
    short = np.full(G, np.inf)
    stats = np.zeros(6)
    done = total = 0
    for b in range(G):
        add_points(stats, x, y, w, done, gaps[b] + 1)
        done = gaps[b] + 1
        long, Sxx, Sxy, Syy = tied(stats, ties, b, -1)
        if not long:
            short[b] = line_loss(Sxx, Sxy, Syy)
            continue
        k, c, f = extend(stats[0], ties[0, b] - stats[1], stats[2], Sxx, -Sxy, Syy, 0.0, 0.0, 0.0, 0.0)
        if f < limit[b]:
            parabolas[0, total], parabolas[1, total], parabolas[2, total] = k, c, f
            counts[b] = 1
            total += 1
    return counts, parabolas[:, :total].copy(), short


@compiled
def least(starts: Indices, parabolas: Array, short: Array) -> Array:
    """Least floor of a prefix that ends at each gap, however it ends."""
    floors = short.copy()
    for b in range(len(short)):
        for i in range(starts[b], starts[b + 1]):
            floors[b] = min(floors[b], parabolas[2, i])
    return floors


@compiled
def _keep(store: Array, total: int, pieces: Array, count: int, cap: float) -> tuple[Array, int]:
    """Append each parabola of an envelope once, except the cap."""
    if total + count > store.shape[1]:
        larger = np.empty((3, 2 * store.shape[1] + count))
        larger[:, :total] = store[:, :total]
        store = larger
    first = total
    for i in range(count):
        again = pieces[1, i] == 0.0 and pieces[3, i] == cap
        for j in range(first, total):  # one parabola may own several pieces
            again = again or np.all(store[:, j] == pieces[1:, i])
        if not again:
            store[:, total] = pieces[1:, i]
            total += 1
    return store, total


@compiled
def next_level(
    x: Array,
    y: Array,
    w: Array,
    gaps: Indices,
    ties: Array,
    starts: Indices,
    parabolas: Array,
    short: Array,
    floors: Array,
    limit: Array,
    rows: tuple[int, int],
) -> tuple[Indices, Array, Array]:
    """Prefixes with one piece more, for the gaps in ``rows``; what exceeds ``limit`` is left out."""
    size = rows[1] - rows[0]
    counts = np.zeros(size, dtype=np.int64)
    new_short = np.full(size, np.inf)
    store = np.empty((3, 64 * size + 64))
    total = 0
    pieces, spare = np.empty((4, 64)), np.empty((4, 64))
    stats = np.empty(6)
    for b in range(rows[0], rows[1]):
        cap = limit[b]
        best_short = floors[b]  # an empty segment: a jump, which uses up a piece
        pieces[0, 0], pieces[1, 0], pieces[2, 0], pieces[3, 0] = -np.inf, 0.0, 0.0, cap
        count = 1
        stats[:] = 0.0
        for a in range(b - 1, -1, -1):
            add_points(stats, x, y, w, gaps[a] + 1, gaps[a + 1] + 1)
            if floors[a] >= cap:
                continue
            long, Sxx, Sxy, Syy = tied(stats, ties, a, b)
            alone = line_loss(Sxx, Sxy, Syy)
            if floors[a] + alone >= cap:
                continue
            if not long:
                best_short = min(best_short, floors[a] + alone)
                continue
            W, reach, mean, length = stats[0], ties[0, b] - stats[1], stats[2], ties[0, b] - ties[0, a]
            for i in range(starts[a], starts[a + 1] + 1):
                if i == starts[a + 1]:
                    k, c, f = 0.0, 0.0, short[a]
                else:
                    k, c, f = parabolas[0, i], parabolas[1, i], parabolas[2, i]
                    k = k * ties[1, a] / (k + ties[1, a]) if k > 0.0 else 0.0
                if f + alone >= cap:
                    continue
                k, c, f = extend(W, reach, mean, Sxx, -Sxy, Syy, k, length, c, f)
                if f >= cap or not matters(pieces, count, k, c, f):
                    continue
                if 3 * count + 3 > pieces.shape[1]:
                    bigger = np.empty((4, 6 * count))
                    bigger[:, :count] = pieces[:, :count]
                    pieces, spare = bigger, np.empty((4, 6 * count))
                count = insert(pieces, count, spare, k, c, f)
                pieces, spare = spare, pieces
        new_short[b - rows[0]] = best_short if best_short < cap else np.inf
        first = total
        store, total = _keep(store, total, pieces, count, cap)
        counts[b - rows[0]] = total - first
    return counts, store[:, :total].copy(), new_short
