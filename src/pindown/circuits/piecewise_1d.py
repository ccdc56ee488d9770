r"""Continuous piecewise linear functions of one variable, as values.

A function with p pieces is given by its p - 1 kinks :math:`(a_i, b_i)` and the slopes of its two outer
pieces. Numbers that are all integers or fractions are kept exactly; with floats, slopes that differ by
rounding only count as equal.

Mukherjee 2020, chapter 2, appendix: proof of Theorem 2.2.2.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.circuits.arithmetic import Net, Number, alike, rational
from pindown.circuits.sweep import sweep
from pindown.geometry.nearness import SAME
from pindown.rational import RationalNetwork

_UNIT = 2.0**-52  # one place of a float: by so much of its size a value or a knot may be off


@dataclass(frozen=True, eq=False, repr=False)
class PiecewiseLinear1D:
    r"""A continuous function that is linear between knots and beyond the outer ones.

    Attributes:
        knots: Ascending :math:`a_1 < \dots < a_r`, one or more; the function need not bend there.
        values: :math:`f(a_i)`.
        left_slope: Slope left of :math:`a_1`.
        right_slope: Slope right of :math:`a_r`.

    Example:
        The absolute value, with a knot at 1 that is no kink:

        >>> f = PiecewiseLinear1D([0, 1], [0, 1], left_slope=-1, right_slope=1)
        >>> f
        PiecewiseLinear1D(2 pieces, kink at 0, exact)
        >>> f.at(-3), f([-3, 0.5])
        (Fraction(3, 1), array([3. , 0.5]))
    """

    knots: tuple[Any, ...]
    values: tuple[Any, ...]
    left_slope: Any
    right_slope: Any

    def __init__(
        self, knots: Iterable[Any], values: Iterable[Any], left_slope: Number, right_slope: Number
    ) -> None:
        a, b = list(knots), list(values)
        if not a or len(a) != len(b):
            raise ValueError(
                f"a function needs as many values as knots, one or more; got {len(a)} knots and "
                f"{len(b)} values."
            )
        numbers = alike([*a, *b, left_slope, right_slope], "knots, values and slopes")
        a, b = numbers[: len(a)], numbers[len(a) : -2]
        for first, second in pairwise(a):
            if first >= second:
                raise ValueError(f"knots must ascend; got {first} before {second}.")
        object.__setattr__(self, "knots", tuple(a))
        object.__setattr__(self, "values", tuple(b))
        object.__setattr__(self, "left_slope", numbers[-2])
        object.__setattr__(self, "right_slope", numbers[-1])
        if not self.exact and not all(map(isfinite, self.slopes)):
            raise ValueError(
                "the slope between two knots overflows float64; use fractions, or other units."
            )

    @classmethod
    def from_points(
        cls, x: Iterable[Any], y: Iterable[Any], *, left_slope: Number = 0, right_slope: Number = 0
    ) -> PiecewiseLinear1D:
        """Connect points by straight lines; flat outside unless slopes are given, as ``np.interp`` is.

        >>> PiecewiseLinear1D.from_points([0, 1, 2], [0, 5, 5]).n_pieces
        3
        """
        return cls(x, y, left_slope, right_slope)

    @classmethod
    def from_network(cls, net: Net) -> PiecewiseLinear1D:
        """Return the function that a network with one input and one output computes on all of the line.

        Breakpoints are carried through the layers in rational arithmetic. Those of a
        :class:`ReluNetwork` are rounded at the end, and kinks of rounding size dropped.

        >>> from pindown import ReluNetwork
        >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
        >>> PiecewiseLinear1D.from_network(net)
        PiecewiseLinear1D(2 pieces, kink at 0)

        Mukherjee 2020, proof of Lemma 2.A.6.
        """
        exact = rational(net)
        shape = exact.layers[0][0].shape[1], len(exact.layers[-1][1])
        if shape != (1, 1):
            raise ValueError(f"one input and one output are needed; this network has {shape}.")
        cuts, maps = sweep(exact)
        knots = cuts or [Fraction(0)]
        # The map right of a knot gives its value; f is continuous, so the left one would too.
        values = [(s * a + c)[0] for a, (s, c) in zip(knots, maps[1:] or maps, strict=True)]
        f = cls(knots, values, maps[0][0][0], maps[-1][0][0])
        return f.simplified() if isinstance(net, RationalNetwork) else f.rounded().simplified()

    @property
    def exact(self) -> bool:
        """Whether all numbers are fractions."""
        return isinstance(self.left_slope, Fraction)

    @cached_property
    def slopes(self) -> tuple[Any, ...]:
        """Slopes of all pieces between knots, the outer ones included."""
        inner = [
            (d - c) / (b - a) for (a, c), (b, d) in pairwise(zip(self.knots, self.values, strict=True))
        ]
        return (self.left_slope, *inner, self.right_slope)

    @cached_property
    def jumps(self) -> tuple[Any, ...]:
        """Change of the slope at every knot; zero where the function does not bend."""
        changes = [right - left for left, right in pairwise(self.slopes)]
        if self.exact:
            return tuple(changes)
        noise = self._slope_errors
        return tuple(
            0.0 if abs(change) <= SAME * (abs(p) + abs(q)) + e + g else change
            for change, (p, q), (e, g) in zip(
                changes, pairwise(self.slopes), pairwise(noise), strict=True
            )
        )

    @property
    def _slope_errors(self) -> list[float]:
        """What rounding of the values and knots may have done to each slope."""
        inner = [
            _UNIT * (abs(c) + abs(d) + abs((d - c) / (b - a)) * (abs(a) + abs(b))) / (b - a)
            for (a, c), (b, d) in pairwise(zip(self.knots, self.values, strict=True))
        ]
        return [0.0, *inner, 0.0]

    @property
    def breakpoints(self) -> tuple[Any, ...]:
        """The knots where the slope changes."""
        return tuple(a for a, jump in zip(self.knots, self.jumps, strict=True) if jump)

    @property
    def n_pieces(self) -> int:
        """Number of affine pieces on the whole line."""
        return 1 + len(self.breakpoints)

    def simplified(self) -> PiecewiseLinear1D:
        """Return the same function without knots at which it does not bend (one is kept if none does).

        >>> PiecewiseLinear1D([0, 1, 2], [0, 1, 2], 1, 3).simplified().knots
        (Fraction(2, 1),)
        """
        keep = [i for i, jump in enumerate(self.jumps) if jump] or [0]
        return PiecewiseLinear1D(
            [self.knots[i] for i in keep],
            [self.values[i] for i in keep],
            self.left_slope,
            self.right_slope,
        )

    def rounded(self) -> PiecewiseLinear1D:
        """Return the function in floats; knots that become the same float are one."""
        if not self.exact:
            return self
        points = dict(zip(map(float, self.knots), map(float, self.values), strict=True))
        return PiecewiseLinear1D(
            points, points.values(), float(self.left_slope), float(self.right_slope)
        )

    def as_fractions(self) -> PiecewiseLinear1D:
        """Return the function with every float taken as the rational number it is."""
        a, b = ([Fraction(v) for v in numbers] for numbers in (self.knots, self.values))
        return PiecewiseLinear1D(a, b, Fraction(self.left_slope), Fraction(self.right_slope))

    def at(self, x: Any) -> Any:
        """Evaluate at one point in the arithmetic of the function's own numbers."""
        t = Fraction(x) if self.exact else float(x)
        i = bisect_right(self.knots, t)
        anchor = max(i - 1, 0)
        return self.values[anchor] + self.slopes[i] * (t - self.knots[anchor])

    def __call__(self, x: ArrayLike) -> Array:
        """Evaluate at many points in float64, in the shape of x."""
        t = np.asarray(x, dtype=np.float64)
        a, b, s = (np.array(v, dtype=float) for v in (self.knots, self.values, self.slopes))
        i = np.searchsorted(a, t, side="right")
        anchor = np.maximum(i - 1, 0)
        return np.asarray(b[anchor] + s[i] * (t - a[anchor]))

    def on(self, lower: Any, upper: Any) -> int:
        """Return the number of pieces between two numbers.

        >>> PiecewiseLinear1D([0, 1], [0, 1], 0, 0).on(0, 3)
        2
        """
        return 1 + sum(1 for a in self.breakpoints if lower < a < upper)

    def plot(self, lower: float, upper: float, ax: Any = None) -> Any:
        """Draw the function between two numbers, with a dot at every kink; return the axes."""
        from pindown.geometry.plots.style import COLOURS, new_axes

        if not lower < upper:
            raise ValueError(f"a picture needs lower < upper; got {lower} and {upper}.")
        ax = new_axes(ax, size=(5.0, 3.0))
        inside = [float(a) for a in self.breakpoints if lower < a < upper]
        t = np.array([lower, *inside, upper], dtype=float)
        ax.plot(t, self(t), color=COLOURS[0], linewidth=1.6)
        ax.plot(inside, self(inside), "o", color=COLOURS[0], markersize=3.5)
        ax.set_xlabel("x")
        return ax

    def __repr__(self) -> str:
        pieces = "1 piece" if self.n_pieces == 1 else f"{self.n_pieces:,} pieces"
        kinks = [f"{float(a):g}" for a in self.breakpoints]
        if len(kinks) > 6:
            kinks[3:-1] = ["..."]
        where = f", kink{'s' if len(kinks) > 1 else ''} at {', '.join(kinks)}" if kinks else ""
        return f"PiecewiseLinear1D({pieces}{where}{', exact' if self.exact else ''})"
