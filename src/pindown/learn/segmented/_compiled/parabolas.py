r"""Moments of runs of points and the parabolas made of them: what every least-squares fit is built from.

Weight, means and centred second moments of any run take logarithmic time: moments about their own mean
are stored for blocks of 1, 2, 4, ... points, and a run is a union of a few blocks. Joining two blocks
adds positive numbers only, so nothing cancels, as it would in differences of cumulative sums.

The least loss of a run is a convex parabola :math:`\kappa (u - c)^2 + f` in the value u at its end. A
lower envelope of such parabolas is a row of pieces sorted by where they start; the first starts at minus
infinity. Every array has one entry per piece. Adding a parabola costs time proportional to the number of
pieces, and most parabolas are found not to matter anywhere, which costs no writing at all.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pindown.affine import Array
from pindown.learn.segmented._compiled import compiled

# Two curvatures that agree to this fraction make a difference that is a straight line.
_SAME_CURVATURE = 1e-13
# A parabola must be lower than the envelope by this much (values are scaled to order one) to enter.
_WORTH_ENTERING = 1e-13
# Points that are as quick to add up one by one.
_FEW = 16


@compiled
def lower_between(
    k: float, c: float, f: float, k2: float, c2: float, f2: float
) -> tuple[int, float, float]:
    """Where the first parabola is below the second: 1 between a and b, 2 outside, 0 nowhere."""
    A = k - k2
    shift = c - c2
    B = -2.0 * k * shift
    C = k * shift * shift + (f - f2) + _WORTH_ENTERING
    if abs(A) <= _SAME_CURVATURE * (k + k2):
        if B == 0.0:
            return (1, -np.inf, np.inf) if C < 0.0 else (0, 0.0, 0.0)
        root = c2 - C / B
        return (1, root, np.inf) if B < 0.0 else (1, -np.inf, root)
    discriminant = B * B - 4.0 * A * C
    if discriminant <= 0.0:
        return (1, -np.inf, np.inf) if A < 0.0 else (0, 0.0, 0.0)
    half = -0.5 * (B + np.copysign(np.sqrt(discriminant), B))
    first, second = half / A, C / half
    return (1 if A > 0.0 else 2), c2 + min(first, second), c2 + max(first, second)


@compiled
def matters(pieces: Array, count: int, k: float, c: float, f: float) -> bool:
    """Whether a parabola is below the envelope somewhere."""
    for i in range(count):
        low = pieces[0, i]
        high = pieces[0, i + 1] if i + 1 < count else np.inf
        kind, a, b = lower_between(k, c, f, pieces[1, i], pieces[2, i], pieces[3, i])
        if kind == 1 and max(a, low) < min(b, high):
            return True
        if kind == 2 and (a > low or b < high):
            return True
    return False


@compiled
def _emit(out: Array, count: int, start: float, end: float, k: float, c: float, f: float) -> int:
    """Append a piece, or let the last one go on if it is the same parabola."""
    if not start < end:
        return count
    if count and out[1, count - 1] == k and out[2, count - 1] == c and out[3, count - 1] == f:
        return count
    out[0, count] = start
    out[1, count] = k
    out[2, count] = c
    out[3, count] = f
    return count + 1


@compiled
def insert(pieces: Array, count: int, out: Array, k: float, c: float, f: float) -> int:
    """Write the envelope with one more parabola to ``out`` (rows: start, curvature, centre, floor)."""
    new: Any = np.int64(0)  # a plain 0 would compile _emit twice
    for i in range(count):
        low = pieces[0, i]
        high = pieces[0, i + 1] if i + 1 < count else np.inf
        k2, c2, f2 = pieces[1, i], pieces[2, i], pieces[3, i]
        kind, a, b = lower_between(k, c, f, k2, c2, f2)
        a, b = min(max(a, low), high), min(max(b, low), high)
        if kind == 0 or (kind == 1 and not a < b):
            new = _emit(out, new, low, high, k2, c2, f2)
        elif kind == 1:
            new = _emit(out, new, low, a, k2, c2, f2)
            new = _emit(out, new, a, b, k, c, f)
            new = _emit(out, new, b, high, k2, c2, f2)
        else:
            new = _emit(out, new, low, a, k, c, f)
            new = _emit(out, new, a, b, k2, c2, f2)
            new = _emit(out, new, b, high, k, c, f)
    return new


@compiled
def extend(
    W: float,
    reach: float,
    mean: float,
    Sxx: float,
    Sxy: float,
    Syy: float,
    k: float,
    length: float,
    c: float,
    f: float,
) -> tuple[float, float, float]:
    r"""Carry a parabola of the value at one end of a segment to its other end.

    With z the value at the near end and a the slope (away from it), minimise over a

    .. math:: W (z + a e - \bar y)^2 + S_{xx} a^2 - 2 S_{xy} a + S_{yy} + k (z + a \ell - c)^2 + f ,

    where e = ``reach`` is the distance of the centre of mass and l = ``length`` that of the far end.

    Returns:
        Curvature, centre and floor of the minimum as a function of z.
    """
    P = W * reach * reach + Sxx + k * length * length
    if P <= 0.0:  # no slope can matter: one point, at the near end itself
        return W, mean, Syy + f
    n1 = W * reach + k * length
    n0 = -W * reach * mean - Sxy - k * length * c
    curvature = W + k - n1 * n1 / P
    if curvature <= _SAME_CURVATURE * (W + k):
        curvature, centre = 0.0, mean
    else:
        centre = (W * mean + k * c + n1 * n0 / P) / curvature
    N = n1 * centre + n0
    floor = W * (centre - mean) ** 2 + k * (centre - c) ** 2 + Syy + f - N * N / P
    return curvature, centre, floor


@compiled
def join(into: Array, block: Array) -> None:
    """Add a block's (W, mean x, mean y, Sxx, Sxy, Syy) to another's."""
    total = into[0] + block[0]
    if total <= 0.0:
        return
    share = block[0] / total
    part = into[0] * share
    dx, dy = block[1] - into[1], block[2] - into[2]
    into[0] = total
    into[1] += dx * share
    into[2] += dy * share
    into[3] += block[3] + part * dx * dx
    into[4] += block[4] + part * dx * dy
    into[5] += block[5] + part * dy * dy


@compiled
def moment_blocks(x: Array, y: Array, w: Array) -> Array:
    """Blocks as a heap: row 1 is everything, rows 2 i and 2 i + 1 are the halves of row i."""
    n = len(x)
    size = 1
    while size < n:
        size *= 2
    blocks = np.zeros((2 * size, 6))
    for i in range(n):
        blocks[size + i, 0], blocks[size + i, 1], blocks[size + i, 2] = w[i], x[i], y[i]
    for i in range(size - 1, 0, -1):
        blocks[i] = blocks[2 * i]
        join(blocks[i], blocks[2 * i + 1])
    return blocks


@compiled
def moments_between(blocks: Array, first: int, stop: int, into: Array) -> None:
    """Write the moments of points first, ..., stop - 1 to ``into`` (zeros if there are none)."""
    if stop - first <= _FEW:
        two_passes(blocks, first, stop, into)
        return
    into[:] = 0.0
    size = len(blocks) // 2
    low, high = size + first, size + stop
    while low < high:
        if low & 1:
            join(into, blocks[low])
            low += 1
        if high & 1:
            high -= 1
            join(into, blocks[high])
        low >>= 1
        high >>= 1


@compiled
def two_passes(blocks: Array, first: int, stop: int, into: Array) -> None:
    """Write the same moments from the points themselves, means first: right to the last digits.

    For points closer than the rounding of their mean, which differs from block to block, it matters.
    """
    into[:] = 0.0
    points = blocks[len(blocks) // 2 :]
    if stop - first == 1:  # exactly the point, or rounding would give it a slope
        into[:3] = points[first, :3]
    if stop - first <= 1:
        return
    for i in range(first, stop):
        weight, x, y = points[i, 0], points[i, 1], points[i, 2]
        into[0] += weight
        into[1] += weight * x
        into[2] += weight * y
    into[1] /= into[0]
    into[2] /= into[0]
    for i in range(first, stop):
        weight, dx, dy = points[i, 0], points[i, 1] - into[1], points[i, 2] - into[2]
        into[3] += weight * dx * dx
        into[4] += weight * dx * dy
        into[5] += weight * dy * dy
