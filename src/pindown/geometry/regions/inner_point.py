r"""Stepping off folds: which cell lies next to a point in a direction, and a point inside it.

For a small step t > 0 along u, unit i is :math:`z_i(x) + t\,\dot z_i(x; u)` with the one-sided
derivative :math:`\dot z` (forward mode, layer by layer). It is on if :math:`z_i > 0`, or if
:math:`z_i = 0` and :math:`\dot z_i > 0`, or if both vanish: then it is zero all along, and zero counts
as on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.box import Box
from pindown.geometry.nearness import RESOLUTION, SAME
from pindown.geometry.regions.cell import LP_OPTIONS
from pindown.geometry.regions.unit_forms import unit_forms, varying_units
from pindown.network import ReluNetwork

# A number that came out as a is wrong by some units in the last place of the terms it was summed from,
# not of a itself; in a scale that is multiplied by RESOLUTION they count with this share: 2^-48 in all.
_ROUGH = 2.0**-8

_DIRECTIONS = 100  # random directions to try; one is enough unless luck is against us


@dataclass(frozen=True, eq=False)
class Located:
    """A full-dimensional cell and a point inside it.

    Attributes:
        pattern: Which units are on, (size,).
        inner: A point strictly inside, (d,).
        units: The units that vary on the cell, (m,).
        sides: Their half-spaces, unit rows (m, d + 1).
    """

    pattern: NDArray[np.bool_]
    inner: Array
    units: NDArray[np.int64]
    sides: Array


def pattern_along(net: ReluNetwork, x: Array, u: Array, size: float = 0.0) -> NDArray[np.bool_]:
    """Return the pattern at ``x + t u`` for all small t > 0.

    Args:
        net: The network.
        x: The point, (d,).
        u: The direction, (d,).
        size: How large the numbers were that x was computed from, if larger than x itself.

    >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
    >>> pattern_along(net, np.array([0.0]), np.array([-1.0]))
    array([False,  True])
    """
    a, change, states = x, u, [np.zeros(0, dtype=bool)]
    rough = _ROUGH * max(size, float(np.abs(x).max()))
    for layer in net.layers[:-1]:
        z, slope = layer(a[None])[0], layer(change[None])[0] - layer.bias
        weight = abs(layer.weight)
        scale = weight @ np.maximum(np.abs(a), rough) + np.abs(layer.bias)
        at_zero = np.abs(z) <= RESOLUTION * scale
        falls = slope < -RESOLUTION * (weight @ np.abs(change))
        on = np.where(at_zero, ~falls, z > 0.0)
        states.append(on)
        a, change, rough = np.where(on & ~at_zero, z, 0.0), slope * on, _ROUGH * scale * on
    return np.concatenate(states)


def step_inside(
    net: ReluNetwork,
    pattern: NDArray[np.bool_],
    x: Array,
    u: Array,
    box: Box | None,
    size: float = 0.0,
) -> Located | None:
    """Step from x along u, half way to the first side of the pattern's cell.

    Returns:
        The cell, or None if a fold through x runs along u: then another direction may do.
    """
    units, sides = varying_sides(net, pattern)
    slack, speed = -(sides[:, :-1] @ x + sides[:, -1]), sides[:, :-1] @ u
    size = max(size, float(np.abs(x).max()))
    along = speed > -SAME * float(np.linalg.norm(u))
    if np.any((np.abs(slack) <= RESOLUTION * size) & along):
        return None
    if box is not None:
        slack = np.concatenate([slack, x - box.lower, box.upper - x])
        speed = np.concatenate([speed, -u, u])
    ahead = speed > 0.0
    reach = float(np.min(slack[ahead] / speed[ahead], initial=2.0 * max(size, 1.0)))
    inner = x + reach / 2 * u
    inside = bool(np.min(-(sides[:, :-1] @ inner + sides[:, -1]), initial=np.inf) > 0.0)
    if box is not None:
        inside &= bool(np.all((inner > box.lower) & (inner < box.upper)))
    return Located(pattern, inner, units, sides) if inside else None


def locate(net: ReluNetwork, x: Array, box: Box | None) -> Located:
    """Return a full-dimensional cell that contains x, by the rule of :func:`region_at`."""
    zero_is_on = pattern_along(net, x, np.zeros_like(x))
    units, sides = varying_sides(net, zero_is_on)
    slack = -(sides[:, :-1] @ x + sides[:, -1])
    tight = sides[slack <= RESOLUTION * float(np.abs(x).max()), :-1]
    inward = np.zeros_like(x) if box is None else _inward(x, box)
    found = None
    if len(tight):
        direction = _into(tight, inward)
        if direction is not None:
            found = step_inside(net, zero_is_on, x, direction, box)
    elif box is None or not inward.any():
        return Located(zero_is_on, x, units, sides)
    else:
        found = step_inside(net, zero_is_on, x, box.center - x, box)
    rng = np.random.default_rng(0)
    for _ in range(_DIRECTIONS):
        if found is not None:
            return found
        u = rng.standard_normal(len(x))
        u = np.where(inward != 0.0, inward * np.abs(u), u)
        found = step_inside(net, pattern_along(net, x, u), x, u, box)
    raise ArithmeticError("no cell with an interior was found at this point; folds there are too close.")


def varying_sides(net: ReluNetwork, pattern: NDArray[np.bool_]) -> tuple[NDArray[np.int64], Array]:
    """Return the units that vary where the pattern holds, and their half-spaces as unit rows."""
    G, g = unit_forms(net, pattern)
    units = np.flatnonzero(varying_units(net, pattern, G))
    scale = np.where(pattern[units], -1.0, 1.0) / np.linalg.norm(G[units], axis=1)
    return units, np.column_stack([G[units], g[units]]) * scale[:, None]


def _inward(x: Array, box: Box) -> Array:
    """Return the signs of directions that lead off the sides of the box that x lies on (0: none)."""
    span = box.upper - box.lower
    if span.min() <= 0.0:
        flat = int(np.argmin(span))
        raise ValueError(f"the box is flat in coordinate {flat}; cells need a box with an interior.")
    return (x - box.lower <= RESOLUTION * span) * 1.0 - (box.upper - x <= RESOLUTION * span) * 1.0


def _into(tight: Array, inward: Array) -> Array | None:
    """Return a direction that leads strictly inside all tight rows and off the box's sides, if any."""
    from scipy.optimize import linprog

    d = tight.shape[1]
    on_side = np.flatnonzero(inward)
    rows = np.concatenate([tight, -inward[on_side, None] * np.eye(d)[on_side]])
    cost = np.zeros(d + 1)
    cost[-1] = -1.0
    bounds = [(-1.0, 1.0)] * (d + 1)
    found = linprog(
        cost,
        np.column_stack([rows, np.ones(len(rows))]),
        np.zeros(len(rows)),
        bounds=bounds,
        options=LP_OPTIONS,
    )
    return found.x[:-1] if found.status == 0 and found.x[-1] > SAME else None
