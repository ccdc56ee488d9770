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
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pindown.affine import Affine, Array, Matrix, blocks, compact, is_finite
from pindown.errors import UnsupportedModelError
from pindown.model._expression import Expression, concatenate, constant
from pindown.model.agreement import (
    DisagreementError,
    noise,
    require_agreement,
    require_exact_agreement,
)
from pindown.model.limits import (
    MAX_EXACT_PARAMETERS,
    MAX_SPARSE_ENTRIES,
    MAX_TOTAL_ENTRIES,
    MAX_UNITS,
    check_deadline,
    check_entries,
    check_shape,
    reading_deadline,
)
from pindown.model.operations.operation import NotPiecewiseLinearError
from pindown.model.operations.windows import Window, window_positions
from pindown.network import ReluNetwork

if TYPE_CHECKING:
    from pindown.model.graph import Model, Node

# Adding a number this many times larger than a value, and taking it off again, costs digits that matter.
FAR = 1e3
# What a difference may lose of a coefficient.
_LOSS = 2.0**-20


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
        both = self.relu(concatenate([x, _negative(x)], axis=0))
        n = x.shape[0]
        negative = both.rearrange(lambda i: i[n:]).scale(-slope)
        return both.rearrange(lambda i: i[:n]).add(negative)

    def clip(self, x: Expression, low: float, high: float) -> Expression:
        r"""Apply :math:`\min(\max(x, l), h)`.

        With :math:`y = \rho(x - l)` and :math:`s = h - l` it is :math:`l + s - \rho(s - y)`, which is
        :math:`h` without rounding however large x is: no two large values are subtracted.
        """
        if not low <= high or low == math.inf or high == -math.inf:
            raise UnsupportedModelError(f"Clip needs min <= max; got {low} and {high}.")
        if math.isinf(low) and math.isinf(high):
            return x
        if abs(low) > abs(high):  # the nearer bound first: it then costs the other one no digits
            return _negative(self.clip(_negative(x), -high, -low))
        floor = constant(np.full(x.shape, low))
        if math.isinf(high):
            return self.maximum(floor, x)
        reach = FAR * float(_magnitudes(x).max(initial=0.0))
        if abs(low) > reach:  # both bounds are far: x is added to neither
            above = self.relu(x.shift(np.array(-high)))
            return self.maximum(floor, x).add(_negative(above))
        y, span = self.maximum(floor, x).shift(np.array(-low)), np.array(high - low)
        if span > reach:
            capped = y.add(_negative(self.relu(y.shift(-span))))
        else:
            capped = _negative(self.relu(_negative(y).shift(span))).shift(span)
            if low + span != high or high - span != low:
                capped = self.relu(capped)  # as it stands, its constant would swallow the bound
        return capped.shift(np.array(low))

    def maximum(self, x: Expression, y: Expression) -> Expression:
        r"""Apply :math:`\max(x, y) = x + \rho(y - x)`, or the same with x and y exchanged.

        What is added and taken away is, row by row, the one that does not get far below the other: then
        the sum is exact or about as large as its largest part. Where float64 still cannot hold the
        difference, both go through ReLUs first, so that it is taken between their values.
        """
        shape = np.broadcast_shapes(x.shape, y.shape)
        x, y = x.broadcast(shape), y.broadcast(shape)
        depth = _depths(x)
        exchange = (depth > FAR * _magnitudes(y)) & (depth > _depths(y))
        if exchange.any():
            n = exchange.size
            both = concatenate([x.reshape((n,)), y.reshape((n,))], axis=0)
            first = (np.arange(n) + n * exchange).reshape(shape)
            x, y = both.take(first), both.take((first + n) % (2 * n))
        if _loses_digits(x, y):
            x, y = self.held(x), self.held(y)
        return x.add(self.relu(y.add(_negative(x))))

    def held(self, x: Expression) -> Expression:
        r"""Return x as :math:`\rho(x) - \rho(-x)`: the same number, its coefficients now 1 and -1."""
        return self.leaky_relu(x, np.array(1.0)) if x.terms else x

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
        joined = self.maximum(a, b)
        if alone.size:
            joined = concatenate([joined, slots.rearrange(lambda i: i[alone])], axis=0)
        place = np.argsort(np.concatenate([first, alone]))
        return joined.rearrange(lambda i: i[place]), -(-counts // 2)

    def activations(self, row: Array) -> list[Array]:
        """Return the values of all blocks at one flat input."""
        values = [row]
        for entering in self._made:
            values.append(np.maximum(entering.at(values), 0))
        return values

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
        state = _State(self._input_size, {0: np.arange(self._input_size)})
        last_use = self._last_use(used, output, top + 1)
        total = 0
        for level in range(1, top + 1):
            fresh = by_level[level]
            needed = {b: np.flatnonzero(last_use[b] > level) for b in state.places}
            keep = {b: columns for b, columns in needed.items() if len(columns)}
            parts = [_read_off(self._made[b - 1], state) for b in fresh]
            layer = _stacked([*parts, _passed_on(state, keep)] if keep else parts)
            total += Affine(*layer).nbytes // 8
            check_entries(total, what="the network", limit=MAX_TOTAL_ENTRIES)
            yield layer
            state = self._state_after(fresh, keep)
        yield _stacked([_read_off(output, state)])

    def _last_use(
        self, used: Sequence[int], output: Expression, top: int
    ) -> dict[int, NDArray[np.int64]]:
        """Return, for every block's entries, the highest level that reads them; 0 if none does."""
        last = {b: np.zeros(self._size(b), dtype=np.int64) for b in (0, *used)}
        readers = [(self._levels[b], self._made[b - 1]) for b in used]
        for level, reader in [*readers, (top, output)]:
            for b, T in reader.terms.items():
                columns = T.indices[T.data != 0] if sp.issparse(T) else np.flatnonzero(T.any(axis=0))
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

    def _state_after(self, fresh: list[int], keep: dict[int, NDArray[np.int64]]) -> _State:
        """Return where the blocks lie after a layer that makes some and passes entries of others on."""
        width, places, negative = 0, {}, None
        for b in fresh:
            places[b] = width + np.arange(self._size(b))
            width += self._size(b)
        for b, columns in keep.items():
            places[b] = _scattered(width + np.arange(len(columns)), columns, self._size(b))
            width += len(columns)
            if b == 0:
                negative = _scattered(width + np.arange(len(columns)), columns, self._size(b))
                width += len(columns)
        return _State(width, places, negative)


@dataclass(frozen=True, eq=False)
class Lowered:
    """A model's normal form.

    Attributes:
        network: The ReLU network.
        n_nodes: How many of the model's nodes it stands for; a last activation is left out.
    """

    network: ReluNetwork
    n_nodes: int


def lowered(model: Model) -> Lowered:
    """Write a model with affine maps and ReLUs, and compare what comes out with the model.

    Raises:
        UnsupportedModelError: If an operation is not piecewise linear, the form would be too large, or
            rounding would change the function.
    """
    nodes, activation = before_activation(model)
    lowering = Lowering()
    deadline = reading_deadline()
    values = [lowering.input(model.literal_shape)]
    for node in nodes:
        with _placed_errors(node):
            check_deadline(deadline)
            values.append(_finite(node.operation.lower(lowering, *(values[j] for j in node.inputs))))
    with np.errstate(all="ignore"):
        net = lowering.network(values[-1], input_shape=model.input_shape, output_activation=activation)
    before = model if activation is None else replace(model, nodes=nodes)
    notes = _require_agreement(net, before, lowering, values)
    return Lowered(replace(net, notes=(*model.notes, *notes)), len(nodes))


def before_activation(model: Model) -> tuple[tuple[Node, ...], str | None]:
    """Return the nodes without a last softmax or sigmoid over all outputs, and its name."""
    from pindown.model.operations.moves import Reshape

    nodes = model.nodes
    # What comes after it may give the outputs another shape, which a network does not have.
    while nodes and isinstance(nodes[-1].operation, Reshape) and nodes[-1].inputs == (len(nodes) - 1,):
        nodes = nodes[:-1]
    if nodes and nodes[-1].operation.as_output_activation(nodes[-1].shape):
        last = nodes[-1]
        if last.inputs == (len(nodes) - 1,):
            return nodes[:-1], last.operation.as_output_activation(last.shape)
    return model.nodes, None


@contextmanager
def _placed_errors(node: Node) -> Iterator[None]:
    """Say at which node an error arose."""
    place = node.name or node.operation.name
    try:
        with np.errstate(all="ignore"):
            yield
    except NotPiecewiseLinearError as error:
        raise NotPiecewiseLinearError(
            f"{place}: {error}; the exact form needs affine operations, ReLU and its relatives, clip, "
            "absolute values, maxima and minima."
        ) from None
    except UnsupportedModelError as error:
        raise UnsupportedModelError(
            f"{place}: {error} The model can be evaluated and bounded, but has no exact form here."
        ) from None
    except MemoryError:
        raise UnsupportedModelError(
            f"{place}: the exact form needs more memory than there is."
        ) from None


def _finite(x: Expression) -> Expression:
    numbers = [T.data if sp.issparse(T) else T for T in x.terms.values()]
    if not all(is_finite(part) for part in (*numbers, x.constant)):
        raise UnsupportedModelError("merging affine maps overflows float64; the weights are too large.")
    return x


def _require_agreement(
    net: ReluNetwork, model: Model, lowering: Lowering, values: Sequence[Expression]
) -> tuple[str, ...]:
    """Compare the network with the model, which shares no code with the rules above."""

    def reference(row: Any, change: Any = None) -> Any:
        return model.evaluate(row[None], change).ravel()

    try:
        notes = require_agreement(net, reference)
        if max(net.n_parameters, model.nbytes // 8) <= MAX_EXACT_PARAMETERS:
            require_exact_agreement(net, reference)
    except DisagreementError as error:
        where = _first_difference(model, lowering, values, error.row)
        raise UnsupportedModelError(f"{where}{error}") from None
    return notes


def _first_difference(model: Model, lowering: Lowering, values: Sequence[Expression], row: Any) -> str:
    """Return which node's tensor is the first that the exact form sees differently."""
    activations = lowering.activations(row)
    pairs = zip(model.walk(row[None]), model.walk(row[None], noise(0)), values, strict=True)
    for i, (theirs, changed, ours) in enumerate(pairs):
        gap = np.abs(ours.at(activations) - theirs.ravel()).max()
        rounding = max(np.abs(changed - theirs).max(), 1e-9 * np.abs(theirs).max())
        if i > 0 and gap > max(32 * rounding, 1e-12):  # only for the message
            return f"{model.nodes[i - 1].name or model.nodes[i - 1].operation.name}: "
    return ""


@dataclass(frozen=True)
class _State:
    """Where the blocks lie in the vector that a layer hands on.

    Attributes:
        width: Length of the vector.
        places: For every block, the position of each entry; -1 for what nobody reads any more.
        negative: Positions of the input's negative parts, once it has gone through a ReLU.
    """

    width: int
    places: dict[int, NDArray[np.int64]]
    negative: NDArray[np.int64] | None = None

    def parts(self, block: int) -> list[tuple[NDArray[np.int64], float]]:
        """Return positions and signs whose sum is the block."""
        negative = self.negative if block == 0 else None
        return [(self.places[block], 1.0), *([] if negative is None else [(negative, -1.0)])]


def _scattered(values: NDArray[np.int64], at: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    full = np.full(size, -1)
    full[at] = values
    return full


def _negative(x: Expression) -> Expression:
    return x.scale(np.array(-1.0))


def _magnitudes(x: Expression) -> Array:
    """Return, for every entry, its largest coefficient or constant."""
    largest = np.abs(x.constant)
    for T in x.terms.values():
        if sp.issparse(T):
            rows = np.repeat(np.arange(T.shape[0]), np.diff(T.indptr))
            np.maximum.at(largest, rows, np.abs(T.data))
        else:
            largest = np.maximum(largest, np.maximum(T.max(axis=1), -T.min(axis=1)))
    return largest


def _depths(x: Expression) -> Array:
    """Return, for every entry, about how far below zero it gets where the blocks are at most 1."""
    return _magnitudes(replace(x, constant=np.zeros_like(x.constant))) - x.constant


def _loses_digits(x: Expression, y: Expression) -> bool:
    """Return whether rounding in ``y - x`` takes away part of a coefficient or constant of y."""
    pairs = [(x.constant, y.constant)]
    for b in x.terms.keys() & y.terms.keys():
        T, S = x.terms[b], y.terms[b]
        if sp.issparse(T) or sp.issparse(S):
            shared = sp.csr_array(T).multiply(sp.csr_array(S) != 0).tocoo()
            pairs.append((shared.data, np.asarray(sp.csr_array(S)[shared.coords]).ravel()))
        else:
            pairs.append((T, S))
    return any(_rounds(T, S) for T, S in pairs)


def _rounds(other: Array, kept: Array) -> bool:
    """Return whether ``kept - other`` in float64 is off by more than a small part of ``kept``."""
    suspects = np.abs(other) * 2.0**-52 > np.abs(kept) * _LOSS
    a, b = kept[suspects], other[suspects]
    difference = a - b
    # Knuth's exact error of a sum: difference + lost == a - b without rounding.
    taken = a - difference
    lost = (a - (difference + taken)) + (taken - b)
    return bool((np.abs(lost) > _LOSS * np.abs(a)).any())


def _read_off(expression: Expression, state: _State) -> tuple[Matrix, Array]:
    """Return ``(W, b)`` of the expression in terms of the state."""
    shape = expression.constant.size, state.width
    parts = [
        (T, place, sign)
        for b, T in expression.terms.items()
        if b in state.places  # a block that is not there is one whose coefficients are all zero
        for place, sign in state.parts(b)
    ]
    if all(sp.issparse(T) for T, _, _ in parts):
        check_entries(sum(T.nnz for T, _, _ in parts), what="a layer", limit=MAX_SPARSE_ENTRIES)
        return _placed(parts, shape), expression.constant
    check_entries(*shape, what="a merged layer")
    if len(parts) == 1 and np.array_equal(parts[0][1], np.arange(state.width)):
        return parts[0][0], expression.constant
    weight = np.asarray(_placed([part for part in parts if sp.issparse(part[0])], shape).toarray())
    for T, place, sign in parts:
        if not sp.issparse(T):
            there = place >= 0
            weight[:, place[there]] = sign * T[:, there]
    return weight, expression.constant


def _placed(parts: Sequence[tuple[Matrix, NDArray[np.int64], float]], shape: tuple[int, int]) -> Matrix:
    """Return one sparse matrix that holds the columns of several at their places."""
    rows, columns, values = [], [], []
    for T, place, sign in parts:
        at = place[T.indices]
        there = at >= 0
        rows.append(np.repeat(np.arange(shape[0], dtype=np.int32), np.diff(T.indptr))[there])
        columns.append(at[there].astype(np.int32))
        values.append(sign * T.data[there])
    if not parts:
        return sp.csr_array(shape)
    where = np.concatenate(rows), np.concatenate(columns)
    return sp.csr_array((np.concatenate(values), where), shape=shape)


def _passed_on(state: _State, keep: dict[int, NDArray[np.int64]]) -> tuple[Matrix, Array]:
    """Return the rows that hand entries of earlier blocks through another ReLU."""
    columns, signs = [], []
    for b, entries in keep.items():
        # Only the input's entries can be negative. It goes through as two parts, x = p - q.
        halves = [(state.places[b], 1.0)]
        if b == 0:
            halves.append((state.places[0], -1.0) if state.negative is None else (state.negative, 1.0))
        for place, sign in halves:
            columns.append(place[entries])
            signs.append(np.full(len(entries), sign))
    at = np.concatenate(columns)
    shape = len(at), state.width
    weight = sp.csr_array((np.concatenate(signs), at, np.arange(len(at) + 1)), shape=shape)
    return weight, np.zeros(len(at))


def _stacked(parts: list[tuple[Matrix, Array]]) -> tuple[Matrix, Array]:
    rows = [weight for weight, _ in parts]
    weight = compact(rows[0]) if len(rows) == 1 else blocks([[part] for part in rows])
    return weight, np.concatenate([constant for _, constant in parts])


def _identity(n: int) -> sp.csr_array:
    return sp.eye_array(n, format="csr")
