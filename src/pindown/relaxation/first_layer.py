r"""Linear forms of the first layer's ReLUs on a box: tighter than by triangles.

A triangle knows of a unit's input only how large it can be. That the units of the first layer read the
same x, whose entries end at the faces of the box, says more. With any set I of inputs, :math:`\breve x`
the corner of the box where :math:`z = w \cdot x + b` is smallest, and
:math:`r = z - \sum_{i \in I} w_i (x_i - \breve x_i)`,

.. math::
    \rho(z) \;\le\; \sum_{i \in I} w_i (x_i - \breve x_i) + \rho(r)
            \;\le\; \sum_{i \in I} w_i (x_i - \breve x_i) + \lambda (r - l), \qquad
    \lambda \ge \frac{u_I}{u_I - l},

where :math:`l \le \min z` and :math:`u_I = \max(0, \max r)`: the terms of the first sum are never
negative. With I empty that is the triangle. At a corner of the box the plane is the ReLU itself if I is
the inputs that are at :math:`\breve x` there. So look where the form of the planes taken so far is
largest, take the planes that are exact there, and mix them in: mixtures of planes above a function are
above it. Slopes below ReLUs are mixed in the same way.

Anderson, Huchette, Tjandraatmadja and Vielma 2019, "Strong mixed-integer programming formulations for
trained neural networks" (the planes); Tjandraatmadja et al. 2020, "The convex relaxation barrier,
revisited" (choosing them at a point).
"""

from __future__ import annotations

import numpy as np

from pindown.affine import Affine, Array, dense
from pindown.model.operations.operation import Interval
from pindown.rounding import TINY, UNIT_ROUNDOFF, add_up, gamma


def forms_by_corners(
    A: Array, c: Array, layer: Affine, z: Interval, lower: Array, upper: Array, *, steps: int
) -> tuple[Array, Array]:
    r"""Bound forms :math:`A \rho(W x + b) + c` of a first layer from above by forms of x, on one box.

    Args:
        A: Coefficients of the ReLUs, (q, m).
        c: Numbers, (q,).
        layer: W and b.
        z: Proved bounds on what the layer gives on the whole box, (m,) each.
        lower: Lower corner of the box, (d,).
        upper: Upper corner.
        steps: How often planes are mixed in.

    Returns:
        Coefficients (q, d), and numbers (q,) with what rounding can do, infinite where float64 cannot
        tell.

    Example:
        On the square, :math:`\rho(x + y) + (x - y)` is at most 2; the triangle shows 3 (the second unit,
        always on, adds 5):

        >>> layer = Affine.of([[1.0, 1.0], [1.0, -1.0]], [0, 5])
        >>> z = Interval(np.array([-2.0, 3.0]), np.array([2.0, 7.0]))
        >>> for steps in (0, 20):
        ...     A, c = forms_by_corners(
        ...         np.ones((1, 2)), -np.full(1, 5.0), layer, z, -np.ones(2), np.ones(2), steps=steps
        ...     )
        ...     print((np.abs(A).sum(axis=1) + c).round(1))
        [3.]
        [2.]
    """
    W, b = dense(layer.weight), layer.bias
    on, cut = z.lower >= 0, (z.lower < 0) & (z.upper > 0)
    reach = np.maximum(np.abs(lower), np.abs(upper))
    with np.errstate(all="ignore"):
        # What rounding is relative to. A plane has no coefficient larger than its unit; its number is
        # made of b, of l and twice of what the unit is at a corner.
        sizes = np.abs(W) @ reach + np.abs(b) + np.where(cut, np.abs(z.lower), 0.0) + TINY
        count = sum(W.shape) + 8 * steps + 32
        terms = 4.0 * (np.abs(A[:, on | cut]) @ sizes[on | cut]) + np.abs(c)
        lost = 2.0**40 * TINY * (1.0 + reach.sum() + sizes.sum())
        fixed, number = A[:, on] @ W[on], c + A[:, on] @ b[on]
        mixed = _Mixture(A[:, cut], W[cut], b[cut], z.lower[cut], z.upper[cut], lower, upper)
        form, offset = mixed.lowest(fixed, number, steps)
        offset = add_up(offset, 2.0 * gamma(count) * terms + lost)
    return form, np.where(np.isfinite(offset), offset, np.inf)


class _Mixture:
    """Planes above and lines below the open units of a layer, each form with its own.

    Attributes:
        above: The form of all planes above, (q, d), with its number (q,).
        slopes: Of the lines below, (q, m).
    """

    def __init__(
        self, A: Array, W: Array, b: Array, low: Array, high: Array, lower: Array, upper: Array
    ) -> None:
        self.up, self.down = np.maximum(A, 0.0), np.minimum(A, 0.0)
        self.W, self.b, self.low = W, b, low
        self.ends = lower, upper
        self.rising, self.falling = np.maximum(W, 0.0), np.minimum(W, 0.0)
        # z at the corner where it is smallest, from the entries that are at the lower and the upper end.
        self.at_ends = (self.rising * lower).T, (self.falling * upper).T
        self.whole = self.up @ self.rising, self.up @ self.falling
        reach = np.maximum(np.abs(lower), np.abs(upper))
        self.error = 2.0 * gamma(len(lower) + 8) * (np.abs(W) @ reach + np.abs(b)) + TINY
        steep = self._steep(np.broadcast_to(np.maximum(high, 0.0), A.shape))
        self.above = (self.up * steep) @ W, (self.up * steep * (b - low)).sum(axis=1)
        self.slopes = np.broadcast_to(np.where(high > -low, 1.0, 0.0), A.shape).copy()

    def _steep(self, high: Array) -> Array:
        """Return slopes above ReLUs between ``low`` and ``high``; steeper ones are above, too."""
        return np.minimum(high / (high - self.low) * (1.0 + 8.0 * UNIT_ROUNDOFF), 1.0)

    def lowest(self, fixed: Array, number: Array, steps: int) -> tuple[Array, Array]:
        """Return forms of x above ``fixed x + number`` and the units, the lowest that were met."""
        lower, upper = self.ends
        top = np.full(len(fixed), np.inf)
        kept, offset = fixed.copy(), np.full(len(fixed), np.inf)
        for step in range(steps + 1):
            form = fixed + self.above[0] + (self.down * self.slopes) @ self.W
            shift = number + self.above[1] + (self.down * self.slopes) @ self.b
            far = form > 0
            point = np.where(far, upper, lower)
            value = (form * point).sum(axis=1) + shift
            better = value < top
            top[better], kept[better], offset[better] = value[better], form[better], shift[better]
            if step < steps:
                self._mix(far, point @ self.W.T + self.b, 1.0 / (step + 2.0))
        return kept, offset

    def _mix(self, far: Array, z: Array, share: float) -> None:
        """Mix in the planes that are exact at corners, the upper end where ``far`` says so."""
        steep = self._steep(np.maximum(z + self.error, 0.0))
        taken = self.up * steep
        held = np.where(far, self.whole[1] + taken @ self.rising, self.whole[0] + taken @ self.falling)
        at_lower = np.where(far, 0.0, 1.0)
        own = at_lower @ self.at_ends[0] + (1.0 - at_lower) @ self.at_ends[1]
        moved = taken * (self.b + own - self.low) - self.up * own
        form, number = self.above
        self.above = form + share * (held - form), number + share * (moved.sum(axis=1) - number)
        self.slopes += share * ((z > 0) - self.slopes)
