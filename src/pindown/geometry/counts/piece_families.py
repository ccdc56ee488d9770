r"""How many pieces the known constructions reach (folding, zigzags, zonotopes), and networks that do.

The support function :math:`\gamma(r) = \sum_i |\langle r, b^i \rangle|` of a zonotope is a network of
one hidden layer. It is linear on the normal cone of each vertex, so it has as many pieces as the
zonotope has vertices; zigzags composed with it multiply that number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cmp_to_key, reduce
from itertools import combinations, pairwise
from math import lcm

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array, is_finite
from pindown.calculus import compose
from pindown.geometry.counts.bounds import max_regions, min_size, zaslavsky
from pindown.geometry.exact.complex import exact_complex
from pindown.geometry.exact.polytope import determinant
from pindown.network import ReluNetwork
from pindown.validation import at_least


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
    in_features: int, zigzags: int, width: int, generators: int, hidden_layers: int
) -> int:
    r"""Return how many ReLUs any network of k' hidden layers needs for that function.

    On a line through the origin the function has :math:`2 w^k` pieces; on all of space it has
    :func:`zonotope_pieces`. Each count asks for a size, and the larger one holds.

    Example:
        The network itself has 6 + 9 = 15 ReLUs in four hidden layers; one layer needs many more:

        >>> [zonotope_min_size(2, zigzags=3, width=3, generators=3, hidden_layers=k) for k in (1, 2, 4)]
        [53, 13, 8]

    Mukherjee 2020, chapter 2, zonotope family; the bound printed there is proved for one input only.
    """
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


def zonotope_network(generators: ArrayLike) -> ReluNetwork:
    r"""Return :math:`\gamma(r) = \sum_i |\langle r, b^i \rangle|` as a network with 2m ReLUs.

    Args:
        generators: The vectors :math:`b^i`, shape (m, n).

    Example:
        The unit vectors give the 1-norm:

        >>> zonotope_network(np.eye(2))([[3.0, -4.0]])
        array([[7.]])

    Mukherjee 2020, chapter 2, zonotopes.
    """
    B = _generators(generators)
    m = len(B)
    return ReluNetwork.from_layers([(np.vstack([B, -B]), np.zeros(2 * m)), (np.ones((1, 2 * m)), [0])])


def zonotope_vertices(generators: ArrayLike) -> Array:
    r"""Return the vertices of :math:`Z = \{\sum_i \lambda_i b^i : |\lambda_i| \le 1\}`.

    Which sums :math:`\sum_i \pm b^i` are vertices is decided in exact arithmetic, so parallel or
    dependent generators need no care.

    Args:
        generators: The vectors :math:`b^i`, shape (m, n).

    Returns:
        The vertices, shape (V, n); counter-clockwise in the plane.

    Example:
        Two unit vectors make a square, and a third, parallel one makes it longer:

        >>> zonotope_vertices([[1, 0], [0, 1]])
        array([[-1., -1.],
               [ 1., -1.],
               [ 1.,  1.],
               [-1.,  1.]])
        >>> len(zonotope_vertices([[1, 0], [0, 1], [2, 0]]))
        4

    Mukherjee 2020, chapter 2, zonotopes.
    """
    B = _generators(generators)
    if B.shape[1] == 2:
        return _signs_by_angle(B) @ B
    # Each vertex is the largest point in the directions of one cell of the hyperplanes r.b = 0.
    fan = ReluNetwork.from_layers([(B, np.zeros(len(B))), (np.ones((1, len(B))), [0])])
    cells = exact_complex(fan, (-1.0, 1.0))
    return np.where(cells.patterns, 1.0, -1.0) @ B


def is_extremal(generators: ArrayLike) -> bool:
    """Say whether a zonotope has as many vertices as its number of generators allows.

    It does if every n of the generators (all of them, if there are fewer) are linearly independent;
    decided in exact arithmetic.

    Example:
        >>> is_extremal([[1, 0], [0, 1], [1, 1]]), is_extremal([[1, 0], [0, 1], [-2, 0]])
        (True, False)

    Mukherjee 2020, chapter 2, zonotopes.
    """
    B = _integers(_generators(generators))
    if len(B[0]) == 1:
        return any(value for (value,) in B)  # on a line one segment has both ends already
    chosen = min(len(B), len(B[0]))
    return all(determinant(_gram(rows)) != 0 for rows in combinations(B, chosen))


def sample_extremal(n: int, m: int, rng: np.random.Generator) -> Array:
    """Draw m Gaussian generators in n dimensions: extremal with probability one.

    >>> is_extremal(sample_extremal(3, 5, np.random.default_rng(0)))
    True
    """
    at_least(1, n=n, m=m)
    return rng.standard_normal((m, n))


def zigzag(peaks: Sequence[float], height: float = 1.0) -> ReluNetwork:
    r"""Return the zigzag :math:`h_a` with 0 left of 0 and w = p + 1 pieces on [0, M].

    It is :math:`M (i \bmod 2)` at :math:`a_i`, comes back to :math:`M - h_a(a_p)` at :math:`M`, and goes
    on straight beyond.

    Args:
        peaks: The numbers :math:`0 < a_1 < \dots < a_p < M`.
        height: The number :math:`M`.

    Example:
        >>> zigzag([0.5])([[0.0], [0.25], [0.5], [1.0], [-3.0]]).ravel()
        array([0. , 0.5, 1. , 0. , 0. ])

    Mukherjee 2020, chapter 2, hard functions of one variable.
    """
    knots = np.array([0.0, *peaks, height], dtype=float)
    if not is_finite(knots) or len(knots) < 3 or np.any(np.diff(knots) <= 0):
        raise ValueError(
            f"a zigzag needs numbers 0 < a_1 < ... < a_p < {height:g}, one or more; got {list(peaks)}."
        )
    values = height * (np.arange(len(knots)) % 2)
    slopes = np.diff(values) / np.diff(knots)
    bends = np.diff(slopes, prepend=0.0)
    hinges = knots[:-1]
    return ReluNetwork.from_layers([(np.ones((len(hinges), 1)), -hinges), (bends[None], [0])])


def zonotope_family(
    peaks: Sequence[Sequence[float]], generators: ArrayLike, height: float = 1.0
) -> ReluNetwork:
    r"""Return :math:`h_{a^k} \circ \dots \circ h_{a^1} \circ \gamma`: zigzags after a support function.

    With extremal generators it has as many pieces as
    :func:`~pindown.geometry.counts.piece_families.zonotope_pieces` says: each cone of :math:`\gamma` is
    cut into :math:`w^k`. In float64 that is exact if the slopes are: let gaps between peaks be powers
    of two.

    Args:
        peaks: For each zigzag its numbers :math:`a_1 < \dots < a_{w-1}`, all of the same length.
        generators: The vectors :math:`b^i`, shape (m, n).
        height: The number :math:`M`.

    Returns:
        A network with widths ``n, 2 m, w, ..., w, 1``.

    Example:
        >>> zonotope_family([[0.5], [0.5]], np.eye(2))
        ReluNetwork(2 -> 4 -> 2 -> 2 -> 1, 31 parameters)

    Mukherjee 2020, chapter 2, zonotope family.
    """
    lengths = [len(a) for a in peaks]
    if len(set(lengths)) != 1:
        raise ValueError(f"the family needs one or more zigzags of equal length; got lengths {lengths}.")
    parts = [zonotope_network(generators), *(zigzag(a, height) for a in peaks)]
    return reduce(lambda inner, outer: compose(outer, inner), parts)


def _signs_by_angle(B: Array) -> Array:
    """Return the sign vectors of a plane zonotope's vertices, going around."""
    exact = _integers(B)
    # Turned into one half-plane, generators are passed in the order of their angles.
    turn = [1 if (y, x) >= (0, 0) else -1 for x, y in exact]
    upper = [(t * x, t * y) for t, (x, y) in zip(turn, exact, strict=True)]

    def turned(i: int, j: int) -> int:
        """Cross product: negative if i comes before j, 0 if they are parallel."""
        return upper[j][0] * upper[i][1] - upper[j][1] * upper[i][0]

    order = sorted((i for i in range(len(B)) if any(exact[i])), key=cmp_to_key(turned))
    last_of_angle = [turned(i, j) != 0 for i, j in pairwise(order)] + [True] * bool(order)
    signs = -np.array(turn, dtype=float)
    found = []
    for _ in range(2 if order else 0):
        for i, last in zip(order, last_of_angle, strict=True):
            signs[i] = -signs[i]
            if last:
                found.append(signs.copy())
    return np.array(found[-1:] + found[:-1]) if found else signs[None]


def _integers(B: Array) -> list[list[int]]:
    """Return the generators times one positive number that makes all of them integers."""
    exact = [[Fraction(value) for value in row] for row in B.tolist()]
    scale = lcm(*(value.denominator for row in exact for value in row))
    return [[int(value * scale) for value in row] for row in exact]


def _gram(rows: Sequence[Sequence[int]]) -> list[list[int]]:
    return [[sum(x * y for x, y in zip(a, b, strict=True)) for b in rows] for a in rows]


def _generators(generators: ArrayLike) -> Array:
    B = np.array(generators, dtype=np.float64)
    if B.ndim != 2 or 0 in B.shape or not is_finite(B):
        what = f"shape {B.shape}" if is_finite(B) else "NaN or infinity"
        raise ValueError(f"generators must be finite numbers, one vector in each row; got {what}.")
    return B
