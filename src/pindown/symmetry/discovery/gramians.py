r"""What the Gramian of an orbit looks like, and which permutations leave a Gramian as it is.

If the columns of W are the images :math:`w_i = g_i t` of one vector under orthogonal maps,

.. math::
    (W^\top W)_{ij} = \langle t, g_i^{-1} g_j t \rangle,

so every column of the Gramian holds the same numbers in another order, and the orders are the rows of
the group's multiplication table (Cayley's theorem). Scores say how far vectors are from an orbit, of a
given group or of any group at all.

Lecture course, slides on learning symmetries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.symmetry.discovery.tuning import MAX_AUTOMORPHISMS
from pindown.symmetry.groups import Group

Permutations = NDArray[np.int64]
# Gramians of learned weights are known to three digits or so; entries are compared at their scale.
SAME_ENTRY = 1e-6


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
    from pindown.symmetry.axioms import check_table

    return check_table(np.asarray(table))


def gramian_automorphisms(
    G: ArrayLike, tol: float = SAME_ENTRY, most: int = MAX_AUTOMORPHISMS
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


def orbit_closure_error(W: ArrayLike, group: Group | ArrayLike) -> float:
    r"""Return how far the columns of W are from being moved into each other by a group.

    .. math::
        \sqrt{\frac{1}{|G|} \sum_g \min_\pi \frac{\lVert g W - W P_\pi \rVert_F^2}{\lVert W \rVert_F^2}},

    each minimum over permutations found exactly (Hungarian method). Zero for a union of orbits; about
    one for columns that have nothing to do with the group.

    Args:
        W: The columns, (d, n).
        group: A group that acts on d dimensions, or its matrices (order, d, d).

    >>> from pindown.symmetry.groups import cyclic
    >>> turned = np.array([np.eye(4), -np.eye(4)])
    >>> orbit_closure_error(np.eye(4), cyclic(4)), round(orbit_closure_error(np.eye(4), turned), 3)
    (0.0, 1.0)

    Lecture course, slides on learning symmetries.
    """
    from scipy.optimize import linear_sum_assignment

    columns = _finite(W, "W")
    matrices = group.matrices if isinstance(group, Group) else np.asarray(group, dtype=float)
    if matrices.ndim != 3 or matrices.shape[1:] != (len(columns), len(columns)):
        raise ValueError(
            f"the group acts by matrices of shape {matrices.shape}; columns of {len(columns)} numbers "
            f"need (order, {len(columns)}, {len(columns)})."
        )
    total = 0.0
    for matrix in matrices:
        moved = matrix @ columns
        cost = ((moved[:, :, None] - columns[:, None, :]) ** 2).sum(axis=0)
        total += float(cost[linear_sum_assignment(cost)].sum())
    size = float((columns**2).sum())
    return float(np.sqrt(total / len(matrices) / size)) if size else 0.0


def orbit_score(W: ArrayLike) -> float:
    r"""Return how much the columns of the Gramian differ in what they hold: zero if any group's orbit.

    .. math::
        \sqrt{\frac{\sum_i \lVert s_i - \bar s \rVert^2}{\sum_i \lVert s_i \rVert^2}}, \qquad
        s_i = \mathrm{sort}(W^\top w_i)

    It names no group, and zero does not prove that there is one.

    >>> orbit_score(np.eye(3)), orbit_score(np.diag([1.0, 2.0])).__round__(3)
    (0.0, 0.514)

    Lecture course, slides on learning symmetries.
    """
    ordered = np.sort(gramian(W), axis=0)
    size = float((ordered**2).sum())
    spread = float(((ordered - ordered.mean(axis=1, keepdims=True)) ** 2).sum())
    return float(np.sqrt(spread / size)) if size else 0.0


def sorted_signature(X: ArrayLike, W: ArrayLike) -> Array:
    r"""Return :math:`\mathrm{sort}(W^\top x)` for every row x: unchanged along an orbit if W is one.

    >>> sorted_signature([[1.0, 5.0, 2.0], [2.0, 1.0, 5.0]], np.eye(3)).tolist()
    [[1.0, 2.0, 5.0], [1.0, 2.0, 5.0]]

    Lecture course, slides on learning symmetries.
    """
    return np.sort(np.asarray(X, dtype=float) @ _finite(W, "W"), axis=1)


def separation(positive: ArrayLike, negative: ArrayLike) -> float:
    """Return the probability that a distance within orbits is below one across orbits (area under ROC).

    >>> separation([0.0, 0.1], [0.5, 0.05])
    0.75
    """
    near, far = np.asarray(positive, dtype=float).ravel(), np.asarray(negative, dtype=float).ravel()
    if not (near.size and far.size):
        raise ValueError("separation needs distances of both kinds; one of the two lists is empty.")
    from scipy.stats import rankdata

    ranks = rankdata(np.concatenate([near, far]))[near.size :]
    return float((ranks.sum() - far.size * (far.size + 1) / 2) / (near.size * far.size))


def signature_distances(signature: Callable[[Array], Array], X: ArrayLike, others: ArrayLike) -> Array:
    """Return distances between signatures, row by row, as a share of the size of the first.

    >>> signature_distances(lambda X: X, [[3.0, 4.0]], [[3.0, 9.0]]).tolist()
    [1.0]
    """
    first = signature(np.asarray(X, dtype=float))
    second = signature(np.asarray(others, dtype=float))
    sizes = np.linalg.norm(first, axis=1)
    return np.linalg.norm(first - second, axis=1) / np.where(sizes > 0, sizes, 1.0)
