r"""Convex polytopes in exact integers: cutting them, facets, volumes, and which of them share a facet.

A vertex is held in homogeneous integers :math:`(X_1, \dots, X_d, D)` with :math:`D > 0`, the point
:math:`X / D`. The sign of an integer affine form there needs no division. Bits of the masks below
are facet labels: unit j has bit j, the box sides follow after all units.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import reduce
from itertools import product
from math import factorial, gcd, lcm, prod
from operator import and_, mul, or_

from pindown.box import Box

# An affine form a . x + b as the integers (a_1, ..., a_d, b).
Form = Sequence[int]
Point = tuple[int, ...]


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


def facets_of(masks: Sequence[int]) -> list[int]:
    """Return the facets of a polytope, each as the bit set of the vertices on it.

    The vertices on one inequality form a face; the facets are the largest proper ones.

    Args:
        masks: For each vertex the bits of the inequalities that are tight there.

    >>> [bin(facet) for facet in facets_of([0b01, 0b10])]  # an interval: its two ends
    ['0b1', '0b10']
    """
    faces: dict[int, int] = {}
    for v, mask in enumerate(masks):
        for bit in bits_of(mask):
            faces[bit] = faces.get(bit, 0) | 1 << v
    everything = (1 << len(masks)) - 1
    largest: list[int] = []
    for face in sorted(set(faces.values()) - {everything}, key=int.bit_count, reverse=True):
        if not any(face & other == face for other in largest):
            largest.append(face)
    return largest


def triangulate(masks: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield simplices (vertex numbers) that tile a polytope: pull one vertex, recurse on facets."""
    if len(masks) == 1:
        yield (0,)
        return
    for facet in facets_of(masks):
        if facet & 1:
            continue  # holds the pulled vertex
        members = [v for v in range(len(masks)) if facet >> v & 1]
        for simplex in triangulate([masks[v] for v in members]):
            yield (0, *(members[v] for v in simplex))


def volume(points: Sequence[tuple[int, ...]], masks: Sequence[int]) -> Fraction:
    """Return the exact volume of a polytope.

    >>> triangle = [(0, 0, 1), (1, 0, 2), (0, 1, 1)]
    >>> volume(triangle, [0b011, 0b101, 0b110])
    Fraction(1, 4)
    """
    total = Fraction(0)
    for simplex in triangulate(masks):
        rows = [points[v] for v in simplex]
        total += Fraction(abs(determinant(rows)), prod(row[-1] for row in rows))
    return total / factorial(len(points[0]) - 1)


def determinant(rows: Sequence[Sequence[int]]) -> int:
    """Return the determinant of an integer matrix, without fractions (Bareiss).

    >>> determinant([[2, 1], [7, 4]])
    1
    """
    matrix, sign, previous = [list(row) for row in rows], 1, 1
    for k in range(len(matrix) - 1):
        pivot = next((i for i in range(k, len(matrix)) if matrix[i][k]), None)
        if pivot is None:
            return 0
        if pivot != k:
            matrix[k], matrix[pivot], sign = matrix[pivot], matrix[k], -sign
        for i in range(k + 1, len(matrix)):
            for j in range(k + 1, len(matrix)):
                change = matrix[i][j] * matrix[k][k] - matrix[i][k] * matrix[k][j]
                matrix[i][j] = change // previous
        previous = matrix[k][k]
    return sign * matrix[-1][-1]


def in_order(cell: Cell) -> Cell:
    """Return the vertices ascending in 1-D, counter-clockwise in 2-D, as they are beyond."""
    dim = len(cell[0].point) - 1
    if dim > 2:
        return cell
    by_x = sorted(cell, key=lambda vertex: vertex.fractions)
    if dim == 1:
        return by_x
    first, last = by_x[0].point, by_x[-1].point
    above = [determinant([first, last, vertex.point]) > 0 for vertex in by_x]
    lower = [vertex for vertex, up in zip(by_x, above, strict=True) if not up]
    return lower + [vertex for vertex, up in zip(by_x, above, strict=True) if up][::-1]


def facet_labels(cell: Cell) -> list[frozenset[int]]:
    """Return for each facet the labels of the inequalities that hold it (several if some coincide)."""
    masks = [vertex.tight for vertex in cell]
    everywhere = reduce(and_, masks)  # units that vanish on the whole cell
    labels = []
    for facet in facets_of(masks):
        common = reduce(and_, (mask for v, mask in enumerate(masks) if facet >> v & 1))
        labels.append(frozenset(bit.bit_length() - 1 for bit in bits_of(common & ~everywhere)))
    return labels


def neighbour_pairs(cells: Sequence[Cell]) -> list[tuple[int, int]]:
    """Return the pairs i < j of cells that share a facet.

    A network is continuous, so cells meet face to face: a shared facet is a facet of both.
    """
    owner: dict[frozenset[Point], int] = {}
    pairs = []
    for i, cell in enumerate(cells):
        for facet in facets_of([vertex.tight for vertex in cell]):
            corners = frozenset(v.point for k, v in enumerate(cell) if facet >> k & 1)
            if corners in owner:
                pairs.append((owner.pop(corners), i))
            else:
                owner[corners] = i
    return sorted(pairs)


def merged(labels: Sequence[Hashable], pairs: Sequence[tuple[int, int]]) -> list[int]:
    """Join equally labelled neighbours; return the group of each, numbered by first appearance.

    >>> merged(["a", "a", "b", "a"], [(0, 1), (1, 2), (2, 3)])
    [0, 0, 1, 2]
    """
    parent = list(range(len(labels)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for i, j in pairs:
        if labels[i] == labels[j]:
            parent[root(j)] = root(i)
    number: dict[int, int] = {}
    return [number.setdefault(root(i), len(number)) for i in range(len(labels))]


def face_numbers(cells: Sequence[Cell]) -> list[int]:
    """Return how many faces of each dimension 0, ..., d the cells have together.

    Their alternating sum is 1 if the cells tile a convex set (the Euler relation).
    """
    faces: list[set[frozenset[Point]]] = [set() for _ in cells[0][0].point]
    for cell in cells:
        level = {(1 << len(cell)) - 1}
        for found in reversed(faces):
            found |= {frozenset(v.point for k, v in enumerate(cell) if face >> k & 1) for face in level}
            level = {facet for face in level for facet in _facets_of_face(cell, face)}
    return [len(found) for found in faces]


def _facets_of_face(cell: Cell, face: int) -> list[int]:
    members = [k for k in range(len(cell)) if face >> k & 1]
    inner = facets_of([cell[k].tight for k in members])
    return [sum(1 << members[i] for i in range(len(members)) if f >> i & 1) for f in inner]
