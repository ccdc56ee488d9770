"""Biases and scales that a file keeps in nodes of their own, merged into the layer they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from pindown.affine import Array
from pindown.io._onnx.node import Node, Value
from pindown.model.builder import Tensor
from pindown.model.operations.convolution import Convolution
from pindown.model.operations.dense import Dense
from pindown.model.operations.dynamic import DynamicProduct
from pindown.model.operations.integer_weights import IntegerWeights
from pindown.model.operations.integers import Dequantize
from pindown.model.operations.normalisation import GroupNorm, LayerNorm, RmsNorm
from pindown.model.operations.operation import Operation, frozen


def biased(node: Node, x: Tensor, b: NDArray[Any], i: int | None = None) -> Value | None:
    """Return ``x + b`` as one operation where x is a product or a norm without a bias of its own.

    Args:
        node: Where the sum stands.
        x: The tensor.
        b: The numbers.
        i: Which input of the node x is; where others read it too, nothing is changed. None: nobody does.
    """
    if i is not None and not node.used_once(i):
        return None
    made = node.builder.node(x)
    if made is None or not made.inputs:
        return None
    operation, before = made.operation, node.builder.tensor(made.inputs[0])
    if isinstance(operation, (LayerNorm, GroupNorm)):
        vector = _along(b, x.shape, 1 if isinstance(operation, GroupNorm) else -1)
        if operation.scale is None or operation.shift is not None or vector is None:
            return None
        fits = operation.scale.shape == vector.shape
        return node.apply(replace(operation, shift=vector), before) if fits else None
    plain = _product_inside(operation)
    if plain is None or plain.bias is not None:
        return None
    vector = _along(b, x.shape, plain.axis if isinstance(plain, Dense) else 1)
    weight = plain.weight if isinstance(plain, Dense) else plain.kernel
    if vector is None or vector.size != len(weight):
        return None
    make = lambda: _with_bias(operation, frozen(vector), node.grid(b))  # noqa: E731
    return node.apply(node.once(make, "biased", weight, b, type(plain), plain_facts(plain)), before)


def plain_facts(operation: Dense | Convolution) -> Any:
    """Return what tells two products with the same weight apart."""
    return operation.axis if isinstance(operation, Dense) else (operation.window, operation.groups)


def _product_inside(operation: Operation) -> Dense | Convolution | None:
    """Return the dense map or convolution that an operation is, also of integers."""
    if isinstance(operation, (DynamicProduct, IntegerWeights)):
        return _product_inside(operation.inner)
    return operation if isinstance(operation, (Dense, Convolution)) else None


def _with_bias(operation: Operation, bias: Array, grid: Dequantize | None) -> Operation:
    if isinstance(operation, DynamicProduct):
        inner = _with_bias(operation.inner, bias, None)
        assert isinstance(inner, IntegerWeights)
        return replace(operation, inner=inner)
    if isinstance(operation, IntegerWeights):
        plain = _with_bias(operation.inner, bias, None)
        assert isinstance(plain, (Dense, Convolution))
        return replace(operation, inner=plain, bias=grid)
    assert isinstance(operation, (Dense, Convolution))
    return replace(operation, bias=bias)


def rescaled(node: Node, x: Tensor, c: NDArray[Any]) -> Value | None:
    """Return ``c x`` as one operation where x is a norm without a scale of its own."""
    made = node.builder.node(x)
    operation = None if made is None else made.operation
    if (
        made is None
        or not isinstance(operation, (LayerNorm, RmsNorm, GroupNorm))
        or operation.scale is not None
    ):
        return None
    last = isinstance(operation, GroupNorm) or operation.axes == (len(x.shape) - 1,)
    axis = 1 if isinstance(operation, GroupNorm) else -1
    vector = _along(c, x.shape, axis)
    if (
        not last
        or vector is None
        or vector.size != x.shape[axis]
        or getattr(operation, "shift", None) is not None
    ):
        return None
    return node.apply(replace(operation, scale=vector), node.builder.tensor(made.inputs[0]))


def _along(values: NDArray[Any], shape: Sequence[int], axis: int) -> NDArray[Any] | None:
    """Return numbers that repeat along all axes but one as a vector."""
    rank = len(shape)
    if rank < -axis or axis >= rank or values.ndim > rank:
        return None
    full = (1,) * (rank - values.ndim) + values.shape
    at = axis % rank
    if any(n != 1 for i, n in enumerate(full) if i != at) or full[at] not in (1, shape[at]):
        return None
    return values.reshape(-1)
