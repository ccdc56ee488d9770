r"""Convex polygons: cutting one in two, and counting what many lines make of it.

A polygon is a counter-clockwise run of vertices ``(x, y, error)``; ``sides[k, 0]`` names the side
from vertex k to the next. A line splits it iff it is positive at one vertex and negative at another,
so lines that only touch are no events at all.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
from __future__ import annotations

import numpy as np

from pindown.geometry.kernels import copy, inner
from pindown.geometry.kernels.memory import POINT, SIGN
from pindown.geometry.kernels.vertices import ULP, edge_error, vertex_error

UNDECIDED = -1

INSIDE, ON_LINE, BEYOND, DONE = range(4)  # walking around a polygon that a line crosses


@inner
def split_polygon(net, work, certified, label, row, bound, coords, sides, n, halves):
    """Cut by the line ``row`` (the zero set named ``label``); return whether every sign was certain."""
    values, counts = halves.values, halves.counts
    signs = halves.marks[SIGN]
    norm = abs(row[0]) + abs(row[1])
    for k in range(n):
        value = row[0] * coords[k, 0] + row[1] * coords[k, 1] + row[2]
        zero = bound + norm * coords[k, 2]
        values[k] = value
        signs[k] = 1 if value > zero else (-1 if value < -zero else 0)
        if certified is not None and signs[k] == 0:
            return False
    counts[0, 0] = counts[1, 0] = 0
    for k in range(n):
        following = k + 1 if k + 1 < n else 0
        here, there, side = signs[k], signs[following], sides[k, 0]
        if here == 0 == there:
            return False  # no line that holds a side cuts the polygon
        if here <= 0:
            _put(
                halves, 0, coords[k, 0], coords[k, 1], coords[k, 2], label if here == 0 < there else side
            )
        if here >= 0:
            _put(
                halves, 1, coords[k, 0], coords[k, 1], coords[k, 2], label if here == 0 > there else side
            )
        if here * there < 0:
            t = values[k] / (values[k] - values[following])
            x = coords[k, 0] + t * (coords[following, 0] - coords[k, 0])
            y = coords[k, 1] + t * (coords[following, 1] - coords[k, 1])
            error = 0.0
            if certified is not None:
                error = edge_error(
                    work, coords[k], coords[following], values[k], values[following], norm, bound
                )
                if error == np.inf:
                    error = crossing_error(net, work, side, label, x, y)
            # Coming from inside a half, its boundary turns into the cut; going in, it follows the side.
            _put(halves, 0, x, y, error, label if here < 0 else side)
            _put(halves, 1, x, y, error, label if here > 0 else side)
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
def _put(halves, half, x, y, error, label):
    k = halves.counts[half, 0]
    halves.coords[half, k, 0] = x
    halves.coords[half, k, 1] = y
    halves.coords[half, k, 2] = error
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
    for jj in range(n_lines):
        if not _chord(net, work, certified, level, work.chosen[jj], coords, sides, n, ends):
            return UNDECIDED
        x0, y0, e0 = ends[0, 0], ends[0, 1], ends[0, 2]
        x1, y1, e1 = ends[1, 0], ends[1, 1], ends[1, 2]
        n_found, duplicate = 0, False
        for ii in range(jj):
            i = work.chosen[ii]
            a, b, c, bound = maps[i], maps[width + i], maps[2 * width + i], work.bounds[first + i]
            start, end = a * x0 + b * y0 + c, a * x1 + b * y1 + c
            norm = abs(a) + abs(b)
            zero0, zero1 = bound + norm * e0, bound + norm * e1
            if abs(start) <= zero0 or abs(end) <= zero1:
                if certified is not None:
                    return UNDECIDED
                if abs(start) <= zero0 and abs(end) <= zero1:
                    duplicate = True
                    break
            elif (start > 0.0) != (end > 0.0):  # their product may underflow
                found[n_found, 0] = start / (start - end)
                found[n_found, 1] = max(zero0, zero1) / abs(start - end) + 4 * ULP
                n_found += 1
        if not duplicate:
            distinct = count_distinct(found, n_found, certified)
            if distinct < 0:
                return UNDECIDED
            total += 1 + distinct
    return total


@inner
def count_distinct(found, n, certified):
    """Count numbers ``found[:n, 0]`` that differ by more than their errors ``found[:n, 1]``."""
    for i in range(1, n):  # insertion sort: n is small as a rule
        t, e = found[i, 0], found[i, 1]
        k = i - 1
        while k >= 0 and found[k, 0] > t:
            found[k + 1, 0], found[k + 1, 1] = found[k, 0], found[k, 1]
            k -= 1
        found[k + 1, 0], found[k + 1, 1] = t, e
    distinct = n
    for k in range(1, n):
        if found[k, 0] - found[k - 1, 0] <= found[k, 1] + found[k - 1, 1]:
            if certified is not None:
                return UNDECIDED
            distinct -= 1
    return distinct


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
        if certified is not None and sign == 0:
            return False
        if (phase == INSIDE and sign <= 0) or (phase == BEYOND and sign >= 0):
            t = value / (value - ahead) if sign != 0 else 1.0
            x = coords[k, 0] + t * (coords[following, 0] - coords[k, 0])
            y = coords[k, 1] + t * (coords[following, 1] - coords[k, 1])
            ends[found, 0], ends[found, 1], ends[found, 2] = x, y, 0.0
            if certified is not None:
                error = edge_error(work, coords[k], coords[following], value, ahead, norm, bound)
                if error == np.inf:
                    error = crossing_error(net, work, sides[k, 0], first + unit, x, y)
                ends[found, 2] = error
            found += 1
            phase = DONE if phase == BEYOND else (BEYOND if sign < 0 else ON_LINE)
            if phase == DONE:
                after = following + 1 if following + 1 < n else 0
                beyond = a * coords[after, 0] + b * coords[after, 1] + c
                return sign != 0 or abs(beyond) > bound + norm * coords[after, 2]
        elif phase == ON_LINE:
            if sign == 0:
                break  # no line that holds a side cuts the polygon
            phase = BEYOND if sign < 0 else DONE
        k, value = following, ahead
    return False
