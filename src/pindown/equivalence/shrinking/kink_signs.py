r"""Signs that are plain once a unit is written by inputs and kinks.

:math:`\rho(-x) + x` looks as if it took both signs; written by kinks it is :math:`\rho(x)`. So bounds
are taken again there,

.. math::
    z_k \ge \sum_i \min(V_{ki} l_i, V_{ki} u_i) + \sum_j \min(U_{kj}\, t_j, 0) + c_k ,

with :math:`0 \le \rho(z_j) \le t_j`. What misses zero by rounding only is decided as well: then
:math:`|\rho(z) - z| = \rho(-z)` or :math:`\rho(z)` is at most what is missing.

Moore 1966, "Interval Analysis".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pindown.affine import Array
from pindown.box import Box
from pindown.equivalence.shrinking.columns import Mask
from pindown.equivalence.shrinking.kink_copies import CANCELLED, Sums
from pindown.equivalence.shrinking.products import affine_image, sum_up
from pindown.rounding import SMALLEST, add_down, add_up, gamma


class Decided(NamedTuple):
    """Units that are never off, units that are never on, and what it costs to say so."""

    on: Mask
    dead: Mask
    error: Array


def decided_signs(z: Sums, on: Mask, box: Box | None, sizes: Array) -> Decided:
    """Return the units of one sign: what is known to be always on, and what shows in this form.

    Args:
        z: The units of a layer, over inputs and all kinks below.
        on: Those known to be always on.
        box: The inputs; None: nothing else is found.
        sizes: Bounds on the size of the inputs and on what the kinks give.

    >>> rows = np.array([[0.0, 1.0], [0.0, -2.0], [1.0, 0.0]])  # of x in [-1, 1] and a kink in [0, 1]
    >>> z = Sums(rows, np.zeros(3), 0 * rows, np.zeros(3), np.abs(rows))
    >>> on, dead, error = decided_signs(z, np.zeros(3, dtype=bool), Box([-1], [1]), np.ones(2))
    >>> on.tolist(), dead.tolist(), error.tolist()
    ([True, False, False], [False, True, False], [0.0, 0.0, 0.0])
    """
    if box is None:
        return Decided(on, np.zeros_like(on), np.zeros(len(on)))
    lower, upper = _ends(z, box, sizes)
    rounding = CANCELLED * (np.abs(z.weight) @ sizes + np.abs(z.bias))
    shown = ~on & (lower >= -rounding)
    dead = ~(on | shown) & (upper <= rounding)
    missing = np.where(shown, -lower, np.where(dead, upper, 0.0))
    return Decided(on | shown, dead, np.maximum(missing, 0.0))


def _ends(z: Sums, box: Box, sizes: Array) -> tuple[Array, Array]:
    """Bound the units for all inputs and kinks in their ranges; exact where nothing rounds."""
    kinks = sizes[box.dim :]
    ends = np.concatenate([box.lower, 0.0 * kinks, box.upper, kinks])
    positive, negative = np.maximum(z.weight, 0.0), np.minimum(z.weight, 0.0)
    low = affine_image(np.hstack([positive, negative]), ends, z.bias)
    high = affine_image(np.hstack([negative, positive]), ends, z.bias)
    doubt = (z.weight_error @ sizes) * (1.0 + 2.0 * gamma(len(sizes) + 8)) + len(sizes) * SMALLEST
    doubt = sum_up(np.where(z.weight_error.any(axis=1), doubt, 0.0), z.bias_error)
    lower = add_down(low.value, -sum_up(low.error, doubt))
    return lower, add_up(high.value, sum_up(high.error, doubt))
