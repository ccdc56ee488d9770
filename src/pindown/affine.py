"""One affine map, dense or sparse, and the few operations everything else is made of.

A convolution is a sparse matrix and a fully connected layer a dense one. No other module asks
which of the two it holds: it calls the functions here.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

Array: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Matrix: TypeAlias = Any  # an Array, or a scipy.sparse.csr_array of float64

# Measured on one core with 1,024 rows: CSR and BLAS take the same time when about a tenth of the
# entries are not zero. Small matrices are dense: with few rows the call's overhead decides.
_DENSE_BELOW_ENTRIES = 65_536
_DENSE_ABOVE_DENSITY = 0.1


class Affine(NamedTuple):
    """The map ``z = W a + b``; unpacks as ``W, b = layer``.

    Attributes:
        weight: ``W`` of shape (out, in): a read-only array or ``scipy.sparse.csr_array``.
        bias: ``b`` of shape (out,), read-only.
    """

    weight: Matrix
    bias: Array

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles are frozen too; NumPy alone would forget that."""
        return _frozen, tuple(self)

    @property
    def in_features(self) -> int:
        """Length of ``a``."""
        return int(self.weight.shape[1])

    @property
    def out_features(self) -> int:
        """Length of ``z``."""
        return int(self.weight.shape[0])

    @property
    def n_parameters(self) -> int:
        """Stored weights (the non-zeros of a sparse matrix) and biases."""
        return stored_entries(self.weight) + int(self.bias.size)

    @property
    def nbytes(self) -> int:
        """Bytes of memory; a sparse matrix also stores where its numbers are."""
        return sum(part.nbytes for part in (*_arrays(self.weight), self.bias))

    def __call__(self, rows: Array, out: Array | None = None) -> Array:
        """Map each row: (n, in) -> (n, out), into ``out`` when it is given."""
        if sp.issparse(self.weight):
            z = np.ascontiguousarray((self.weight @ np.ascontiguousarray(rows.T)).T)
            return np.add(z, self.bias, out=z if out is None else out)
        z = np.matmul(rows, self.weight.T, out=out)
        z += self.bias
        return z

    def pull_back(self, rows: Array) -> Array:
        """Return ``rows @ W``: (n, out) -> (n, in), how linear forms in ``z`` look in ``a``."""
        if sp.issparse(self.weight):
            return np.ascontiguousarray((self.weight.T @ np.ascontiguousarray(rows.T)).T)
        return rows @ self.weight

    def after(self, inner: Affine) -> Affine:
        """Return the single map ``a -> self(inner(a))``."""
        bias = np.asarray(self.weight @ inner.bias) + self.bias
        return Affine.of(compact(self.weight @ inner.weight), bias)

    @classmethod
    def of(cls, weight: ArrayLike | Matrix, bias: ArrayLike) -> Affine:
        """Validate, copy to float64 and freeze.

        Raises:
            ValueError: If shapes do not fit or an entry is not finite.
            TypeError: If an entry is not a real number.
        """
        W, b = _frozen_matrix(weight), _frozen_array(bias, "bias")
        if W.ndim != 2 or b.shape != W.shape[:1]:
            raise ValueError(
                f"an affine layer needs W of shape (out, in) and b of shape (out,); "
                f"got W {W.shape} and b {b.shape}."
            )
        if 0 in W.shape:
            raise ValueError(f"an affine layer needs at least one input and output; got W {W.shape}.")
        return cls(W, b)


def dense(matrix: Matrix) -> Array:
    """Return the matrix as a dense array (the array itself if it is dense already)."""
    return matrix.toarray() if sp.issparse(matrix) else matrix


def stored_entries(matrix: Matrix) -> int:
    """Return how many entries are stored: all of a dense matrix, the non-zeros of a sparse one."""
    return int(matrix.nnz if sp.issparse(matrix) else matrix.size)


def stored_numbers(matrix: Matrix) -> Array:
    """Return the numbers that are stored: all of a dense matrix, the non-zeros of a sparse one."""
    return matrix.data if sp.issparse(matrix) else matrix


def compact(matrix: Matrix) -> Matrix:
    """Return the matrix in the storage that evaluates faster.

    >>> type(compact(sp.csr_array(np.eye(3)))).__name__
    'ndarray'
    >>> type(compact(sp.eye_array(1000, format="csr"))).__name__
    'csr_array'
    """
    entries = matrix.shape[0] * matrix.shape[1]
    if entries <= _DENSE_BELOW_ENTRIES:
        return dense(matrix)
    filled = matrix.count_nonzero() if sp.issparse(matrix) else np.count_nonzero(matrix)
    if filled > _DENSE_ABOVE_DENSITY * entries:
        return dense(matrix)
    return sp.csr_array(matrix)


