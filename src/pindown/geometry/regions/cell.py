r"""Convex cells :math:`\{x : a_i \cdot x + b_i \le 0\}`: corners, volume, centre, membership.

A cell is kept as half-spaces, rows :math:`[a_i, b_i]` in SciPy's convention. Everything else follows
from them: corners in one and two dimensions by sorting, above that by Qhull; centres and emptiness
by linear programs, in any dimension.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.box import Box
from pindown.geometry.nearness import SAME
from pindown.geometry.tuning import MAX_CORNER_DIM
from pindown.programs import EXACT, LP_TOLERANCE, linear_program


@dataclass(frozen=True, eq=False, repr=False)
class Cell:
    r"""The convex set :math:`\{x \in R^d : a_i \cdot x + b_i \le 0,\ i = 1..m\}`.

    Attributes:
        halfspaces: Rows :math:`[a_i, b_i]`, shape (m, d + 1), scaled to :math:`\|a_i\| = 1`; read-only.

    Example:
        The triangle below the line x + y = 1:

        >>> cell = Cell([[-1, 0, 0], [0, -1, 0], [1, 1, -1]])
        >>> cell.vertices.round(6)
        array([[0., 0.],
               [1., 0.],
               [0., 1.]])
        >>> cell.volume, cell.contains([0.2, 0.2]).item()
        (0.5, True)
        >>> cell
        Cell(2 dimensions, 3 half-spaces)
    """

    halfspaces: Array

    def __init__(self, halfspaces: ArrayLike) -> None:
        object.__setattr__(self, "halfspaces", _unit_rows(halfspaces))

    @classmethod
    def from_box(cls, box: Box) -> Cell:
        """Return the box as a cell, sides in the order x_1 >= l_1, x_1 <= u_1, x_2 >= l_2, ...

        >>> Cell.from_box(Box([0, 0], [1, 2])).volume
        2.0
        """
        return cls(box_halfspaces(box))

    @classmethod
    def from_vertices(cls, points: ArrayLike) -> Cell:
        """Return the convex hull of points (n, d).

        >>> Cell.from_vertices([[0, 0], [2, 0], [0, 2], [0.5, 0.5]]).volume
        2.0
        """
        from pindown.geometry.regions._hull import hull_halfspaces

        return cls(hull_halfspaces(points))

    @property
    def dim(self) -> int:
        """Dimension d of the space the cell lies in."""
        return self.halfspaces.shape[1] - 1

    @cached_property
    def chebyshev(self) -> tuple[Array, float]:
        """Centre and radius of a largest ball inside; see :func:`chebyshev_ball`."""
        return chebyshev_ball(self.halfspaces)

    @cached_property
    def _ball(self) -> tuple[Array, float]:
        """The same, with a negative radius for an empty cell."""
        return _largest_ball(self.halfspaces)

    @property
    def is_empty(self) -> bool:
        """Whether no point lies in the cell (violated by more than rounding everywhere)."""
        center, radius = self._ball
        return radius < -flat_radius(center)

    @property
    def is_full_dimensional(self) -> bool:
        """Whether the cell has an interior."""
        center, radius = self._ball
        return radius > flat_radius(center)

    def contains(self, X: ArrayLike) -> NDArray[np.bool_]:
        """Return for each row (n, d), or for one point (d,), whether it lies in the closed cell."""
        return inside(self.halfspaces, X)

    @cached_property
    def vertices(self) -> Array:
        """Corners (V, d): ascending in 1-D, counter-clockwise in 2-D, in no special order above.

        Raises:
            ValueError: If the cell is empty, flat or unbounded, or d is above MAX_CORNER_DIM.
        """
        from pindown.geometry.regions._hull import corners

        _require_listable(self.dim)
        center, _ = _require_interior(self._ball)
        vertices = corners(self.halfspaces, center)
        vertices.flags.writeable = False
        return vertices

    @cached_property
    def volume(self) -> float:
        """Length, area, volume, ... in d dimensions; 0 for a flat or empty cell."""
        from pindown.geometry.regions._hull import volume

        return volume(self.vertices) if self.is_full_dimensional else 0.0

    def irredundant(self) -> Cell:
        """Return the same set by its facets alone, in their order here.

        >>> Cell([[1, 0, -1], [-1, 0, 0], [0, 1, -1], [0, -1, 0], [1, 1, -5]]).irredundant()
        Cell(2 dimensions, 4 half-spaces)
        """
        from pindown.geometry.regions._redundancy import facet_rows

        center, _ = _require_interior(self._ball)
        return Cell(self.halfspaces[facet_rows(self.halfspaces, center)])

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draw n points of the cell: (n, d).

        Uniform and independent up to d = 5 (from a triangulation); above that a hit-and-run walk,
        uniform in the limit, whose successive points depend on each other.
        """
        from pindown.geometry.regions._hull import sample

        center, radius = _require_interior(self._ball)
        if radius == inf:
            raise ValueError("the cell is unbounded and has no uniform points; intersect it with a box.")
        return sample(self, center, n, rng)

    def __repr__(self) -> str:
        dims = "1 dimension" if self.dim == 1 else f"{self.dim} dimensions"
        return f"Cell({dims}, {len(self.halfspaces)} half-spaces)"


