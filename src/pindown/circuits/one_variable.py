r"""Compile a piecewise linear function of one variable into the smallest network of one hidden layer.

One ReLU :math:`c\,\rho(\pm(x - a))` makes one kink, so p pieces need p - 1 of them. If all look to the
right the function is flat on the far left; the slope there costs one more ReLU, unless some kinks,
turned to look to the left, make up for it:

.. math:: f(x) = c + \sum_{j \notin J} \delta_j\, \rho(x - a_j) + \sum_{j \in J} \delta_j\, \rho(a_j - x)
    \iff s_L = -\sum_{j \in J} \delta_j ,

where :math:`\delta_j` is the change of slope at :math:`a_j` and :math:`s_L` the slope on the far left.

Mukherjee 2020, Theorem 2.2.2 and Corollary 2.A.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import lcm
from typing import Any

from pindown.circuits.arithmetic import Net, network, size
from pindown.circuits.piecewise_1d import PiecewiseLinear1D

# Half of the kinks give 2^16 sums to remember: a fraction of a second.
_MOST_KINKS = 32


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
    if len(g.knots) > _MOST_KINKS:
        raise ValueError(
            f"the search for the least number of ReLUs takes functions with up to {_MOST_KINKS} kinks; "
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
