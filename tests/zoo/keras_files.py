"""ONNX files in the style of the converters for Keras and TensorFlow, written by hand.

What is particular to them: channels stand last, so pictures are transposed before and after what ONNX
wants first; names have slashes and colons; shapes of reshapes are computed from the batch; padding
"same" is lopsided at strides of two; batch norms may be multiplications and additions.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

TO_FIRST, TO_LAST = [0, 3, 1, 2], [0, 2, 3, 1]
# The IR version that came with an operator set.
IR_VERSIONS = {12: 7, 13: 7, 14: 7, 15: 8}


class Sketch:
    """A graph being written: every call adds a node and returns the name of what it makes."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def add(self, op: str, out: str, *inputs: str, **attributes: Any) -> str:
        name = out.removesuffix(":0")
        self.nodes.append(helper.make_node(op, inputs, [out], name=name, **attributes))
        return out

    def const(self, name: str, value: Any, kind: Any = np.float32) -> str:
        self.weights.append(numpy_helper.from_array(np.asarray(value, kind), name))
        return name

    def draw(self, name: str, *shape: int, fan: int) -> str:
        """Add drawn weights that keep the size of what they see."""
        return self.const(name, self.rng.normal(size=shape) * np.sqrt(2 / fan))

    def dense(self, layer: str, x: str, inputs: int, outputs: int) -> str:
        weight = self.draw(f"{layer}/MatMul/ReadVariableOp:0", inputs, outputs, fan=inputs)
        bias = self.draw(f"{layer}/BiasAdd/ReadVariableOp:0", outputs, fan=20)
        product = self.add("MatMul", f"{layer}/MatMul:0", x, weight)
        return self.add("Add", f"{layer}/BiasAdd:0", product, bias)

    def conv(
        self, layer: str, x: str, inputs: int, outputs: int, size: int = 3, **attributes: Any
    ) -> str:
        inner = inputs // attributes.get("group", 1)
        kernel = self.draw(
            f"{layer}/Conv2D/ReadVariableOp:0", outputs, inner, size, size, fan=inner * size**2
        )
        bias = self.draw(f"{layer}/BiasAdd/ReadVariableOp:0", outputs, fan=20)
        shape = {"kernel_shape": [size, size], "dilations": [1, 1]}
        return self.add("Conv", f"{layer}/BiasAdd:0", x, kernel, bias, **shape, **attributes)

    def first(self, x: str) -> str:
        return self.add("Transpose", f"{x.removesuffix(':0')}__first:0", x, perm=TO_FIRST)

    def last(self, x: str) -> str:
        return self.add("Transpose", f"{x.removesuffix(':0')}__last:0", x, perm=TO_LAST)

    def model(self, given: str, shape: tuple[int, ...], out: str, outputs: list[Any], opset: int) -> Any:
        batch = "unk__19"
        graph = helper.make_graph(
            self.nodes,
            "tf2onnx",
            [helper.make_tensor_value_info(given, 1, [batch, *shape])],
            [helper.make_tensor_value_info(out, 1, [batch, *outputs])],
            self.weights,
        )
        sets = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 2)]
        return helper.make_model(
            graph, opset_imports=sets, ir_version=IR_VERSIONS[opset], producer_name="tf2onnx"
        )


def picture_classifier() -> onnx.ModelProto:
    """Sequential([Conv2D, MaxPooling2D, Conv2D, Flatten, Dense, Dense(softmax)]) on 28 x 28 x 1."""
    g = Sketch(0)
    x = g.first("conv2d_input")
    x = g.add("Relu", "sequential/conv2d/Relu:0", g.conv("sequential/conv2d", x, 1, 8, strides=[1, 1]))
    x = g.add(*("MaxPool", "sequential/max_pooling2d/MaxPool:0", x), kernel_shape=[2, 2], strides=[2, 2])
    x = g.conv("sequential/conv2d_1", x, 8, 16, strides=[2, 2])
    x = g.last(g.add("Relu", "sequential/conv2d_1/Relu:0", x))
    shape = g.const("sequential/flatten/Const:0", [-1, 576], np.int64)
    x = g.add("Reshape", "sequential/flatten/Reshape:0", x, shape)
    x = g.add("Relu", "sequential/dense/Relu:0", g.dense("sequential/dense", x, 576, 32))
    x = g.dense("sequential/dense_1", x, 32, 10)
    g.add("Softmax", "dense_1", x, axis=-1)
    return g.model("conv2d_input", (28, 28, 1), "dense_1", [10], 13)


