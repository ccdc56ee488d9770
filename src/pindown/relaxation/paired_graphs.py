r"""Two graphs brought to one structure, where one only quantises, or adds a bias apart.

Quantised files round tensors to integers and back between the operations of the model that they were
made from; often a ReLU is left out where rounding cuts at zero anyway. So one graph is followed,
operation by operation, and beside each of its tensors stands that of the other which it stands for.
Where only the one does something, the other does nothing:

- integers made and read back become one operation, :class:`Rounded`,
  beside a ReLU of the other if it is one, else beside nothing;
- a bias that only one adds by itself stands beside nothing.

The two graphs that come out compute what the two did, node beside node.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from pindown.affine import Array
from pindown.model.graph import Model, Node
from pindown.model.operations.affine_operation import AffineOperation
from pindown.model.operations.dense import Scale
from pindown.model.operations.integer_weights import IntegerWeights
from pindown.model.operations.integers import RANGES, Dequantize, Quantize
from pindown.model.operations.operation import Interval, Numbers, Operation, Shape, Writer
from pindown.model.operations.relu import Relu


def paired_graphs(first: Model, second: Model) -> tuple[Model, Model] | None:
    """Return two graphs of one structure that compute what these do; None if they are not alike so far.

    >>> from pindown.model.builder import Builder
    >>> from pindown.model.operations.dense import Dense
    >>> def chain(*parts):
    ...     graph = Builder((1, 1))
    ...     tensor = graph.input
    ...     for part in parts:
    ...         tensor = graph.add(part, tensor)
    ...     return graph.model(tensor, input_shape=(1,))
    >>> plain = chain(Dense([[1.0]]), Relu(), Dense([[2.0]]))
    >>> step = {"scale": 0.5, "zero": 0, "kind": "uint8"}
    >>> rounded = chain(Dense([[1.0]]), Quantize(**step), Dequantize(**step), Dense([[2.0]]))
    >>> a, b = paired_graphs(plain, rounded)
    >>> [node.operation.name for node in a.nodes], [node.operation.name for node in b.nodes]
    (['Dense', 'ReLU', 'Dense'], ['Dense', 'rounding to integers', 'Dense'])
    """
    if first.literal_shape != second.literal_shape:
        return None
    if len(first.nodes) == len(second.nodes) and all(map(alike, first.nodes, second.nodes)):
        return first, second
    for swapped in (False, True):
        made = _Walk(second, first) if swapped else _Walk(first, second)
        if made.done():
            a, b = made.models()
            return (b, a) if swapped else (a, b)
    return None


def plain(operation: Operation) -> Operation:
    """Return the operation that one with integers as weights stands for."""
    return operation.inner if isinstance(operation, IntegerWeights) else operation


def alike(p: Node, q: Node) -> bool:
    """Return whether two nodes do the same with the same tensors, but for the numbers of affine ones."""
    return p.inputs == q.inputs and _alike(p, q)


def _alike(p: Node, q: Node) -> bool:
    ours, theirs = plain(p.operation), plain(q.operation)
    if type(ours) is not type(theirs) or p.shape != q.shape:
        return False
    return isinstance(ours, AffineOperation) or not changed_fields(ours, theirs)


def changed_fields(p: Operation, q: Operation) -> dict[str, tuple[Any, Any]]:
    """Return the fields in which two operations of one kind differ."""
    both = {entry.name: (getattr(p, entry.name), getattr(q, entry.name)) for entry in fields(p)}  # type: ignore[arg-type]
    return {name: pair for name, pair in both.items() if not _equal(*pair)}


def _equal(x: Any, y: Any) -> bool:
    if isinstance(x, np.ndarray) or isinstance(y, np.ndarray):
        return x is y or np.array_equal(x, y)
    if isinstance(x, Operation) and isinstance(y, Operation):
        return type(x) is type(y) and not changed_fields(x, y)
    return bool(x == y)


@dataclass(frozen=True, eq=False)
class Rounded(Operation):
    """Numbers to integers and back.

    >>> grid = Rounded(Quantize(0.5, 0, "int8"), Dequantize(0.5, 0, kind="int8"))
    >>> grid(np.array([[0.3, 0.8, 1000.0]]))
    array([[ 0.5,  1. , 63.5]])
    """

    to: Quantize
    back: Dequantize

    @property
    def name(self) -> str:
        """What users call it."""
        return "rounding to integers"

    def ends(self, rank: int) -> Interval:
        """Return the smallest and the largest number that is left, for tensors of a rank."""
        scale, zero = self.to.grid(rank)
        low, high = RANGES[self.to.kind]
        return Interval(scale * (low - zero), scale * (high - zero))

    def shape(self, *shapes: Shape) -> Shape:
        """Keep the shape."""
        return self.back.shape(self.to.shape(*shapes))

    def __call__(self, *inputs: Numbers) -> Numbers:
        """Round."""
        return self.back(self.to(*inputs))

    def interval(self, *boxes: Interval) -> Interval:
        """Round both ends: it is monotone."""
        return self.back.interval(self.to.interval(*boxes))

    def pull_back(self, form: Array, *inputs: Array) -> tuple[Array, ...]:
        """Take the slope without rounding: one between the ends, zero outside."""
        low, high = self.ends(inputs[0].ndim - 1)
        return (np.where((inputs[0] >= low) & (inputs[0] <= high), form, 0.0),)

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write QuantizeLinear and DequantizeLinear."""
        return self.back.write(writer, self.to.write(writer, *inputs))


