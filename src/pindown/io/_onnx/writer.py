"""ONNX files out: every operation writes itself, weights in the type that the model was read in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.errors import ModelFileError
from pindown.io.files import choose_dtype, narrowed
from pindown.model.builder import wiring
from pindown.model.from_network import model_of_network
from pindown.model.graph import Model, Node
from pindown.model.limits import MAX_FILE_BYTES
from pindown.model.operations.moves import Constant, Expand, Reshape
from pindown.model.operations.operation import Numbers, Shape, Writer
from pindown.network import ReluNetwork
from pindown.validation import choice

_OPSET, _IR_VERSION = 13, 8  # read by every runtime since 2021
# The operator set that first has these operations in the form in which they are written here.
_SINCE = {
    "BitShift": 11,
    "GroupNormalization": 21,
    "HardSwish": 14,
    "LayerNormalization": 17,
    "Mish": 18,
    "ReduceL1": 18,
    "ReduceL2": 18,
    "ReduceMax": 18,
    "ReduceMean": 18,
    "ReduceMin": 18,
    "Resize": 13,
}
_DOMAIN_VERSION = 1
_FLOATS = {"float16": "FLOAT16", "float32": "FLOAT", "float64": "DOUBLE"}


def onnx_bytes(model: Model | ReluNetwork, dtype: str = "auto") -> bytes:
    """Return a model as serialised ONNX, with an open batch axis wherever rows go through alone."""
    if isinstance(model, ReluNetwork):
        numbers = choose_dtype(model, dtype)
        _require_small(model, numbers)
        return _Graph(model_of_network(model), numbers).serialised()
    if dtype == "auto":
        dtype = model.dtype if model.dtype in _FLOATS else "float32"
    choice("dtype", dtype, ("auto", *_FLOATS))
    return _Graph(model, np.dtype(dtype)).serialised()


class _Graph(Writer):
    """One model on its way into a file."""

    def __init__(self, model: Model, numbers: np.dtype[Any]) -> None:
        self._model, self._numbers = model, numbers
        self._nodes: list[Any] = []
        self._tensors: list[Any] = []
        self._bytes = 0
        self._names: dict[tuple[Any, str], str] = {}  # of numbers that are there already
        self._kept: list[Any] = []  # keeps the arrays alive whose places are keys
        self._shapes: dict[str, Shape] = {"input": model.literal_shape}
        self._counts: dict[str, int] = {}
        self._shared: dict[tuple[str, ...], list[str]] = {}  # outputs of nodes with several
        self._kinds: dict[str, str] = {}  # types of tensors
        self._opset, self._domains = _OPSET, set[str]()
        self._step = ""
        self.batched = rows_go_alone(model)

    def serialised(self) -> bytes:
        from onnx import TensorProto, helper

        model = self._model
        names = ["input"]
        whole = whole_origins(model)
        for i, node in enumerate(model.nodes, 1):
            self._step = f"{i}"
            if id(node.origin) in whole:
                names.append(self._part_of(node, names[whole[id(node.origin)]]))
                continue
            made = node.operation.write(self, *(names[j] for j in node.inputs))
            self._shapes[made] = node.shape
            names.append(made)
        self._nodes.append(helper.make_node("Identity", [names[-1]], ["output"], name="output"))
        self._drop_identity(names[-1])
        kind = getattr(TensorProto, _FLOATS[self._numbers.name])
        made = self.kind_of(names[-1])
        last = kind if made == self.dtype else getattr(TensorProto, made.upper())
        graph = helper.make_graph(
            self._nodes,
            "pindown",
            [helper.make_tensor_value_info("input", kind, self._open(model.literal_shape))],
            [helper.make_tensor_value_info("output", last, self._open(model.output_shape))],
            self._tensors,
        )
        opsets = [helper.make_opsetid("", self._opset)]
        opsets += [helper.make_opsetid(domain, _DOMAIN_VERSION) for domain in sorted(self._domains)]
        proto = helper.make_model(
            graph, producer_name="pindown", opset_imports=opsets, ir_version=self._ir_version
        )
        return bytes(proto.SerializeToString(deterministic=True))

    def _part_of(self, node: Node, x: str) -> str:
        """Write the operation that a node is a part of, once, and return the output that it makes."""
        origin = node.origin
        if origin is None or node.slot < 0:
            return ""  # nobody outside reads it
        operands = ["" if part is None else self._operand(*part) for part in origin.operands]
        made = self.node(
            origin.kind,
            [x, *operands],
            domain=origin.domain,
            part=(node.slot, max(2, origin.n_outputs)),
            since=14,
            **origin.attributes,
        )
        self._shapes[made] = node.shape
        return made

    def _operand(self, values: Any, kind: str) -> str:
        return self.integers(values, kind) if kind else self.weight(values)

    @property
    def _ir_version(self) -> int:
        return _IR_VERSION if self._opset <= 18 else 10

    def _drop_identity(self, last: str) -> None:
        """Let the last operation make the output itself, where no other reads what it makes."""
        makers = [node for node in self._nodes[:-1] if last in node.output]
        readers = [node for node in self._nodes[:-1] if last in node.input]
        if makers and not readers:
            self._nodes.pop()
            makers[0].output[list(makers[0].output).index(last)] = "output"

    def _open(self, shape: Shape) -> list[int | str]:
        return ["batch", *shape[1:]] if self.batched else list(shape)

    # ------------------------------------------------------------------ what operations call

    @property
    def dtype(self) -> str:
        return self._numbers.name

    def node(
        self,
        kind: str,
        inputs: Sequence[str],
        *,
        domain: str = "",
        makes: str = "",
        part: tuple[int, int] = (0, 1),
        since: int = 0,
        **attributes: Any,
    ) -> str:
        from onnx import helper

        which, count = part
        if count > 1 and (kind, *inputs) in self._shared:
            made = self._shared[kind, *inputs]
        else:
            number = self._counts[kind] = self._counts.get(kind, 0) + 1
            made = [f"{kind}.{number}.out"]
            if count > 1:
                made = self._shared[kind, *inputs] = [f"{kind}.{number}.{i}" for i in range(count)]
            self._opset = max(self._opset, since, _SINCE.get(kind, 0) if not domain else 0)
            if domain:
                self._domains.add(domain)
            name = f"{kind}.{number}"
            self._nodes.append(
                helper.make_node(kind, list(inputs), made, name=name, domain=domain, **attributes)
            )
        self._kinds[made[which]] = makes or self.kind_of(next(iter(inputs), ""))
        return made[which]

    def weight(self, values: Array, name: str = "weight") -> str:
        numbers = np.asarray(values, dtype=np.float64)
        return self._tensor(
            values, self._numbers.name, lambda: narrowed(numbers, self._numbers, name), name
        )

    def integers(self, values: ArrayLike, kind: str = "int64") -> str:
        return self._tensor(values, kind, lambda: np.asarray(values).astype(kind), "integers")

    def shape(self, shape: Sequence[int]) -> str:
        open_batch = self.batched and len(shape) > 1 and shape[0] == 1
        return self.integers([0, *shape[1:]] if open_batch else list(shape))

    def shape_of(self, tensor: str) -> Shape:
        return self._shapes[tensor]

    def kind_of(self, tensor: str) -> str:
        return self._kinds.get(tensor, self.dtype)

    def _tensor(self, source: Any, kind: str, make: Any, name: str) -> str:
        key = (_memory(source), kind)
        if key in self._names:
            return self._names[key]
        from onnx import TensorProto, helper

        values = np.asarray(make(), order="C")  # ascontiguousarray would give a number an axis
        self._bytes += values.nbytes
        if self._bytes >= MAX_FILE_BYTES - 2**20:
            raise ModelFileError(
                f"as ONNX the model takes {self._bytes / 2**30:,.1f} GiB or more; ONNX ends at 2 GiB."
            )
        named = f"{self._step}.{name}"
        while named in self._shapes:
            named += "'"
        number = helper.np_dtype_to_tensor_dtype(values.dtype)
        raw = values.astype(values.dtype.newbyteorder("<"), copy=False).tobytes()
        self._tensors.append(TensorProto(name=named, dims=values.shape, data_type=number, raw_data=raw))
        self._names[key] = named
        self._kinds[named] = kind
        self._shapes[named] = values.shape
        self._kept.append(source)
        return named


def _memory(source: Any) -> Any:
    """Return what tells arrays apart that are not the same numbers in the same place."""
    if not isinstance(source, np.ndarray):
        return id(source)
    return source.__array_interface__["data"][0], source.shape, source.strides, source.dtype.str


def whole_origins(model: Model) -> dict[int, int]:
    """Return the operations that were taken apart and can be written again, with the tensor they read.

    That is so where all their parts are as they were made, one tensor goes in, and others read only what
    is an output.
    """
    parts: dict[int, list[int]] = {}
    readers: dict[int, set[int]] = {len(model.nodes): {0}}  # the output is read from outside
    for i, node in enumerate(model.nodes, 1):
        if node.origin is not None:
            parts.setdefault(id(node.origin), []).append(i)
        for j in node.inputs:
            readers.setdefault(j, set()).add(i)
    return {key: into for key, own in parts.items() if (into := _one_input(model, own, readers)) >= 0}


def _one_input(model: Model, own: list[int], readers: dict[int, set[int]]) -> int:
    """Return the one tensor that parts of an operation read, or -1 if it cannot be written again."""
    origin = model.nodes[own[0] - 1].origin
    known = {tuple(map(id, parts)) for parts in origin.wiring} if origin else set()
    inside, into = set(own), set[int]()
    for i in own:
        node = model.nodes[i - 1]
        if tuple(map(id, wiring(node, model.nodes))) not in known:
            return -1
        if node.slot < 0 and not readers.get(i, set()) <= inside:
            return -1
        if not isinstance(node.operation, Constant):  # which takes the input for its length only
            into.update(j for j in node.inputs if j not in inside)
    return into.pop() if len(into) == 1 else -1


def rows_go_alone(model: Model) -> bool:
    """Return whether the graph maps a batch of two row by row, so that its batch axis may stay open.

    Found out on two random rows: the operations are carried out with a literal batch of two.
    """
    if model.literal_shape != (1, *model.input_shape) or model.output_shape[:1] != (1,):
        return False
    rows = np.random.default_rng(0).normal(size=(2, model.in_features))
    with np.errstate(all="ignore"):
        try:
            alone = model.evaluate(rows)[:, 0]
            together = _with_batch(model, rows.reshape(1, 2, *model.input_shape))
        except (ValueError, IndexError):
            return False
    same = together.shape == (1, *alone.shape)
    return same and bool(np.allclose(together[0], alone, rtol=1e-6, atol=1e-9, equal_nan=True))


def _with_batch(model: Model, x: Numbers) -> Numbers:
    """Evaluate with a literal batch of two instead of one."""
    values: list[Numbers | None] = [x]
    for i, node in enumerate(model.nodes, 1):
        values.append(_step(node, [v for j in node.inputs if (v := values[j]) is not None]))
        for j in node.inputs:
            if model.last_use[j] <= i:
                values[j] = None
    made = values[-1]
    if made is None:
        raise ValueError
    return made


def _step(node: Node, inputs: list[Numbers]) -> Numbers:
    operation = node.operation
    if isinstance(operation, Reshape) and len(operation.to) > 1 and operation.to[0] == 1:
        return inputs[0].reshape(1, inputs[0].shape[1], *operation.to[1:])
    if isinstance(operation, Expand) and operation.to[0] == 1:
        return Expand((inputs[0].shape[1], *operation.to[1:]))(*inputs)
    if isinstance(operation, Constant):
        return operation.values[None]
    return operation(*inputs)


def _require_small(net: ReluNetwork, numbers: np.dtype[Any]) -> None:
    """Refuse a file that no reader of ONNX could open: one message holds at most 2 GiB."""
    entries = sum(math.prod(W.shape) + b.size for W, b in net.layers)
    if entries * numbers.itemsize >= MAX_FILE_BYTES - 2**20:
        raise ModelFileError(
            f"as ONNX, with sparse layers written in full, the network takes "
            f"{entries * numbers.itemsize / 2**30:,.1f} GiB; ONNX files end at 2 GiB. "
            "Save it as .safetensors, which keeps sparse layers sparse."
        )
