"""Matrices by which the elements of a group act: of permutations, and as users give them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

# Products of matrices given as floats agree with the table's up to rounding.
REPRESENTATION_TOLERANCE = 1e-9


def permutation_matrices(permutations: NDArray[np.int64]) -> NDArray[np.float64]:
    """Matrices that send the basis vector of i to that of ``permutations[g, i]``.

    >>> permutation_matrices(np.array([[1, 2, 0]]))[0] @ [10.0, 20.0, 30.0]
    array([30., 10., 20.])
    """
    order, n = permutations.shape
    matrices = np.zeros((order, n, n))
    matrices[np.arange(order)[:, None], permutations, np.arange(n)] = 1.0
    return matrices


def check_representation(matrices: object) -> NDArray[np.float64]:
    """Return matrices as an array ``(order, d, d)`` of finite numbers, or say what is wrong."""
    if np.asarray(matrices).dtype.kind == "c":
        raise ValueError("a representation is real here; write a + ib as the matrix [[a, -b], [b, a]].")
    array = np.asarray(matrices, dtype=float)
    if array.ndim != 3 or array.shape[1] != array.shape[2] or 0 in array.shape:
        raise ValueError(
            f"a representation has shape (order, d, d), one matrix per element; got {array.shape}."
        )
    if not np.isfinite(array).all():
        raise ValueError("a representation holds finite numbers; these hold NaN or infinity.")
    return array


def require_products(
    matrices: NDArray[np.float64],
    table: NDArray[np.int64],
    generators: Sequence[int],
    elements: Sequence[Hashable],
    name: str,
) -> None:
    """Refuse matrices that do not multiply as the elements of a group do.

    Raises:
        ValueError: Naming the element at which they do not.
    """
    if np.abs(matrices[0] - np.eye(matrices.shape[1])).max() > REPRESENTATION_TOLERANCE:
        raise ValueError(
            f"the first matrix must be the identity, as {elements[0]!r} is in {name}; "
            f"give them in the order of .elements."
        )
    scale = 1.0 + float(np.abs(matrices).max()) ** 2
    for generator in generators:
        wrong = np.abs(matrices[generator] @ matrices - matrices[table[generator]]).max()
        if wrong > REPRESENTATION_TOLERANCE * scale:
            raise ValueError(
                f"the matrices do not multiply as {name} does (off by {wrong:.2g} at element "
                f"{elements[generator]!r}); give them in the order of .elements."
            )
