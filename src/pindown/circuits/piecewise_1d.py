r"""Continuous piecewise linear functions of one variable, and the smallest networks that compute them.

A function with p pieces is given by its p - 1 kinks :math:`(a_i, b_i)` and the slopes of its two outer
pieces. Numbers that are all integers or fractions are kept exactly; with floats, slopes that differ by
rounding only count as equal.

One ReLU :math:`c\,\rho(\pm(x - a))` makes one kink, so p pieces need p - 1 of them. If all look to the
right the function is flat on the far left; the slope there costs one more ReLU, unless some kinks,
turned to look to the left, make up for it:

.. math:: f(x) = c + \sum_{j \notin J} \delta_j\, \rho(x - a_j) + \sum_{j \in J} \delta_j\, \rho(a_j - x)
    \iff s_L = -\sum_{j \in J} \delta_j ,

where :math:`\delta_j` is the change of slope at :math:`a_j` and :math:`s_L` the slope on the far left.

Mukherjee 2020, Theorem 2.2.2, its proof, Corollary 2.A.1 and the proof of Lemma 2.A.6.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import isfinite, lcm
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.circuits.arithmetic import Net, Number, alike, network, rational, size
from pindown.circuits.tuning import MAX_KINKS
from pindown.geometry.nearness import SAME
from pindown.rational import RationalNetwork, Rationals

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


def sweep(net: RationalNetwork) -> tuple[list[Fraction], list[tuple[Rationals, Rationals]]]:
    """Carry breakpoints and the affine maps between them through all layers, on the whole line.

    Returns:
        The places where some unit changes its sign, ascending, and for each interval between them,
        the outer ones included, slopes and offsets of all outputs.

    >>> cuts, maps = sweep(RationalNetwork.from_layers([([[1]], [-2]), ([[3]], [0])]))
    >>> cuts, [(int(slope[0]), int(offset[0])) for slope, offset in maps]
    ([Fraction(2, 1)], [(0, 0), (3, -6)])
    """
    W, b = net.layers[0]
    cuts: list[Fraction] = []
    maps: list[tuple[Rationals, Rationals]] = [(W[:, 0], b)]
    for W, b in net.layers[1:]:
        cuts, maps = _rectified(cuts, maps)
        maps = [(W @ slope, W @ offset + b) for slope, offset in maps]
    return cuts, maps


def _rectified(
    cuts: Sequence[Fraction], maps: Sequence[tuple[Rationals, Rationals]]
) -> tuple[list[Fraction], list[tuple[Rationals, Rationals]]]:
    """Apply ReLU to functions that are affine between cuts; add a cut wherever one changes its sign."""
    ends = [None, *cuts, None]
    new_cuts: list[Fraction] = []
    new_maps: list[tuple[Rationals, Rationals]] = []
    for (low, high), (slope, offset) in zip(pairwise(ends), maps, strict=True):
        if low is not None:
            new_cuts.append(low)
        zeros = {-c / s for s, c in zip(slope, offset, strict=True) if s}
        inside = sorted(z for z in zeros if (low is None or z > low) and (high is None or z < high))
        new_cuts.extend(inside)
        for left, right in pairwise([low, *inside, high]):
            middle = _between(left, right)
            on = (slope * middle + offset) > 0
            new_maps.append((slope * on, offset * on))
    return new_cuts, new_maps


def _between(low: Fraction | None, high: Fraction | None) -> Fraction:
    if low is None:
        return high - 1 if high is not None else Fraction(0)
    return (low + high) / 2 if high is not None else low + 1


def compile_1d(f: PiecewiseLinear1D, *, minimize: bool = False) -> Net:
    """Return a network of one hidden layer that computes f on all of the line.

    For p >= 2 pieces it has p - 1 or p ReLUs, and none has fewer than p - 1. A constant needs no ReLU
    (the network is one affine map with weight 0), any other affine function two.

    Args:
        f: The function.
        minimize: Whether to search for a way with p - 1 ReLUs if the two simple ones have p. The search
            is exact: if it finds none, p is the least number.

    Returns:
        A rational network if f is exact, one in float64 otherwise.

    Raises:
        ValueError: If the search would be too long.

    Example:
        Slopes 1, 3, 2, 5: four ReLUs by the simple ways, but the drop from 3 to 2 makes up for the 1.

        >>> from pindown.circuits.arithmetic import size
        >>> f = PiecewiseLinear1D([0, 1, 2], [0, 3, 5], left_slope=1, right_slope=5)
        >>> size(compile_1d(f)), size(compile_1d(f, minimize=True))
        (4, 3)

    Mukherjee 2020, Theorem 2.2.2: "at most p" holds for p >= 2.
    """
    if not isinstance(f, PiecewiseLinear1D):
        raise TypeError(f"compile_1d takes a PiecewiseLinear1D; got {type(f).__name__}.")
    g = f.simplified()
    if g.n_pieces == 1:
        return _affine(g)
    forms = [_right_facing(g), _left_facing(g)]
    best = min(forms, key=size)
    if minimize and size(best) >= g.n_pieces:
        left = balancing_kinks(g)
        best = best if left is None else _balanced(g, left)
    return best


def balancing_kinks(f: PiecewiseLinear1D) -> tuple[int, ...] | None:
    r"""Return kinks :math:`J` with :math:`s_L = -\sum_{j \in J} \delta_j`, or None if there are none.

    Such a set exists exactly if p - 1 ReLUs compute f. It is searched in exact arithmetic by meeting in
    the middle: :math:`2^{(p-1)/2}` sums. Floats are taken as the numbers they are.

    Example:
        >>> balancing_kinks(PiecewiseLinear1D([0, 1, 2], [0, 3, 5], 1, 5))
        (1,)
    """
    g = f.simplified().as_fractions()
    if len(g.knots) > MAX_KINKS:
        raise ValueError(
            f"the search for the least number of ReLUs takes functions with up to {MAX_KINKS} kinks; "
            f"got {len(g.knots)}. Leave minimize=False: the result has at most one ReLU more."
        )
    scale = lcm(*(v.denominator for v in (*g.jumps, g.left_slope)))
    jumps = [int(v * scale) for v in g.jumps]
    target = int(-g.left_slope * scale)
    half = len(jumps) // 2
    first = dict(_subset_sums(jumps[:half]))
    for total, chosen in _subset_sums(jumps[half:]):
        if target - total in first:
            mask = first[target - total] | chosen << half
            return tuple(j for j in range(len(jumps)) if mask >> j & 1)
    return None


def _subset_sums(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the sum and the bits of every subset."""
    sums = [0]
    for number in numbers:
        sums += [total + number for total in sums]
    return zip(sums, range(len(sums)), strict=True)


