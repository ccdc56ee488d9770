r"""Zonotopes: their vertices, the networks of their support functions, and zigzags after these.

The support function :math:`\gamma(r) = \sum_i |\langle r, b^i \rangle|` of a zonotope is a network of
one hidden layer. It is linear on the normal cone of each vertex, so it has as many pieces as the
zonotope has vertices; zigzags composed with it multiply that number. How many pieces that makes, and how
many ReLUs other networks need for them, is counted in :mod:`pindown.geometry.counts`.

Mukherjee 2020, section 2.3.1, Definitions 6 and 7, Theorem 2.3.10.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cmp_to_key
from itertools import combinations, pairwise
from math import lcm

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array, is_finite
from pindown.calculus import compose
from pindown.circuits.depth_separation import composed_zigzags
from pindown.geometry.exact.complex import exact_complex
from pindown.geometry.exact.polytope import determinant
from pindown.network import ReluNetwork
from pindown.validation import at_least


def zonotope_network(generators: ArrayLike) -> ReluNetwork:
    r"""Return :math:`\gamma(r) = \sum_i |\langle r, b^i \rangle|` as a network with 2m ReLUs.

    Args:
        generators: The vectors :math:`b^i`, shape (m, n).

    Example:
        The unit vectors give the 1-norm:

        >>> zonotope_network(np.eye(2))([[3.0, -4.0]])
        array([[7.]])

    Mukherjee 2020, chapter 2, zonotopes.
    """
    B = _generators(generators)
    m = len(B)
    return ReluNetwork.from_layers([(np.vstack([B, -B]), np.zeros(2 * m)), (np.ones((1, 2 * m)), [0])])


def zonotope_vertices(generators: ArrayLike) -> Array:
    r"""Return the vertices of :math:`Z = \{\sum_i \lambda_i b^i : |\lambda_i| \le 1\}`.

    Which sums :math:`\sum_i \pm b^i` are vertices is decided in exact arithmetic, so parallel or
    dependent generators need no care.

    Args:
        generators: The vectors :math:`b^i`, shape (m, n).

    Returns:
        The vertices, shape (V, n); counter-clockwise in the plane.

    Example:
        Two unit vectors make a square, and a third, parallel one makes it longer:

        >>> zonotope_vertices([[1, 0], [0, 1]])
        array([[-1., -1.],
               [ 1., -1.],
               [ 1.,  1.],
               [-1.,  1.]])
        >>> len(zonotope_vertices([[1, 0], [0, 1], [2, 0]]))
        4

    Mukherjee 2020, chapter 2, zonotopes.
    """
    B = _generators(generators)
    if B.shape[1] == 2:
        return _signs_by_angle(B) @ B
    # Each vertex is the largest point in the directions of one cell of the hyperplanes r.b = 0.
    fan = ReluNetwork.from_layers([(B, np.zeros(len(B))), (np.ones((1, len(B))), [0])])
    cells = exact_complex(fan, (-1.0, 1.0))
    return np.where(cells.patterns, 1.0, -1.0) @ B


def is_extremal(generators: ArrayLike) -> bool:
    """Say whether a zonotope has as many vertices as its number of generators allows.

    It does if every n of the generators (all of them, if there are fewer) are linearly independent;
    decided in exact arithmetic.

    Example:
        >>> is_extremal([[1, 0], [0, 1], [1, 1]]), is_extremal([[1, 0], [0, 1], [-2, 0]])
        (True, False)

    Mukherjee 2020, chapter 2, zonotopes.
    """
    B = _integers(_generators(generators))
    if len(B[0]) == 1:
        return any(value for (value,) in B)  # on a line one segment has both ends already
    chosen = min(len(B), len(B[0]))
    return all(determinant(_gram(rows)) != 0 for rows in combinations(B, chosen))


def sample_extremal(n: int, m: int, rng: np.random.Generator) -> Array:
    """Draw m Gaussian generators in n dimensions: extremal with probability one.

    >>> is_extremal(sample_extremal(3, 5, np.random.default_rng(0)))
    True
    """
    at_least(1, n=n, m=m)
    return rng.standard_normal((m, n))


def zonotope_family(
    peaks: Sequence[Sequence[float]], generators: ArrayLike, height: float = 1.0
) -> ReluNetwork:
    r"""Return :math:`h_{a^k} \circ \dots \circ h_{a^1} \circ \gamma`: zigzags after a support function.

    With extremal generators it has as many pieces as
    :func:`~pindown.geometry.counts.zonotope_pieces` says: each cone of :math:`\gamma` is
    cut into :math:`w^k`. In float64 that is exact if the slopes are: let gaps between peaks be powers
    of two.

    Args:
        peaks: For each zigzag its numbers :math:`a_1 < \dots < a_{w-1}`, all of the same length.
        generators: The vectors :math:`b^i`, shape (m, n).
        height: The number :math:`M`.

    Returns:
        A network with widths ``n, 2 m, w, ..., w, 1``.

    Example:
        >>> zonotope_family([[0.5], [0.5]], np.eye(2))
        ReluNetwork(2 -> 4 -> 2 -> 2 -> 1, 31 parameters)

    Mukherjee 2020, chapter 2, zonotope family.
    """
    lengths = [len(a) for a in peaks]
    if len(set(lengths)) != 1:
        raise ValueError(f"the family needs one or more zigzags of equal length; got lengths {lengths}.")
    zigzags = composed_zigzags([[float(t) for t in a] for a in peaks], float(height))
    assert isinstance(zigzags, ReluNetwork)  # floats give one in float64
    return compose(zigzags, zonotope_network(generators))


def _signs_by_angle(B: Array) -> Array:
    """Return the sign vectors of a plane zonotope's vertices, going around."""
    exact = _integers(B)
    # Turned into one half-plane, generators are passed in the order of their angles.
    turn = [1 if (y, x) >= (0, 0) else -1 for x, y in exact]
    upper = [(t * x, t * y) for t, (x, y) in zip(turn, exact, strict=True)]

    def turned(i: int, j: int) -> int:
        """Cross product: negative if i comes before j, 0 if they are parallel."""
        return upper[j][0] * upper[i][1] - upper[j][1] * upper[i][0]

    order = sorted((i for i in range(len(B)) if any(exact[i])), key=cmp_to_key(turned))
    last_of_angle = [turned(i, j) != 0 for i, j in pairwise(order)] + [True] * bool(order)
    signs = -np.array(turn, dtype=float)
    found = []
    for _ in range(2 if order else 0):
        for i, last in zip(order, last_of_angle, strict=True):
            signs[i] = -signs[i]
            if last:
                found.append(signs.copy())
    return np.array(found[-1:] + found[:-1]) if found else signs[None]


def _integers(B: Array) -> list[list[int]]:
    """Return the generators times one positive number that makes all of them integers."""
    exact = [[Fraction(value) for value in row] for row in B.tolist()]
    scale = lcm(*(value.denominator for row in exact for value in row))
    return [[int(value * scale) for value in row] for row in exact]


def _gram(rows: Sequence[Sequence[int]]) -> list[list[int]]:
    return [[sum(x * y for x, y in zip(a, b, strict=True)) for b in rows] for a in rows]


def _generators(generators: ArrayLike) -> Array:
    B = np.array(generators, dtype=np.float64)
    if B.ndim != 2 or 0 in B.shape or not is_finite(B):
        what = f"shape {B.shape}" if is_finite(B) else "NaN or infinity"
        raise ValueError(f"generators must be finite numbers, one vector in each row; got {what}.")
    return B
