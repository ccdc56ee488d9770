"""All the ways a hyperplane can divide points, found once, without a linear program.

A unit is on at some points and off at the others. The weights that give one such division form an open
cone, a cell of the arrangement of the hyperplanes ``{w : <w, p> = 0}``, one for each point ``p = (x,
1)``. Every cell has an extreme ray, every ray is the meeting of as many hyperplanes as it takes, and
around a ray the cells are those of the smaller arrangement of the hyperplanes through it. So the rays
give all cells, by recursion where points are in special position, and beside each cell its facets: the
points that can change side next.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice, product
from math import comb
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from pindown.affine import Array, Integers

Keys = npt.NDArray[np.uint64]

# Points within this distance of a hyperplane, in units of the points' spread, are on it: telling them
# apart takes weights a thousand million times larger than the data.
ON_THE_PLANE = 1e-9
# The cross product of unit vectors that are this much alike has lost digits.
_ALIKE = 1e-3
# Rays are handled in slices of this many numbers.
_SLICE = 4_000_000
# A set of points is named by the sum of random 64-bit keys; among ten million cells two names agree with
# probability below 1e-5.
_KEY_SEED = 20
# Sums of 21-bit pieces of keys are exact in float64, where matrix products are fast.
_PIECE = np.uint64(21)


@dataclass(frozen=True, eq=False)
class Dichotomies:
    """The divisions of points by hyperplanes, as a graph in which neighbours differ in one point.

    Attributes:
        n_points: How many points are divided.
        sides: Where each cell's unit is on, a row of bits for each cell. Cell 0 is on nowhere.
        parent: A neighbour that comes earlier and is on at one point less.
        added: The point at which a cell is on and its parent is not.
        facet_start: Where the facets of each cell begin in ``facets`` and ``across``.
        facets: The points that can change side, cell after cell.
        across: The cell beyond each facet.
        inside: Weights ``(a, b)`` in the interior of each cell.
        whole: Whether the graph is connected, as it must be; for points that are nearly in special
            position rounding can lose cells, and this shows it.
    """

    n_points: int
    sides: npt.NDArray[np.uint8]
    parent: Integers
    added: Integers
    facet_start: Integers
    facets: Integers
    across: Integers
    inside: Array
    whole: bool

    def __len__(self) -> int:
        return len(self.parent)

    def masks(self) -> npt.NDArray[np.bool_]:
        """Return all sides as one boolean matrix."""
        return np.unpackbits(self.sides, axis=1, count=self.n_points).astype(bool)


class _Around(NamedTuple):
    """Cells beside rays, one for each row; a cell appears once for each of its rays."""

    name: Keys
    loose: Integers  # the points whose hyperplanes pass through the ray
    on: npt.NDArray[np.bool_]  # the cell's sides of these points
    ray: Array


def count_general(n_points: int, dim: int) -> int:
    """Return how many divisions there are for points in general position, ``2 sum_{i<=n} C(D-1, i)``.

    >>> count_general(3, 2), count_general(4, 2), count_general(10, 2)
    (8, 14, 92)

    Mukherjee 2020, section 2.4, with the count corrected.
    """
    return 2 * sum(comb(n_points - 1, i) for i in range(dim + 1))


def dichotomies(points: Array) -> Dichotomies:
    """Find every division of distinct points by a hyperplane.

    Args:
        points: ``(D, n)`` distinct points that span their space, of spread about one.

    >>> line = dichotomies(np.array([[-1.0], [0.0], [1.0]]))
    >>> sorted(line.masks().astype(int).tolist())
    [[0, 0, 0], [0, 0, 1], [0, 1, 1], [1, 0, 0], [1, 1, 0], [1, 1, 1]]
    >>> len(dichotomies(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])))
    8

    Mukherjee 2020, Algorithm 1.
    """
    vectors = np.column_stack([points, np.ones(len(points))])
    keys = np.random.default_rng(_KEY_SEED).integers(1, 2**63, size=len(vectors), dtype=np.uint64)
    around = _joined(list(_cells_by_ray(vectors, keys)))
    return _as_graph(around, keys)


def _joined(parts: list[_Around]) -> _Around:
    return _Around(*(np.concatenate(field) for field in zip(*parts, strict=True)))


def _cells_by_ray(vectors: Array, keys: Keys) -> Iterator[_Around]:
    """Yield the cells around all rays of an arrangement of independent directions."""
    n, rank = vectors.shape
    if rank == 1:
        on = vectors[:, 0] > 0
        names = np.array([keys[on].sum(), keys[~on].sum()], np.uint64)
        yield _Around(
            names, np.zeros((2, 1), np.int64), np.array([[on[0]], [~on[0]]]), np.array([[1.0], [-1.0]])
        )
        return
    done: set[bytes] = set()
    subsets = combinations(range(n), rank - 1)
    while block := list(islice(subsets, max(1, _SLICE // n))):
        members = np.array(block)
        rays, independent = _rays(vectors, members)
        values = rays @ vectors.T
        on_ray = np.abs(values) <= ON_THE_PLANE
        np.put_along_axis(on_ray, members, True, axis=1)  # by definition, whatever rounding says
        simple = independent & (on_ray.sum(1) == rank - 1)
        yield _around_simple_rays(rays[simple], values[simple], members[simple], keys)
        for row in np.nonzero(independent & ~simple)[0]:
            flat = on_ray[row].tobytes()
            if flat not in done:
                done.add(flat)
                yield from _around_special_ray(vectors, rays[row], np.nonzero(on_ray[row])[0], keys)


def _rays(vectors: Array, members: Integers) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Return the unit vector orthogonal to each group of vectors, and whether it is the only one."""
    groups = vectors[members]
    groups = groups / np.linalg.norm(groups, axis=2, keepdims=True)
    if vectors.shape[1] == 3:  # the common case, far faster than by singular values
        cross = np.cross(groups[:, 0], groups[:, 1])
        length = np.linalg.norm(cross, axis=1)
        rays, independent = cross / np.maximum(length, ON_THE_PLANE)[:, None], length > ON_THE_PLANE
        close = length < _ALIKE
        rays[close], independent[close] = _rays_by_singular_values(groups[close])
        return rays, independent
    return _rays_by_singular_values(groups)


