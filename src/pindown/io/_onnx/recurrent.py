"""ONNX recurrent layers, unrolled: an LSTM of 16 steps is 16 copies that share their weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pindown.affine import Array
from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io._onnx.data_movement import sliced, transposed, with_shape
from pindown.io._onnx.node import Node, Rule, Value
from pindown.model.builder import Tensor
from pindown.model.graph import Origin
from pindown.model.limits import MAX_NODES
from pindown.model.operations.dense import Add, Dense, Scale
from pindown.model.operations.dynamic import DynamicProduct
from pindown.model.operations.integer_weights import IntegerWeights
from pindown.model.operations.integers import Dequantize
from pindown.model.operations.moves import Concat
from pindown.model.operations.operation import Operation, frozen
from pindown.model.operations.piecewise_linear import Clip, HardSigmoid, LeakyRelu, Relu
from pindown.model.operations.products import Multiply
from pindown.model.operations.smooth import Elu, Sigmoid, Softplus, Softsign, Tanh

_STEP_NODES = 20  # about how many operations one step takes
_SIDES = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
_WITHOUT: dict[str, Callable[[], Operation]] = {
    "relu": Relu,
    "sigmoid": Sigmoid,
    "softplus": Softplus,
    "softsign": Softsign,
    "tanh": Tanh,
}
_WITH_ALPHA: dict[str, tuple[Callable[[float], Operation], float]] = {
    "elu": (Elu, 1.0),
    "leakyrelu": (lambda alpha: LeakyRelu(np.array(alpha)), 0.01),
}


@dataclass(frozen=True)
class _Layer:
    """One direction of a recurrent layer.

    Attributes:
        node: Where it stands.
        functions: Its activation functions.
        across: From the inputs of all steps to the gates, (steps, batch, gates * hidden).
        size: Number of hidden units.
        clip: Bound on what enters the gates, or infinity.
    """

    node: Node
    functions: tuple[Operation, ...]
    across: Value
    size: int
    clip: float

    def step(self, t: int) -> Value:
        """Return what the input adds to the gates in a step, (batch, gates * hidden)."""
        part = sliced(self.node, self.across, 0, t, t + 1)
        return with_shape(self.node, part, part.shape[1:])

    def gate(self, values: Value, k: int) -> Value:
        """Return gate ``k``."""
        return sliced(self.node, values, 1, k * self.size, (k + 1) * self.size)

    def bent(self, values: Value, k: int) -> Value:
        """Apply activation function ``k``, behind the clip."""
        if math.isfinite(self.clip):
            values = self.node.apply(Clip(-self.clip, self.clip), values)
        return self.node.apply(self.functions[k], values)


Step = Callable[[Node, _Layer, Value, list[Value]], list[Value]]
# From a node, an input (1 or 2), a direction and a bias to the map of those weights, or of some rows.
Weights = Callable[[Node, int, int, Array | None, slice], Operation]


def _plain(node: Node, i: int, d: int, bias: Array | None, rows: slice) -> Operation:
    W = node.weight(i)[d][rows]
    return Dense(frozen(W), None if bias is None else frozen(bias[rows]))


def _dynamic(node: Node, i: int, d: int, bias: Array | None, rows: slice) -> Operation:
    """Return a map with integer weights of tensors that are quantised on the way."""
    W, scale, zero = node.constant(i)[d].T[rows], node.weight(6 + 2 * i), node.constant(7 + 2 * i)
    if scale.ndim not in (1, 2) or d >= len(scale) or zero.shape != scale.shape:
        raise ModelFileError(f"{node.op} has scales {scale.shape} and zero points {zero.shape}.")
    own, points = scale[d], zero[d]
    many = own.ndim == 1
    kind = node.type(i)
    grid = Dequantize(
        own[rows] if many else own, points[rows] if many else points, 0 if many else None, kind
    )
    return DynamicProduct(IntegerWeights.of(Dense, W, grid, None if bias is None else bias[rows]))


@dataclass(frozen=True)
class _Kind:
    """What tells LSTM, GRU and RNN apart.

    Attributes:
        gates: Number of gates.
        states: Number of states that go from step to step.
        functions: Default activation functions.
        step: Binds one direction's recurrent weights to a function that carries out a step.
        weights: Makes the maps.
    """

    gates: int
    states: int
    functions: tuple[str, ...]
    step: Callable[..., Step]
    weights: Weights = _plain

    def __call__(self, node: Node) -> list[Value]:
        """Read a node."""
        if any(isinstance(value, Tensor) for value in node.inputs[1:]):
            return self._unrolled(node)
        with node.builder.standing_for(self._origin(node)) as makes:
            results = self._unrolled(node)
            for slot, value in enumerate(results):
                if isinstance(value, Tensor):
                    makes(slot, value)
        return results

    def _unrolled(self, node: Node) -> list[Value]:
        x = node.operand(0)
        layout = node.flag("layout", False)
        if len(x.shape) != 3:
            raise ModelFileError(f"{node.op} needs a tensor (steps, batch, inputs); got {x.shape}.")
        x = transposed(node, x, (1, 0, 2)) if layout else x
        sides = _SIDES.get(node.text("direction", "forward"), ())
        W, R = (node.constant(i).shape for i in (1, 2))
        if self.weights is _dynamic and len(W) == len(R) == 3:  # stored the other way round
            W, R = (W[0], W[2], W[1]), (R[0], R[2], R[1])
        size = node.integer("hidden_size", R[-1] if len(R) == 3 else 0)
        steps, batch, inputs = x.shape
        rows = self.gates * size
        if not sides or ((len(sides), rows, inputs), (len(sides), rows, size)) != (W, R):
            raise ModelFileError(f"weights {W} and {R} do not fit a tensor of shape {x.shape}.")
        if steps * len(sides) * _STEP_NODES > MAX_NODES:
            raise UnsupportedModelError(f"{node.op} over {steps:,} steps is too long to be unrolled.")
        _require_whole_sequences(node, steps, batch)
        made = [_direction(node, self, x, d, backwards, size) for d, backwards in enumerate(sides)]
        return _outputs(node, made, layout, (steps, batch, size))

    def _origin(self, node: Node) -> Origin:
        """Return the node as it stands in the file."""
        operands = tuple(
            (node.constant(i), node.type(i) if node.constant(i).dtype.kind in "iu" else "")
            if node.given(i)
            else None
            for i in range(1, len(node.inputs))
        )
        return Origin(node.op, node.proto.domain, operands, node.attributes(), node.n_outputs)


def _direction(
    node: Node, kind: _Kind, x: Value, d: int, backwards: bool, size: int
) -> tuple[list[Value], list[Value]]:
    """Return the hidden state after every step, and the last states, of one direction."""
    rows = kind.gates * size
    b = _part(node, 3, d, 2 * rows)
    halves = (None, None) if b is None else (b[:rows], b[rows:])
    across = node.apply(kind.weights(node, 1, d, halves[0], slice(None)), x)
    clip = node.finite("clip", math.inf) if node.has("clip") else math.inf
    layer = _Layer(node, _functions(node, d, kind.functions), across, size, clip)
    one = kind.step(node, lambda part: kind.weights(node, 2, d, halves[1], part), d, size)
    state = [_initial(node, 5 + k, d, (x.shape[1], size)) for k in range(kind.states)]
    order = range(x.shape[0] - 1, -1, -1) if backwards else range(x.shape[0])
    seen: list[Value] = [state[0]] * x.shape[0]
    for t in order:
        state = one(node, layer, layer.step(t), state)
        seen[t] = state[0]
    return seen, state


def _initial(node: Node, i: int, d: int, shape: tuple[int, int]) -> Value:
    if not node.given(i):
        return node.as_tensor(np.zeros(shape))
    value = node.operand(i)
    if len(value.shape) != 3:
        raise ModelFileError(f"a first state of shape {value.shape} does not fit.")
    value = transposed(node, value, (1, 0, 2)) if node.flag("layout", False) else value
    part = sliced(node, value, 0, d, d + 1)
    return node.as_tensor(with_shape(node, part, shape))


def _outputs(
    node: Node,
    made: list[tuple[list[Value], list[Value]]],
    layout: bool,
    sizes: tuple[int, int, int],
) -> list[Value]:
    """Return all hidden states and the last states, in the order of axes that the node asks for."""
    steps, batch, size = sizes
    sides = []
    for seen, _ in made:
        rows = [with_shape(node, value, (1, 1, batch, size)) for value in seen]
        sides.append(rows[0] if steps == 1 else node.apply(Concat(0), *rows))
    whole = sides[0] if len(sides) == 1 else node.apply(Concat(1), *sides)
    results = [transposed(node, whole, (2, 0, 1, 3)) if layout else whole]
    for k in range(len(made[0][1])):
        ends = [with_shape(node, last[k], (1, batch, size)) for _, last in made]
        end = ends[0] if len(ends) == 1 else node.apply(Concat(0), *ends)
        results.append(transposed(node, end, (1, 0, 2)) if layout else end)
    return results


def _require_whole_sequences(node: Node, steps: int, batch: int) -> None:
    if node.given(4):
        lengths = node.constant(4)
        if lengths.shape != (batch,) or (lengths != steps).any():
            raise UnsupportedModelError(
                f"{node.op} over sequences of other lengths than {steps} is not read."
            )


def _part(node: Node, i: int, d: int, length: int) -> Array | None:
    """Return one direction's row of input ``i``."""
    if not node.given(i):
        return None
    values = node.weight(i)
    if values.ndim != 2 or d >= len(values) or values.shape[1] != length:
        raise ModelFileError(
            f"input {i + 1} of {node.op} has the shape {values.shape}, which does not fit."
        )
    return values[d]


