"""ONNX files in: from a graph of nodes to one :class:`~pindown.Model`.

The graph is walked backwards from the output that is asked for, so nodes that it does not need are
looked at last, and then forwards through the tables of operations in :mod:`pindown.io._onnx.ops`. What
depends on the input becomes an operation of the model; what does not is a constant, computed at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from numpy.typing import ArrayLike, NDArray

from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io._onnx.ends import ModelInput, ModelOutput, chosen_input, chosen_output
from pindown.io._onnx.functions import inlined
from pindown.io._onnx.ops import CONTRACTS, RULES
from pindown.io._onnx.schema import check_nodes, operator_sets, producers
from pindown.io._onnx.tensors import check_structure, damaged, decode_tensor
from pindown.io._onnx.walk import Walk, label_of, named
from pindown.io.files import read_bytes, read_gzip
from pindown.model.graph import Model
from pindown.model.limits import (
    check_shape,
    reading_deadline,
)

_LARGE = 1e19  # the product of two of these is beyond float32
# Models of up to so many multiply-adds and entries of all tensors are tried at once at a few inputs; ten
# times as large ones if a weight is beyond the last number.
_SAMPLED_PRODUCTS, _SAMPLED_ENTRIES, _SUSPICIOUS = 20_000_000, 300_000, 1e6
_MAX_BATCH_PRODUCTS = 5_000_000_000  # of a whole batch that is run to see that its rows go through alone
_LOWEST = (-1e30, -float(np.finfo(np.float32).max))  # what hides entries from a softmax


def read_onnx(
    path: Path,
    *,
    input: str | None = None,
    output: str | None = None,
    fixed: Mapping[str, ArrayLike] | None = None,
) -> Model:
    """Read ``.onnx`` or ``.onnx.gz``; see :func:`model_from_onnx`."""
    packed = path.name.lower().endswith(".gz")
    data = read_gzip(path) if packed else read_bytes(path)
    return model_from_onnx(data, path.parent, input=input, output=output, fixed=fixed)


def model_from_onnx(
    data: bytes,
    folder: Path | None = None,
    *,
    input: str | None = None,
    output: str | None = None,
    fixed: Mapping[str, ArrayLike] | None = None,
) -> Model:
    """Read a serialised ONNX model.

    Trained numbers are counted as a framework counts them: kernels, weights and biases of layers, scales
    and shifts of norms, slopes of PReLU; of other constants those that are an initialiser of the file
    with more than one entry, such as a table that is added to a tensor. The file does not say which
    numbers were trained.

    Args:
        data: The bytes of the ``.onnx`` file.
        folder: Where tensors stored outside the model may lie; None allows none.
        input: The input that varies, if there are several.
        output: The output that is meant, if there are several.
        fixed: The values of the other inputs, by name.

    Raises:
        ModelFileError: If the bytes are not a sound ONNX model.
        UnsupportedModelError: If something in it is not read; the message says what, where, what to do.
    """
    parsed = _parsed(data)
    try:
        with np.errstate(all="ignore"):  # what overflows is found by the checks for finite numbers
            return _Reader(parsed, folder, input, output, fixed).model()
    except UnicodeDecodeError:
        raise ModelFileError("the ONNX file is damaged: a name in it is not valid text.") from None


def _parsed(data: bytes) -> Any:
    check_structure(data)
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError:
        raise damaged() from None
    if not model.HasField("graph") or not model.graph.output:
        raise ModelFileError("the file holds no ONNX graph with an output; is it cut short, or no ONNX?")
    return inlined(model)


class _Reader:
    """One model file."""

    def __init__(
        self,
        parsed: Any,
        folder: Path | None,
        input: str | None,
        output: str | None,
        fixed: Mapping[str, ArrayLike] | None,
    ) -> None:
        self.graph, self.folder = parsed.graph, folder
        self.opsets = operator_sets(parsed)
        self.initializers = {tensor.name: tensor for tensor in self.graph.initializer}
        self.producers = producers(self.graph)
        self.output: ModelOutput = chosen_output(self.graph, output)
        self.source: ModelInput
        self.source, self.fixed = chosen_input(self.graph, input, fixed, self.output)
        self.order, self.types = check_nodes(self.graph, self.opsets, RULES, CONTRACTS, label_of)
        self.deadline = reading_deadline()
        self._decoded: dict[str, NDArray[Any]] = {}

    def model(self) -> Model:
        source = self.source
        try:
            walk = Walk(self, source.shape)
            made = walk.tensor(self.output.name)
            with named("the model"):
                model = walk.builder.model(made, input_shape=source.sample_shape, dtype=source.dtype)
            notes = [*self._notes(), *walk.reading.notes, *_overflow(model)]
            if source.fixed_batch is not None:
                with named("the model"):
                    notes += self._require_batch(model, source.fixed_batch)
            notes += walk.check_the_rest()
            return Model(
                model.nodes,
                model.literal_shape,
                model.input_shape,
                model.dtype,
                tuple(dict.fromkeys(notes)),
            )
        except (ModelFileError, UnsupportedModelError) as error:
            if source.fixed_batch is None:
                raise
            raise type(error)(
                f"{error} The model was exported with a fixed batch of {source.fixed_batch}; "
                "export it with a batch of one or a dynamic batch axis."
            ) from None

    def _notes(self) -> Iterator[str]:
        if self.output.note is not None:
            yield self.output.note
        if self.source.dtype in ("float16", "bfloat16"):
            yield "The model computes in 16-bit floats; it was read as if nothing rounded."
        if self.source.fixed_batch is not None:
            yield f"The first axis, of length {self.source.fixed_batch}, was read as the batch."

    def _require_batch(self, model: Model, size: int) -> Iterator[str]:
        """Run one whole batch through the graph: that its first axis is a batch was only a guess."""
        shape = check_shape((size, *self.source.sample_shape), "the input")
        walk = Walk(self, shape)
        whole = walk.builder.model(walk.tensor(self.output.name))
        if math.prod(whole.output_shape) == size * model.out_features:
            if whole.multiply_adds > _MAX_BATCH_PRODUCTS:
                yield "That the rows of a batch go through one by one was not tried: the model is large."
                return
            rows = np.random.default_rng(0).normal(size=(size, model.in_features))
            result = whole.evaluate(rows.reshape(1, -1)).reshape(size, -1)
            one_by_one = model.evaluate(rows).reshape(size, -1)
            if np.allclose(
                result, one_by_one, rtol=0, atol=1e-6 * np.abs(one_by_one).max(), equal_nan=True
            ):
                return
        raise UnsupportedModelError("the rows of the input do not go through it one by one.")

    def initializer(self, name: str) -> NDArray[Any]:
        """Return a stored tensor; its bytes are dropped from the file that was parsed."""
        if name not in self._decoded:
            if name not in self.initializers:
                raise ModelFileError(f"no node or weight of the file makes the output '{name}'.")
            proto = self.initializers[name]
            self._decoded[name] = decode_tensor(proto, self.folder)
            for field in (
                "raw_data",
                "float_data",
                "double_data",
                "int32_data",
                "int64_data",
                "uint64_data",
            ):
                proto.ClearField(field)
        return self._decoded[name]

    def drop(self, name: str) -> None:
        """Let go of a stored tensor, unless a batch will be run through the graph a second time."""
        if self.source.fixed_batch is None:
            self._decoded.pop(name, None)


# ---------------------------------------------------------------------- notes


def _overflow(model: Model) -> Iterator[str]:
    """Yield a note if numbers occur on the way that a runtime may not hold in float32."""
    arrays = [v for op in model.operations for v in vars(op).values() if isinstance(v, np.ndarray)]
    weights = max((_largest(v) for v in arrays if v.dtype.kind == "f"), default=0.0)
    share = 10 if weights >= _SUSPICIOUS else 1
    entries = model.in_features + sum(math.prod(node.shape) for node in model.nodes)
    if model.multiply_adds > share * _SAMPLED_PRODUCTS or entries > share * _SAMPLED_ENTRIES:
        return
    rng = np.random.default_rng(0)
    largest = weights
    row = rng.normal(size=(1, model.in_features))
    for size in (1.0, 1e4, -1e4):
        largest = max(largest, *map(_largest, model.walk(size * row)))
    if largest > _LARGE:
        yield (
            f"Numbers up to {largest:.0e} occur on the way; a runtime that computes in float32 "
            "may overflow where this model does not."
        )


def _largest(values: NDArray[Any]) -> float:
    low, high = float(values.min(initial=0.0)), float(values.max(initial=0.0))
    if low > _LOWEST[0] and high < np.inf:  # there is nothing to leave out
        return max(-low, high)
    counted = ~np.isnan(values) & (values != _LOWEST[0]) & (values != _LOWEST[1])
    return float(np.abs(values).max(initial=0.0, where=counted))
