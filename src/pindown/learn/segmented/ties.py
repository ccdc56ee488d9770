r"""Ties between the lines of neighbouring segments: continuity, made soft and convex.

Two lines with slopes a, b that meet within a gap of width h around c satisfy, for every slope r and all
:math:`q, q' > 0`,

.. math:: \lambda (L(c) - R(c))^2 - q (a - r)^2 - q' (b - r)^2 \le 0 ,
    \qquad \lambda = \frac{4}{h^2} \, \frac{q q'}{q + q'} ,

since :math:`|L(c) - R(c)| \le |a - b| h / 2` and
:math:`(a - b)^2 \le (1 + q / q') (a - r)^2 + (1 + q' / q) (b - r)^2`. Adding the left side to the loss
gives a lower bound.

What a segment pays, q, is a fraction of its own curvature in the slope, so that its line stays unique;
short segments pay little and are tied softly. Segments are sorted into classes by what they can pay.
Steep ones, for which the payment would cost more than the tie brings, count as shorter; a segment too
short for any class is not tied (as with :math:`\lambda = 0`).

Rows of an array ``ties``, one column per gap: centre, width, the most a tie may take, reference slope,
and how much a slope may explain before its segment counts as steep.
"""

from __future__ import annotations

import numpy as np

from pindown.affine import Array
from pindown.learn.segmented.quadratics import compiled

# Both ends together may take this fraction of a segment's curvature: what is left keeps its line unique.
_TAKEN = 0.9
# The least class is for two points at this quantile of gaps; the next ones grow by this factor.
_SMALLEST = 0.1
_RATIO = 4.0
_MOST_CLASSES = 12


def classes(x: Array, w: Array, most: Array) -> Array:
    """Return the least curvatures of the classes, from two points to what any tie can take."""
    pair = w[:-1] * w[1:] / (w[:-1] + w[1:]) * np.diff(x) ** 2
    low = float(np.quantile(pair, _SMALLEST))
    high = max(2 * float(most.max()) / _TAKEN, low * (1 + 1e-9))
    count = int(np.clip(np.ceil(np.log(high / low) / np.log(_RATIO)), 1, _MOST_CLASSES))
    return low * (high / low) ** (np.arange(count + 1) / count)


@compiled
def taken(ties: Array, sizes: Array, size: int, g: int) -> float:
    """Curvature that the tie at a gap takes from a segment of some class."""
    return min(0.5 * _TAKEN * sizes[size], ties[2, g]) if size >= 0 else 0.0


@compiled
def tied(
    stats: Array, ties: Array, sizes: Array, left: int, right: int
) -> tuple[int, float, float, float]:
    """Class of a segment, and (Sxx, Sxy, Syy) less what ties take (-1: no tie, or no class)."""
    near = max(left, right)
    explained = (stats[4] - ties[3, near] * stats[3]) ** 2
    curvature = stats[3]
    if explained > 0.0:
        curvature *= ties[4, near] / (explained / stats[3] + ties[4, near])
    size = len(sizes) - 1
    while size >= 0 and sizes[size] > curvature:
        size -= 1
    if size < 0:
        return -1, stats[3], stats[4], stats[5]
    m = mr = mrr = 0.0
    for g in (left, right):
        if g >= 0:
            q = taken(ties, sizes, size, g)
            m += q
            mr += q * ties[3, g]
            mrr += q * ties[3, g] ** 2
    return size, stats[3] - m, stats[4] - mr, stats[5] - mrr


@compiled
def strength(ties: Array, g: int, q: float, q2: float) -> float:
    """Stiffness of the tie between two segments that pay q and q2 for it."""
    return 4.0 * q * q2 / ((q + q2) * ties[1, g] ** 2) if q > 0.0 and q2 > 0.0 else 0.0


@compiled
def softened(k: float, tie: float) -> float:
    """Curvature of a parabola behind a tie: two springs in a row."""
    return k * tie / (k + tie) if k > 0.0 and tie > 0.0 else 0.0
