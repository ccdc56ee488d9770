r"""Convex cells in exact integers: vertices with signs, and how to cut them.

A vertex is held in homogeneous integers :math:`(X_1, \dots, X_d, D)` with :math:`D > 0`, the point
:math:`X / D`. The sign of an integer affine form there needs no division. Bits of the masks below
are facet labels: unit j has bit j, the box sides follow after all units.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import reduce
from itertools import product
from math import gcd, lcm
from operator import mul, or_

from pindown.box import Box

Form = Sequence[int]
r"""An affine form :math:`a \cdot x + b` as the integers ``(a_1, ..., a_d, b)``."""


class Vertex:
    """A point with the exact sign of every unit there, as far as units have been looked at.

    The signs belong to the point, not to a cell: the network is continuous, so all cells that meet
    here agree on them and share this object.

    Attributes:
        point: Homogeneous integers, the last one positive, without a common factor.
        positive: Bits of the units that are > 0 here.
        negative: Bits of the units that are < 0 here.
        tight: Bits of the units that are 0 here and of the box sides that hold the point.
        layers: How many hidden layers the signs cover.
    """

    __slots__ = ("layers", "negative", "point", "positive", "tight")

    def __init__(self, point: tuple[int, ...], positive: int, negative: int, tight: int, layers: int):
        self.point = point
        self.positive = positive
        self.negative = negative
        self.tight = tight
        self.layers = layers

    def see(self, bits: list[int], values: list[int]) -> None:
        """Note the signs of the units with these bits."""
        for bit, value in zip(bits, values, strict=True):
            if value > 0:
                self.positive |= bit
            elif value < 0:
                self.negative |= bit
            else:
                self.tight |= bit

    @property
    def fractions(self) -> tuple[Fraction, ...]:
        """The coordinates as rational numbers."""
        *numerators, denominator = self.point
        return tuple(Fraction(x, denominator) for x in numerators)


Cell = list[Vertex]


def value_at(form: Form, vertex: Vertex) -> int:
    """Return a positive multiple of the affine form's value at the vertex."""
    return sum(map(mul, form, vertex.point))


def corners(box: Box, first_bit: int) -> Cell:
    """Return the corners of a box; side ``2 i`` is ``x_i >= lower_i``, ``2 i + 1`` the other."""
    sides = [(float(low), float(high)) for low, high in zip(box.lower, box.upper, strict=True)]
    cell = []
    for choice in product((0, 1), repeat=box.dim):
        point = homogeneous(Fraction(side[c]) for side, c in zip(sides, choice, strict=True))
        tight = sum(1 << (first_bit + 2 * i + c) for i, c in enumerate(choice))
        cell.append(Vertex(point, 0, 0, tight, 0))
    return cell


def homogeneous(coordinates: Iterable[Fraction]) -> tuple[int, ...]:
    """Return a rational point in homogeneous integers.

    >>> homogeneous([Fraction(1, 2), Fraction(1, 3)])
    (3, 2, 6)
    """
    x = list(coordinates)
    denominator = lcm(*(c.denominator for c in x))
    return (*(int(c * denominator) for c in x), denominator)


def cut(
    cell: Cell, bit: int, form: Form, known: int, layers: int, finish: Callable[[Vertex], None]
) -> tuple[Cell, Cell]:
    """Cut a cell by a unit that is positive at one of its vertices and negative at another.

    Args:
        cell: The vertices of a full-dimensional polytope.
        bit: The unit's bit; its sign is known at all vertices.
        form: The unit's affine form on the cell.
        known: Bits of the inequalities that hold on all of the cell, its facets among them.
        layers: How many hidden layers the signs of new vertices will cover.
        finish: Adds to a new vertex the signs of the units that are not in ``known``.

    Returns:
        The part where the unit is >= 0 and the part where it is <= 0, both full-dimensional.
    """
    plus: Cell = []
    minus: Cell = []
    rest: Cell = []
    for vertex in cell:
        side = plus if vertex.positive & bit else minus if vertex.negative & bit else rest
        side.append(vertex)
    heights = [value_at(form, vertex) for vertex in plus]
    depths = [-value_at(form, vertex) for vertex in minus]
    for i, j in _crossing_edges(plus, minus, cell, known):
        p, q, height, depth = plus[i], minus[j], heights[i], depths[j]
        point = [height * y + depth * x for x, y in zip(p.point, q.point, strict=True)]
        factor = gcd(*point)
        new = Vertex(
            tuple(x // factor for x in point) if factor > 1 else tuple(point),
            # A known unit keeps its sign inside an edge and is 0 there only if 0 at both ends.
            (p.positive | q.positive) & known,
            (p.negative | q.negative) & known,
            p.tight & q.tight & known | bit,
            layers,
        )
        finish(new)
        rest.append(new)
    return plus + rest, minus + rest


def _crossing_edges(plus: Cell, minus: Cell, cell: Cell, known: int) -> Iterator[tuple[int, int]]:
    """Yield the pairs (i, j) such that plus[i] and minus[j] are the two ends of an edge.

    The smallest face that holds both ends is where all inequalities hold with equality that do so
    at both; it is an edge if it has no third vertex. Redundant inequalities do no harm.
    """
    least = len(plus[0].point) - 2  # an edge lies on d - 1 facets or more
    masks = [vertex.tight & known for vertex in cell]
    minus_masks = [vertex.tight & known for vertex in minus]
    for i, vertex in enumerate(plus):
        own = vertex.tight & known
        for j, other in enumerate(minus_masks):
            common = own & other
            if common.bit_count() < least:
                continue
            if sum(1 for mask in masks if mask & common == common) == 2:
                yield i, j


def bits_of(mask: int) -> list[int]:
    """Return the set bits of a mask, each as a mask of its own.

    >>> bits_of(0b1101)
    [1, 4, 8]
    """
    bits = []
    while mask:
        low = mask & -mask
        bits.append(low)
        mask ^= low
    return bits


def signs(cell: Cell) -> tuple[int, int]:
    """Return the bits of the units positive somewhere on the cell, and negative somewhere."""
    positive = reduce(or_, (vertex.positive for vertex in cell))
    return positive, reduce(or_, (vertex.negative for vertex in cell))
