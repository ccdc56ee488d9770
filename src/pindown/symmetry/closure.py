"""The group that a few permutations or matrices generate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.symmetry.groups import LARGEST_ORDER, Group, from_permutations
from pindown.symmetry.matrices import check_representation
from pindown.symmetry.tables import check_table, spread_rows

# Products of matrices drift by rounding; elements of a finite group stay much farther apart than this.
SAME_MATRIX = 1e-7
# Entries are rounded to a grid that is shifted by an odd amount, so that none sits on an edge.
_OFFSET = 0.31830988618


def generate(generators: ArrayLike, name: str = "G", *, largest: int = LARGEST_ORDER) -> Group:
    """Return all products of some permutations or some matrices, as a group.

    Args:
        generators: Permutations ``(k, n)`` of 0, ..., n - 1, or matrices ``(k, d, d)`` of finite order.
        name: What to call it.
        largest: Stop with an error beyond this many elements.

    Returns:
        The group, the identity first. Permutations become its points, matrices its action.

    Raises:
        ValueError: If there are more than ``largest`` products, as for a rotation by one radian.

    >>> generate([(1, 2, 0, 3), (1, 0, 2, 3)]).order  # moves the first three of four things
    6
    >>> quarter = [[0.0, -1.0], [1.0, 0.0]]
    >>> generate([quarter]).order
    4

    Lecture course, slides on groups.
    """
    given = np.asarray(generators)
    if not isinstance(largest, int | np.integer) or not 1 <= largest <= LARGEST_ORDER:
        raise ValueError(f"largest must be a whole number from 1 to {LARGEST_ORDER}; got {largest!r}.")
    if given.ndim == 2 and given.dtype.kind in "iu":
        return _permutations(given.astype(np.int64), name, int(largest))
    if given.ndim == 3 and given.dtype.kind in "iuf":
        return _matrices(check_representation(given), name, int(largest))
    raise ValueError(
        f"generators are whole-number permutations (k, n) or matrices (k, d, d); got "
        f"{given.dtype} of shape {given.shape}."
    )


def _permutations(generators: NDArray[np.int64], name: str, largest: int) -> Group:
    n = generators.shape[1]
    if n == 0 or not (np.sort(generators, axis=1) == np.arange(n)).all():
        raise ValueError("each generator must be a permutation of 0, ..., n - 1.")
    elements, _ = _closure(np.arange(n), generators, lambda g, h: g[h], lambda g: g.tobytes(), largest)
    chosen = [_position(elements, g) for g in generators]
    return from_permutations(np.array(elements).tolist(), name, generators=tuple(dict.fromkeys(chosen)))


def _matrices(generators: NDArray[np.float64], name: str, largest: int) -> Group:
    size = 1.0 + float(np.abs(generators).max())
    elements, keys = _closure(
        np.eye(generators.shape[1]), generators, np.matmul, lambda g: _key(g, size), largest
    )
    matrices = np.array(elements)
    chosen = tuple(dict.fromkeys(keys[_key(g, size)] for g in generators))
    table = np.zeros((len(matrices), len(matrices)), dtype=np.int64)
    table[0], known = np.arange(len(matrices)), np.arange(len(matrices)) == 0
    for generator in chosen:
        products = [keys.get(_key(product, size), -1) for product in matrices[generator] @ matrices]
        if min(products) < 0:
            raise ValueError("products drift apart by rounding; give the matrices to full precision.")
        table[generator], known[generator] = products, True
    spread_rows(table, known, chosen)
    return Group(name, tuple(range(len(matrices))), check_table(table, chosen), chosen, matrices)


def _closure(
    identity: NDArray[Any],
    generators: NDArray[Any],
    multiply: Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]],
    key: Callable[[NDArray[Any]], bytes],
    largest: int,
) -> tuple[list[NDArray[Any]], dict[bytes, int]]:
    elements, keys = [identity], {key(identity): 0}
    for element in elements:  # the list grows while it is read
        for generator in generators:
            product = multiply(element, generator)
            code = key(product)
            if code not in keys:
                if len(elements) == largest:
                    raise ValueError(
                        f"the products are more than {largest} elements: the group is larger, or "
                        f"infinite as that of a rotation by an irrational angle."
                    )
                keys[code] = len(elements)
                elements.append(product)
    return elements, keys


def _key(matrix: NDArray[np.float64], size: float) -> bytes:
    return np.floor(matrix / (size * SAME_MATRIX) + _OFFSET).astype(np.int64).tobytes()


def _position(elements: Sequence[NDArray[np.int64]], wanted: NDArray[np.int64]) -> int:
    return next(i for i, g in enumerate(elements) if (g == wanted).all())
