r"""Networks on the line whose local maxima are given points, with as few units as possible.

For :math:`x_1 < \dots < x_m` the function climbs to :math:`x_1`, dips half way between neighbours, and
falls after :math:`x_m`. It has a kink at each of the m points and m - 1 dips, and a hidden unit makes
one kink: 2m - 1 units are needed. The construction of the source has 2m. For m > 1 one unit can be
saved, so 2m - 1 is the answer; for m = 1 it is 2.

Everything is built in rational arithmetic; ``to_network()`` rounds it.

Wolf, Benaim, Galanti 2019, Theorem 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise

from pindown.circuits.arithmetic import Number
from pindown.rational import RationalNetwork


def local_maxima_network(points: Iterable[Number], *, height: Number = 0) -> RationalNetwork:
    r"""Return a network with 2m hidden units whose local maxima are exactly m given points.

    .. math::
        v(x) = h + \begin{cases}
            x - x_1 & x \le x_1 \\
            -|x - x_i| \cdot 2 / (x_{i+1} - x_i) & \text{nearer to } x_i \text{ than to } x_{i+1} \\
            x_m - x & x \ge x_m ,
        \end{cases}

    and likewise left of :math:`x_{i+1}`: from h at one point down to h - 1 half way and up to h again.

    Args:
        points: :math:`x_1 < \dots < x_m`, floats taken exactly.
        height: :math:`h`, the bias of the output. With 0 the network has the form
            :math:`W_2 \rho(W_1 x + b)` of the theorem; the source draws the function with h = 1.

    Returns:
        The exact network.

    Raises:
        ValueError: If there are no points, or they do not ascend.

    Example:
        >>> net = local_maxima_network([0, 2])
        >>> [int(net([x])[0]) for x in (-1, 0, 1, 2, 3)], len(net.layers[0][1])
        ([-1, 0, -1, 0, -1], 4)

    Wolf, Benaim, Galanti 2019, Theorem 1 (1). The printed third case has slope
    :math:`1 / (x_{i+1} - x_i)`, which is not continuous; 2 is needed in place of 1. With h = 1 and no
    output bias, as printed, 2m units are not enough (one point: ``1 - |x|`` is not zero at its only
    kink).
    """
    x = _ascending(points)
    units = [(-1, x[0], Fraction(-1))]  # climbs to x_1 with slope 1, and is 0 from there on
    level = Fraction(0)
    for kink, slope in zip(_kinks(x), [*_inner_slopes(x), Fraction(-1)], strict=True):
        units.append((1, kink, slope - level))
        level = slope
    return _network(units, Fraction(height))


def smallest_local_maxima_network(points: Iterable[Number]) -> RationalNetwork:
    r"""Return the smallest such network: 2m - 1 hidden units, or 2 if there is one point.

    The unit at :math:`x_m` looks to the left, all others to the right. A left-looking unit changes the
    slope at :math:`x_m` by as much as it adds to the slope on the far left; so the same kinks as in
    :func:`local_maxima_network` do, if only the climb to :math:`x_1` is steeper by
    :math:`2 / (x_m - x_{m-1})`.

    Args:
        points: :math:`x_1 < \dots < x_m`, floats taken exactly.

    Returns:
        The exact network, without output bias.

    Raises:
        ValueError: If there are no points, or they do not ascend.

    Example:
        >>> net = smallest_local_maxima_network([0, 2])
        >>> [int(net([x])[0]) for x in (-1, 0, 1, 2, 3)], len(net.layers[0][1])
        ([-6, -4, -5, -4, -5], 3)

    Wolf, Benaim, Galanti 2019, Theorem 1 (2) proves that fewer do not suffice.
    """
    x = _ascending(points)
    if len(x) == 1:
        return local_maxima_network(x)
    inner = _inner_slopes(x)
    level = inner[-1] + 1  # the slope on the far left, which the unit at x_m takes away
    units = [(-1, x[-1], -level)]
    for kink, slope in zip(_kinks(x)[:-1], inner, strict=True):
        units.append((1, kink, slope - level))
        level = slope
    return _network(units, Fraction(0))


def indicator_network(points: Iterable[Number], width: Number, *, off: Number = -1) -> RationalNetwork:
    r"""Return a network with 3m hidden units that is 1 at m points and ``off`` away from them.

    A tent of half width :math:`w` stands on each point: it has three kinks, where a local maximum has
    one and a dip. That is why a value function is smaller than a classifier.

    Args:
        points: :math:`x_1 < \dots < x_m`, floats taken exactly.
        width: Half width w of the tents, at most half the smallest gap.
        off: The value elsewhere, and the bias of the output.

    Returns:
        The exact network.

    Raises:
        ValueError: If there are no points, they do not ascend, or tents overlap.

    Example:
        >>> net = indicator_network([0, 2], width=Fraction(1, 2))
        >>> [int(net([x])[0]) for x in (-1, 0, 1, 2, 3)], len(net.layers[0][1])
        ([-1, 1, -1, 1, -1], 6)

    Wolf, Benaim, Galanti 2019, Theorem 1 (3), where labels 0 and -1 are mixed; -1 is meant.
    """
    x, w, base = _ascending(points), Fraction(width), Fraction(off)
    narrowest = min((b - a for a, b in pairwise(x)), default=2 * w)
    if not 0 < 2 * w <= narrowest:
        raise ValueError(
            f"width must be positive and at most half the smallest gap {float(narrowest):g}; "
            f"got {width}."
        )
    rise = (1 - base) / w
    units = [
        (1, p + shift * w, weight * rise) for p in x for shift, weight in ((-1, 1), (0, -2), (1, 1))
    ]
    return _network(units, base)


def _ascending(points: Iterable[Number]) -> list[Fraction]:
    try:
        x = [Fraction(p) for p in points]
    except (OverflowError, ValueError):
        raise ValueError("points must be finite numbers.") from None
    if not x:
        raise ValueError("at least one point is needed; got none.")
    for a, b in pairwise(x):
        if a >= b:
            raise ValueError(f"points must ascend; got {float(a):g} before {float(b):g}.")
    return x


def _kinks(x: Sequence[Fraction]) -> list[Fraction]:
    """Return the points with the dips half way between them, ascending."""
    dips = [(a + b) / 2 for a, b in pairwise(x)]
    return [x[0], *(kink for pair in zip(dips, x[1:], strict=True) for kink in pair)]


def _inner_slopes(x: Sequence[Fraction]) -> list[Fraction]:
    """Return the slopes between consecutive kinks: down and up again by 1 in every gap."""
    return [sign * 2 / (b - a) for a, b in pairwise(x) for sign in (-1, 1)]


def _network(units: Sequence[tuple[int, Fraction, Fraction]], bias: Fraction) -> RationalNetwork:
    r"""Return :math:`\sum_j a_j \rho(s_j (x - p_j)) + b` for units ``(s, p, a)``."""
    return RationalNetwork.from_layers(
        [
            ([[side] for side, _, _ in units], [-side * place for side, place, _ in units]),
            ([[weight for _, _, weight in units]], [bias]),
        ]
    )
