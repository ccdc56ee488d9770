r"""From a graph of operations to layers: symbolic evaluation with affine expressions.

Readers walk a model's operations in order and hold, for every tensor, an :class:`Expression`:
its entries as affine functions of *blocks*, where block 0 is the network's input and every ReLU
makes a new block. Affine operations only rewrite expressions, so runs of them merge by themselves.
At the end :meth:`Lowering.network` sorts the blocks into layers. A block that is needed again
further up (a residual connection) passes through the ReLUs between: a ReLU's output is non-negative
and passes unchanged, :math:`\rho(a) = a`; the network's own input passes as two parts,
:math:`x = \rho(x) - \rho(-x)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pindown.affine import Array, Matrix, blocks, compact, stored_entries
from pindown.errors import UnsupportedModelError
from pindown.io.limits import (
    MAX_ENTRIES,
    MAX_SPARSE_ENTRIES,
    MAX_TOTAL_ENTRIES,
    MAX_UNITS,
    check_entries,
    check_multiplications,
    check_shape,
)
from pindown.io.windows import Window, averaging_matrix, convolution_matrix, window_positions
from pindown.network import ReluNetwork


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
        terms = {b: _product(matrix, T) for b, T in self.terms.items()}
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
        result = self.map(matrix, (1, *shape))
        return result if bias is None else result.shift(per_channel(bias, len(result.shape)))

    def average_pool(self, window: Window, count_padding: bool) -> Expression:
        """Average each channel of a (1, channels, *spatial) tensor over sliding windows."""
        shape, matrix = averaging_matrix(self._image("AveragePool"), window, count_padding)
        return self.map(matrix, (1, *shape))

    def _image(self, operation: str) -> tuple[int, ...]:
        if len(self.shape) < 3 or self.shape[0] != 1:
            raise UnsupportedModelError(
                f"{operation} needs a tensor (batch 1, channels, spatial...); got {self.shape}."
            )
        return self.shape[1:]


class Lowering:
    """The blocks made so far, and the operations that make new ones."""

    def __init__(self) -> None:
        self._made: list[Expression] = []  # what enters the ReLU of block i + 1
        self._levels = [0]  # of every block: how many ReLUs lie on the longest way to it

    def input(self, shape: Sequence[int]) -> Expression:
        """Return the network's input as block 0."""
        self._input_size = check_entries(*check_shape(shape, "the input"), what="the input")
        return Expression(tuple(shape), {0: _identity(self._input_size)}, np.zeros(self._input_size))

    def relu(self, x: Expression) -> Expression:
        """Apply a ReLU to every entry, as a new block."""
        if not x.terms:
            return replace(x, constant=np.maximum(x.constant, 0.0))
        self._made.append(x)
        self._levels.append(1 + max(self._levels[b] for b in x.terms))
        n = x.constant.size
        return Expression(x.shape, {len(self._made): _identity(n)}, np.zeros(n))

    def leaky_relu(self, x: Expression, slope: Array) -> Expression:
        r"""Apply :math:`\rho(x) - s\,\rho(-x)`, two ReLUs for each entry."""
        both = self.relu(concatenate([x, x.scale(np.array(-1.0))], axis=0))
        n = x.shape[0]
        negative = both.rearrange(lambda i: i[n:]).scale(-slope)
        return both.rearrange(lambda i: i[:n]).add(negative)

    def clip(self, x: Expression, low: float, high: float) -> Expression:
        r"""Apply :math:`\min(\max(x, l), h)`, as :math:`l + \rho(x - l) - \rho(x - h)`."""
        if not low <= high:
            raise UnsupportedModelError(f"Clip needs min <= max; got {low} and {high}.")
        if math.isinf(high):
            return x if math.isinf(low) else self.relu(x.shift(np.array(-low))).shift(np.array(low))
        if math.isinf(low):
            flipped = self.clip(x.scale(np.array(-1.0)), -high, math.inf)
            return flipped.scale(np.array(-1.0))
        n = x.shape[0]
        both = self.relu(concatenate([x.shift(np.array(-low)), x.shift(np.array(-high))], axis=0))
        upper = both.rearrange(lambda i: i[n:]).scale(np.array(-1.0))
        return both.rearrange(lambda i: i[:n]).add(upper).shift(np.array(low))

    def max_pool(self, x: Expression, window: Window) -> Expression:
        r"""Take the maximum over sliding windows, one spatial axis after the other.

        Pairs are joined by :math:`\max(a, b) = a + \rho(b - a)` in a balanced tree.
        """
        x._image("MaxPool")
        for i in range(len(window.kernel)):
            x = self._max_along(x, 2 + i, window.axis(i))
        return x

    def _max_along(self, x: Expression, axis: int, window: Window) -> Expression:
        _, table = window_positions((x.shape[axis],), window)
        if (table < 0).all(axis=1).any():
            raise UnsupportedModelError("MaxPool has a window that lies wholly in the padding.")
        inside = table >= 0
        slots = x.rearrange(lambda i: np.moveaxis(i, axis, 0)[table[inside]])
        counts = inside.sum(axis=1)
        while counts.max() > 1:
            slots, counts = self._join_pairs(slots, counts)
        return slots.rearrange(lambda i: np.moveaxis(i, 0, axis))

    def _join_pairs(
        self, slots: Expression, counts: NDArray[np.int64]
    ) -> tuple[Expression, NDArray[np.int64]]:
        """Replace neighbours within each run of ``counts`` entries of axis 0 by their maximum."""
        run_starts = np.cumsum(counts) - counts
        in_run = np.arange(counts.sum()) - np.repeat(run_starts, counts)
        even = in_run % 2 == 0
        last = in_run + 1 == np.repeat(counts, counts)
        first, alone = np.flatnonzero(even & ~last), np.flatnonzero(even & last)
        a = slots.rearrange(lambda i: i[first])
        b = slots.rearrange(lambda i: i[first + 1])
        joined = a.add(self.relu(b.add(a.scale(np.array(-1.0)))))
        if alone.size:
            joined = concatenate([joined, slots.rearrange(lambda i: i[alone])], axis=0)
        place = np.argsort(np.concatenate([first, alone]))
        return joined.rearrange(lambda i: i[place]), -(-counts // 2)

    # ------------------------------------------------------------------ layers

    def network(self, output: Expression, **facts: Any) -> ReluNetwork:
        """Sort the blocks that ``output`` rests on into layers.

        Args:
            output: What the network returns, flattened.
            facts: ``input_shape``, ``output_activation`` and ``notes`` of the network.
        """
        used = self._blocks_below(output)
        by_level: dict[int, list[int]] = {}
        for b in used:
            by_level.setdefault(self._levels[b], []).append(b)
        top = max(by_level, default=0)
        # How block b is read off the state, the vector that the previous layer hands on.
        decode: dict[int, Matrix] = {0: _identity(self._input_size)}
        layers = []
        last_use = self._last_use(used, output, top + 1)
        total = 0
        for level in range(1, top + 1):
            fresh = by_level[level]
            needed = {b: np.flatnonzero(last_use[b] > level) for b in decode}
            keep = {b: columns for b, columns in needed.items() if len(columns)}
            parts = [_decoded(self._made[b - 1], decode) for b in fresh]
            parts += [_pass_on(decode[b][columns], b, level) for b, columns in keep.items()]
            layers.append(_stacked(parts))
            total += stored_entries(layers[-1][0])
            check_entries(total, what="the network", limit=MAX_TOTAL_ENTRIES)
            decode = self._decoders(fresh, keep)
        layers.append(_stacked([_decoded(output, decode)]))
        return ReluNetwork.from_layers(layers, **facts)

    def _last_use(
        self, used: Sequence[int], output: Expression, top: int
    ) -> dict[int, NDArray[np.int64]]:
        """Return, for every block's entries, the highest level that reads them; 0 if none does."""
        last = {b: np.zeros(self._size(b), dtype=np.int64) for b in (0, *used)}
        readers = [(self._levels[b], self._made[b - 1]) for b in used]
        for level, reader in [*readers, (top, output)]:
            for b, T in reader.terms.items():
                columns = T.nonzero()[1]
                last[b][columns] = np.maximum(last[b][columns], level)
        return last

    def _blocks_below(self, output: Expression) -> list[int]:
        found: set[int] = set()
        stack = [output]
        while stack:
            new = [b for b in stack.pop().terms if b > 0 and b not in found]
            found.update(new)
            stack.extend(self._made[b - 1] for b in new)
        return sorted(found)

    def _size(self, block: int) -> int:
        return self._input_size if block == 0 else self._made[block - 1].constant.size

    def _decoders(self, fresh: list[int], keep: dict[int, NDArray[np.int64]]) -> dict[int, Matrix]:
        """Return, for every block in the new state, the matrix that reads it off that state."""
        widths = [self._size(b) for b in fresh]
        widths += [(2 if b == 0 else 1) * len(columns) for b, columns in keep.items()]
        starts = np.concatenate([[0], np.cumsum(widths)])
        total = int(starts[-1])
        decode = {}
        for b, start, width in zip([*fresh, *keep], starts, widths, strict=False):
            size = self._size(b)
            columns = keep.get(b, np.arange(size))
            n = len(columns)
            at = start + np.arange(width)
            rows, values = np.tile(columns, width // n), np.repeat([1.0, -1.0][: width // n], n)
            decode[b] = sp.csr_array((values, (rows, at)), shape=(size, total))
        return decode


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
        raise UnsupportedModelError(f"Concat cannot join tensors of shapes {shapes}.") from None
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


def _decoded(expression: Expression, decode: dict[int, Matrix]) -> tuple[Matrix, Array]:
    """Return ``(W, b)`` of the expression in terms of the state that ``decode`` reads."""
    # A block that is not in the state is one whose coefficients are all zero.
    pieces = [_product(T, decode[b]) for b, T in expression.terms.items() if b in decode]
    width = next(iter(decode.values())).shape[1]
    weight = pieces[0] if pieces else sp.csr_array((expression.constant.size, width))
    for piece in pieces[1:]:
        weight = weight + piece
    return weight, expression.constant


def _pass_on(rows: Matrix, block: int, level: int) -> tuple[Matrix, Array]:
    """Return the rows that hand entries of a block, read off by ``rows``, through another ReLU."""
    if block == 0:  # the only block whose entries can be negative: two parts, x = p - q
        rows = sp.vstack([rows, -rows], format="csr")
        if level > 1:  # they exist already, and rows read p - q and q - p: hand on p and q
            rows = rows.maximum(0)
    return rows, np.zeros(rows.shape[0])


def _stacked(parts: list[tuple[Matrix, Array]]) -> tuple[Matrix, Array]:
    rows = [weight for weight, _ in parts]
    weight = compact(rows[0]) if len(rows) == 1 else blocks([[part] for part in rows])
    return weight, np.concatenate([constant for _, constant in parts])


def _product(left: Matrix, right: Matrix) -> Matrix:
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


def _identity(n: int) -> sp.csr_array:
    return sp.eye_array(n, format="csr")


def _require(fits: bool, operation: str, *shapes: tuple[int, ...]) -> None:
    if not fits:
        raise UnsupportedModelError(f"{operation} cannot combine tensors of shapes {shapes}.")
