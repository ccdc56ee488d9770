r"""How far a set of vectors is from an orbit: of a given group, or of any group at all.

Lecture course, slides on learning symmetries (testing the algorithm).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.symmetry.discovery.gramians import _finite, gramian
from pindown.symmetry.groups import Group


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
