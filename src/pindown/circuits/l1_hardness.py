r"""Sawtooths that shallow networks cannot even come near to in the mean.

A function with p pieces is affine on all but p - 1 of the triangles of a sawtooth, and an affine
function misses a triangle of width :math:`2/q` and height 1 by :math:`1/(2q)` or more. Hence

.. math:: \int_0^1 |s_q - g| \ge \frac{\lfloor q / 2 \rfloor - (p - 1)}{2 q}
    \ge \frac14 - \frac{2 p - 1}{4 q}, \qquad q = w^k .

Mukherjee 2020, Theorem 2.3.6.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from pindown.circuits.arithmetic import Number, alike
from pindown.circuits.depth_separation import integer_root
from pindown.circuits.piecewise_1d import PiecewiseLinear1D
from pindown.geometry.counts.bounds import min_size
from pindown.validation import at_least


def l1_distance(f: PiecewiseLinear1D, g: PiecewiseLinear1D, lower: Number = 0, upper: Number = 1) -> Any:
    r"""Return :math:`\int_a^b |f - g|` from the breakpoints of both: exact if both are.

    Example:
        The diagonal and the constant 1/2 enclose two triangles of area 1/8:

        >>> line = PiecewiseLinear1D([0], [0], 1, 1)
        >>> l1_distance(line, PiecewiseLinear1D([0], [Fraction(1, 2)], 0, 0))
        Fraction(1, 4)
    """
    if not lower < upper:
        raise ValueError(f"an integral needs lower < upper; got {lower} and {upper}.")
    if not (f.exact and g.exact):
        f, g = f.rounded(), g.rounded()
    number = Fraction if f.exact else float
    a, b = number(lower), number(upper)
    inside = {t for t in (*f.knots, *g.knots) if a < t < b}
    places = [a, *sorted(inside), b]
    gaps = [f.at(t) - g.at(t) for t in places]
    return sum(
        (t - s) * _mean_of_absolute_line(u, v)
        for (s, t), (u, v) in zip(pairwise(places), pairwise(gaps), strict=True)
    )


def l1_lower_bound(width: int, layers: int, pieces: int) -> Fraction:
    r"""Return a lower bound on :math:`\int_0^1 |s_q - g|` for every g with p pieces on [0, 1].

    Args:
        width: The number :math:`w` of the sawtooth's zigzags.
        layers: The number :math:`k` of them.
        pieces: The number :math:`p`.

    Returns:
        The first of the two bounds above, never below 0.

    Example:
        >>> l1_lower_bound(width=2, layers=3, pieces=1)
        Fraction(1, 4)

    Mukherjee 2020, Theorem 2.3.6.
    """
    at_least(2, width=width)
    at_least(1, layers=layers, pieces=pieces)
    q = width**layers
    return max(Fraction(0), Fraction(q // 2 - (pieces - 1), 2 * q))


def hard_size(width: int, layers: int, shallow_layers: int, error: Number) -> int:
    r"""Return a size up to which networks of k' hidden layers or fewer are no nearer than ``error``.

    With that many ReLUs a network has :math:`p \le (q (1 - 4 \delta) + 1) / 2` pieces, and
    :func:`l1_lower_bound` gives :math:`\delta`.

    Args:
        width: The number :math:`w`.
        layers: The number :math:`k`.
        shallow_layers: The number :math:`k' \le k`.
        error: The number :math:`\delta`, between 0 and 1/4.

    Returns:
        The largest size for which counting pieces proves it; 0 if it does so for none.

    Example:
        One hidden layer of 460 ReLUs stays 0.025 away from a sawtooth that 20 ReLUs make:

        >>> hard_size(width=2, layers=10, shallow_layers=1, error=Fraction(1, 40))
        460

    Mukherjee 2020, Theorem 2.3.6.
    """
    delta, q = _checked(width, layers, shallow_layers, error)
    most = (q * (1 - 4 * delta) + 1) / 2
    found = min_size(int(most) + 1, shallow_layers) - 1
    return found if found >= shallow_layers else 0


def published_hard_size(width: int, layers: int, shallow_layers: int, error: Number) -> int:
    r"""Return the printed size :math:`k' w^{k/k'} (1 - 4\delta)^{1/k'} / 2^{1 + 1/k'}`, rounded down.

    >>> published_hard_size(width=2, layers=10, shallow_layers=1, error=Fraction(1, 40))
    230

    Mukherjee 2020, Theorem 2.3.6.
    """
    delta, q = _checked(width, layers, shallow_layers, error)
    k = shallow_layers
    # (2 s / k)^k <= q (1 - 4 delta) / 2 in integers
    reach = int(k**k * q * (1 - 4 * delta) / 2)
    return (integer_root(reach + 1, k) - 1) // 2


@dataclass(frozen=True)
class TelgarskyComparison:
    """A sawtooth of depth k cubed, approximated at depth k: two lower bounds on the size.

    Attributes:
        k: Hidden layers of the shallow network; the deep one has k cubed, of width 2.
        deep_size: ReLUs of the deep network.
        least: ReLUs needed for an error below ``error``, by counting pieces.
        telgarsky: The order of the earlier bound, 2^k.
        error: The error in the mean.
    """

    k: int
    deep_size: int
    least: int
    telgarsky: int
    error: Fraction

    def __str__(self) -> str:
        power = self.least.bit_length() - 1
        return (
            f"depth {self.k**3} against {self.k}: {self.deep_size} ReLUs against at least 2^{power} "
            f"(earlier bound: of the order 2^{self.k})"
        )


def telgarsky_comparison(k: int, error: Number = Fraction(1, 8)) -> TelgarskyComparison:
    r"""Compare lower bounds for :math:`k^3` against k layers: some :math:`2^{k^2}`, once :math:`2^k`.

    Example:
        >>> print(telgarsky_comparison(4))
        depth 64 against 4: 128 ReLUs against at least 2^17 (earlier bound: of the order 2^4)

    Mukherjee 2020, section 2.3.1, first improvement on Telgarsky 2016.
    """
    at_least(1, k=k)
    least = hard_size(2, k**3, k, error) + 1
    return TelgarskyComparison(k, 2 * k**3, least, 2**k, Fraction(error))


def _mean_of_absolute_line(u: Any, v: Any) -> Any:
    """Return the mean of the absolute value of a line from u to v."""
    if u * v >= 0:
        return (abs(u) + abs(v)) / 2
    return (u * u + v * v) / (2 * (abs(u) + abs(v)))


def _checked(width: int, layers: int, shallow_layers: int, error: Number) -> tuple[Fraction, int]:
    at_least(2, width=width)
    at_least(1, shallow_layers=shallow_layers)
    at_least(shallow_layers, layers=layers)
    delta = Fraction(alike([error], "error")[0])
    if not 0 < delta < Fraction(1, 4):
        raise ValueError(
            f"error must lie between 0 and 1/4, where the theorem says something; got {error}."
        )
    return delta, width**layers
