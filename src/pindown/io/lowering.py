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
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pindown.affine import Affine, Array, Matrix, blocks, compact
from pindown.errors import UnsupportedModelError
from pindown.io.expression import Expression, concatenate, product
from pindown.io.limits import (
    MAX_TOTAL_ENTRIES,
    MAX_UNITS,
    check_entries,
    check_shape,
)
from pindown.io.windows import Window, window_positions
from pindown.network import ReluNetwork

# Beyond this, adding a constant to a value and taking it off again costs digits that matter.
FAR = 1e3


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
        if not low <= high or low == math.inf or high == -math.inf:
            raise UnsupportedModelError(f"Clip needs min <= max; got {low} and {high}.")
        if FAR < abs(high if math.isinf(low) else low) < math.inf:
            return self._clip_far(x, low, high)
        if math.isinf(high):
            return x if math.isinf(low) else self.relu(x.shift(np.array(-low))).shift(np.array(low))
        if math.isinf(low):
            flipped = self.clip(x.scale(np.array(-1.0)), -high, math.inf)
            return flipped.scale(np.array(-1.0))
        n = x.shape[0]
        both = self.relu(concatenate([x.shift(np.array(-low)), x.shift(np.array(-high))], axis=0))
        upper = both.rearrange(lambda i: i[n:]).scale(np.array(-1.0))
        return both.rearrange(lambda i: i[:n]).add(upper).shift(np.array(low))

    def _clip_far(self, x: Expression, low: float, high: float) -> Expression:
        r"""Apply :math:`x + \rho(l - x) - \rho(x - h)`: x is added to no bound that hides its digits."""
        result = x
        if math.isfinite(low):
            result = result.add(self.relu(x.scale(np.array(-1.0)).shift(np.array(low))))
        if math.isfinite(high):
            result = result.add(self.relu(x.shift(np.array(-high))).scale(np.array(-1.0)))
        return result

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
        others = math.prod(x.shape) // x.shape[axis]
        check_entries(int(inside.sum()), others, what="MaxPool's windows", limit=MAX_UNITS)
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
        return ReluNetwork.from_layers(self._layers(output), **facts)

    def _layers(self, output: Expression) -> Iterator[tuple[Matrix, Array]]:
        """Yield the layers one by one, so that a layer and its frozen copy are never all there."""
        used = self._blocks_below(output)
        by_level: dict[int, list[int]] = {}
        for b in used:
            by_level.setdefault(self._levels[b], []).append(b)
        top = max(by_level, default=0)
        # How block b is read off the state, the vector that the previous layer hands on.
        decode: dict[int, Matrix] = {0: _identity(self._input_size)}
        last_use = self._last_use(used, output, top + 1)
        total = 0
        for level in range(1, top + 1):
            fresh = by_level[level]
            needed = {b: np.flatnonzero(last_use[b] > level) for b in decode}
            keep = {b: columns for b, columns in needed.items() if len(columns)}
            parts = [_decoded(self._made[b - 1], decode) for b in fresh]
            parts += [_pass_on(decode[b][columns], b, level) for b, columns in keep.items()]
            layer = _stacked(parts)
            total += Affine(*layer).nbytes // 8
            check_entries(total, what="the network", limit=MAX_TOTAL_ENTRIES)
            yield layer
            decode = self._decoders(fresh, keep)
        yield _stacked([_decoded(output, decode)])

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


def _decoded(expression: Expression, decode: dict[int, Matrix]) -> tuple[Matrix, Array]:
    """Return ``(W, b)`` of the expression in terms of the state that ``decode`` reads."""
    # A block that is not in the state is one whose coefficients are all zero.
    pieces = [product(T, decode[b]) for b, T in expression.terms.items() if b in decode]
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


def _identity(n: int) -> sp.csr_array:
    return sp.eye_array(n, format="csr")
