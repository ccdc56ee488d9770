r"""From a cell of one layer to the units of the next: maps, error bounds, screening.

On a cell every unit of layer l is affine in the input, :math:`z_l(x) = M_l x + m_l`. The map of the
next layer is a sum over the units that are on,

.. math::
    M_{l+1} = \sum_{j\ \mathrm{on}} w_j\, M_l[j], \qquad w_j = W_{l+1}[:, j],

so from one cell to the next only the units whose state changed are added or taken away.
"""

from __future__ import annotations

from pindown.geometry._compiled import copy, entry, inner
from pindown.geometry._compiled.arrays import CENTER, RADIUS, REACH
from pindown.geometry._compiled.exact_residues import CLOCK, VERSIONS
from pindown.geometry._compiled.zero_proofs import ZERO, at_vertex, vanishes_everywhere

# A map is rebuilt after so many updates in place per unit, before their rounding errors add up.
_UPDATES_PER_UNIT = 8

# Each product may underflow by 2^-1075; this is more than 2^50 of them.
TINY = 2.0**-1022


@entry
def start(net, work, certified):
    """Write the first layer's map and, if certified, what evaluating it can err by."""
    d, n, maps = net.dim, net.widths[0], work.maps
    copy(maps, net.weights[: d * n])
    copy(maps[d * n :], net.biases[:n])
    if certified is not None:
        underflow = _underflow(work, d)
        for i in range(n):
            size = 0.0
            for c in range(d + 1):
                size += abs(maps[c * n + i]) * work.vectors[REACH, c]
            work.bounds[i] = _rounding(d, 0) * size + underflow


