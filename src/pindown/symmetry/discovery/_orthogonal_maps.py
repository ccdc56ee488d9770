"""Orthogonal maps between samples: fitted, compared by what they do to the data, and made a group.

From maps known up to noise follow a multiplication table, and matrices that obey it exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.symmetry.axioms import check_table
from pindown.symmetry.discovery._orbits import Pairs
from pindown.symmetry.discovery.tuning import (
    CLEAR_ELEMENT_RATIO,
    MAX_AVERAGING_STEPS,
    MISSED_SHARE,
    RARE_MAP_SHARE,
    REFITTING_ROUNDS,
)

_EXACT = 1e-13
# Products of rounded matrices agree with the table's to this, or they were not near a representation.
_REPRESENTS = 1e-10


@dataclass
class Maps:
    """Orthogonal maps found among pairs, the identity first.

    Attributes:
        matrices: The maps.
        noise: Standard deviation of the noise in a coordinate that the limits assume.
        explained: Whether each pair is explained.
        out_of_time: Whether the search was cut short.
        coarse: Whether maps drawn at random explain pairs too, so that none can be told from chance.
        tried: Products that were looked at.
        dead: How many of them are no map of the list and relate no pair.
    """

    matrices: list[Array]
    noise: float
    explained: NDArray[np.bool_] = field(repr=False)
    out_of_time: bool = False
    coarse: bool = False
    tried: set[tuple[int, int]] = field(default_factory=set, repr=False)
    dead: int = 0


def residual_limit(noise: float, d: int) -> float:
    r"""Return the length of y - gx that noise in both exceeds with probability a thousandth.

    >>> round(residual_limit(1.0, 1), 2)  # 3.29 standard deviations of a difference of two
    4.65
    """
    from scipy.stats import chi2

    return float(noise * np.sqrt(2.0 * chi2.ppf(1.0 - MISSED_SHARE, d)))


def nearest_orthogonal(matrix: Array) -> Array:
    """Return the orthogonal matrix nearest to a matrix (or to each of a stack).

    >>> nearest_orthogonal(np.array([[2.0, 0.0], [0.0, -3.0]])).tolist()
    [[1.0, 0.0], [0.0, -1.0]]
    """
    left, _, right = np.linalg.svd(matrix)
    return np.asarray(left @ right)


def procrustes(first: Array, second: Array) -> Array:
    """Return the orthogonal map that takes the rows of one array closest to the rows of another.

    >>> procrustes(np.eye(2), np.array([[0.0, 1.0], [-1.0, 0.0]])).round(12).tolist()
    [[0.0, -1.0], [1.0, 0.0]]
    """
    return nearest_orthogonal(second.T @ first)


def residuals(matrix: Array, pairs: Pairs) -> Array:
    """Return the lengths of y - gx."""
    gap = pairs.second - pairs.first @ matrix.T
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", gap, gap)))


def nearest_elements(matrices: Array, first: Array, second: Array) -> tuple[Array, NDArray[np.int64]]:
    """Return, for each pair, the smallest distance from an image of the first to the second, and whose.

    >>> nearest_elements(np.array([[[1.0]], [[-1.0]]]), np.array([[2.0]]), np.array([[-2.5]]))
    (array([0.5]), array([1]))
    """
    square = np.empty((len(first), len(matrices)))
    for element, matrix in enumerate(matrices):
        square[:, element] = ((second - first @ matrix.T) ** 2).sum(axis=1)
    best = square.argmin(axis=1)
    return np.sqrt(square[np.arange(len(first)), best]), best


def is_known(candidate: Array, matrices: list[Array], moment: Array, limit: float) -> bool:
    r"""Return whether a map moves the data as one of some others does, up to noise.

    For orthogonal g and h the mean of :math:`\lVert g x - h x \rVert^2` is :math:`2 \mathrm{tr}(C) - 2
    \langle g C, h \rangle`, C the second moment of the data.

    >>> one = np.eye(1)
    >>> is_known(one, [-one], one, 1.0), is_known(one, [one], one, 1.0)
    (False, True)
    """
    if not matrices:
        return False
    agreement = np.tensordot(np.array(matrices), candidate @ moment, axes=2)
    return bool(2.0 * (np.trace(moment) - agreement.max()) <= limit**2)


def second_moment(pairs: Pairs) -> Array:
    """Return the mean of x x^T over the starts of pairs."""
    return np.asarray(pairs.first.T @ pairs.first / len(pairs))


def settled(found: Maps, pairs: Pairs, limit: float) -> Maps:
    """Refit all maps to the pairs nearest to them; merge what noise split, drop what few pairs use."""
    d, moment = pairs.first.shape[1], second_moment(pairs)
    matrices = list(found.matrices)
    for _ in range(REFITTING_ROUNDS):
        nearest, hit = _assigned(matrices, pairs, limit)
        support = [int((hit & (nearest == k)).sum()) for k in range(len(matrices))]
        usual = _usual(support[1:])
        kept: list[Array] = [np.eye(d)]
        for k in sorted(range(1, len(matrices)), key=lambda k: -support[k]):
            refitted = matrices[k]
            if support[k] > d:
                rows = hit & (nearest == k)
                refitted = procrustes(pairs.first[rows], pairs.second[rows])
            if support[k] >= max(1.0, RARE_MAP_SHARE * usual) and not is_known(
                refitted, kept, moment, limit
            ):
                kept.append(refitted)
        matrices = kept
    return Maps(matrices, found.noise, _assigned(matrices, pairs, limit)[1], found.out_of_time)


def _assigned(
    matrices: list[Array], pairs: Pairs, limit: float
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    distances = np.stack([residuals(matrix, pairs) for matrix in matrices])
    return distances.argmin(axis=0), distances.min(axis=0) <= limit


def _usual(support: list[int]) -> float:
    """Return the support of the map that explains the middle pair: remnants are many but explain few."""
    return float(np.median(np.repeat(support, support))) if any(support) else 0.0


class NotClosedError(ValueError):
    """The maps are no group: says which product is missing."""


def effect(first: Array, second: Array, spread: Array) -> Array:
    r"""Return how differently maps move data of second moment C, :math:`\lVert (g-h) C^{1/2} \rVert_F`.

    >>> effect(np.eye(1)[None], -np.eye(1)[None], np.eye(1)).tolist()
    [[2.0]]
    """
    a = np.einsum("gij,jk->gik", first, spread).reshape(len(first), -1)
    b = np.einsum("gij,jk->gik", second, spread).reshape(len(second), -1)
    square = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2.0 * a @ b.T
    return np.asarray(np.sqrt(np.maximum(square, 0.0)))


def table_of(matrices: Array, spread: Array, limit: float) -> NDArray[np.int64]:
    """Return the multiplication table of maps known up to noise, the identity first.

    Args:
        matrices: The maps, (n, d, d).
        spread: Square root of the second moment of the data, which says what matters.
        limit: Largest effect of the noise on a product.

    Raises:
        NotClosedError: If a product is none of the maps, or nearly two, or the table is no group's.

    >>> flip = np.array([[[1.0]], [[-1.0]]])
    >>> table_of(flip, np.eye(1), 0.1).tolist()
    [[0, 1], [1, 0]]
    >>> table_of(np.array([[[1.0]], [[2.0]]]), np.eye(1), 0.1)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    pindown...NotClosedError: the product of maps 1 and 1 is none of the 2 maps
    """
    n = len(matrices)
    table = np.zeros((n, n), dtype=np.int64)
    for row, matrix in enumerate(matrices):
        gaps = effect(matrix @ matrices, matrices, spread)
        nearest = gaps.argmin(axis=1)
        ordered = np.sort(gaps, axis=1)
        second = ordered[:, 1] if n > 1 else np.full(n, np.inf)
        wrong = (ordered[:, 0] > limit) | (ordered[:, 0] > CLEAR_ELEMENT_RATIO * second)
        if wrong.any():
            column = int(np.flatnonzero(wrong)[0])
            raise NotClosedError(f"the product of maps {row} and {column} is none of the {n} maps")
        table[row] = nearest
    try:
        return check_table(table)
    except ValueError as problem:
        raise NotClosedError(f"the maps multiply, but not as a group: {problem}") from None


def exact_representation(matrices: Array, table: NDArray[np.int64]) -> Array:
    r"""Return matrices near the given ones that multiply exactly as the table says.

    Repeats :math:`\rho(g) \leftarrow` the orthogonal matrix nearest to the mean of :math:`\rho(g h)
    \rho(h)^{-1}` over all h, which converges quadratically from an approximate representation and
    averages its errors over the group.

    Raises:
        NotClosedError: If the given matrices are not near any representation.

    >>> nearly = np.array([[[1.0]], [[-0.99]]])
    >>> exact_representation(nearly, np.array([[0, 1], [1, 0]])).tolist()
    [[[1.0]], [[-1.0]]]
    """
    current = nearest_orthogonal(matrices)
    for _ in range(MAX_AVERAGING_STEPS):
        inverse = np.swapaxes(current, 1, 2)
        # products rho(g h) rho(h)^-1 of one g at a time: all at once fill the memory in high dimensions
        averaged = [np.tensordot(current[row], inverse, axes=([0, 2], [0, 1])) for row in table]
        updated = nearest_orthogonal(np.array(averaged) / len(table))
        moved = float(np.abs(updated - current).max())
        current = updated
        if moved <= _EXACT:
            break
    wrong = max(
        float(np.abs(g @ current - current[row]).max()) for g, row in zip(current, table, strict=True)
    )
    if wrong > _REPRESENTS:
        raise NotClosedError(f"the maps are near no representation of their table (off by {wrong:.2g})")
    return current
