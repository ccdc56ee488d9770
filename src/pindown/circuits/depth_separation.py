r"""How much larger a shallower network must be to compute what a deep one does.

k composed zigzags of w pieces need :math:`w k` ReLUs in k hidden layers. A network with
:math:`k' < k` hidden layers has too few pieces unless it is exponentially larger.

Mukherjee 2020, Theorem 2.3.1 and Corollaries 2.3.3 and 2.3.4.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from pindown.circuits.hard_functions import pieces_of_zigzags
from pindown.geometry.counts.bounds import min_size
from pindown.validation import at_least


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
        published: The same from the printed bound, rounded up: the least integer that it allows.
    """

    width: int
    layers: int
    shallow_layers: int
    size: int
    pieces: int
    least: int
    published: int

    def __str__(self) -> str:
        return (
            f"{_shown(self.pieces)} pieces: {self.size} ReLUs in {self.layers} hidden layers, at least "
            f"{_shown(self.least)} in {self.shallow_layers} (printed bound: {_shown(self.published)})"
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
    published = max(0, -(-root // 2) - 1)
    least = min_size(pieces, shallow_layers)
    return DepthGap(width, layers, shallow_layers, width * layers, pieces, least, published)


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
