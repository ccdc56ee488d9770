r"""Best squared loss for breakpoints in given gaps, and good gaps quickly; compiled.

Between neighbouring lines a *joint* is in one of two states at an optimum: either the lines cross
strictly inside the gap, and then each side is optimal as if the joint were not there; or the breakpoint
is at a data point (a *knot*). A choice of knots splits the line into blocks, each an ordinary
least-squares fit with fixed knots. A knot at :math:`x_g` is filed under the gap after it, so each is
tried once. Choosing more knots never lowers the loss, which prunes the choice.

A gap that occurs twice holds a piece without data: the function may jump there, and no joint is left to
check. For an upper bound breakpoints move one at a time, or jump, while the loss falls.
"""

from __future__ import annotations

import numpy as np

from pindown.affine import Array, Integers
from pindown.learn.segmented._compiled import compiled
from pindown.learn.segmented._compiled.parabolas import extend, moments_between

# Lines whose distance at an end of the gap is below this (y is scaled to order one) meet there.
_MEETS = 1e-12
# Places that a breakpoint may jump to, and how many of the best jumps are followed downhill.
_PLACES = 96
_FOLLOWED = 12
# Points that a fit misses by most, around which a spike is tried.
_OUTLIERS = 12


@compiled
def segment_stats(blocks: Array, n: int, gaps: Integers) -> Array:
    """(W, mean x, mean y, Sxx, Sxy, Syy) of the points between consecutive gaps."""
    K = len(gaps) + 1
    stats = np.empty((K, 6))
    for s in range(K):
        first = 0 if s == 0 else gaps[s - 1] + 1
        moments_between(blocks, first, n if s == K - 1 else gaps[s] + 1, stats[s])
    return stats


@compiled
def fit_with_knots(x: Array, gaps: Integers, stats: Array, mask: int, lines: Array) -> float:
    """Least loss when the joints in ``mask`` are knots and the others are dropped.

    Writes (value at the centre of mass, slope) of every piece to ``lines``; a slope that does not matter
    is NaN.
    """
    K = len(stats)
    carried = np.zeros((K, 3))  # parabola that enters each segment at its left knot
    loss = 0.0
    for s in range(K):
        W, mx, my, Sxx, Sxy, Syy = stats[s]
        from_knot = s > 0 and (mask >> (s - 1)) & 1
        to_knot = s < K - 1 and (mask >> s) & 1
        k, c, f = carried[s]
        left = x[gaps[s - 1]] if from_knot else mx
        if to_knot:
            right = x[gaps[s]]
            length = right - left if from_knot else 0.0
            k, c, f = extend(W, right - mx, my, Sxx, -Sxy, Syy, k, length, c, f)
            carried[s + 1, 0], carried[s + 1, 1], carried[s + 1, 2] = k, c, f
            continue
        lines[s, 0] = my
        lines[s, 1] = Sxy / Sxx if Sxx > 0.0 else np.nan
        if not from_knot:
            loss += Syy - (Sxy * Sxy / Sxx if Sxx > 0.0 else 0.0)
            continue
        k2, c2, f2 = extend(W, mx - left, my, Sxx, Sxy, Syy, 0.0, 0.0, 0.0, 0.0)
        z = (k * c + k2 * c2) / (k + k2) if k + k2 > 0.0 else c
        loss += f + f2 + k * (z - c) ** 2 + k2 * (z - c2) ** 2
        _block_lines(x, gaps, stats, mask, carried, s, z, lines)
    return loss


@compiled
def _block_lines(
    x: Array, gaps: Integers, stats: Array, mask: int, carried: Array, last: int, z: float, lines: Array
) -> None:
    """Lines of the block whose last segment starts at a knot of value z, from right to left."""
    W, mx, my, Sxx, Sxy = stats[last, :5]
    reach = mx - x[gaps[last - 1]]
    P = W * reach * reach + Sxx
    slope = (Sxy - W * reach * (z - my)) / P if P > 0.0 else np.nan
    lines[last, 0] = z + slope * reach
    lines[last, 1] = slope
    s = last - 1
    while True:
        W, mx, my, Sxx, Sxy = stats[s, :5]
        right = x[gaps[s]]
        from_knot = s > 0 and (mask >> (s - 1)) & 1
        k, c = carried[s, 0], carried[s, 1]
        length = right - x[gaps[s - 1]] if from_knot else 0.0
        reach = right - mx
        P = W * reach * reach + Sxx + k * length * length
        slope = (W * reach * (z - my) + Sxy + k * length * (z - c)) / P if P > 0.0 else np.nan
        lines[s, 0] = z - slope * reach if P > 0.0 else z
        lines[s, 1] = slope
        if not from_knot:
            return
        z -= slope * length
        s -= 1


