"""Rules for torch operations that multiply tensors or sum along axes: matmul, einsum, means, norms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from pindown.errors import UnsupportedModelError
from pindown.io._torch.elementwise import add, div, mul, power, scaled, sub
from pindown.io._torch.graph import Graph, Rule, array, axes_of, axis_of
from pindown.io._torch.moves import expand, transpose, unsqueeze
from pindown.io._torch.values import Unread
from pindown.model.builder import Tensor
from pindown.model.operations.dense import Dense, Reduce
from pindown.model.operations.operation import Operation
from pindown.model.operations.piecewise_linear import Abs, Clip, Maximum, Minimum, ReduceMax, ReduceMin
from pindown.model.operations.products import MatrixProduct
from pindown.model.operations.smooth import Sqrt

# ---------------------------------------------------------------------- products


def linear(graph: Graph, x: Tensor, weight: Any, bias: Any = None, trained: int | None = None) -> Tensor:
    """Return ``x @ weight.T + bias``; all of its numbers are trained, if nothing else is said."""
    if isinstance(weight, Tensor):
        product = matmul(graph, x, transpose(graph, weight, -1, -2))
        return product if bias is None else add(graph, product, bias)
    if isinstance(bias, Tensor):
        return add(graph, linear(graph, x, weight), bias)
    if weight.ndim == 1:
        return add(graph, matmul(graph, x, weight), 0.0 if bias is None else bias)
    make = lambda: Dense(array(weight), None if bias is None else array(bias), trained=trained)  # noqa: E731
    return graph.add(graph.once("Dense", make, weight, bias), x)


def functional_linear(graph: Graph, x: Tensor, weight: Any, bias: Any = None) -> Tensor:
    """Return ``x @ weight.T + bias``, where the weight may be a table that is not trained."""
    return linear(graph, x, weight, bias, graph.take_trained())


def matmul(graph: Graph, x: Any, other: Any) -> Tensor:
    """Return the matrix product; vectors are rows on the left and columns on the right."""
    if isinstance(other, torch.Tensor) and other.ndim == 2:
        trained = graph.take_trained()
        return graph.add(graph.once("MatMul", lambda: Dense(array(other.mT), trained=trained), other), x)
    if isinstance(x, torch.Tensor) and x.ndim == 2 and len(other.shape) > 1:
        trained = graph.take_trained()
        return graph.add(
            graph.once("Dense -2", lambda: Dense(array(x), axis=-2, trained=trained), x), other
        )
    left, right = len(x.shape) == 1, len(other.shape) == 1
    if left:
        x = unsqueeze(graph, graph.tensor(x), 0)
    if right:
        other = unsqueeze(graph, graph.tensor(other), 1)
    product = graph.add(MatrixProduct(), x, other)
    shape = list(product.shape)
    if right:
        del shape[-1]
    if left:
        del shape[-1 if right else -2]
    return graph.reshape(product, shape)


def addmm(graph: Graph, bias: Any, x: Any, other: Any, beta: float = 1, alpha: float = 1) -> Tensor:
    """Return ``beta * bias + alpha * x @ other``."""
    product = matmul(graph, x, other)
    if alpha != 1:
        product = scaled(graph, product, alpha)
    return add(graph, product, bias, beta)


def outer(graph: Graph, x: Any, other: Any) -> Tensor:
    """Return all products of entries of two vectors."""
    return mul(graph, unsqueeze(graph, graph.tensor(x), 1), other)


def bilinear(graph: Graph, x: Any, other: Any, weight: Any, bias: Any = None) -> Tensor:
    r"""Return :math:`x W_k y` for every k."""
    inner = einsum(graph, "...i,kij->...kj", x, weight)
    product = mul(graph, inner, unsqueeze(graph, graph.tensor(other), -2))
    total = reduced(graph, product, -1)
    return total if bias is None else add(graph, total, bias)


def einsum(graph: Graph, equation: str, *operands: Any) -> Tensor:
    """Return the sum of products that an equation for one or two tensors describes."""
    if len(operands) == 1 and isinstance(operands[0], list | tuple):
        operands = tuple(operands[0])
    inputs, output = _labels(equation.replace(" ", ""), [len(v.shape) for v in operands])
    if len(operands) == 1:
        return _arranged(graph, operands[0], inputs[0], output)
    if len(operands) != 2:
        raise UnsupportedModelError(
            "einsum of more than two tensors is not read; write products of two."
        )
    a, b = inputs
    for labels in inputs:
        if len(set(labels)) < len(labels):
            raise UnsupportedModelError("einsum with a letter twice in one tensor is not read.")
    batch = [s for s in a if s in b and s in output]
    inner = [s for s in a if s in b and s not in output]
    rows, columns = (
        [s for s in a if s not in b and s in output],
        [s for s in b if s not in a and s in output],
    )
    lengths = dict(zip([*a, *b], [*operands[0].shape, *operands[1].shape], strict=True))
    x = _grouped(graph, operands[0], a, (batch, rows, inner), lengths)
    y = _grouped(graph, operands[1], b, (batch, inner, columns), lengths)
    product = graph.reshape(matmul(graph, x, y), [lengths[s] for s in (*batch, *rows, *columns)])
    return graph.transpose(product, [(*batch, *rows, *columns).index(s) for s in output])


def _labels(equation: str, ranks: list[int]) -> tuple[list[str], str]:
    """Return the letters of every tensor and of the result, with letters of their own for the dots."""
    left, _, output = equation.partition("->")
    inputs = left.split(",")
    if len(inputs) != len(ranks):
        raise UnsupportedModelError(
            f"the equation {equation!r} is for {len(inputs)} tensors; got {len(ranks)}."
        )
    spare = [chr(0x391 + i) for i in range(16)]  # letters that no one writes
    counts = [rank - len(labels.replace("...", "")) for labels, rank in zip(inputs, ranks, strict=True)]
    most = max((n for n, labels in zip(counts, inputs, strict=True) if "..." in labels), default=0)
    dots = "".join(spare[:most])
    filled = [s.replace("...", dots[most - n :]) for s, n in zip(inputs, counts, strict=True)]
    if "->" not in equation:
        once = sorted(s for s in set(left) if s.isalpha() and left.count(s) == 1)
        return filled, dots + "".join(once)
    return filled, output.replace("...", dots)


def _arranged(graph: Graph, x: Tensor, labels: str, output: str) -> Tensor:
    """Sum over the axes that are not in the result, and put the others in order."""
    if len(set(labels)) < len(labels):
        raise UnsupportedModelError("einsum with a letter twice in one tensor is not read.")
    gone = [i for i, s in enumerate(labels) if s not in output]
    x = reduced(graph, x, gone) if gone else x
    kept = [s for s in labels if s in output]
    return graph.transpose(x, [kept.index(s) for s in output])


def _grouped(graph: Graph, x: Any, labels: str, groups: Any, lengths: dict[str, int]) -> Any:
    """Put axes into groups: the first ones stay, the two others become one axis each."""
    batch, first, second = groups
    shape = [*(lengths[s] for s in batch), *(math.prod(lengths[s] for s in g) for g in (first, second))]
    if isinstance(x, torch.Tensor):
        gone = [i for i, s in enumerate(labels) if s not in (*batch, *first, *second)]
        x = x.sum(gone) if gone else x
        kept = [s for s in labels if s in (*batch, *first, *second)]
        return x.permute([kept.index(s) for s in (*batch, *first, *second)]).reshape(shape)
    return graph.reshape(_arranged(graph, x, labels, "".join((*batch, *first, *second))), shape)


# ---------------------------------------------------------------------- reductions


def dropped(graph: Graph, x: Tensor, axes: tuple[int, ...], keepdim: bool) -> Tensor:
    """Drop axes that a reduction left with length one, unless they are kept."""
    if keepdim:
        return x
    return graph.reshape(x, [n for axis, n in enumerate(x.shape) if axis not in axes])


def reduced(
    graph: Graph, x: Tensor, dim: Any = None, keepdim: bool = False, mean: bool = False
) -> Tensor:
    """Return the sum or the mean over axes."""
    axes = axes_of(x.shape, dim)
    return dropped(graph, graph.add(Reduce(axes, mean=mean), x), axes, keepdim)


def total(graph: Graph, x: Tensor, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """Return the sum over axes."""
    return reduced(graph, x, dim, keepdim)


def mean(graph: Graph, x: Tensor, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """Return the mean over axes."""
    return reduced(graph, x, dim, keepdim, mean=True)


def extreme(operation: type[Operation], both: type[Operation]) -> Rule:
    """Return the rule of ``max`` or ``min``: of all entries, along an axis, or of two tensors."""

    def rule(graph: Graph, x: Any, dim: Any = None, keepdim: bool = False, other: Any = None) -> Any:
        other = dim if isinstance(dim, Tensor | torch.Tensor) else other
        if other is not None:
            return graph.add(both(), x, other)
        axes = axes_of(x.shape, dim)
        values = dropped(graph, graph.add(operation(axes), x), axes, keepdim)  # type: ignore[call-arg]
        return values if dim is None else (values, Unread())

    return rule


def extreme_values(operation: type[Operation]) -> Rule:
    """Return the rule of ``amax`` or ``amin``."""

    def rule(graph: Graph, x: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
        axes = axes_of(x.shape, dim)
        return dropped(graph, graph.add(operation(axes), x), axes, keepdim)  # type: ignore[call-arg]

    return rule


def variance(
    graph: Graph,
    x: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    correction: float | None = None,
) -> Tensor:
    """Return the mean square without the mean; the count is one less, if nothing else is said."""
    if isinstance(dim, bool):  # var(x, unbiased)
        dim, unbiased = None, dim
    axes = axes_of(x.shape, dim)
    count = math.prod(x.shape[axis] for axis in axes)
    less = correction if correction is not None else (0 if unbiased is False else 1)
    centred = sub(graph, x, reduced(graph, x, axes, keepdim=True, mean=True))
    squares = graph.add(Reduce(axes, mean=True), power(graph, centred, 2.0))
    if less:
        squares = scaled(graph, squares, count / (count - less))
    return dropped(graph, squares, axes, keepdim)


def deviation(graph: Graph, x: Tensor, *arguments: Any, **options: Any) -> Tensor:
    """Return the square root of the variance."""
    return graph.add(Sqrt(), variance(graph, x, *arguments, **options))


def norm(
    graph: Graph,
    x: Tensor,
    p: Any = 2,
    dim: Any = None,
    keepdim: bool = False,
    dtype: Any = None,
    ord: Any = None,
) -> Tensor:
    """Return the p-norm over axes, for p = 1, 2 or infinity."""
    p = 2 if p in (None, "fro") and ord is None else (p if ord is None else ord)
    axes = axes_of(x.shape, dim)
    if p == 2:
        size = graph.add(Sqrt(), graph.add(Reduce(axes), power(graph, x, 2.0)))
    elif p == 1:
        size = graph.add(Reduce(axes), graph.add(Abs(), x))
    elif p == math.inf:
        size = graph.add(ReduceMax(axes), graph.add(Abs(), x))
    else:
        raise UnsupportedModelError(
            f"the norm with p = {p} is not read; pindown reads 1, 2 and infinity."
        )
    return dropped(graph, size, axes, keepdim)


def linalg_norm(
    graph: Graph, x: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False
) -> Tensor:
    """Return a vector norm; norms of matrices other than Frobenius' are not read."""
    matrix = (dim is None and len(x.shape) == 2) or (isinstance(dim, list | tuple) and len(dim) == 2)
    if matrix and ord not in (None, "fro"):
        raise UnsupportedModelError(f"the norm {ord!r} of a matrix is not read.")
    return norm(graph, x, 2 if ord is None else ord, dim, keepdim)


