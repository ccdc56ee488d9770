"""Finite groups: elements, multiplication table, and how they act on vectors or anything else."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.symmetry.axioms import (
    check_representation,
    check_table,
    permutation_matrices,
    require_products,
    table_of_permutations,
)
from pindown.symmetry.tuning import MAX_MATRIX_ENTRIES, MAX_ORDER, MAX_REGULAR_ORDER
from pindown.validation import integer

Action = Callable[[int, NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Group:
    """A finite group with one action.

    Args:
        name: What it is called, such as ``C6``.
        elements: One label per element; the first is the identity.
        table: ``table[i, j]`` is the index of the product of element i and element j.
        generators: Indices of elements whose products reach all others.
        representation: Matrices ``(order, d, d)``; ``None`` means the regular representation.
        action: ``action(i, X)`` moves samples by element i; ``None`` means by the matrices.
        points: The natural permutations ``(order, n)``, if it moves n points: i goes to points[g, i].
        approximate: Whether the action keeps the products only nearly, as interpolated turns do.

    >>> group = cyclic(3)
    >>> group.order, group.table.tolist()
    (3, [[0, 1, 2], [1, 2, 0], [2, 0, 1]])
    >>> group.orbit([1.0, 2.0, 3.0]).tolist()
    [[1.0, 2.0, 3.0], [3.0, 1.0, 2.0], [2.0, 3.0, 1.0]]
    """

    name: str
    elements: tuple[Hashable, ...]
    table: NDArray[np.int64] = field(repr=False)
    generators: tuple[int, ...]
    representation: NDArray[np.float64] | None = field(default=None, repr=False)
    action: Action | None = field(default=None, repr=False)
    points: NDArray[np.int64] | None = field(default=None, repr=False)
    approximate: bool = field(default=False, repr=False)

    @property
    def order(self) -> int:
        """The number of elements."""
        return len(self.elements)

    @property
    def degree(self) -> int:
        """The dimension of the vectors that the matrices act on."""
        return self.order if self.representation is None else int(self.representation.shape[1])

    @cached_property
    def inverses(self) -> NDArray[np.int64]:
        """The index of each element's inverse."""
        return np.argmin(self.table, axis=1)

    @cached_property
    def matrices(self) -> NDArray[np.float64]:
        """The matrices of the action, ``(order, d, d)``: those given, else the regular ones.

        In the regular representation element g sends the basis vector of h to that of g h.
        """
        if self.action is not None and self.representation is None:
            raise ValueError(
                f"{self.name} acts by a function here; say regular() or acting_by(matrices)."
            )
        if self.representation is not None:
            return self.representation
        if self.order > MAX_REGULAR_ORDER:
            raise ValueError(
                f"the regular representation of {self.name} holds {self.order}^3 numbers; use "
                f"permuting() or acting_by(matrices), or at most {MAX_REGULAR_ORDER} elements."
            )
        return permutation_matrices(self.table)

    def verify(self) -> Group:
        """Return the group itself if its table and its matrices are those of a group.

        Raises:
            ValueError: Naming the axiom that fails, and where.

        >>> cyclic(4).verify().order
        4
        """
        check_table(self.table, self.generators)
        if len(self.table) != self.order:
            raise ValueError(f"{self.order} labels for a table of {len(self.table)} elements.")
        return self if self.representation is None else self.acting_by(self.representation)

    def regular(self) -> Group:
        """The same group, acting on functions on itself."""
        return replace(self, representation=None, action=None, approximate=False)

    def permuting(self) -> Group:
        """The same group, acting by permutation matrices on the points it moves by nature.

        >>> dihedral(4).permuting().matrices.shape
        (8, 4, 4)
        """
        if self.points is None:
            raise ValueError(
                f"{self.name} moves no points by nature; use regular() or acting_by(matrices)."
            )
        if self.order * self.points.shape[1] ** 2 > MAX_MATRIX_ENTRIES:
            raise ValueError(
                f"{self.order} matrices of {self.points.shape[1]} points are too many to hold; use "
                f"acting_by(function) with the permutations in .points."
            )
        return self.acting_by(permutation_matrices(self.points))

    def acting_by(self, how: ArrayLike | Action) -> Group:
        """The same group with another action: matrices, one per element, or a function of (i, X).

        Raises:
            ValueError: If the matrices do not multiply as the elements do.
        """
        if callable(how):
            return replace(self, representation=None, action=how)
        matrices = check_representation(how)
        if len(matrices) != self.order:
            raise ValueError(f"{len(matrices)} matrices for the {self.order} elements of {self.name}.")
        require_products(matrices, self.table, self.generators, self.elements, self.name)
        return replace(self, representation=matrices, action=None, approximate=False)

    def act(self, index: int, X: ArrayLike) -> NDArray[np.float64]:
        """Move every sample by one element: rows of X are vectors, unless the action says otherwise."""
        samples = np.asarray(X, dtype=float)
        if self.action is not None:
            return np.asarray(self.action(index, samples), dtype=float)
        if samples.shape[-1:] != (self.degree,):
            raise ValueError(
                f"{self.name} acts here on vectors of {self.degree} numbers; got shape {samples.shape}. "
                f"Choose another action with acting_by() or permuting()."
            )
        if self.representation is None:  # (g x)(u) = x(g^-1 u): no matrices needed
            return samples[..., self.table[self.inverses[index]]]
        return samples @ self.representation[index].T

    def orbit(self, x: ArrayLike) -> NDArray[np.float64]:
        """All images g x of one sample x, ``(order, ...)``, in the order of the elements."""
        sample = np.asarray(x, dtype=float)[None]
        return np.concatenate([self.act(index, sample) for index in range(self.order)])