def mobile() -> onnx.ModelProto:
    """Depthwise convolution, padding "same" at stride two, batch norm left in, ReLU6, a residual sum."""
    g = Sketch(1)
    x = g.first("input_1:0")
    lopsided = {"strides": [2, 2], "pads": [0, 0, 1, 1]}
    x = g.conv("model/conv2d", x, 3, 8, **lopsided)
    norm = "model/batch_normalization"
    facts = [
        g.const(f"{norm}/gamma:0", g.rng.uniform(0.5, 1.5, 8)),
        g.const(f"{norm}/beta:0", g.rng.normal(0, 0.1, 8)),
        g.const(f"{norm}/moving_mean:0", g.rng.normal(0, 0.1, 8)),
        g.const(f"{norm}/moving_variance:0", g.rng.uniform(0.5, 1.5, 8)),
    ]
    x = g.add("BatchNormalization", f"{norm}/FusedBatchNormV3:0", x, *facts, epsilon=1e-3)
    six = g.const("const_six__31", 6.0)

    def relu6(layer: str, x: str) -> str:
        return g.add("Min", f"{layer}/Relu6:0", g.add("Relu", f"{layer}/Relu6__8:0", x), six)

    x = skip = relu6("model/re_lu", x)
    same = {"strides": [1, 1], "pads": [1, 1, 1, 1]}
    x = relu6("model/re_lu_1", g.conv("model/depthwise_conv2d", x, 8, 8, group=8, **same))
    x = g.add("Add", "model/add/add:0", g.conv("model/conv2d_1", x, 8, 8, 1, strides=[1, 1]), skip)
    x = g.add("GlobalAveragePool", "model/global_average_pooling2d/Mean:0", x)
    axes = g.const("const_axes__40", [2, 3], np.int64)
    x = g.add("Squeeze", "model/global_average_pooling2d/Mean_Squeeze__52:0", x, axes)
    x = g.dense("model/dense", x, 8, 4)
    g.add("Identity", "Identity:0", x)
    return g.model("input_1:0", (16, 16, 3), "Identity:0", [4], 15)


def decoder() -> onnx.ModelProto:
    """Dense, Reshape with a computed shape, UpSampling2D, Conv2DTranspose cut to size, sigmoid."""
    g = Sketch(2)
    layer = "model/reshape"
    x = g.add("LeakyRelu", "model/leaky_re_lu:0", g.dense("model/dense", "input_1", 6, 128), alpha=0.3)
    shape = g.add("Cast", f"{layer}/Shape__9:0", g.add("Shape", f"{layer}/Shape:0", x), to=6)
    ends = [g.const(f"const_{i}__10", [i], np.int64) for i in (0, 1)]
    batch = g.add("Slice", f"{layer}/strided_slice:0", shape, *ends, ends[0])
    sizes = [g.const(f"{layer}/Reshape/shape/{i}", [n], np.int32) for i, n in enumerate((4, 4, 8), 1)]
    joined = g.add("Concat", f"{layer}/Reshape/shape_Concat__27:0", batch, *sizes, axis=0)
    target = g.add("Cast", f"{layer}/Reshape__28:0", joined, to=7)
    x = g.first(g.add("Reshape", f"{layer}/Reshape:0", x, target))
    up = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    scales = g.const("const_scales__30", [1, 1, 2, 2])
    x = g.add("Resize", "model/up_sampling2d/resize/ResizeNearestNeighbor:0", x, "", scales, **up)
    name = "model/conv2d_transpose"
    kernel = g.draw(f"{name}/conv2d_transpose/ReadVariableOp:0", 8, 3, 3, 3, fan=18)
    square = {"kernel_shape": [3, 3], "dilations": [1, 1], "strides": [2, 2]}
    x = g.add("ConvTranspose", f"{name}/conv2d_transpose:0", x, kernel, **square)
    begins, stops, axes = (
        g.const(f"const_{word}__36", value, np.int64)
        for word, value in (("starts", [0, 0]), ("ends", [16, 16]), ("axes", [2, 3]))
    )
    x = g.last(g.add("Slice", f"{name}/conv2d_transpose__43:0", x, begins, stops, axes))
    bias = g.draw(f"{name}/BiasAdd/ReadVariableOp:0", 3, fan=20)
    x = g.add("Add", f"{name}/BiasAdd:0", x, bias)
    g.add("Sigmoid", "conv2d_transpose", x)
    return g.model("input_1", (6,), "conv2d_transpose", [16, 16, 3], 13)