def blocks(grid: list[list[Matrix]]) -> Matrix:
    """Assemble a block matrix (``None`` is a zero block) in the faster storage."""
    if all(isinstance(block, np.ndarray) for row in grid for block in row):
        return np.block(grid)
    sparse = [[None if block is None else sp.coo_array(block) for block in row] for row in grid]
    return compact(sp.block_array(sparse, format="csr"))


def block_diagonal(matrices: list[Matrix]) -> Matrix:
    """Assemble a block-diagonal matrix in the faster storage."""
    return compact(sp.block_diag([sp.coo_array(matrix) for matrix in matrices], format="csr"))


def _frozen(weight: Matrix, bias: Array) -> Affine:
    _freeze(*_arrays(weight), bias)
    return Affine(weight, bias)


def _freeze(*arrays: NDArray[Any]) -> None:
    for array in arrays:
        array.flags.writeable = False


def _arrays(matrix: Matrix) -> tuple[NDArray[Any], ...]:
    """Return the arrays a matrix is stored in."""
    return (matrix.data, matrix.indices, matrix.indptr) if sp.issparse(matrix) else (matrix,)


def _frozen_matrix(weight: ArrayLike | Matrix) -> Matrix:
    if not sp.issparse(weight):
        return _frozen_array(weight, "weight")
    _require_real(np.dtype(weight.dtype), "weight")  # type: ignore[union-attr]
    W = sp.csr_array(weight, dtype=np.float64, copy=True)
    _require_sound(W)
    W.sum_duplicates()  # also sorts: canonical form before freezing, SciPy would do it in place
    W.eliminate_zeros()  # after that: duplicates may cancel
    _require_finite(W.data, "weight")
    _freeze(*_arrays(W))
    return W


def _require_sound(W: sp.csr_array) -> None:
    """Check the index arrays, which SciPy's compiled code follows blindly."""
    # SciPy's own full check skips a matrix whose last pointer says that it is empty.
    ordered = W.indptr[0] == 0 and (np.diff(W.indptr) >= 0).all() and W.indptr[-1] <= len(W.indices)
    used = W.indices[: W.indptr[-1]] if ordered else W.indices
    inside = not used.size or (used.min() >= 0 and used.max() < W.shape[1])
    if not (ordered and inside):
        raise ValueError("the index arrays of the sparse weight are damaged.")


def _frozen_array(values: ArrayLike, name: str) -> Array:
    raw = np.asarray(values)
    _require_real(raw.dtype, name)
    try:
        array = np.array(raw, dtype=np.float64, order="C")
    except OverflowError:
        raise ValueError(f"{name} must hold numbers that fit float64; got a larger one.") from None
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must hold real numbers; got {error}.") from None
    _require_finite(array, name)
    array += 0.0  # turns -0.0 into 0.0, so that equal numbers have equal bytes
    _freeze(array)
    return array


def _require_real(dtype: np.dtype[Any], name: str) -> None:
    if dtype.kind not in "biufO":
        raise TypeError(f"{name} must hold real numbers; got dtype {dtype}.")


def _require_finite(values: Array, name: str) -> None:
    if not is_finite(values):
        bad = int(np.count_nonzero(~np.isfinite(values)))
        raise ValueError(f"{name} must be finite; {bad} of {values.size} entries are NaN or infinite.")


def is_finite(values: Array) -> bool:
    """Return whether all entries are finite, in one cheap pass when they are."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(values.sum()) or np.isfinite(values).all())


def angle(a: ArrayLike, b: ArrayLike) -> float:
    """Return the angle between two vectors in radians, accurate also when it is tiny.

    >>> angle([1, 0], [1, 1e-9])
    1e-09
    """
    u, v = np.asarray(a, dtype=float).ravel(), np.asarray(b, dtype=float).ravel()
    if u.shape != v.shape:
        raise ValueError(f"vectors must have the same length; got {u.size} and {v.size}.")
    lengths = float(np.linalg.norm(u)), float(np.linalg.norm(v))
    if not all(0 < n < math.inf for n in lengths):
        raise ValueError(f"vectors must be finite and not zero; their lengths are {lengths}.")
    u, v = u / lengths[0], v / lengths[1]
    # The arc cosine of the inner product loses half of the digits near 0 and pi.
    return 2 * math.atan2(float(np.linalg.norm(u - v)), float(np.linalg.norm(u + v)))
