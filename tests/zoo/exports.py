"""The files of the zoo, made by the tools that make them and kept in a folder between runs.

Every file is a function of this folder's code, the seed and the tools' releases. Derived files start
from what torch's old exporter wrote, as most people's do.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import SkipTest

import numpy as np
import onnx
import onnxruntime
import sklearn
import torch
from filelock import FileLock
from torch import nn

from tests.zoo.keras_files import write_keras
from tests.zoo.models import ZOO, inputs_of, module_of, seeded, small_cnn
from tests.zoo.sklearn_models import export_sklearn

LARGE_CALIBRATION, CALIBRATION = 4, 64
SMALL_SHAPE = (1, 8, 8)
OPSETS = range(9, 24)
OLDEST_OF_NEW = 21  # operator sets that only torch's new exporter claims to write


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep the exporters' many remarks to themselves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)


# ---------------------------------------------------------------------- torch's exporters


def export_old(
    module: nn.Module, shape: tuple[int, ...], path: Path, opset: int = 17, batch: bool = True
) -> None:
    """Write with the exporter that traces (TorchScript); the batch is symbolic unless told otherwise."""
    names = {"input_names": ["input"], "output_names": ["output"]}
    axes = {"input": {0: "batch"}, "output": {0: "batch"}} if batch else None
    with quiet():
        example = torch.zeros(1, *shape)
        torch.onnx.export(
            module, (example,), str(path), dynamo=False, opset_version=opset, dynamic_axes=axes, **names
        )


def export_new(
    module: nn.Module, shape: tuple[int, ...], path: Path, opset: int | None = None, batch: bool = False
) -> None:
    """Write with the exporter that went through torch.export; the batch is one unless told otherwise."""
    dynamic = ({0: torch.export.Dim("batch")},) if batch else None
    example = torch.zeros(2 if batch else 1, *shape)
    options = {"dynamo": True, "opset_version": opset, "dynamic_shapes": dynamic, "verbose": False}
    with quiet():
        try:
            program = torch.onnx.export(module, (example,), **options)
        except ModuleNotFoundError as missing:  # this torch wants a newer onnxscript than there is
            raise SkipTest(f"torch's new exporter cannot run: {missing}") from None
        program.save(str(path), external_data=False)


# ---------------------------------------------------------------------- onnxruntime's tools


def cast_to_half(source: Path, path: Path) -> None:
    """Write weights, inputs and outputs as float16."""
    from onnxruntime.transformers.float16 import convert_float_to_float16

    with quiet():
        onnx.save(convert_float_to_float16(onnx.load(source)), path)


def widened(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a float16 model in float32: the same real function, without the rounding in between."""
    half, single = onnx.TensorProto.FLOAT16, onnx.TensorProto.FLOAT
    wide = onnx.ModelProto()
    wide.CopyFrom(model)

    def widen(tensor: onnx.TensorProto) -> None:
        if tensor.data_type == half:
            array = onnx.numpy_helper.to_array(tensor).astype(np.float32)
            tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))

    for tensor in wide.graph.initializer:
        widen(tensor)
    for value in (*wide.graph.input, *wide.graph.output, *wide.graph.value_info):
        if value.type.tensor_type.elem_type == half:
            value.type.tensor_type.elem_type = single
    for node in wide.graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                widen(attribute.t)
            elif node.op_type == "Cast" and attribute.name == "to" and attribute.i == half:
                attribute.i = single
    return wide


class Calibration:
    """Inputs that onnxruntime's quantisation looks at, one at a time."""

    def __init__(self, shape: tuple[int, ...], n: int) -> None:
        self.rows = iter(inputs_of(shape, n, seed=2))

    def get_next(self) -> dict[str, np.ndarray] | None:
        row = next(self.rows, None)
        return None if row is None else {"input": row[None]}


def prepare(source: Path, path: Path) -> None:
    """Fold and infer shapes, as onnxruntime asks for before quantisation."""
    from onnxruntime.quantization.shape_inference import quant_pre_process

    with quiet():
        quant_pre_process(str(source), str(path), skip_symbolic_shape=True)


def quantise(source: Path, path: Path, name: str, style: str) -> None:
    """Write int8 with onnxruntime's static or dynamic quantisation.

    Weights of integer products have seven bits, as onnxruntime advises: with eight, processors without
    VNNI saturate sums of unsigned times signed numbers, which no definition of ONNX says.
    """
    from onnxruntime import quantization as q

    entry = ZOO[name]
    rows = Calibration(entry.shape, LARGE_CALIBRATION if entry.large else CALIBRATION)
    signed, unsigned = q.QuantType.QInt8, q.QuantType.QUInt8
    with quiet():
        if style == "dynamic":  # onnxruntime carries out integer convolutions with unsigned weights only
            convolves = any(node.op_type == "Conv" for node in onnx.load(source).graph.node)
            kind = unsigned if convolves else signed
            q.quantize_dynamic(source, path, weight_type=kind, reduce_range=True)
        elif style == "qdq":
            q.quantize_static(source, path, rows, quant_format=q.QuantFormat.QDQ, per_channel=True)
        else:
            style_of = {"quant_format": q.QuantFormat.QOperator, "activation_type": unsigned}
            q.quantize_static(source, path, rows, **style_of, weight_type=signed, reduce_range=True)


