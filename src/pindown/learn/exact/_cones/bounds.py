r"""Compiled bounds of squared loss over products of cones: every network with unit u in cone u at once.

A cone is spanned by generators :math:`v_i`, and a unit in it is :math:`\varphi = \sum_i \lambda_i v_i`
with :math:`\lambda \ge 0`. At a sample p where all generators are on one side the unit is linear in
:math:`\lambda`; elsewhere

.. math:: \alpha \langle\varphi, p\rangle \;\le\; \mathrm{relu}(\langle\varphi, p\rangle) \;\le\;
          \sum_i \lambda_i\, \mathrm{relu}(\langle v_i, p\rangle), \qquad 0 \le \alpha \le 1.

Errors g with :math:`h_i = \sum_j m_j g_j s\, c_{ij} \ge 0` for every generator, where c is the side of
this that makes the sum smaller, prove

.. math:: \sum_j m_j (f_j - y_j)^2 \;\ge\; -\sum_j m_j (2 g_j y_j + g_j^2)

for every f of the cones. Newton's method finds the best errors; whatever it finds, the bound is computed
from the errors themselves, with what rounding can do to it.
"""

from __future__ import annotations

import numpy as np

from pindown.affine import Array, Integers
from pindown.learn.exact._cones import compiled

# Samples this close to a hyperplane through a generator are on it. Generators are not where they should
# be by less: all that is charged to the bound.
_ON = 1e-12
# What an error of float64 arithmetic is, relative.
_EPSILON = 2.3e-16
# Newton's steps, and the width of the rounded corner of a unit, in units of the largest target: it is
# made narrower around what was found.
_STEPS = 40
_CORNER, _NARROWER, _NARROWINGS = 0.1, 0.1, 4
# A Newton step that gains less than this, relative, is the last one; a corner is made narrower while
# this share of what is missing to the best loss may be gained.
_SETTLED, _WORTH = 1e-10, 0.05
_MAX_HALVINGS = 8
_DEPENDENT = 1e-14
# Units are split where relaxed outputs miss the network's most; corners of the other kind are
# nearly exact.
_CONVEX_SHARE = 0.3
_MIN_PART = 0.02
# Weights beyond this cancel in another unit and say little about where to cut; nor is a weight of zero
# the last word.
_MAX_WEIGHT, _MIN_WEIGHT = 10.0, 0.05


@compiled
def nonnegative(
    H: Array, b: Array, x: Array, n_free: int, passive: Integers, order: Integers, L: Array, z: Array
) -> None:
    """Minimise ``x'Hx/2 - b'x`` over ``x >= 0``, the last ``n_free`` free, by active sets from ``x``."""
    k = len(x)
    scale = 0.0
    for i in range(k):
        passive[i] = 1 if i >= k - n_free or x[i] > 0 else 0
        scale = max(scale, abs(b[i]) / np.sqrt(H[i, i]))
    for _ in range(6 * k + 6):
        while True:
            count = 0
            for i in range(k):
                if passive[i]:
                    order[count] = i
                    count += 1
            for a in range(count):
                for c in range(a + 1):
                    total = H[order[a], order[c]]
                    for q in range(c):
                        total -= L[a, q] * L[c, q]
                    if c < a:
                        L[a, c] = total / L[c, c]
                    else:
                        L[a, a] = np.sqrt(max(total, _DEPENDENT * H[order[a], order[a]]))
                total = b[order[a]]
                for q in range(a):
                    total -= L[a, q] * z[q]
                z[a] = total / L[a, a]
            for a in range(count - 1, -1, -1):
                total = z[a]
                for q in range(a + 1, count):
                    total -= L[q, a] * z[q]
                z[a] = total / L[a, a]
            step, leaving = 1.0, -1
            for a in range(count):
                i = order[a]
                if i < k - n_free and z[a] <= 0:
                    share = x[i] / (x[i] - z[a]) if x[i] > 0 else 0.0
                    if leaving < 0 or share < step:
                        step, leaving = share, i
            for a in range(count):
                x[order[a]] += step * (z[a] - x[order[a]])
            if leaving < 0:
                break
            x[leaving], passive[leaving] = 0.0, 0
        most, entering = 1e-13 * scale, -1
        for i in range(k):
            if not passive[i]:
                rises = b[i]
                for q in range(k):
                    rises -= H[i, q] * x[q]
                rises /= np.sqrt(H[i, i])
                if rises > most:
                    most, entering = rises, i
        if entering < 0:
            return
        passive[entering] = 1