@compiled
def is_jump(gaps: Integers, joint: int) -> bool:
    """Whether a joint borders a piece without data."""
    g = gaps[joint]
    return (joint > 0 and gaps[joint - 1] == g) or (joint + 1 < len(gaps) and gaps[joint + 1] == g)


@compiled
def crosses(x: Array, gaps: Integers, stats: Array, lines: Array, joint: int) -> bool:
    """Whether the lines on both sides of a joint meet within its closed gap."""
    left, right = lines[joint], lines[joint + 1]
    if np.isnan(left[1]) or np.isnan(right[1]):
        return False
    g = gaps[joint]
    apart = np.empty(2)
    for e in range(2):
        t = x[g + e]
        on_left = left[0] + left[1] * (t - stats[joint, 1])
        apart[e] = on_left - right[0] - right[1] * (t - stats[joint + 1, 1])
    return apart[0] * apart[1] <= 0.0 or min(abs(apart[0]), abs(apart[1])) <= _MEETS


@compiled
def best_in_gaps(x: Array, blocks: Array, gaps: Integers, cap: float) -> tuple[float, int]:
    """Least loss below ``cap`` with a breakpoint in each listed gap, and its knots (-1: none)."""
    K = len(gaps) + 1
    stats = segment_stats(blocks, len(x), gaps)
    lines = np.zeros((K, 2))
    best, best_mask = cap, -1
    masks = np.zeros(K * K + 2, dtype=np.int64)
    froms = np.zeros(K * K + 2, dtype=np.int64)
    height = 1
    while height:
        height -= 1
        mask, first = masks[height], froms[height]
        loss = fit_with_knots(x, gaps, stats, mask, lines)
        if loss >= best:
            continue
        fits = True
        for joint in range(K - 1):
            if not (mask >> joint) & 1 and not is_jump(gaps, joint):
                fits = fits and crosses(x, gaps, stats, lines, joint)
        if fits:
            best, best_mask = loss, mask
            continue
        for joint in range(first, K - 1):
            if not is_jump(gaps, joint):
                masks[height] = mask | (1 << joint)
                froms[height] = joint + 1
                height += 1
    return best, best_mask


@compiled
def improve(
    x: Array, blocks: Array, gaps: Integers, best: float, mask: int
) -> tuple[float, int, Integers]:
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
                    _sort(trial)
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
def jump(
    x: Array, blocks: Array, gaps: Integers, best: float, mask: int
) -> tuple[bool, float, int, Integers]:
    """Let one breakpoint jump anywhere or three surround an outlier, and improve: did it help?"""
    last = len(x) - 2
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
    return best < start, best, mask, gaps


@compiled
def _elsewhere(gaps: Integers, last: int) -> Integers:
    """Tuples with one breakpoint moved to one of many places."""
    J = len(gaps)
    trials = np.empty((J * _PLACES, J), dtype=np.int64)
    for row in range(J * _PLACES):
        trials[row] = gaps
        trials[row, row // _PLACES] = row % _PLACES * last // (_PLACES - 1)
        _sort(trials[row])
    return trials


@compiled
def _sort(gaps: Integers) -> None:
    """Sort a few numbers in place; NumPy's sort takes seconds to compile."""
    for i in range(1, len(gaps)):
        value, j = gaps[i], i
        while j > 0 and gaps[j - 1] > value:
            gaps[j] = gaps[j - 1]
            j -= 1
        gaps[j] = value


@compiled
def _spikes(x: Array, blocks: Array, gaps: Integers, mask: int) -> Integers:
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
                    _sort(trials[row])
                    row += 1
    return trials


@compiled
def _farthest(x: Array, blocks: Array, gaps: Integers, mask: int) -> Integers:
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
