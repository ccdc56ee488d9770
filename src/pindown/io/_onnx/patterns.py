"""What the author wrote, found again in what an exporter made of it.

Exporters write SiLU as a Sigmoid and a Mul, GELU as five nodes, a layer norm as nine. While a graph is
built, the last node of such a group is replaced by the one operation that the group is, if its nodes and
numbers are exactly those; what nobody else reads is then left out. Numbers may be off by a rounding to
float32. In files of 16 bits they are farther off, and what they make is another function: only GELU is
found there, which takes what stands for the root of two.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np

from pindown.io._onnx.node import Node, Value
from pindown.model.builder import Builder, Tensor
from pindown.model.operations.dense import Add, Reduce, Scale
from pindown.model.operations.dynamic import as_dynamic_product
from pindown.model.operations.elementary import Exp, Power, Reciprocal, Sqrt
from pindown.model.operations.maxima import ReduceMax
from pindown.model.operations.normalisation import LayerNorm, RmsNorm
from pindown.model.operations.operation import Operation
from pindown.model.operations.piecewise_linear import Clip, HardSigmoid
from pindown.model.operations.products import Multiply, Square
from pindown.model.operations.smooth import Erf, Gelu, HardSwish, Mish, Sigmoid, Silu, Softplus, Tanh
from pindown.model.operations.softmax import Softmax
from pindown.model.operations.steps import Round

_ROUNDED = 1e-6  # to float32
_HALF_ROUNDED = 2e-3  # to bfloat16
_CUBIC = 0.044715
_DEPTH = 4  # of products in products
_FLAT = 15.0  # from here on softplus is x up to float32's rounding
Found = TypeVar("Found", bound=Operation)


class _Graph:
    """What was built so far, read backwards."""

    def __init__(self, node: Node) -> None:
        self.builder: Builder = node.builder
        self.tensor = node.builder.tensor

    def made(self, x: Tensor, kind: type[Found]) -> tuple[Found, Tensor] | None:
        """Return the operation of a kind that made a tensor, with its first input."""
        node = self.builder.node(x)
        if node is None or not isinstance(node.operation, kind):
            return None
        return node.operation, self.tensor(node.inputs[0])

    def inputs(self, x: Tensor) -> list[Tensor]:
        node = self.builder.node(x)
        return [] if node is None else [self.tensor(i) for i in node.inputs]

    def close(self, a: float, b: float) -> bool:
        return abs(a - b) <= _ROUNDED * abs(b)

    def lines(self, x: Tensor) -> Iterator[tuple[float, float, Tensor]]:
        """Yield all (a, b, y) with ``x == a y + b`` for numbers a and b, beginning with x itself."""
        a, b = 1.0, 0.0
        yield a, b, x
        for _ in range(_DEPTH):
            found = self.made(x, Scale)
            if found is None or found[1].shape != x.shape:
                return
            if any(v is not None and v.size != 1 for v in (found[0].factor, found[0].shift)):
                return
            scale, x = found
            factor = 1.0 if scale.factor is None else float(scale.factor.flat[0])
            shift = 0.0 if scale.shift is None else float(scale.shift.flat[0])
            a, b = a * factor, b + a * shift
            yield a, b, x

    def scaled(self, x: Tensor) -> tuple[float, float, Tensor]:
        """Return the last of the lines."""
        return list(self.lines(x))[-1]

    def factors(self, x: Tensor, depth: int = _DEPTH) -> tuple[float, list[Tensor]]:
        """Return a number and tensors whose product a tensor is."""
        a, _, y = [line for line in self.lines(x) if line[1] == 0][-1]
        if self.made(y, Multiply) is None or depth == 0:
            return a, [y]
        parts = [self.factors(part, depth - 1) for part in self.inputs(y)]
        if any(t.shape != y.shape for _, tensors in parts for t in tensors):
            return a, [y]
        return a * math.prod(c for c, _ in parts), [t for _, tensors in parts for t in tensors]


def _replaced(node: Node, operation: Operation, x: Tensor) -> Tensor:
    node.named(operation.name)
    return node.builder.add(operation, x)


# ---------------------------------------------------------------------- activations


def dynamic_product(node: Node, a: Tensor, b: Tensor) -> Value | None:
    """Return a product with integer weights and scales that fit, where a product of tensors is one."""
    found = as_dynamic_product(node.builder, a, b) or as_dynamic_product(node.builder, b, a)
    return None if found is None else _replaced(node, *found)


def recognised_product(node: Node, made: Value) -> Value:
    """Return SiLU, GELU, hard swish, Mish, hard sigmoid or a norm where a product is one of them."""
    if not isinstance(made, Tensor):
        return made
    graph = _Graph(node)
    c, parts = graph.factors(made)
    if len(parts) == 1:
        return _recognised_root(node, graph, _hard_sigmoid(node, graph, made))
    for k, gate in enumerate(parts):
        rest = sorted(part.index for part in (*parts[:k], *parts[k + 1 :]))
        for operation, factor, x in _gates(graph, gate):
            inner, below = graph.factors(x)
            if sorted(part.index for part in below) == rest and graph.close(c, factor * inner):
                if not isinstance(operation, float):
                    return _replaced(node, operation, x)
                node.named("SiLU")
                return node.chain(x, Scale(np.array(operation)), Silu(), Scale(np.array(1 / operation)))
    return _recognised_root(node, graph, made)


def _gates(graph: _Graph, gate: Tensor) -> Iterator[tuple[Operation | float, float, Tensor]]:
    """Yield (f, c, x) where ``f(x) == c x gate``; a number s for f stands for ``silu(s x) / s``."""
    a, b, z = graph.scaled(gate)
    if b == 0:
        if sigmoid := graph.made(z, Sigmoid):
            for slope, shift, x in graph.lines(sigmoid[1]):
                if shift == 0 and slope != 0:
                    yield (Silu() if slope == 1.0 else slope), 1 / a, x
        if (hard := graph.made(z, HardSigmoid)) and _is_sixth(graph, hard[0]):
            yield HardSwish(), 1 / a, hard[1]
        if clip := graph.made(z, Clip):
            for slope, shift, x in graph.lines(clip[1]):
                if (clip[0].low, clip[0].high, slope, shift) == (0.0, 6.0, 1.0, 3.0):
                    yield HardSwish(), 1 / (6 * a), x
        if (tanh := graph.made(z, Tanh)) and (inside := graph.made(tanh[1], Softplus)):
            yield Mish(), 1 / a, inside[1]
    elif graph.close(a, b):
        if erf := graph.made(z, Erf):
            for slope, shift, x in graph.lines(erf[1]):
                if shift == 0 and abs(slope - math.sqrt(0.5)) <= _HALF_ROUNDED:
                    near = graph.close(slope, math.sqrt(0.5))
                    yield (Gelu() if near else Gelu(root=1.0 / slope)), 0.5 / a, x
        if tanh := graph.made(z, Tanh):
            for x in _cubic_of(graph, tanh[1]):
                yield Gelu(True), 0.5 / a, x


def _is_sixth(graph: _Graph, operation: HardSigmoid) -> bool:
    return graph.close(operation.alpha, 1 / 6) and graph.close(operation.beta, 0.5)


def _cubic_of(graph: _Graph, z: Tensor) -> Iterator[Tensor]:
    """Yield x where z is the cubic inside the tanh of GELU."""
    _, _, y = graph.scaled(z)
    candidates = [*graph.inputs(y), *graph.factors(z)[1]]
    seen: set[int] = set()
    for x in candidates:
        if x.index not in seen and _is_cubic(graph, z, x):
            yield x
        seen.add(x.index)


def _is_cubic(graph: _Graph, z: Tensor, x: Tensor) -> bool:
    r"""Return whether z is :math:`\sqrt{2/\pi}\,(x + 0.044715\,x^3)`, written in one of two ways."""
    a, b, y = graph.scaled(z)
    if b != 0:
        return False
    outer = math.sqrt(2 / math.pi)
    found = graph.made(y, Add)
    if found and found[0].signs == (1, 1) and graph.close(a, outer):
        for first, second in (graph.inputs(y), graph.inputs(y)[::-1]):
            c, cube = graph.factors(second)
            if first.index == x.index and graph.close(c, _CUBIC) and _degree(graph, cube, x) == 3:
                return True
    c, parts = graph.factors(z)
    for first, second in (parts, parts[::-1]) if len(parts) == 2 else ():
        slope, one, square = graph.scaled(second)
        if first.index == x.index and graph.close(c * one, outer) and graph.close(slope, _CUBIC * one):
            return _degree(graph, [square], x) == 2
    return False


def _degree(graph: _Graph, parts: Sequence[Tensor], x: Tensor) -> float | None:
    """Return the power of x that a product is, or None."""
    total = 0.0
    for part in parts:
        square, found = graph.made(part, Square), graph.made(part, Power)
        if part.index == x.index:
            total += 1
        elif square and square[1].index == x.index:
            total += 2
        elif found and found[1].index == x.index:
            total += found[0].exponent
        else:
            return None
    return total


def _hard_sigmoid(node: Node, graph: _Graph, made: Tensor) -> Tensor:
    """Return a hard sigmoid where a tensor is ``clip(x + 3, 0, 6) / 6``."""
    a, b, gate = graph.scaled(made)
    found = graph.made(gate, Clip)
    if not found or b != 0 or not graph.close(a, 1 / 6) or (found[0].low, found[0].high) != (0.0, 6.0):
        return made
    slope, shift, x = graph.scaled(found[1])
    if (slope, shift) != (1.0, 3.0):
        return made
    return _replaced(node, HardSigmoid(1 / 6, 0.5), x)


def recognised_choice(node: Node, condition: Value, a: Value, b: Value) -> Value | None:
    """Return softplus where it is chosen by a threshold from which on it is written as x itself."""
    if not isinstance(condition, Tensor) or not isinstance(a, Tensor) or not isinstance(b, Tensor):
        return None
    graph = _Graph(node)
    smooth, step = graph.made(b, Softplus), graph.made(condition, Clip)
    up = graph.made(step[1], Round) if step and (step[0].low, step[0].high) == (0.0, 1.0) else None
    if not smooth or not up or up[0].kind != "ceil" or smooth[1].index != a.index:
        return None
    for slope, shift, x in graph.lines(up[1]):
        if x.index == a.index and slope == 1.0 and shift <= -_FLAT:
            return b
    return None


def recognised_log(node: Node, made: Value) -> Value:
    r"""Return softplus where a tensor is :math:`\log(1 + \exp x)`."""
    if not isinstance(made, Tensor):
        return made
    graph = _Graph(node)
    a, b, z = graph.scaled(graph.inputs(made)[0])
    found = graph.made(z, Exp)
    return _replaced(node, Softplus(), found[1]) if found and (a, b) == (1.0, 1.0) else made


# ---------------------------------------------------------------------- norms


def recognised_division(node: Node, a: Tensor, b: Tensor) -> Tensor | None:
    """Return a layer norm, an RMS norm or a softmax where a quotient is one."""
    graph = _Graph(node)
    found = graph.made(b, Sqrt)
    norm = _normalised(graph, a, found[1]) if found else _softmax(graph, a, b)
    return _replaced(node, *norm) if norm else None


def _recognised_root(node: Node, graph: _Graph, made: Tensor) -> Tensor:
    """Return a layer norm or an RMS norm where a product with ``1 / sqrt(...)`` is one."""
    if graph.made(made, Multiply) is None:
        return made
    pair = graph.inputs(made)
    for a, b in (pair, pair[::-1]):
        inside = None
        if found := graph.made(b, Reciprocal):
            root = graph.made(found[1], Sqrt)
            inside = root[1] if root else None
        elif power := graph.made(b, Power):
            inside = power[1] if power[0].exponent == -0.5 else None
        elif root := graph.made(b, Sqrt):
            turned = graph.made(root[1], Reciprocal)
            inside = turned[1] if turned else None
        norm = _normalised(graph, a, inside) if inside is not None else None
        if norm:
            return _replaced(node, *norm)
    return made


def _normalised(graph: _Graph, a: Tensor, inside: Tensor) -> tuple[Operation, Tensor] | None:
    """Return the norm that ``a / sqrt(inside)`` is, and what it is taken of."""
    one, epsilon, mean = graph.scaled(inside)
    found = graph.made(mean, Reduce)
    if not found or not found[0].mean or one != 1.0 or epsilon < 0:
        return None
    axes = found[0].axes
    square = graph.made(found[1], Square)
    if not square or axes != tuple(range(len(a.shape) - len(axes), len(a.shape))):
        return None
    if _centred(graph, a, axes) is not None and _same(graph, a, square[1]):
        centre = _centred(graph, a, axes)
        assert centre is not None
        return LayerNorm(axes, None, None, epsilon), centre
    if square[1].index == a.index:
        return RmsNorm(axes, None, epsilon), a
    return None


def _centred(graph: _Graph, a: Tensor, axes: tuple[int, ...]) -> Tensor | None:
    """Return x where a is x minus its mean over the axes."""
    found = graph.made(a, Add)
    if not found or found[0].signs != (1, -1):
        return None
    x, mean = graph.inputs(a)
    reduced = graph.made(mean, Reduce)
    if reduced and reduced[0].mean and reduced[0].axes == axes and reduced[1].index == x.index:
        return x
    return None


def _same(graph: _Graph, a: Tensor, b: Tensor) -> bool:
    """Return whether two tensors are one, or the same difference of the same tensors."""
    if a.index == b.index:
        return True
    both = graph.made(a, Add), graph.made(b, Add)
    if both[0] is None or both[1] is None or both[0][0].signs != both[1][0].signs:
        return False
    pairs = zip(graph.inputs(a), graph.inputs(b), strict=True)
    return all(s.index == t.index or _same_mean(graph, s, t) for s, t in pairs)


def _same_mean(graph: _Graph, a: Tensor, b: Tensor) -> bool:
    found = graph.made(a, Reduce), graph.made(b, Reduce)
    if found[0] is None or found[1] is None:
        return False
    same = found[0][0].axes == found[1][0].axes and found[0][0].mean == found[1][0].mean
    return same and found[0][1].index == found[1][1].index


def _softmax(graph: _Graph, a: Tensor, b: Tensor) -> tuple[Operation, Tensor] | None:
    """Return softmax where a quotient is ``exp(x) / sum exp(x)``, with the largest x off or not."""
    exponential, total = graph.made(a, Exp), graph.made(b, Reduce)
    if (
        not exponential
        or not total
        or total[0].mean
        or len(total[0].axes) != 1
        or total[1].index != a.index
    ):
        return None
    x = exponential[1]
    shifted = graph.made(x, Add)
    if shifted and shifted[0].signs == (1, -1):
        first, top = graph.inputs(x)
        highest = graph.made(top, ReduceMax)
        if highest and highest[0].axes == total[0].axes and highest[1].index == first.index:
            x = first
    return Softmax(total[0].axes[0]), x
