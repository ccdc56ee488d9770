"""Tensors inside a model, as affine functions of what earlier ReLUs gave."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pindown.affine import Array, Matrix, blocks, dense, stored_entries
from pindown.errors import UnsupportedModelError
from pindown.model.limits import (
    MAX_ENTRIES,
    MAX_SPARSE_ENTRIES,
    MAX_UNITS,
    check_entries,
    check_multiplications,
    check_shape,
)
from pindown.model.operations.windows import Window, averaging_matrix, convolution_matrix


@dataclass(frozen=True)
class Expression:
    r"""A tensor whose flattened entries are :math:`\sum_b T_b a_b + c`.

    Attributes:
        shape: The tensor's shape.
        terms: Block number -> matrix :math:`T_b` of shape (entries, block size).
        constant: The vector :math:`c`.
    """

    shape: tuple[int, ...]
    terms: dict[int, Matrix]
    constant: Array

    def at(self, activations: Sequence[Array]) -> Array:
        """Return the flat entries where the blocks have these values."""
        exact = np.asarray(activations[0]).dtype == object
        matrix = np.vectorize(Fraction, otypes=[object]) if exact else np.asarray
        parts = (matrix(dense(T)) @ activations[b] for b, T in self.terms.items())
        return sum(parts, matrix(self.constant))

    def reshape(self, shape: Sequence[int]) -> Expression:
        """Give the same entries, in the same order, another shape."""
        return replace(self, shape=check_shape(shape, "a reshaped tensor"))

    def take(self, index: NDArray[np.int64]) -> Expression:
        """Return the tensor of ``index``'s shape that holds the entries at these flat positions."""
        check_shape(index.shape, "a rearranged tensor")
        flat = index.ravel()
        for T in self.terms.values():
            stored = np.diff(T.indptr)[flat].sum() if sp.issparse(T) else flat.size * T.shape[1]
            limit = MAX_SPARSE_ENTRIES if sp.issparse(T) else MAX_ENTRIES
            check_entries(int(stored), what="a rearranged tensor", limit=limit)
        terms = {b: T[flat] for b, T in self.terms.items()}
        return Expression(index.shape, terms, self.constant[flat])

    def rearrange(self, move: Callable[[NDArray[np.int64]], NDArray[np.int64]]) -> Expression:
        """Apply a function that only moves entries, such as a transpose, slice or broadcast."""
        return self.take(move(np.arange(math.prod(self.shape)).reshape(self.shape)))

    def broadcast(self, shape: Sequence[int]) -> Expression:
        """Repeat entries along new or unit axes."""
        wanted = check_shape(shape, "a broadcast tensor")
        return self if wanted == self.shape else self.rearrange(lambda i: np.broadcast_to(i, wanted))

    def map(self, matrix: Matrix, shape: Sequence[int]) -> Expression:
        """Apply a linear map to the flattened entries."""
        terms = {b: product(matrix, T) for b, T in self.terms.items()}
        return Expression(tuple(shape), terms, np.asarray(matrix @ self.constant))

    def scale(self, factor: Array) -> Expression:
        """Multiply by a constant, with broadcasting."""
        shape = np.broadcast_shapes(self.shape, np.shape(factor))
        wide = self.broadcast(shape)
        diagonal = sp.dia_array(
            (np.broadcast_to(factor, shape).reshape(1, -1), [0]), shape=(math.prod(shape),) * 2
        )
        return wide.map(diagonal.tocsr(), shape)

    def shift(self, offset: Array) -> Expression:
        """Add a constant, with broadcasting."""
        shape = np.broadcast_shapes(self.shape, np.shape(offset))
        wide = self.broadcast(shape)
        return replace(wide, constant=wide.constant + np.broadcast_to(offset, shape).ravel())

    def add(self, other: Expression) -> Expression:
        """Add another tensor, with broadcasting."""
        shape = np.broadcast_shapes(self.shape, other.shape)
        a, b = self.broadcast(shape), other.broadcast(shape)
        terms = dict(a.terms)
        for block, T in b.terms.items():
            terms[block] = terms[block] + T if block in terms else T
        return Expression(shape, terms, a.constant + b.constant)

    def total(self, axes: Sequence[int]) -> Expression:
        """Sum over axes, which stay with length one."""
        kept = [i for i in range(len(self.shape)) if i not in axes]
        count = math.prod(self.shape[i] for i in axes)
        size = math.prod(self.shape)
        columns = np.arange(size).reshape(self.shape).transpose(*kept, *axes).ravel()
        starts = np.arange(0, size + 1, count)
        matrix = sp.csr_array((np.ones(size), columns, starts), shape=(size // count, size))
        return self.map(matrix, tuple(1 if i in axes else n for i, n in enumerate(self.shape)))

    def times_matrix(self, W: Array) -> Expression:
        """Return ``self @ W`` for a constant matrix (n, m) on the right."""
        _require(W.ndim == 2 and self.shape[-1:] == W.shape[:1], "MatMul", self.shape, W.shape)
        lead = math.prod(self.shape[:-1])
        limit = MAX_ENTRIES if lead == 1 else MAX_SPARSE_ENTRIES
        check_entries(lead, W.size, what="a matrix product", limit=limit)
        M = W.T if lead == 1 else sp.kron(sp.eye_array(lead), W.T, format="csr")
        return self.map(M, (*self.shape[:-1], W.shape[1]))

    def matrix_times(self, W: Array) -> Expression:
        """Return ``W @ self`` for a constant matrix (m, n) on the left."""
        axis = -1 if len(self.shape) == 1 else -2
        _require(W.ndim == 2 and self.shape[axis] == W.shape[1], "MatMul", W.shape, self.shape)
        if axis == -1:
            return self.map(W, (W.shape[0],))
        swapped = self.rearrange(lambda i: i.swapaxes(-1, -2)).times_matrix(W.T)
        return swapped.rearrange(lambda i: i.swapaxes(-1, -2))

    def convolve(self, kernel: Array, bias: Array | None, window: Window, groups: int) -> Expression:
        """Convolve a (1, channels, *spatial) tensor."""
        shape, matrix = convolution_matrix(kernel, self._image("Conv"), window, groups)
        result = self._map_images(matrix, shape)
        return result if bias is None else result.shift(per_channel(bias, len(result.shape)))

    def average_pool(self, window: Window, count_padding: bool) -> Expression:
        """Average each channel of a (1, channels, *spatial) tensor over sliding windows."""
        shape, matrix = averaging_matrix(self._image("AveragePool"), window, count_padding)
        return self._map_images(matrix, shape)

    def _map_images(self, matrix: Matrix, shape: Sequence[int]) -> Expression:
        """Apply a linear map to every image; several make up a constant batch."""
        if self.shape[0] == 1:
            return self.map(matrix, (1, *shape))
        wanted = check_shape((self.shape[0], *shape), "a batch of images")
        images = self.constant.reshape(self.shape[0], -1)
        return Expression(wanted, {}, (matrix @ images.T).T.ravel())

    def _image(self, operation: str) -> tuple[int, ...]:
        if len(self.shape) < 3 or (self.shape[0] != 1 and self.terms):
            raise UnsupportedModelError(
                f"{operation} needs a tensor (batch 1, channels, spatial...); got {self.shape}."
            )
        return self.shape[1:]


def constant(values: Array) -> Expression:
    """Return a tensor that rests on no block."""
    return Expression(values.shape, {}, values.ravel())


def concatenate(parts: Sequence[Expression], axis: int) -> Expression:
    """Join tensors along an axis."""
    shapes = [part.shape for part in parts]
    offsets = np.cumsum([0] + [math.prod(shape) for shape in shapes])
    check_entries(int(offsets[-1]), what="a joined tensor", limit=MAX_UNITS)
    try:
        order = np.concatenate(
            [o + np.arange(math.prod(s)).reshape(s) for o, s in zip(offsets, shapes, strict=False)], axis
        )
    except ValueError:
        raise ValueError(f"tensors of shapes {shapes} cannot be joined.") from None
    terms = {}
    for b in sorted({b for part in parts for b in part.terms}):
        width = next(part.terms[b].shape[1] for part in parts if b in part.terms)
        stacked = [part.terms.get(b, sp.csr_array((part.constant.size, width))) for part in parts]
        terms[b] = blocks([[T] for T in stacked])
    flat = Expression((int(offsets[-1]),), terms, np.concatenate([p.constant for p in parts]))
    return flat.take(order)


def per_channel(values: Array, rank: int) -> Array:
    """Shape a vector so that it broadcasts along axis 1 of a tensor of the given rank."""
    return np.reshape(values, (1, -1) + (1,) * (rank - 2))


def product(left: Matrix, right: Matrix) -> Matrix:
    """Multiply, after making sure that the result fits."""
    rows, columns = left.shape[0], right.shape[1]
    if sp.issparse(left) and sp.issparse(right):
        work = int(np.diff(right.tocsr().indptr)[left.tocsr().indices].sum())
        stored = min(work, rows * columns)
        check_entries(stored, what="a merged sparse layer", limit=MAX_SPARSE_ENTRIES)
    else:
        check_entries(rows, columns, what="a merged layer")
        work = rows * right.nnz if sp.issparse(right) else stored_entries(left) * columns
    check_multiplications(work)
    return left @ right


def _require(fits: bool, operation: str, *shapes: tuple[int, ...]) -> None:
    if not fits:
        raise ValueError(f"{operation} cannot combine tensors of shapes {shapes}.")