def _functions(node: Node, d: int, defaults: tuple[str, ...]) -> tuple[Operation, ...]:
    """Return one direction's activation functions."""
    count = len(defaults)
    names = node.texts("activations") or ()
    if len(names) not in (0, count) and len(names) <= d * count:
        raise ModelFileError(f"{node.op} names {len(names)} activations.")
    chosen = [name.lower() for name in (names[d * count : (d + 1) * count] or defaults)]
    if len(chosen) != count:
        raise ModelFileError(
            f"{node.op} needs {count} activations for each direction; got {len(chosen)}."
        )
    # Numbers are listed for those functions alone that take them; only plain lists are read.
    alphas, betas = node.reals("activation_alpha"), node.reals("activation_beta")
    return tuple(_function(node, name, alphas, betas) for name in chosen)


def _function(
    node: Node, name: str, alphas: tuple[float, ...] | None, betas: tuple[float, ...] | None
) -> Operation:
    if name in _WITHOUT:
        return _WITHOUT[name]()
    if alphas or betas:
        raise UnsupportedModelError(f"{node.op} with numbers of its own in '{name}' is not read.")
    if name == "hardsigmoid":
        return HardSigmoid(0.2, 0.5)
    if name in _WITH_ALPHA:
        make, alpha = _WITH_ALPHA[name]
        return make(alpha)
    raise UnsupportedModelError(f"{node.op} with the activation '{name}' is not read.")


