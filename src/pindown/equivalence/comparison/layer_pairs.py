r"""Two graphs layer by layer, however their files write them: what is the same, or so but for rounding.

Every entry of every tensor has a number. What only moves entries moves their numbers; another operation
makes new ones, which both graphs share where it does the same with the same numbers. A batch norm or a
bias behind an affine operation is taken into it, :math:`\mathrm{diag}(f) (W x + b) + s`. So graphs
that differ in reshapes, transposes, the order of operations and in how many of them do one thing have
equal numbers.

An affine layer of one graph stands for one of the other where both take the same numbers and every
weight and bias agrees *to rounding*,

.. math::
    |W_{ij} - W'_{ij}| \le 16\, u \max_j |W_{ij}| , \qquad
    |b_i - b'_i| \le 16\, u \max\big(\max_j |W_{ij}|, |b_i|, |f_i b_i|, |s_i|, \dots\big)

with all that was added up for the bias, u being the unit roundoff of the coarser of the two types of
number. If then the outputs have equal numbers, the graphs are one function but for that; if all
differences are zero, they are one function. That the layers agree bounds no gap: a deep network may
make much of little.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.model.graph import Model, Node
from pindown.model.operations.convolution import Convolution, TransposedConvolution
from pindown.model.operations.dense import Add, BatchNorm, Dense, Scale
from pindown.model.operations.elementwise import Elementwise
from pindown.model.operations.integer_weights import IntegerWeights
from pindown.model.operations.moves import Concat, Constant, Move
from pindown.model.operations.operation import Operation
from pindown.model.operations.products import Multiply
from pindown.relaxation.paired_graphs import changed_fields

Ids = NDArray[np.int64]

# Folding a batch norm in floats rounds six times, and the other exporter as often.
_ROUNDINGS = 16.0
_FOLDED = 2.0**-48  # what folding it in float64 may round, of the largest number of a row
_MIN_SIZE = 2.0**-900  # of a row, so that what underflows is nothing beside it
_NAMES_ONLY = {"trained", "kind"}  # fields that say how a file counts and writes
_NUMBERS = {"weight", "kernel", "bias"}
_AFFINE = (Dense, Convolution, TransposedConvolution)


class LayerPair(NamedTuple):
    """Two affine layers that take the same entries.

    Attributes:
        layer: What it is called in the first graph.
        other: What it is called in the second.
        change: The largest difference of a weight or bias, relative to the largest number of its row,
            rounded up; 0 if all are equal.
    """

    layer: str
    other: str
    change: float


@dataclass(frozen=True)
class LayerPairs:
    """What of two graphs is the same to rounding.

    Attributes:
        pairs: The affine layers of the second graph that stand for one of the first, in order.
        open: The names of those that do not.
        complete: Whether the outputs are paired, and so everything they are made of.
        allowed: What counts as rounding, relative to the largest number of a row.
    """

    pairs: tuple[LayerPair, ...]
    open: tuple[str, ...]
    complete: bool
    allowed: float

    @property
    def equal(self) -> bool:
        """Whether both graphs are proved to be one function."""
        return self.complete and self.change == 0.0

    @property
    def change(self) -> float:
        """The largest change of all pairs."""
        return max((pair.change for pair in self.pairs), default=0.0)

    def __str__(self) -> str:
        if self.equal:
            return "the graphs are equal, number for number, once they are written alike"
        n = len(self.pairs)
        if self.complete:
            return (
                f"all {n:,} pairs of layers agree to rounding: their numbers differ by at most "
                f"{self.change:.2g} of the largest of a row"
            )
        return f"{n:,} of {n + len(self.open):,} layers agree to rounding with one of the other model"


def pair_layers(a: Model, b: Model) -> LayerPairs:
    """Pair the layers of two graphs that agree to rounding.

    Example:
        A ReLU and its copy, in which the bias was added apart:

        >>> from pindown.model.builder import Builder
        >>> def made(*parts):
        ...     graph = Builder((1, 2))
        ...     tensor = graph.input
        ...     for part in (*parts, Relu()):
        ...         tensor = graph.add(part, tensor)
        ...     return graph.model(tensor, input_shape=(2,))
        >>> from pindown.model.operations.relu import Relu
        >>> weight, bias = np.array([[1.0, -2.0]]), np.array([0.5])
        >>> print(pair_layers(made(Dense(weight, bias)), made(Dense(weight), Scale(shift=bias))))
        the graphs are equal, number for number, once they are written alike
        >>> moved = Dense(np.array([[1.0, -2.0 - 2**-22]]))
        >>> apart = pair_layers(made(Dense(weight, bias)), made(moved, Scale(shift=bias)))
        >>> round(apart.change, 10)
        1.192e-07
    """
    allowed = _ROUNDINGS * max(_unit_of(a), _unit_of(b))
    if a.in_features != b.in_features or a.out_features != b.out_features:
        return LayerPairs((), tuple(layer.name for layer in _layers(b) if layer.affine), False, allowed)
    book = _Book(allowed)
    first, second = (book.read(model).reshape(-1) for model in (a, b))
    return LayerPairs(tuple(book.pairs), tuple(book.open), bool((first == second).all()), allowed)


def _unit_of(model: Model) -> float:
    try:
        return float(np.finfo(model.dtype).eps) / 2.0
    except (TypeError, ValueError):  # a type of number that NumPy does not have
        return 2.0**-24


# ---------------------------------------------------------------------- one graph


class _Layer(NamedTuple):
    """A node, and with it what stands behind it and is taken into it.

    Attributes:
        operation: What is done.
        inputs: Which tensors go in.
        place: Which tensor the node makes.
        output: Which tensor comes out, what was taken in included.
        name: What the author called it.
        terms: For affine operations, the largest number that was added up for each row, or 0.
        parts: All operations that it stands for.
        rounded: Whether its numbers are rounded.
    """

    operation: Operation
    inputs: tuple[int, ...]
    place: int
    output: int
    name: str
    terms: Array
    parts: tuple[Operation, ...]
    rounded: bool = False

    @property
    def affine(self) -> bool:
        return isinstance(self.operation, _AFFINE)


def _layers(model: Model) -> Iterator[_Layer]:
    """Yield the operations in order, scales and shifts of channels taken into the affine ones before."""
    readers = np.zeros(len(model.nodes) + 1, int)
    for node in model.nodes:
        for j in node.inputs:
            readers[j] += 1
    taken: set[int] = set()
    following = {node.inputs[0]: i for i, node in enumerate(model.nodes, 1) if len(node.inputs) == 1}
    for i, node in enumerate(model.nodes, 1):
        if i in taken:
            continue
        name = node.name or f"operation {i} ({node.operation.name})"
        operation = _plain(node.operation)
        layer = _Layer(operation, node.inputs, i, i, name, np.zeros(1), (operation,))
        while layer.affine and readers[layer.output] == 1 and layer.output in following:
            j = following[layer.output]
            folded = _folded(layer, model.nodes[j - 1], j)
            if folded is None:
                break
            taken.add(j)
            layer = folded
        yield layer


def _plain(operation: Operation) -> Operation:
    return operation.inner if isinstance(operation, IntegerWeights) else operation


def _folded(layer: _Layer, node: Node, output: int) -> _Layer | None:
    """Return a layer with the scale and shift of its channels that a node is; None if it is not."""
    after, before = _plain(node.operation), layer.operation
    shape = node.shape
    parts: list[Array] = []  # what is added up for a row
    if isinstance(after, BatchNorm):
        parts = [np.abs(after.shift), np.abs(after.mean * after.factor)]
        after = after.as_scale(len(shape))
    if not isinstance(after, Scale) or after.shape(shape) != shape:
        return None
    axis = before.axis if isinstance(before, Dense) else 1
    factor, shift = (_by_channel(part, shape, axis) for part in (after.factor, after.shift))
    if (factor is None) != (after.factor is None) or (shift is None) != (after.shift is None):
        return None
    plain = factor is None and before.bias is None  # type: ignore[attr-defined]
    name = "weight" if isinstance(before, Dense) else "kernel"
    weight, bias = getattr(before, name), before.bias  # type: ignore[attr-defined]
    terms = layer.terms
    if factor is not None:
        if isinstance(before, TransposedConvolution):
            return None
        weight = weight * factor.reshape(-1, *[1] * (weight.ndim - 1))
        bias = None if bias is None else bias * factor
        terms = terms * np.abs(factor)
    parts += [np.abs(part) for part in (bias, shift) if part is not None]
    terms = np.max(np.broadcast_arrays(terms, *parts), axis=0)
    bias = shift if bias is None else bias if shift is None else bias + shift
    made = replace(before, **{name: weight, "bias": bias})  # type: ignore[type-var]
    return layer._replace(
        operation=made,
        output=output,
        terms=terms,
        parts=(*layer.parts, _plain(node.operation)),
        rounded=layer.rounded or not plain,
    )


def _by_channel(part: Array | None, shape: tuple[int, ...], axis: int) -> Array | None:
    """Return what is one number for each index of an axis as these numbers; else None."""
    if part is None:
        return None
    rows = np.moveaxis(np.broadcast_to(part, shape), axis, 0).reshape(shape[axis], -1)
    return rows[:, 0].copy() if (rows == rows[:, :1]).all() else None


# ---------------------------------------------------------------------- numbers of entries


class _Known(NamedTuple):
    """An operation that was met, in which graph, and the first number it made of what it took."""

    layer: _Layer
    again: bool
    made: dict[bytes, int]


class _Book:
    """Numbers of entries, shared by the graphs that are read one after the other."""

    def __init__(self, allowed: float) -> None:
        self.allowed = allowed
        self.pairs: list[LayerPair] = []
        self.open: list[str] = []
        self._next = 0
        self._known: dict[Any, list[_Known]] = {}
        self._tables: dict[str, list[tuple[Ids, Ids]]] = {}
        self._again = False

    def read(self, model: Model) -> Ids:
        """Return the numbers of the outputs."""
        size = model.in_features
        self._again, self._next = self._next > 0, max(self._next, size)
        own: dict[int, Ids] = {0: np.arange(size).reshape(model.literal_shape)}
        shapes = [model.literal_shape, *(node.shape for node in model.nodes)]
        for layer in _layers(model):
            given = [own[j] for j in layer.inputs]
            own[layer.output] = self._made(layer, given, shapes[layer.output])
            for j in layer.inputs:
                if model.last_use[j] <= layer.place:
                    own.pop(j, None)
        return own[len(model.nodes)]

    def _made(self, layer: _Layer, given: list[Ids], shape: tuple[int, ...]) -> Ids:
        operation = layer.operation
        if isinstance(operation, Move):
            return operation.move(given[0], 0)
        if isinstance(operation, Concat):
            rest = [np.moveaxis(ids, operation.axis, 0) for ids in given]
            return np.moveaxis(np.concatenate(rest), 0, operation.axis)
        if isinstance(operation, Constant):
            return self._numbers(np.broadcast_to(operation(np.zeros((1, 1)))[0], shape))
        if isinstance(operation, Elementwise) and _without_arrays(operation):
            return self._each(repr((type(operation).__name__, operation)), given[0])
        if isinstance(operation, (Add, Multiply)):
            return self._joined(operation, given, shape)
        if isinstance(operation, Scale):
            made = np.broadcast_to(given[0], shape)
            for word, part in (("times", operation.factor), ("plus", operation.shift)):
                if part is not None:
                    made = self._both(word, made, self._numbers(np.broadcast_to(part, shape)))
            return made
        if isinstance(operation, Dense):
            rows = np.moveaxis(given[0], operation.axis, -1)
            made = self._blocks(layer, rows.reshape(-1, rows.shape[-1]), len(operation.weight))
            return np.moveaxis(made.reshape(*rows.shape[:-1], -1), -1, operation.axis)
        every = np.concatenate([np.ravel(ids) for ids in given])[None]
        size = int(np.prod(shape))
        return self._blocks(layer, every, size, [ids.shape for ids in given]).reshape(shape)

    def _numbers(self, values: Array) -> Ids:
        """Return the numbers of constants."""
        return self._each("constant", np.ascontiguousarray(values + 0.0, np.float64).view(np.int64))

    def _joined(self, operation: Add | Multiply, given: list[Ids], shape: tuple[int, ...]) -> Ids:
        """Number sums and products, in which the order does not matter."""
        signs = operation.signs if isinstance(operation, Add) else (1,) * len(given)
        parts = [np.broadcast_to(ids, shape) for ids in given]
        minus = [i for i, sign in enumerate(signs) if sign < 0]
        parts = [self._each("minus", part) if i in minus else part for i, part in enumerate(parts)]
        stacked = np.sort(np.stack(parts), axis=0)
        total = stacked[0]
        for part in stacked[1:]:
            total = self._both(operation.name, total, part)
        return total

    def _each(self, word: str, ids: Ids) -> Ids:
        """Return a number for each, the same for the same."""
        flat, places = ids.ravel(), None
        if (flat[1:] <= flat[:-1]).any():  # mostly they are in order
            flat, places = np.unique(ids, return_inverse=True)
        new = np.full_like(flat, -1)
        for known, made in self._tables.setdefault(word, []):
            if len(flat) and known[0] <= flat[-1] and flat[0] <= known[-1]:
                at = np.minimum(np.searchsorted(known, flat), len(known) - 1)
                new = np.where(known[at] == flat, made[at], new)
        fresh = np.flatnonzero(new < 0)
        if len(fresh):
            new[fresh] = self._next + np.arange(len(fresh))
            self._next += len(fresh)
            self._tables[word].append((flat[fresh], new[fresh]))
        return (new if places is None else new[places.ravel()]).reshape(ids.shape)

    def _both(self, word: str, first: Ids, second: Ids) -> Ids:
        """Return a number for each pair; there are fewer than two thousand million entries."""
        if self._next >= 2**31:
            raise OverflowError("the graphs have too many entries to be numbered.")
        return self._each(word, first * 2**31 + second)

    def _blocks(self, layer: _Layer, rows: Ids, size: int, shapes: Any = None) -> Ids:
        """Return new numbers (n, size) for what an operation makes of each row of numbers."""
        kind = (type(layer.operation).__name__, rows.shape[1], size, repr(shapes))
        keys = [row.tobytes() for row in rows]
        known = self._known.setdefault(kind, [])
        found = None
        for one in known:
            if all(key in one.made for key in keys):
                change = _change(one.layer, layer)
                if change <= self.allowed and (found is None or change < found[0]):
                    found = change, one
        if layer.affine and self._again:
            if found is None or found[1].again:
                self.open.append(layer.name)
            else:
                self.pairs.append(LayerPair(found[1].layer.name, layer.name, found[0]))
        if found is None or (found[0] > 0.0 and not self._again):
            found = 0.0, _Known(layer, self._again, {})
            known.append(found[1])
        made = found[1].made
        for key in dict.fromkeys(keys):
            if key not in made:
                made[key] = self._next
                self._next += size
        starts = np.array([made[key] for key in keys])
        return np.asarray(starts[:, None] + np.arange(size))


def _without_arrays(operation: Operation) -> bool:
    """Whether nothing in an operation is a number for each channel, so that its words tell all of it."""
    return not any(isinstance(value, np.ndarray) for value in vars(operation).values())


def _change(one: _Layer, two: _Layer) -> float:
    """Return the largest difference of two layers, relative to the row; infinite if they do others."""
    p, q = one.operation, two.operation
    if len(one.parts) == len(two.parts) and all(map(_alike, one.parts, two.parts)):
        return 0.0
    if type(p) is not type(q):
        return np.inf
    free = _NAMES_ONLY | _NUMBERS if isinstance(p, _AFFINE) else _NAMES_ONLY
    if changed_fields(p, q).keys() - free:
        return np.inf
    if not isinstance(p, _AFFINE):
        return 0.0
    name = "weight" if isinstance(p, Dense) else "kernel"
    weights = [_rows(op, getattr(op, name)) for op in (p, q)]
    if weights[0].shape != weights[1].shape:
        return np.inf
    nothing = np.zeros(len(weights[0]))
    biases = [nothing if op.bias is None else op.bias for op in (p, q)]  # type: ignore[attr-defined]
    apart = [
        np.abs(weights[0] - weights[1]).max(axis=1, initial=0.0),
        np.abs(biases[0] - biases[1]),
    ]
    rounded = one.rounded or two.rounded
    if not (np.any(apart) or rounded):
        return 0.0
    largest = [np.abs(each).max(axis=1, initial=0.0) for each in weights]
    sizes = [np.max(largest, axis=0)]
    sizes.append(
        np.max([*largest, *map(np.abs, biases), nothing + one.terms, nothing + two.terms], axis=0)
    )
    with np.errstate(all="ignore"):
        if rounded and (np.concatenate(sizes) < _MIN_SIZE).any():
            return np.inf
        shares = [np.where(x > 0.0, x / y, 0.0) for x, y in zip(apart, sizes, strict=True)]
    return float(np.max(shares, initial=0.0)) * (1.0 + 2.0**-40) + (_FOLDED if rounded else 0.0)


def _alike(p: Operation, q: Operation) -> bool:
    return type(p) is type(q) and not changed_fields(p, q).keys() - _NAMES_ONLY


def _rows(operation: Operation, weight: Array) -> Array:
    """Return the numbers of each output channel, (channels, n); of transposed convolutions all."""
    if isinstance(operation, TransposedConvolution):
        channels = operation.out_channels
        return np.broadcast_to(weight.reshape(1, -1), (channels, weight.size))
    return weight.reshape(len(weight), -1)
