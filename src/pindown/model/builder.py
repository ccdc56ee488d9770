"""Graphs in the making: readers add operations one by one and get tensors with known shapes back."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from pindown.affine import is_finite
from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.model.graph import Model, Node, Origin
from pindown.model.limits import MAX_TENSOR_ENTRIES, MAX_TOTAL_ENTRIES, check_entries, check_shape
from pindown.model.operations.operation import Operation, Shape


@dataclass(frozen=True, eq=False)
class Tensor:
    """A tensor of a graph in the making.

    Attributes:
        index: Its number in the graph.
        shape: Its literal shape.
    """

    index: int
    shape: Shape


class Builder:
    """A graph to which operations are added.

    Args:
        literal_shape: The shape of the input, with its batch axis of length one if there is one.

    Attributes:
        input: The input's tensor.
        place: How the operations added next are called in messages, and where they stand.
    """

    def __init__(self, literal_shape: Sequence[int]) -> None:
        self._nodes: list[Node] = []
        self._counted: set[int] = set()
        self._stored = 0
        self._origin: Origin | None = None
        self._readers: Counter[int] = Counter()  # of every tensor: how many nodes read it
        self._held: Counter[int] = Counter()
        self.place = ""
        self.input = Tensor(0, check_shape(literal_shape, "the input"))

    def add(self, operation: Operation, *inputs: Tensor) -> Tensor:
        """Add an operation and return what it makes.

        Raises:
            ValueError: If the inputs' shapes do not fit the operation.
            UnsupportedModelError: If the result or all weights together are too large.
        """
        shape = check_shape(
            operation.shape(*(x.shape for x in inputs)), "the result", MAX_TENSOR_ENTRIES
        )
        if id(operation) not in self._counted:
            self._counted.add(id(operation))
            self._stored += operation.nbytes // 8
            check_entries(self._stored, what="the model", limit=MAX_TOTAL_ENTRIES)
        if not all(is_finite(v) for v in vars(operation).values() if _is_float_array(v)):
            raise ModelFileError(f"{operation.name} holds numbers that are NaN, infinite or overflow.")
        self._nodes.append(
            Node(operation, tuple(x.index for x in inputs), shape, self.place, self._origin)
        )
        self._readers.update({x.index for x in inputs})
        return Tensor(len(self._nodes), shape)

    def hold(self, tensor: Tensor) -> None:
        """Say that a reader may still ask for a tensor."""
        self._held[tensor.index] += 1

    def release(self, tensor: Tensor) -> None:
        """Take back one :meth:`hold`; operations whose results nobody holds or reads are let go.

        Readers replace groups of nodes by one: the weights of what was replaced need not stay.
        """
        from pindown.model.operations.moves import Constant

        self._held[tensor.index] -= 1
        waiting = [tensor.index]
        while waiting:
            i = waiting.pop()
            if i == 0 or self._held[i] > 0 or self._readers[i] > 0:
                continue
            node = self._nodes[i - 1]
            self._nodes[i - 1] = node._replace(operation=Constant(np.zeros(0)), inputs=())
            for j in set(node.inputs):
                self._readers[j] -= 1
                waiting.append(j)

    @contextmanager
    def standing_for(self, origin: Origin) -> Iterator[Callable[[int, Tensor], None]]:
        """Let the nodes added here stand for one operation; yields how to tell its outputs."""
        start, self._origin = len(self._nodes), origin

        def makes(slot: int, tensor: Tensor) -> None:
            if tensor.index > start and self._nodes[tensor.index - 1].slot < 0:
                self._nodes[tensor.index - 1] = self._nodes[tensor.index - 1]._replace(slot=slot)

        try:
            yield makes
        finally:
            self._origin = None
            origin.wiring.extend(wiring(node, self._nodes) for node in self._nodes[start:])

    def node(self, tensor: Tensor) -> Node | None:
        """Return the node that made a tensor, None for the input."""
        return None if tensor.index == 0 else self._nodes[tensor.index - 1]

    @property
    def n_nodes(self) -> int:
        """How many operations were added."""
        return len(self._nodes)

    def tensor(self, index: int) -> Tensor:
        """Return a tensor by its number."""
        return self.input if index == 0 else Tensor(index, self._nodes[index - 1].shape)

    def model(self, output: Tensor, *, input_shape: Sequence[int] = (), **facts: Any) -> Model:
        """Return the graph that leads to ``output``; what the output does not need is left out.

        Args:
            output: What the model returns.
            input_shape: The shape of one input; the literal shape if it is left out.
            facts: ``dtype`` and ``notes`` of the model.
        """
        if output.index == 0:
            from pindown.model.operations.moves import Reshape

            output = self.add(Reshape(output.shape), output)
        needed = {output.index}
        for i in range(output.index, 0, -1):
            if i in needed:
                needed.update(self._nodes[i - 1].inputs)
        kept = sorted(needed - {0})
        number = {0: 0, **{old: new for new, old in enumerate(kept, 1)}}
        nodes = tuple(
            self._nodes[i - 1]._replace(inputs=tuple(number[j] for j in self._nodes[i - 1].inputs))
            for i in kept
        )
        shape = tuple(int(n) for n in input_shape) or self.input.shape
        if math.prod(shape) != math.prod(self.input.shape):
            raise UnsupportedModelError(f"an input of shape {shape} does not fit {self.input.shape}.")
        return Model(nodes, self.input.shape, shape, **facts)


def wiring(node: Node, nodes: Sequence[Node]) -> tuple[Operation, ...]:
    """Return a node's operation and those of its origin that it reads, as the origin remembers them."""
    makers = [nodes[j - 1] for j in node.inputs if j > 0]
    return node.operation, *(maker.operation for maker in makers if maker.origin is node.origin)


def _is_float_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"
