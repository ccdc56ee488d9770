"""One way through an ONNX graph: nodes that are needed become operations of a model, or constants."""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pindown.affine import is_finite
from pindown.deadline import Deadline
from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io._onnx.ends import ModelInput
from pindown.io._onnx.expansion import outer_names
from pindown.io._onnx.node import Node, Reading, Value
from pindown.io._onnx.ops import rule_of
from pindown.io._onnx.schema import DEFAULT_DOMAINS
from pindown.io._onnx.tensors import FLOAT_TYPES, READABLE_TYPES, as_type
from pindown.model.builder import Builder, Tensor
from pindown.model.limits import MAX_NODES, MAX_TOTAL_ENTRIES, check_deadline, check_entries
from pindown.model.operations.moves import Constant

_TRAINED_TYPES = FLOAT_TYPES | {2, 3}  # floats, and the integers of eight bits that stand for them
_MAX_UNFOLDED = 4 * MAX_NODES  # with the steps of recurrent layers and the nodes of definitions
_MAX_DEPTH = 12  # of definitions and branches in each other
_DROPPED = np.zeros(0)  # stands for what is not read again


class Source(Protocol):
    """What a walk needs to know of the file."""

    graph: Any
    folder: Path | None
    opsets: dict[str, int]
    types: dict[str, str]
    initializers: dict[str, Any]
    producers: dict[str, tuple[int, int]]
    order: list[int]
    source: ModelInput
    fixed: dict[str, NDArray[Any]]
    deadline: Deadline

    def initializer(self, name: str) -> NDArray[Any]:
        """Return a stored tensor."""

    def drop(self, name: str) -> None:
        """Let go of a stored tensor, if nobody will ask for it again."""


