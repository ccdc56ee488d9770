"""Distances between orbits: by nearest points, by mean embeddings, by one-dimensional projections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.symmetry.groups import Group
from pindown.symmetry.signatures.projections import as_vectors, orbit_projections

Kernel = Callable[[Array, Array], Any]


def orbit_distance(x: ArrayLike, other: ArrayLike, group: Group) -> float:
    r"""The distance from a sample to the orbit of another, :math:`\min_g \lVert x - g x' \rVert`.

    For an orthogonal action it is the distance of the two orbits.

    >>> from pindown.symmetry.groups import cyclic
    >>> orbit_distance([1.0, 0.0, 0.0], [0.0, 0.0, 1.0], cyclic(3))
    0.0
    """
    a, b = as_vectors(group, x, other)
    return float(np.linalg.norm(group.orbit(b) - a, axis=1).min())


def orbit_mmd(
    x: ArrayLike,
    other: ArrayLike,
    group: Group,
    *,
    kernel: Kernel | None = None,
    gamma: float | None = None,
) -> float:
    r"""The distance of the mean embeddings of two orbits.

    .. math:: \mathrm{MMD}^2 = \operatorname{mean}_{g,h} \left[
              k(g x, h x) + k(g x', h x') - 2 k(g x, h x') \right]

    For a characteristic kernel, such as the Gaussian one, it is zero exactly when x and x' lie in one
    orbit. Features that are not universal, such as rectified units without bias, have no such promise.

    Args:
        x: A sample, (d,).
        other: Another.
        group: The group.
        kernel: A function of (n, d) and (m, d) to (n, m); None is Gaussian.
        gamma: Of the Gaussian kernel :math:`e^{-\gamma \lVert x - y \rVert^2}`; None is two over the
            sum of the squared lengths.

    Returns:
        The distance, not its square; about 1e-8 and less is rounding.

    >>> from pindown.symmetry.groups import cyclic
    >>> orbit_mmd([1.0, 2.0, 4.0], [4.0, 1.0, 2.0], cyclic(3)) < 1e-7
    True
    >>> orbit_mmd([1.0, 2.0, 4.0], [2.0, 1.0, 4.0], cyclic(3)) > 0.01
    True

    Lecture course, section on orbits and probability distributions.
    """
    a, b = as_vectors(group, x, other)
    if kernel is None and gamma is None:
        # The width follows the samples, so their unit does not matter; this one cannot overflow.
        largest = float(max(np.abs(a).max(), np.abs(b).max()))
        a, b = (a / largest, b / largest) if largest > 0 else (a, b)
    first, second = group.orbit(a), group.orbit(b)
    if kernel is None:
        size = float(a @ a + b @ b)
        width = gamma if gamma is not None else 2.0 / (size if size > 0 else 1.0)
        if not 0 < width < np.inf:
            raise ValueError(f"gamma must be positive; got {gamma!r}.")
        kernel = _gaussian(width)
    both = [np.asarray(kernel(p, q), dtype=float).mean() for p, q in ((first, first), (second, second))]
    across = np.asarray(kernel(first, second), dtype=float).mean()
    return float(np.sqrt(max(sum(both) - 2 * across, 0.0)))


def orbit_sliced_distance(x: ArrayLike, other: ArrayLike, group: Group, templates: ArrayLike) -> float:
    r"""The mean distance of the laws of projections of two orbits on some directions.

    .. math:: \frac{1}{K} \sum_k W_1\left(\langle g x, t_k \rangle, \langle g x', t_k \rangle\right)

    Laws of equally many points differ in :math:`W_1` by the mean difference of their sorted values.
    With all directions of the unit sphere it is zero exactly when the orbits are one (Cramér and Wold);
    with finitely many generic ones, for almost all samples.

    Args:
        x: A sample, (d,).
        other: Another.
        group: The group.
        templates: Directions, (K, d), normalised here.

    >>> from pindown.symmetry.groups import cyclic
    >>> orbit_sliced_distance([1.0, 2.0, 4.0], [2.0, 1.0, 4.0], cyclic(3), [[1.0, 0.0, 0.0]])
    0.0
    >>> orbit_sliced_distance([1.0, 2.0, 4.0], [2.0, 1.0, 4.0], cyclic(3), [[1.0, 2.0, 0.0]]) > 0.1
    True

    Lecture course, section on orbits and probability distributions.
    """
    a, b = as_vectors(group, x, other)
    directions = np.atleast_2d(np.asarray(templates, dtype=float))
    lengths = np.linalg.norm(directions, axis=1, keepdims=True)
    if not (lengths > 0).all():
        raise ValueError("a template of zeros is no direction; give templates of positive length.")
    values = np.sort(orbit_projections(np.stack([a, b]), directions / lengths, group), axis=2)
    return float(np.abs(values[0] - values[1]).mean())


def _gaussian(gamma: float) -> Kernel:
    def kernel(p: Array, q: Array) -> Array:
        squares = (p**2).sum(axis=1)[:, None] + (q**2).sum(axis=1) - 2 * p @ q.T
        return np.exp(-gamma * np.maximum(squares, 0.0))

    return kernel
