"""ONNX files in: from a graph of nodes to one :class:`~pindown.ReluNetwork`.

The graph is walked backwards from its one output, so nodes that the output does not need are never
looked at, and then forwards through the table of operations in :mod:`pindown.io._onnx_ops`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import scipy.sparse as sp
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from pindown.affine import is_finite, stored_entries
from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io._agreement import (
    DisagreementError,
    noise,
    require_agreement,
    require_exact_agreement,
    sample_rows,
)
from pindown.io._expression import Expression, constant
from pindown.io._limits import (
    MAX_EXACT_PARAMETERS,
    MAX_TOTAL_ENTRIES,
    check_deadline,
    check_entries,
    check_shape,
    reading_deadline,
)
from pindown.io._lowering import Lowering
from pindown.io._onnx_evaluate import GraphEvaluator, typed
from pindown.io._onnx_node import Node, Value
from pindown.io._onnx_ops import OPERATIONS, SUPPORTED
from pindown.io._onnx_schema import (
    DEFAULT_DOMAINS,
    ModelInput,
    batched,
    check_nodes,
    first_length,
    operator_set,
    producers,
    require_over_classes,
)
from pindown.io._onnx_tensors import (
    FLOAT_TYPES,
    HALF_TYPES,
    READABLE_TYPES,
    check_structure,
    damaged,
    decode_tensor,
)
from pindown.io.files import read_bytes, read_gzip
from pindown.network import ReluNetwork

_LARGE = 1e19  # the product of two of these is beyond float32
_ACTIVATIONS = {"Softmax": "softmax", "LogSoftmax": "log_softmax", "Sigmoid": "sigmoid"}


def read_onnx(path: Path) -> ReluNetwork:
    """Read ``.onnx`` or ``.onnx.gz``."""
    packed = path.name.lower().endswith(".gz")
    data = read_gzip(path) if packed else read_bytes(path)
    return network_from_onnx(data, folder=path.parent)


def network_from_onnx(data: bytes, folder: Path | None = None) -> ReluNetwork:
    """Read a serialised ONNX model.

    Args:
        data: The bytes of the ``.onnx`` file.
        folder: Where tensors stored outside the model may lie; None allows none.

    Raises:
        ModelFileError: If the bytes are not a sound ONNX model.
        UnsupportedModelError: If the model is not a ReLU network that pindown can write down.
    """
    try:
        model = _parse(data)
        with np.errstate(all="ignore"):  # what overflows is found by the checks for finite numbers
            return _Reader(model, folder).network()
    except UnicodeDecodeError:
        raise ModelFileError("the ONNX file is damaged: a name in it is not valid text.") from None


def _parse(data: bytes) -> Any:
    check_structure(data)
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError:
        raise damaged() from None
    if not model.HasField("graph") or not model.graph.output:
        raise ModelFileError("the file holds no ONNX graph with an output; is it cut short, or no ONNX?")
    return model


class _Reader:
    """One pass over one model."""

    def __init__(self, model: Any, folder: Path | None) -> None:
        self._model, self._graph = model, model.graph
        self._folder = folder
        self._opset = operator_set(model)
        self._initializers = {tensor.name: tensor for tensor in model.graph.initializer}
        self._producers = producers(model.graph)
        self._lowering = Lowering()
        self._values: dict[str, Value] = {}
        self._notes: list[str] = []
        self._order: list[int] = []  # of the nodes, as they were carried out
        self._tail: list[int] = []  # nodes from the last activation on
        self._charged: set[int] = set()
        self._stored = 0
        self._deadline = reading_deadline()

    def network(self) -> ReluNetwork:
        source, output = self._input(), self._output_name()
        self._sorted = check_nodes(self._graph, self._opset, {*OPERATIONS, *_ACTIVATIONS}, _label)
        activation_node, name = self._last_activation(output)
        with _named("the input"):
            self._values[source.name] = self._lowering.input(source.shape)
        if source.fixed_batch is not None:
            self._notes.append(f"The first axis, of length {source.fixed_batch}, was read as the batch.")
        try:
            self._evaluate(name)
            result = self._values[name]
            with _named("the network"):
                tensor = result if isinstance(result, Expression) else _checked_constant(result, name)
                if activation_node is not None:
                    require_over_classes(activation_node, tensor.shape, self._opset)
                net = self._lowering.network(
                    tensor,
                    input_shape=source.sample_shape,
                    output_activation=activation_node and _ACTIVATIONS[activation_node.op_type],
                )
                self._require_agreement(net, source, name)
            self._check_the_rest()
            return replace(net, notes=tuple(dict.fromkeys(self._notes)))
        except (ModelFileError, UnsupportedModelError) as error:
            if source.fixed_batch is None:
                raise
            raise type(error)(
                f"{error} The model was exported with a fixed batch of {source.fixed_batch}; "
                "export it with a batch of one or a dynamic batch axis."
            ) from None

    # ------------------------------------------------------------------ a second opinion

    def _require_agreement(self, net: ReluNetwork, source: ModelInput, name: str) -> None:
        """Compare the network with the graph, which other code evaluates."""
        nodes = [self._graph.node[index] for index in self._order]
        weights = {
            tensor: typed(np.asarray(self._values[tensor]), proto.data_type)
            for tensor, proto in self._initializers.items()
            if tensor in self._values
        }
        graph = GraphEvaluator(
            nodes, weights, source=source.name, opset=self._opset, folder=self._folder
        )

        def outputs(graph: GraphEvaluator, row: Any, noise: Any = None) -> Any:
            return graph.output(name, row.reshape(source.shape), noise).ravel()

        try:
            self._notes += require_agreement(net, lambda row, noise: outputs(graph, row, noise))
            if max(net.n_parameters, graph.n_constants) <= MAX_EXACT_PARAMETERS:
                exact = graph.exactly()
                require_exact_agreement(net, lambda row: outputs(exact, row))
        except DisagreementError as error:
            judge = exact if error.row.dtype == object else graph
            where = self._first_difference(judge, source, error.row)
            raise UnsupportedModelError(f"{where}{error}") from None
        rows = sample_rows(net.in_features)[:2]
        largest = max(graph.largest(row.reshape(source.shape)) for row in rows)
        if largest > _LARGE:
            self._notes.append(
                f"Numbers up to {largest:.0e} occur on the way; a runtime that computes in float32 "
                "may overflow where this network does not."
            )
        if source.fixed_batch is not None:
            self._require_batch(net, graph, name, (source.fixed_batch, *source.sample_shape))

    def _first_difference(self, graph: GraphEvaluator, source: ModelInput, row: Any) -> str:
        """Return which node's tensor is the first that the rules see differently."""
        x = row.reshape(source.shape)
        values, changed = graph(x), graph(x, noise(0))
        activations = self._lowering.activations(row)
        for index in self._order:
            for name in self._graph.node[index].output:
                ours, theirs = self._values.get(name), values.get(name)
                if isinstance(ours, Expression) and theirs is not None:
                    if ours.shape != theirs.shape:
                        return f"{_label(self._graph.node[index], index)} was not read as what it is: "
                    gap = np.abs(ours.at(activations) - theirs.ravel()).max()
                    rounding = max(np.abs(changed[name] - theirs).max(), 1e-9 * np.abs(theirs).max())
                    if gap > max(32 * rounding, 1e-12):  # only for the message
                        return f"{_label(self._graph.node[index], index)} was not read as what it is: "
        return ""

    def _require_batch(
        self, net: ReluNetwork, graph: GraphEvaluator, name: str, shape: tuple[int, ...]
    ) -> None:
        """Run one whole batch through the graph: that its first axis is a batch was only a guess."""
        rows = np.random.default_rng(0).normal(size=check_shape(shape, "the input"))
        result, one_by_one = graph.output(name, rows), net(rows)
        close = 1e-6 * np.abs(one_by_one).max()
        if result.size != one_by_one.size or not np.allclose(
            result.reshape(one_by_one.shape), one_by_one, rtol=0, atol=close
        ):
            raise UnsupportedModelError("the rows of the input do not go through it one by one.")

    # ------------------------------------------------------------------ the model's ends

    def _input(self) -> ModelInput:
        real = [entry for entry in self._graph.input if entry.name not in self._initializers]
        if len(real) != 1:
            names = ", ".join(f"'{entry.name}'" for entry in real) or "none"
            raise UnsupportedModelError(f"pindown reads models with one input; this one has {names}.")
        entry = real[0]
        if not entry.type.HasField("tensor_type") or not entry.type.tensor_type.HasField("shape"):
            raise UnsupportedModelError(f"the input '{entry.name}' declares no tensor shape.")
        if entry.type.tensor_type.elem_type not in FLOAT_TYPES:
            raise UnsupportedModelError(f"the input '{entry.name}' is not of a float type.")
        if entry.type.tensor_type.elem_type in HALF_TYPES:
            self._notes.append("The model computes in 16-bit floats; it was read as if nothing rounded.")
        return batched(entry, first_length(self._graph.output[0]))

    def _output_name(self) -> str:
        if len(self._graph.output) != 1:
            names = ", ".join(f"'{entry.name}'" for entry in self._graph.output)
            raise UnsupportedModelError(f"pindown reads models with one output; this one has {names}.")
        return str(self._graph.output[0].name)

    def _last_activation(self, name: str) -> tuple[Any | None, str]:
        """Return the final softmax or sigmoid, if there is one, and the tensor that enters it."""
        start = name
        for _ in range(len(self._graph.node)):
            node = self._producer(name)
            if node is None or node.domain not in DEFAULT_DOMAINS or len(node.input) < 1:
                break
            self._tail.append(self._producers[name][0])
            if node.op_type in _ACTIVATIONS:
                return node, node.input[0]
            if node.op_type != "Identity":
                break
            name = node.input[0]
        self._tail.clear()
        return None, start

    # ------------------------------------------------------------------ the walk

    def _producer(self, name: str) -> Any | None:
        made = self._producers.get(name)
        return None if made is None else self._graph.node[made[0]]

    def _evaluate(self, name: str) -> None:
        """Compute a tensor and everything it rests on, deepest first."""
        waiting = [name]
        while waiting:
            name = waiting[-1]
            if name in self._values:
                waiting.pop()
                continue
            node = self._producer(name)
            if node is None:
                self._values[name] = self._initializer(name)
                continue
            missing = [need for need in node.input if need and need not in self._values]
            if missing:
                waiting.extend(missing)
            else:
                self._run(*self._producers[name])

    def _check_the_rest(self) -> None:
        """Carry out the nodes that the output does not need: a runtime that cannot refuses the file."""
        for name, tensor in self._initializers.items():
            if name not in self._values and tensor.data_type in READABLE_TYPES:
                self._values[name] = self._initializer(name)
        notes, done, unread = list(self._notes), {*self._order, *self._tail}, 0
        for index in self._sorted:
            if index not in done:
                try:
                    self._run(index, 0)
                except (UnsupportedModelError, KeyError):  # perhaps sound
                    unread += 1
        self._notes = notes
        if unread:
            self._notes.append(f"{unread:,} nodes that the output does not need were not read.")

    def _initializer(self, name: str) -> Value:
        if name not in self._initializers:
            raise ModelFileError(f"no node or weight of the file makes the output '{name}'.")
        value = decode_tensor(self._initializers[name], self._folder)
        self._charge(value)
        return value

    def _run(self, index: int, slot: int) -> None:
        """Carry out a node and keep its outputs; ``slot`` is the one that is wanted now."""
        proto = self._graph.node[index]
        operation = _operation(proto, index)
        with _named(_label(proto, index)):
            check_deadline(self._deadline)
            inputs = [self._values[name] if name else None for name in proto.input]
            node = Node(
                proto,
                inputs,
                opset=self._opset,
                lowering=self._lowering,
                notes=self._notes,
                folder=self._folder,
            )
            made = operation(node)
            self._order.append(index)
            results = made if isinstance(made, list) else [made]
            if slot >= len(results):
                raise UnsupportedModelError(
                    f"output {slot + 1} of {proto.op_type} is in use; it is not read."
                )
            for name, result in zip(proto.output, results, strict=False):
                self._values[name] = self._settled(result)

    def _settled(self, value: Value) -> Value:
        """Check a result, and turn one that depends on no input into a plain constant."""
        self._charge(value)
        if not isinstance(value, Expression):
            return value
        if not value.terms:
            return value.constant.reshape(value.shape)
        numbers = [T.data if sp.issparse(T) else T for T in value.terms.values()]
        if not all(is_finite(part) for part in (*numbers, value.constant)):
            raise ModelFileError("the result overflows float64; the weights are too large.")
        return value

    def _charge(self, value: Value) -> None:
        """Count what is kept in memory; what two tensors share is counted once."""
        parts = [*value.terms.values(), value.constant] if isinstance(value, Expression) else [value]
        for part in parts:
            if id(part) not in self._charged:
                self._charged.add(id(part))
                self._stored += stored_entries(part)
        check_entries(self._stored, what="the model", limit=MAX_TOTAL_ENTRIES)