def from_permutations(
    permutations: Sequence[Sequence[int]],
    name: str = "G",
    labels: Sequence[Hashable] | None = None,
    generators: tuple[int, ...] | None = None,
) -> Group:
    """The group that some permutations of 0, ..., n - 1 form; the first must be the identity.

    The product g h applies h first: (g h)[i] = g[h[i]].

    >>> from_permutations([(0, 1), (1, 0)]).table.tolist()
    [[0, 1], [1, 0]]
    """
    if not 1 <= len(permutations) <= MAX_ORDER:
        raise ValueError(f"a group has 1 to {MAX_ORDER} elements here; got {len(permutations)}.")
    given = np.array(permutations)
    points = given.astype(np.int64) if given.dtype.kind in "iu" else np.zeros((1, 0), dtype=np.int64)
    n = points.shape[1] if points.ndim == 2 else 0
    if n == 0 or not (np.sort(points, axis=1) == np.arange(n)).all():
        raise ValueError("each element must be a permutation of 0, ..., n - 1.")
    index = {row.tobytes(): position for position, row in enumerate(points)}
    if len(index) < len(points) or not (points[0] == np.arange(n)).all():
        raise ValueError("the permutations must differ, and the first must be the identity.")
    table, found = table_of_permutations(points, index, generators)
    names = tuple(map(tuple, points.tolist())) if labels is None else tuple(labels)
    if len(names) != len(points):
        raise ValueError(f"{len(names)} labels for {len(points)} elements; give one for each.")
    return Group(name, names, table, found, points=points)


def cyclic(n: int) -> Group:
    """The n rotations of n points on a circle; element k sends i to i + k.

    >>> cyclic(6).order, cyclic(6).elements
    (6, (0, 1, 2, 3, 4, 5))
    """
    order = integer("n", n, most=2000)
    steps = np.arange(order)
    table = (steps[:, None] + steps) % order
    return Group(f"C{order}", tuple(range(order)), table, (1 % order,), points=table)


def dihedral(n: int) -> Group:
    """The n rotations and n reflections of a regular n-gon: (k, s) sends i to k + i or k - i.

    >>> group = dihedral(3)
    >>> group.order, group.elements[4], group.points[4].tolist()
    (6, (1, 1), [1, 0, 2])
    """
    size = integer("n", n, most=1000)
    labels = [(k, s) for s in (0, 1) for k in range(size)]
    turn, flip = np.array(labels).T
    sign = 1 - 2 * flip
    # (k, s)(l, t) = (k + (-1)^s l, s + t)
    table = (turn[:, None] + sign[:, None] * turn) % size + size * ((flip[:, None] + flip) % 2)
    points = (turn[:, None] + sign[:, None] * np.arange(size)) % size
    return Group(f"D{size}", tuple(labels), table, (1 % size, size), points=points)


def symmetric(n: int) -> Group:
    """All n! permutations of n things.

    >>> symmetric(3).order, symmetric(3).elements[1]
    (6, (0, 2, 1))
    """
    size = integer("n", n, most=7)
    elements = list(itertools.permutations(range(size)))
    if size == 1:
        return from_permutations(elements, "S1", generators=(0,))
    swap, cycle = (1, 0, *range(2, size)), (*range(1, size), 0)
    return from_permutations(
        elements, f"S{size}", generators=(elements.index(swap), elements.index(cycle))
    )
