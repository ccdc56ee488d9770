r"""One cell of a network: where it is, what the network computes there, what bounds it.

On a cell every ReLU is on or off throughout. With D_l the 0/1 diagonal matrix of layer l,

.. math::
    z_l(x) = W_l D_{l-1} W_{l-1} \cdots D_1 W_1 x + \text{const}, \qquad f(x) = A x + c,

so the cell is convex: :math:`z_i(x) \ge 0` for units that are on, :math:`\le 0` for those off.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.box import Box, as_box
from pindown.geometry.nearness import SAME
from pindown.geometry.regions.cell import Cell, box_halfspaces, inside
from pindown.geometry.regions.point_location import Located, locate, unit_halfspaces, varying_sides
from pindown.io.accepting import on_network
from pindown.network import ReluNetwork


@dataclass(frozen=True, eq=False, repr=False)
class Region:
    r"""A full-dimensional cell of a network, cut to a box if one is given.

    Facet labels: ``0 .. size-1`` is the zero set of that unit (in the order of ``net.pattern``),
    ``size + 2i`` the side :math:`x_i \ge l_i` of the box and ``size + 2i + 1`` the side
    :math:`x_i \le u_i`.

    Attributes:
        net: The network.
        box: The box, or None for all of :math:`R^d`.
        pattern: Which units are on, shape (size,).
        facets: Labels of the irredundant facets, shape (m,).

    Example:
        Left of 1, right of 0, ``relu(x) - relu(x - 1)`` is x:

        >>> net = ReluNetwork.from_layers([([[1.0], [1.0]], [0, -1]), ([[1.0, -1.0]], [0])])
        >>> region = Region(net, None, [True, False], [0, 1])
        >>> region.A, region.c, region.vertices.ravel()
        (array([[1.]]), array([0.]), array([0., 1.]))
        >>> region
        Region(1 dimension, 1 of 2 units on, 2 facets)

    Phuong 2021, Lemma A.7.
    """

    net: ReluNetwork
    box: Box | None
    pattern: NDArray[np.bool_]
    facets: NDArray[np.int64]

    def __init__(
        self,
        net: ReluNetwork,
        box: Box | None,
        pattern: ArrayLike,
        facets: ArrayLike,
        vertices: ArrayLike | None = None,
    ) -> None:
        """Take the parts as given; ``vertices`` saves finding them when they are known already."""
        states, labels = np.array(pattern, dtype=bool), np.array(facets, dtype=np.int64).reshape(-1)
        if states.shape != (net.size,):
            raise ValueError(f"the pattern needs {net.size} entries; got shape {states.shape}.")
        top = net.size + (2 * net.in_features if box is not None else 0)
        if labels.size and not (labels.min() >= 0 and labels.max() < top):
            raise ValueError(
                f"facet labels go from 0 to {top - 1}; got {labels.min()} to {labels.max()}."
            )
        states.flags.writeable = labels.flags.writeable = False
        for name, value in (("net", net), ("box", box), ("pattern", states), ("facets", labels)):
            object.__setattr__(self, name, value)
        if vertices is not None:
            known = np.array(vertices, dtype=np.float64)
            known.flags.writeable = False
            self.__dict__["vertices"] = known  # where cached_property looks first

    @property
    def dim(self) -> int:
        """Dimension d of the input."""
        return self.net.in_features

    @cached_property
    def _map(self) -> tuple[Array, Array]:
        A, c = self.net.affine_of_pattern(self.pattern)
        A.flags.writeable = c.flags.writeable = False
        return A, c

    @property
    def A(self) -> Array:  # noqa: N802 - as in f(x) = A x + c
        """The matrix of the affine map, (k, d)."""
        return self._map[0]

    @property
    def c(self) -> Array:
        """The offset of the affine map, (k,)."""
        return self._map[1]

    @cached_property
    def halfspaces(self) -> Array:
        """Rows [a, b], a of unit length, with ``a . x + b <= 0`` inside, in the order of ``facets``."""
        size, d = self.net.size, self.dim
        rows = np.empty((len(self.facets), d + 1))
        of_unit = self.facets < size
        units = self.facets[of_unit]
        rows[of_unit] = unit_halfspaces(self.net, self.pattern, units)
        if self.box is not None:
            rows[~of_unit] = box_halfspaces(self.box)[self.facets[~of_unit] - size]
        rows.flags.writeable = False
        return rows

    @cached_property
    def cell(self) -> Cell:
        """The set alone, as a convex cell."""
        return Cell(self.halfspaces)

    @cached_property
    def vertices(self) -> Array:
        """Corners (V, d): ascending in 1-D, counter-clockwise in 2-D; an error when d is large."""
        return self.cell.vertices

    @cached_property
    def volume(self) -> float:
        """Length, area, volume, ... of the cell."""
        from pindown.geometry.regions._hull import volume

        return volume(self.vertices)

    @property
    def chebyshev(self) -> tuple[Array, float]:
        """Centre and radius of a largest ball in the cell."""
        return self.cell.chebyshev

    @cached_property
    def inner(self) -> Array:
        """A point strictly inside, (d,)."""
        return self.chebyshev[0]

    @cached_property
    def facet_units(self) -> tuple[NDArray[np.int64], ...]:
        """For each facet all units that vanish on it, ascending (none for a side of the box).

        Duplicated, opposite and parallel units share a facet; its label is one of them. Units that are
        zero on the whole cell are not listed.
        """
        units, sides = varying_sides(self.net, self.pattern)
        size = 1.0 + np.abs(sides[:, -1])
        found = []
        for label, row in zip(self.facets, self.halfspaces, strict=True):
            if label >= self.net.size:
                found.append(np.zeros(0, dtype=np.int64))
                continue
            gap = np.minimum(np.abs(sides - row).max(axis=1), np.abs(sides + row).max(axis=1))
            found.append(units[gap <= SAME * size])
        return tuple(found)

    def __call__(self, X: ArrayLike) -> Array:
        """Return ``A x + c``, whether or not x lies in the cell: (n, d) -> (n, k), (d,) -> (k,)."""
        points = np.asarray(X, dtype=np.float64)
        return points @ self.A.T + self.c

    def contains(self, X: ArrayLike) -> NDArray[np.bool_]:
        """Return for each row (n, d), or for one point (d,), whether it lies in the closed cell."""
        return inside(self.halfspaces, X)

    def distance_to_facets(self, X: ArrayLike) -> Array:
        """Return the signed distances to the facets' hyperplanes, positive inside: (d,) -> (m,)."""
        points = np.asarray(X, dtype=np.float64)
        return -(points @ self.halfspaces[:, :-1].T + self.halfspaces[:, -1])

    def __repr__(self) -> str:
        dims = "1 dimension" if self.dim == 1 else f"{self.dim} dimensions"
        on = int(self.pattern.sum())
        return f"Region({dims}, {on} of {self.net.size} units on, {len(self.facets)} facets)"


