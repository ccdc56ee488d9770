"""Rules for recurrent layers, unrolled over the steps of one sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from pindown.errors import UnsupportedModelError
from pindown.io._torch.elementwise import add, mul, sub
from pindown.io._torch.graph import Graph, Rule
from pindown.io._torch.moves import cat, chunk, select, squeeze, stack, transpose, unsqueeze
from pindown.io._torch.products import linear
from pindown.model.builder import Tensor
from pindown.model.limits import MAX_NODES
from pindown.model.operations.piecewise_linear import Relu
from pindown.model.operations.smooth import Sigmoid, Tanh

_STEP_NODES = 20  # at most, of one step of one direction of one layer

# A state is (h,), or (h, c) of an LSTM; a step maps it and the input's share of the gates to the next.
State = tuple[Any, ...]


def _plain_step(graph: Graph, gates: Tensor, weights: Any, state: State, activation: Any) -> State:
    return (graph.add(activation, add(graph, gates, _recurrent(graph, state[0], weights))),)


def _lstm_step(graph: Graph, gates: Tensor, weights: Any, state: State) -> State:
    """Return ``c' = f * c + i * g`` and ``h' = o * tanh(c')``."""
    h, c = state
    i, f, g, o = chunk(graph, add(graph, gates, _recurrent(graph, h, weights)), 4, -1)
    i, f, o = (graph.add(Sigmoid(), gate) for gate in (i, f, o))
    c = add(graph, mul(graph, f, c), mul(graph, i, graph.add(Tanh(), g)))
    return mul(graph, o, graph.add(Tanh(), c)), c


def _gru_step(graph: Graph, gates: Tensor, weights: Any, state: State) -> State:
    """Return ``h' = n + z * (h - n)`` with ``n = tanh(a + r * b)``."""
    (h,) = state
    own, past = chunk(graph, gates, 3, -1), chunk(graph, _recurrent(graph, h, weights), 3, -1)
    r, z = (graph.add(Sigmoid(), add(graph, a, b)) for a, b in zip(own[:2], past[:2], strict=True))
    n = graph.add(Tanh(), add(graph, own[2], mul(graph, r, past[2])))
    return (add(graph, n, mul(graph, z, sub(graph, h, n))),)


def _recurrent(graph: Graph, h: Any, weights: Any) -> Tensor:
    return linear(graph, graph.tensor(h), weights["hh"], weights.get("bias_hh"))


def _step(graph: Graph, kind: str, gates: Tensor, weights: Any, state: State) -> State:
    """Advance one step; the kind is torch's ``mode``."""
    if kind == "LSTM":
        hidden, cell = _lstm_step(graph, gates, weights, state)
        projection = weights.get("hr")
        return (hidden if projection is None else linear(graph, hidden, projection)), cell
    if kind == "GRU":
        return _gru_step(graph, gates, weights, state)
    return _plain_step(graph, gates, weights, state, Relu() if kind == "RNN_RELU" else Tanh())


def _weights(m: Any, suffix: str = "") -> dict[str, Any]:
    names = {
        "ih": f"weight_ih{suffix}",
        "hh": f"weight_hh{suffix}",
        "bias_ih": f"bias_ih{suffix}",
        "bias_hh": f"bias_hh{suffix}",
        "hr": f"weight_hr{suffix}",
    }
    found = {key: getattr(m, name, None) for key, name in names.items()}
    return {key: value for key, value in found.items() if value is not None}


def recurrent(graph: Graph, m: Any, x: Tensor, hx: Any = None) -> tuple[Any, Any]:
    """Return what the last layer makes at every step, and the last state of every layer."""
    unbatched = len(x.shape) == 2
    if unbatched:
        x = unsqueeze(graph, x, 1)
    elif m.batch_first:
        x = transpose(graph, x, 0, 1)
    length, batch, _ = x.shape
    directions = 2 if m.bidirectional else 1
    n_nodes = length * m.num_layers * directions * _STEP_NODES
    if n_nodes > MAX_NODES:
        raise UnsupportedModelError(
            f"unrolled over {length} steps it takes about {n_nodes:,} operations; the limit is "
            f"{MAX_NODES:,}. Read it with shorter sequences."
        )
    states = _initial(graph, m, hx, batch, unbatched)
    last: list[State] = []
    for layer in range(m.num_layers):
        outputs = []
        for direction in range(directions):
            weights = _weights(m, f"_l{layer}{'_reverse' if direction else ''}")
            steps, state = _run(
                graph, m.mode, x, weights, states[layer * directions + direction], direction == 1
            )
            outputs.append(steps)
            last.append(state)
        x = stack(graph, [cat(graph, both, -1) for both in zip(*outputs, strict=True)], 0)
    final = tuple(stack(graph, parts, 0) for parts in zip(*last, strict=True))
    if unbatched:
        x, final = squeeze(graph, x, 1), tuple(squeeze(graph, part, 1) for part in final)
    elif m.batch_first:
        x = transpose(graph, x, 0, 1)
    return x, final if m.mode == "LSTM" else final[0]


def _run(
    graph: Graph, kind: str, x: Tensor, weights: Any, state: State, backwards: bool
) -> tuple[list[Any], State]:
    """Return the states after every step, in the order of the sequence, and the last one."""
    gates = linear(graph, x, weights["ih"], weights.get("bias_ih"))
    order = range(x.shape[0])
    made: dict[int, Any] = {}
    for t in reversed(order) if backwards else order:
        state = _step(graph, kind, select(graph, gates, 0, t), weights, state)
        made[t] = state[0]
    return [made[t] for t in order], state


def _initial(graph: Graph, m: Any, hx: Any, batch: int, unbatched: bool) -> list[State]:
    """Return a state for every layer and direction: what was given, or zeros."""
    count = m.num_layers * (2 if m.bidirectional else 1)
    if hx is None:
        sizes = (m.proj_size or m.hidden_size, m.hidden_size) if m.mode == "LSTM" else (m.hidden_size,)
        zeros = tuple(graph.tensor(torch.zeros(batch, n)) for n in sizes)
        return [zeros] * count
    given = [graph.tensor(part) for part in (hx if m.mode == "LSTM" else (hx,))]
    if unbatched:
        given = [unsqueeze(graph, part, 1) for part in given]
    return [tuple(select(graph, part, 0, i) for part in given) for i in range(count)]


def cell(kind: str) -> Rule:
    """Return the rule of one step as a module of its own."""

    def rule(graph: Graph, m: Any, x: Tensor, hx: Any = None) -> Any:
        mode = f"RNN_{m.nonlinearity.upper()}" if kind == "RNN" else kind
        weights = _weights(m)
        unbatched = len(x.shape) == 1
        states: Sequence[Any] = () if hx is None else (hx if kind == "LSTM" else (hx,))
        if hx is None:
            shape = (m.hidden_size,) if unbatched else (x.shape[0], m.hidden_size)
            states = [graph.tensor(torch.zeros(shape))] * (2 if kind == "LSTM" else 1)
        gates = linear(graph, x, weights["ih"], weights.get("bias_ih"))
        state = _step(graph, mode, gates, weights, tuple(map(graph.tensor, states)))
        return state if kind == "LSTM" else state[0]

    return rule


RECURRENT_MODULES: dict[type, Rule] = {
    **dict.fromkeys((torch.nn.RNN, torch.nn.LSTM, torch.nn.GRU), recurrent),
    torch.nn.RNNCell: cell("RNN"),
    torch.nn.LSTMCell: cell("LSTM"),
    torch.nn.GRUCell: cell("GRU"),
}
