"""Equal rows among many: by a short digest of each, and every match compared number by number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.network import row_chunks

Indices = NDArray[np.intp]


def first_equal(X: Array, check: Callable[[], None] = lambda: None) -> Indices:
    """Return for every row the number of the first row equal to it; -0 and 0 are equal.

    Args:
        X: Rows, (n, d).
        check: Called between parts of the work; may raise to end it.

    >>> first_equal(np.array([[1.0, 0.0], [2.0, 0.0], [1.0, -0.0]])).tolist()
    [0, 1, 0]
    """
    _, first, place = np.unique(_digests(X, check), return_index=True, return_inverse=True)
    leaders: Indices = first[place.ravel()]
    again = np.flatnonzero(leaders != np.arange(len(X)))
    if not _are_equal(X, again, X, leaders[again], check):
        _, first, place = np.unique(_whole(X), return_index=True, return_inverse=True)
        leaders = first[place.ravel()]
    return leaders


def are_among(rows: Array, X: Array, check: Callable[[], None] = lambda: None) -> NDArray[np.bool_]:
    """Return for every row whether X has an equal one.

    >>> are_among(np.array([[2.0], [3.0]]), np.array([[1.0], [2.0]])).tolist()
    [True, False]
    """
    digests, place = np.unique(_digests(X, check), return_index=True)
    wanted = _digests(rows, check)
    at = np.minimum(np.searchsorted(digests, wanted), len(digests) - 1)
    found: NDArray[np.bool_] = digests[at] == wanted
    matched = np.flatnonzero(found)
    if not _are_equal(rows, matched, X, place[at[matched]], check):
        return np.isin(_whole(rows), _whole(X))
    return found


def _digests(X: Array, check: Callable[[], None]) -> NDArray[np.uint64]:
    """Return one number per row: equal rows have equal ones, others only by a rare accident."""
    odd = np.random.default_rng(0).integers(2**64, size=X.shape[1], dtype=np.uint64) | np.uint64(1)
    result = np.empty(len(X), dtype=np.uint64)
    for part in row_chunks(len(X), X.itemsize * X.shape[1]):
        check()
        bits = (X[part] + 0.0).view(np.uint64)  # no negative zeros
        # The high bits of a product depend on all bits of its factors, the low ones on few.
        mixed = (bits ^ (bits >> np.uint64(32))) * odd
        result[part] = (mixed ^ (mixed >> np.uint64(29))).sum(axis=1, dtype=np.uint64)
    return result


def _are_equal(A: Array, i: Indices, B: Array, j: Indices, check: Callable[[], None]) -> bool:
    for part in row_chunks(len(i), A.itemsize * A.shape[1]):
        check()
        if not np.array_equal(A[i[part]], B[j[part]]):
            return False
    return True


def _whole(X: Array) -> NDArray[Any]:
    """Return rows as values that can be sorted: slow, and right whatever the digests say."""
    rows = np.ascontiguousarray(X + 0.0)
    return rows.view(f"V{rows.dtype.itemsize * rows.shape[1]}").ravel()
