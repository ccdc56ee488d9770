r"""A cell seen from a point inside it: :math:`\{p + y : q_i \cdot y \le 1\}`, :math:`q_i = a_i / s_i`.

The rows :math:`q_i` are the corners of its polar. The slack :math:`s_i` is the distance from p to side
i, so a direction y meets side i after the time :math:`1 / (q_i \cdot y)`, and the side with the largest
rate :math:`q_i \cdot y` first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from pindown.affine import Array
from pindown.box import Box
from pindown.geometry.nearness import RESOLUTION, SAME
from pindown.geometry.tuning import CENTRING_STEPS, PARALLEL_ROWS_PER_BLOCK

Rows = NDArray[np.int64]


# Cosines above this are looked at closely: 1 - cos is half the squared angle, and SAME squared is lost
# in the rounding of a sum of products.
_NEARLY_ONE = 1.0 - 2.0**-40


@dataclass(frozen=True, eq=False)
class ScaledCell:
    r"""The sides :math:`q_i \cdot y \le 1`, and those of a box if there is one.

    The sides are numbered: rows first, then lower and upper side of each coordinate in turn.

    Attributes:
        rows: The :math:`q_i`, (n, d).
        names: Which of the original rows they are, (n,).
        low: Reciprocal distances to the lower sides of the box, (d,), or empty without a box.
        high: Reciprocal distances to the upper sides.
    """

    rows: Array
    names: Rows
    low: Array
    high: Array

    @classmethod
    def around(cls, halfspaces: Array, inner: Array, box: Box | None) -> ScaledCell:
        """Scale unit rows (m, d + 1) and a box about a point strictly inside."""
        slack = -(halfspaces[:, :-1] @ inner + halfspaces[:, -1])
        low, high = (np.zeros(0),) * 2 if box is None else (inner - box.lower, box.upper - inner)
        if min(gap.min(initial=1.0) for gap in (slack, low, high)) <= 0.0:
            raise ValueError("facets are found from a point strictly inside; this one is not.")
        return cls(halfspaces[:, :-1] / slack[:, None], np.arange(len(slack)), 1.0 / low, 1.0 / high)

    @property
    def n_sides(self) -> int:
        """Number of sides."""
        return len(self.rows) + 2 * len(self.low)

    @property
    def basis(self) -> Array:
        """The rows, and below them the coordinate vectors when there is a box."""
        return np.concatenate([self.rows, np.eye(len(self.low), self.rows.shape[1])])

    def keep(self, chosen: Rows) -> ScaledCell:
        """Return the same cell without the rows not chosen."""
        return ScaledCell(self.rows[chosen], self.names[chosen], self.low, self.high)

    def without_box(self) -> ScaledCell:
        """Return the cell of the rows alone."""
        return ScaledCell(self.rows, self.names, self.low[:0], self.high[:0])

    def rates(self, Y: Array) -> Array:
        """Return how fast directions run into the sides: (k, d) -> (k, n_sides)."""
        if not len(self.low):
            return Y @ self.rows.T
        box = np.stack([-Y * self.low, Y * self.high], axis=2)
        return np.concatenate([Y @ self.rows.T, box.reshape(len(Y), -1)], axis=1)

    def side(self, number: int) -> Array:
        """Return the vector q of a side, (d,)."""
        n = len(self.rows)
        if number < n:
            return self.rows[number]
        k, upper = divmod(number - n, 2)
        q = np.zeros(self.rows.shape[1])
        q[k] = self.high[k] if upper else -self.low[k]
        return q

    def nearest_of_parallel(self) -> ScaledCell:
        """Return the cell without rows that have a parallel one as near or nearer; first ones stay."""
        size = np.linalg.norm(self.rows, axis=1)  # reciprocal slacks: the larger, the nearer
        unit = self.rows / size[:, None]
        group = parallel_groups(unit)
        nearest = np.zeros(len(size))
        np.maximum.at(nearest, group, size)
        hidden = size < nearest[group] * (1 - SAME)
        _, first = np.unique(np.where(hidden, -1 - np.arange(len(size)), group), return_index=True)
        hidden[np.setdiff1d(np.arange(len(size)), first)] = True
        if len(self.low):
            hidden |= self._on_or_behind_box(unit, size)
        return self.keep(np.flatnonzero(~hidden))

    def _on_or_behind_box(self, unit: Array, size: Array) -> NDArray[np.bool_]:
        """Return which rows are parallel to a side of the box that is as near or nearer."""
        i, k = np.arange(len(unit)), np.argmax(np.abs(unit), axis=1)
        upper = unit[i, k] > 0
        rest = unit.copy()
        rest[i, k] -= np.where(upper, 1.0, -1.0)
        side = np.where(upper, self.high[k], self.low[k])
        return (np.abs(rest).max(axis=1, initial=0.0) <= SAME) & (size <= side * (1 + SAME))


def parallel_groups(unit: Array) -> Rows:
    """Return for each unit row the number of the first row with the same direction, (n,).

    >>> parallel_groups(np.array([[1.0, 0], [0, 1], [1, 0], [-1, 0]]))
    array([0, 1, 0, 3])
    """
    group = np.arange(len(unit))
    for start in range(0, len(unit), PARALLEL_ROWS_PER_BLOCK):
        near = unit[start : start + PARALLEL_ROWS_PER_BLOCK] @ unit.T > _NEARLY_ONE
        first = near.argmax(axis=1)
        i = start + np.arange(len(near))
        same = np.abs(unit[i] - unit[first]).max(axis=1, initial=0.0) <= SAME
        group[i[same]] = first[same]
        for row in i[~same]:  # close to the first such row, but not the same: look at all
            others = np.flatnonzero(near[row - start])
            close = np.abs(unit[others] - unit[row]).max(axis=1) <= SAME
            group[row] = others[np.argmax(close)]
    return group


def column_space(matrix: Array) -> Array:
    """Return an orthonormal basis of the column space, (n, rank).

    >>> np.abs(column_space(np.array([[2.0, 4.0], [0.0, 0.0]])))
    array([[1.],
           [0.]])
    """
    Q, R, _ = qr(matrix, mode="economic", pivoting=True)
    pivots = np.abs(np.diag(R))
    return Q[:, pivots > RESOLUTION * pivots[0]]


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # such steps are not taken
def deep_point(halfspaces: Array, inner: Array, box: Box | None) -> Array:
    r"""Return a point well inside, from one that is just inside.

    A few Newton steps towards the minimum of the barrier

    .. math::
        -\sum_i \log s_i(x) + \tfrac{1}{2} \|x - x_0\|^2 / \varrho^2,

    the sum over rows and sides of the box, :math:`\varrho` the largest slack at the start. The last
    term is there because an unbounded cell has no centre.

    Args:
        halfspaces: Unit rows (m, d + 1).
        inner: The start :math:`x_0`, strictly inside.
        box: The box or None.
    """
    if not len(halfspaces) and box is None:
        return inner
    barrier = _Barrier(halfspaces, inner, box)
    x, here = inner, barrier.height(inner)
    for _ in range(CENTRING_STEPS):
        step, length = barrier.newton_step(x), 1.0
        if not (np.isfinite(step).all() and step.any()):
            break
        there = barrier.height(x + step)
        # Close to a side a full step only doubles the distance; elsewhere it may be too long.
        while (farther := barrier.height(x + 2 * length * step)) < min(there, here):
            length, there = 2 * length, farther
        while there >= here and length > SAME:
            length /= 2
            there = barrier.height(x + length * step)
        if not there < here:
            break
        x, gain, here = x + length * step, here - there, there
        if gain < 0.1:  # rays and scalings do not care for the last percent
            break
    return x


class _Barrier:
    def __init__(self, halfspaces: Array, start: Array, box: Box | None) -> None:
        self.A, self.b, self.start, self.box = halfspaces[:, :-1], halfspaces[:, -1], start, box
        pull = float(np.square(1.0 / self.slacks(start).max()))
        self.pull = min(pull, float(np.finfo(np.float64).max))

    def slacks(self, x: Array) -> Array:
        sides = [] if self.box is None else [x - self.box.lower, self.box.upper - x]
        return np.concatenate([-(self.A @ x + self.b), *sides])

    def height(self, x: Array) -> float:
        s = self.slacks(x)
        if s.min(initial=1.0) <= 0.0:
            return np.inf
        return float(self.pull * ((x - self.start) ** 2).sum() / 2 - np.log(s).sum())

    def newton_step(self, x: Array) -> Array:
        m = len(self.A)
        weight = 1.0 / self.slacks(x)
        scaled = self.A * weight[:m, None]
        slope = self.A.T @ weight[:m] + self.pull * (x - self.start)
        diagonal = np.full(len(x), self.pull)
        if self.box is not None:
            low, high = np.split(weight[m:], 2)
            slope += high - low
            diagonal += high**2 + low**2
        hessian = scaled.T @ scaled
        hessian[np.diag_indices_from(hessian)] += diagonal
        try:
            return np.asarray(-np.linalg.solve(hessian, slope), dtype=np.float64)
        except np.linalg.LinAlgError:  # singular in float64: the start is deep enough
            return np.zeros(len(x))
