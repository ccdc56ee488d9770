"""ONNX operations over axes: sums, means, extremes, lengths, products."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io._onnx.data_movement import sliced, with_shape
from pindown.io._onnx.node import Node, Rule, Value
from pindown.model.builder import Tensor
from pindown.model.operations.dense import Add, Reduce
from pindown.model.operations.elementary import Exp, Log, Sqrt
from pindown.model.operations.maxima import ReduceMax, ReduceMin
from pindown.model.operations.moves import Concat
from pindown.model.operations.piecewise_linear import Abs
from pindown.model.operations.products import Multiply, Square

_MAX_PRODUCT = 256  # entries that one ReduceProd may multiply


def reduced_axes(node: Node, x: Value) -> tuple[int, ...] | None:
    """Return the axes that a reduction is over, or None if it leaves the tensor as it is."""
    axes, rank = node.numbers(1, "axes"), len(x.shape)
    if not axes:
        if node.flag("noop_with_empty_axes", False):
            return None
        return tuple(range(rank))
    if any(not -rank <= axis < rank for axis in axes):
        raise ModelFileError(f"{node.op} names the axes {axes} of a tensor of rank {rank}.")
    return tuple(sorted({axis % rank for axis in axes}))


def _over_axes(along: Callable[[Node, Value, tuple[int, ...]], Value], plain: bool = True) -> Rule:
    """Return the rule of a reduction, plain if it leaves a single entry as it is."""

    def rule(node: Node) -> Value:
        x = node.operand(0)
        axes = reduced_axes(node, x)
        if axes is None:
            if not plain:
                raise UnsupportedModelError(
                    f"{node.op} over no axes is not read: runtimes disagree on it."
                )
            return x
        made = along(node, x, axes)
        if node.flag("keepdims", True):
            return made
        return with_shape(node, made, tuple(n for i, n in enumerate(made.shape) if i not in axes))

    return rule


def _total(node: Node, x: Value, axes: tuple[int, ...]) -> Value:
    return node.apply(Reduce(axes), x)


def _average(node: Node, x: Value, axes: tuple[int, ...]) -> Value:
    return node.apply(Reduce(axes, mean=True), x)


def _highest(node: Node, x: Value, axes: tuple[int, ...]) -> Value:
    return node.apply(ReduceMax(axes), x)


def _lowest(node: Node, x: Value, axes: tuple[int, ...]) -> Value:
    return node.apply(ReduceMin(axes), x)


def _sum_of_squares(node: Node, x: Value, axes: tuple[int, ...]) -> Value:
    return node.chain(x, Square(), Reduce(axes))


def _sum_of_sizes(node: Node, x: Value, axes: tuple[int, ...]) -> Value:
    return node.chain(x, Abs(), Reduce(axes))


def _length(node: Node, x: Value, axes: tuple[int, ...]) -> Value:
    return node.chain(x, Square(), Reduce(axes), Sqrt())


def _log_sum(node: Node, x: Value, axes: tuple[int, ...]) -> Value:
    return node.chain(x, Reduce(axes), Log())


def log_sum_exp(node: Node, x: Value, axes: tuple[int, ...]) -> Value:
    r"""Return :math:`m + \log \sum \exp(x - m)` with the largest entry m, so that nothing overflows."""
    top = node.apply(ReduceMax(axes), x)
    rest = node.chain(node.apply(Add((1, -1)), x, top), Exp(), Reduce(axes), Log())
    return node.apply(Add(), top, rest)


def _product(node: Node, x: Value, axes: tuple[int, ...]) -> Value:
    """Multiply halves, again and again."""
    if not isinstance(x, Tensor):
        return np.asarray(np.prod(x, axis=axes, keepdims=True))
    if math.prod(x.shape[axis] for axis in axes) > _MAX_PRODUCT:
        raise UnsupportedModelError(f"ReduceProd is read for up to {_MAX_PRODUCT} factors.")
    made: Value = x
    for axis in axes:
        while (n := made.shape[axis]) > 1:
            half = n // 2
            pair = node.apply(
                Multiply(), sliced(node, made, axis, 0, half), sliced(node, made, axis, half, 2 * half)
            )
            rest = sliced(node, made, axis, 2 * half, n) if n % 2 else None
            made = pair if rest is None else node.apply(Concat(axis), pair, rest)
    return made


REDUCTIONS: dict[str, Rule] = {
    "ReduceL1": _over_axes(_sum_of_sizes, plain=False),
    "ReduceL2": _over_axes(_length, plain=False),
    "ReduceLogSum": _over_axes(_log_sum, plain=False),
    "ReduceLogSumExp": _over_axes(log_sum_exp, plain=False),
    "ReduceMax": _over_axes(_highest),
    "ReduceMean": _over_axes(_average),
    "ReduceMin": _over_axes(_lowest),
    "ReduceProd": _over_axes(_product),
    "ReduceSum": _over_axes(_total),
    "ReduceSumSquare": _over_axes(_sum_of_squares, plain=False),
}