def sequence_classifier() -> onnx.ModelProto:
    """Sequential([LSTM(12), Dense(3)]) on 10 steps of 5 numbers, its first state made from the batch."""
    g = Sketch(3)
    layer, width = "sequential/lstm", 12
    x = g.add("Transpose", f"{layer}/transpose:0", "lstm_input", perm=[1, 0, 2])
    batch = g.add("Shape", f"{layer}/Shape:0", "lstm_input")
    ends = [g.const(f"const_{i}__14", [i], np.int64) for i in (0, 1)]
    batch = g.add("Slice", f"{layer}/strided_slice:0", batch, *ends, ends[0])
    sizes = [
        g.const(f"{layer}/zeros/{name}", [n], np.int64) for name, n in (("one", 1), ("width", width))
    ]
    shape = g.add("Concat", f"{layer}/zeros/packed:0", sizes[0], batch, sizes[1], axis=0)
    zeros = g.add("Expand", f"{layer}/zeros:0", g.const(f"{layer}/zeros/Const:0", [[[0.0]]]), shape)
    weights = [
        g.draw(f"{layer}/W", 1, 4 * width, 5, fan=10),
        g.draw(f"{layer}/R", 1, 4 * width, width, fan=24),
        g.draw(f"{layer}/B", 1, 8 * width, fan=40),
    ]
    after = f"{layer}/PartitionedCall:1"
    inputs = [x, *weights, "", zeros, zeros]
    g.nodes.append(
        helper.make_node("LSTM", inputs, ["", after], name=f"{layer}/while", hidden_size=width)
    )
    axes = g.const("const_axes__50", [0], np.int64)
    x = g.add("Squeeze", f"{layer}/strided_slice_3:0", after, axes)
    g.add("Identity", "dense", g.dense("sequential/dense", x, width, 3))
    return g.model("lstm_input", (10, 5), "dense", [3], 14)


