r"""Point location: the cell at a point, or next to it in a direction, and a point inside that cell.

For a small step t > 0 along u, unit i is :math:`z_i(x) + t\,\dot z_i(x; u)` with the one-sided
derivative :math:`\dot z` (forward mode, layer by layer). It is on if :math:`z_i > 0`, or if
:math:`z_i = 0` and :math:`\dot z_i > 0`, or if both vanish: then it is zero all along, and zero counts
as on. Where a pattern holds, what enters each ReLU is an affine function of the input,

.. math::
    z_l(x) = W_l D_{l-1} W_{l-1} \cdots D_1 W_1 x + \text{const},

with :math:`D_l` the 0/1 diagonal matrix of layer l's states; its zero set bounds the cell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array, dense
from pindown.box import Box
from pindown.geometry.nearness import RESOLUTION, SAME
from pindown.geometry.tuning import INWARD_DIRECTIONS
from pindown.network import ReluNetwork
from pindown.programs import EXACT, linear_program

# A number that came out as a is wrong by some units in the last place of the terms it was summed from,
# not of a itself; in a scale that is multiplied by RESOLUTION they count with this share: 2^-48 in all.
_ROUGH = 2.0**-8


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
    for _ in range(INWARD_DIRECTIONS):
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
    d = tight.shape[1]
    on_side = np.flatnonzero(inward)
    rows = np.concatenate([tight, -inward[on_side, None] * np.eye(d)[on_side]])
    cost = np.zeros(d + 1)
    cost[-1] = -1.0
    found = linear_program(
        cost,
        np.column_stack([rows, np.ones(len(rows))]),
        np.zeros(len(rows)),
        lower=-1.0,
        upper=1.0,
        attempts=EXACT,
    )
    if not found.solved or found.x is None or found.x[-1] <= SAME:
        return None
    return found.x[:-1]


def unit_forms(
    net: ReluNetwork, pattern: NDArray[np.bool_], units: NDArray[np.int64] | None = None
) -> tuple[Array, Array]:
    r"""Return :math:`(G, g)` with :math:`z_i(x) = G_i x + g_i` for units i where the pattern holds.

    Args:
        net: The network.
        pattern: Which units are on, (size,).
        units: Which rows to return, ascending or not; all when not given.

    Returns:
        ``G`` (len(units), d) and ``g`` (len(units),).

    >>> net = ReluNetwork.from_layers([([[1.0], [1.0]], [0, -1]), ([[1.0, -1.0]], [-3]), ([[1.0]], [0])])
    >>> G, g = unit_forms(net, np.array([True, False, True]))
    >>> G.ravel(), g
    (array([1., 1., 1.]), array([ 0., -1., -3.]))
    """
    wanted = np.arange(net.size) if units is None else np.asarray(units, dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(net.hidden_widths)]).astype(np.int64)
    owner = np.searchsorted(starts, wanted, side="right") - 1
    # From the deepest layer down, rows of shallower layers join on the way: wanted rows only.
    order = np.argsort(-owner, kind="stable")
    G, g = np.zeros((0, net.in_features)), np.zeros(0)
    masks = net.by_layer(pattern)
    for level in range(len(masks) - 1, -1, -1):
        layer = net.layers[level]
        chosen = wanted[order[owner[order] == level]] - starts[level]
        if len(g):
            rows = G * masks[level]
            g = g + rows @ layer.bias
            G = layer.pull_back(rows)
        G = np.concatenate([G.reshape(len(g), layer.in_features), dense(layer.weight[chosen])])
        g = np.concatenate([g, layer.bias[chosen]])
    back = np.empty(len(wanted), dtype=np.int64)
    back[order] = np.arange(len(wanted))
    return G[back], g[back]


def unit_halfspaces(net: ReluNetwork, pattern: NDArray[np.bool_], units: NDArray[np.int64]) -> Array:
    """Return unit rows [a, b] of the sides that the units give a cell; constant units give zero rows."""
    G, g = unit_forms(net, pattern, units)
    signs = np.where(pattern[units], -1.0, 1.0)
    lengths = np.linalg.norm(G, axis=1)
    scale = signs / np.where(lengths > 0.0, lengths, 1.0)
    return np.column_stack([G, g]) * scale[:, None]


def varying_units(net: ReluNetwork, pattern: NDArray[np.bool_], G: Array) -> NDArray[np.bool_]:
    r"""Return which units change at all where the pattern holds, (size,).

    :math:`G_i` is a sum over the units of the layer below; where it is smaller than ``RESOLUTION``
    times the sum of its terms' lengths, the terms cancelled and rounding is all that is left.

    Args:
        net: The network.
        pattern: Which units are on, (size,).
        G: The gradients of all units from :func:`unit_forms`, (size, d).

    >>> net = ReluNetwork.from_layers([([[0.1], [0.3]], [0, 0]), ([[3.0, -1.0]], [1]), ([[1.0]], [0])])
    >>> varying_units(net, np.ones(3, bool), unit_forms(net, np.ones(3, bool))[0])
    array([ True,  True, False])
    """
    lengths = np.linalg.norm(G, axis=1)
    scales = [np.zeros(0)]
    below = None
    for layer, length, on in zip(net.layers, net.by_layer(lengths), net.by_layer(pattern), strict=False):
        scales.append(length if below is None else np.asarray(abs(layer.weight) @ below))
        below = length * on
    scale = np.concatenate(scales)
    return (lengths > RESOLUTION * scale) & (lengths > 0.0)
