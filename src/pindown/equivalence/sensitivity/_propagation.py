r"""Carry a bound on a difference of activations through the layers.

Two copies of a network whose preactivations at layer l differ by s differ further on by

.. math::
    e_k = \Lambda_k W_k e_{k-1}, \qquad 0 \le \Lambda_k \le 1 \text{ diagonal},

the slopes of the ReLUs between the two values. So :math:`|e_k| \le |W_k| |e_{k-1}|` entry by entry and
:math:`\|e_k\| \le \|W_k\| \|e_{k-1}\|`; keeping both, each improves the other. All sums of absolute
values are rounded up.

Where the activations themselves can be is bounded on a box, or on all of :math:`\mathbb{R}^d`. Without a
box everything is divided by :math:`1 + \|x\|`. ReLU commutes with positive factors, so the scaled
activations are those of a network with input :math:`\xi = x / (1 + \|x\|)` and biases :math:`\tau b_l`,
:math:`\tau = 1 / (1 + \|x\|)`, and :math:`\|\xi\| + \tau = 1` bounds both.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
import scipy.sparse as sp

from pindown.affine import Affine, Array, Matrix
from pindown.box import Box
from pindown.deadline import NEVER, Deadline
from pindown.equivalence.tuning import BLOCK_ENTRIES
from pindown.model.operations.operation import Interval
from pindown.network import ReluNetwork
from pindown.relaxation.intervals import interval_bounds
from pindown.relaxation.linear import linear_bounds
from pindown.relaxation.operator_norms import spectral_norm, tight_cost
from pindown.rounding import SMALLEST, add_down, add_up, gamma, norm_up, product_up


@dataclass(frozen=True, eq=False)
class Spread:
    """Bounds on a vector: entry by entry, and its Euclidean length.

    Attributes:
        entries: At least the absolute values.
        length: At least the length.
    """

    entries: Array
    length: float

    @staticmethod
    def of(entries: Array, length: float = inf) -> Spread:
        """Return both bounds, each used to improve the other."""
        return Spread(np.minimum(entries, length), min(length, norm_up(entries)))

    def plus(self, other: Spread) -> Spread:
        """Bound the sum of two vectors."""
        length = float(sum_above(self.length, other.length))
        return Spread.of(sum_above(self.entries, other.entries), length)


class Propagation:
    r"""The weights of a network with what bounds their products.

    Args:
        weights: :math:`W_1, \dots, W_L`.
        norms: Whether to use Euclidean norms of the matrices besides rows and absolute values.
        deadline: When it is over, no further norm is computed tightly.

    >>> chain = Propagation([np.eye(2), np.array([[3.0, 4.0], [4.0, -3.0]])], norms=True)
    >>> chain.through(1, Spread.of(np.array([1.0, 0.0]))).entries.round(6)
    array([3., 4.])
    """

    def __init__(
        self, weights: list[Matrix], *, norms: bool = False, deadline: Deadline = NEVER
    ) -> None:
        self.weights = weights
        self.norms = [inf] * len(weights)
        self.rows = [row_norms_above(W) for W in weights]
        if norms:
            for i in sorted(range(len(weights)), key=lambda i: tight_cost(weights[i])):
                self.norms[i] = spectral_norm(weights[i], budget=deadline.left).value

    def through(self, layer: int, e: Spread) -> Spread:
        r"""Bound :math:`W e` for the layer with that index, from 0."""
        entries = product_above(self.weights[layer], e.entries)
        rows = self.rows[layer]
        if not 0.0 < e.length < inf:
            return Spread.of(entries)
        with np.errstate(over="ignore"):
            entries = np.minimum(entries, np.where(rows > 0.0, np.nextafter(rows * e.length, inf), 0.0))
        return Spread.of(entries, product_up([self.norms[layer], e.length]))

    def to_output(self, layer: int, source: Spread) -> Array:
        """Bound what a source at the preactivations of a layer does to every output."""
        e = source
        for i in range(layer + 1, len(self.weights)):
            e = self.through(i, e)
        return e.entries


def product_above(W: Matrix, v: Array) -> Array:
    r"""Return at least :math:`|W| v` for :math:`v \ge 0`; infinite where v has an infinite entry.

    >>> product_above(np.array([[1.0, -2.0]]), np.array([3.0, 4.0])).round(9)
    array([11.])
    """
    n = W.shape[1]
    if not np.isfinite(v).all():
        return np.full(W.shape[0], np.inf)
    with np.errstate(over="ignore"):
        if sp.issparse(W):
            total = np.asarray(abs(W) @ v)
        else:
            total = np.empty(len(W))
            step = max(1, BLOCK_ENTRIES // n)
            for start in range(0, len(W), step):
                rows = slice(start, start + step)
                total[rows] = np.abs(W[rows]) @ v
        # Where nothing is added nothing is lost: an exact zero stays one.
        exact = total == 0.0
        if exact.any() and not _safe(W, v):
            exact[:] = False
        lost = np.where(exact, 0.0, n * SMALLEST)
        return np.asarray(total * (1.0 + 2.0 * gamma(n + 4)) + lost)


def sum_above(*terms: Array | float) -> Array:
    """Return at least the sum of non-negative arrays, entry by entry."""
    with np.errstate(over="ignore"):
        return np.asarray(sum(np.asarray(t) for t in terms) * (1.0 + 2.0 * gamma(len(terms) + 1)))


def row_norms_above(W: Matrix) -> Array:
    """Return at least the Euclidean length of every row."""
    parts = W.data if sp.issparse(W) else W
    top = float(np.max(np.abs(parts), initial=0.0))
    if top == 0.0:
        return np.zeros(W.shape[0])
    power = int(np.frexp(top)[1])
    scaled = abs(W)
    if sp.issparse(W):
        scaled.data = np.ldexp(scaled.data, -power)
        squares = np.asarray((scaled * scaled).sum(axis=1)).reshape(-1)
    else:
        scaled = np.ldexp(scaled, -power)
        squares = np.einsum("ij,ij->i", scaled, scaled)
    n = W.shape[1]
    used = (
        np.asarray(abs(W).max(axis=1).todense()).reshape(-1) if sp.issparse(W) else np.abs(W).max(axis=1)
    )
    squares = np.where(used > 0.0, squares + n * SMALLEST, 0.0)
    with np.errstate(over="ignore"):
        return np.asarray(
            np.ldexp(np.sqrt(squares) * (1.0 + gamma(n + 8)), power) + SMALLEST * (used > 0.0)
        )


def _safe(W: Matrix, v: Array) -> bool:
    """Return whether no product of two numbers other than zero can underflow to zero."""
    numbers = [W.data if sp.issparse(W) else W, v]
    low = [float(np.min(np.abs(x), initial=1.0, where=x != 0.0)) for x in numbers]
    return low[0] * low[1] >= SMALLEST


@dataclass(frozen=True, eq=False)
class Range:
    """The vectors ``center + v`` with ``|v| <= reach.entries`` and ``||v|| <= reach.length``.

    Attributes:
        center: A float64 vector.
        reach: Bounds on the deviation from it.
        largest: At least the absolute value of every entry.
    """

    center: Array
    reach: Spread
    largest: Array


def activation_ranges(
    net: ReluNetwork, chain: Propagation, box: Box | None, *, deadline: Deadline | None = None
) -> list[Range]:
    r"""Bound the input and the values after every ReLU layer.

    Args:
        net: The network.
        chain: Its weights, with the norms that are to be used.
        box: The inputs, or None for all of :math:`\mathbb{R}^d`, values divided by :math:`1 + \|x\|`.
        deadline: Until when linear bounds may be tightened on a box; None for interval bounds only.
    """
    if box is None:
        return _relative(net, chain)
    whole = interval_bounds(net, box)
    if deadline is not None:
        whole = linear_bounds(net, box, deadline=deadline)
    return _on_box(net, chain, box, whole)


def _relative(net: ReluNetwork, chain: Propagation) -> list[Range]:
    d = net.in_features
    ranges = [Range(np.zeros(d), Spread(np.ones(d), 1.0), np.ones(d))]
    a = Spread(np.ones(d), 1.0)
    for i, layer in enumerate(net.layers[:-1]):
        offset = Spread.of(np.abs(layer.bias))
        a = chain.through(i, a)
        if i == 0:  # the unit ball and the bias share one budget, see above
            a = Spread.of(np.maximum(a.entries, offset.entries), max(a.length, offset.length))
        else:
            a = a.plus(offset)
        half = a.entries / 2
        ranges.append(_best(Interval(np.zeros_like(half), a.entries), Range(0 * half, a, a.entries)))
    return ranges


def _on_box(net: ReluNetwork, chain: Propagation, box: Box, whole: tuple[Interval, ...]) -> list[Range]:
    center, radius = box.center, box.radius
    reach = Spread.of(radius)
    ranges = [Range(center, reach, np.maximum(np.abs(box.lower), np.abs(box.upper)))]
    point = interval_bounds(net, Box(center, center))
    for i in range(net.depth - 1):
        reach = chain.through(i, reach)  # ReLU does not increase differences
        low, high = (np.maximum(end, 0.0) for end in point[i])
        middle = low / 2 + high / 2
        if not np.isfinite(middle).all():
            middle = np.zeros_like(middle)
            low, high = -np.full_like(middle, inf), np.full_like(middle, inf)
        blur = np.maximum(add_up(high, -middle), add_up(middle, -low))
        around = reach.plus(Spread.of(blur))
        lower = np.maximum(np.maximum(whole[i].lower, 0.0), add_down(middle, -around.entries))
        upper = np.minimum(np.maximum(whole[i].upper, 0.0), add_up(middle, around.entries))
        ranges.append(_best(Interval(lower, upper), Range(middle, around, upper)))
    return ranges


def _best(interval: Interval, ball: Range) -> Range:
    """Describe the values around the middle of the interval or of the ball, whichever is smaller."""
    lower, upper = interval
    if not (np.isfinite(lower).all() and np.isfinite(upper).all()):
        return Range(ball.center, ball.reach, np.minimum(ball.largest, upper))
    middle = lower / 2 + upper / 2
    half = np.maximum(add_up(upper, -middle), add_up(middle, -lower))
    if norm_up(half) <= ball.reach.length:
        return Range(middle, Spread.of(half), upper)
    around = np.maximum(add_up(upper, -ball.center), add_up(ball.center, -lower))
    entries = np.maximum(np.minimum(around, ball.reach.entries), 0.0)
    return Range(ball.center, Spread.of(entries, ball.reach.length), upper)


def affine_values(layer: Affine, center: Array) -> tuple[Array, Array]:
    """Return ``W c + b`` in float64 and at least how far rounding moved each entry."""
    with np.errstate(over="ignore", invalid="ignore"):
        value = np.asarray(layer.weight @ center) + layer.bias
    if not np.isfinite(value).all():
        return np.zeros_like(layer.bias), np.full(len(layer.bias), inf)
    n = layer.in_features
    size = sum_above(product_above(layer.weight, np.abs(center)), np.abs(layer.bias))
    moved = np.where(size > 0.0, 2.0 * gamma(n + 4) * size + n * SMALLEST, 0.0)
    return value, moved