def optimise(source: Path, path: Path) -> None:
    """Write what onnxruntime makes of the file before it runs it: fused convolutions and the like."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(path)
    options.log_severity_level = 3
    onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])


# ---------------------------------------------------------------------- the shelf

# The last two have the batch the other way round: fixed where it is mostly open, open where it is one.
FLOATS = ("old", "new", "optimised", "old_fixed", "new_batch")
MAKERS = ("exports", "models", "keras_files", "sklearn_models")  # the modules that make files
INTEGERS = ("qdq", "qoperator", "dynamic")
KINDS = (*FLOATS, "float16", *INTEGERS)


class Shelf:
    """Files of the zoo in a folder: made when first asked for, by one process at a time.

    Args:
        folder: Where to keep them, in a folder named after the code and the tools that make them; such
            folders of other code and tools are deleted.
    """

    def __init__(self, folder: Path) -> None:
        here = Path(__file__).parent
        made_by = [
            *((here / f"{module}.py").read_bytes() for module in MAKERS),
            *(tool.__version__.encode() for tool in (torch, onnx, onnxruntime, sklearn)),
        ]
        key = hashlib.sha256(b"\0".join(made_by)).hexdigest()[:12]
        folder = folder.resolve()
        self.folder = folder / f"zoo-{key}"
        self.folder.mkdir(parents=True, exist_ok=True)
        for other in folder.glob("zoo-*"):
            if other != self.folder:
                shutil.rmtree(other, ignore_errors=True)

    def keep(self, name: str, make: Callable[[Path], None]) -> Path:
        """Return the path of that file; where it is not there yet, ``make`` writes it."""
        target = self.folder / name
        with FileLock(f"{target}.lock"):
            if not target.exists():
                unfinished = target.with_name(f"unfinished.{name}")
                with contextlib.chdir(self.folder):  # some tools leave files where they run
                    make(unfinished)
                unfinished.replace(target)
        return target

    def file(self, name: str, kind: str) -> Path:
        """Return the path of a network of the zoo in one of ``KINDS``."""
        return self.keep(f"{name}.{kind}.onnx", lambda path: self._make(name, kind, path))

    def _make(self, name: str, kind: str, path: Path) -> None:
        shape = ZOO[name].shape
        match kind:
            case "old" | "old_fixed":
                export_old(module_of(name), shape, path, batch=kind == "old")
            case "new" | "new_batch":
                export_new(module_of(name), shape, path, batch=kind == "new_batch")
            case "float16":
                cast_to_half(self.file(name, "old"), path)
            case "prepared":
                prepare(self.file(name, "old"), path)
            case "qdq" | "qoperator" | "dynamic":
                quantise(self.file(name, "prepared"), path, name, kind)
            case "optimised":
                optimise(self.file(name, "old"), path)

    def opset(self, opset: int) -> Path:
        """Return the path of the small convolutional network, written in that operator set."""
        write = export_old if opset < OLDEST_OF_NEW else export_new
        return self.keep(
            f"small_cnn.{opset}.onnx",
            lambda path: write(seeded(small_cnn, SMALL_SHAPE), SMALL_SHAPE, path, opset),
        )

    def keras(self, name: str) -> Path:
        """Return the path of a file in the style of Keras' converters."""
        return self.keep(f"keras.{name}.onnx", lambda path: write_keras(name, path))

    def sklearn(self, name: str) -> Path:
        """Return the path of a file that skl2onnx wrote."""
        return self.keep(f"sklearn.{name}.onnx", lambda path: export_sklearn(name, path))


def session_of(path: Path | onnx.ModelProto, optimised: bool) -> onnxruntime.InferenceSession:
    levels = onnxruntime.GraphOptimizationLevel
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimised else levels.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    source = path.SerializeToString() if isinstance(path, onnx.ModelProto) else str(path)
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def run_integers(path: Path, rows: np.ndarray) -> dict[int, np.ndarray]:
    """Return the integers (n, *shape) that nodes make in onnxruntime, by the node's place."""
    model = onnx.load(path)
    places = {
        i: node.output[0]
        for i, node in enumerate(model.graph.node)
        if node.op_type in ("QuantizeLinear", "QGemm") or node.op_type.startswith("QLinear")
    }
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in places.values())
    session = session_of(model, optimised=False)
    (given,) = session.get_inputs()
    outs = [session.run([*places.values()], {given.name: row[None]}) for row in rows]
    return {
        place: np.stack(made).astype(np.float64)
        for place, made in zip(places, zip(*outs, strict=True), strict=True)
    }


def run(
    path: Path | onnx.ModelProto, rows: np.ndarray, output: str | None = None, *, optimised: bool = True
) -> np.ndarray:
    """Return what onnxruntime makes of each row alone, as (n, k).

    Not of all rows at once: dynamic quantisation looks at the whole batch.

    Args:
        path: The file, or the model itself.
        rows: The inputs, (n, *shape).
        output: Which output; the first one unless told.
        optimised: Whether onnxruntime may rewrite the graph, which replaces DequantizeLinear, Conv,
            QuantizeLinear by an integer convolution.
    """
    session = session_of(path, optimised)
    (given,) = session.get_inputs()
    kind = {"tensor(float16)": np.float16, "tensor(double)": np.float64}.get(given.type, np.float32)
    names = None if output is None else [output]
    outs = [session.run(names, {given.name: row[None].astype(kind)})[0] for row in rows]
    if isinstance(outs[0], list):  # of dicts: what skl2onnx makes of a classifier's scores
        outs = [list(out[0].values()) for out in outs]
    return np.stack([np.ravel(out) for out in outs]).astype(np.float64)
