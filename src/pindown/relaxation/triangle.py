r"""The triangle relaxation of a ReLU: between two lines, on the interval that bounds what enters it.

Where :math:`l \le z \le u` with :math:`l < 0 < u`,

.. math::
    \lambda z \;\le\; \max(0, z) \;\le\; s z + t, \qquad
    s = \frac{u}{u - l}, \quad t = -s l, \quad \lambda \in [0, 1].

The upper line and the ReLU itself are the sides of a triangle, the smallest convex set around its graph;
any line through zero with a slope between 0 and 1 bounds it from below. Where the sign is known both
lines are the ReLU itself.

Ehlers 2017, "Formal verification of piece-wise linear feed-forward neural networks" (the triangle).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pindown.affine import Array
from pindown.relaxation.intervals import Interval
from pindown.rounding import TINY, UNIT_ROUNDOFF


class Lines(NamedTuple):
    """For each ReLU of a layer ``lower * z <= relu(z) <= slope * z + shift``, each (n, m)."""

    lower: Array
    slope: Array
    shift: Array


def triangle_relaxation(z: Interval) -> Lines:
    """Return lines below and above each ReLU, proved for all ``z.lower <= z <= z.upper``.

    >>> triangle_relaxation(Interval(np.array([[-1.0, 2.0]]), np.array([[3.0, 4.0]]))).slope
    array([[0.75, 1.  ]])
    """
    low, high = z
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        slope = np.clip(high / (high - low), 0.0, 1.0)
        slope = np.where(np.isfinite(slope), slope, 1.0)
        # A line is above a convex function if it is at both ends, whatever its slope came out as.
        shift = np.maximum(-slope * low, high * (1.0 - slope)) * (1.0 + 8.0 * UNIT_ROUNDOFF) + TINY
    on, off = low >= 0, high <= 0
    slope = np.where(on, 1.0, np.where(off, 0.0, slope))
    shift = np.where(on | off, 0.0, shift)
    return Lines(np.where(on | (~off & (high > -low)), 1.0, 0.0), slope, shift)
