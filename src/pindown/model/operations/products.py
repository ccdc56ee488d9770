r"""Products of tensors: entry by entry, of a tensor with itself, and matrix products, as in attention.

On a box :math:`x \in [l, u]`, :math:`y \in [m, v]` two planes lie below the product (McCormick 1976),

.. math::
    xy \ge m x + l y - l m, \qquad xy \ge v x + u y - u v ,

and so does :math:`\lambda` times the first plus :math:`1 - \lambda` times the second. All of them are
equally far from the product at the centre. Taken here is :math:`\lambda = (\alpha + \beta) / 2` with

.. math::
    \alpha = \frac{v}{v - m}, \qquad \beta = \frac{u}{u - l}, \qquad \text{both cut to } [0, 1]:

its smallest value on the box is the product's own. Upper planes are those of :math:`-x(-y)`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pindown.affine import Array
from pindown.model._expression import Expression
from pindown.model._lowering import Lowering
from pindown.model.operations.operation import (
    EntrywiseLines,
    Interval,
    NotPiecewiseLinearError,
    Numbers,
    Operation,
    Pulled,
    Relaxation,
    Shape,
    Writer,
    _summed,
    aligned,
    charged,
    dot,
    unbroadcast,
)
from pindown.rounding import TINY, add_down, add_up, gamma

_BLOCK_ENTRIES = 2**21  # products that an interval of a matrix product looks at together: 16 MB


@dataclass(frozen=True, eq=False)
class Multiply(Operation):
    """``x * y``, entry by entry, of two tensors that broadcast; a tensor with itself is :class:`Square`.

    >>> x, y = np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]])
    >>> Multiply()(x, y)
    array([[3., 8.]])
    >>> Multiply().interval(Interval(x - 2, x), Interval(y, y)).lower.round(9)
    array([[-3.,  0.]])
    """

    @property
    def name(self) -> str:
        """What users call it."""
        return "Mul"

    def shape(self, *shapes: Shape) -> Shape:
        """Broadcast."""
        x, y = shapes
        return np.broadcast_shapes(x, y)

    def __call__(self, *inputs: Numbers) -> Numbers:
        """Multiply."""
        x, y = _alike(*inputs)
        return np.asarray(x * y)

    def interval(self, *boxes: Interval) -> Interval:
        """Return the smallest and the largest of the four products of ends."""
        (xl, yl), (xu, yu) = (
            _alike(boxes[0].lower, boxes[1].lower),
            _alike(boxes[0].upper, boxes[1].upper),
        )
        pairs = [(x, y) for x in (xl, xu) for y in (yl, yu)]
        ends = [(_product(x, y), (x == 0) | (y == 0)) for x, y in pairs]
        # A product by zero is exact; of the others one rounding is taken back.
        low = np.minimum.reduce([np.where(exact, v, np.nextafter(v, -np.inf)) for v, exact in ends])
        high = np.maximum.reduce([np.where(exact, v, np.nextafter(v, np.inf)) for v, exact in ends])
        return Interval(low, high)

    def relaxation(self, *boxes: Interval) -> Relaxation:
        """Return one McCormick plane below and one above, for every entry."""
        (xl, yl), (xu, yu) = (
            _alike(boxes[0].lower, boxes[1].lower),
            _alike(boxes[0].upper, boxes[1].upper),
        )
        values = self.interval(*boxes)
        with np.errstate(over="ignore", invalid="ignore"):
            alpha, beta = _share(yl, yu), _share(xl, xu)
            low, high = (alpha + beta) / 2.0, (1.0 - alpha + beta) / 2.0
            a, b = yu - low * (yu - yl), xu - low * (xu - xl)
            s, t = yl + high * (yu - yl), xu - high * (xu - xl)
            corners = [(x, y) for x in (xl, xu) for y in (yl, yu)]
            # With the slopes as they are in float64: what is left is bilinear and extreme at a corner.
            below = np.minimum.reduce([_rest(x, y, a, b, -1) for x, y in corners])
            above = np.maximum.reduce([_rest(x, y, s, t, 1) for x, y in corners])
        known = np.isfinite(below) & np.isfinite(above)
        a, b, s, t = (np.where(known, slope, 0.0) for slope in (a, b, s, t))
        below, above = np.where(known, below, values.lower), np.where(known, above, values.upper)
        return EntrywiseLines((a, b), below, (s, t), above, boxes)

    def pull_back(self, form: Array, *inputs: Array) -> tuple[Array, ...]:
        """Multiply by the other tensor."""
        x, y = _alike(*inputs)
        return unbroadcast(form * y, inputs[0].shape[1:]), unbroadcast(form * x, inputs[1].shape[1:])

    def lower(self, lowering: Lowering, *inputs: Expression) -> Expression:
        """Scale one tensor if the other one is constant."""
        x, y = inputs
        if x.terms and y.terms:
            raise NotPiecewiseLinearError(
                "Mul of two tensors that both depend on the input is not piecewise linear"
            )
        moving, fixed = (x, y) if x.terms else (y, x)
        return moving.scale(fixed.constant.reshape(fixed.shape))

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write Mul."""
        return writer.node("Mul", inputs)


