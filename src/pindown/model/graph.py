"""The model at the door: an immutable graph of operations in float64, as its author wrote it."""

from __future__ import annotations

import hashlib
import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array, is_finite
from pindown.model.operations.operation import Interval, Numbers, Operation, Shape
from pindown.network import ReluNetwork, as_rows, row_chunks
from pindown.text import card

if TYPE_CHECKING:
    from pindown.model._lowering import Lowered

_SHOWN_KINDS = 6


@dataclass(frozen=True, eq=False)
class Origin:
    """The one operation of a file that several nodes stand for: a file can be written with it again.

    Attributes:
        kind: Its ONNX name, such as ``"LSTM"``.
        domain: Its ONNX domain.
        operands: What it takes after its tensor: constants, each with an integer type or ``""`` for
            floats, or None where nothing is given.
        attributes: Its ONNX attributes.
        n_outputs: How many outputs it has.
        wiring: The operations that stand for it, each with those that it reads.
    """

    kind: str
    domain: str
    operands: tuple[tuple[Any, str] | None, ...]
    attributes: dict[str, Any]
    n_outputs: int
    wiring: list[tuple[Operation, ...]] = field(default_factory=list)


class Node(NamedTuple):
    """An operation in its place.

    Attributes:
        operation: What is done.
        inputs: Which tensors go in: 0 is the model's input, i is what node i - 1 made.
        shape: The literal shape of what comes out.
        name: What the author called it, and where it stands: ``"node 3 '/act/Relu' (Relu)"``.
        origin: The operation of a file that it is a part of, if that was taken apart.
        slot: Which output of that operation it makes; -1 for none.
    """

    operation: Operation
    inputs: tuple[int, ...]
    shape: Shape
    name: str = ""
    origin: Origin | None = None
    slot: int = -1


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """A graph of operations with one input and one output.

    Attributes:
        nodes: The operations, in an order in which they can be carried out; the last one makes the
            output.
        literal_shape: The shape of the input in the graph, mostly ``(1, *input_shape)``.
        input_shape: The shape of one input, for instance ``(3, 32, 32)``.
        dtype: The float type in which the model was written: ``"float32"`` and the like. Everything here
            computes in float64.
        notes: What the reader had to assume, in plain words.

    Example:
        >>> from pindown.model.builder import Builder
        >>> from pindown.model.operations.dense import Dense
        >>> from pindown.model.operations.piecewise_linear import Relu
        >>> graph = Builder((1, 2))
        >>> affine = graph.add(Dense([[1.0, 0.0], [0.0, 2.0]], [0.0, -1.0]), graph.input)
        >>> hidden = graph.add(Relu(), affine)
        >>> model = graph.model(hidden, input_shape=(2,))
        >>> model([[-3.0, 2.0]])
        array([[0., 3.]])
        >>> model
        Model((2,) -> 2, 6 parameters: Dense, ReLU)
    """

    nodes: tuple[Node, ...]
    literal_shape: Shape
    input_shape: Shape
    dtype: str = "float32"
    notes: tuple[str, ...] = ()

    # ------------------------------------------------------------------ making one

    @classmethod
    def from_torch(cls, module: Any, input_shape: Sequence[int] | None = None) -> Model:
        """Read a torch module (in evaluation mode) by tracing it.

        Args:
            module: A ``torch.nn.Module`` whose ``forward`` takes one tensor.
            input_shape: Shape of one input without the batch, for instance ``(3, 32, 32)``. May be left
                out when the first layer is ``Linear``.
        """
        from pindown.io._torch.module import model_from_module

        return model_from_module(module, input_shape)

    @classmethod
    def from_sklearn(cls, estimator: Any) -> Model:
        """Read a fitted scikit-learn estimator, or a pipeline that ends in a linear model or an MLP."""
        from pindown.io._sklearn import model_from_estimator

        return model_from_estimator(estimator)

    # ------------------------------------------------------------------ what it is

    @property
    def in_features(self) -> int:
        """Numbers in one input."""
        return math.prod(self.input_shape)

    @property
    def out_features(self) -> int:
        """Numbers in one output."""
        return math.prod(self.output_shape)

    @property
    def output_shape(self) -> Shape:
        """The literal shape of the output."""
        return self.nodes[-1].shape if self.nodes else self.literal_shape

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The operations, in order."""
        return tuple(node.operation for node in self.nodes)

    @property
    def n_parameters(self) -> int:
        """Trained numbers, as frameworks count them: a number that two operations share counts once."""
        distinct = {id(node.operation): node.operation for node in self.nodes}
        return sum(operation.n_parameters for operation in distinct.values())

    @property
    def multiply_adds(self) -> int:
        """Multiplications with weights, and of tensors, that one input costs."""
        return sum(node.operation.multiply_adds(*self.shapes_into(node)) for node in self.nodes)

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the numbers of all operations take."""
        distinct = {id(node.operation): node.operation for node in self.nodes}
        return sum(operation.nbytes for operation in distinct.values())

    def shapes_into(self, node: Node) -> tuple[Shape, ...]:
        """Return the literal shapes of what goes into a node."""
        return tuple(self.literal_shape if i == 0 else self.nodes[i - 1].shape for i in node.inputs)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the graph: equal exactly when all operations, wires and numbers are equal."""
        digest = hashlib.sha256(repr((self.literal_shape, self.input_shape)).encode())
        for node in self.nodes:
            digest.update(repr((node.inputs, node.shape)).encode())
            _feed(digest, node.operation)
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    _repr_html_ = card

    def __repr__(self) -> str:
        counts: dict[str, int] = {}
        for operation in self.operations:
            counts[operation.name] = counts.get(operation.name, 0) + 1
        kinds = [name if n == 1 else f"{n} {name}" for name, n in counts.items()]
        if len(kinds) > _SHOWN_KINDS:
            kinds[_SHOWN_KINDS:] = [f"{len(kinds) - _SHOWN_KINDS} other kinds"]
        shape = self.input_shape if len(self.input_shape) > 1 else f"({self.in_features},)"
        facts = f"{shape} -> {self.out_features}, {self.n_parameters:,} parameters"
        return f"Model({facts}: {', '.join(kinds)})"

    # ------------------------------------------------------------------ evaluating it

    def __call__(self, X: ArrayLike) -> Array:
        """Evaluate: (n, d) or ``(n, *input_shape)`` -> (n, k), one input -> (k,), each as if alone.

        Memory is bounded: rows go through in chunks, and a tensor is dropped after its last use.
        """
        rows, single = as_rows(X, self.in_features, self.input_shape)
        out = np.empty((len(rows), self.out_features))
        with np.errstate(all="ignore"):  # the check below speaks instead
            for part in self.chunks(len(rows)):
                out[part] = self.evaluate(rows[part]).reshape(-1, self.out_features)
        if not is_finite(out):
            bad = int(np.flatnonzero(~np.isfinite(out).all(axis=1))[0])
            raise ValueError(
                f"the model's output at input {bad} is not finite: float64 overflows there, or a "
                "logarithm, root or division leaves its domain."
            )
        return out[0] if single else out

    def evaluate(self, rows: Numbers, change: Callable[[Numbers], Numbers] | None = None) -> Numbers:
        """Return the output ``(n, *output_shape)`` at flat rows (n, d), also of rational numbers.

        Args:
            rows: The inputs.
            change: What to do to every tensor on its way, to see how much that matters.
        """
        return deque(self.walk(rows, change), maxlen=1)[0]

    def walk(
        self, rows: Numbers, change: Callable[[Numbers], Numbers] | None = None
    ) -> Iterator[Numbers]:
        """Yield the input and what every node makes of it, dropping what is not needed again."""
        x = rows.reshape(len(rows), *self.literal_shape)
        values: dict[int, Numbers] = {0: x if change is None else change(x)}
        yield values[0]
        for i, node in enumerate(self.nodes, 1):
            made = node.operation(*(values[j] for j in node.inputs))
            values[i] = made if change is None else change(made)
            for j in set(node.inputs):
                if self.last_use[j] == i:
                    del values[j]
            yield values[i]

    @cached_property
    def last_use(self) -> list[int]:
        """Of every tensor: the last node that reads it (1-based); 0 if none does."""
        last = [0] * (len(self.nodes) + 1)
        for i, node in enumerate(self.nodes, 1):
            for j in node.inputs:
                last[j] = i
        return last

    @property
    def _tensor_sizes(self) -> list[int]:
        return [math.prod(self.literal_shape), *(math.prod(node.shape) for node in self.nodes)]

    @property
    def tensor_entries(self) -> int:
        """Numbers in all tensors of one input together: what a pass back has to keep."""
        return sum(self._tensor_sizes)

    @cached_property
    def _row_bytes(self) -> int:
        """Most bytes that the tensors of one input take at once."""
        sizes = self._tensor_sizes
        alive, most = {0: sizes[0]}, sizes[0]
        for i, node in enumerate(self.nodes, 1):
            alive[i] = sizes[i]
            most = max(most, sum(alive.values()))
            for j in {*node.inputs, i}:
                if self.last_use[j] <= i:
                    alive.pop(j, None)
        return 8 * most

    def chunks(self, n: int) -> Iterator[slice]:
        """Yield slices that cover ``range(n)`` and keep one slice's tensors in bounded memory."""
        return row_chunks(n, self._row_bytes)

    # ------------------------------------------------------------------ other forms

    def relu_network(self) -> ReluNetwork:
        """Return the exact normal form, affine maps with ReLUs between them.

        A last softmax, log-softmax or sigmoid is left out and remembered as ``output_activation``.

        Raises:
            UnsupportedModelError: If an operation is not piecewise linear, or the normal form would be
                too large; the message names the operation or the size.
        """
        return self._lowered.network

    @cached_property
    def _lowered(self) -> Lowered:
        from pindown.model._lowering import lowered

        return lowered(self)

    def scores(self) -> Model:
        """Return the model without a last softmax, log-softmax or sigmoid over all outputs.

        These keep the order of outputs and flatten their gradients; the model itself if it has none.
        """
        from pindown.model._lowering import before_activation

        nodes, activation = before_activation(self)
        return self if activation is None else replace(self, nodes=nodes)

    def save(self, path: str | PathLike[str], *, dtype: str = "auto") -> None:
        """Write ``.onnx`` or ``.onnx.gz``, with the operations the model has.

        Args:
            path: Where to write; the ending chooses the format.
            dtype: ``"float32"``, ``"float64"``, ``"float16"``, or ``"auto"``: the type it was read in.
        """
        from pindown.io import save

        save(self, path, dtype=dtype)


def _feed(digest: Any, value: Any) -> None:
    """Hash an operation or a part of it with all its numbers."""
    if isinstance(value, np.ndarray):
        digest.update(repr((value.shape, value.dtype.str)).encode())
        digest.update(np.ascontiguousarray(value + 0.0).tobytes())
    elif is_dataclass(value):
        digest.update(type(value).__name__.encode())
        for entry in fields(value):
            digest.update(entry.name.encode())
            _feed(digest, getattr(value, entry.name))
    elif isinstance(value, tuple):
        digest.update(f"{len(value)}".encode())
        for part in value:
            _feed(digest, part)
    else:
        digest.update(repr(value).encode())


def interval_walk(model: Model, box: Interval) -> Iterator[Interval]:
    """Yield proved bounds on the input (n, d) and on what every node makes of it, in order."""
    n = len(box.lower)
    values = {0: Interval(*(end.reshape(n, *model.literal_shape) for end in box))}
    yield values[0]
    for i, node in enumerate(model.nodes, 1):
        values[i] = node.operation.interval(*(values[j] for j in node.inputs))
        for j in node.inputs:
            if model.last_use[j] <= i:
                values.pop(j, None)
        yield values[i]
