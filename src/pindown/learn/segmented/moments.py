r"""Weight, means and centred second moments of any run of points in logarithmic time, compiled.

Moments about their own mean are stored for blocks of 1, 2, 4, ... points; a run is a union of a few
blocks. Joining two blocks adds positive numbers only, so nothing cancels, as it would in differences of
cumulative sums.
"""

from __future__ import annotations

import numpy as np

from pindown.affine import Array
from pindown.learn.segmented.quadratics import compiled

# Points that are as quick to add up one by one.
_FEW = 16


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
