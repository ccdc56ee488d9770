"""Good fits quickly: breakpoints move one at a time, or jump, while the loss falls; compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.learn.segmented.joints import best_in_gaps, fit_with_knots, segment_stats
from pindown.learn.segmented.quadratics import compiled

Indices = NDArray[np.int64]

# Places that a breakpoint may jump to, and how many of the best jumps are followed downhill.
_PLACES = 96
_FOLLOWED = 12
# Points that a fit misses by most, around which a spike is tried.
_OUTLIERS = 12


@compiled
def improve(
    x: Array, blocks: Array, gaps: Indices, best: float, mask: int
) -> tuple[float, int, Indices]:
    """Move one breakpoint at a time, by 1, 2, 4, ... gaps, while the loss falls."""
    J, last = len(gaps), len(x) - 2
    gaps = gaps.copy()
    moved = True
    while moved:
        moved = False
        for j in range(J):
            for sign in (-1, 1):
                step = 1
                while step <= last:
                    trial = gaps.copy()
                    trial[j] = min(max(trial[j] + sign * step, 0), last)
                    trial = np.sort(trial)
                    loss, found = best_in_gaps(x, blocks, trial, best)
                    if found >= 0:
                        best, mask, gaps, moved = loss, found, trial, True
                        step *= 2
                    elif step > 64 and step > last // 8:
                        break
                    else:
                        step *= 2
    return best, mask, gaps


@compiled
def jump(x: Array, blocks: Array, gaps: Indices, best: float, mask: int) -> tuple[float, int, Indices]:
    """Let one breakpoint jump anywhere or three surround an outlier, and improve; while it helps."""
    last = len(x) - 2
    while True:
        trials = np.concatenate((_elsewhere(gaps, last), _spikes(x, blocks, gaps, mask)))
        losses = np.empty(len(trials))
        for i in range(len(trials)):
            losses[i], _ = best_in_gaps(x, blocks, trials[i], np.inf)
        start = best
        for i in np.argsort(losses)[:_FOLLOWED]:
            loss, found = best_in_gaps(x, blocks, trials[i], np.inf)
            if found >= 0:
                loss, found, trial = improve(x, blocks, trials[i], loss, found)
                if loss < best:
                    best, mask, gaps = loss, found, trial
        if best >= start:
            return best, mask, gaps


@compiled
def _elsewhere(gaps: Indices, last: int) -> Indices:
    """Tuples with one breakpoint moved to one of many places."""
    J = len(gaps)
    trials = np.empty((J * _PLACES, J), dtype=np.int64)
    for row in range(J * _PLACES):
        trials[row] = gaps
        trials[row, row // _PLACES] = row % _PLACES * last // (_PLACES - 1)
        trials[row] = np.sort(trials[row])
    return trials


@compiled
def _spikes(x: Array, blocks: Array, gaps: Indices, mask: int) -> Indices:
    """Tuples in which three breakpoints let the function pass through one far point and come back.

    A piece of that point alone and one without data take it out of the loss.
    """
    J, n = len(gaps), len(x)
    if J < 3:
        return np.empty((0, J), dtype=np.int64)
    far = _farthest(x, blocks, gaps, mask)
    trials = np.empty((len(far) * J * (J - 1) * (J - 2) // 6, J), dtype=np.int64)
    row = 0
    for i in far:
        for a in range(J):
            for b in range(a + 1, J):
                for c in range(b + 1, J):
                    trials[row] = gaps
                    trials[row, a] = max(i - 1, 0)
                    trials[row, b] = min(i, n - 2)
                    trials[row, c] = min(i, n - 2)
                    trials[row] = np.sort(trials[row])
                    row += 1
    return trials


@compiled
def _farthest(x: Array, blocks: Array, gaps: Indices, mask: int) -> Indices:
    """The points that a fit misses by most."""
    n = len(x)
    stats = segment_stats(blocks, n, gaps)
    lines = np.zeros((len(stats), 2))
    fit_with_knots(x, gaps, stats, mask, lines)
    missed = np.empty(n)
    points = len(blocks) // 2  # rows of single points
    piece = 0
    for i in range(n):
        while piece < len(gaps) and i > gaps[piece]:
            piece += 1
        value = lines[piece, 0]
        if not np.isnan(lines[piece, 1]):
            value += lines[piece, 1] * (x[i] - stats[piece, 1])
        missed[i] = np.sqrt(blocks[points + i, 0]) * abs(blocks[points + i, 2] - value)
    return np.argsort(-missed)[:_OUTLIERS]
