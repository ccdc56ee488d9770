r"""Approximate any function on a box by a network of few hidden layers, to a tolerance in the q-norm.

The network interpolates: in one variable between knots that are dense where the function bends, in two
or three on a regular grid. It has :math:`\lceil \log_2(n + 1) \rceil` hidden layers, and outside the
box it falls to 0 within one step of the grid.

The error is measured, on points between the knots, not proved: a black box can hide a spike between any
two points.

On a grid, cubes are cut into n! simplices by the order of the coordinates inside them (Kuhn). The hat
over a grid point is then, in units of the grid and seen from the point,

.. math:: \max\{0, 1 - A(u)\} = \max\{1, A(u)\} - A(u), \qquad
    A(u) = \max\{0, u_1, \dots, u_n\} + \max\{0, -u_1, \dots, -u_n\} ,

a signed sum of maxima. It is brought to n + 1 maps each once, for all points of the grid.

Mukherjee 2020, Theorem 2.2.3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import ceil, inf, isinf
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.box import Box
from pindown.circuits._radon import Map, reduced_sets
from pindown.circuits.max_affine import hinge_network
from pindown.circuits.piecewise_1d import PiecewiseLinear1D, compile_1d
from pindown.circuits.tuning import (
    AIMED_SHARE,
    FIRST_INTERVALS,
    GRID_PROBES,
    INTERVAL_PROBES,
    MAX_APPROXIMATION_INPUTS,
    REFINED_SHARE,
)
from pindown.network import ReluNetwork
from pindown.validation import number, positive, refuse

Target = Callable[[Array], ArrayLike]
# Coefficients are sums and differences of a few values: what is left below this is rounding.
_CANCELLED = 2.0**-46


@dataclass(frozen=True)
class Approximation:
    """A network near a function, and how near.

    Attributes:
        network: The network.
        error: Distance on the box in the q-norm, measured on a finer set of points than was built on.
        tol: What was asked for.
        q: The norm.
        n_values: Values of the function that the network interpolates.
        box: The box.
    """

    network: ReluNetwork = field(repr=False)
    error: float
    tol: float
    q: float
    n_values: int
    box: Box

    def __str__(self) -> str:
        return (
            f"error {self.error:.2g} in the {self.q:g}-norm (measured; {self.tol:g} asked for) with "
            f"{self.network.size:,} ReLUs in {self.network.depth - 1} hidden layers"
        )


def approximate(
    f: Target,
    box: Box | tuple[ArrayLike, ArrayLike],
    tol: float,
    q: float = 2.0,
    *,
    uniformly_continuous: bool = False,
    max_values: int = 200_000,
) -> Approximation:
    r"""Return a network whose distance from f on a box is at most ``tol``, as measured.

    .. math:: \Big( \int_{\text{box}} |f - g|^q \Big)^{1/q} \le \text{tol}

    Args:
        f: Takes rows (N, n) and returns N numbers.
        box: A box in one, two or three dimensions, with interior.
        tol: The tolerance.
        q: The norm, from 1 to infinity.
        uniformly_continuous: Declares that f is; the maximum norm needs it, because no continuous
            function comes nearer to a jump than half its height.
        max_values: Give up beyond this many values of f in the network.

    Raises:
        ValueError: If an argument does not fit, f gives no finite numbers, or the tolerance is out of
            reach.

    Example:
        >>> found = approximate(np.sin, (0, 2 * np.pi), tol=1e-3, q=1)
        >>> found.error <= 1e-3, found.network.depth, found.network.size < 150
        (True, 2, True)

    Mukherjee 2020, Theorem 2.2.3, which is printed for infinite q as well; there it fails.
    """
    domain = _checked_box(box)
    if not callable(f):
        raise TypeError(f"f must be a function of rows (N, n); got {type(f).__name__}.")
    tol, q = positive("tol", tol), number("q", q, 1.0, infinite=True)
    if isinf(q) and not uniformly_continuous:
        raise ValueError(
            "in the maximum norm only uniformly continuous functions can be approximated; say "
            "uniformly_continuous=True if f is, or take a finite q."
        )
    if domain.dim == 1:
        return _on_interval(f, domain, tol, q, max_values)
    return _on_grid(f, domain, tol, q, max_values)


def _on_interval(f: Target, box: Box, tol: float, q: float, max_values: int) -> Approximation:
    knots = np.linspace(box.lower[0], box.upper[0], FIRST_INTERVALS + 1)
    values = _values(f, knots[:, None])
    probes = INTERVAL_PROBES
    while True:
        errors = _interval_errors(f, knots, values, q, probes)
        if _norm(errors, q) <= AIMED_SHARE * tol:
            confirmed = _norm(_interval_errors(f, knots, values, q, 4 * probes), q)
            if confirmed <= tol:
                break
            probes *= 2  # the function is rougher than these points show
            continue
        split = np.flatnonzero(errors >= REFINED_SHARE ** (1 / q) * errors.max())
        middles = knots[split] + (knots[split + 1] - knots[split]) / 2
        splittable = (middles > knots[split]) & (middles < knots[split + 1])
        _require_within(len(knots) + len(split) if splittable.all() else inf, max_values, tol)
        new = _values(f, middles[:, None])
        knots, values = np.insert(knots, split + 1, middles), np.insert(values, split + 1, new)
    left, right = 2 * knots[0] - knots[1], 2 * knots[-1] - knots[-2]
    g = PiecewiseLinear1D.from_points([left, *knots, right], [0.0, *values, 0.0])
    net = cast(ReluNetwork, compile_1d(g))
    return Approximation(net, confirmed, tol, q, len(knots), box)


def _interval_errors(f: Target, knots: Array, values: Array, q: float, probes: int) -> Array:
    """Return the q-norm of the error on each interval."""
    t = (np.arange(probes) + 0.5) / probes
    lengths = np.diff(knots)
    points = knots[:-1, None] + lengths[:, None] * t
    line = values[:-1, None] * (1 - t) + values[1:, None] * t
    gaps = np.abs(_values(f, points.reshape(-1, 1)).reshape(points.shape) - line)
    return _norms(gaps, q) * (1.0 if isinf(q) else lengths ** (1 / q))


def _on_grid(f: Target, box: Box, tol: float, q: float, max_values: int) -> Approximation:
    n, cells = box.dim, 2
    while True:
        _require_within((cells + 1) ** n, max_values, tol)
        axes = [
            np.linspace(low, high, cells + 1) for low, high in zip(box.lower, box.upper, strict=True)
        ]
        nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
        values = _values(f, nodes.reshape(-1, n)).reshape(nodes.shape[:-1])
        error = _grid_error(f, box, values, q, GRID_PROBES)
        if error <= AIMED_SHARE * tol:
            error = _grid_error(f, box, values, q, 2 * GRID_PROBES - 1)
            if error <= tol:
                return Approximation(grid_network(values, box), error, tol, q, values.size, box)
        # The error of a smooth function falls with the square of the spacing.
        wanted = cells * (error / (AIMED_SHARE * tol)) ** 0.5
        cells = max(cells + 1, min(4 * cells, ceil(wanted) if np.isfinite(wanted) else 4 * cells))


def _grid_error(f: Target, box: Box, values: Array, q: float, probes: int) -> float:
    """Return the error on probes that are spread evenly over all cells, in layers of the first axis."""
    n, cells = values.ndim, values.shape[0] - 1
    t = (np.arange(cells * probes) + 0.5) / probes
    spacing = (box.upper - box.lower) / cells
    others = np.stack(np.meshgrid(*[t] * (n - 1), indexing="ij"), axis=-1).reshape(-1, n - 1)
    slices = []
    for first in t:
        points = np.column_stack([np.full(len(others), first), others])
        gaps = np.abs(_values(f, box.lower + points * spacing) - interpolate(values, points))
        slices.append(float(_norms(gaps[None], q)[0]))
    mean = float(_norms(np.array([slices]), q)[0])
    return mean if isinf(q) else mean * float(np.prod(box.upper - box.lower)) ** (1 / q)


def _norms(gaps: Array, q: float) -> Array:
    """Return for each row the q-th root of the mean q-th power, without underflow."""
    largest = gaps.max(axis=1)
    if isinf(q):
        return np.asarray(largest)
    shares = gaps / np.where(largest > 0, largest, 1.0)[:, None]
    return np.asarray(largest * (shares**q).mean(axis=1) ** (1 / q))


def _norm(errors: Array, q: float) -> float:
    """Return the q-norm on the whole interval from those on its parts."""
    return float(_norms(errors[None], q)[0]) * (1.0 if isinf(q) else len(errors) ** (1 / q))


def _values(f: Target, points: Array) -> Array:
    found = np.asarray(f(points), dtype=np.float64).ravel()
    if len(found) != len(points):
        raise ValueError(
            f"f must return one number for each row; got {len(found)} for {len(points)} rows."
        )
    if not np.isfinite(found).all():
        where = points[np.argmin(np.isfinite(found))]
        raise ValueError(f"f must be finite on the box; it is not at {where.tolist()}.")
    return found


def _require_within(count: float, most: int, tol: float) -> None:
    if count > most:
        raise ValueError(
            f"tol={tol:g} is not reached with max_values={most} values; raise it or the tolerance. In "
            "the maximum norm a jump is never approximated, whatever the size."
        )


def _checked_box(box: Box | tuple[ArrayLike, ArrayLike]) -> Box:
    domain = box if isinstance(box, Box) else Box(*(np.atleast_1d(side) for side in box))
    if domain.dim > MAX_APPROXIMATION_INPUTS:
        refuse("box", f"of at most {MAX_APPROXIMATION_INPUTS} dimensions", domain)
    if np.any(domain.lower == domain.upper):
        refuse("box", "a box with interior", domain)
    return domain


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