@dataclass(frozen=True, eq=False)
class Square(Operation):
    """``x * x``: never negative, which two tensors that happen to be equal would not show.

    >>> Square().interval(Interval(np.array([[-1.0]]), np.array([[2.0]]))).lower
    array([[0.]])
    """

    @property
    def name(self) -> str:
        """What users call it."""
        return "Square"

    def shape(self, *shapes: Shape) -> Shape:
        """Keep the shape."""
        return shapes[0]

    def __call__(self, *inputs: Numbers) -> Numbers:
        """Square."""
        return np.asarray(inputs[0] * inputs[0])

    def interval(self, *boxes: Interval) -> Interval:
        """Square the ends; the smallest is zero if the box holds it."""
        low, high = boxes[0]
        with np.errstate(over="ignore"):
            ends = np.minimum(np.abs(low), np.abs(high)) ** 2, boxes[0].reach ** 2
        smallest = np.where(
            (low <= 0) & (high >= 0), 0.0, np.maximum(np.nextafter(ends[0], -np.inf), 0.0)
        )
        return Interval(smallest, np.where(ends[1] == 0, boxes[0].reach, np.nextafter(ends[1], np.inf)))

    def relaxation(self, *boxes: Interval) -> Relaxation:
        """Return the tangent at the centre below, and the chord above."""
        low, high = boxes[0]
        with np.errstate(over="ignore", invalid="ignore"):
            slope = low + high
            # x^2 - a x is least at a / 2, and largest at an end.
            below = -np.nextafter(slope**2 / 4.0, np.inf) - TINY
            zero = np.zeros(())
            above = np.maximum(_rest(low, low, slope, zero, 1), _rest(high, high, slope, zero, 1))
        known = np.isfinite(below) & np.isfinite(above)
        values = self.interval(*boxes)
        slope = np.where(known, slope, 0.0)
        below, above = np.where(known, below, values.lower), np.where(known, above, values.upper)
        return EntrywiseLines((slope,), below, (slope,), above, boxes)

    def pull_back(self, form: Array, *inputs: Array) -> tuple[Array, ...]:
        """Multiply by twice the tensor."""
        return (2.0 * form * inputs[0],)

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write Mul."""
        return writer.node("Mul", [inputs[0], inputs[0]])


@dataclass(frozen=True, eq=False)
class MatrixProduct(Operation):
    """``x @ y`` of two tensors, with batch axes and vectors as :func:`numpy.matmul` takes them.

    >>> x, y = np.array([[[1.0, 2.0]]]), np.array([[[3.0], [4.0]]])
    >>> MatrixProduct()(x, y)
    array([[[11.]]])
    """

    @property
    def name(self) -> str:
        """What users call it."""
        return "MatMul"

    def shape(self, *shapes: Shape) -> Shape:
        """Multiply arrays without memory, and look at the shape."""
        x, y = shapes
        lengths = x[-1:], y[-2:-1] if len(y) > 1 else y
        if not x or not y or lengths[0] != lengths[1]:
            raise ValueError(f"a matrix product of tensors of shapes {x} and {y} does not exist.")
        rows, columns = x[-2:-1], y[-1:] if len(y) > 1 else ()
        return (*np.broadcast_shapes(x[:-2], y[:-2]), *rows, *columns)

    def __call__(self, *inputs: Numbers) -> Numbers:
        """Multiply."""
        x, y = _as_matrices(*inputs)
        return np.matmul(x, y).reshape(len(x), *self.shape(*(z.shape[1:] for z in inputs)))

    def interval(self, *boxes: Interval) -> Interval:
        """Sum the smallest and the largest of the four products of ends, term by term."""
        lows, highs = (_as_matrices(boxes[0][end], boxes[1][end]) for end in (0, 1))
        (xl, yl), (xu, yu) = lows, highs
        K = xl.shape[-1]
        shape = (len(xl), *self.shape(*(box.lower.shape[1:] for box in boxes)))
        with np.errstate(over="ignore", invalid="ignore"):
            X, Y = np.maximum(np.abs(xl), np.abs(xu)), np.maximum(np.abs(yl), np.abs(yu))
            sizes = np.matmul(X, Y)
            low, high = np.zeros(sizes.shape), np.zeros(sizes.shape)
            step = max(1, _BLOCK_ENTRIES // max(1, sizes.size))
            times = np.multiply if np.isfinite(X).all() and np.isfinite(Y).all() else _product
            for start in range(0, K, step):
                k = slice(start, start + step)
                left = [x[..., k, None] for x in (xl, xu)]
                right = [y[..., None, k, :] for y in (yl, yu)]
                least = most = times(left[0], right[0])
                for x, y in ((0, 1), (1, 0), (1, 1)):
                    end = times(left[x], right[y])
                    least, most = np.minimum(least, end), np.maximum(most, end)
                low += least.sum(axis=-2)
                high += most.sum(axis=-2)
            slack = 2.0 * gamma(K + 8) * sizes + (K + 8) * TINY
            if (sizes == 0).any():  # where all terms are zero, and do not only underflow, that is exact
                slack = np.where(np.matmul(X > 0, Y > 0), slack, 0.0)
            low, high = add_down(low, -slack), add_up(high, slack)
        unknown = ~(np.isfinite(low) & np.isfinite(high))
        low[unknown], high[unknown] = -np.inf, np.inf
        return Interval(low.reshape(shape), high.reshape(shape))

    def relaxation(self, *boxes: Interval) -> Relaxation:
        """Return McCormick planes of every product, summed by matrix products."""
        return ProductForms(boxes, self.shape(*(box.lower.shape[1:] for box in boxes)))

    def pull_back(self, form: Array, *inputs: Array) -> tuple[Array, ...]:
        """Multiply by the transpose of the other matrix."""
        x, y = _as_matrices(*inputs)
        batch = np.broadcast_shapes(x.shape[1:-2], y.shape[1:-2])
        form = form.reshape(len(form), *batch, x.shape[-2], y.shape[-1])
        forms = np.matmul(form, y.swapaxes(-1, -2)), np.matmul(x.swapaxes(-1, -2), form)
        return tuple(
            unbroadcast(f, z.shape[1:]).reshape(given.shape)
            for f, z, given in zip(forms, (x, y), inputs, strict=True)
        )

    def multiply_adds(self, *shapes: Shape) -> int:
        """One for each product."""
        return math.prod(self.shape(*shapes)) * shapes[0][-1]

    def lower(self, lowering: Lowering, *inputs: Expression) -> Expression:
        """Multiply by a matrix if one of the two is constant."""
        x, y = inputs
        if x.terms and y.terms:
            raise NotPiecewiseLinearError(
                "MatMul of two tensors that both depend on the input is not piecewise linear"
            )
        if x.terms:
            return x.times_matrix(y.constant.reshape(y.shape))
        return y.matrix_times(x.constant.reshape(x.shape))

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write MatMul."""
        return writer.node("MatMul", inputs)


