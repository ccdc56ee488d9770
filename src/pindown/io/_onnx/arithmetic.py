"""ONNX operations that calculate entry by entry."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io._onnx.constants import CONSTANTS, together
from pindown.io._onnx.data_movement import expanded
from pindown.io._onnx.merging import biased, rescaled
from pindown.io._onnx.node import Node, Rule, Value
from pindown.io._onnx.patterns import (
    dynamic_product,
    recognised_division,
    recognised_log,
    recognised_product,
)
from pindown.model.builder import Tensor
from pindown.model.operations.dense import Add, Scale
from pindown.model.operations.elementary import Exp, Log, Power, Reciprocal, Sqrt
from pindown.model.operations.maxima import Maximum, Minimum
from pindown.model.operations.operation import Operation
from pindown.model.operations.piecewise_linear import Abs, Clip, HardSigmoid, LeakyRelu, Relu
from pindown.model.operations.products import Multiply, Square
from pindown.model.operations.smooth import (
    Celu,
    Elu,
    Erf,
    Gelu,
    HardSwish,
    Mish,
    Selu,
    Sigmoid,
    Silu,
    Softplus,
    Softsign,
    Tanh,
)
from pindown.model.operations.steps import Round, Sign
from pindown.model.operations.trigonometric import (
    Acos,
    Acosh,
    Asin,
    Asinh,
    Atan,
    Atanh,
    Cos,
    Cosh,
    Sin,
    Sinh,
    Tan,
)

# A bound this large is how old exporters write "no bound".
_NO_BOUND = float(np.finfo(np.float32).max)


# ---------------------------------------------------------------------- arithmetic


def plus(node: Node, a: Value, b: Value, i: int | None = None, j: int | None = None) -> Value:
    """Return ``a + b``; i and j say which inputs of the node they are, so that numbers are counted."""
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return node.apply(Add(), a, b)
    if isinstance(b, Tensor):
        return plus(node, b, a, j, i)
    if isinstance(a, Tensor):
        done = biased(node, a, b, i) if i is not None else None
        if done is not None:
            return done
        trained = 0 if j is None else node.trained(j)
        return node.apply(Scale(None, b, node.op, trained), a)
    return np.asarray(np.add(*together(a, b)))


def times(node: Node, a: Value, b: Value, i: int | None = None, j: int | None = None) -> Value:
    """Return ``a * b``, entry by entry."""
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        dynamic = dynamic_product(node, a, b)
        if dynamic is not None:
            return dynamic
        made = node.apply(Square(), a) if a.index == b.index else node.apply(Multiply(), a, b)
        return recognised_product(node, made)
    if isinstance(b, Tensor):
        return times(node, b, a, j, i)
    if isinstance(a, Tensor):
        done = rescaled(node, a, b)
        if done is not None:
            return done
        trained = 0 if j is None else node.trained(j)
        return recognised_product(node, node.apply(Scale(b, None, node.op, trained), a))
    return np.asarray(np.multiply(*together(a, b)))


def minus(node: Node, value: Value) -> Value:
    """Return ``-value``."""
    return (
        node.apply(Scale(np.array(-1.0), None, node.op), value) if isinstance(value, Tensor) else -value
    )


def _add(node: Node) -> Value:
    return plus(node, node.operand(0), node.operand(1), 0, 1)


def _sum(node: Node) -> Value:
    values = node.operands()
    tensors = [value for value in values if isinstance(value, Tensor)]
    constants = [value for value in values if not isinstance(value, Tensor)]
    if constants:
        total: Value = np.asarray(sum(together(*constants)))
    if not tensors:
        return total
    made: Value = tensors[0] if len(tensors) == 1 else node.apply(Add((1,) * len(tensors)), *tensors)
    return plus(node, made, total) if constants else made


def _mean(node: Node) -> Value:
    return times(node, _sum(node), np.array(1.0 / len(node.inputs)))


def _subtract(node: Node) -> Value:
    a, b = node.operand(0), node.operand(1)
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return node.apply(Add((1, -1)), a, b)
    if isinstance(b, Tensor):
        constant = np.asarray(a, dtype=np.float64)
        return node.apply(Scale(np.array(-1.0), constant, node.op, node.trained(0)), b)
    return plus(node, a, minus(node, b), 0, 1)


def _multiply(node: Node) -> Value:
    return times(node, node.operand(0), node.operand(1), 0, 1)


def _divide(node: Node) -> Value:
    a, b = node.operand(0), node.operand(1)
    if isinstance(b, Tensor):
        done = recognised_division(node, a, b) if isinstance(a, Tensor) else None
        return done if done is not None else times(node, a, node.apply(Reciprocal(), b))
    if not b.all():
        raise ModelFileError("Div divides by zero.")
    if isinstance(a, Tensor):
        return times(node, a, 1.0 / np.asarray(b, dtype=np.float64), 0, 1)
    a, b = together(a, b)
    if a.dtype.kind in "iu" and b.dtype.kind in "iu":
        return np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))  # ONNX rounds towards zero
    return np.asarray(np.true_divide(a, b))


def _negate(node: Node) -> Value:
    return minus(node, node.operand(0))


def _power(node: Node) -> Value:
    base, exponent = node.operand(0), node.operand(1)
    if isinstance(exponent, Tensor):
        if isinstance(base, Tensor) or not (base > 0).all():
            raise UnsupportedModelError(
                "Pow is read with a constant exponent, or with a constant positive base."
            )
        return node.apply(Exp(), times(node, exponent, np.log(np.asarray(base, dtype=np.float64))))
    if not isinstance(base, Tensor):
        return np.asarray(np.power(*(np.asarray(v, dtype=np.float64) for v in together(base, exponent))))
    if np.unique(exponent).size != 1:
        raise UnsupportedModelError("Pow with several exponents at once is not read.")
    base = _widened(node, base, exponent.shape)
    number = float(exponent.flat[0])
    plain: dict[float, Callable[[], Operation]] = {0.5: Sqrt, -1.0: Reciprocal, 2.0: Square}
    if number == 1.0:
        return base
    return node.apply(plain[number]() if number in plain else Power(number), base)


def _widened(node: Node, value: Value, shape: tuple[int, ...]) -> Value:
    """Return a tensor repeated as an operation with a constant of some shape would repeat it."""
    return expanded(node, value, np.broadcast_shapes(value.shape, shape))


# ---------------------------------------------------------------------- entry by entry


def _entrywise(make: Callable[[], Operation]) -> Rule:
    return lambda node: node.apply(make(), node.operand(0))


def _step(make: Callable[[], Operation]) -> Rule:
    def rule(node: Node) -> Value:
        x = node.operand(0)
        if isinstance(x, Tensor):
            node.jumps()
        return node.apply(make(), x)

    return rule


def _logarithm(node: Node) -> Value:
    return recognised_log(node, node.apply(Log(), node.operand(0)))


def _leaky_relu(node: Node) -> Value:
    return node.apply(LeakyRelu(np.array(node.finite("alpha", 0.01))), node.operand(0))


def _prelu(node: Node) -> Value:
    x, slope = node.operand(0), node.weight(1)
    if np.broadcast_shapes(x.shape, slope.shape) != x.shape:
        raise ModelFileError(f"a slope of shape {slope.shape} does not fit a tensor {x.shape}.")
    return node.apply(LeakyRelu(slope, trained=slope.size), x)


def _elu(node: Node) -> Value:
    return node.apply(Elu(node.finite("alpha", 1.0)), node.operand(0))


def _selu(node: Node) -> Value:
    alpha, gamma = (
        node.finite("alpha", 1.67326319217681884765625),
        node.finite("gamma", 1.05070102214813232421875),
    )
    return node.apply(Selu(alpha, gamma), node.operand(0))


def _celu(node: Node) -> Value:
    return node.apply(Celu(node.finite("alpha", 1.0)), node.operand(0))


def _hard_sigmoid(node: Node) -> Value:
    return node.apply(HardSigmoid(node.finite("alpha", 0.2), node.finite("beta", 0.5)), node.operand(0))


def _gelu(node: Node) -> Value:
    kind = node.text("approximate", "none")
    if kind not in ("none", "tanh"):
        raise ModelFileError(f"Gelu is approximated by 'none' or 'tanh'; got '{kind}'.")
    return node.apply(Gelu(kind == "tanh"), node.operand(0))


def swish(node: Node, x: Value, alpha: float) -> Value:
    r"""Return :math:`x \sigma(\alpha x)`, which is SiLU of :math:`\alpha x` divided by alpha."""
    if alpha == 0:
        return times(node, x, np.array(0.5))
    if alpha == 1:
        return node.apply(Silu(), x)
    return node.chain(x, Scale(np.array(alpha)), Silu(), Scale(np.array(1 / alpha)))


def _swish(node: Node) -> Value:
    return swish(node, node.operand(0), node.finite("alpha", 1.0))


def _thresholded_relu(node: Node) -> Value:
    if node.finite("alpha", 1.0) != 0:
        raise UnsupportedModelError(
            "ThresholdedRelu jumps where it begins (alpha is not 0); it is not read."
        )
    return node.apply(Relu(), node.operand(0))


def _shrink(node: Node) -> Value:
    r"""Read a soft threshold, :math:`x - \mathrm{clip}(x, -\lambda, \lambda)`; a hard one jumps."""
    limit, bias = node.finite("lambd", 0.5), node.finite("bias", 0.0)
    x = node.operand(0)
    if limit != bias or limit < 0:
        raise UnsupportedModelError(
            "Shrink is read as a soft threshold (bias equal to lambd); others jump."
        )
    return node.apply(Add((1, -1)), x, node.apply(Clip(-limit, limit), x))


def _clip(node: Node) -> Value:
    x = node.operand(0)
    bounds = [node.inputs[i] if node.given(i) else None for i in (1, 2)]
    if any(isinstance(bound, Tensor) for bound in bounds):
        if any(bound is not None and bound.shape not in ((), (1,)) for bound in bounds):
            raise ModelFileError("Clip needs one number as its min and one as its max.")
        for bound, operation in zip(bounds, (Maximum(), Minimum()), strict=True):
            x = x if bound is None else node.apply(operation, x, bound)
        return x
    low, high = node.scalar(1, "min", -math.inf), node.scalar(2, "max", math.inf)
    low = -math.inf if low <= -_NO_BOUND else low
    high = math.inf if high >= _NO_BOUND else high
    if not isinstance(x, Tensor):
        return np.asarray(np.clip(x, low, high))
    if not low <= high or low == math.inf or high == -math.inf:
        raise UnsupportedModelError(f"Clip needs min <= max; got {low} and {high}.")
    if math.isinf(low) and math.isinf(high):
        return x
    if low == 0 and math.isinf(high):
        return node.apply(Relu(), x)
    return node.apply(Clip(low, high), x)


def _largest(operation: Callable[[], Operation], function: Any) -> Rule:
    def rule(node: Node) -> Value:
        values = node.operands()
        tensors = [value for value in values if isinstance(value, Tensor)]
        constants = [value for value in values if not isinstance(value, Tensor)]
        if not tensors:
            return np.asarray(function.reduce(np.broadcast_arrays(*together(*constants))))
        made: Value = tensors[0] if len(tensors) == 1 else node.apply(operation(), *tensors)
        for constant in constants:
            # A bound without axes, or one that is the same everywhere, clips.
            if constant.size and (constant == constant.flat[0]).all():
                bound = float(constant.flat[0])
                made = _widened(node, made, constant.shape)
                ends = (bound, math.inf) if function is np.maximum else (-math.inf, bound)
                made = node.apply(Relu() if ends == (0.0, math.inf) else Clip(*ends), made)
            else:
                made = node.apply(operation(), made, constant)
        return made

    return rule


def _trilu(node: Node) -> Value:
    x = node.operand(0)
    if not isinstance(x, Tensor):
        return CONSTANTS["Trilu"](node)  # type: ignore[return-value]
    k = int(node.single(1).item()) if node.given(1) else 0
    if len(x.shape) < 2:
        raise ModelFileError(f"Trilu needs a matrix; got a tensor of shape {x.shape}.")
    k = max(-x.shape[-2] - 1, min(x.shape[-1] + 1, k))
    ones = np.ones(x.shape[-2:])
    return node.apply(
        Scale(np.triu(ones, k) if node.flag("upper", True) else np.tril(ones, k), None, "Trilu"), x
    )


ENTRYWISE: dict[str, Callable[[], Operation]] = {
    "Abs": Abs,
    "Acos": Acos,
    "Acosh": Acosh,
    "Asin": Asin,
    "Asinh": Asinh,
    "Atan": Atan,
    "Atanh": Atanh,
    "Cos": Cos,
    "Cosh": Cosh,
    "Erf": Erf,
    "Exp": Exp,
    "HardSwish": HardSwish,
    "Mish": Mish,
    "Reciprocal": Reciprocal,
    "Relu": Relu,
    "Sigmoid": Sigmoid,
    "Sin": Sin,
    "Sinh": Sinh,
    "Softplus": Softplus,
    "Softsign": Softsign,
    "Sqrt": Sqrt,
    "Tan": Tan,
    "Tanh": Tanh,
}

ARITHMETIC: dict[str, Rule] = {
    **{name: _entrywise(make) for name, make in ENTRYWISE.items()},
    "Add": _add,
    "Ceil": _step(lambda: Round("ceil")),
    "Celu": _celu,
    "Clip": _clip,
    "Div": _divide,
    "Elu": _elu,
    "Floor": _step(lambda: Round("floor")),
    "Gelu": _gelu,
    "HardSigmoid": _hard_sigmoid,
    "LeakyRelu": _leaky_relu,
    "Log": _logarithm,
    "Max": _largest(Maximum, np.maximum),
    "Mean": _mean,
    "Min": _largest(Minimum, np.minimum),
    "Mul": _multiply,
    "Neg": _negate,
    "PRelu": _prelu,
    "Pow": _power,
    "Round": _step(lambda: Round("round")),
    "Selu": _selu,
    "Shrink": _shrink,
    "Sign": _step(Sign),
    "Sub": _subtract,
    "Sum": _sum,
    "Swish": _swish,
    "ThresholdedRelu": _thresholded_relu,
    "Trilu": _trilu,
}
