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

from pindown.affine import Array
from pindown.model.operations.operation import Interval
from pindown.model.operations.piecewise_linear import triangle_lines


class Lines(NamedTuple):
    """For each ReLU of a layer ``lower * z <= relu(z) <= slope * z + shift``, each (n, m)."""

    lower: Array
    slope: Array
    shift: Array


def triangle_relaxation(z: Interval) -> Lines:
    """Return lines below and above each ReLU, proved for all ``z.lower <= z <= z.upper``.

    >>> import numpy as np
    >>> triangle_relaxation(Interval(np.array([[-1.0, 2.0]]), np.array([[3.0, 4.0]]))).slope
    array([[0.75, 1.  ]])
    """
    return Lines(*triangle_lines(*z))