@dataclass(frozen=True, eq=False)
class ProductForms(Relaxation):
    r"""McCormick planes of all products in ``x @ y``, pulled back without listing the products.

    The share of the first plane is half of something of x plus half of something of y, so that sums of
    slopes over one index are matrix products themselves.
    """

    boxes: tuple[Interval, ...]
    out_shape: Shape

    def upper(self, form: Array) -> Pulled:
        """Take upper planes where the coefficient is positive, lower ones where it is negative."""
        n, q = form.shape[:2]
        (xl, yl), (xu, yu) = (_as_matrices(self.boxes[0][end], self.boxes[1][end]) for end in (0, 1))
        batch = np.broadcast_shapes(xl.shape[1:-2], yl.shape[1:-2])
        form = form.reshape(n, q, *batch, xl.shape[-2], yl.shape[-1])
        known = [np.isfinite(end).reshape(n, -1).all(axis=1) for end in (xl, xu, yl, yu)]
        unknown = ~np.logical_and.reduce(known)
        if unknown.any():  # those of the n boxes that are not bounded
            xl, xu, yl, yu = (np.where(np.isfinite(end), end, 0.0) for end in (xl, xu, yl, yu))
        with np.errstate(over="ignore", invalid="ignore"):
            beta, alpha = _share(xl, xu), _share(yl, yu)
            above = _planes(np.maximum(form, 0.0), xl, xu, yu, yl, beta, 1.0 - alpha)
            below = _planes(np.minimum(form, 0.0), xl, xu, yl, yu, beta, alpha)
            X, Y = np.maximum(np.abs(xl), np.abs(xu)), np.maximum(np.abs(yl), np.abs(yu))
            # Every coefficient and offset is a sum of at most eight terms of this size for each product.
            terms = 32.0 * dot(np.abs(form), np.broadcast_to(np.matmul(X, Y), (n, *form.shape[2:])))
            lost = (
                8.0
                * TINY
                * form[0, 0].size
                * (X.reshape(n, -1).sum(axis=1) + Y.reshape(n, -1).sum(axis=1))
            )
            offset = add_up(above[2] + below[2], lost[:, None])
        offset = charged(offset, terms, form[0, 0].size + X.shape[-1])
        offset[unknown & (form.reshape(n, -1) != 0).any(axis=1)] = np.inf
        forms = tuple(
            (a + b).reshape(n, q, *box.lower.shape[1:])
            for a, b, box in zip(above[:2], below[:2], self.boxes, strict=True)
        )
        return Pulled(forms, offset)