@inner
def advance(net, work, certified, level, states, words):
    """Make the map of layer ``level + 1`` right for the given states of layer ``level``.

    ``work.current`` holds the states that the map was last made for; ``work.updates[level]`` counts
    the changes since it was last built from nothing, and is negative if it must be.
    """
    updates, n = work.updates, net.widths[level]
    now, now_words, changed = work.current[level], work.current_words[level], False
    if updates[level] < 0 or updates[level] > _UPDATES_PER_UNIT * n:
        _clear(net, work, certified, level)
        for j in range(n):
            now[j] = states[j]
            if states[j]:
                _add(net, work, certified, level, j, 1.0)
        updates[level], changed = 0, True
    else:
        for w in range((n + 7) // 8):
            if words[w] != now_words[w]:
                for j in range(8 * w, min(8 * w + 8, n)):
                    if states[j] != now[j]:
                        now[j] = states[j]
                        _add(net, work, certified, level, j, 1.0 if states[j] else -1.0)
                        updates[level] += 1
                        changed = True
    updates[level + 1] = -1
    if certified is not None and changed:
        certified.state[CLOCK] += 1
        certified.state[VERSIONS + level + 1] = certified.state[CLOCK]


@inner
def _clear(net, work, certified, level):
    """Set the next layer's map to its bias alone."""
    d, n, first = net.dim, net.widths[level + 1], net.starts[level + 1]
    at = (d + 1) * first
    for i in range(at, at + d * n):
        work.maps[i] = 0.0
    copy(work.maps[at + d * n :], net.biases[first : first + n])
    if certified is not None and level + 1 < net.hidden:
        error, underflow = _rounding(d, net.widths[level]), _underflow(work, d)
        for i in range(n):
            work.bounds[first + i] = error * abs(net.biases[first + i]) + underflow


@inner
def _add(net, work, certified, level, j, sign):
    """Switch unit j of layer ``level`` on (sign 1) or off (sign -1) in the next layer's map."""
    d, n, n_next = net.dim, net.widths[level], net.widths[level + 1]
    source, target = (d + 1) * net.starts[level], (d + 1) * net.starts[level + 1]
    column = net.weight_starts[level + 1] + j * n_next
    w = net.weights[column : column + n_next]
    size = 0.0
    for c in range(d + 1):
        a = sign * work.maps[source + c * n + j]
        size += abs(a) * work.vectors[REACH, c]
        row = work.maps[target + c * n_next : target + (c + 1) * n_next]
        for i in range(n_next):
            row[i] += a * w[i]
    if certified is not None and level + 1 < net.hidden:
        # Errors are only ever added: what is subtracted again leaves its rounding behind.
        first = net.starts[level + 1]
        error = work.bounds[net.starts[level] + j]
        error = 1.01 * (error + _rounding(d, n) * size)
        row = work.bounds[first : first + n_next]
        for i in range(n_next):
            row[i] += error * abs(w[i])


@inner
def _rounding(d, n):
    """Bound what rounding adds to a form on d inputs that sums n units, relative to its terms.

    One operation for each unit when the map is built, one for each update, of which the last lot may
    exceed the limit by one per unit; then d + 1 to evaluate the form, and as many again in ``screen``.
    """
    return 1.01 * ((2 + _UPDATES_PER_UNIT) * n + 2 * d + 8) * 2.0**-53


@inner
def _underflow(work, d):
    """Bound what underflow adds to a form: in its coefficients, and where it is evaluated."""
    reach = 1.0
    for c in range(d + 1):
        reach += work.vectors[REACH, c]
    return TINY * reach


@inner
def screen(net, work, level):
    """Bound every unit of a layer on the box ``CENTER +- RADIUS`` around the cell.

    Row 0 of ``work.values`` gets the value at the centre, row 1 a number > 0 where that sign holds on
    the whole box. This touches every unit of the layer for every cell, so the loops have the form
    that runs on vector instructions: no branches, few arrays each.
    """
    d, n, first = net.dim, net.widths[level], net.starts[level]
    at = (d + 1) * first
    value, margin = work.values[0, :n], work.values[1, :n]
    zero, constant = work.bounds[first : first + n], work.maps[at + d * n : at + (d + 1) * n]
    center, radius = work.vectors[CENTER], work.vectors[RADIUS]
    p, q = work.maps[at : at + n], work.maps[at + n : at + 2 * n]
    for i in range(n):
        value[i] = constant[i] + p[i] * center[0] + q[i] * center[1]
    for i in range(n):
        margin[i] = -abs(p[i]) * radius[0] - abs(q[i]) * radius[1] - zero[i]
    for c in range(2, d):
        row = work.maps[at + c * n : at + (c + 1) * n]
        x, r = center[c], radius[c]
        for i in range(n):
            value[i] += row[i] * x
        for i in range(n):
            margin[i] -= abs(row[i]) * r
    for i in range(n):
        margin[i] += abs(value[i])


@inner
def row_of(net, maps, level, unit, row):
    """Copy a unit's affine form to ``row``."""
    d, n = net.dim, net.widths[level]
    at = (d + 1) * net.starts[level] + unit
    for c in range(d + 1):
        row[c] = maps[at + c * n]


OFF, ON, CROSSES, UNKNOWN, VANISHES = range(5)


@inner
def side(d, row, bound, certified, coords, n):
    """Return on which side of a unit's zero set a cell lies, if on one."""
    norm = 0.0
    for c in range(d):
        norm += abs(row[c])
    above, below, near = False, False, False
    for k in range(n):
        value, zero = row[d], bound + norm * coords[k, d]
        for c in range(d):
            value += row[c] * coords[k, c]
        if value > zero:
            above = True
        elif value < -zero:
            below = True
        else:
            near = True
        if above and below:
            return CROSSES
    if certified is not None and near:
        return UNKNOWN
    return OFF if below else (ON if above else VANISHES)


@inner
def settle(net, work, ties, label, row, coords, n):
    """Return what :func:`side` left unknown, if all values next to zero are exactly zero.

    A function of its own, with its many arguments, for it is rarely needed.
    """
    if vanishes_everywhere(ties, label, row):
        return VANISHES
    verdict = VANISHES
    for k in range(n):
        sign = sign_at(net, work, ties, label, row, coords[k])
        if sign == UNKNOWN:
            return UNKNOWN
        verdict = verdict if sign == VANISHES else sign
    return verdict


@inner
def sign_at(net, work, ties, label, row, vertex):
    """Return whether a unit is ON or OFF at a vertex, or VANISHES there; or that this is UNKNOWN."""
    d, value, norm = net.dim, row[net.dim], 0.0
    for c in range(d):
        value += row[c] * vertex[c]
        norm += abs(row[c])
    zero = work.bounds[label] + norm * vertex[d]
    if abs(value) > zero:
        return ON if value > 0.0 else OFF
    exact = at_vertex(net, work, ties, int(vertex[d + 1]), label, abs(value) + zero)
    return VANISHES if exact == ZERO else UNKNOWN


@inner
def decide(net, first, unit, verdict, states, hashes, key):
    """Set the states of a unit and of those it leads; return the key with those that are on.

    Where a unit vanishes it counts as on, and so do its opposites.
    """
    member = unit
    while member >= 0:
        on = 1 if verdict == VANISHES else verdict ^ net.opposite[first + member]
        states[member] = on
        if on:
            key ^= hashes[first + member]
        member = net.follower[first + member]
    return key