# ---------------------------------------------------------------------- one step


def _sum(node: Node, a: Value, b: Value) -> Value:
    return node.apply(Add(), a, b)


def _times(node: Node, a: Value, b: Value) -> Value:
    return node.apply(Multiply(), a, b)


def _rnn(node: Node, back: Callable[[slice], Operation], d: int, size: int) -> Step:
    again = back(slice(None))

    def step(node: Node, layer: _Layer, x: Value, state: list[Value]) -> list[Value]:
        return [layer.bent(_sum(node, x, node.apply(again, state[0])), 0)]

    return step


def _lstm(node: Node, back: Callable[[slice], Operation], d: int, size: int) -> Step:
    again = back(slice(None))
    peep = _part(node, 7, d, 3 * size)
    peeps = None if peep is None else [Scale(frozen(part), trained=size) for part in np.split(peep, 3)]
    coupled = node.flag("input_forget", False)

    def step(node: Node, layer: _Layer, x: Value, state: list[Value]) -> list[Value]:
        hidden, cell = state
        gates = _sum(node, x, node.apply(again, hidden))

        def opened(k: int, seen: Value) -> Value:
            values = layer.gate(gates, k)
            if peeps is not None:
                values = _sum(node, values, node.apply(peeps[k], seen))
            return layer.bent(values, 0)

        let_in = opened(0, cell)
        kept = node.apply(Scale(np.array(-1.0), np.array(1.0)), let_in) if coupled else opened(2, cell)
        new = layer.bent(layer.gate(gates, 3), 1)
        cell = _sum(node, _times(node, kept, cell), _times(node, let_in, new))
        shown = node.apply(layer.functions[2], cell)
        return [_times(node, opened(1, cell), shown), cell]

    return step


def _gru(node: Node, back: Callable[[slice], Operation], d: int, size: int) -> Step:
    early = bool(node.integer("linear_before_reset", 0))
    cut = 2 * size
    first, last = back(slice(0, cut)), back(slice(cut, None))

    def step(node: Node, layer: _Layer, x: Value, state: list[Value]) -> list[Value]:
        (hidden,) = state
        gates = _sum(node, sliced(node, x, 1, 0, cut), node.apply(first, hidden))
        update, reset = layer.bent(layer.gate(gates, 0), 0), layer.bent(layer.gate(gates, 1), 0)
        if early:
            recalled = _times(node, reset, node.apply(last, hidden))
        else:
            recalled = node.apply(last, _times(node, reset, hidden))
        new = layer.bent(_sum(node, layer.gate(x, 2), recalled), 1)
        away = node.apply(Add((1, -1)), hidden, new)
        return [_sum(node, new, _times(node, update, away))]

    return step


_LSTM = (4, 2, ("sigmoid", "tanh", "tanh"), _lstm)
DYNAMIC_LSTM: Rule = _Kind(*_LSTM, _dynamic)
RECURRENT: dict[str, Rule] = {
    "GRU": _Kind(3, 1, ("sigmoid", "tanh"), _gru),
    "LSTM": _Kind(*_LSTM),
    "RNN": _Kind(1, 1, ("tanh",), _rnn),
}