# ---------------------------------------------------------------------- nodes and errors


def _label(proto: Any, index: int) -> str:
    name = f" '{proto.name}'" if proto.name else ""
    return f"node {index}{name} ({proto.op_type})"


def _operation(proto: Any, index: int) -> Any:
    label = _label(proto, index)
    if proto.domain not in DEFAULT_DOMAINS:
        raise UnsupportedModelError(
            f"{label}: the operation is of the custom domain '{proto.domain}'; {SUPPORTED}."
        )
    if proto.op_type in _ACTIVATIONS:
        raise UnsupportedModelError(
            f"{label}: {proto.op_type} is read only as the model's last operation; {SUPPORTED}."
        )
    if proto.op_type not in OPERATIONS:
        raise UnsupportedModelError(
            f"{label}: the operation {proto.op_type} is not supported; {SUPPORTED}."
        )
    return OPERATIONS[proto.op_type]


def _checked_constant(value: Any, name: str) -> Expression:
    numbers = np.asarray(value, dtype=np.float64)
    if not is_finite(numbers):
        raise ModelFileError(f"the output '{name}' is constant and not finite.")
    return constant(numbers)


@contextmanager
def _named(label: str) -> Iterator[None]:
    """Say where an error arose, and turn what malformed numbers do inside NumPy into one of ours."""
    try:
        yield
    except (ModelFileError, UnsupportedModelError) as error:
        raise type(error)(f"{label}: {error}") from None
    except MemoryError:
        raise UnsupportedModelError(f"{label}: this needs more memory than the machine gives.") from None
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise ModelFileError(f"{label}: this cannot be carried out: {str(error).rstrip('.')}.") from None
