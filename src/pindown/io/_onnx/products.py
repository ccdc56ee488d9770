"""ONNX matrix products: MatMul, Gemm, Einsum, with weights on either side or of two tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pindown.affine import Array
from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io._onnx.arithmetic import plus, times
from pindown.io._onnx.data_movement import bearable, transposed, with_shape
from pindown.io._onnx.merging import biased
from pindown.io._onnx.node import Node, Rule, Value
from pindown.model.builder import Tensor
from pindown.model.limits import MAX_TENSOR_ENTRIES, check_entries, check_multiplications
from pindown.model.operations.dense import Dense, Reduce
from pindown.model.operations.integer_weights import IntegerWeights
from pindown.model.operations.operation import Operation, frozen
from pindown.model.operations.products import MatrixProduct


def product(node: Node, a: Value, b: Value) -> Value:
    """Return the matrix product as NumPy means it."""
    if isinstance(a, Tensor):
        if isinstance(b, Tensor) or not _is_one_matrix(b):
            return _of_tensors(node, a, b)
        return _tensor_times_matrix(node, a, np.asarray(b))
    if isinstance(b, Tensor):
        return (
            _matrix_times_tensor(node, np.asarray(a), b)
            if _is_one_matrix(a)
            else _of_tensors(node, a, b)
        )
    size = math.prod(a.shape[:-1]) * math.prod(b.shape[:-2]) * math.prod(b.shape[-1:])
    check_entries(size, what="the result", limit=max(a.size, b.size, MAX_TENSOR_ENTRIES))
    check_multiplications(size, *a.shape[-1:])
    return np.asarray(a @ b)


def _is_one_matrix(W: Array) -> bool:
    return W.ndim <= 2 or all(n == 1 for n in W.shape[:-2])


def dense(node: Node, W: Array, axis: int = -1, *, turned: bool, factor: float = 1.0) -> Operation:
    """Return the map of a weight (out, in), or with ``turned`` of one (in, out); the same each time."""

    def make() -> Operation:
        weight = W if factor == 1.0 else factor * W
        plain = Dense(frozen(weight.T if turned else weight), None, axis)
        grid = node.grid(W)
        if grid is None or factor != 1.0:
            return plain
        along = None if grid.axis is None else 1 - grid.axis if turned else grid.axis
        return IntegerWeights(plain, replace(grid, axis=along))

    return node.once(make, "dense", W, axis, turned, factor)


def _tensor_times_matrix(node: Node, x: Tensor, W: Array) -> Value:
    if W.ndim == 1:
        column = node.apply(Dense(frozen(W[None, :])), x)
        return with_shape(node, column, column.shape[:-1])
    extra = (1,) * max(0, W.ndim - max(len(x.shape), 2))
    made = node.apply(dense(node, _matrix(node, W), turned=True), x)
    return with_shape(node, made, (*extra, *made.shape)) if extra else made


def _matrix_times_tensor(node: Node, W: Array, x: Tensor) -> Value:
    if len(x.shape) == 1:
        made = node.apply(dense(node, _matrix(node, np.atleast_2d(W)), turned=False), x)
        return with_shape(node, made, W.shape[:-1])
    if W.ndim == 1:
        row = node.apply(Dense(frozen(W[None, :]), None, -2), x)
        return with_shape(node, row, (*row.shape[:-2], row.shape[-1]))
    extra = (1,) * max(0, W.ndim - len(x.shape))
    made = node.apply(dense(node, _matrix(node, W), -2, turned=False), x)
    return with_shape(node, made, (*extra, *made.shape)) if extra else made


def _matrix(node: Node, W: Array) -> Array:
    return W if W.ndim == 2 else W.reshape(W.shape[-2:])


def _of_tensors(node: Node, a: Value, b: Value) -> Value:
    """Return the product of two tensors; a vector gets an axis that is dropped again."""
    left = with_shape(node, a, (1, *a.shape)) if len(a.shape) == 1 else a
    right = with_shape(node, b, (*b.shape, 1)) if len(b.shape) == 1 else b
    if left.shape[-1] != right.shape[-2]:
        raise ModelFileError(f"tensors of shapes {a.shape} and {b.shape} cannot be multiplied.")
    lead = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    bearable((*lead, left.shape[-2], right.shape[-1]))
    made = node.apply(MatrixProduct(), left, right)
    shape = [*made.shape]
    if len(b.shape) == 1:
        del shape[-1]
    if len(a.shape) == 1:
        del shape[-1 if len(b.shape) == 1 else -2]
    return with_shape(node, made, shape)


def _matmul(node: Node) -> Value:
    values = [node.operand(0), node.operand(1)]
    for i, value in enumerate(values):
        if (
            isinstance(values[1 - i], Tensor)
            and not isinstance(value, Tensor)
            and not _is_one_matrix(value)
        ):
            values[i] = node.as_tensor(value, node.trained(i))
    return product(node, *values)


def gemm(node: Node, a: Value, b: Value, factor: float) -> Value:
    """Return ``factor a b`` for matrices, turned as the node says."""
    if len(a.shape) != 2 or len(b.shape) != 2:
        raise ModelFileError(f"Gemm needs two matrices; got shapes {a.shape} and {b.shape}.")
    turn_a, turn_b = node.flag("transA", False), node.flag("transB", False)
    if isinstance(a, Tensor) and not isinstance(b, Tensor):
        a = transposed(node, a, (1, 0)) if turn_a else a
        return node.apply(dense(node, b, turned=not turn_b, factor=factor), a)
    if isinstance(b, Tensor) and not isinstance(a, Tensor):
        b = transposed(node, b, (1, 0)) if turn_b else b
        return node.apply(dense(node, a, -2, turned=turn_a, factor=factor), b)
    a = transposed(node, a, (1, 0)) if turn_a else a
    b = transposed(node, b, (1, 0)) if turn_b else b
    made = product(node, a, b)
    return made if factor == 1.0 else times(node, made, np.array(factor))


def gemm_with_bias(node: Node) -> Value:
    """Read a Gemm."""
    a, b = node.operand(0), node.operand(1)
    made = gemm(node, a, b, node.finite("alpha", 1.0))
    if not node.given(2):
        return made
    beta, c = node.finite("beta", 1.0), node.operand(2)
    if np.broadcast_shapes(made.shape, c.shape) != made.shape:
        raise ModelFileError(f"Gemm cannot add a bias of shape {c.shape} to {made.shape}.")
    if beta == 0:
        return made
    c = c if beta == 1.0 else times(node, c, np.array(beta))
    done = _with_bias(node, made, c) if not isinstance(c, Tensor) else None
    return done if done is not None else plus(node, made, c)


def _with_bias(node: Node, made: Value, c: Array) -> Value | None:
    """Return a product with its bias as one operation, where that is a vector along the last axis."""
    if not isinstance(made, Tensor) or any(n != 1 for n in c.shape[:-1]):
        return None
    return biased(node, made, np.broadcast_to(c.reshape(-1), made.shape[-1:]) if c.size == 1 else c)


# ---------------------------------------------------------------------- Einsum


def _einsum(node: Node) -> Value:
    equation = node.text("equation", "").replace(" ", "")
    operands = node.operands()
    left, arrow, out = equation.partition("->")
    terms = left.split(",")
    if "." in equation or len(terms) != len(operands):
        raise UnsupportedModelError(f"Einsum '{equation}' is not read; write it without dots.")
    if not arrow:
        letters = sorted(set(left) - {","})
        out = "".join(letter for letter in letters if left.count(letter) == 1)
    for term, operand in zip(terms, operands, strict=True):
        if len(term) != len(operand.shape) or (not term.isalpha() and term):
            raise ModelFileError(
                f"Einsum '{equation}' does not fit tensors {[v.shape for v in operands]}."
            )
        if len(set(term)) < len(term):
            raise UnsupportedModelError(f"Einsum '{equation}' takes a diagonal, which is not read.")
    made, labels = operands[0], terms[0]
    if len(operands) == 1:
        made, labels = _summed(node, made, labels, out)
    for k in range(1, len(operands)):
        later = set(out).union(*terms[k + 1 :])
        made, labels = _pair(node, made, labels, operands[k], terms[k], later)
    if sorted(labels) != sorted(out):
        raise ModelFileError(f"Einsum '{equation}' has an output that its inputs do not have.")
    return transposed(node, made, [labels.index(letter) for letter in out])


def _summed(node: Node, x: Value, labels: str, kept: Sequence[str] | set[str]) -> tuple[Value, str]:
    """Sum over the axes that nobody asks for."""
    axes = tuple(i for i, letter in enumerate(labels) if letter not in kept)
    if not axes:
        return x, labels
    left = "".join(letter for letter in labels if letter in kept)
    made = node.apply(Reduce(axes), x)
    return with_shape(node, made, tuple(n for i, n in enumerate(x.shape) if i not in axes)), left


def _pair(node: Node, a: Value, p: str, b: Value, q: str, later: set[str]) -> tuple[Value, str]:
    """Multiply two operands, and sum over what is in both and asked for no more."""
    a, p = _summed(node, a, p, later | set(q))
    b, q = _summed(node, b, q, later | set(p))
    lengths = dict(zip(p, a.shape, strict=True))
    if any(lengths.setdefault(letter, n) != n for letter, n in zip(q, b.shape, strict=True)):
        raise ModelFileError(f"Einsum multiplies axes of different lengths: {a.shape} and {b.shape}.")
    batch = [letter for letter in p if letter in q and letter in later]
    inner = [letter for letter in p if letter in q and letter not in later]
    first = [letter for letter in p if letter not in q]
    second = [letter for letter in q if letter not in p]

    def matrix(x: Value, labels: str, rows: list[str], columns: list[str]) -> Value:
        order = [labels.index(letter) for letter in (*batch, *rows, *columns)]
        sizes = [[lengths[letter] for letter in part] for part in (batch, rows, columns)]
        return with_shape(node, transposed(node, x, order), (*sizes[0], *map(math.prod, sizes[1:])))

    made = product(node, matrix(a, p, first, inner), matrix(b, q, inner, second))
    labels = "".join((*batch, *first, *second))
    return with_shape(node, made, [lengths[letter] for letter in labels]), labels


def _one_axis(node: Node) -> int:
    given = node.constant(1)
    if given.ndim > 1 or given.size != 1:
        raise ModelFileError(f"CumSum needs one axis; got an array of shape {given.shape}.")
    return int(given.item())


def _cumulative_sum(node: Node) -> Value:
    """Sum up to every entry along an axis: a product with a triangle of ones."""
    x = node.operand(0)
    if not isinstance(x, Tensor):
        from pindown.io._onnx.constants import CONSTANTS

        return CONSTANTS["CumSum"](node)  # type: ignore[return-value]
    rank = len(x.shape)
    axis = node.axis(_one_axis(node), rank)
    n = x.shape[axis]
    bearable((n, n))
    ones = np.tril(np.ones((n, n)), -1 if node.flag("exclusive", False) else 0)
    ones = ones.T if node.flag("reverse", False) else ones
    order = [*(i for i in range(rank) if i != axis), axis]
    moved = transposed(node, x, order)
    made = _of_tensors(node, moved, ones.T)  # no weights: they would count as parameters
    return transposed(node, made, np.argsort(order).tolist())


PRODUCTS: dict[str, Rule] = {
    "CumSum": _cumulative_sum,
    "Einsum": _einsum,
    "Gemm": gemm_with_bias,
    "MatMul": _matmul,
}
