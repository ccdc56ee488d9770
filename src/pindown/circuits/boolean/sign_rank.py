r"""Sign-rank: the smallest rank of a real matrix with given signs, bounded from both sides.

A circuit on (x, y) is a matrix: rows are the values of x, columns those of y, and the entries are what
enters the output gate. If the bottom gates order the x alike, the rows form a chain with few different
members, whatever is above.

Mukherjee 2020, Theorem 2.5.5 and appendix 2.E.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.circuits.boolean.cube import fractions_of, require_cube, vertices
from pindown.circuits.tuning import MAX_RANK_ROWS
from pindown.geometry.exact.linear_algebra import integer_rank
from pindown.io.accepting import on_network
from pindown.network import ReluNetwork
from pindown.rational import RationalNetwork

# A norm in float64 is right to about 1e-16 times the number of rows: far better than this.
_NORM_SLACK = 1e-9


@on_network
def output_matrix(net: ReluNetwork | RationalNetwork, output: int = 0) -> Any:
    """Return the values of a network on (x, y) as a matrix of 2^m rows x and 2^m columns y.

    Args:
        net: A network on 2m inputs. A rational one gives fractions; float64 values are exact for whole
            weights of moderate size.
        output: Which output.

    Returns:
        The matrix, in the order of :func:`~pindown.circuits.boolean.cube.vertices`.

    Example:
        >>> total = ReluNetwork.from_layers([([[1.0, 1.0]], [0])])  # x + y
        >>> output_matrix(total)
        array([[ 2.,  0.],
               [ 0., -2.]])
    """
    n = net.layers[0][0].shape[1]
    if n % 2:
        raise ValueError(f"the inputs (x, y) must be even in number; got {n}.")
    require_cube(n)
    cube, side = vertices(n), 2 ** (n // 2)
    if isinstance(net, ReluNetwork):
        return net(cube)[:, output].reshape(side, side)
    values = np.empty(len(cube), dtype=object)
    values[:] = [net(row)[output] for row in cube.tolist()]
    return values.reshape(side, side)


def distinct_rows(matrix: ArrayLike) -> int:
    """Return the number of different rows.

    >>> distinct_rows([[1, 2], [1, 2], [0, 2]])
    2
    """
    return len(set(map(tuple, _matrix(matrix).tolist())))


def row_blocks(matrix: ArrayLike) -> int:
    """Return the number of runs of equal rows: the blocks of a contiguous partition, as few as possible.

    >>> row_blocks([[1, 2], [1, 2], [0, 2], [1, 2]])
    3
    """
    rows = [tuple(row) for row in _matrix(matrix).tolist()]
    return 1 + sum(first != second for first, second in pairwise(rows))


def exact_rank(matrix: ArrayLike) -> int:
    """Return the rank of a matrix, by elimination in whole numbers.

    Raises:
        ValueError: If there are more than 128 different rows and more than 128 different columns.

    >>> exact_rank([[1, 2], [2, 4]])
    1
    """
    rows = list(dict.fromkeys(map(tuple, _matrix(matrix).tolist())))
    rows = list(dict.fromkeys(zip(*rows, strict=True)))  # equal columns go, too
    if min(len(rows), len(rows[0])) > MAX_RANK_ROWS:
        raise ValueError(
            f"the exact rank takes at most {MAX_RANK_ROWS} different rows or columns; "
            f"got {len(rows)} and {len(rows[0])}."
        )
    if len(rows) > len(rows[0]):
        rows = list(zip(*rows, strict=True))
    return integer_rank([_whole_row(row) for row in rows])


def sign_rank_upper(matrix: ArrayLike) -> int:
    r"""Return an upper bound on the sign-rank of a matrix, where zero counts as positive.

    Zero entries are first made positive by adding half the smallest distance p of a negative entry from
    zero to *all* entries: an increase of the output gate's bias that changes no value of the circuit,
    nor which rows are equal. Then the rank is the bound.

    >>> sign_rank_upper([[0, -1], [-1, 0]])  # of [[+, -], [-, +]]
    1

    Mukherjee 2020, appendix 2.E.
    """
    M = _matrix(matrix)
    values = np.array(fractions_of(M.ravel().tolist(), "entries"), dtype=object).reshape(M.shape)
    negative = [value for value in values.ravel() if value < 0]
    if not negative or len(negative) == values.size:
        return 1  # one sign
    if all(values.ravel() != 0):
        return exact_rank(values)
    return exact_rank(values - max(negative) / 2)


def forster_lower(matrix: ArrayLike) -> float:
    r"""Return Forster's lower bound on the sign-rank, where zero counts as positive.

    .. math:: \operatorname{sign\text{-}rank}(M) \ge \sqrt{r c} \, / \, \|\operatorname{sign} M\|_2

    for a matrix of r rows and c columns; the value is rounded down.

    Example:
        The signs of a Hadamard matrix have norm 2, and sign-rank at least 2:

        >>> round(forster_lower([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]), 6)
        2.0

    Forster 2002.
    """
    M = _matrix(matrix)
    signs = np.where(M >= 0, 1.0, -1.0)
    return float(math.sqrt(signs.size) / np.linalg.norm(signs, 2) * (1 - _NORM_SLACK))


@dataclass(frozen=True)
class SignRankBounds:
    """What is proved about a sign-rank: it lies between ``lower`` and ``upper``."""

    lower: int
    upper: int


def sign_rank_bounds(matrix: ArrayLike) -> SignRankBounds:
    """Return Forster's lower bound, rounded up to a whole number, and the rank as upper bound.

    >>> sign_rank_bounds([[2, 1], [1, 2]])
    SignRankBounds(lower=1, upper=1)
    """
    return SignRankBounds(max(1, math.ceil(forster_lower(matrix))), sign_rank_upper(matrix))


def _matrix(matrix: ArrayLike) -> Any:
    M = np.asarray(matrix)
    if M.ndim != 2 or not M.size:
        raise ValueError(f"a matrix with at least one entry is needed; got shape {M.shape}.")
    if M.dtype.kind not in "biufO":
        raise TypeError(f"entries must be real numbers; got dtype {M.dtype}.")
    if M.dtype.kind == "f" and not np.isfinite(M).all():
        raise ValueError("entries must be finite.")
    return M


def _whole_row(row: Sequence[Any]) -> list[int]:
    exact = fractions_of(row, "entries")
    scale = math.lcm(*(value.denominator for value in exact))
    return [int(value * scale) for value in exact]
