r"""From maps known up to noise to a multiplication table, and to matrices that obey it exactly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.symmetry.discovery.maps import nearest_orthogonal
from pindown.symmetry.tables import check_table

# A product must be this much nearer to its element than to any other.
_CLEAR = 0.5
# Averaging converges quadratically from maps that nearly multiply like the table.
_ROUNDS = 60
_EXACT = 1e-13
# Products of rounded matrices agree with the table's to this, or they were not near a representation.
_REPRESENTS = 1e-10


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
    >>> table_of(np.array([[[1.0]], [[2.0]]]), np.eye(1), 0.1)
    Traceback (most recent call last):
    ...
    pindown.symmetry.discovery.rounding.NotClosedError: the product of maps 1 and 1 is none of the 2 maps
    """
    n = len(matrices)
    table = np.zeros((n, n), dtype=np.int64)
    for row, matrix in enumerate(matrices):
        gaps = effect(matrix @ matrices, matrices, spread)
        nearest = gaps.argmin(axis=1)
        ordered = np.sort(gaps, axis=1)
        second = ordered[:, 1] if n > 1 else np.full(n, np.inf)
        wrong = (ordered[:, 0] > limit) | (ordered[:, 0] > _CLEAR * second)
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
    for _ in range(_ROUNDS):
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