@compiled
def _sides(points: Array, V: Array, Q: Array, kind: Integers) -> None:
    """Write the generators' values at all points, and whether units are off, on or neither there."""
    w, r = V.shape[0], V.shape[1]
    for j in range(len(points)):
        for u in range(w):
            above, below = False, False
            for i in range(r):
                value = 0.0
                for c in range(r):
                    value += V[u, i, c] * points[j, c]
                Q[j, u * r + i] = value
                above = above or value > _ON
                below = below or value < -_ON
            kind[j, u] = 2 if above and below else (1 if above else 0)


@compiled
def _outputs(
    j: int,
    signs: Integers,
    x: Array,
    Q: Array,
    kind: Integers,
    centre: Array,
    corner: float,
    alpha: Array,
) -> tuple[float, float, float, float, float]:
    """Return the least and the greatest output at a sample: with rounded corners, then with sharp ones.

    Last comes the output of the network itself. The slopes of bent units are written to alpha.
    """
    w = len(signs)
    r = Q.shape[1] // w
    low = x[w * r] if len(x) > w * r else 0.0
    high, sharp_low, sharp_high, true = low, low, low, low
    for u in range(w):
        if kind[j, u] == 0:
            continue
        value, chord = 0.0, 0.0
        for i in range(u * r, u * r + r):
            value += x[i] * Q[j, i]
            chord += x[i] * max(Q[j, i], 0.0)
        least, unit = value, value
        if kind[j, u] == 2:
            a = min(1.0, max(0.0, centre[j, u] + value / corner))
            alpha[j, u] = a
            least = a * value - 0.5 * corner * (a - centre[j, u]) ** 2
            unit = max(value, 0.0)
        else:
            chord = value
        true += signs[u] * unit
        if signs[u] > 0:
            low, high = low + least, high + chord
            sharp_low, sharp_high = sharp_low + unit, sharp_high + chord
        else:
            low, high = low - chord, high - least
            sharp_low, sharp_high = sharp_low - chord, sharp_high - unit
    return low, high, sharp_low, sharp_high, true


@compiled
def _write_row(
    j: int, g: float, bend: float, signs: Integers, Q: Array, kind: Integers, alpha: Array, row: Array,
    H: Array,
) -> None:  # fmt: skip
    """Write how an output with error g depends on the coordinates, and add the bend of its corners."""
    w = len(signs)
    r = Q.shape[1] // w
    for u in range(w):
        for i in range(u * r, u * r + r):
            if kind[j, u] == 0:
                row[i] = 0.0
            elif kind[j, u] == 1:
                row[i] = signs[u] * Q[j, i]
            elif signs[u] * g > 0:
                row[i] = signs[u] * alpha[j, u] * Q[j, i]
            else:
                row[i] = signs[u] * max(Q[j, i], 0.0)
        if kind[j, u] == 2 and signs[u] * g > 0 and 0.0 < alpha[j, u] < 1.0:
            for i in range(u * r, u * r + r):
                for q in range(u * r, i + 1):
                    H[i, q] += bend * Q[j, i] * Q[j, q]
    if len(row) > w * r:
        row[w * r] = 1.0


