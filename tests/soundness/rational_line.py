r"""Networks along a line, exactly: every kink of :math:`t \mapsto f(p + t v)` as a rational number.

Every float64 is a rational number. Along a line a network is piecewise affine in t, so its values at the
kinks and its slopes beyond the outermost ones say everything. With one input the line is all there is;
with more, what a line shows is true and more may be. No code is shared with the library.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from pindown.network import ReluNetwork

Vector = list[Fraction]
ZERO = Fraction(0)


class ExactNetwork:
    """The weights of a network as rational numbers."""

    def __init__(self, net: ReluNetwork) -> None:
        self.layers = []
        for W, b in net.layers:
            dense = W.toarray() if sp.issparse(W) else np.asarray(W)
            rows = [[(j, Fraction(float(w))) for j, w in enumerate(row) if w != 0] for row in dense]
            self.layers.append((rows, rationals(b)))

    def __call__(self, x: Sequence) -> Vector:
        """Evaluate one input."""
        return self.trace(x)[-1]

    def trace(self, x: Sequence) -> list[Vector]:
        """Return what every affine layer gives at one input."""
        a, values = rationals(x), []
        for i in range(len(self.layers)):
            values.append(self.apply(i, a))
            a = [max(z, ZERO) for z in values[-1]]
        return values

    def apply(self, i: int, a: Vector, *, bias: bool = True) -> Vector:
        """Return the image of a vector under layer i, or under its linear part alone."""
        rows, b = self.layers[i]
        return [
            sum((w * a[j] for j, w in row), start if bias else ZERO)
            for row, start in zip(rows, b, strict=True)
        ]


def rationals(values: Sequence) -> Vector:
    """Return numbers as the rational numbers they are."""
    return [v if isinstance(v, Fraction) else Fraction(float(v)) for v in values]


@dataclass(frozen=True)
class Line:
    """A network on ``p + t v`` for t from ``knots[0]`` to ``knots[-1]``, affine between knots.

    Attributes:
        p: A point.
        v: A direction.
        knots: Ascending.
        values: The outputs at the knots.
        rays: The slopes before the first and behind the last knot, if the line has no ends.
        units: For each layer what it gives at the knots that were known by then: its extremes are
            among them.
    """

    p: Vector
    v: Vector
    knots: list[Fraction]
    values: list[Vector]
    rays: tuple[Vector, Vector] | None
    units: list[list[Vector]]

    def point(self, t: Fraction) -> Vector:
        """Return ``p + t v``."""
        return [a + t * b for a, b in zip(self.p, self.v, strict=True)]

    def at(self, t: Fraction) -> Vector:
        """Return the outputs at a time within the line."""
        i = bisect_right(self.knots, t) - 1
        if i < 0 or (i == len(self.knots) - 1 and t > self.knots[-1]):
            assert self.rays is not None
            end, slope = (0, self.rays[0]) if i < 0 else (-1, self.rays[1])
            return [y + (t - self.knots[end]) * s for y, s in zip(self.values[end], slope, strict=True)]
        if t == self.knots[i]:
            return self.values[i]
        share = (t - self.knots[i]) / (self.knots[i + 1] - self.knots[i])
        return [a + share * (b - a) for a, b in zip(self.values[i], self.values[i + 1], strict=True)]

    def slopes(self) -> list[Vector]:
        """Return the derivative of the outputs on every piece, rays included."""
        inner = [
            [(b - a) / (t - s) for a, b in zip(y, z, strict=True)]
            for (s, t), (y, z) in zip(pairwise(self.knots), pairwise(self.values), strict=True)
        ]
        return inner if self.rays is None else [self.rays[0], *inner, self.rays[1]]

    def refined(self, times: Sequence[Fraction]) -> Line:
        """Return the same line with more knots."""
        knots = sorted({*self.knots, *times})
        return Line(self.p, self.v, knots, [self.at(t) for t in knots], self.rays, self.units)


def along(
    net: ExactNetwork, p: Sequence, v: Sequence, ends: tuple[Fraction, Fraction] | None = None
) -> Line:
    """Return a network on ``p + t v``, between two times or, without ends, on the whole line."""
    start, step = rationals(p), rationals(v)
    knots = [ZERO] if ends is None else sorted(set(ends))
    a = [[x + t * s for x, s in zip(start, step, strict=True)] for t in knots]
    rays = None if ends else (step, step)
    units = []
    for i in range(len(net.layers)):
        z = [net.apply(i, row) for row in a]
        units.append(z)
        if rays is not None:
            rays = (net.apply(i, rays[0], bias=False), net.apply(i, rays[1], bias=False))
        if i == len(net.layers) - 1:
            break
        grown = Line(start, step, knots, z, rays, []).refined(_crossings(knots, z, rays))
        knots = grown.knots
        a = [[max(value, ZERO) for value in row] for row in grown.values]
        if rays is not None:
            rays = _rectified(grown.values[0], rays[0], -1), _rectified(grown.values[-1], rays[1], 1)
    return Line(start, step, knots, z, rays, units)


def _crossings(
    knots: list[Fraction], values: list[Vector], rays: tuple[Vector, Vector] | None
) -> list[Fraction]:
    """Return where units change sign between knots and beyond them."""
    found = []
    for (s, t), (y, z) in zip(pairwise(knots), pairwise(values), strict=True):
        for a, b in zip(y, z, strict=True):
            if (a < 0 < b) or (b < 0 < a):
                found.append(s + (t - s) * a / (a - b))
    if rays is not None:
        for end, side in ((0, -1), (-1, 1)):
            for a, slope in zip(values[end], rays[end], strict=True):
                if slope and -a / slope * side > 0:
                    found.append(knots[end] - a / slope)
    return found


def _rectified(values: Vector, slopes: Vector, side: int) -> Vector:
    """Return the slopes of ReLUs on a ray without sign changes, to the left (-1) or the right (1)."""
    return [
        s if a > 0 or (a == 0 and s * side > 0) else ZERO for a, s in zip(values, slopes, strict=True)
    ]