def _rays_by_singular_values(groups: Array) -> tuple[Array, npt.NDArray[np.bool_]]:
    _, singular, right = np.linalg.svd(groups)
    return right[:, -1, :], singular[:, -1] > ON_THE_PLANE


def _names(on: npt.NDArray[np.bool_], keys: Keys) -> Keys:
    """Return the sum of the keys of each row's points, modulo 2^64."""
    mask = (np.uint64(1) << _PIECE) - np.uint64(1)
    pieces = np.stack([(keys >> (_PIECE * np.uint64(i))) & mask for i in range(4)], axis=1)
    sums = (on.astype(np.float64) @ pieces.astype(np.float64)).astype(np.uint64)
    total = np.zeros(len(on), np.uint64)
    for i in range(4):
        total += sums[:, i] << (_PIECE * np.uint64(i))
    return total


def _around_simple_rays(rays: Array, values: Array, members: Integers, keys: Keys) -> _Around:
    """Return the cells around rays in general position: every choice of sides for the members."""
    choices = np.array(list(product((False, True), repeat=members.shape[1])))
    off_ray = np.ones(values.shape, bool)
    np.put_along_axis(off_ray, members, False, axis=1)
    own = np.where(choices[None, :, :], keys[members][:, None, :], np.uint64(0)).sum(
        axis=2, dtype=np.uint64
    )
    parts = []
    for direction in (1.0, -1.0):
        names = _names((direction * values > 0) & off_ray, keys)
        parts.append(
            _Around(
                (names[:, None] + own).ravel(),
                np.repeat(members, len(choices), axis=0),
                np.tile(choices, (len(members), 1)),
                np.repeat(direction * rays, len(choices), axis=0),
            )
        )
    return _joined(parts)


def _around_special_ray(vectors: Array, ray: Array, flat: Integers, keys: Keys) -> Iterator[_Around]:
    """Yield the cells around a ray on which too many hyperplanes meet: a smaller arrangement."""
    _, _, right = np.linalg.svd(vectors[flat], full_matrices=True)
    off_ray = np.ones(len(vectors), bool)
    off_ray[flat] = False
    values = vectors @ ray
    for within in _cells_by_ray(vectors[flat] @ right[: vectors.shape[1] - 1].T, keys[flat]):
        for direction in (1.0, -1.0):
            rest = keys[(direction * values > 0) & off_ray].sum(dtype=np.uint64)
            rays = np.tile(direction * ray, (len(within.name), 1))
            # One of the loose points may stand twice, so that all rows are as long as those of simple
            # rays.
            columns = np.minimum(np.arange(len(ray) - 1), within.loose.shape[1] - 1)
            yield _Around(
                within.name + rest, flat[within.loose][:, columns], within.on[:, columns], rays
            )


def _as_graph(around: _Around, keys: Keys) -> Dichotomies:
    """Number the cells outwards from the one that is on nowhere, each after a smaller one."""
    names, cell = np.unique(around.name, return_inverse=True)
    inside = np.zeros((len(names), around.ray.shape[1]))
    np.add.at(inside, cell, around.ray)
    loose = around.loose.shape[1]
    point = around.loose.ravel()
    cell = np.repeat(cell, loose)
    _, once = np.unique(cell * len(keys) + point, return_index=True)
    cell, point, on = cell[once], point[once], around.on.ravel()[once]
    beyond = np.where(on, names[cell] - keys[point], names[cell] + keys[point])
    other = np.minimum(np.searchsorted(names, beyond), len(names) - 1)
    real = names[other] == beyond
    cell, point, other = cell[real], point[real], other[real]

    steps = csr_array((np.ones(len(cell)), (cell, other)), shape=(len(names), len(names)))
    order, before = breadth_first_order(steps, int(np.searchsorted(names, 0)), directed=True)
    number = np.full(len(names), -1)
    number[order] = np.arange(len(order))
    reached = (number[cell] >= 0) & (number[other] >= 0)
    cell, point, other = cell[reached], point[reached], other[reached]
    parent = np.zeros(len(order), np.int64)
    parent[1:] = number[before[order[1:]]]

    outwards = np.lexsort((point, number[cell]))
    owner, facets, across = number[cell[outwards]], point[outwards], number[other[outwards]]
    start = np.searchsorted(owner, np.arange(len(order) + 1))
    added = np.zeros(len(order), np.int64)
    towards_parent = across == parent[owner]
    added[owner[towards_parent]] = facets[towards_parent]
    return Dichotomies(
        len(keys), _sides(parent, added, len(keys)), parent, added, start, facets, across, inside[order],
        whole=len(order) == len(names),
    )  # fmt: skip


def _sides(parent: Integers, added: Integers, n_points: int) -> npt.NDArray[np.uint8]:
    sides = np.zeros((len(parent), -(-n_points // 8)), np.uint8)
    for cell in range(1, len(parent)):
        sides[cell] = sides[parent[cell]]
        sides[cell, added[cell] // 8] |= 128 >> (added[cell] % 8)
    return sides