@on_network
def region_at(net: ReluNetwork, x: ArrayLike, box: Box | tuple[Any, Any] | None = None) -> Region:
    """Return the full-dimensional cell that contains x, with its irredundant facets.

    Where x lies on folds several cells contain it. The cell of ``net.pattern(x)``, which counts zero as
    on, is taken if it has an interior; otherwise the cell that a small step in a fixed generic direction
    (into the box) leads to.

    Args:
        net: The network.
        x: One input (d,), in the box.
        box: The box, a pair ``(lower, upper)``, or None for all of :math:`R^d`.

    Returns:
        The cell. Finding the facets takes milliseconds in a few dimensions, seconds for 784 inputs and a
        thousand units.

    Raises:
        ValueError: If x lies outside the box, or the box has no interior.

    >>> net = ReluNetwork.from_layers([([[1.0, 0.0], [0.0, 1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
    >>> region = region_at(net, [2.0, 3.0], box=(-5, 5))
    >>> region.facets, region.volume
    (array([0, 1, 3, 5]), 25.0)
    """
    rows, single = net.as_rows(x)
    if not single and len(rows) != 1:
        raise ValueError(
            f"region_at takes one input of {net.in_features} numbers; got {len(rows)} inputs."
        )
    limits = None if box is None else as_box(box, net.in_features)
    if limits is not None and not limits.contains(rows[0]):
        raise ValueError("x lies outside the box; there is no cell of the box that contains it.")
    return bounded_region(net, limits, locate(net, rows[0], limits))


def bounded_region(net: ReluNetwork, box: Box | None, located: Located) -> Region:
    """Return a located cell with its facets."""
    from pindown.geometry.regions._polar import deep_point
    from pindown.geometry.regions._redundancy import facet_rows

    inner = deep_point(located.sides, located.inner, box)
    rows = facet_rows(located.sides, inner, box)
    m = len(located.units)
    labels = np.concatenate([located.units[rows[rows < m]], net.size + rows[rows >= m] - m])
    region = Region(net, box, located.pattern, labels)
    region.__dict__["inner"] = inner  # where cached_property looks first
    return region
