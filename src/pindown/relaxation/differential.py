r"""Linear bounds on the difference of two networks, matched units tied.

Bounding each network alone loses nearly everything: the difference of two nearly equal networks is
small, their ranges are not. So carry, beside :math:`z_a`, the difference :math:`\delta = z_a - z_b` of
units that stand at the same place. With :math:`\Delta = \rho(z_a) - \rho(z_b)` one layer later

.. math::
    \delta' = (W_a - W_b)\, \rho(z_a) + W_b\, \Delta + (b_a - b_b), \qquad
    \min(0, \delta) \le \Delta \le \max(0, \delta),

and :math:`\Delta = \delta` where both units are on. Lines around :math:`\Delta` are carried back to
the input as in :mod:`pindown.relaxation.linear`, rounding charged in the same way. Any two
networks of equal widths may be tied; the bounds are good if equal places hold like units. Networks of
other widths are bounded each alone.

Paulsen, Wang and Wang 2020, "ReluDiff: differential verification of deep neural networks"; Paulsen et
al. 2020, "NeuroDiff".
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nextafter
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Affine, Array
from pindown.box import Box
from pindown.deadline import NEVER, Deadline
from pindown.model.operations.operation import Interval
from pindown.network import ReluNetwork
from pindown.relaxation.intervals import interval_bounds
from pindown.relaxation.linear import (
    LinearForms,
    Relaxation,
    interval_image,
    largest,
    relax,
    rows_at_once,
    term_sizes,
)
from pindown.relaxation.triangle import triangle_relaxation
from pindown.rounding import TINY, UNIT_ROUNDOFF, add_down, add_up, gamma, norm_up

# An interval evaluation that keeps this share of the float64 gap is good enough.
_KEPT = 1.0 - 1e-6
# Parameters up to which linear bounds at a point take below a second, and layers: time grows with their
# square.
_MAX_WEIGHTS, _MAX_DEPTH = 2**22, 100


class _Step(NamedTuple):
    """One layer of the pair: how (rho(z_a), Delta) give z_a and delta."""

    own: Affine  # W_a, b_a
    change: Affine  # W_a - W_b, b_a - b_b, each to one rounding
    other: Affine  # W_b, no offset
    own_sizes: Array  # (n, m): what rounding of z_a is relative to
    change_sizes: Array  # the same for delta


class _Lines(NamedTuple):
    """Bounds ``delta_part * delta + own_part * z_a + shift`` on Delta, above and below; each (n, m)."""

    own_part: Array  # one for both: not zero only where the bound is an equality
    above: Array
    above_shift: Array
    below: Array
    below_shift: Array


@dataclass(frozen=True, eq=False, repr=False)
class TiedRelaxation:
    """Two networks of equal widths, and the differences of their units, on n boxes.

    Attributes:
        a: The first network between lines.
        b: The second.
        deltas: Proved bounds on a's minus b's value of every unit, output last, each (n, m).
    """

    a: Relaxation
    b: Relaxation
    deltas: tuple[Interval, ...]
    _steps: tuple[_Step, ...]

    def upper_forms(self, rows: Array) -> LinearForms:
        """Bound ``rows @ (a(x) - b(x))`` from above on each box, ``rows`` of shape (q, k)."""
        return _carried(self, len(self._steps) - 1, rows)


def tied(a: Relaxation, b: Relaxation, *, deadline: Deadline = NEVER) -> TiedRelaxation:
    """Bound the differences of units at equal places.

    Args:
        a: A network between lines.
        b: One of the same widths, on the same boxes.
        deadline: When to stop tightening; bounds are looser then.

    Raises:
        ValueError: If the widths differ.

    Example:
        Two outputs of size 100 that differ by a thousandth:

        >>> from pindown import ReluNetwork
        >>> from pindown.relaxation.linear import relax
        >>> nets = [ReluNetwork.from_layers([([[1.0]], [b]), ([[1.0]], [0])]) for b in (0.0, 0.001)]
        >>> pair = tied(*(relax(net, np.array([[-100.0]]), np.array([[100.0]])) for net in nets))
        >>> [end.round(9).item() for end in pair.deltas[-1]]
        [-0.001, 0.0]

    Paulsen, Wang and Wang 2020.
    """
    if a.net.widths != b.net.widths:
        raise ValueError(
            f"only networks of equal widths can be tied; got {a.net.widths} and {b.net.widths}."
        )
    n, d = a.lower.shape
    deltas: tuple[Interval, ...] = ()
    steps: tuple[_Step, ...] = ()
    own = Interval(a.lower, a.upper)
    delta = Interval(np.zeros((n, d)), np.zeros((n, d)))
    for i, (za, zb) in enumerate(zip(a.bounds, b.bounds, strict=True)):
        step = _step(a.net.layers[i], b.net.layers[i], a.reach[i], delta)
        steps = (*steps, step)
        z = _difference_image(step, own, delta)
        z = _meet(z, Interval(add_down(za.lower, -zb.upper), add_up(za.upper, -zb.lower)))
        if i > 0:
            z = _tightened(TiedRelaxation(a, b, deltas, steps), i, z, za, zb, deadline)
        deltas = (*deltas, z)
        own = Interval(np.maximum(za.lower, 0.0), np.maximum(za.upper, 0.0))
        delta = _after_relu(z, za, zb)
    return TiedRelaxation(a, b, deltas, steps)


def _step(a: Affine, b: Affine, reach: Array, delta: Interval) -> _Step:
    with np.errstate(over="ignore"):
        change = Affine(a.weight - b.weight, a.bias - b.bias)
    reach_delta = np.maximum(np.abs(delta.lower), np.abs(delta.upper))
    other = Affine(b.weight, np.zeros(len(b.bias)))
    with np.errstate(over="ignore", invalid="ignore"):
        change_sizes = term_sizes(change, reach) + term_sizes(other, reach_delta)
        return _Step(a, change, other, term_sizes(a, reach), change_sizes)


def _difference_image(step: _Step, own: Interval, delta: Interval) -> Interval:
    """Enclose delta from intervals for what the layer takes."""
    first = interval_image(step.change, *own)
    second = interval_image(step.other, *delta)
    slack = 4.0 * UNIT_ROUNDOFF * step.change_sizes  # W_a - W_b and b_a - b_b are rounded
    with np.errstate(invalid="ignore"):
        return Interval(
            add_down(add_down(first.lower, second.lower), -slack),
            add_up(add_up(first.upper, second.upper), slack),
        )


def _after_relu(z: Interval, za: Interval, zb: Interval) -> Interval:
    """Enclose Delta from bounds on delta and on both units."""
    low = np.maximum(np.minimum(z.lower, 0.0), -np.maximum(zb.upper, 0.0))
    high = np.minimum(np.maximum(z.upper, 0.0), np.maximum(za.upper, 0.0))
    both_on = (za.lower >= 0) & (zb.lower >= 0)
    return Interval(np.where(both_on, z.lower, low), np.where(both_on, z.upper, high))


def _delta_lines(z: Interval, za: Interval, zb: Interval) -> _Lines:
    """Return lines around Delta = relu(z_a) - relu(z_b), delta = z_a - z_b between the ends of z."""
    a_on, a_off, b_on, b_off = za.lower >= 0, za.upper <= 0, zb.lower >= 0, zb.upper <= 0
    above, below = triangle_relaxation(z), triangle_relaxation(Interval(-z.upper, -z.lower))
    # max(0, delta) lies above Delta, min(0, delta) = -max(0, -delta) below.
    up, up_shift = above.slope, above.shift
    low, low_shift = below.slope, -below.shift
    up = np.where(a_off, 0.0, np.where(a_on, 1.0, up))
    low = np.where(b_off, 0.0, np.where(b_on, 1.0, low))
    up_shift = np.where(a_off | a_on, 0.0, up_shift)
    low_shift = np.where(b_off | b_on, 0.0, low_shift)
    only_a, only_b = a_on & b_off, a_off & b_on & ~(a_on & b_off)  # Delta = z_a, Delta = delta - z_a
    own = np.where(only_a, 1.0, np.where(only_b, -1.0, 0.0))
    exact = np.where(only_a, 0.0, 1.0)
    up, low = (np.where(only_a | only_b, exact, part) for part in (up, low))
    up_shift, low_shift = (np.where(only_a | only_b, 0.0, part) for part in (up_shift, low_shift))
    return _Lines(own, up, up_shift, low, low_shift)


def _tightened(
    pair: TiedRelaxation, i: int, z: Interval, za: Interval, zb: Interval, deadline: Deadline
) -> Interval:
    """Intersect interval bounds on delta in layer i with linear ones, where that can matter."""
    settled = [(z.lower >= 0) | (z.upper <= 0) for z in (za, zb)]
    exact = settled[0] & settled[1]
    last = i == pair.a.net.depth - 1
    wanted = np.flatnonzero(last | ~exact.all(axis=0))
    low, high = z.lower.copy(), z.upper.copy()
    count = max(1, rows_at_once(pair.a.net, len(low), i) // 3)  # three products for one
    for start in range(0, len(wanted), count):
        if not last and deadline.passed:
            break
        units = wanted[start : start + count]
        one = np.zeros((len(units), low.shape[1]))
        one[np.arange(len(units)), units] = 1.0
        ends = largest(_carried(pair, i, np.concatenate([one, -one])), pair.a.lower, pair.a.upper)
        high[:, units] = np.minimum(high[:, units], ends[:, : len(units)])
        low[:, units] = np.maximum(low[:, units], -ends[:, len(units) :])
    return Interval(low, high)


def _carried(pair: TiedRelaxation, i: int, rows: Array) -> LinearForms:
    """Return upper forms of ``rows @ delta_i`` in terms of the input."""
    a, b, n = pair.a, pair.b, len(pair.a.lower)
    step = pair._steps[i]
    with np.errstate(over="ignore", invalid="ignore"):
        # R and S are the coefficients of rho(z_a) and of Delta one layer below.
        R = np.broadcast_to(step.change.pull_back(rows), (n, len(rows), step.own.in_features))
        S = np.broadcast_to(step.other.pull_back(rows), R.shape)
        c = np.broadcast_to(rows @ step.change.bias, (n, len(rows)))
        terms = step.change_sizes @ np.abs(rows).T
        lost = TINY * (1.0 + a.reach[i].sum(axis=1) + step.change_sizes.sum(axis=1))
        for below in range(i - 1, -1, -1):
            step = pair._steps[below]
            line = triangle_relaxation(a.bounds[below])
            tie = _delta_lines(pair.deltas[below], a.bounds[below], b.bounds[below])
            shift = row_dots(np.maximum(R, 0.0), line.shift) + row_dots(
                np.maximum(S, 0.0), tie.above_shift
            )
            shift = shift + row_dots(np.maximum(-S, 0.0), -tie.below_shift)
            P = R * np.where(R > 0, line.slope[:, None], line.lower[:, None]) + S * tie.own_part[:, None]
            Q = S * np.where(S > 0, tie.above[:, None], tie.below[:, None])
            c = c + (shift + P @ step.own.bias + Q @ step.change.bias)
            terms = terms + (shift + row_dots(np.abs(P), step.own_sizes))
            terms = terms + row_dots(np.abs(Q), step.change_sizes)
            lost = lost + TINY * (1.0 + step.own_sizes.sum(axis=1) + step.change_sizes.sum(axis=1))
            lost = lost + TINY * a.reach[below].sum(axis=1)
            R, S = _pulled(step.own, P) + _pulled(step.change, Q), _pulled(step.other, Q)
        steps = 2 * max(a.net.widths[: i + 2]) + 8 * i + 16
        offset = add_up(c, 2.0 * gamma(steps) * terms + lost[:, None])
    return LinearForms(R, np.where(np.isfinite(offset), offset, np.inf))


def _meet(one: Interval, two: Interval) -> Interval:
    with np.errstate(invalid="ignore"):
        return Interval(np.fmax(one.lower, two.lower), np.fmin(one.upper, two.upper))


def row_dots(A: Array, v: Array) -> Array:
    """Return the products of rows (n, q, m) and one vector for each n, (n, m): (n, q)."""
    return np.matmul(A, v[:, :, None])[:, :, 0]


def _pulled(layer: Affine, A: Array) -> Array:
    n, q, m = A.shape
    return layer.pull_back(A.reshape(n * q, m)).reshape(n, q, layer.in_features)


def sum_of_forms(first: LinearForms, second: LinearForms, reach: Array) -> LinearForms:
    """Add upper forms; ``reach`` (n, d) bounds the inputs, for the rounding of the coefficients."""
    with np.errstate(over="ignore", invalid="ignore"):
        weight = first.weight + second.weight
        slack = (
            4.0 * UNIT_ROUNDOFF * row_dots(np.abs(weight), reach)
            + TINY * (1.0 + reach.sum(axis=1))[:, None]
        )
        offset = add_up(add_up(first.offset, second.offset), slack)
    return LinearForms(weight, np.where(np.isfinite(offset), offset, np.inf))


def gap_bounds(
    a: ReluNetwork,
    b: ReluNetwork,
    lower: Array,
    upper: Array,
    *,
    corners: int = 0,
    deadline: Deadline = NEVER,
) -> tuple[Array, LinearForms]:
    """Bound the largest difference of two networks on each of n boxes.

    Args:
        a: A network.
        b: One with as many inputs and outputs; tied to a if it has the same widths.
        lower: Lower corners, (n, d).
        upper: Upper corners, (n, d).
        corners: How often hidden units of each are bounded anew by planes that are exact at corners.
        deadline: When to stop tightening; bounds are looser then.

    Returns:
        Upper bounds on ``max |a_k - b_k|``, (n,), and the better linear forms of ``+-(a_k - b_k)``.
    """
    k = a.out_features
    rows = np.concatenate([np.eye(k), -np.eye(k)])
    how = {"corners": corners, "deadline": deadline}
    first, second = (relax(net, lower, upper, **how) for net in (a, b))  # type: ignore[arg-type]
    forms = sum_of_forms(first.upper_forms(rows), second.upper_forms(-rows), first.reach[0])
    bounds = largest(forms, lower, upper)
    za, zb = first.bounds[-1], second.bounds[-1]
    apart = np.concatenate([add_up(za.upper, -zb.lower), add_up(zb.upper, -za.lower)], axis=1)
    bounds = np.minimum(bounds, apart)
    if a.widths == b.widths:
        pair = tied(first, second, deadline=deadline)
        other = pair.upper_forms(rows)
        delta = np.concatenate([pair.deltas[-1].upper, -pair.deltas[-1].lower], axis=1)
        better = delta < bounds
        forms = LinearForms(
            np.where(better[:, :, None], other.weight, forms.weight),
            np.where(better, other.offset, forms.offset),
        )
        bounds = np.minimum(bounds, delta)
    return np.maximum(bounds.max(axis=1), 0.0), forms


def interval_gap(a: ReluNetwork, b: ReluNetwork, box: Box) -> float:
    """Bound ``max |a_k - b_k|`` on a box by intervals of each network; infinite if they say nothing.

    >>> nets = [ReluNetwork.from_layers([([[1.0]], [b])]) for b in (0.0, 0.5)]
    >>> round(interval_gap(*nets, Box([0], [1])), 9)
    1.5
    """
    za, zb = (interval_bounds(net, box)[-1] for net in (a, b))
    upper = np.maximum(add_up(za.upper, -zb.lower), add_up(zb.upper, -za.lower))
    return inf if np.isnan(upper).any() else float(upper.max())


def gap_lower_bounds(a: ReluNetwork, b: ReluNetwork, point: Array) -> float:
    """Return a lower bound on ``max |a_k - b_k|`` at one point, from linear bounds; at least 0."""
    first, second = (relax(net, point[None], point[None]) for net in (a, b))
    za, zb = first.bounds[-1], second.bounds[-1]
    lower, upper = add_down(za.lower, -zb.upper), add_up(za.upper, -zb.lower)
    if a.widths == b.widths:
        delta = tied(first, second).deltas[-1]
        lower, upper = np.maximum(lower, delta.lower), np.minimum(upper, delta.upper)
    return max(0.0, float(np.max(lower)), float(np.max(-upper)))


def proved_gap(
    a: ReluNetwork, b: ReluNetwork, x: ArrayLike, relative: bool = False, *, closely: bool = True
) -> float:
    r"""Return :math:`\max_k |a_k(x) - b_k(x)|`, rounded down; 0 if float64 cannot tell it from that.

    Args:
        a: A network.
        b: One with as many inputs and outputs.
        x: An input, (d,).
        relative: Divide by :math:`1 + \|x\|_2`.
        closely: Whether to look closer where intervals lose much of a small gap; it takes longer.

    >>> nets = [ReluNetwork.from_layers([([[1.0]], [b])]) for b in (0.0, 0.5)]
    >>> round(proved_gap(*nets, [1.0]), 9), round(proved_gap(*nets, [1.0], relative=True), 9)
    (0.5, 0.25)
    """
    point = np.array(x, dtype=np.float64).reshape(-1)
    here, there = (interval_bounds(net, Box(point, point))[-1] for net in (a, b))
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.maximum(here.lower - there.upper, there.lower - here.upper)
        middle = np.abs((here.lower - there.lower) / 2 + (here.upper - there.upper) / 2)
    gap = nextafter(float(np.max(apart, initial=0.0)), 0.0) if np.isfinite(apart).all() else 0.0
    small = a.n_parameters + b.n_parameters <= _MAX_WEIGHTS and max(a.depth, b.depth) <= _MAX_DEPTH
    # Intervals spread the rounding of each layer.
    if small and closely and gap < _KEPT * float(np.max(middle)):
        gap = max(gap, gap_lower_bounds(a, b, point))
    if relative and gap > 0.0:
        gap = nextafter(gap / (1.0 + norm_up(point)) * (1.0 - gamma(8)), 0.0)
    return gap
