"""The axioms of a group, checked: on multiplication (Cayley) tables and on representing matrices."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Products of matrices given as floats agree with the table's up to rounding.
REPRESENTATION_TOLERANCE = 1e-9


def check_table(table: ArrayLike, generators: Sequence[int] | None = None) -> NDArray[np.int64]:
    r"""Return a multiplication table if it is a group's, with the identity first.

    Associativity :math:`(a s) b = a (s b)` is checked for every a and b and for those s that generate
    the rest; it then holds for all three (Light's test), at a cost of :math:`|S|\,n^2` instead of
    :math:`n^3`.

    Args:
        table: ``table[i, j]`` is the product of i and j, ``(n, n)``.
        generators: Elements said to generate all; by default a set is found.

    Raises:
        ValueError: Naming the axiom that fails: closure, identity, inverse, associativity.

    >>> check_table([[0, 1], [1, 0]]).tolist()
    [[0, 1], [1, 0]]
    >>> check_table([[0, 1], [1, 1]])
    Traceback (most recent call last):
    ...
    ValueError: no inverses: the products of element 1 do not reach every element once.

    Lecture course, slides on groups.
    """
    raw = np.asarray(table)
    if raw.ndim != 2 or raw.shape[0] != raw.shape[1] or 0 in raw.shape or raw.dtype.kind not in "iu":
        raise ValueError(
            f"a multiplication table holds integers, (order, order); got {raw.dtype} {raw.shape}."
        )
    found, n = raw.astype(np.int64), len(raw)
    if found.min() < 0 or found.max() >= n:
        raise ValueError(
            f"not closed: a table of {n} elements holds 0 to {n - 1}; got {_outside(found)}."
        )
    everything = np.arange(n)
    if not ((found[0] == everything).all() and (found[:, 0] == everything).all()):
        raise ValueError(
            "no identity: element 0 must leave every element as it is; put the identity first."
        )
    for products in (found, found.T):
        once = (np.sort(products, axis=1) == everything).all(axis=1)
        if not once.all():
            raise ValueError(
                f"no inverses: the products of element {int(np.argmin(once))} do not reach every "
                f"element once."
            )
    for s in _generating(found, generators):
        left, right = found[found[:, s]], found[:, found[s]]
        if not (left == right).all():
            a, b = np.argwhere(left != right)[0]
            raise ValueError(
                f"not associative: ({a} {s}) {b} = {left[a, b]}, {a} ({s} {b}) = {right[a, b]}."
            )
    return found


def spread_rows(table: NDArray[np.int64], known: NDArray[np.bool_], chosen: Sequence[int]) -> None:
    """Fill, in place, the rows of all products of generators whose own rows are known.

    The row of a product follows from the rows of its factors, (g h) j = g (h j), without a search.

    >>> table, known = np.array([[0, 1, 2], [1, 2, 0], [0, 0, 0]]), np.array([True, True, False])
    >>> spread_rows(table, known, [1])
    >>> table[2].tolist()
    [2, 0, 1]
    """
    front = np.flatnonzero(known)
    while len(front):
        reached = []
        for generator in chosen:
            products = table[generator, front]
            new = ~known[products]
            fresh, first = np.unique(products[new], return_index=True)
            table[fresh] = table[generator][table[front[new][first]]]
            known[fresh] = True
            reached.append(fresh)
        front = np.concatenate(reached)


def element_orders(table: ArrayLike) -> NDArray[np.int64]:
    """Return the order of every element: the first power that is the identity.

    >>> element_orders([[0, 1, 2], [1, 2, 0], [2, 0, 1]]).tolist()
    [1, 3, 3]
    """
    found = np.asarray(table, dtype=np.int64)
    elements = np.arange(len(found))
    power, orders = elements.copy(), np.zeros(len(found), dtype=np.int64)
    for exponent in range(1, len(found) + 1):
        orders[(power == 0) & (orders == 0)] = exponent
        power = found[power, elements]
    return orders


def is_abelian(table: ArrayLike) -> bool:
    """Return whether all elements commute.

    >>> is_abelian([[0, 1], [1, 0]])
    True
    """
    found = np.asarray(table)
    return bool((found == found.T).all())


def _outside(table: NDArray[np.int64]) -> int:
    return int(table.min() if table.min() < 0 else table.max())


def _generating(table: NDArray[np.int64], given: Sequence[int] | None) -> list[int]:
    """Return a set whose products reach everything; those given, and more if they do not."""
    n = len(table)
    if given is not None and not all(0 <= s < n for s in given):
        raise ValueError(f"generators are elements from 0 to {n - 1}; got {tuple(given)}.")
    chosen, known = [], np.zeros(n, dtype=bool)
    known[0] = True
    for s in [*(given or ()), *range(n)]:
        if known[s]:
            continue
        chosen.append(int(s))
        front = np.flatnonzero(known)
        while len(front):  # right products with the generators, until nothing new appears
            fresh = np.unique(table[front][:, chosen])
            front = fresh[~known[fresh]]
            known[front] = True
    return chosen


def table_of_permutations(
    points: NDArray[np.int64], index: dict[bytes, int], generators: tuple[int, ...] | None
) -> tuple[NDArray[np.int64], tuple[int, ...]]:
    """Return the table and generators; only the rows of generators need a search.

    The row of a product follows from the rows of its factors: (g h) j = g (h j).
    """
    order = len(points)
    if generators is not None and not all(0 <= generator < order for generator in generators):
        raise ValueError(f"generators are elements from 0 to {order - 1}; got {generators}.")
    table = np.zeros((order, order), dtype=np.int64)
    table[0], known, chosen = np.arange(order), np.zeros(order, dtype=bool), []
    known[0] = True
    for generator in range(1, order) if generators is None else generators:
        if known[generator] and generators is None:
            continue
        try:
            products = [index[row.tobytes()] for row in points[generator][points]]
        except KeyError:
            raise ValueError("the permutations are not closed under products; use generate().") from None
        table[generator], known[generator] = products, True
        chosen.append(int(generator))
        spread_rows(table, known, chosen)
    if not known.all():
        raise ValueError(f"the generators {generators} reach {int(known.sum())} of {order} elements.")
    return table, tuple(chosen) or (0,)


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
