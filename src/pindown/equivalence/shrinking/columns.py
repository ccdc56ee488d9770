"""Reading and cutting weight matrices, dense or sparse, without asking which."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pindown.affine import Array, Matrix, blocks, compact, dense

Mask = NDArray[np.bool_]


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
