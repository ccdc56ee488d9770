"""Zero crossings of affine functions between consecutive points of many segments.

Row p of ``Z`` holds what enters a layer's ReLUs at the p-th point; between p and p + 1 it is affine if
``joined[p]``, and the two points belong to different segments if not.
"""

from __future__ import annotations

from pindown.geometry._compiled import allocating, entry


@allocating
def crosses(before, after):
    """Return whether the sign changes strictly."""
    return (before < 0.0 < after) or (after < 0.0 < before)


@entry
def snap(Z, T, joined, near, run, resolution, first, counts):
    """Set to zero what rounding cannot tell from it, then count the crossings of every interval.

    Values up to ``near[run[p], i]`` are zero, and so are values at a point so near to a crossing that
    the two have the same time to ``resolution``. Rows below ``first`` are settled already.
    """
    points, units = Z.shape
    for p in range(first, points):
        for i in range(units):
            if abs(Z[p, i]) <= near[run[p], i]:
                Z[p, i] = 0.0
    for p in range(points - 1):
        if joined[p]:
            for i in range(units):
                before, after = Z[p, i], Z[p + 1, i]
                if crosses(before, after):
                    gone = before / (before - after) * (T[p + 1] - T[p])
                    if T[p + 1] - T[p] - gone <= resolution:
                        Z[p + 1, i] = 0.0
                    elif gone <= resolution and p >= first:
                        Z[p, i] = 0.0
    for p in range(points - 1):
        total = 0
        if joined[p]:
            for i in range(units):
                if crosses(Z[p, i], Z[p + 1, i]):
                    total += 1
        counts[p] = total


@entry
def find_crossings(Z, T, joined, near, run, resolution, starts, shares, slack, units, knots):
    """List the crossings of each interval in order of time, those at one time together.

    Crossing c of interval p, ``starts[p] <= c < starts[p + 1]``, is of unit ``units[c]`` at the share
    ``shares[c]`` of the interval; ``knots[c]`` numbers the distinct times within the interval from 0.
    Two crossings are at one time if rounding cannot tell them apart; the steeper one says when.
    """
    for p in range(Z.shape[0] - 1):
        if not joined[p] or starts[p] == starts[p + 1]:
            continue
        span = T[p + 1] - T[p]
        c = starts[p]
        for i in range(Z.shape[1]):
            before, after = Z[p, i], Z[p + 1, i]
            if crosses(before, after):
                share = before / (before - after)
                error = max(resolution / span, near[run[p], i] / abs(before - after))
                place = c
                while place > starts[p] and shares[place - 1] > share:
                    shares[place], slack[place], units[place] = (
                        shares[place - 1],
                        slack[place - 1],
                        units[place - 1],
                    )
                    place -= 1
                shares[place], slack[place], units[place] = share, error, i
                c += 1
        merge_times(shares, slack, knots, starts[p], starts[p + 1])


@allocating
def merge_times(shares, slack, knots, start, stop):
    """Give crossings that rounding cannot tell apart one time, and number the times."""
    head = start
    number = 0
    for c in range(start, stop):
        if c > start and shares[c] - shares[head] > max(slack[c], slack[head]):
            level(shares, head, c)
            head = c
            number += 1
        elif slack[c] < slack[head]:
            shares[head], slack[head] = shares[c], slack[c]
        knots[c] = number
    level(shares, head, stop)


@allocating
def level(shares, start, stop):
    """Give all crossings of a group the time of its first entry."""
    for c in range(start + 1, stop):
        shares[c] = shares[start]


@entry
def fill(Z, starts, shares, units, knots, origin, first_crossing, begin, end, out):
    """Write ReLU values at points ``begin .. end`` of the refined list to the rows of ``out``.

    Refined point r is old point ``origin[r]`` if ``first_crossing[r] < 0``; otherwise it lies in the
    interval that starts there, at the time of that crossing.
    """
    for r in range(begin, end):
        p, c = origin[r], first_crossing[r]
        row = out[r - begin]
        if c < 0:
            for i in range(Z.shape[1]):
                row[i] = max(Z[p, i], 0.0)
            continue
        share = shares[c]
        for i in range(Z.shape[1]):
            row[i] = max(Z[p, i] + share * (Z[p + 1, i] - Z[p, i]), 0.0)
        while c < starts[p + 1] and knots[c] == knots[first_crossing[r]]:
            row[units[c]] = 0.0
            c += 1


@entry
def count_turns(Z, joined, left, has_left, counts):
    """Count at each point the units that are zero there and have different states on the two sides."""
    for p in range(Z.shape[0]):
        counts[p] = 0
        before = joined[p - 1] if p > 0 else has_left
        if not before or p == Z.shape[0] - 1 or not joined[p]:
            continue
        previous = Z[p - 1] if p > 0 else left
        for i in range(Z.shape[1]):
            if Z[p, i] == 0.0 and (previous[i] >= 0.0) != (Z[p + 1, i] >= 0.0):
                counts[p] += 1


@entry
def list_turns(Z, counts, left, points, units):
    """List what :func:`count_turns` counted."""
    c = 0
    for p in range(Z.shape[0]):
        if counts[p] > 0:
            previous = Z[p - 1] if p > 0 else left
            for i in range(Z.shape[1]):
                if Z[p, i] == 0.0 and (previous[i] >= 0.0) != (Z[p + 1, i] >= 0.0):
                    points[c], units[c] = p, i
                    c += 1
