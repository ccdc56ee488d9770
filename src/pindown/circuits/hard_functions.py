r"""Functions of one variable that deep networks have with few ReLUs and shallow ones only with many.

The zigzag :math:`h_a` goes up and down w times between 0 and M, and a hidden layer of w ReLUs makes it.
Composed k times it goes up and down :math:`w^k` times, with :math:`w k` ReLUs in k layers.

Mukherjee 2020, Definition 5 and Theorem 2.3.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from math import prod

from pindown.circuits.arithmetic import Net, Number, alike, compose
from pindown.circuits.one_variable import compile_1d
from pindown.circuits.piecewise_1d import PiecewiseLinear1D
from pindown.validation import at_least


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

    Mukherjee 2020, Definition 5. In float64 it is the function of
    :func:`pindown.geometry.counts.piece_families.zigzag`.
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