def _affine(f: PiecewiseLinear1D) -> Net:
    slope, (a, *_), (b, *_) = f.left_slope, f.knots, f.values
    if slope == 0:
        return network([([[0]], [b])], exact=f.exact)
    return _sum_of_hinges([(1, a, slope), (-1, a, -slope)], b, exact=f.exact)


def _right_facing(f: PiecewiseLinear1D) -> Net:
    """One hinge looks left from the first kink, all others right."""
    units = [(-1, f.knots[0], -f.left_slope)]
    units += [(1, a, jump) for a, jump in zip(f.knots, f.jumps, strict=True)]
    # At its first kink the hinge that looks right must add what the one that looks left does not.
    units[1] = (1, f.knots[0], f.slopes[1])
    return _sum_of_hinges(units, f.values[0], exact=f.exact)


def _left_facing(f: PiecewiseLinear1D) -> Net:
    """One hinge looks right from the last kink, all others left."""
    units = [(1, f.knots[-1], f.right_slope)]
    units += [(-1, a, jump) for a, jump in zip(f.knots, f.jumps, strict=True)]
    units[-1] = (-1, f.knots[-1], -f.slopes[-2])
    return _sum_of_hinges(units, f.values[-1], exact=f.exact)


def _balanced(f: PiecewiseLinear1D, left: Sequence[int]) -> Net:
    units = [
        (-1 if j in left else 1, a, jump)
        for j, (a, jump) in enumerate(zip(f.knots, f.jumps, strict=True))
    ]
    anchor = f.knots[0]
    others = sum(weight * max(side * (anchor - place), 0) for side, place, weight in units)
    return _sum_of_hinges(units, f.values[0] - others, exact=f.exact)


def _sum_of_hinges(units: Sequence[tuple[int, Any, Any]], bias: Any, *, exact: bool) -> Net:
    r"""Return :math:`\sum_j w_j \rho(s_j (x - a_j)) + b` for units ``(s, a, w)`` with w != 0."""
    used = [(side, place, weight) for side, place, weight in units if weight]
    zero = Fraction(0) if exact else 0.0
    inner = [[side] for side, _, _ in used], [zero - side * place for side, place, _ in used]
    return network([inner, ([[weight for _, _, weight in used]], [bias])], exact=exact)
