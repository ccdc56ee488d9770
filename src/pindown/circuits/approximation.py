r"""Approximate any function on a box by a network of few hidden layers, to a tolerance in the q-norm.

The network interpolates: in one variable between knots that are dense where the function bends, in two
or three on a regular grid. It has :math:`\lceil \log_2(n + 1) \rceil` hidden layers, and outside the
box it falls to 0 within one step of the grid.

The error is measured, on points between the knots, not proved: a black box can hide a spike between any
two points.

Mukherjee 2020, Theorem 2.2.3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil, inf, isinf
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.box import Box
from pindown.circuits.kuhn import grid_network, interpolate
from pindown.circuits.one_variable import compile_1d
from pindown.circuits.piecewise_1d import PiecewiseLinear1D
from pindown.network import ReluNetwork

Target = Callable[[Array], ArrayLike]

_MOST_INPUTS = 3
_FIRST_INTERVALS = 16
_PROBES = 32  # points in each interval while refining; the result is measured with four times as many
_GRID_PROBES = 5  # points along each side of a grid cell
_REFINED_SHARE = 0.25  # intervals with at least this share of the worst error are halved together
_MARGIN = 0.95  # of the tolerance, so that the finer measurement at the end confirms it


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
    if not (tol > 0 and np.isfinite(tol)):
        raise ValueError(f"tol must be a positive number; got {tol}.")
    if not q >= 1:
        raise ValueError(f"q must be at least 1 (or math.inf); got {q}.")
    if isinf(q) and not uniformly_continuous:
        raise ValueError(
            "in the maximum norm only uniformly continuous functions can be approximated; say "
            "uniformly_continuous=True if f is, or take a finite q."
        )
    if domain.dim == 1:
        return _on_interval(f, domain, tol, q, max_values)
    return _on_grid(f, domain, tol, q, max_values)


def _on_interval(f: Target, box: Box, tol: float, q: float, max_values: int) -> Approximation:
    knots = np.linspace(box.lower[0], box.upper[0], _FIRST_INTERVALS + 1)
    values = _values(f, knots[:, None])
    probes = _PROBES
    while True:
        errors = _interval_errors(f, knots, values, q, probes)
        if _norm(errors, q) <= _MARGIN * tol:
            confirmed = _norm(_interval_errors(f, knots, values, q, 4 * probes), q)
            if confirmed <= tol:
                break
            probes *= 2  # the function is rougher than these points show
            continue
        split = np.flatnonzero(errors >= _REFINED_SHARE ** (1 / q) * errors.max())
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
        error = _grid_error(f, box, values, q, _GRID_PROBES)
        if error <= _MARGIN * tol:
            error = _grid_error(f, box, values, q, 2 * _GRID_PROBES - 1)
            if error <= tol:
                return Approximation(grid_network(values, box), error, tol, q, values.size, box)
        # The error of a smooth function falls with the square of the spacing.
        wanted = cells * (error / (_MARGIN * tol)) ** 0.5
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
    if domain.dim > _MOST_INPUTS:
        raise ValueError(f"approximate takes up to {_MOST_INPUTS} inputs; the box has {domain.dim}.")
    if np.any(domain.lower == domain.upper):
        raise ValueError(f"approximate needs a box with interior; got {domain}.")
    return domain
