r"""Piecewise linear interpolation on a regular grid, and its network.

Cubes of the grid are cut into n! simplices by the order of the coordinates inside them (Kuhn). The hat
over a grid point is then, in units of the grid and seen from the point,

.. math:: \max\{0, 1 - A(u)\} = \max\{1, A(u)\} - A(u), \qquad
    A(u) = \max\{0, u_1, \dots, u_n\} + \max\{0, -u_1, \dots, -u_n\} ,

a signed sum of maxima. It is brought to n + 1 maps each once, for all points of the grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.box import Box
from pindown.circuits.max_affine import hinge_network
from pindown.circuits.radon import Map, reduced_sets
from pindown.network import ReluNetwork

# Coefficients are sums and differences of a few values: what is left below this is rounding.
_CANCELLED = 2.0**-46


def interpolate(values: Array, points: Array) -> Array:
    """Evaluate the interpolant of grid values at points in units of the grid.

    Args:
        values: Values at the grid points, one axis for each variable.
        points: Rows (N, n) with coordinate i between 0 and ``values.shape[i] - 1``.

    >>> interpolate(np.array([[0.0, 0.0], [0.0, 1.0]]), np.array([[0.5, 0.25]]))
    array([0.25])
    """
    n = values.ndim
    corner = np.minimum(points.astype(np.int64), np.array(values.shape) - 2)
    inside = points - corner
    order = np.argsort(-inside, axis=1, kind="stable")
    largest = np.take_along_axis(inside, order, axis=1)
    # Walk from the lower corner along the coordinates, the largest first: one edge of the cube each.
    weights = -np.diff(largest, prepend=1.0, append=0.0, axis=1)
    total = weights[:, 0] * values[tuple(corner.T)]
    for k in range(n):
        corner[np.arange(len(points)), order[:, k]] += 1
        total += weights[:, k + 1] * values[tuple(corner.T)]
    return np.asarray(total)


def grid_network(values: Array, box: Box) -> ReluNetwork:
    r"""Return the network of the interpolant; outside the box it falls to 0 within one cell of the grid.

    Args:
        values: Values at the points of a regular grid over the box, both ends included.
        box: The box.

    Returns:
        A network with :math:`\lceil \log_2 (n + 1) \rceil` hidden layers.

    >>> peak = grid_network(np.array([[0.0, 0, 0], [0, 5, 0], [0, 0, 0]]), Box.cube(2, -1, 1))
    >>> peak([[0.0, 0.0], [0.5, 0.0], [1.0, 1.0]]).ravel(), peak.depth
    (array([5. , 2.5, 0. ]), 3)
    """
    n = values.ndim
    affine = np.zeros(n + 1)
    hinges: dict[tuple[Map, ...], float] = {}
    nodes = np.array(list(np.ndindex(values.shape)), dtype=np.int64)
    heights = values.ravel()
    for c, base, others in hat_terms(n):
        moved = base[-1] - nodes @ np.array(base[:-1])
        affine[:-1] += c * heights.sum() * np.array(base[:-1])
        affine[-1] += c * float(heights @ moved)
        if others:
            _add_hinges(hinges, others, nodes, c * heights)
    scale = float(np.abs(heights).max(initial=0.0))
    kept = {key: c for key, c in hinges.items() if abs(c) > _CANCELLED * scale}
    net = hinge_network(affine.tolist(), kept)
    spacing = (box.upper - box.lower) / (np.array(values.shape) - 1)
    to_grid = ReluNetwork.from_layers([(np.diag(1 / spacing), -box.lower / spacing)])
    return cast(ReluNetwork, net) @ to_grid


@lru_cache
def hat_terms(n: int) -> tuple[tuple[int, tuple[int, ...], tuple[tuple[int, ...], ...]], ...]:
    r"""Return the hat over the origin as :math:`\sum c\,(\ell + \max\{0, d_1, \dots, d_m\})`.

    Each term is ``(c, l, (d_1, ..., d_m))`` with maps in integers and m <= n.

    Its value at the origin, where a map is its last number:

    >>> sum(c * (base[-1] + max([0, *(d[-1] for d in others)])) for c, base, others in hat_terms(2))
    1
    """
    unit = [tuple(int(i == k) for i in range(n)) for k in range(n)]
    minus = [tuple(-v for v in u) for u in unit]
    zero = (0,) * n
    pairs = product([zero, *unit], [zero, *minus])
    both = {tuple(a + b for a, b in zip(u, v, strict=True)) for u, v in pairs}
    sets = [
        (-1, [(*g, 0) for g in (zero, *unit)]),
        (-1, [(*g, 0) for g in (zero, *minus)]),
        (1, [(*zero, 1), *((*g, 0) for g in sorted(both - {zero}))]),
    ]
    maps = sorted({row for _, rows in sets for row in rows})
    exact = [tuple(Fraction(v) for v in row) for row in maps]
    terms = [(c, tuple(sorted(maps.index(row) for row in rows))) for c, rows in sets]
    found: dict[Any, int] = {}
    for chosen, c in reduced_sets(exact, terms).items():
        base, *others = sorted(maps[i] for i in chosen)
        key = base, tuple(tuple(u - v for u, v in zip(row, base, strict=True)) for row in others)
        found[key] = found.get(key, 0) + int(c)
    return tuple((c, base, others) for (base, others), c in found.items() if c)


def _add_hinges(
    hinges: dict[tuple[Map, ...], float],
    others: Sequence[tuple[int, ...]],
    nodes: NDArray[np.int64],
    heights: Array,
) -> None:
    """Add one term of the hat for every node; hinges that nodes share are merged."""
    shifts = np.stack([row[-1] - nodes @ np.array(row[:-1]) for row in others], axis=1)
    places, which = np.unique(shifts, axis=0, return_inverse=True)
    sums = np.bincount(which.ravel(), weights=heights, minlength=len(places))
    for place, c in zip(places.tolist(), sums.tolist(), strict=True):
        key = tuple((*row[:-1], b) for row, b in zip(others, place, strict=True))
        hinges[key] = hinges.get(key, 0.0) + c
