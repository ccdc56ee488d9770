"""Rules for torch operations that work entry by entry: arithmetic and activation functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from pindown.affine import Array
from pindown.errors import UnsupportedModelError
from pindown.io._torch.graph import Graph, Rule, array, axis_of
from pindown.model.builder import Tensor
from pindown.model.operations.dense import Add, Scale
from pindown.model.operations.moves import Slice
from pindown.model.operations.normalisation import LogSoftmax, Softmax
from pindown.model.operations.operation import Operation
from pindown.model.operations.piecewise_linear import (
    Abs,
    Clip,
    HardSigmoid,
    LeakyRelu,
    Maximum,
    Minimum,
    Relu,
    Round,
    Sign,
)
from pindown.model.operations.products import Multiply, Square
from pindown.model.operations.smooth import (
    Celu,
    Cos,
    Elu,
    Erf,
    Exp,
    Gelu,
    HardSwish,
    Log,
    Mish,
    Power,
    Reciprocal,
    Selu,
    Sigmoid,
    Silu,
    Sin,
    Softplus,
    Softsign,
    Sqrt,
    Tanh,
)
from pindown.model.operations.trigonometric import (
    Acos,
    Acosh,
    Asin,
    Asinh,
    Atan,
    Atanh,
    Cosh,
    Sinh,
    Tan,
)

_SELU = (1.6732632423543772848170429916717, 1.0507009873554804934193349852946)
_SOFTPLUS_NOTE = (
    "Softplus is read without its threshold, above which torch returns its argument: with the default "
    "of 20 that changes it by less than 3e-9."
)

# ---------------------------------------------------------------------- arithmetic


def scaled(
    graph: Graph, x: Tensor, factor: Any = None, shift: Any = None, kind: str = "Scale"
) -> Tensor:
    """Multiply by a constant, and add one."""
    factor = None if factor is None else array(factor)
    shift = None if shift is None else graph.finite(shift)
    return graph.add(Scale(factor, shift, kind, graph.take_trained()), x)


def add(graph: Graph, x: Any, other: Any, alpha: float = 1) -> Tensor:
    """Return ``x + alpha * other``."""
    if isinstance(x, Tensor) and isinstance(other, Tensor):
        if alpha not in (1, -1):
            other, alpha = scaled(graph, other, alpha), 1
        return graph.add(Add((1, int(alpha))), x, other)
    kind = "Sub" if alpha == -1 else "Add"
    if isinstance(x, Tensor):
        return scaled(graph, x, shift=alpha * graph.finite(other), kind=kind)
    return scaled(graph, other, None if alpha == 1 else alpha, x, kind)


def sub(graph: Graph, x: Any, other: Any, alpha: float = 1) -> Tensor:
    """Return ``x - alpha * other``."""
    return add(graph, x, other, -alpha)


def mul(graph: Graph, x: Any, other: Any) -> Tensor:
    """Return ``x * other``; a square and ``x * sigmoid(x)`` are what they are."""
    if not isinstance(x, Tensor):
        x, other = other, x
    if not isinstance(other, Tensor):
        return scaled(graph, x, other, kind="Mul")
    if x.index == other.index:
        return graph.add(Square(), x)
    for a, b in ((x, other), (other, x)):
        node = graph.builder.node(b)
        if node is not None and isinstance(node.operation, Sigmoid) and node.inputs == (a.index,):
            return graph.add(Silu(), a)
    return graph.add(Multiply(), x, other)


def div(graph: Graph, x: Any, other: Any, rounding_mode: str | None = None) -> Tensor:
    """Return ``x / other``."""
    if rounding_mode is not None:
        raise UnsupportedModelError(f"a division rounded to {rounding_mode!r} is not read.")
    if not isinstance(other, Tensor):
        return scaled(graph, x, 1.0 / array(other), kind="Div")
    return mul(graph, graph.add(Reciprocal(), other), x)


def power(graph: Graph, x: Any, exponent: Any) -> Tensor:
    """Return ``x ** exponent``, one of them a number."""
    if isinstance(x, Tensor) and not isinstance(exponent, Tensor):
        p = float(exponent)
        known: dict[float, Operation] = {2.0: Square(), 0.5: Sqrt(), -1.0: Reciprocal()}
        return x if p == 1.0 else graph.add(known.get(p) or Power(p), x)
    if isinstance(exponent, Tensor) and not isinstance(x, Tensor):
        with np.errstate(divide="ignore", invalid="ignore"):
            return graph.add(Exp(), scaled(graph, exponent, np.log(array(x)), kind="Pow"))
    raise UnsupportedModelError("a computed tensor to the power of another is not read.")


def neg(graph: Graph, x: Tensor) -> Tensor:
    """Return ``-x``."""
    return scaled(graph, x, -1.0, kind="Neg")


def maximum(graph: Graph, x: Any, other: Any) -> Tensor:
    """Return the larger of both."""
    return _extreme(graph, x, other, Maximum(), lambda c: Clip(c, math.inf))


def minimum(graph: Graph, x: Any, other: Any) -> Tensor:
    """Return the smaller of both."""
    return _extreme(graph, x, other, Minimum(), lambda c: Clip(-math.inf, c))


def _extreme(graph: Graph, x: Any, other: Any, both: Operation, bound: Any) -> Tensor:
    if not isinstance(x, Tensor):
        x, other = other, x
    if not isinstance(other, Tensor):
        values = array(other)
        same = values.size > 0 and (values == values.flat[0]).all()
        if same and np.broadcast_shapes(values.shape, x.shape) == x.shape:
            return graph.add(bound(float(values.flat[0])), x)
    return graph.add(both, x, other)


def clamp(graph: Graph, x: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """Return x, held between two bounds."""
    if any(isinstance(bound, torch.Tensor | Tensor) for bound in (min, max)):
        x = x if min is None else maximum(graph, x, min)
        return x if max is None else minimum(graph, x, max)
    return graph.add(
        Clip(-math.inf if min is None else float(min), math.inf if max is None else float(max)), x
    )


def where(graph: Graph, condition: Any, x: Any, other: Any) -> Tensor:
    """Take entries of x where a constant condition holds, of the other one elsewhere."""
    if isinstance(x, torch.Tensor) and x.dtype == torch.bool:  # the method of x has it second
        condition, x = x, condition
    if isinstance(condition, Tensor):
        raise UnsupportedModelError("a condition on computed tensors is not read.")
    mask = array(condition)
    return add(graph, _masked(graph, x, mask), _masked(graph, other, 1.0 - mask))


def _masked(graph: Graph, x: Any, mask: Array) -> Any:
    if isinstance(x, Tensor):
        return scaled(graph, x, mask, kind="Where")
    return torch.from_numpy(mask * graph.finite(x))


def masked_fill(graph: Graph, x: Tensor, mask: Any, value: Any) -> Tensor:
    """Put a number where a constant mask says so."""
    return where(graph, mask, value, x)


def square(graph: Graph, x: Tensor) -> Tensor:
    """Return ``x ** 2``."""
    return power(graph, x, 2.0)


def rsqrt(graph: Graph, x: Tensor) -> Tensor:
    """Return ``1 / sqrt(x)``."""
    return graph.add(Reciprocal(), graph.add(Sqrt(), x))


# ---------------------------------------------------------------------- activations


def applied(operation: Operation) -> Rule:
    """Return the rule of an operation of one tensor that has no options."""
    return lambda graph, x, inplace=False: graph.add(operation, x)


def leaky_relu(graph: Graph, x: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Return x where it is positive, a multiple of it elsewhere."""
    return graph.add(LeakyRelu(np.array(float(negative_slope))), x)


