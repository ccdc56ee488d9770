r"""Convex polygons: cutting one in two, and counting what many lines make of it.

A polygon is a counter-clockwise run of vertices ``(x, y, error)``; ``sides[k, 0]`` names the side
from vertex k to the next. A line splits it iff it is positive at one vertex and negative at another,
so lines that only touch are no events at all.
"""

from __future__ import annotations

import numpy as np

from pindown.geometry._compiled import copy, inner
from pindown.geometry._compiled.arrays import POINT, SIGN
from pindown.geometry._compiled.exact_residues import USED, new_vertex, put_facet
from pindown.geometry._compiled.layer_maps import VANISHES, sign_at
from pindown.geometry._compiled.vertex_errors import ULP, edge_error, vertex_error
from pindown.geometry._compiled.zero_proofs import OPEN, ZERO, at_vertex

UNDECIDED = -1

INSIDE, ON_LINE, BEYOND, DONE = range(4)  # walking around a polygon that a line crosses


@inner
def split_polygon(net, work, certified, label, row, bound, coords, sides, n, halves):
    """Cut by the line ``row`` (the zero set named ``label``); return whether every sign was certain."""
    values, counts = halves.values, halves.counts
    signs, certain = halves.marks[SIGN], True
    norm = abs(row[0]) + abs(row[1])
    for k in range(n):
        value = row[0] * coords[k, 0] + row[1] * coords[k, 1] + row[2]
        zero = bound + norm * coords[k, 2]
        values[k] = value
        signs[k] = 1 if value > zero else (-1 if value < -zero else 0)
        if certified is not None and signs[k] == 0:
            certain = False
    if certified is not None and not certain:
        for k in range(n):
            if signs[k] == 0 and sign_at(net, work, certified, label, row, coords[k]) != VANISHES:
                return False
    counts[0, 0] = counts[1, 0] = 0
    for k in range(n):
        following = k + 1 if k + 1 < n else 0
        here, there, side = signs[k], signs[following], sides[k, 0]
        if here == 0 == there:
            return False  # no line that holds a side cuts the polygon
        if here <= 0:
            _put(halves, 0, coords[k], label if here == 0 < there else side)
        if here >= 0:
            _put(halves, 1, coords[k], label if here == 0 > there else side)
        if here * there < 0:
            t = values[k] / (values[k] - values[following])
            x = coords[k, 0] + t * (coords[following, 0] - coords[k, 0])
            y = coords[k, 1] + t * (coords[following, 1] - coords[k, 1])
            new = work.found[0]
            new[0], new[1], new[2] = x, y, 0.0
            if certified is not None:
                new[2] = edge_error(
                    2, work, coords[k], coords[following], values[k], values[following], norm, bound
                )
                if new[2] == np.inf:
                    new[2] = crossing_error(net, work, side, label, x, y)
                new[3] = crossing(certified, side, label)
            # Coming from inside a half, its boundary turns into the cut; going in, it follows the side.
            _put(halves, 0, new, label if here < 0 else side)
            _put(halves, 1, new, label if here > 0 else side)
    counts[0, 1], counts[1, 1] = counts[0, 0], counts[1, 0]
    return True


@inner
def crossing_error(net, work, label, other, x, y):
    """Bound the error of the computed crossing of two sides."""
    point = work.vectors[POINT]
    point[0], point[1] = x, y
    work.labels[0], work.labels[1] = label, other
    return vertex_error(net, work, point)


@inner
def crossing(ties, label, other):
    """Number the crossing of two lines."""
    k = new_vertex(ties)
    put_facet(ties, k, label, True)
    put_facet(ties, k, other, True)
    return k


@inner
def _put(halves, half, vertex, label):
    k = halves.counts[half, 0]
    for c in range(halves.coords.shape[2]):
        halves.coords[half, k, c] = vertex[c]
    halves.edges[half, k, 0] = label
    halves.counts[half, 0] = k + 1


@inner
def count_polygon(net, work, certified, level, coords, sides, n, n_lines):
    r"""Count the cells that the units ``work.chosen`` cut a polygon into; -1 if a sign is uncertain.

    One line at a time: a new line adds one cell for every piece that the earlier lines cut it into,

    .. math::
        r = 1 + \sum_j \bigl(1 + \#\{\text{distinct points of line } j \text{ with lines } i < j
            \text{ inside the polygon}\}\bigr),

    and a line that coincides with an earlier one adds nothing. No polygon is built.
    """
    first, width = net.starts[level], net.widths[level]
    maps, found, total = work.maps[3 * first :], work.found, 1
    ends = found[len(found) - 2 :]
    numbered = 0 if certified is None else certified.state[USED]
    for jj in range(n_lines):
        if certified is not None:
            certified.state[USED] = numbered
        if not _chord(net, work, certified, level, work.chosen[jj], coords, sides, n, ends):
            return UNDECIDED
        x0, y0, e0 = ends[0, 0], ends[0, 1], ends[0, 2]
        x1, y1, e1 = ends[1, 0], ends[1, 1], ends[1, 2]
        n_found, duplicate = 0, False
        work.labels[0] = first + work.chosen[jj]
        for ii in range(jj):
            i = work.chosen[ii]
            a, b, c, bound = maps[i], maps[width + i], maps[2 * width + i], work.bounds[first + i]
            start, end = a * x0 + b * y0 + c, a * x1 + b * y1 + c
            norm = abs(a) + abs(b)
            zero0, zero1 = bound + norm * e0, bound + norm * e1
            if abs(start) <= zero0 or abs(end) <= zero1:
                if certified is not None:
                    for k in range(2):
                        value, zero = (start, zero0) if k == 0 else (end, zero1)
                        if abs(value) <= zero and (
                            at_vertex(
                                net, work, certified, int(ends[k, 3]), first + i, abs(value) + zero
                            )
                            != ZERO
                        ):
                            return UNDECIDED
                if abs(start) <= zero0 and abs(end) <= zero1:
                    duplicate = True
                    break
            elif (start > 0.0) != (end > 0.0):  # their product may underflow
                found[n_found, 0] = start / (start - end)
                found[n_found, 1] = max(zero0, zero1) / abs(start - end) + 4 * ULP
                found[n_found, 2], found[n_found, 3] = first + i, abs(start - end)
                n_found += 1
        if not duplicate:
            distinct = count_distinct(net, work, certified, n_found)
            if distinct < 0:
                return UNDECIDED
            total += 1 + distinct
    return total


