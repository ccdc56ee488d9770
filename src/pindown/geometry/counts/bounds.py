r"""How many cells and pieces a network can have, and how large it must be to have them.

All in exact integers. One fact carries the upper bounds: on a cell of the layers before, the units of
a layer are affine functions of a point in :math:`\mathbb{R}^r`, so the layer cuts the cell into no
more parts than hyperplanes cut :math:`\mathbb{R}^r`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from math import comb, prod
from typing import Literal, TypeAlias

from pindown.validation import at_least, choice, integers, refuse

Variant: TypeAlias = Literal["sharp", "as_printed"]


def zaslavsky(n_hyperplanes: int, dim: int) -> int:
    r"""Return the largest number of parts that hyperplanes cut space into.

    .. math:: \sum_{j=0}^{d} \binom{n}{j}

    Example:
        Three lines in the plane make seven parts, six if they meet in one point:

        >>> zaslavsky(3, 2)
        7

    Zaslavsky 1975.
    """
    at_least(0, n_hyperplanes=n_hyperplanes, dim=dim)
    return sum(comb(n_hyperplanes, j) for j in range(min(n_hyperplanes, dim) + 1))


def max_regions(in_features: int, hidden_widths: Iterable[int]) -> int:
    r"""Return an upper bound on the cells of any network of this shape.

    .. math:: \prod_i \sum_{j=0}^{r_i} \binom{w_i}{j}, \qquad r_i = \min(d, w_1, \dots, w_i)

    Args:
        in_features: Input dimension :math:`d`.
        hidden_widths: The :math:`w_i`.

    Example:
        A narrow layer limits all later ones to one dimension:

        >>> max_regions(2, [3, 3]), max_regions(2, [1, 3])
        (49, 8)

    Mukherjee 2020, chapter 2 (one input); Montufar 2017 (any number, with the running minimum).
    """
    at_least(1, in_features=in_features)
    widths = integers("hidden_widths", hidden_widths)
    bound, rank = 1, in_features
    for w in widths:
        bound *= zaslavsky(w, rank)
        rank = min(rank, w)
    return bound


def max_pieces_1d(hidden_widths: Iterable[int]) -> int:
    r"""Return the source's bound on the pieces of a network with one input.

    .. math:: 2^{k-1} (w_1 + 1)\, w_2 \cdots w_k

    It is never below :func:`max_regions`, which is :math:`\prod_i (w_i + 1)` for one input, and is
    here for comparison.

    Example:
        >>> max_pieces_1d([3, 3]), max_regions(1, [3, 3])
        (24, 16)

    Mukherjee 2020, chapter 2, appendix: pieces of networks with one input.
    """
    widths = integers("hidden_widths", hidden_widths)
    return 2 ** (len(widths) - 1) * (widths[0] + 1) * prod(widths[1:]) if widths else 1


def max_pieces(
    size: int, hidden_layers: int, in_features: int = 1, *, variant: Variant = "sharp"
) -> int:
    r"""Return an upper bound on the pieces of a network with this many ReLUs in k hidden layers.

    It is the largest :func:`max_regions` over all ways to share the ReLUs among the layers. Equal
    shares are best: the summed binomials are log-concave in the width, because
    :math:`\binom{w}{j} / \binom{w}{n}` falls with :math:`w` for every :math:`j < n`.

    Args:
        size: Number of ReLUs :math:`s \ge k`.
        hidden_layers: The number :math:`k \ge 1`.
        in_features: Input dimension.
        variant: ``"sharp"``, or ``"as_printed"`` for the largest :func:`max_pieces_1d` instead, with one
            input; whole widths keep it below the printed :math:`(2 s / k)^k`.

    Example:
        Six ReLUs on a line: one layer bends six times, two layers of three make 16 pieces:

        >>> max_pieces(6, 1), max_pieces(6, 2)
        (7, 16)
        >>> max_pieces(6, 2, variant="as_printed")
        24

    Mukherjee 2020, chapter 2, appendix: size, depth and pieces; here in integers, and sharper.
    """
    _check_variant(variant, in_features)
    at_least(1, size=size, hidden_layers=hidden_layers, in_features=in_features)
    if size < hidden_layers:
        raise ValueError(f"{hidden_layers} hidden layers need as many ReLUs or more; got size {size}.")
    if variant == "as_printed":
        return _as_printed_pieces(size, hidden_layers)
    return max_regions(in_features, _equal_shares(size, hidden_layers))


def min_size(
    pieces: int, hidden_layers: int, in_features: int = 1, *, variant: Variant = "sharp"
) -> int:
    r"""Return how many ReLUs a network with k hidden layers needs at least to have so many pieces.

    Args:
        pieces: Number of affine pieces :math:`p`.
        hidden_layers: The number :math:`k`, exactly.
        in_features: Input dimension.
        variant: Which bound of :func:`max_pieces`, ``"sharp"`` or ``"as_printed"``.

    Returns:
        The smallest :math:`s` with ``max_pieces(s, k) >= p``.

    Example:
        A zigzag of 1,024 pieces, with one hidden layer and with ten:

        >>> min_size(1024, 1), min_size(1024, 10)
        (1023, 10)
        >>> min_size(100, 2), min_size(100, 2, variant="as_printed")
        (18, 14)

    Mukherjee 2020, chapter 2, appendix: size, depth and pieces; here in integers, and sharper.
    """
    _check_variant(variant, in_features)
    at_least(1, pieces=pieces, hidden_layers=hidden_layers, in_features=in_features)
    most = partial(max_pieces, hidden_layers=hidden_layers, in_features=in_features, variant=variant)
    return _smallest(lambda s: most(s) >= pieces, hidden_layers)


def _check_variant(variant: str, in_features: int) -> None:
    choice("variant", variant, ("sharp", "as_printed"))
    if variant == "as_printed" and in_features != 1:
        refuse("in_features", "1 for the printed bound", in_features)


def _as_printed_pieces(size: int, hidden_layers: int) -> int:
    r"""Return the largest :func:`max_pieces_1d` over all ways to share ReLUs among k layers.

    It never exceeds the printed :math:`(2 s / k)^k`. The arithmetic-geometric inequality alone gives
    :math:`\frac12 (2 (s + 1) / k)^k`, which can be larger; whole widths close the gap, since with
    :math:`s = q k + j` the best product is :math:`2^{k-1} (q + 1)^{j+1} q^{k-j-1}
    \le 2^{k-1} \frac{q + 1}{q} (s / k)^k`.

    >>> _as_printed_pieces(2, 2), (2 * 2 / 2) ** 2, (2 * 3 / 2) ** 2 / 2
    (4, 4.0, 4.5)
    """
    return int(2 ** (hidden_layers - 1) * prod(_equal_shares(size + 1, hidden_layers)))


def _equal_shares(total: int, parts: int) -> list[int]:
    share, larger = divmod(total, parts)
    return [share + 1] * larger + [share] * (parts - larger)  # large ones first: no rank is lost


def _smallest(holds: Callable[[int], bool], start: int) -> int:
    """Return the smallest integer from ``start`` on at which a monotone property holds."""
    low, high = start, start
    while not holds(high):
        low, high = high + 1, 2 * high
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low
