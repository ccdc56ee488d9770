"""How many pieces the known constructions reach: folding, zigzags, zonotopes.

The networks themselves are made in :mod:`pindown.circuits`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Literal

from pindown.geometry.counts.bounds import max_regions, min_size, zaslavsky
from pindown.validation import at_least, choice


def montufar(in_features: int, hidden_layers: int, width: int) -> int:
    r"""Return how many cells the folding construction reaches with k hidden layers of width w.

    .. math:: \lfloor w / n \rfloor^{(k - 1) n} \sum_{j=0}^{n} \binom{w}{j}, \qquad w \ge n

    Example:
        >>> montufar(2, 2, 4)  # 4 folded copies of the 11 parts that four lines make
        44

    Montufar, Pascanu, Cho, Bengio 2014.
    """
    at_least(1, in_features=in_features, hidden_layers=hidden_layers)
    at_least(in_features, width=width)
    folds = (width // in_features) ** ((hidden_layers - 1) * in_features)
    return folds * zaslavsky(width, in_features)


def telgarsky(hidden_layers: int, width: int) -> int:
    """Return the pieces :math:`w^k` on [0, M] of k composed zigzags of w pieces each.

    >>> telgarsky(3, 2)
    8

    Mukherjee 2020, Theorem 2.3.2.
    """
    at_least(1, hidden_layers=hidden_layers, width=width)
    return width**hidden_layers


def zonotope_vertex_count(dim: int, generators: int) -> int:
    r"""Return the number of vertices of a zonotope with generators in general position.

    .. math:: 2 \sum_{i=0}^{n-1} \binom{m-1}{i}

    Example:
        Four segments in the plane sum to an octagon (the printed formula says four):

        >>> zonotope_vertex_count(2, 4)
        8

    Mukherjee 2020, chapter 2, zonotopes; the factor 2 is missing there.
    """
    at_least(1, dim=dim, generators=generators)
    return 2 * zaslavsky(generators - 1, dim - 1)


def zonotope_pieces(in_features: int, zigzags: int, width: int, generators: int) -> int:
    r"""Return the number of affine pieces of a zonotope network with m generators and k zigzags.

    .. math:: 2 \sum_{i=0}^{n-1} \binom{m-1}{i} \; w^k + \epsilon

    Outside :math:`\gamma = M` the function is flat if :math:`w` is even and :math:`k \ge 2`. Those
    parts form one more piece, or two if the function varies in one direction only.

    Example:
        The picture of the 1-norm, folded twice: 16 pieces, and 0 outside

        >>> zonotope_pieces(in_features=2, zigzags=2, width=2, generators=2)
        17

    Mukherjee 2020, chapter 2, zonotope family; three other counts are printed there.
    """
    at_least(1, in_features=in_features, zigzags=zigzags, generators=generators)
    at_least(2, width=width)
    flat = width % 2 == 0 and zigzags >= 2
    outside = (1 if min(in_features, generators) >= 2 else 2) if flat else 0
    return zonotope_vertex_count(in_features, generators) * width**zigzags + outside


def zonotope_min_size(
    in_features: int,
    zigzags: int,
    width: int,
    generators: int,
    hidden_layers: int,
    *,
    variant: Literal["corrected", "as_printed"] = "corrected",
) -> int:
    r"""Return how many ReLUs any network of k' hidden layers needs for that function.

    On a line through the origin the function has :math:`2 w^k` pieces; on all of space it has
    :func:`zonotope_pieces`. Each count asks for a size, and the larger one holds.

    Args:
        in_features: Input dimension :math:`n`.
        zigzags: Number :math:`k` of zigzags.
        width: Pieces :math:`w` of each.
        generators: Number :math:`m` of the zonotope's generators.
        hidden_layers: The number :math:`k'`; the printed theorem is about :math:`k' \le k`.
        variant: ``"as_printed"`` is the least integer that is no less than

            .. math:: \max\Big\{\tfrac12 k' w^{k/k'} (m - 1)^{(1 - 1/n)/k'} - 1,\;
                k' w^{k/k'} / n^{1/k'}\Big\},

            computed in float64. It rests on a lemma for one variable and is **not proved**.

    Example:
        The network itself has 6 + 9 = 15 ReLUs in four hidden layers; one layer needs many more:

        >>> [zonotope_min_size(2, zigzags=3, width=3, generators=3, hidden_layers=k) for k in (1, 2, 4)]
        [53, 13, 8]
        >>> zonotope_min_size(2, 3, 3, 3, hidden_layers=1, variant="as_printed")
        19

    Mukherjee 2020, Theorem 2.3.10 (ii).
    """
    if choice("variant", variant, ("corrected", "as_printed")) == "as_printed":
        return _printed_min_size(in_features, zigzags, width, generators, hidden_layers)
    pieces = zonotope_pieces(in_features, zigzags, width, generators)
    on_a_line = 2 * telgarsky(zigzags, width)
    return max(min_size(on_a_line, hidden_layers), min_size(pieces, hidden_layers, in_features))


@dataclass(frozen=True)
class FamilySizes:
    """Pieces that three constructions reach with the same number of hidden layers and width."""

    hidden_layers: int
    width: int
    montufar: int
    telgarsky: int
    zonotope: int
    upper_bound: int

    def __str__(self) -> str:
        return (
            f"{self.hidden_layers} hidden layers of width {self.width}: folding {self.montufar:,}, "
            f"zigzag {self.telgarsky:,}, zonotope {self.zonotope:,}; at most {self.upper_bound:,}"
        )


def compare_families(in_features: int, width: int, generators: int, zigzags: int) -> FamilySizes:
    r"""Count the pieces of three constructions at equal depth :math:`k + 1` and width.

    Args:
        in_features: Input dimension :math:`n`.
        width: Width :math:`w \ge n` of the zigzags.
        generators: Number :math:`m` of the zonotope's generators; its layer has :math:`2 m` ReLUs.
        zigzags: Number :math:`k` of zigzags after that layer.

    Example:
        >>> print(compare_families(in_features=8, width=12, generators=6, zigzags=2))
        3 hidden layers of width 12: folding 3,797, zigzag 1,728, zonotope 9,217; at most 54,742,142,573

    Mukherjee 2020, chapter 2, comparison of the families.
    """
    common, layers = max(2 * generators, width), zigzags + 1
    return FamilySizes(
        layers,
        common,
        montufar(in_features, layers, common),
        telgarsky(layers, common),
        zonotope_pieces(in_features, zigzags, width, generators),
        max_regions(in_features, [common] * layers),
    )


def zigzags_to_beat_folding(
    in_features: int, width: int, generators: int, limit: int = 1000
) -> int | None:
    r"""Return the smallest k for which the zonotope family has more pieces than the folding one.

    With :math:`n \le w < 2 n` the folding construction cannot fold, and a few zigzags suffice.

    Returns:
        The number :math:`k`, or None if no :math:`k` up to the limit does.

    Example:
        >>> zigzags_to_beat_folding(in_features=8, width=12, generators=6)
        2

    Mukherjee 2020, chapter 2, comparison of the families.
    """
    for k in range(1, limit + 1):
        row = compare_families(in_features, width, generators, k)
        if row.zonotope > row.montufar:
            return k
    return None


def _printed_min_size(n: int, k: int, w: int, m: int, shallow: int) -> int:
    """Return the printed expression, rounded up; powers that are integers stay what they are."""
    at_least(1, in_features=n, zigzags=k, generators=m, hidden_layers=shallow)
    at_least(2, width=w)
    power = w ** (k / shallow)
    first = 0.5 * shallow * power * (m - 1) ** ((1 - 1 / n) / shallow) - 1
    second = shallow * power / n ** (1 / shallow)
    return max(0, ceil(max(first, second) - 1e-9))
