r"""Where the activations of a network can be, on a box or on all of :math:`\mathbb{R}^d`.

Without a box everything is divided by :math:`1 + \|x\|`. ReLU commutes with positive factors, so the
scaled activations are those of a network with input :math:`\xi = x / (1 + \|x\|)` and biases
:math:`\tau b_l`, :math:`\tau = 1 / (1 + \|x\|)`, and :math:`\|\xi\| + \tau = 1` bounds both.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from math import inf

import numpy as np

from pindown.affine import Affine, Array
from pindown.box import Box
from pindown.equivalence.sensitivity.propagation import Propagation, Spread
from pindown.equivalence.sensitivity.upwards import product_above, sum_above
from pindown.network import ReluNetwork
from pindown.relaxation.intervals import Interval, interval_bounds
from pindown.relaxation.linear import linear_bounds
from pindown.rounding import SMALLEST, add_down, add_up, gamma, norm_up


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
    net: ReluNetwork, chain: Propagation, box: Box | None, *, deadline: float | None = None
) -> list[Range]:
    r"""Bound the input and the values after every ReLU layer.

    Args:
        net: The network.
        chain: Its weights, with the norms that are to be used.
        box: The inputs, or None for all of :math:`\mathbb{R}^d`, values divided by :math:`1 + \|x\|`.
        deadline: Until when (``time.monotonic``) linear bounds may be tried on a box; None for
            interval bounds only.
    """
    if box is None:
        return _relative(net, chain)
    whole = interval_bounds(net, box)
    if deadline is not None:
        with suppress(TimeoutError):
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