class Walk:
    """One way through the graph, for an input of one shape."""

    def __init__(self, reader: Source, shape: tuple[int, ...]) -> None:
        self._reader, self._graph = reader, reader.graph
        with named("the input"):
            self.builder = Builder(shape)
        uses = Counter(name for node in self._graph.node for name in outer_names(node))
        uses.update(entry.name for entry in self._graph.output)
        self.reading = Reading(
            self.builder,
            reader.opsets,
            reader.types,
            reader.folder,
            uses=uses,
            expand=self._expand,
        )
        self._values: dict[str, Value] = {reader.source.name: self.builder.input, **reader.fixed}
        self._left = uses.copy()  # how often each tensor is still to be read
        self._done: set[int] = set()
        self._charged: set[int] = set()
        self._stored = self._steps = self._depth = 0

    def tensor(self, name: str) -> Tensor:
        """Return a tensor of the graph, also one that depends on no input."""
        self._evaluate(name)
        value = self._values[name]
        if isinstance(value, Tensor):
            return value
        numbers = np.asarray(value, dtype=np.float64)
        if not is_finite(numbers):
            raise ModelFileError(f"the output '{name}' is constant and not finite.")
        with named("the output"):
            return self.builder.add(Constant(numbers), self.builder.input)

    def _producer(self, name: str) -> Any | None:
        made = self._reader.producers.get(name)
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
                self._store_initializer(name)
                continue
            missing = [need for need in outer_names(node) if need and need not in self._values]
            if missing:
                waiting.extend(missing)
            else:
                self._run(*self._reader.producers[name])

    def check_the_rest(self) -> list[str]:
        """Carry out the nodes that the output does not need: a runtime that cannot refuses the file."""
        for name, tensor in self._reader.initializers.items():
            if name not in self._values and tensor.data_type in READABLE_TYPES:
                self._store_initializer(name)
        unread = 0
        for index in self._reader.order:
            if index in self._done:
                continue
            if any(name and name not in self._values for name in outer_names(self._graph.node[index])):
                unread += 1
                continue
            try:
                self._run(index, 0)
            except UnsupportedModelError:  # perhaps sound
                unread += 1
        return [f"{unread:,} nodes that the output does not need were not read."] if unread else []

    def _store_initializer(self, name: str) -> None:
        value = self._reader.initializer(name)
        self._charge(value)
        self._values[name] = value
        if value.size > 1 and self._reader.initializers[name].data_type in _TRAINED_TYPES:
            self.reading.roots[name] = name, value.size

    def _run(self, index: int, slot: int) -> None:
        """Carry out a node and keep its outputs; ``slot`` is the one that is wanted now."""
        proto = self._graph.node[index]
        self._done.add(index)
        made = self._carry_out(proto, label_of(proto, index), self._values, self.reading)
        with named(label_of(proto, index)):
            if slot >= len(made) or made[slot] is None:
                raise UnsupportedModelError(
                    f"output {slot + 1} of {proto.op_type} is in use; it is not read."
                )
        self._keep(proto, made, self._values)
        for name, value in zip(proto.output, made, strict=False):
            if name and isinstance(value, Tensor):
                self.builder.hold(value)
        self._drop_what_is_read(proto)

    def _drop_what_is_read(self, proto: Any) -> None:
        """Let go of tensors that no other node reads: operations keep what they need of them."""
        for name in filter(None, outer_names(proto)):
            self._left[name] -= 1
            if self._left[name] > 0 or name == self._reader.source.name:
                continue
            value = self._values[name]
            if isinstance(value, Tensor):
                self.builder.release(value)
            elif name in self._reader.initializers:
                self._charged.discard(id(value))  # another array may get its number
                self._values[name] = _DROPPED
                self._reader.drop(name)

    def _carry_out(
        self, proto: Any, label: str, values: Mapping[str, Value], reading: Reading
    ) -> Sequence[Value | None]:
        with named(label):
            check_deadline(self._reader.deadline)
            self._steps += 1
            domain = "" if proto.domain in DEFAULT_DOMAINS else proto.domain
            rule = rule_of(domain, proto.op_type)
            inputs = [values[name] if name else None for name in proto.input]
            self.builder.place = label
            made = rule(Node(proto, inputs, reading, label, values))
            if max(self._steps, self.builder.n_nodes) > _MAX_UNFOLDED:
                raise UnsupportedModelError(f"the graph unfolds to more than {_MAX_UNFOLDED:,} nodes.")
            results = list(made) if isinstance(made, (list, tuple)) else [made]
            kinds = [reading.types.get(name, "") for name in proto.output]
            kinds += [""] * (len(results) - len(kinds))
            pairs = zip(results, kinds, strict=False)
            return [self._settled(result, kind) for result, kind in pairs]  # type: ignore[arg-type]

    def _keep(self, proto: Any, made: Sequence[Value | None], values: dict[str, Value]) -> None:
        """Keep what a node made, and of constants the weight that they come from."""
        roots = self.reading.roots
        root = None
        if proto.op_type not in ("Shape", "Size"):
            root = next((roots[name] for name in proto.input if name in roots), None)
        for name, result in zip(proto.output, made, strict=False):
            if result is None or not name:
                continue
            values[name] = result
            if root is not None and not isinstance(result, Tensor):
                roots[name] = root

    def _expand(
        self,
        outer: Node,
        nodes: Sequence[Any],
        values: dict[str, Value],
        wanted: Sequence[str],
        opsets: dict[str, int] | None,
    ) -> list[Value]:
        """Carry out the nodes of a definition or a branch in the place of one node."""
        if self._depth >= _MAX_DEPTH:
            raise UnsupportedModelError("branches and definitions are nested too deeply.")
        self._depth += 1
        scope: Any = values if opsets is not None else ChainMap(values, outer.scope)  # type: ignore[arg-type]
        types: dict[str, str] = {} if opsets is not None else self.reading.types
        inner = Reading(
            self.builder,
            {**self.reading.opsets, **(opsets or {})},
            types,
            self.reading.folder,
            self.reading.notes,
            roots=self.reading.roots if opsets is None else {},
            counted=self.reading.counted,
            grids=self.reading.grids,
            shared=self.reading.shared,
            expand=self._expand,
        )
        try:
            for proto in nodes:
                made = self._carry_out(proto, outer.label, scope, inner)
                for name, result in zip(proto.output, made, strict=False):
                    if name and result is not None:
                        scope[name] = result
        finally:
            self._depth -= 1
        return [scope[name] for name in wanted]

    def _settled(self, value: Value | None, kind: str) -> Value | None:
        """Count a constant, in the type that the file gives it: there all runtimes round it.

        Functions of arrays without axes return bare numbers.
        """
        if value is None or isinstance(value, Tensor):
            return value
        constant = np.asarray(value)
        if id(constant) not in self.reading.grids:
            constant = as_type(constant, kind)
        self._charge(constant)
        return constant

    def _charge(self, value: NDArray[Any]) -> None:
        """Count what is kept in memory; what two names share is counted once."""
        if id(value) not in self._charged:
            self._charged.add(id(value))
            self._stored += value.size
        check_entries(self._stored, what="the model", limit=MAX_TOTAL_ENTRIES)


def label_of(proto: Any, index: int) -> str:
    """Return how messages call a node."""
    name = f" '{proto.name}'" if proto.name else ""
    return f"node {index}{name} ({proto.op_type})"


@contextmanager
def named(label: str) -> Iterator[None]:
    """Say where an error arose, and turn what malformed numbers do inside NumPy into one of ours."""
    try:
        yield
    except (ModelFileError, UnsupportedModelError) as error:
        text = str(error)
        raise type(error)(text if text.startswith("node ") else f"{label}: {text}") from None
    except MemoryError:
        raise UnsupportedModelError(f"{label}: this needs more memory than the machine gives.") from None
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise ModelFileError(f"{label}: this cannot be carried out: {str(error).rstrip('.')}.") from None