def normalize(graph: Graph, x: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Divide by the norm along an axis, or by ``eps`` where the norm is smaller."""
    size = norm(graph, x, p, dim, keepdim=True)
    return div(graph, x, graph.add(Clip(float(eps), math.inf), size))


def cosine_similarity(graph: Graph, x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Return the product of two normalised tensors, summed along an axis."""
    units = [
        normalize(graph, v, 2.0, dim, eps)
        if isinstance(v, Tensor)
        else torch.nn.functional.normalize(v, 2.0, dim, eps)
        for v in (x1, x2)
    ]
    return reduced(graph, mul(graph, *units), dim)


def cumsum(graph: Graph, x: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """Return the sums of the first entries along an axis."""
    axis = axis_of(x.shape, dim)
    lower = torch.from_numpy(np.tril(np.ones((x.shape[axis],) * 2)))
    last = transpose(graph, x, axis, -1)
    product = graph.add(MatrixProduct(), unsqueeze(graph, last, -2), lower.mT)
    return transpose(graph, graph.reshape(product, last.shape), axis, -1)


def logsumexp(graph: Graph, x: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """Return ``x - log_softmax(x)``, which is the same for all entries along an axis."""
    from pindown.io._torch.elementwise import log_softmax
    from pindown.io._torch.moves import narrow

    (axis,) = axes_of(x.shape, dim)
    difference = sub(graph, x, log_softmax(graph, x, axis))
    return dropped(graph, narrow(graph, difference, axis, 0, 1), (axis,), keepdim)


def broadcast_tensors(graph: Graph, *tensors: Any) -> Any:
    """Expand tensors to their common shape."""
    shape = np.broadcast_shapes(*(tuple(t.shape) for t in tensors))
    return tuple(expand(graph, graph.tensor(t), shape) for t in tensors)


PRODUCTS: dict[str, Rule] = {
    "linear": functional_linear,
    **dict.fromkeys(("matmul", "mm", "bmm", "mv", "dot"), matmul),
    **dict.fromkeys(("addmm", "baddbmm"), addmm),
    "outer": outer,
    "bilinear": bilinear,
    "einsum": einsum,
    "sum": total,
    "mean": mean,
    "amax": extreme_values(ReduceMax),
    "amin": extreme_values(ReduceMin),
    "max": extreme(ReduceMax, Maximum),
    "min": extreme(ReduceMin, Minimum),
    "var": variance,
    "std": deviation,
    "norm": norm,
    **dict.fromkeys(("linalg_norm", "linalg_vector_norm"), linalg_norm),
    "normalize": normalize,
    "cosine_similarity": cosine_similarity,
    "cumsum": cumsum,
    "logsumexp": logsumexp,
    "broadcast_tensors": broadcast_tensors,
}
