r"""Depth separation: what deep networks have with few ReLUs and shallow ones only with many.

The zigzag :math:`h_a` goes up and down w times between 0 and M, and a hidden layer of w ReLUs makes it.
Composed k times it goes up and down :math:`w^k` times, with :math:`w k` ReLUs in k layers. A network
with :math:`k' < k` hidden layers has too few pieces unless it is exponentially larger.

It cannot even come near in the mean. A function with p pieces is affine on all but p - 1 of the
triangles of a sawtooth, and an affine function misses a triangle of width :math:`2/q` and height 1 by
:math:`1/(2q)` or more. Hence

.. math:: \int_0^1 |s_q - g| \ge \frac{\lfloor q / 2 \rfloor - (p - 1)}{2 q}
    \ge \frac14 - \frac{2 p - 1}{4 q}, \qquad q = w^k .

Mukherjee 2020, Definition 5, Theorems 2.3.1, 2.3.2 and 2.3.6, Corollaries 2.3.3 and 2.3.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from math import prod
from typing import Any, Literal

from pindown.circuits.arithmetic import Net, Number, alike, compose
from pindown.circuits.piecewise_1d import PiecewiseLinear1D, compile_1d
from pindown.geometry.counts.bounds import min_size
from pindown.validation import at_least, choice


def zigzag_function(peaks: Sequence[Number], height: Number = 1) -> PiecewiseLinear1D:
    r"""Return the zigzag :math:`h_a` with w = p + 1 pieces on [0, M].

    It is 0 left of 0, :math:`M (i \bmod 2)` at :math:`a_i`, comes back to :math:`M - h_a(a_p)` at M and
    goes on straight beyond.

    Args:
        peaks: :math:`0 < a_1 < \dots < a_p < M`, one or more.
        height: The number :math:`M`.

    Raises:
        ValueError: If the numbers do not ascend between 0 and M.

    Example:
        >>> h = zigzag_function([Fraction(1, 3), Fraction(1, 2)])
        >>> h, [str(h.at(x)) for x in (-1, 0, Fraction(1, 3), Fraction(1, 2), 1)]
        (PiecewiseLinear1D(4 pieces, kinks at 0, 0.333333, 0.5, exact), ['0', '0', '1', '0', '1'])

    Mukherjee 2020, Definition 5. :func:`compile_1d` turns it into a network.
    """
    *inner, M = alike([*peaks, height], "peaks and height")
    knots = [0 * M, *inner, M]
    if len(inner) < 1 or any(a >= b for a, b in pairwise(knots)):
        raise ValueError(
            f"a zigzag needs numbers 0 < a_1 < ... < a_p < {height}, one or more; got {list(peaks)}."
        )
    values = [M * (i % 2) for i in range(len(knots))]
    last = (values[-1] - values[-2]) / (knots[-1] - knots[-2])
    return PiecewiseLinear1D(knots[:-1], values[:-1], 0, last)


def composed_zigzags(peaks: Sequence[Sequence[Number]], height: Number = 1) -> Net:
    r"""Return :math:`h_{a^k} \circ \dots \circ h_{a^1}` as a network with :math:`w_i` ReLUs in layer i.

    Args:
        peaks: The vectors :math:`a^1, \dots, a^k`, one or more; they may have different lengths.
        height: The number :math:`M`.

    Returns:
        A rational network if all numbers are fractions, one in float64 otherwise.

    Example:
        Three pieces, then two: six pieces on [0, 1].

        >>> net = composed_zigzags([[Fraction(1, 3), Fraction(2, 3)], [Fraction(1, 2)]])
        >>> PiecewiseLinear1D.from_network(net).on(0, 1)
        6

    Mukherjee 2020, Theorem 2.3.2 and Figure 2.1.
    """
    if not peaks:
        raise ValueError("composed_zigzags needs one or more vectors of peaks; got none.")
    parts = [compile_1d(zigzag_function(a, height)) for a in peaks]
    return reduce(lambda inner, outer: compose(outer, inner), parts)


def pieces_of_zigzags(widths: Sequence[int], *, on_line: bool = False) -> int:
    r"""Return how many pieces composed zigzags of :math:`w_1, \dots, w_k` pieces have.

    On [0, M] they are :math:`w_1 \cdots w_k`. On the whole line there is one more on the left, and one
    more on the right if some :math:`w_i` with i < k is even: beyond M that zigzag is negative, and the
    next one is 0.

    Args:
        widths: The :math:`w_i`.
        on_line: Whether to count on the whole line.

    Example:
        >>> pieces_of_zigzags([2, 2]), pieces_of_zigzags([2, 2], on_line=True)
        (4, 6)
        >>> pieces_of_zigzags([3, 3], on_line=True)
        10

    Mukherjee 2020, Lemma 2.3.5, which says "at most :math:`w^k + 2`" for the whole line.
    """
    at_least(2, **{f"widths[{i}]": w for i, w in enumerate(widths)})
    if not len(widths):
        raise ValueError("widths must hold one or more integers; got none.")
    outside = 1 + any(w % 2 == 0 for w in widths[:-1]) if on_line else 0
    return prod(widths) + outside


def even_sawtooth(width: int, layers: int) -> Net:
    r"""Return the zigzag with equal gaps 1 / w, composed k times: :math:`w^k` equal pieces on [0, 1].

    Example:
        >>> s = even_sawtooth(2, 3)
        >>> [int(s([Fraction(i, 8)])[0]) for i in range(9)]
        [0, 1, 0, 1, 0, 1, 0, 1, 0]

    Mukherjee 2020, proof of Theorem 2.3.6, where the vector is said to have :math:`w^k - 1` entries and
    the layers w + 1 ReLUs; w - 1 and w are right.
    """
    at_least(2, width=width)
    at_least(1, layers=layers)
    return composed_zigzags([[Fraction(i, width) for i in range(1, width)]] * layers)


@dataclass(frozen=True)
class DepthGap:
    """Composed zigzags, and what they cost with fewer hidden layers.

    Attributes:
        width: Pieces w of each zigzag, ReLUs of each hidden layer.
        layers: Number k of zigzags, hidden layers of the deep network.
        shallow_layers: Hidden layers k' of any other network for the same function.
        size: ReLUs of the deep network, w k.
        pieces: Pieces of the function on the whole line.
        least: ReLUs that the shallow network has at least; proved by counting pieces, in integers.
        as_printed: The same from the printed bound, rounded up: the least integer that it allows.
    """

    width: int
    layers: int
    shallow_layers: int
    size: int
    pieces: int
    least: int
    as_printed: int

    def __str__(self) -> str:
        return (
            f"{_shown(self.pieces)} pieces: {self.size} ReLUs in {self.layers} hidden layers, at least "
            f"{_shown(self.least)} in {self.shallow_layers} (printed bound: {_shown(self.as_printed)})"
        )


def depth_gap(width: int, layers: int, shallow_layers: int) -> DepthGap:
    r"""Compare k composed zigzags of w pieces with networks of k' hidden layers.

    The printed bound is :math:`\tfrac12 k' w^{k/k'} - 1`. Ours is the least size for which
    :math:`\prod_i (w_i + 1)` reaches the number of pieces on the whole line.

    Args:
        width: The number :math:`w \ge 2`.
        layers: The number :math:`k`.
        shallow_layers: The number :math:`k' \le k`.

    Example:
        >>> print(depth_gap(width=2, layers=10, shallow_layers=1))
        1026 pieces: 20 ReLUs in 10 hidden layers, at least 1025 in 1 (printed bound: 511)

    Mukherjee 2020, Theorem 2.3.1.
    """
    at_least(2, width=width)
    at_least(1, shallow_layers=shallow_layers)
    at_least(shallow_layers, layers=layers)
    pieces = pieces_of_zigzags([width] * layers, on_line=True)
    # (2 (s + 1) / k')^k' >= w^k in integers
    root = integer_root(shallow_layers**shallow_layers * width**layers, shallow_layers)
    as_printed = max(0, -(-root // 2) - 1)
    least = min_size(pieces, shallow_layers)
    return DepthGap(width, layers, shallow_layers, width * layers, pieces, least, as_printed)


def depth_gaps(width: int, layers: int) -> list[DepthGap]:
    """Compare with every smaller number of hidden layers, and with k itself.

    >>> [gap.least for gap in depth_gaps(width=3, layers=4)]
    [81, 17, 11, 9]
    """
    at_least(1, layers=layers)
    return [depth_gap(width, layers, shallow) for shallow in range(1, layers + 1)]


def power_gap(k: int, power: int | Fraction = 1) -> DepthGap:
    r"""Compare :math:`k^{1 + \epsilon}` hidden layers of width k with k hidden layers.

    The deep network has :math:`k^{2 + \epsilon}` ReLUs, the shallow one at least
    :math:`\tfrac12 k \cdot k^{k^\epsilon} - 1`.

    Args:
        k: The number :math:`k \ge 2`.
        power: The number :math:`\epsilon > 0`; :math:`k^\epsilon` must be an integer.

    Raises:
        ValueError: If :math:`k^\epsilon` is not an integer.

    Example:
        >>> print(power_gap(3))
        19684 pieces: 27 ReLUs in 9 hidden layers, at least 79 in 3 (printed bound: 40)

    Mukherjee 2020, Corollaries 2.3.3 and 2.3.4. The first is printed with :math:`k^\epsilon` in place of
    :math:`k^{k^\epsilon}`, and with one simplex in place of :math:`k^{1 + \epsilon}` of them.
    """
    at_least(2, k=k)
    epsilon = Fraction(power)
    if epsilon <= 0:
        raise ValueError(f"power must be positive; got {power}.")
    factor = integer_root(k**epsilon.numerator, epsilon.denominator)
    if factor**epsilon.denominator != k**epsilon.numerator:
        raise ValueError(f"k to the power must be an integer number of layers; got {k}^{epsilon}.")
    return depth_gap(k, k * factor, k)


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


def hard_size(
    width: int,
    layers: int,
    shallow_layers: int,
    error: Number,
    *,
    variant: Literal["sharp", "as_printed"] = "sharp",
) -> int:
    r"""Return a size up to which networks of k' hidden layers or fewer are no nearer than ``error``.

    With that many ReLUs a network has :math:`p \le (q (1 - 4 \delta) + 1) / 2` pieces, and
    :func:`l1_lower_bound` gives :math:`\delta`.

    Args:
        width: The number :math:`w`.
        layers: The number :math:`k`.
        shallow_layers: The number :math:`k' \le k`.
        error: The number :math:`\delta`, between 0 and 1/4.
        variant: ``"as_printed"`` is :math:`k' w^{k/k'} (1 - 4\delta)^{1/k'} / 2^{1 + 1/k'}`, rounded
            down, which is about half as large for one hidden layer.

    Returns:
        The largest size for which counting pieces proves it; 0 if it does so for none.

    Example:
        One hidden layer of 460 ReLUs stays 0.025 away from a sawtooth that 20 ReLUs make:

        >>> hard_size(width=2, layers=10, shallow_layers=1, error=Fraction(1, 40))
        460
        >>> hard_size(width=2, layers=10, shallow_layers=1, error=Fraction(1, 40), variant="as_printed")
        230

    Mukherjee 2020, Theorem 2.3.6.
    """
    delta, q = _checked(width, layers, shallow_layers, error)
    if choice("variant", variant, ("sharp", "as_printed")) == "as_printed":
        return _printed_hard_size(q, shallow_layers, delta)
    most = (q * (1 - 4 * delta) + 1) / 2
    found = min_size(int(most) + 1, shallow_layers) - 1
    return found if found >= shallow_layers else 0


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


def integer_root(number: int, degree: int) -> int:
    """Return the least integer whose power of this degree is the number or more.

    >>> integer_root(27, 3), integer_root(28, 3)
    (3, 4)
    """
    low, high = 0, 1 << -(-number.bit_length() // degree)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if middle**degree >= number else (middle + 1, high)
    return low


def _shown(number: int) -> str:
    """Return small numbers in full, large ones by their power of ten."""
    digits = str(number)
    return digits if len(digits) <= 9 else f"{digits[0]}.{digits[1]}e{len(digits) - 1}"


def _printed_hard_size(q: int, k: int, delta: Fraction) -> int:
    # (2 s / k)^k <= q (1 - 4 delta) / 2 in integers
    reach = int(k**k * q * (1 - 4 * delta) / 2)
    return (integer_root(reach + 1, k) - 1) // 2


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
