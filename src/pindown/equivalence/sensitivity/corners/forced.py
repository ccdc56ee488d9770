r"""Slopes that every way above the target must have.

At a corner whose bound stays above the target, forbid one unit to be on, or off: with :math:`e_i = 0`,
or :math:`e_i = z_i`, added to the quadratic with a multiplier :math:`\mu` of either sign,

.. math::
    \sup_x \; q(x) + \mu (a \cdot x - c), \qquad \mu = 2 \, (c - a \cdot x^\star) / (a^\top A^{-1} a),

the same matrix A serves all units. Where that is at most the target, the unit must do the opposite.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.equivalence.sensitivity.concave import ConcaveQuadratic
from pindown.equivalence.sensitivity.corners.cover import OpenCorner
from pindown.equivalence.sensitivity.corners.form import linear_parts, quadratic_of
from pindown.rounding import gamma

# Promised bounds this much below the target are worth a proof.
_BELOW = 1.0 - 1e-9


def common_slopes(
    layers: Sequence[Array],
    w: Array,
    target: float,
    corners: Sequence[OpenCorner],
    *,
    deadline: float = inf,
) -> list[Array] | None:
    """Return which units behind the source must be on (1), off (-1), or either (0), at all open corners.

    Args:
        layers: K and the weights that follow.
        w: Coefficients of the output.
        target: What is to be exceeded.
        corners: With their multipliers; those that are hardest to bound first saves time.
        deadline: When to stop (``time.monotonic``).

    Returns:
        The signs by layer; None if no slopes at any of the corners exceed the target.

    Raises:
        TimeoutError: If the time is over before all corners were asked.

    >>> from pindown.equivalence.sensitivity.corners.climb import climb
    >>> layers, w = [np.array([[2.0], [1.0]])], np.array([1.0, -1.0])
    >>> found = climb(layers, w, np.ones((1, 1)))  # on and off: 2
    >>> at = OpenCorner(np.ones(1), found.multipliers(0, 0.01))
    >>> common_slopes(layers, w, 1.5, [at])
    [array([ 1., -1.])]
    """
    ends = np.cumsum([len(W) for W in layers])
    signs: Array | None = None
    for at in corners:
        if time.monotonic() > deadline:
            raise TimeoutError("the time was over before all corners were asked for their slopes.")
        found = _signs_at(layers, w, target, at, signs)
        if found is not None:
            signs = found
    return None if signs is None else np.split(signs, ends[:-1])


def _signs_at(
    layers: Sequence[Array], w: Array, target: float, at: OpenCorner, among: Array | None
) -> Array | None:
    """Return the signs that one corner forces, of those that others do; None if it is ruled out."""
    quadratic = quadratic_of(layers, at.multipliers)
    ends = np.cumsum([len(W) for W in layers])
    n = int(ends[-1])
    if quadratic is None:
        return np.zeros(n)
    u = np.concatenate([[1.0], at.corner])
    H = linear_parts(layers, w, at.multipliers)
    # The blur is more than two roundings of h, so it also covers what h + mu a cancels.
    h, blur = H @ u, gamma(len(u) + 4) * (np.abs(H) @ u)
    test = _Constraints(quadratic, h, blur, target)
    entering, doubt = np.zeros(n), np.zeros(n)
    entering[: ends[0]] = layers[0] @ at.corner
    doubt[: ends[0]] = gamma(len(u) + 4) * (np.abs(layers[0]) @ at.corner)
    maybe_on = np.arange(n) if among is None else np.flatnonzero(among > 0.0)
    maybe_off = np.arange(n) if among is None else np.flatnonzero(among < 0.0)
    signs = np.zeros(n)
    units = np.eye(n)
    signs[maybe_on] += test.impossible(units[maybe_on], np.zeros(len(maybe_on)), np.zeros(len(maybe_on)))
    rows = _off_rows(layers, ends, maybe_off)
    off = test.impossible(rows, entering[maybe_off], doubt[maybe_off])
    if np.any(off & (signs[maybe_off] > 0.0)):
        return None  # neither on nor off
    signs[maybe_off] -= off
    return signs


def _off_rows(layers: Sequence[Array], ends: NDArray[np.int_], units: NDArray[np.int_]) -> Array:
    """Return rows a with ``a x = e_i - z_i``; the first layer's z is a number, not part of x."""
    rows = np.zeros((len(units), int(ends[-1])))
    rows[np.arange(len(units)), units] = 1.0
    for i, W in enumerate(layers[1:], 1):
        here = np.flatnonzero((units >= ends[i - 1]) & (units < ends[i]))
        start = ends[i - 2] if i > 1 else 0
        rows[here, start : ends[i - 1]] = -W[units[here] - ends[i - 1]]
    return rows


@dataclass(frozen=True, eq=False)
class _Constraints:
    """A quadratic with its linear part, known up to ``blur``, that is to be kept below a target."""

    quadratic: ConcaveQuadratic
    h: Array
    blur: Array
    target: float

    def impossible(self, rows: Array, shifts: Array, doubt: Array) -> NDArray[np.bool_]:
        """Return which constraints ``a x = c``, c known up to a doubt, keep it below: proved."""
        found = np.zeros(len(rows), bool)
        if not len(rows):
            return found
        x = self.quadratic.maximisers(self.h[:, None])[:, 0]
        size = 2.0 * np.einsum("ij,ji->i", rows, self.quadratic.maximisers(rows.T))
        away = shifts - rows @ x
        with np.errstate(divide="ignore", invalid="ignore"):
            promised = 0.5 * float(self.h @ x) - away**2 / size
        worth = np.flatnonzero((promised <= _BELOW * self.target) & (size > 0.0))
        mu = 2.0 * away[worth] / size[worth]
        constant = -mu * shifts[worth]
        bounds = self.quadratic.suprema(self.h[:, None] + rows[worth].T * mu, self.blur[:, None])
        rest = np.abs(mu) * doubt[worth] + 1e-15 * (np.abs(bounds) + 4.0 * np.abs(constant))
        found[worth] = bounds + constant + 2.0 * rest <= self.target
        return found