def feed_forward() -> onnx.ModelProto:
    """Dense layers, LayerNormalization in its parts, GELU by tanh, swish, batch norm as two steps."""
    g = Sketch(4)
    x = g.dense("functional_1/dense", "input_layer", 9, 16)
    norm = "functional_1/layer_normalization"
    mean = g.add("ReduceMean", f"{norm}/moments/mean:0", x, axes=[-1], keepdims=1)
    centred = g.add("Sub", f"{norm}/moments/SquaredDifference__4:0", x, mean)
    square = g.add("Mul", f"{norm}/moments/SquaredDifference:0", centred, centred)
    variance = g.add("ReduceMean", f"{norm}/moments/variance:0", square, axes=[-1], keepdims=1)
    variance = g.add("Add", f"{norm}/batchnorm/add:0", variance, g.const(f"{norm}/epsilon", 1e-3))
    scale = g.add("Reciprocal", f"{norm}/Rsqrt:0", g.add("Sqrt", f"{norm}/Rsqrt__7:0", variance))
    scale = g.add("Mul", f"{norm}/mul:0", scale, g.const(f"{norm}/gamma", g.rng.uniform(0.5, 1.5, 16)))
    shift = g.add("Mul", f"{norm}/mul_2:0", mean, scale)
    shift = g.add("Sub", f"{norm}/sub:0", g.const(f"{norm}/beta", g.rng.normal(0, 0.1, 16)), shift)
    x = g.add("Add", f"{norm}/add_1:0", g.add("Mul", f"{norm}/mul_1:0", x, scale), shift)
    gelu = "functional_1/gelu/Gelu"
    cube = g.add("Pow", f"{gelu}/Pow:0", x, g.const(f"{gelu}/Pow/y:0", 3.0))
    inner = g.add("Mul", f"{gelu}/mul:0", cube, g.const(f"{gelu}/mul/x:0", 0.044715))
    inner = g.add("Add", f"{gelu}/add:0", x, inner)
    inner = g.add("Mul", f"{gelu}/mul_1:0", inner, g.const(f"{gelu}/mul_1/x:0", np.sqrt(2 / np.pi)))
    bent = g.add("Tanh", f"{gelu}/Tanh:0", inner)
    bent = g.add("Add", f"{gelu}/add_1:0", bent, g.const(f"{gelu}/add_1/x:0", 1.0))
    half = g.add("Mul", f"{gelu}/mul_2:0", x, g.const(f"{gelu}/mul_2/x:0", 0.5))
    x = g.add("Mul", f"{gelu}/mul_3:0", half, bent)
    x = g.dense("functional_1/dense_1", x, 16, 16)
    x = g.add("Mul", "functional_1/swish/mul:0", x, g.add("Sigmoid", "functional_1/swish/Sigmoid:0", x))
    norm = "functional_1/batch_normalization/batchnorm"
    x = g.add("Mul", f"{norm}/mul_1:0", x, g.const(f"{norm}/mul:0", g.rng.uniform(0.5, 1.5, 16)))
    x = g.add("Add", f"{norm}/add_1:0", x, g.const(f"{norm}/sub:0", g.rng.normal(0, 0.1, 16)))
    g.add("Identity", "output_0", g.dense("functional_1/dense_2", x, 16, 2))
    return g.model("input_layer", (9,), "output_0", [2], 13)


def auto_padded() -> onnx.ModelProto:
    """As the older converter wrote convolutions: padding by name, operator set 12."""
    g = Sketch(5)
    x = g.first("conv2d_input")
    x = g.conv("conv2d", x, 3, 6, strides=[2, 2], auto_pad="SAME_UPPER")
    x = g.add("Elu", "conv2d/Elu:0", x, alpha=1.0)
    pool = {"kernel_shape": [2, 2], "strides": [2, 2], "auto_pad": "SAME_UPPER"}
    x = g.last(g.add("AveragePool", "average_pooling2d/AvgPool:0", x, **pool))
    x = g.add("Flatten", "flatten/Reshape:0", x, axis=1)
    g.add("Identity", "dense", g.dense("sequential/dense", x, 96, 3))
    return g.model("conv2d_input", (15, 15, 3), "dense", [3], 12)


KERAS: dict[str, tuple[Callable[[], onnx.ModelProto], tuple[int, ...]]] = {
    "picture_classifier": (picture_classifier, (28, 28, 1)),
    "mobile": (mobile, (16, 16, 3)),
    "decoder": (decoder, (6,)),
    "sequence_classifier": (sequence_classifier, (10, 5)),
    "feed_forward": (feed_forward, (9,)),
    "auto_padded": (auto_padded, (15, 15, 3)),
}


def write_keras(name: str, path: Path) -> None:
    """Write one of ``KERAS``, checked against ONNX's definition."""
    model = KERAS[name][0]()
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def write_refused(path: Path) -> None:
    """Write what begins like a file of Keras itself: a zip archive (``.keras``) or HDF5 (``.h5``)."""
    path.write_bytes({".keras": b"PK\x03\x04", ".h5": b"\x89HDF\r\n\x1a\n"}[path.suffix] + bytes(64))
