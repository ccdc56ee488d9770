r"""What circuits with restricted bottom weights cannot do, at any depth.

If the bottom gates order all x alike, and have whole weights up to W, then the matrix of a circuit on
(x, y) has at most :math:`1 + w_1 m W` different rows, so its sign-rank is no larger. A function of large
sign-rank needs a wide bottom layer.

Mukherjee 2020, Theorem 2.5.5 and appendix 2.E, sharpened.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pindown.affine import dense
from pindown.circuits.boolean.lower_bounds import Shape
from pindown.circuits.boolean.max_bit import log2_sign_rank_lower, or_width
from pindown.circuits.boolean.ordering_cones import common_order
from pindown.network import ReluNetwork
from pindown.rational import RationalNetwork
from pindown.validation import at_least

_LARGEST_EXPONENT = 1000  # of two, in float64, with some room


def blocks_of_sum(n_matrices: int, blocks: int) -> int:
    r"""Return how many contiguous blocks a sum of w matrices with D blocks each may have, w (D - 1) + 1.

    Each matrix contributes D - 1 cuts. Rows and columns are counted apart.

    Mukherjee 2020, Claim 5.
    """
    at_least(1, n_matrices=n_matrices, blocks=blocks)
    return n_matrices * (blocks - 1) + 1


def distinct_rows_bound(net: ReluNetwork | RationalNetwork) -> int:
    r"""Return the bound :math:`1 + \sum_p \|a_p\|_1` on different rows of the output matrix.

    Along the common order of the bottom gates each :math:`\langle a_p, x \rangle` climbs from
    :math:`-\|a_p\|_1` to :math:`\|a_p\|_1` in steps of 2 or more. The bound is at most
    :math:`1 + w_1 m W`, and depth and upper widths do not matter.

    Args:
        net: The network; the first half of its inputs is x.

    Returns:
        The bound, proved.

    Raises:
        ValueError: If the weights of x are not whole, or lie in no common ordering cone.

    Example:
        One gate on x_1 + x_2, which is -2, 0 or 2:

        >>> distinct_rows_bound(ReluNetwork.from_layers([([[1.0, 1, 1, 0]], [0]), ([[1.0]], [0])]))
        3

    Mukherjee 2020, appendix 2.E, sharpened.
    """
    weight = net.layers[0][0]
    W = dense(weight) if isinstance(net, ReluNetwork) else weight
    x_part = W[:, : W.shape[1] // 2].tolist()
    if any(value != int(value) for row in x_part for value in row):
        raise ValueError("the bound is for whole weights in the first layer.")
    order = common_order(x_part)
    if not order.holds:
        raise ValueError(f"the bound needs bottom gates that order all x alike: {order}.")
    return 1 + sum(abs(int(value)) for row in x_part for value in row)


def sign_rank_bound(bottom_width: int, m: int, bound: int) -> int:
    r"""Return :math:`1 + w_1 m W`, an upper bound on the sign-rank at any depth.

    Args:
        bottom_width: :math:`w_1`, gates in the bottom layer.
        m: Length of x, and of y.
        bound: :math:`W`, the largest bottom weight.

    >>> sign_rank_bound(4, 3, 2)
    25

    Mukherjee 2020, Theorem 2.5.5, sharpened: the printed bound grows with all widths.
    """
    at_least(1, bottom_width=bottom_width, m=m, bound=bound)
    return 1 + bottom_width * m * bound


def printed_sign_rank_bound(hidden_widths: Sequence[int], m: int, bound: int) -> Shape:
    r"""Return the printed upper bound :math:`O((\prod_k w_k)^2 (m W)^2)`, which grows with the depth."""
    sign_rank_bound(min(hidden_widths, default=0), m, bound)
    return Shape(float((math.prod(hidden_widths) * m * bound) ** 2), "(w_1 ... w_(d-1))^2 (m W)^2")


def min_bottom_width(n: int, bound: int, *, t: int | None = None) -> float:
    r"""Return how wide the bottom layer must be to compute the Chattopadhyay-Mande function.

    .. math:: w_1 \ge \frac{2^{n^{1/3}/81 - 3} - 1}{m W}, \qquad m = n t

    for circuits of any depth whose bottom weights are restricted; 0 where this says nothing.

    Mukherjee 2020, Theorem 2.5.5, sharpened.
    """
    m = n * (or_width(n) if t is None else t)
    sign_rank_bound(1, m, bound)
    exponent = log2_sign_rank_lower(n)
    _require_float(exponent)
    return max(0.0, (2.0**exponent - 1) / (m * bound))


def printed_size_bound(m: int, depth: int, bound: int) -> Shape:
    r"""Return the printed size :math:`\Omega((d-1) [2^{m^{1/8}} / (m W)]^{1/(d-1)})` at depth d.

    Mukherjee 2020, Theorem 2.5.5; its proof has :math:`m^{1/4}`, which is more.
    """
    at_least(2, depth=depth)
    sign_rank_bound(1, m, bound)
    exponent = (m ** (1 / 8) - math.log2(m * bound)) / (depth - 1)
    _require_float(exponent)
    return Shape((depth - 1) * 2.0**exponent, "(d-1) (2^(m^(1/8)) / (m W))^(1/(d-1))")


def _require_float(exponent: float) -> None:
    if exponent > _LARGEST_EXPONENT:
        raise ValueError(f"the bound overflows float64: its log2 is about {exponent:.4g}.")
