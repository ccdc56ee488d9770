"""Across the facets of a cell: which cells are next to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.box import Box
from pindown.geometry.regions.facet_points import facet_points
from pindown.geometry.regions.inner_point import pattern_along, step_inside
from pindown.geometry.regions.region import Region, bounded_region
from pindown.network import ReluNetwork


def neighbours(region: Region) -> list[Region]:
    """Return the cell across each facet, in the order of ``facets``; sides of the box have none.

    Only units that vanish on a facet can switch there. Each one is on or off by its slope beyond, found
    layer by layer: the slope of a deeper unit may change where a shallower one switches.

    >>> from pindown.geometry.regions.region import region_at
    >>> net = ReluNetwork.from_layers([([[1.0], [-2.0]], [0, 0]), ([[1.0, 1.0]], [0])])
    >>> [other.pattern.tolist() for other in neighbours(region_at(net, [1.0]))]
    [[False, True]]
    """
    return list(iter_neighbours(region))


def iter_neighbours(region: Region) -> Iterator[Region]:
    """Yield what :func:`neighbours` lists, one at a time."""
    for crossing in crossings(region):
        yield crossing.region()


class Crossing(NamedTuple):
    """A way out of a cell through one facet.

    Attributes:
        net: The network.
        box: The box or None.
        label: Of the facet.
        pattern: Of the cell across, (size,).
        point: On the facet and on no other, (d,).
        outward: The facet's unit normal, (d,).
        size: How large the numbers were that the point was computed from.
    """

    net: ReluNetwork
    box: Box | None
    label: int
    pattern: NDArray[np.bool_]
    point: Array
    outward: Array
    size: float

    def region(self) -> Region:
        """Return the cell across; finding its facets is what takes time."""
        located = step_inside(self.net, self.pattern, self.point, self.outward, self.box, self.size)
        if located is None:
            raise ArithmeticError(
                f"no cell was found across the fold of unit {self.label}; it is too thin."
            )
        return bounded_region(self.net, self.box, located)


def crossings(region: Region) -> Iterator[Crossing]:
    """Yield the ways out of a cell, one for each facet that is not a side of the box."""
    net, box = region.net, region.box
    which = np.flatnonzero(region.facets < net.size)
    sides = region.halfspaces[which]
    points = facet_points(sides, region.inner, box)
    near = float(np.abs(region.inner).max())
    for label, side, point in zip(region.facets[which], sides, points, strict=True):
        outward, size = side[:-1], max(near, float(np.abs(point).max()))
        pattern = pattern_along(net, point, outward, size)
        yield Crossing(net, box, int(label), pattern, point, outward, size)
