"""Compiled cone programs for any convex loss: an interior-point path, each step with its dual bound.

For a parameter ``t`` the program ``min sum_j m_j l_j(f_j) + penalty`` over a cone ``K phi >= 0`` is
replaced by a smooth one: ``-log`` of each constraint, divided by ``t``, joins the objective, and so do
the constraints hidden in the corners of the absolute and the hinge loss. Its derivatives ``r_j`` with
respect to the predictions are feasible for the dual, so that ``sum_j -(m_j l_j)^*(r_j)`` bounds the
program from below long before the path ends.
"""

from __future__ import annotations

import numpy as np

from pindown.affine import Array
from pindown.learn.exact._compiled import compiled

SQUARED, ABSOLUTE, HINGE, LOGISTIC = range(4)

# Each step of the path multiplies t by this; the gap it leaves is about the number of barriers over t.
_GROWTH = 30.0
_START = 3.0
_END = 1e13
_NEWTON_STEPS = 60
# Newton's decrement, times t, at which a smooth problem counts as solved.
_CENTRED = 1e-6
_MIN_STEP = 1e-10
_ROUNDING = 1e-14  # below this, relative, values do not tell a better step from a worse one
# The path keeps weights below this in the round coordinates of the problem: without a limit some
# programs attain their least value only at infinity, or have an answer that is unbounded in directions
# that do not matter.
_REACH = 1e4
# Bounds hold for weights up to this size: what the limit above holds back counts against them in
# proportion.
_BOUND_REACH = 1e8
_HESSIAN_FLOOR = 1e-15


@compiled
def point_loss(kind: int, f: float, y: float) -> float:
    """Return the loss of a prediction."""
    if kind == SQUARED:
        return (f - y) * (f - y)
    if kind == ABSOLUTE:
        return abs(f - y)
    if kind == HINGE:
        return max(0.0, 1.0 - y * f)
    z = -y * f
    return max(z, 0.0) + np.log1p(np.exp(-abs(z)))


@compiled
def _smooth(kind: int, f: float, y: float, mass: float, t: float) -> tuple[float, float, float]:
    """Return the smoothed loss and its first and second derivative in f."""
    if kind == SQUARED:
        e = f - y
        return mass * e * e, 2 * mass * e, 2 * mass
    if kind == LOGISTIC:
        z = -y * f
        s = 1 / (1 + np.exp(-z)) if z > -30 else np.exp(z)
        return mass * (max(z, 0.0) + np.log1p(np.exp(-abs(z)))), -y * mass * s, mass * s * (1 - s)
    width = 1 / (mass * t)
    if kind == ABSOLUTE:  # the least of mass * top - (log(top - e) + log(top + e)) / t over top > |e|
        e = f - y
        root = np.sqrt(width * width + e * e)
        top = width + root
        value = mass * top - np.log(2 * top * width) / t
        return value, mass * e / top, mass * (top - e * e / root) / (top * top)
    u = 1 - y * f  # hinge: the least of mass * top - (log(top) + log(top - u)) / t over top > max(0, u)
    root = np.sqrt(u * u + 4 * width * width)
    # (root - u) / 2 without cancellation.
    over = 2 * width * width / (root + u) if u > 0 else 0.5 * (root - u)
    top, rest = u + width + over, width + over
    rate = mass * width / rest
    bend = mass * width * 0.5 * (1 - u / root) / (rest * rest)
    return mass * top - np.log(top * rest) / t, -y * rate, bend


@compiled
def _minus_conjugate(kind: int, r: float, y: float, mass: float) -> float:
    """Return ``-(mass l)^*(r)``, minus infinity where the conjugate is infinite."""
    if kind == SQUARED:
        return -r * r / (4 * mass) - r * y
    if kind == ABSOLUTE:
        return -r * y if abs(r) <= mass else -np.inf
    share = -y * r / mass
    if share < 0.0 or share > 1.0:
        return -np.inf
    if kind == HINGE:
        return mass * share
    if share in (0.0, 1.0):
        return 0.0
    return -mass * (share * np.log(share) + (1 - share) * np.log1p(-share))


@compiled
def _factor(H: Array, m: int) -> bool:
    for i in range(m):
        for k in range(i + 1):
            total = H[i, k]
            for q in range(k):
                total -= H[i, q] * H[k, q]
            if k < i:
                H[i, k] = total / H[k, k]
            elif total > 0:
                H[i, i] = np.sqrt(total)
            else:
                return False
    return True


@compiled
def _solve(H: Array, b: Array, m: int) -> None:
    for i in range(m):
        total = b[i]
        for k in range(i):
            total -= H[i, k] * b[k]
        b[i] = total / H[i, i]
    for i in range(m - 1, -1, -1):
        total = b[i]
        for k in range(i + 1, m):
            total -= H[k, i] * b[k]
        b[i] = total / H[i, i]


@compiled
def _value(
    kind: int,
    A: Array,
    y: Array,
    mass: Array,
    penalty: Array,
    K: Array,
    n_cone: int,
    theta: Array,
    t: float,
) -> float:
    m, total = len(theta), 0.0
    for k in range(n_cone):
        room = 0.0
        for i in range(m):
            room += K[k, i] * theta[i]
        if room <= 0:
            return np.inf
        total -= np.log(room) / t
    for j in range(len(y)):
        f = 0.0
        for i in range(m):
            f += A[j, i] * theta[i]
        total += _smooth(kind, f, y[j], mass[j], t)[0]
    for i in range(m):
        inside = 1 - (theta[i] / _REACH) ** 2
        if inside <= 0:
            return np.inf
        total += penalty[i] * theta[i] * theta[i] - np.log(inside) / t
    return total


