r"""Which gaps can hold a breakpoint of a fit that is better than one known, by blocks of gaps; compiled.

A block is a run of gaps. If breakpoint j lies somewhere in block :math:`B_j`, then the points between
two blocks belong to one line, and the points inside a block that holds r breakpoints to r + 1 lines.
Without continuity these lines choose separately, so for blocks :math:`B_1 < \dots < B_m` with
:math:`r_1, \dots, r_m` breakpoints

.. math:: \mathrm{loss} \ge \sum_{j} \min_{\text{line}} (\text{points between } B_{j-1} \text{ and } B_j)
    + \sum_j \min_{r_j + 1 \text{ lines}} (\text{points inside } B_j) .

Dynamic programming over blocks from both ends gives the least such sum through each block; a block whose
sum is not below the loss known holds no breakpoint of a better fit. What remains is cut into smaller
blocks, down to single gaps. A block hides little: its inside is bounded as well.
"""

from __future__ import annotations

import numpy as np

from pindown.affine import Array, Integers
from pindown.learn.segmented._compiled import compiled
from pindown.learn.segmented._compiled.parabolas import join, moments_between
from pindown.learn.segmented._compiled.relaxation import line_loss


@compiled
def _loss(stats: Array) -> float:
    return max(line_loss(stats[3], stats[4], stats[5]), 0.0)


@compiled
def inside_losses(
    blocks: Array, low: Integers, high: Integers, inside: Array, rows: tuple[int, int]
) -> None:
    """Fill ``inside[r, i]``: least loss of the points inside block i with r breakpoints among them."""
    breaks = len(inside) - 1
    points = blocks[len(blocks) // 2 :]
    stats = np.empty(6)
    for i in range(rows[0], rows[1]):
        size = high[i] - low[i]
        best = np.zeros((breaks + 1, size + 1))  # of the first points of the block
        for stop in range(1, size + 1):
            best[:, stop] = np.inf
            stats[:] = 0.0
            for first in range(stop - 1, -1, -1):
                join(stats, points[low[i] + 1 + first])
                loss = _loss(stats)
                if first == 0:
                    best[0, stop] = loss
                for r in range(1, breaks + 1):
                    best[r, stop] = min(best[r, stop], best[r - 1, first] + loss)
            for r in range(1, breaks + 1):
                best[r, stop] = min(best[r, stop], best[r - 1, stop])
        inside[:, i] = best[:, size]


@compiled
def runs(blocks: Array, low: Integers, high: Integers, n: int) -> tuple[Array, Array]:
    """Moments of the points after each block: up to the beginning of the next one, and to its end.

    After the last block both run to the last point.
    """
    B = len(low)
    short, long = np.empty((B, 6)), np.empty((B, 6))
    for i in range(B):
        moments_between(blocks, high[i] + 1, low[i + 1] + 1 if i + 1 < B else n, short[i])
        moments_between(blocks, high[i] + 1, high[i + 1] + 1 if i + 1 < B else n, long[i])
    return short, long


@compiled
def forwards(
    blocks: Array,
    low: Integers,
    short: Array,
    long: Array,
    inside: Array,
    ceiling: float,
    prefix: Array,
    rows: tuple[int, int],
) -> None:
    """Fill ``prefix[k, i]``: points up to block i's end, k breakpoints, at least one of them in it."""
    breaks = len(prefix) - 1
    stats = np.empty(6)
    before = np.empty(breaks + 1)
    for i in range(rows[0], rows[1]):
        before[:] = np.inf
        moments_between(blocks, 0, low[i] + 1, stats)
        before[0] = _loss(stats)
        for a in range(i - 1, -1, -1):
            if a == i - 1:
                stats[:] = short[a]
            else:
                join(stats, long[a])
            loss = _loss(stats)
            if loss >= ceiling:  # more points only add to it
                break
            for k in range(1, breaks):
                before[k] = min(before[k], prefix[k, a] + loss)
        for k in range(1, breaks + 1):
            best = np.inf
            for r in range(1, k + 1):
                best = min(best, before[k - r] + inside[r, i])
            prefix[k, i] = best


@compiled
def backwards(
    blocks: Array,
    high: Integers,
    n: int,
    short: Array,
    long: Array,
    inside: Array,
    ceiling: float,
    suffix: Array,
    rows: tuple[int, int],
) -> None:
    """Fill ``suffix[k, i]``: points after block i, k breakpoints in later blocks; last rows first."""
    B, breaks = len(high), len(suffix) - 1
    passed, stats = np.empty(6), np.empty(6)
    for i in range(rows[1] - 1, rows[0] - 1, -1):
        moments_between(blocks, high[i] + 1, n, stats)
        suffix[0, i] = _loss(stats)
        suffix[1:, i] = np.inf
        passed[:] = 0.0
        for b in range(i + 1, B):
            if b > i + 1:
                join(passed, long[b - 2])
            stats[:] = passed
            join(stats, short[b - 1])
            loss = _loss(stats)
            if loss >= ceiling:
                break
            for k in range(1, breaks):
                for r in range(1, k + 1):
                    suffix[k, i] = min(suffix[k, i], loss + inside[r, b] + suffix[k - r, b])