@inner
def count_distinct(net, work, certified, n):
    """Count the points at which n lines cross a segment; -1 if that is uncertain.

    Row k of ``work.found`` holds where on the segment, from 0 to 1, line k crosses it, how far that can
    be off, the line's label, and the difference of its values at the two ends. Points that differ by
    no more than their errors are one, if not certified; else they are compared as exact points, on
    the hyperplanes ``work.labels`` that hold the segment.
    """
    found, distinct, widest = work.found, n, 0.0
    for i in range(1, n):  # insertion sort: n is small as a rule
        t, e, label, spread = found[i, 0], found[i, 1], found[i, 2], found[i, 3]
        k = i - 1
        while k >= 0 and found[k, 0] > t:
            for c in range(4):
                found[k + 1, c] = found[k, c]
            k -= 1
        found[k + 1, 0], found[k + 1, 1], found[k + 1, 2], found[k + 1, 3] = t, e, label, spread
    for k in range(n):
        widest = max(widest, found[k, 1])
    for k in range(1, n):
        if certified is None:
            distinct -= found[k, 0] - found[k - 1, 0] <= found[k, 1] + found[k - 1, 1]
            continue
        i = k - 1
        while i >= 0 and found[k, 0] - found[i, 0] <= found[k, 1] + widest:
            if found[k, 0] - found[i, 0] <= found[k, 1] + found[i, 1]:
                verdict = _same_point(net, work, certified, k, i)
                if verdict == OPEN:
                    return UNDECIDED
                if verdict == ZERO:
                    distinct -= 1
                    break
            i -= 1
    return distinct


@inner
def _same_point(net, work, ties, k, i):
    """Return whether lines k and i of ``work.found`` cross their segment in one point."""
    found = work.found
    # Both values at the ends exceed their errors, so their true difference is at most twice that seen.
    away = abs(found[k, 0] - found[i, 0]) + found[k, 1] + found[i, 1]
    number = new_vertex(ties)
    for c in range(net.dim - 1):
        put_facet(ties, number, work.labels[c], True)
    put_facet(ties, number, int(found[i, 2]), True)
    verdict = at_vertex(net, work, ties, number, int(found[k, 2]), 2.0 * found[k, 3] * away)
    ties.state[USED] = number
    return verdict


@inner
def _chord(net, work, certified, level, unit, coords, sides, n, ends):
    """Write the points where a unit's zero set leaves and enters the polygon; return certainty."""
    first, width = net.starts[level], net.widths[level]
    maps, bound = work.maps[3 * first :], work.bounds[first + unit]
    a, b, c = maps[unit], maps[width + unit], maps[2 * width + unit]
    norm = abs(a) + abs(b)
    k = 0
    while k + 1 < n and a * coords[k, 0] + b * coords[k, 1] + c <= bound + norm * coords[k, 2]:
        k += 1
    value = a * coords[k, 0] + b * coords[k, 1] + c
    for end in range(2):
        copy(ends[end], coords[k])
    if not value > bound + norm * coords[k, 2]:
        return certified is None  # it was found to cross by no more than rounding
    found, phase = 0, INSIDE
    for _ in range(n):
        following = k + 1 if k + 1 < n else 0
        ahead = a * coords[following, 0] + b * coords[following, 1] + c
        zero = bound + norm * coords[following, 2]
        sign = 1 if ahead > zero else (-1 if ahead < -zero else 0)
        if (
            certified is not None
            and sign == 0
            and at_vertex(
                net, work, certified, int(coords[following, 3]), first + unit, abs(ahead) + zero
            )
            != ZERO
        ):
            return False
        if (phase == INSIDE and sign <= 0) or (phase == BEYOND and sign >= 0):
            t = value / (value - ahead) if sign != 0 else 1.0
            x = coords[k, 0] + t * (coords[following, 0] - coords[k, 0])
            y = coords[k, 1] + t * (coords[following, 1] - coords[k, 1])
            ends[found, 0], ends[found, 1], ends[found, 2] = x, y, 0.0
            if sign == 0:
                copy(ends[found], coords[following])
            elif certified is not None:
                error = edge_error(2, work, coords[k], coords[following], value, ahead, norm, bound)
                if error == np.inf:
                    error = crossing_error(net, work, sides[k, 0], first + unit, x, y)
                ends[found, 2] = error
                ends[found, 3] = crossing(certified, sides[k, 0], first + unit)
            found += 1
            phase = DONE if phase == BEYOND else (BEYOND if sign < 0 else ON_LINE)
            if phase == DONE:
                after = following + 1 if following + 1 < n else 0
                beyond = a * coords[after, 0] + b * coords[after, 1] + c
                # Signs that are exact fit a line.
                return (
                    certified is not None or sign != 0 or abs(beyond) > bound + norm * coords[after, 2]
                )
        elif phase == ON_LINE:
            if sign == 0:
                break  # no line that holds a side cuts the polygon
            phase = BEYOND if sign < 0 else DONE
        k, value = following, ahead
    return False