@compiled
def _plain(kind: int, A: Array, y: Array, mass: Array, penalty: Array, theta: Array) -> float:
    total = 0.0
    for j in range(len(y)):
        f = 0.0
        for i in range(len(theta)):
            f += A[j, i] * theta[i]
        total += mass[j] * point_loss(kind, f, y[j])
    for i in range(len(theta)):
        total += penalty[i] * theta[i] * theta[i]
    return total


@compiled
def _derivatives(
    kind: int,
    A: Array,
    y: Array,
    mass: Array,
    penalty: Array,
    K: Array,
    n_cone: int,
    theta: Array,
    t: float,
    g: Array,
    H: Array,
) -> None:
    """Fill the gradient and the Hessian of the smooth problem."""
    m = len(theta)
    for i in range(m):
        inside = _REACH**2 - theta[i] ** 2
        g[i] = 2 * penalty[i] * theta[i] + 2 * theta[i] / (t * inside)
        for k in range(i):
            H[i, k] = 0.0
        H[i, i] = 2 * penalty[i] + (2 + 4 * theta[i] ** 2 / inside) / (t * inside)
    for j in range(len(y)):
        f = 0.0
        for i in range(m):
            f += A[j, i] * theta[i]
        _, slope, bend = _smooth(kind, f, y[j], mass[j], t)
        for i in range(m):
            if A[j, i] != 0.0:
                g[i] += slope * A[j, i]
                for k in range(i + 1):
                    H[i, k] += bend * A[j, i] * A[j, k]
    for c in range(n_cone):
        room = 0.0
        for i in range(m):
            room += K[c, i] * theta[i]
        push = 1 / (t * room)
        for i in range(m):
            if K[c, i] != 0.0:
                g[i] -= push * K[c, i]
                for k in range(i + 1):
                    H[i, k] += push / room * K[c, i] * K[c, k]
    for i in range(m):
        H[i, i] *= 1 + _HESSIAN_FLOOR


@compiled
def _dual_bound(
    kind: int,
    A: Array,
    y: Array,
    mass: Array,
    penalty: Array,
    K: Array,
    n_cone: int,
    theta: Array,
    step: Array,
    t: float,
    residual: Array,
) -> float:
    """Return the bound of the multipliers that Newton's step predicts: they balance, up to rounding.

    ``r_j - l_j'' (A step)_j`` and ``push_k (1 + K_k step / room_k)`` satisfy ``A^T r + 2 P theta' = K^T
    push``.
    """
    m, bound = len(theta), 0.0
    for i in range(m):
        moved = theta[i] - step[i]
        residual[i] = 2 * penalty[i] * moved
        bound -= penalty[i] * moved * moved
    for c in range(n_cone):
        room, change = 0.0, 0.0
        for i in range(m):
            room += K[c, i] * theta[i]
            change += K[c, i] * step[i]
        push = (1 + change / room) / (t * room)
        if push < 0:
            return -np.inf
        for i in range(m):
            residual[i] -= push * K[c, i]
    for j in range(len(y)):
        f, change = 0.0, 0.0
        for i in range(m):
            f += A[j, i] * theta[i]
            change += A[j, i] * step[i]
        _, slope, bend = _smooth(kind, f, y[j], mass[j], t)
        r = slope - bend * change
        bound += _minus_conjugate(kind, r, y[j], mass[j])
        for i in range(m):
            residual[i] += r * A[j, i]
    for i in range(m):
        bound -= abs(residual[i]) * _BOUND_REACH
    return bound


@compiled
def follow(
    kind: int,
    A: Array,
    y: Array,
    mass: Array,
    penalty: Array,
    K: Array,
    n_cone: int,
    theta: Array,
    reject: float,
    gap: float,
) -> float:
    """Follow the path from an interior point ``theta``, overwritten, and return a lower bound.

    Stops as soon as the bound reaches ``reject``, or when the gap left is below ``gap``.
    """
    m, best = len(theta), 0.0  # no loss is negative
    g, H, step, trial = np.empty(m), np.empty((m, m)), np.empty(m), np.empty(m)
    t = _START
    if kind in (ABSOLUTE, HINGE) and 0 < reject < np.inf:
        t = max(t, len(y) / reject)  # below this the gap is larger than anything that could be rejected
    while True:
        for _ in range(_NEWTON_STEPS):
            _derivatives(kind, A, y, mass, penalty, K, n_cone, theta, t, g, H)
            step[:] = g
            if not _factor(H, m):
                return best
            _solve(H, step, m)
            decrement = 0.0
            for i in range(m):
                decrement += step[i] * g[i]
            if decrement * t < 1.0:
                bound = _dual_bound(kind, A, y, mass, penalty, K, n_cone, theta, step, t, trial)
                best = max(best, bound)
                if best >= reject:
                    return best
            if decrement * t <= _CENTRED:
                break
            before = _value(kind, A, y, mass, penalty, K, n_cone, theta, t)
            size = 1.0
            while size > _MIN_STEP:
                for i in range(m):
                    trial[i] = theta[i] - size * step[i]
                if (
                    _value(kind, A, y, mass, penalty, K, n_cone, trial, t)
                    <= before - 0.1 * size * decrement
                ):
                    break
                size *= 0.4
            if size <= _MIN_STEP:
                break
            theta[:] = trial
            if _plain(kind, A, y, mass, penalty, theta) - best <= gap:
                return best
        if t > _END:
            return best
        t *= _GROWTH