# Stands in a graph where only the other one does something.
NOTHING = Scale(np.ones(()))


class _Walk:
    """The way through the second graph, with the first one beside it."""

    def __init__(self, first: Model, second: Model) -> None:
        self.first, self.second = first, second
        self.readers: dict[int, list[int]] = {}
        for i, node in enumerate(first.nodes, 1):
            for j in dict.fromkeys(node.inputs) or [-1]:  # -1: reads nothing
                self.readers.setdefault(j, []).append(i)
        self.nodes: tuple[list[Node], list[Node]] = ([], [])
        self.place = {0: 0}  # of a tensor of the second graph: its number in those made here
        self.twin = {0: 0}  # and the tensor of the first that it stands for

    def done(self) -> bool:
        """Return whether every tensor of the second stands for one, the last one for the last."""
        for i, node in enumerate(self.second.nodes, 1):
            if isinstance(node.operation, Quantize) and self._only_read_back(i):
                continue
            if not self._step(i, node):
                return False
        n = len(self.second.nodes)
        while self.twin[n] != len(self.first.nodes):
            if not self._own_bias(n):
                return False
        return True

    def models(self) -> tuple[Model, Model]:
        """Return both graphs."""
        a, b = map(tuple, self.nodes)
        return replace(self.first, nodes=a), replace(self.second, nodes=b)

    def _only_read_back(self, i: int) -> bool:
        readers = [node for node in self.second.nodes if i in node.inputs]
        own = self.second.nodes[i - 1].operation
        return bool(readers) and all(
            isinstance(node.operation, Dequantize) and not _grids_differ(own, node.operation)
            for node in readers
        )

    def _step(self, i: int, node: Node) -> bool:
        if any(j not in self.place for j in node.inputs):
            return self._rounded(i, node)
        while True:
            twins = tuple(self.twin[j] for j in node.inputs)
            for own in self.readers.get(twins[0] if twins else -1, []):
                other = self.first.nodes[own - 1]
                if other.inputs == twins and _alike(other, node):
                    return self._add(i, other, node, own)
            operation = plain(node.operation)
            if _only_shifts(operation) and node.shape == self._shape(twins[0]):
                return self._add(i, _nothing(node), node, twins[0])
            if len(twins) != 1 or not self._own_bias(node.inputs[0]):
                return False

    def _rounded(self, i: int, node: Node) -> bool:
        """Put integers that are read back beside a ReLU of the first, or beside nothing."""
        (j,) = node.inputs
        before = self.second.nodes[j - 1]
        (source,) = before.inputs
        if source not in self.place:
            return False
        assert isinstance(before.operation, Quantize) and isinstance(node.operation, Dequantize)
        grid = Rounded(before.operation, node.operation)
        self.place[j], self.twin[j] = self.place[source], self.twin[source]
        node = node._replace(operation=grid, name=before.name or node.name)
        again = any(
            i in other.inputs and isinstance(other.operation, Relu) for other in self.second.nodes
        )
        if not again and not grid.ends(len(node.shape)).lower.any():
            for own in self.readers.get(self.twin[source], []):
                other = self.first.nodes[own - 1]
                if isinstance(other.operation, Relu):
                    return self._add(i, other, node, own)
        return self._add(i, _nothing(node), node, self.twin[source])

    def _own_bias(self, j: int) -> bool:
        """Where the first adds a bias by itself, let tensor j stand for what that makes."""
        for own in self.readers.get(self.twin[j], []):
            other = self.first.nodes[own - 1]
            if _only_shifts(plain(other.operation)) and other.shape == self._shape(self.twin[j]):
                for nodes, made in zip(self.nodes, (other, _nothing(other)), strict=True):
                    nodes.append(made._replace(inputs=(self.place[j],)))
                self.place[j], self.twin[j] = len(self.nodes[0]), own
                return True
        return False

    def _shape(self, twin: int) -> Shape:
        return self.first.nodes[twin - 1].shape if twin else self.first.literal_shape

    def _add(self, i: int, ours: Node, theirs: Node, twin: int) -> bool:
        inputs = tuple(self.place[j] for j in theirs.inputs)
        for nodes, made in zip(self.nodes, (ours, theirs), strict=True):
            nodes.append(made._replace(inputs=inputs))
        self.place[i], self.twin[i] = len(self.nodes[0]), twin
        return True


def _only_shifts(operation: Operation) -> bool:
    return isinstance(operation, Scale) and operation.factor is None


def _nothing(node: Node) -> Node:
    """Return a node in the same place that does nothing."""
    return node._replace(operation=NOTHING)


def _grids_differ(p: Operation, q: Operation) -> bool:
    assert isinstance(p, Quantize) and isinstance(q, Dequantize)
    return any(
        not _equal(getattr(p, name), getattr(q, name)) for name in ("scale", "zero", "kind", "axis")
    )
