r"""Small functions as networks of one hidden layer: absolute value, tent, affine map.

Mukherjee 2020, section 1.2 (examples) and Lemma 2.A.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from pindown.circuits.arithmetic import Net, Number, alike, network


def absolute_value(*, exact: bool = False) -> Net:
    r"""Return :math:`|x| = \rho(x) + \rho(-x)`.

    >>> absolute_value()([-3.0])
    array([3.])
    """
    return network([([[1], [-1]], [0, 0]), ([[1, 1]], [0])], exact=exact)


def triangle(center: Number, width: Number) -> Net:
    r"""Return the tent of unit area over :math:`[a - w, a + w]`, with three ReLUs.

    .. math:: \max\{0, \tfrac1w - \tfrac{|x - a|}{w^2}\}
        = \frac{\rho(x - a + w) - 2 \rho(x - a) + \rho(x - a - w)}{w^2}

    Args:
        center: The number :math:`a`.
        width: The number :math:`w > 0`.

    Example:
        >>> triangle(1, 2)([1])
        [Fraction(1, 2)]
        >>> triangle(1.0, 2.0)([[1.0], [2.0], [3.0], [9.0]]).ravel()
        array([0.5 , 0.25, 0.  , 0.  ])

    Mukherjee 2020, section 1.2.
    """
    a, w = alike([center, width], "center and width")
    if w <= 0:
        raise ValueError(f"width must be positive; got {width}.")
    exact = isinstance(w, Fraction)
    scale = 1 / w**2 if exact else 1.0 / w / w  # a product of floats may overflow where this does not
    return network(
        [([[1], [1], [1]], [w - a, -a, -a - w]), ([[scale, -2 * scale, scale]], [0])], exact=exact
    )


def affine_network(A: Sequence[Sequence[Number]], b: Sequence[Number]) -> Net:
    r"""Return :math:`A x + b` with one hidden layer, as :math:`\rho(T) - \rho(-T)`: 2 ReLUs each.

    Example:
        >>> affine_network([[2, 1]], [5])([1, -10])
        [Fraction(-3, 1)]

    Mukherjee 2020, Lemma 2.A.5.
    """
    rows = [list(row) if isinstance(row, Iterable) else [] for row in A]
    if not rows or len({len(row) for row in rows}) != 1 or not rows[0] or len(rows) != len(b):
        raise ValueError(
            f"an affine map needs rows of one length and a number b for each; got {A}, {b}."
        )
    n = len(rows[0])
    flat = alike([*(v for row in rows for v in row), *b], "the entries of A and b")
    weight = [flat[i * n : (i + 1) * n] for i in range(len(rows))]
    bias = flat[len(rows) * n :]
    eye = np.eye(len(rows), dtype=int)
    split = [*weight, *([-v for v in row] for row in weight)], [*bias, *(-v for v in bias)]
    join = np.concatenate([eye, -eye], axis=1), [0] * len(rows)
    return network([split, join], exact=isinstance(flat[0], Fraction))