def box_halfspaces(box: Box) -> Array:
    """Return a box as (2d, d + 1) half-spaces: x_1 >= l_1, x_1 <= u_1, x_2 >= l_2, ..."""
    rows = np.zeros((2 * box.dim, box.dim + 1))
    i = np.arange(box.dim)
    rows[2 * i, i], rows[2 * i, -1] = -1.0, box.lower
    rows[2 * i + 1, i], rows[2 * i + 1, -1] = 1.0, -box.upper
    return rows


def inside(halfspaces: Array, X: ArrayLike) -> NDArray[np.bool_]:
    """Return for each point whether no half-space is violated by more than rounding."""
    points = np.asarray(X, dtype=np.float64)
    d = halfspaces.shape[1] - 1
    if points.shape[-1:] != (d,) or points.ndim > 2:
        raise ValueError(f"the cell has {d} dimensions; got points of shape {points.shape}.")
    allowed = SAME * (1.0 + np.abs(points).max(axis=-1, initial=0.0))
    outside = points @ halfspaces[:, :-1].T + halfspaces[:, -1]
    return outside.max(axis=-1, initial=-inf) <= allowed


def chebyshev_ball(halfspaces: Array) -> tuple[Array, float]:
    r"""Return the centre and radius of a largest ball inside the cell.

    .. math::
        \max r \quad\text{s.t.}\quad a_i \cdot x + \|a_i\| r + b_i \le 0 .

    Args:
        halfspaces: Unit rows (m, d + 1).

    Returns:
        The centre (d,) and the radius, which is 0 for a flat cell and infinite when balls of any
        size fit; the centre is then some point at distance 1 or more from all sides.

    Raises:
        ValueError: If the cell is empty.

    >>> chebyshev_ball(box_halfspaces(Box([0, 0], [2, 6])))[1]
    1.0
    """
    center, radius = _largest_ball(halfspaces)
    if radius < -flat_radius(center):
        raise ValueError("the cell is empty: its half-spaces have no common point.")
    return center, max(radius, 0.0)


def flat_radius(center: Array) -> float:
    """Return the radius at which a cell around ``center`` counts as flat."""
    return LP_TOLERANCE * (1.0 + float(np.abs(center).max(initial=0.0)))


def _largest_ball(halfspaces: Array) -> tuple[Array, float]:
    m, d = len(halfspaces), halfspaces.shape[1] - 1
    if m == 0:
        return np.zeros(d), inf
    cost = np.zeros(d + 1)
    cost[-1] = -1.0
    rows = np.column_stack([halfspaces[:, :-1], np.ones(m)])
    for highest in (inf, 1.0):  # balls of any size may fit: then one of radius 1 is asked for
        upper = np.append(np.full(d, inf), highest)
        found = linear_program(cost, rows, -halfspaces[:, -1], upper=upper, attempts=EXACT)
        if found.solved and found.x is not None:
            return found.x[:-1], float(found.x[-1]) if highest == inf else inf
    raise ValueError(f"no centre found ({found.message}); the half-spaces may be badly scaled.")


def _require_interior(ball: tuple[Array, float]) -> tuple[Array, float]:
    center, radius = ball
    flat = flat_radius(center)
    if radius < -flat:
        raise ValueError("the cell is empty: its half-spaces have no common point.")
    if radius <= flat:
        raise ValueError(f"the cell is flat: its largest ball has radius {max(radius, 0.0):.2g}.")
    return ball


def _require_listable(d: int) -> None:
    if d > MAX_CORNER_DIM:
        raise ValueError(
            f"corners are listed up to dimension {MAX_CORNER_DIM}; this cell has {d} (a cube there has "
            f"2^{d}). Use chebyshev, contains or sample, or cut the network with a plane first."
        )


def _unit_rows(halfspaces: ArrayLike) -> Array:
    rows = np.array(halfspaces, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] < 2:
        raise ValueError(f"half-spaces are rows [a, b] of shape (m, d + 1); got shape {rows.shape}.")
    if not np.isfinite(rows).all():
        raise ValueError("half-spaces must be finite; some entries are NaN or infinite.")
    lengths = np.linalg.norm(rows[:, :-1], axis=1)
    constant = lengths == 0.0
    if np.any(rows[constant, -1] > 0.0):
        raise ValueError("the cell is empty: a half-space reads 0 <= -b with b > 0.")
    rows = rows[~constant] / lengths[~constant, None]  # 0 <= 0 says nothing
    rows.flags.writeable = False
    return rows