@compiled
def _model(
    points: Array, mass: Array, target: Array, R: Array, floor: float, signs: Integers, x: Array,
    Q: Array, kind: Integers, centre: Array, corner: float, alpha: Array, row: Array, H: Array, h: Array,
) -> tuple[float, float, float, float]:  # fmt: skip
    """Write half the slope h and half the curvature H of the relaxed loss at x.

    Returns:
        The relaxed loss with rounded corners and with sharp ones, the loss of the network itself, and
        the bound that the errors prove.
    """
    n, m, k = len(points), Q.shape[1], len(x)
    h[:] = 0.0
    H[:] = 0.0
    smooth, sharp, loss, proved, size, spread = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(n):
        low, high, sharp_low, sharp_high, true = _outputs(j, signs, x, Q, kind, centre, corner, alpha)
        y = target[j]
        loss += mass[j] * (true - y) ** 2
        sharp += mass[j] * (max(sharp_low - y, 0.0) + max(y - sharp_high, 0.0)) ** 2
        g = low - y if low > y else min(high - y, 0.0)
        if g == 0.0:
            continue
        weight = mass[j] * g
        smooth += weight * g
        proved -= weight * (2 * y + g)
        size += abs(weight) * (2 * abs(y) + abs(g))
        for c in range(points.shape[1]):
            spread += abs(weight) * abs(points[j, c])
        _write_row(j, g, abs(weight) / corner, signs, Q, kind, alpha, row, H)
        for i in range(k):
            if row[i] != 0.0:
                h[i] += weight * row[i]
                scaled = mass[j] * row[i]
                for q in range(i + 1):
                    H[i, q] += scaled * row[q]
    proved -= (n + 16) * _EPSILON * size
    charge = ((n + 64) * _EPSILON + _ON) * spread
    for i in range(k):
        bent = 0.0
        if i < m:
            for q in range(m):
                bent += R[i, q] * x[q]
                if q <= i:
                    H[i, q] += R[i, q]
        penalty = x[i] * bent
        smooth, sharp, loss, proved = smooth + penalty, sharp + penalty, loss + penalty, proved - penalty
        h[i] += bent
        # What lets a weight lower the sum is paid for by the floor.
        lowers = min(h[i] - charge, 0.0) if i < m else abs(h[i]) + charge
        proved -= lowers * lowers / floor
        smooth += floor * x[i] * x[i]
        h[i] += floor * x[i]
        H[i, i] += floor
        for q in range(i):
            H[q, i] = H[i, q]
    return smooth, sharp, loss, proved


@compiled
def _split(
    mass: Array, target: Array, signs: Integers, x: Array, Q: Array, kind: Integers, alpha: Array,
    misses: Array, split: Array,
) -> None:  # fmt: skip
    """Choose the edge of a cone to cut, and where: unit, two generators, and the share of the second."""
    n, w = kind.shape
    r = Q.shape[1] // w
    gap = np.zeros(w)
    for j in range(n):
        f = (x[w * r] if len(x) > w * r else 0.0) - target[j]
        for u in range(w):
            value = 0.0
            for i in range(u * r, u * r + r):
                value += x[i] * Q[j, i]
            if kind[j, u] > 0 and (kind[j, u] == 1 or value > 0):
                f += signs[u] * value
        for u in range(w):
            misses[j, u] = 0.0
            if kind[j, u] == 2:
                value, chord = 0.0, 0.0
                for i in range(u * r, u * r + r):
                    value += x[i] * Q[j, i]
                    chord += x[i] * max(Q[j, i], 0.0)
                convex = signs[u] * f > 0
                least = alpha[j, u] * value if convex else chord
                gap[u] += mass[j] * abs(f) * abs(max(value, 0.0) - least)
                misses[j, u] = mass[j] * abs(f) * (_CONVEX_SHARE if convex else 1.0)
    split[0] = -1.0
    best = 0.0
    for attempt in range(2):  # where the relaxation misses nothing: the longest edge
        for u in range(w):
            if attempt == 0 and gap[u] < gap.max():
                continue
            for i in range(r):
                for q in range(i):
                    score, where = 0.0, 0.0
                    one = _MIN_WEIGHT + min(x[u * r + i], _MAX_WEIGHT)
                    two = _MIN_WEIGHT + min(x[u * r + q], _MAX_WEIGHT)
                    for j in range(n):
                        a, c = Q[j, u * r + i], Q[j, u * r + q]
                        if kind[j, u] == 2 and a * c < 0 and min(abs(a), abs(c)) > 10 * _ON:
                            part = min(abs(a), abs(c))
                            if attempt == 0:
                                part = misses[j, u] * min(one * abs(a), two * abs(c))
                            score += part
                            where += part * a / (a - c)
                    if score > best:
                        best = score
                        split[0], split[1], split[2], split[3] = u, i, q, where / score
        if split[0] >= 0:
            break
    if split[0] < 0:
        return
    u, i, q = int(split[0]), int(split[1]), int(split[2])
    mean, near = split[3], np.inf
    for j in range(n):  # through the nearest sample's hyperplane
        a, c = Q[j, u * r + i], Q[j, u * r + q]
        if kind[j, u] == 2 and a * c < 0 and abs(a / (a - c) - mean) < near:
            near = abs(a / (a - c) - mean)
            split[3] = a / (a - c)
    if not _MIN_PART < split[3] < 1 - _MIN_PART:
        split[3] = min(max(mean, _MIN_PART), 1 - _MIN_PART)


