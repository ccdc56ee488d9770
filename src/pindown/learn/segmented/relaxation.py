r"""A lower bound that keeps continuity almost: functional dynamic programming over gaps, compiled.

Lines of neighbouring segments are tied (:mod:`~pindown.learn.segmented.ties`) instead of made to meet.
A tie couples them only through one number, so the best prefix is a lower envelope of parabolas in the
value of its last line at the centre of the gap: one envelope per class of its last segment.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.learn.segmented.quadratics import compiled, extend, insert, matters
from pindown.learn.segmented.ties import softened, strength, taken, tied

Indices = NDArray[np.int64]


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
    x: Array, y: Array, w: Array, gaps: Indices, ties: Array, sizes: Array, pieces: int
) -> Array:
    """Least loss of the points after each gap with 1, 2, ... untied lines: a bound for every suffix."""
    n, G = len(x), len(gaps)
    floors = np.full((pieces + 1, G), np.inf)
    stats = np.empty(6)
    for a in range(G - 1, -1, -1):
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
    return floors


@compiled
def first_level(
    x: Array, y: Array, w: Array, gaps: Indices, ties: Array, sizes: Array, limit: Array
) -> tuple[Indices, Array, Array]:
    """Prefixes of one piece: how many parabolas end at each gap, the parabolas, the untied floors."""
    G = len(gaps)
    counts = np.zeros(G, dtype=np.int64)
    parabolas = np.empty((4, G))
    untied = np.full(G, np.inf)
    stats = np.zeros(6)
    done = total = 0
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
def least(starts: Indices, parabolas: Array, untied: Array) -> Array:
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
            again = again or np.all(store[:3, j] == pieces[1:, i])
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
    gaps: Indices,
    ties: Array,
    sizes: Array,
    starts: Indices,
    parabolas: Array,
    untied: Array,
    floors: Array,
    limit: Array,
    rows: tuple[int, int],
) -> tuple[Indices, Array, Array]:
    """Prefixes with one piece more, for the gaps in ``rows``; what exceeds ``limit`` is left out."""
    height = rows[1] - rows[0]
    counts = np.zeros(height, dtype=np.int64)
    new_untied = np.full(height, np.inf)
    store = np.empty((4, 64 * height + 64))
    total = 0
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
