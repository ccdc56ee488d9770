r"""What the Gramian of an orbit looks like, and which permutations leave a Gramian as it is.

If the columns of W are the images :math:`w_i = g_i t` of one vector under orthogonal maps,

.. math::
    (W^\top W)_{ij} = \langle t, g_i^{-1} g_j t \rangle,

so every column of the Gramian holds the same numbers in another order, and the orders are the rows of
the group's multiplication table.

Lecture course, slides on learning symmetries.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array

Permutations = NDArray[np.int64]

# Gramians of learned weights are known to three digits or so; entries are compared at their scale.
SAME_ENTRY = 1e-6
# Ten equal columns have 3.6 million automorphisms: past this many a Gramian says nothing about a group.
MOST_AUTOMORPHISMS = 5040


def gramian(W: ArrayLike) -> Array:
    """Return the inner products of the columns of W.

    >>> gramian([[1.0, 0.0], [1.0, 2.0]]).tolist()
    [[2.0, 2.0], [2.0, 4.0]]
    """
    columns = _finite(W, "W")
    return columns.T @ columns


def is_permuted_matrix(G: ArrayLike, tol: float = SAME_ENTRY) -> bool:
    r"""Return whether all columns of a matrix hold the same numbers, each in its own order.

    For Gramians of a whole orbit it is true. The converse fails: ``2.5 I`` plus the adjacency matrix of
    a triangle beside a square passes, and no group moves its columns transitively.

    Args:
        G: A square matrix, such as :math:`W^\top W`.
        tol: Largest difference, as a share of the largest entry.

    >>> is_permuted_matrix([[2.0, 1.0], [1.0, 2.0]]), is_permuted_matrix([[2.0, 1.0], [1.0, 3.0]])
    (True, False)

    Lecture course, slides on learning symmetries (theorem on the regulariser).
    """
    found = _square(G)
    ordered = np.sort(found, axis=0)
    return bool(np.ptp(ordered, axis=1).max() <= tol * _scale(found))


def cayley_permutations(table: ArrayLike) -> Permutations:
    """Return a group as permutations of its own elements: row g sends h to the product g h.

    >>> cayley_permutations([[0, 1], [1, 0]]).tolist()
    [[0, 1], [1, 0]]

    Lecture course, slides on learning symmetries (Cayley's theorem).
    """
    from pindown.symmetry.tables import check_table

    return check_table(np.asarray(table))


def gramian_automorphisms(
    G: ArrayLike, tol: float = SAME_ENTRY, most: int = MOST_AUTOMORPHISMS
) -> Permutations:
    r"""Return all permutations p with :math:`G_{p(i) p(j)} = G_{ij}`, the identity first.

    Args:
        G: A symmetric matrix.
        tol: Largest difference, as a share of the largest entry.
        most: Give up beyond this many.

    Raises:
        ValueError: If there are more than ``most``, as for orthonormal columns.

    >>> gramian_automorphisms([[2.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 2.0]]).tolist()
    [[0, 1, 2], [2, 1, 0]]
    """
    found = _square(G)
    near = tol * _scale(found)
    listed: list[list[int]] = []
    for permutation in _extensions(found, near):
        if len(listed) == most:
            raise ValueError(
                f"more than {most} permutations leave this Gramian as it is: its entries are too much "
                f"alike to say which group it came from."
            )
        listed.append(permutation)
    return np.array(sorted(listed), dtype=np.int64).reshape(-1, len(found))


def _extensions(G: Array, near: float) -> Iterator[list[int]]:
    """Yield automorphisms, image by image, dropped at the first entry that differs."""
    n = len(G)
    profile = np.sort(G, axis=0)
    alike = np.abs(profile[:, :, None] - profile[:, None, :]).max(axis=0) <= near
    alike &= np.abs(np.diag(G)[:, None] - np.diag(G)) <= near
    stack: list[list[int]] = [[]]
    while stack:
        images = stack.pop()
        k = len(images)
        if k == n:
            yield images
            continue
        free = np.setdiff1d(np.flatnonzero(alike[k]), images)
        fits = (np.abs(G[free][:, images] - G[k, :k]) <= near).all(axis=1)
        stack.extend([*images, int(image)] for image in free[fits])


def automorphism_orbits(permutations: ArrayLike) -> list[list[int]]:
    """Return which points the permutations of a group move into each other.

    >>> automorphism_orbits([[0, 1, 2], [2, 1, 0]])
    [[0, 2], [1]]
    """
    images = np.asarray(permutations, dtype=np.int64)
    orbits = {tuple(sorted(set(images[:, point].tolist()))) for point in range(images.shape[1])}
    return [list(orbit) for orbit in sorted(orbits)]


def regular_subgroups(permutations: ArrayLike) -> list[Permutations]:
    """Return the subgroups that move each point to each other in exactly one way.

    A set of columns is a whole orbit without repeats only if there is one. There may be several, not
    isomorphic: the Gramian alone does not always tell the group.

    Args:
        permutations: All elements of a permutation group of n points.

    Returns:
        Arrays ``(n, n)``: row i sends point 0 to point i.

    >>> triangle = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]]
    >>> [group.tolist() for group in regular_subgroups(triangle)]
    [[[0, 1, 2], [1, 2, 0], [2, 0, 1]]]
    """
    images = np.asarray(permutations, dtype=np.int64)
    n = images.shape[1]
    points = np.arange(n)
    moving = images[(images != points).all(axis=1)]
    found: set[frozenset[tuple[int, ...]]] = set()
    stack = [frozenset({tuple(points.tolist())})]
    seen = set(stack)
    while stack:
        subgroup = stack.pop()
        if len(subgroup) == n:
            found.add(subgroup)
            continue
        unreached = min(set(range(n)) - {element[0] for element in subgroup})
        for candidate in moving[moving[:, 0] == unreached]:
            larger = _generated(subgroup, tuple(candidate.tolist()), n)
            if larger is not None and larger not in seen:
                seen.add(larger)
                stack.append(larger)
    return sorted((np.array(sorted(group), dtype=np.int64) for group in found), key=lambda g: g.tolist())


def _generated(
    subgroup: frozenset[tuple[int, ...]], extra: tuple[int, ...], n: int
) -> frozenset[tuple[int, ...]] | None:
    """Return what a subgroup and a permutation generate; None if it fixes a point or is large."""
    generators = [*subgroup, extra]
    reached, front = set(subgroup) | {extra}, [extra]
    while front:
        element = front.pop()
        for generator in generators:
            for product in (
                tuple(element[i] for i in generator),
                tuple(generator[i] for i in element),
            ):
                if product in reached:
                    continue
                fixes = any(image == i for i, image in enumerate(product))
                if fixes or len(reached) == n:
                    return None
                reached.add(product)
                front.append(product)
    return frozenset(reached)


def _finite(values: ArrayLike, name: str) -> Array:
    array = np.asarray(values, dtype=float)
    if array.ndim != 2 or 0 in array.shape or not np.isfinite(array).all():
        raise ValueError(
            f"{name} must be a matrix of finite numbers, vectors as columns; got shape {array.shape}."
        )
    return array


def _square(G: ArrayLike) -> Array:
    found = _finite(G, "the Gramian")
    if found.shape[0] != found.shape[1]:
        raise ValueError(f"a Gramian is square; got shape {found.shape}. Use gramian(W).")
    return found


def _scale(G: Array) -> float:
    return float(np.abs(G).max()) or 1.0
