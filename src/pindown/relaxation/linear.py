r"""Linear bounds: every unit between two affine functions of the input, on a box, proved.

The lines of the triangle relaxation (:mod:`~pindown.relaxation.triangle`), put into a linear form of the
ReLUs by the sign of each coefficient, and carried back through the layers, give a linear form of the
input that bounds any unit. It keeps what interval bounds forget, that units depend on the same inputs.

The bounds hold for the exact real-number network. The carried coefficients A are float64 numbers and
taken for what they are; what rounding does to them in the step :math:`A z = (A W) a + A b` is at most
:math:`\gamma_n |A| |W| |a|`, and that is charged against proved bounds on :math:`|a|`.

Zhang et al. 2018, "Efficient neural network robustness certification with general activation
functions" (CROWN); Singh et al. 2019, "An abstract domain for certifying neural networks" (DeepPoly).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Affine, Array, Matrix, dense
from pindown.box import Box
from pindown.deadline import NEVER, Deadline
from pindown.io.accepting import on_network
from pindown.model.operations.operation import Interval
from pindown.network import ReluNetwork
from pindown.relaxation.first_layer import forms_by_corners
from pindown.relaxation.intervals import interval_bounds
from pindown.relaxation.triangle import triangle_relaxation
from pindown.relaxation.tuning import (
    CACHED_WEIGHT_ENTRIES,
    LINEAR_BLOCK_ENTRIES,
    LINEAR_BLOCK_PRODUCTS,
    SPARSE_PRODUCT_COST,
)
from pindown.rounding import TINY, add_up, gamma


class LinearForms(NamedTuple):
    """Affine functions of the input, one per box and row, that bound something from above.

    Attributes:
        weight: Coefficients, (n, q, d).
        offset: Constant terms, (n, q), rounding included; infinite where float64 cannot tell.
    """

    weight: Array
    offset: Array


@dataclass(frozen=True, eq=False, repr=False)
class Relaxation:
    """A network between lines, on n boxes at once.

    Attributes:
        net: The network.
        lower: Lower corners, (n, d).
        upper: Upper corners, (n, d).
        bounds: Proved bounds on what every affine layer gives, output last, each (n, m).
        reach: Proved bounds on the size of what every affine layer takes, each (n, m).
    """

    net: ReluNetwork
    lower: Array
    upper: Array
    bounds: tuple[Interval, ...]
    reach: tuple[Array, ...]

    def of_box(self, k: int) -> Relaxation:
        """Return the network on one of the boxes."""
        own = slice(k, k + 1)
        bounds = tuple(Interval(z.lower[own], z.upper[own]) for z in self.bounds)
        reach = tuple(size[own] for size in self.reach)
        return Relaxation(self.net, self.lower[own], self.upper[own], bounds, reach)

    def upper_forms(self, rows: ArrayLike) -> LinearForms:
        """Bound ``rows @ f(x)`` from above on each box, ``rows`` of shape (q, k)."""
        return _carried(self, self.net.depth - 1, np.asarray(rows, dtype=np.float64))

    def upper_bounds(self, rows: ArrayLike) -> Array:
        """Return proved upper bounds on ``rows @ f(x)``, one per box and row, (n, q)."""
        return largest(self.upper_forms(rows), self.lower, self.upper)


@on_network
def linear_bounds(
    net: ReluNetwork, box: Box, *, outputs: ArrayLike | None = None, deadline: Deadline = NEVER
) -> tuple[Interval, ...]:
    """Bound what enters every ReLU, and the output, for all inputs in the box.

    Args:
        net: The network, layers dense or sparse.
        box: The inputs; ``box.dim`` must equal ``net.in_features``.
        outputs: Linear forms of the outputs, (q, k), to bound instead of the outputs themselves, such
            as ``[[1, -1]]`` for the difference of two.
        deadline: When to stop tightening; bounds are looser then.

    Returns:
        One :class:`Interval` per affine layer, the output last; never wider than those of
        :func:`interval_bounds`, which cost a small part of the time.

    Raises:
        ValueError: If the box or ``outputs`` does not fit the network.

    Example:
        Intervals lose that both units read the same x in ``relu(x + 2) - relu(x + 1) = 1``:

        >>> net = ReluNetwork.from_layers([([[1.0], [1.0]], [2, 1]), ([[1.0, -1.0]], [0])])
        >>> [end.round(9).item() for end in interval_bounds(net, Box([0], [9]))[-1]]
        [-8.0, 10.0]
        >>> [end.round(9).item() for end in linear_bounds(net, Box([0], [9]))[-1]]
        [1.0, 1.0]

    Zhang et al. 2018, Theorem 3.2; Singh et al. 2019, section 4.
    """
    plain = interval_bounds(net, box)  # also checks the box; and it keeps exact zeros
    found = relax(net, box.lower[None], box.upper[None], deadline=deadline)
    tight = [
        Interval(np.maximum(z.lower, own.lower[0]), np.minimum(z.upper, own.upper[0]))
        for z, own in zip(plain, found.bounds, strict=True)
    ]
    if outputs is not None:
        rows = np.asarray(outputs, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != net.out_features:
            raise ValueError(
                f"outputs must have shape (q, {net.out_features}), one row per form; got {rows.shape}."
            )
        ends = found.upper_bounds(np.vstack([rows, -rows]))[0]
        tight[-1] = Interval(-ends[len(rows) :] + 0.0, ends[: len(rows)])
    return tuple(tight)


def relax(
    net: ReluNetwork, lower: Array, upper: Array, *, corners: int = 0, deadline: Deadline = NEVER
) -> Relaxation:
    """Put a network between lines on the boxes ``lower[i] <= x <= upper[i]``, both (n, d).

    Args:
        net: The network.
        lower: Lower corners, (n, d).
        upper: Upper corners, (n, d).
        corners: How often hidden units are bounded anew by planes above the first layer's ReLUs that are
            exact at corners of the boxes (:mod:`~pindown.relaxation.first_layer`).
        deadline: When to stop; hidden units keep the bounds they have, by intervals at least.
    """
    low, high = lower, upper
    bounds: tuple[Interval, ...] = ()
    reach: tuple[Array, ...] = ()
    for i, layer in enumerate(net.layers):
        reach = (*reach, np.maximum(np.abs(low), np.abs(high)))
        z = interval_image(layer, low, high)
        if i > 0:  # in the first layer intervals are exact
            known = Relaxation(net, lower, upper, bounds, reach)
            z = _tightened(known, i, z, deadline)
            if corners and i < net.depth - 1:
                z = _tightened_by_corners(known, i, z, corners, deadline)
        bounds = (*bounds, z)
        low, high = np.maximum(z.lower, 0.0), np.maximum(z.upper, 0.0)
    return Relaxation(net, lower, upper, bounds, reach)


def largest(forms: LinearForms, lower: Array, upper: Array) -> Array:
    """Return upper bounds on forms (n, q, d) over their boxes (n, d): infinite where unknown."""
    A, c = forms
    with np.errstate(over="ignore", invalid="ignore"):
        reach = np.maximum(np.abs(lower), np.abs(upper))
        value = _dot(np.maximum(A, 0.0), upper) - _dot(np.maximum(-A, 0.0), lower)
        terms = _dot(np.abs(A), reach)
        slack = (
            2.0 * gamma(A.shape[2] + 8) * (terms + np.abs(c)) + TINY * (1.0 + reach.sum(axis=1))[:, None]
        )
        total = add_up(value + c, slack)
    return np.where(np.isfinite(total), total + 0.0, np.inf)


def rows_at_once(net: ReluNetwork, n: int, i: int) -> int:
    """Return how many forms of layer i to carry back on n boxes between two looks at the clock."""
    costs = [SPARSE_PRODUCT_COST if sp.issparse(layer.weight) else 1 for layer in net.layers]
    below = sum(
        cost * layer.n_parameters for cost, layer in zip(costs[: i + 1], net.layers, strict=False)
    )
    widest = max(net.widths[: i + 1])
    return max(
        1, min(LINEAR_BLOCK_ENTRIES // (2 * n * widest), LINEAR_BLOCK_PRODUCTS // (2 * n * below))
    )


def _tightened(known: Relaxation, i: int, z: Interval, deadline: Deadline) -> Interval:
    """Intersect interval bounds on layer i with linear ones, where that can matter."""
    last = i == known.net.depth - 1
    undecided = np.flatnonzero(last | ((z.lower < 0) & (z.upper > 0)).any(axis=0))
    low, high = z.lower.copy(), z.upper.copy()
    step = rows_at_once(known.net, len(known.lower), i)
    for start in range(0, len(undecided), step):
        if not last and deadline.passed:
            break
        units = undecided[start : start + step]
        forms = _carried(known, i, units)
        ends = largest(forms, known.lower, known.upper)
        high[:, units] = np.minimum(high[:, units], ends[:, : len(units)])
        low[:, units] = np.maximum(low[:, units], -ends[:, len(units) :])
    return Interval(low, high)


def _tightened_by_corners(
    known: Relaxation, i: int, z: Interval, corners: int, deadline: Deadline
) -> Interval:
    """Bound units of layer i whose sign is open by planes that are exact at corners, box by box."""
    low, high = z.lower.copy(), z.upper.copy()
    layer = known.net.layers[0]
    for k in range(len(low)):
        units = np.flatnonzero((low[k] < 0) & (high[k] > 0))
        if deadline.passed or not len(units):
            continue
        one = known.of_box(k)
        A, c = (part[0] for part in _carried(one, i, units, first=1))
        own = Interval(*(end[0] for end in one.bounds[0]))
        made = forms_by_corners(A, c, layer, own, one.lower[0], one.upper[0], steps=corners)
        ends = largest(LinearForms(*(part[None] for part in made)), one.lower, one.upper)[0]
        high[k, units] = np.minimum(high[k, units], ends[: len(units)])
        low[k, units] = np.maximum(low[k, units], -ends[len(units) :])
    return Interval(low, high)


def _carried(known: Relaxation, i: int, rows: NDArray[Any], first: int = 0) -> LinearForms:
    """Return upper forms of ``rows @ z_i``; whole numbers stand for plus and minus these units.

    Forms of what layer ``first`` takes.
    """
    layers, n = known.net.layers, len(known.lower)
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = term_sizes(layers[i], known.reach[i])
        A, c, terms = _first_step(layers[i], rows, sizes)
        lost = np.zeros(n)  # what underflow can take
        for below in range(i - 1, first - 1, -1):
            lines = triangle_relaxation(known.bounds[below])
            shift = _dot(np.maximum(A, 0.0), lines.shift)
            A = A * np.where(A > 0, lines.slope[:, None], lines.lower[:, None])
            layer, reach = layers[below], known.reach[below]
            sizes = term_sizes(layer, reach)
            c = c + (shift + A @ layer.bias)
            terms = terms + (shift + _dot(np.abs(A), sizes))
            lost += TINY * (layer.out_features + reach.sum(axis=1) + sizes.sum(axis=1))
            A = _pull_back(layer, A)
        steps = max(known.net.widths[: i + 2]) + 4 * i + 16
        slack = 2.0 * gamma(steps) * terms + (lost + TINY * (1.0 + known.reach[i].sum(axis=1)))[:, None]
        offset = add_up(c, slack)
    return LinearForms(A, np.where(np.isfinite(offset), offset, np.inf))


def _first_step(layer: Affine, rows: NDArray[Any], sizes: Array) -> tuple[Array, Array, Array]:
    """Return A, c and the terms that rounding is relative to, for ``rows @ (W a + b)``."""
    n = len(sizes)
    if rows.dtype.kind == "i":
        own = dense(layer.weight[rows])
        A, c = np.concatenate([own, -own]), np.concatenate([layer.bias[rows], -layer.bias[rows]])
        terms = np.concatenate([sizes[:, rows]] * 2, axis=1)
    else:
        A, c = layer.pull_back(rows), rows @ layer.bias
        terms = sizes @ np.abs(rows).T
    return np.broadcast_to(A, (n, *A.shape)), np.broadcast_to(c, (n, len(c))), terms


def term_sizes(layer: Affine, reach: Array) -> Array:
    """Return about ``|W| reach + |b|``, (n, m): what rounding of one step is relative to."""
    return times(abs(layer.weight), reach) + (np.abs(layer.bias) + TINY)


def _pull_back(layer: Affine, A: Array) -> Array:
    n, q, m = A.shape
    return layer.pull_back(A.reshape(n * q, m)).reshape(n, q, layer.in_features)


def times(weight: Matrix, rows: Array) -> Array:
    """Return ``rows @ weight.T`` for a dense or sparse weight."""
    if sp.issparse(weight):
        return np.ascontiguousarray((weight @ np.ascontiguousarray(rows.T)).T)
    return rows @ weight.T


def _dot(A: Array, v: Array) -> Array:
    """Return ``A[i] @ v[i]`` for each box, (n, q)."""
    return np.matmul(A, v[:, :, None])[:, :, 0]


def interval_image(layer: Affine, lower: Array, upper: Array) -> Interval:
    """Enclose ``W a + b`` for the boxes ``lower <= a <= upper``, both (n, m)."""
    n, b = len(lower), layer.bias
    rounding, tiny = 2.0 * gamma(layer.in_features + 8), TINY * (layer.in_features + 1)
    ends = np.concatenate([lower, upper, np.abs(lower), np.abs(upper)])
    with np.errstate(over="ignore", invalid="ignore"):
        P, N = (part.reshape(4, n, -1) for part in _signed_products(layer.weight, ends))
        above = add_up(P[1] - N[0] + b, rounding * (P[3] + N[2] + np.abs(b)) + tiny)
        below = -add_up(N[1] - P[0] - b, rounding * (P[2] + N[3] + np.abs(b)) + tiny)
    unknown = ~(np.isfinite(above) & np.isfinite(below))
    return Interval(np.where(unknown, -np.inf, below) + 0.0, np.where(unknown, np.inf, above) + 0.0)


def _signed_products(weight: Matrix, rows: Array) -> tuple[Array, Array]:
    r"""Return ``rows`` times the transposes of :math:`W^+` and :math:`W^-`, a dense W in blocks."""
    if sp.issparse(weight):
        return times(weight.maximum(0.0), rows), times((-weight).maximum(0.0), rows)
    columns = np.ascontiguousarray(rows.T)
    P, N = np.empty((len(weight), len(rows))), np.empty((len(weight), len(rows)))
    step = max(1, CACHED_WEIGHT_ENTRIES // weight.shape[1])
    for start in range(0, len(weight), step):
        part = slice(start, start + step)
        np.matmul(np.maximum(weight[part], 0.0), columns, out=P[part])
        np.matmul(np.maximum(-weight[part], 0.0), columns, out=N[part])
    return np.ascontiguousarray(P.T), np.ascontiguousarray(N.T)
