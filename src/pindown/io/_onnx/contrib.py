"""Operations of the domain com.microsoft, as onnxruntime writes them when it optimises a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io._onnx.arithmetic import plus, swish, times
from pindown.io._onnx.data_movement import transposed
from pindown.io._onnx.images import convolution
from pindown.io._onnx.node import Node, Rule, Value
from pindown.io._onnx.normalisation import NORMALISATIONS, fitted, layer_norm, positive
from pindown.io._onnx.products import gemm, gemm_with_bias, product
from pindown.model.operations.normalisation import RmsNorm
from pindown.model.operations.operation import Operation
from pindown.model.operations.piecewise_linear import Clip, HardSigmoid, LeakyRelu, Relu
from pindown.model.operations.smooth import Gelu, Sigmoid, Tanh

MICROSOFT = "com.microsoft"


@dataclass(frozen=True)
class Contract:
    """What a node of an operation without an entry in ``onnx.defs`` may have.

    Attributes:
        least: Inputs it needs.
        most: Inputs it can have.
        attributes: Name -> type number of the attributes it can have.
        outputs: Outputs it can have.
        alike: Whether its inputs all have one element type.
        like: Which input its outputs have the element type of.
        makes: The element type of its outputs if that input is not there.
    """

    least: int
    most: int
    attributes: dict[str, int]
    outputs: int = 1
    alike: bool = True
    like: int | None = 0
    makes: str = ""


FLOAT, INT, STRING, FLOATS, INTS, STRINGS = 1, 2, 3, 6, 7, 8
WINDOW = {
    "auto_pad": STRING,
    "dilations": INTS,
    "group": INT,
    "kernel_shape": INTS,
    "pads": INTS,
    "strides": INTS,
}

# ---------------------------------------------------------------------- with an activation


def activation(node: Node, name: str, numbers: tuple[float, ...]) -> Operation | None:
    """Return the activation that is fused into another operation."""
    if not np.isfinite(numbers).all():
        raise ModelFileError(f"the numbers {numbers} of the activation {name} must be finite.")
    makers: dict[str, tuple[int, Callable[..., Operation]]] = {
        "Relu": (0, Relu),
        "Tanh": (0, Tanh),
        "Sigmoid": (0, Sigmoid),
        "LeakyRelu": (1, lambda slope: LeakyRelu(np.array(slope))),
        "Clip": (2, Clip),
        "HardSigmoid": (2, HardSigmoid),
    }
    if not name:
        return None
    if name not in makers:
        raise UnsupportedModelError(f"{node.op} with the activation '{name}' is not read.")
    count, make = makers[name]
    defaults = {"LeakyRelu": (0.01,), "HardSigmoid": (0.2, 0.5)}.get(name, ())
    chosen = numbers[:count] if len(numbers) >= count else defaults
    if len(chosen) != count or (name == "Clip" and chosen[0] > chosen[1]):
        raise ModelFileError(f"the activation {name} cannot have the numbers {numbers}.")
    return make(*chosen)


def _fused_conv(node: Node) -> Value:
    x = node.operand(0)
    made = node.apply(convolution(node, x.shape), x)
    if node.given(3):
        other = node.operand(3)
        if other.shape != made.shape:
            raise ModelFileError(f"a tensor of shape {other.shape} cannot be added to {made.shape}.")
        made = plus(node, made, other)
    bend = activation(node, node.text("activation", ""), node.reals("activation_params") or ())
    return made if bend is None else node.apply(bend, made)


def _fused_gemm(node: Node) -> Value:
    made = gemm_with_bias(node)
    if not node.text("activation", ""):
        raise ModelFileError("FusedGemm lacks its activation.")
    names = [name for name in ("activation_alpha", "activation_beta") if node.has(name)]
    bend = activation(node, node.text("activation", ""), tuple(node.real(name, 0.0) for name in names))
    return made if bend is None else node.apply(bend, made)


def _fused_matmul(node: Node) -> Value:
    a, b = node.operand(0), node.operand(1)
    if node.flag("transBatchA", False) or node.flag("transBatchB", False):
        raise UnsupportedModelError("FusedMatMul that turns the batch axes is not read.")
    if len(a.shape) == len(b.shape) == 2:
        return gemm(node, a, b, node.finite("alpha", 1.0))
    a = _turned(node, a) if node.flag("transA", False) else a
    b = _turned(node, b) if node.flag("transB", False) else b
    made = product(node, a, b)
    alpha = node.finite("alpha", 1.0)
    return made if alpha == 1.0 else times(node, made, np.array(alpha))


def _turned(node: Node, x: Value) -> Value:
    rank = len(x.shape)
    return x if rank < 2 else transposed(node, x, (*range(rank - 2), rank - 1, rank - 2))


# ---------------------------------------------------------------------- GELU and norms


def _gelu(node: Node) -> Value:
    return node.apply(Gelu(False), node.operand(0))


def _with_vector(node: Node, x: Value, i: int) -> Value:
    """Add input ``i``, a vector along the last axis."""
    if node.value(i).shape != x.shape[-1:]:
        raise ModelFileError(f"a bias of shape {node.value(i).shape} does not fit a tensor {x.shape}.")
    return plus(node, x, node.operand(i), None, i)


def _bias_gelu(node: Node) -> Value:
    return node.apply(Gelu(False), _with_vector(node, node.operand(0), 1))


def _fast_gelu(node: Node) -> Value:
    x = node.operand(0)
    return node.apply(Gelu(True), _with_vector(node, x, 1) if node.given(1) else x)


def _quick_gelu(node: Node) -> Value:
    return swish(node, node.operand(0), node.finite("alpha", 1.702))


def _skipped(node: Node, bias: int) -> Value:
    """Return the sum of the first two inputs and a bias."""
    a, b = node.operand(0), node.operand(1)
    if len(a.shape) not in (2, 3) or a.shape != b.shape:
        raise UnsupportedModelError(f"{node.op} of tensors {a.shape} and {b.shape} is not read.")
    if any(node.given(i) and len(node.value(i).shape) != 1 for i in range(2, len(node.inputs))):
        raise ModelFileError(f"{node.op} needs vectors as its scale, shift and bias.")
    total = plus(node, a, b)
    return _with_vector(node, total, bias) if node.given(bias) else total


def _skip_layer_norm(node: Node) -> list[Value | None]:
    total = _skipped(node, 4)
    made = layer_norm(node, total, (len(total.shape) - 1,), 2, 3)
    return [made] if node.n_outputs < 4 else [made, None, None, total]


def _rms_norm(node: Node, x: Value, scale: int, axes: tuple[int, ...]) -> Value:
    numbers = fitted(node, scale, tuple(x.shape[axis] for axis in axes))
    return node.apply(RmsNorm(axes, numbers, positive(node)), x)


def _simplified_layer_norm(node: Node) -> Value:
    x = node.operand(0)
    rank = len(x.shape)
    return _rms_norm(node, x, 1, tuple(range(node.axis(node.integer("axis", -1), rank), rank)))


def _skip_simplified_layer_norm(node: Node) -> list[Value | None]:
    total = _skipped(node, 3)
    made = _rms_norm(node, total, 2, (len(total.shape) - 1,))
    return [made] if node.n_outputs < 4 else [made, None, None, total]


_ACTIVATED = {
    "activation": STRING,
    "activation_alpha": FLOAT,
    "activation_beta": FLOAT,
    "activation_gamma": FLOAT,
}
_GEMM = {"alpha": FLOAT, "beta": FLOAT, "transA": INT, "transB": INT}
_MATMUL = {"alpha": FLOAT, "transA": INT, "transB": INT, "transBatchA": INT, "transBatchB": INT}
CONTRIB: dict[str, tuple[Rule, Contract]] = {
    "BiasGelu": (_bias_gelu, Contract(2, 2, {})),
    "FastGelu": (_fast_gelu, Contract(1, 2, {})),
    "FusedConv": (
        _fused_conv,
        Contract(2, 4, {**WINDOW, "activation": STRING, "activation_params": FLOATS}),
    ),
    "FusedGemm": (_fused_gemm, Contract(2, 3, {**_GEMM, **_ACTIVATED})),
    "FusedMatMul": (_fused_matmul, Contract(2, 2, _MATMUL)),
    "Gelu": (_gelu, Contract(1, 1, {})),
    "QuickGelu": (_quick_gelu, Contract(1, 1, {"alpha": FLOAT})),
    "SkipLayerNormalization": (_skip_layer_norm, Contract(3, 5, {"epsilon": FLOAT}, outputs=4)),
    "SkipSimplifiedLayerNormalization": (
        _skip_simplified_layer_norm,
        Contract(3, 4, {"epsilon": FLOAT}, outputs=4),
    ),
    "TransposeMatMul": (_fused_matmul, Contract(2, 2, _MATMUL)),
}
# onnxruntime writes these into the standard's own domain, also where the standard does not have them.
UNOFFICIAL: dict[str, tuple[Rule, Contract]] = {
    "LayerNormalization": (
        NORMALISATIONS["LayerNormalization"],
        Contract(2, 3, {"axis": INT, "epsilon": FLOAT, "stash_type": INT}, outputs=3),
    ),
    "SimplifiedLayerNormalization": (
        _simplified_layer_norm,
        Contract(2, 2, {"axis": INT, "epsilon": FLOAT, "stash_type": INT}, outputs=2),
    ),
}