def rrelu(
    graph: Graph,
    x: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """Return the leaky ReLU that it is in evaluation mode."""
    _require_evaluation(training)
    return leaky_relu(graph, x, (lower + upper) / 2)


def prelu(graph: Graph, x: Tensor, weight: Any) -> Tensor:
    """Return a leaky ReLU with trained slopes, one for all or one for each channel."""

    def make() -> Operation:
        slopes = array(weight)
        after = (1,) * (len(x.shape) - 2)  # of the axes after the channels'
        slopes = slopes.reshape(-1, *after) if slopes.size > 1 else slopes.reshape(())
        return LeakyRelu(slopes, trained=slopes.size)

    return graph.add(graph.once("PReLU", make, weight, len(x.shape)), x)


def hardtanh(
    graph: Graph, x: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """Return x, held between two bounds."""
    return graph.add(Clip(float(min_val), float(max_val)), x)


def gelu(graph: Graph, x: Tensor, approximate: str = "none") -> Tensor:
    """Return GELU in one of its two forms."""
    return graph.add(Gelu(approximate=approximate == "tanh"), x)


def elu(graph: Graph, x: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return ELU."""
    return graph.add(Elu(float(alpha)), x)


def celu(graph: Graph, x: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return CELU."""
    return graph.add(Celu(float(alpha)), x)


def softplus(graph: Graph, x: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """Return ``log(1 + exp(beta x)) / beta``; the threshold, above which torch returns x, is noted."""
    graph.notes[_SOFTPLUS_NOTE] = None
    if beta == 1:
        return graph.add(Softplus(), x)
    return scaled(graph, graph.add(Softplus(), scaled(graph, x, beta)), 1.0 / beta)


def log_sigmoid(graph: Graph, x: Tensor) -> Tensor:
    """Return ``-log(1 + exp(-x))``."""
    return neg(graph, graph.add(Softplus(), neg(graph, x)))


def tanhshrink(graph: Graph, x: Tensor) -> Tensor:
    """Return ``x - tanh(x)``."""
    return sub(graph, x, graph.add(Tanh(), x))


def softshrink(graph: Graph, x: Tensor, lambd: float = 0.5) -> Tensor:
    """Return x, moved towards zero by a number."""
    return sub(graph, x, graph.add(Clip(-float(lambd), float(lambd)), x))


def hardshrink(graph: Graph, x: Tensor, lambd: float = 0.5) -> Tensor:
    """Return x, if it jumps nowhere."""
    if lambd > 0:
        raise UnsupportedModelError(f"it jumps at {lambd} and is not continuous; Softshrink is.")
    return x


def threshold(graph: Graph, x: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Return the larger of x and the threshold, if that is what is put below it."""
    if value != threshold:
        raise UnsupportedModelError(
            f"it jumps from {value} to {threshold} and is not continuous; both must be one number."
        )
    return graph.add(Relu() if threshold == 0 else Clip(float(threshold), math.inf), x)


def glu(graph: Graph, x: Tensor, dim: int = -1) -> Tensor:
    """Return one half times the sigmoid of the other."""
    axis = axis_of(x.shape, dim)
    n = x.shape[axis] // 2
    halves = [
        graph.add(Slice((*(slice(None),) * axis, span, *(slice(None),) * (len(x.shape) - axis - 1))), x)
        for span in (slice(0, n), slice(n, 2 * n))
    ]
    return mul(graph, halves[0], graph.add(Sigmoid(), halves[1]))


def softmax(
    graph: Graph, x: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """Return the softmax along an axis."""
    return graph.add(Softmax(_softmax_axis(x, dim)), x)


def log_softmax(
    graph: Graph, x: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """Return the logarithm of the softmax along an axis."""
    return graph.add(LogSoftmax(_softmax_axis(x, dim)), x)


def _softmax_axis(x: Tensor, dim: int | None) -> int:
    if dim is None:
        return 0 if len(x.shape) in (0, 1, 3) else 1  # torch's old implicit choice
    return axis_of(x.shape, dim)


def softmin(
    graph: Graph, x: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """Return the softmax of ``-x``."""
    return softmax(graph, neg(graph, x), dim)


def dropout(
    graph: Graph, x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Return x: in evaluation mode nothing is dropped."""
    _require_evaluation(training and p > 0)
    return x


def _require_evaluation(training: bool) -> None:
    if training:
        raise UnsupportedModelError(
            "it draws random numbers also in evaluation mode; pass training=self.training."
        )


ELEMENTWISE: dict[str, Rule] = {
    **dict.fromkeys(("add", "iadd"), add),
    **dict.fromkeys(("sub", "subtract", "isub"), sub),
    "rsub": lambda graph, x, other, alpha=1: sub(graph, other, x, alpha),
    **dict.fromkeys(("mul", "multiply", "imul"), mul),
    **dict.fromkeys(("div", "divide", "true_divide", "truediv", "itruediv"), div),
    **dict.fromkeys(("pow", "float_power"), power),
    **dict.fromkeys(("neg", "negative"), neg),
    **dict.fromkeys(("clamp", "clip"), clamp),
    "clamp_min": lambda graph, x, min: clamp(graph, x, min=min),
    "clamp_max": lambda graph, x, max: clamp(graph, x, max=max),
    "maximum": maximum,
    "minimum": minimum,
    "where": where,
    "masked_fill": masked_fill,
    "square": square,
    "rsqrt": rsqrt,
    "exp2": lambda graph, x: graph.add(Exp(), scaled(graph, x, math.log(2.0))),
    "expm1": lambda graph, x: scaled(graph, graph.add(Exp(), x), shift=-1.0),
    "log1p": lambda graph, x: graph.add(Log(), scaled(graph, x, shift=1.0)),
    "log2": lambda graph, x: scaled(graph, graph.add(Log(), x), 1.0 / math.log(2.0)),
    "log10": lambda graph, x: scaled(graph, graph.add(Log(), x), 1.0 / math.log(10.0)),
    **dict.fromkeys(("abs", "absolute"), applied(Abs())),
    "sign": applied(Sign()),
    "reciprocal": applied(Reciprocal()),
    "sqrt": applied(Sqrt()),
    "exp": applied(Exp()),
    "log": applied(Log()),
    "sin": applied(Sin()),
    "cos": applied(Cos()),
    "tan": applied(Tan()),
    **dict.fromkeys(("asin", "arcsin"), applied(Asin())),
    **dict.fromkeys(("acos", "arccos"), applied(Acos())),
    **dict.fromkeys(("atan", "arctan"), applied(Atan())),
    "sinh": applied(Sinh()),
    "cosh": applied(Cosh()),
    **dict.fromkeys(("asinh", "arcsinh"), applied(Asinh())),
    **dict.fromkeys(("acosh", "arccosh"), applied(Acosh())),
    **dict.fromkeys(("atanh", "arctanh"), applied(Atanh())),
    "erf": applied(Erf()),
    "floor": applied(Round("floor")),
    "ceil": applied(Round("ceil")),
    "round": applied(Round("round")),
    "relu": applied(Relu()),
    "relu6": applied(Clip(0.0, 6.0)),
    "leaky_relu": leaky_relu,
    "rrelu": rrelu,
    "prelu": prelu,
    "hardtanh": hardtanh,
    **dict.fromkeys(("sigmoid", "expit"), applied(Sigmoid())),
    "tanh": applied(Tanh()),
    "gelu": gelu,
    "silu": applied(Silu()),
    "mish": applied(Mish()),
    "hardswish": applied(HardSwish()),
    "hardsigmoid": applied(HardSigmoid(1.0 / 6.0, 0.5)),
    "elu": elu,
    "selu": applied(Selu(*_SELU)),
    "celu": celu,
    "softplus": softplus,
    "softsign": applied(Softsign()),
    **dict.fromkeys(("logsigmoid", "log_sigmoid"), log_sigmoid),
    "tanhshrink": tanhshrink,
    "softshrink": softshrink,
    "hardshrink": hardshrink,
    "threshold": threshold,
    "glu": glu,
    "softmax": softmax,
    "log_softmax": log_softmax,
    "softmin": softmin,
    **dict.fromkeys(
        ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"),
        dropout,
    ),
}