@compiled
def bound_all(
    points: Array, mass: Array, target: Array, ridge: Array, floor: float, V: Array, signs: Integers,
    weights: Array, best: float, skip: float, bounds: Array, losses: Array, splits: Array,
) -> None:  # fmt: skip
    """Bound the loss over products of cones, one for each row.

    Args:
        points: ``(n, r)``, last coordinate one.
        mass: Weight of each point.
        target: Target of each point.
        ridge: ``(r,)`` factor of the squared weights.
        floor: Factor of the squared coordinates of units in their cones; losses are bounded with it.
        V: ``(N, w, r, r)`` generators.
        signs: ``(N, w)``.
        weights: ``(N, w r)``, and the output bias if there is one: where to begin; where it ended.
        best: The least loss that is known.
        skip: A bound above this is good enough.
        bounds: ``(N,)``, raised where they can be.
        losses: ``(N,)``, of the network at the weights.
        splits: ``(N, 4)``, where to cut; the first is -1 where nothing is to be gained.
    """
    w, r = V.shape[1], V.shape[2]
    n, m, k = len(points), w * r, weights.shape[1]
    Q, kind = np.empty((n, m)), np.zeros((n, w), np.int64)
    centre, alpha, misses = np.zeros((n, w)), np.zeros((n, w)), np.zeros((n, w))
    row, h, b, z, old = np.empty(k), np.empty(k), np.empty(k), np.empty(k), np.empty(k)
    H, L, R = np.empty((k, k)), np.empty((k, k)), np.zeros((m, m))
    passive, order = np.zeros(k, np.int64), np.zeros(k, np.int64)
    for node in range(len(V)):
        x = weights[node]
        _sides(points, V[node], Q, kind)
        for u in range(w):
            for i in range(r):
                for q in range(r):
                    total = 0.0
                    for c in range(r):
                        total += V[node, u, i, c] * ridge[c] * V[node, u, q, c]
                    R[u * r + i, u * r + q] = total
        corner, before, halvings, narrowings = _CORNER, np.inf, 0, 0
        centre[:] = 0.5
        for _ in range(_STEPS):
            smooth, sharp, loss, proved = _model(
                points, mass, target, R, floor, signs[node], x, Q, kind, centre, corner, alpha, row, H, h
            )
            bounds[node] = max(bounds[node], proved)
            losses[node] = min(losses[node], loss)
            if bounds[node] >= skip:
                break
            if smooth > before and halvings < _MAX_HALVINGS:
                halvings += 1
                for i in range(k):
                    x[i] = 0.5 * (x[i] + old[i])
                continue
            if smooth >= before * (1 - _SETTLED):
                missing = min(sharp, best) - bounds[node]
                if narrowings == _NARROWINGS or missing <= _WORTH * (best - bounds[node]):
                    break
                for j in range(n):
                    for u in range(w):
                        centre[j, u] = alpha[j, u]
                corner, before, narrowings = corner * _NARROWER, np.inf, narrowings + 1
                halvings = 0
                continue
            before, halvings = smooth, 0
            for i in range(k):
                old[i] = x[i]
                b[i] = -h[i]
                for q in range(k):
                    b[i] += H[i, q] * x[q]
            nonnegative(H, b, x, k - m, passive, order, L, z)
        if bounds[node] < skip:
            _split(mass, target, signs[node], x, Q, kind, alpha, misses, splits[node])