def _planes(
    form: Array, xl: Array, xu: Array, y0: Array, y1: Array, beta: Array, alpha: Array
) -> tuple[Array, Array, Array]:
    r"""Pull a form through ``t (y0 x + xl y - xl y0) + (1 - t) (y1 x + xu y - xu y1)``.

    With :math:`t = (\alpha + \beta) / 2` every part of it is a matrix product.
    """
    half_y, half_x = (y1 - y0) / 2.0, (xu - xl) / 2.0
    for_x = np.matmul(form, _turned(y1 - alpha * half_y))
    for_x -= beta[:, None] * np.matmul(form, _turned(half_y))
    for_y = np.matmul(_turned(xu - beta * half_x), form)
    for_y -= alpha[:, None] * np.matmul(_turned(half_x), form)
    shared = (np.matmul(beta * xu, y1) + np.matmul(xu, alpha * y1)) / 2.0
    shared -= (np.matmul(beta * xl, y0) + np.matmul(xl, alpha * y0)) / 2.0
    constant = np.broadcast_to(shared - np.matmul(xu, y1), (len(form), *form.shape[2:]))
    return _summed(for_x, xl.shape[1:]), _summed(for_y, y0.shape[1:]), dot(form, constant)


def _turned(matrices: Array) -> Array:
    """Transpose matrices (n, ..., i, k), with an axis for the forms."""
    return matrices.swapaxes(-1, -2)[:, None]


def _alike(x: Numbers, y: Numbers) -> tuple[Numbers, Numbers]:
    """Give two tensors the same number of axes."""
    rank = max(x.ndim, y.ndim) - 1
    return aligned(x, rank), aligned(y, rank)


def _as_matrices(x: Numbers, y: Numbers) -> tuple[Numbers, Numbers]:
    """Give both operands of a matrix product the same number of axes, at least two besides the first."""
    x = x[:, None, :] if x.ndim == 2 else x
    y = y[:, :, None] if y.ndim == 2 else y
    return _alike(x, y)


def _product(x: Array, y: Array) -> Array:
    """Multiply; zero times an infinite end is zero."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        product = x * y
    return product if np.isfinite(product).all() else np.where((x == 0) | (y == 0), 0.0, product)


def _share(low: Array, high: Array) -> Array:
    """Return ``high / (high - low)`` cut to [0, 1]; any number there is allowed."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        share = np.clip(high / (high - low), 0.0, 1.0)
    return np.where(np.isfinite(share), share, 0.5)


def _rest(x: Array, y: Array, a: Array, b: Array, sign: int) -> Array:
    """Return ``x y - a x - b y``, rounded up for the sign 1, down for -1."""
    product, parts = x * y, (a * x, b * y)
    sizes = np.abs(product) + np.abs(parts[0]) + np.abs(parts[1])
    slack = 2.0 * gamma(4) * sizes + 4.0 * TINY
    value = product - parts[0] - parts[1]
    return add_up(value, slack) if sign > 0 else add_down(value, -slack)
