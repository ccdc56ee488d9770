"""Faces of exact cells: facets, volumes, the order of vertices, and which cells share a facet."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from fractions import Fraction
from functools import reduce
from math import factorial, prod
from operator import and_

from pindown.geometry.exact.cell import Cell, bits_of

Point = tuple[int, ...]


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
