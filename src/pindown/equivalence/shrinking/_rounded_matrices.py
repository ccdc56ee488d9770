r"""Sums and products of float64 numbers together with a bound on what rounding did to them.

For :math:`c = \mathrm{fl}(a \circ b)` the error :math:`a \circ b - c` of one operation is itself a
float64 (Knuth for sums, Dekker for products), so it can be computed, and it is zero exactly when the
operation was exact. Adding the magnitudes of these errors, rounded up, bounds the error of a matrix
product; the bound is 0.0 when no operation rounded, which is the usual case for float32 weights and
factors of one. Weight matrices are read and cut here as well, dense or sparse, without asking which.

Higham 2002, "Accuracy and Stability of Numerical Algorithms", chapters 3 and 4.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pindown.affine import Array, Matrix, blocks, compact, dense
from pindown.equivalence.tuning import FOLLOWED_PRODUCTS, MAX_PRODUCT_ENTRIES, MAX_PRODUCT_TERMS
from pindown.rounding import SMALLEST, UNIT_ROUNDOFF, gamma, two_product, two_sum

# Dekker's error term may itself underflow below this product, and the splitting may overflow above.
_SAFE_PRODUCT = (2.0**-900, 2.0**990)
Mask = NDArray[np.bool_]


class Rounded(NamedTuple):
    """A computed array and an entrywise bound ``|true - value| <= error``, in the same storage."""

    value: Matrix
    error: Matrix

    @property
    def exact(self) -> bool:
        """Whether nothing was rounded."""
        return largest(self.error) == 0.0


def largest(matrix: Matrix) -> float:
    """Return the largest magnitude of an array or sparse matrix; NaN counts as infinite."""
    entries = matrix.data if sp.issparse(matrix) else np.asarray(matrix)
    top = float(np.max(np.abs(entries), initial=0.0))
    return np.inf if np.isnan(top) else top


def add(a: Array, b: Array) -> Rounded:
    """Return ``a + b`` for arrays.

    >>> add(np.array([1.0, 1.0]), np.array([2.0, 1e-30]))
    Rounded(value=array([3., 1.]), error=array([0.e+00, 1.e-30]))
    """
    with np.errstate(over="ignore", invalid="ignore"):
        total, error = two_sum(np.asarray(a, dtype=float), np.asarray(b, dtype=float))
    return Rounded(total, np.where(np.isfinite(total), np.abs(error), np.inf))


def multiply(a: Array, b: Array) -> Rounded:
    """Return ``a * b`` for arrays, entry by entry with broadcasting.

    >>> multiply(np.array([3.0]), np.array([0.5]))
    Rounded(value=array([1.5]), error=array([0.]))
    """
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        product, error = two_product(np.asarray(a, dtype=float), b)
        size = np.abs(product)
        low, high = _SAFE_PRODUCT
        nothing = (a == 0.0) | (b == 0.0) | (np.abs(a) == 1.0) | (np.abs(b) == 1.0)
        safe = (size > low) & (np.abs(a) < high) & (np.abs(b) < high) & (size < high)
        bound = np.where(safe, np.abs(error), UNIT_ROUNDOFF * size + SMALLEST)
    return Rounded(product, np.where(nothing, 0.0, bound))


def exact_terms(a: Array, b: Array) -> Array | None:
    """Return numbers whose exact sum is ``a . b``, or None where float64 cannot hold them."""
    with np.errstate(over="ignore", invalid="ignore"):
        product, error = two_product(a, b)
        size = np.abs(product)
    low, high = _SAFE_PRODUCT
    safe = (size == 0.0) & ((a == 0.0) | (b == 0.0)) | (size > low) & (size < high)
    if not (safe.all() and np.isfinite(error).all()):
        return None
    return np.concatenate([product, error])


def feasible(A: Matrix, B: Matrix) -> bool:
    """Return whether ``A @ B`` is small enough to be worth forming."""
    if sp.issparse(A) and sp.issparse(B):
        return int(np.diff(B.indptr)[A.indices].sum()) <= MAX_PRODUCT_TERMS
    return A.shape[0] * B.shape[1] <= MAX_PRODUCT_ENTRIES


def matmul(A: Matrix, B: Matrix) -> Rounded:
    """Return ``A @ B``, in the faster storage.

    >>> product = matmul(np.array([[1.0, -1.0]]), np.array([[0.1, 0.3], [0.1, 0.1]]))
    >>> product.value.round(9), product.exact
    (array([[0. , 0.2]]), True)
    """
    if sp.issparse(A) and sp.issparse(B):
        return _sparse_product(A, B)
    left, right = (int(_row_counts(part).max(initial=0)) for part in (A, B.T))
    outer = A.shape[0] * B.shape[1]
    if min(left, right) * outer <= FOLLOWED_PRODUCTS:
        if left <= right:
            return _followed(A, dense(B))
        value, error = _followed(B.T, np.ascontiguousarray(dense(A).T))
        return Rounded(np.ascontiguousarray(value.T), np.ascontiguousarray(error.T))
    terms = min(left, right)
    with np.errstate(over="ignore", invalid="ignore"):
        value = np.asarray(A @ B)
        spread = np.asarray(abs(A) @ abs(B))
    # Twice the textbook bound, for it is computed in float64 as well.
    return Rounded(value, 2.0 * gamma(terms + 2) * spread + terms * SMALLEST)


def affine_image(A: Matrix, b: Array, offset: Array) -> Rounded:
    """Return the vector ``A @ b + offset``."""
    product = matmul(A, b[:, None])
    value, error = (dense(part)[:, 0] for part in product)
    total = add(value, offset)
    return Rounded(total.value, sum_up(error, total.error))


def sum_up(a: Array, b: Array) -> Array:
    """Return an upper bound on the sum of two arrays of numbers >= 0, exact where one is 0."""
    with np.errstate(over="ignore"):
        total = a + b
        return np.where((a == 0.0) | (b == 0.0), total, np.nextafter(total, np.inf))


def same_products(a: Array, b: Array, c: Array, d: Array) -> NDArray[np.bool_]:
    """Return entry by entry whether ``a b == c d`` in exact arithmetic.

    >>> same_products(np.array([0.1]), np.array([3.0]), np.array([0.3]), np.array([1.0]))
    array([False])
    """
    parts, powers = zip(*(np.frexp(x) for x in (a, b, c, d)), strict=True)
    # Fractions in [1/2, 1): their products neither overflow nor underflow, and 4 powers apart differ.
    shift = np.clip(powers[0] + powers[1] - powers[2] - powers[3], -4, 4)
    first, first_error = two_product(parts[0], parts[1])
    second, second_error = two_product(parts[2], parts[3])
    return (np.ldexp(first, shift) == second) & (np.ldexp(first_error, shift) == second_error)


def _row_counts(matrix: Matrix) -> NDArray[np.int64]:
    """Return the number of non-zeros of each row."""
    if sp.issparse(matrix):
        return np.diff(sp.csr_array(matrix).indptr)
    return np.count_nonzero(matrix, axis=1)


def _followed(A: Matrix, B: Array) -> Rounded:
    """Multiply one non-zero of every row of A at a time, watching each operation."""
    rows = sp.csr_array(A)
    counts = np.diff(rows.indptr)
    value, error = np.zeros((A.shape[0], B.shape[1])), np.zeros((A.shape[0], B.shape[1]))
    for slot in range(int(counts.max(initial=0))):
        here = np.flatnonzero(counts > slot)
        place = rows.indptr[here] + slot
        term = multiply(rows.data[place][:, None], B[rows.indices[place]])
        if slot == 0:
            value[here], error[here] = term
            continue
        total = add(value[here], term.value)
        error[here] = sum_up(sum_up(error[here], term.error), total.error)
        value[here] = total.value
    return Rounded(value, error)


def _sparse_product(A: Matrix, B: Matrix) -> Rounded:
    """Multiply two sparse matrices by listing all products and summing those that meet."""
    A, B = sp.csr_array(A), sp.csr_array(B)
    lengths = np.diff(B.indptr)[A.indices]
    owner = np.repeat(np.arange(len(A.indices)), lengths)
    starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
    source = B.indptr[A.indices][owner] + np.arange(len(owner)) - starts
    term = multiply(A.data[owner], B.data[source])
    row = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))[owner]
    place = row.astype(np.int64) * B.shape[1] + B.indices[source]
    order = np.argsort(place, kind="stable")
    places, first, count = np.unique(place[order], return_index=True, return_counts=True)
    products, errors = term.value[order], term.error[order]
    value, error = np.zeros(len(places)), np.zeros(len(places))
    for slot in range(int(count.max(initial=0))):
        here = np.flatnonzero(count > slot)
        total = add(value[here], products[first[here] + slot])
        error[here] = sum_up(sum_up(error[here], errors[first[here] + slot]), total.error)
        value[here] = total.value
    where = (places // B.shape[1], places % B.shape[1])
    shape = (A.shape[0], B.shape[1])
    summed = compact(sp.csr_array((value, where), shape=shape))
    slack = sp.csr_array((error, where), shape=shape)
    return Rounded(summed, dense(slack) if isinstance(summed, np.ndarray) else slack)


def used_columns(weight: Matrix) -> Mask:
    """Return which columns hold a non-zero."""
    if sp.issparse(weight):
        return np.bincount(weight.indices, weight.data != 0.0, minlength=weight.shape[1]) > 0
    return np.asarray((weight != 0.0).any(axis=0))


def used_rows(weight: Matrix) -> Mask:
    """Return which rows hold a non-zero."""
    if sp.issparse(weight):
        return used_columns(sp.csr_array(weight.T))
    return np.asarray((weight != 0.0).any(axis=1))


def rows_of(weight: Matrix, keep: Any) -> Matrix:
    """Return some rows (a mask or indices)."""
    return weight[_indices(keep)]


def columns_of(weight: Matrix, keep: Any) -> Matrix:
    """Return some columns (a mask or indices)."""
    if sp.issparse(weight):
        return sp.csr_array(sp.csc_array(weight)[:, _indices(keep)])
    return weight[:, _indices(keep)]


def stacked(top: Matrix, bottom: Matrix) -> Matrix:
    """Return one matrix above the other."""
    if 0 in (top.shape[0], bottom.shape[0]):
        return top if bottom.shape[0] == 0 else bottom
    return blocks([[top], [bottom]])


def beside(left: Matrix, right: Matrix) -> Matrix:
    """Return one matrix to the left of the other."""
    if 0 in (left.shape[1], right.shape[1]):
        return left if right.shape[1] == 0 else right
    return blocks([[left, right]])


def zeros(rows: int, columns: int) -> Matrix:
    """Return a zero matrix in the faster storage."""
    return compact(sp.csr_array((rows, columns)))


def row(weight: Matrix, bias: Array, unit: int) -> Array:
    """Return one unit's weights and bias in one array."""
    if not sp.issparse(weight):
        return np.append(weight[unit], bias[unit])
    full = np.zeros(weight.shape[1] + 1)
    stored = slice(weight.indptr[unit], weight.indptr[unit + 1])
    full[weight.indices[stored]], full[-1] = weight.data[stored], bias[unit]
    return full


def with_columns(matrix: Matrix, places: NDArray[np.intp], columns: Matrix | float) -> Matrix:
    """Return the matrix with some columns replaced."""
    if not sp.issparse(matrix):
        replaced = np.array(matrix)
        replaced[:, places] = dense(columns)
        return replaced
    n = matrix.shape[1]
    stay = np.ones(n)
    stay[places] = 0.0
    spread = sp.csr_array((np.ones(len(places)), (np.arange(len(places)), places)), (len(places), n))
    new = columns if np.ndim(columns) else np.full((matrix.shape[0], len(places)), columns)
    return sp.csr_array(matrix @ sp.diags_array(stay) + sp.csr_array(new) @ spread)


def _indices(keep: Any) -> NDArray[np.intp]:
    keep = np.asarray(keep)
    return np.flatnonzero(keep) if keep.dtype == bool else keep.astype(np.intp)
