r"""Small functions as networks of one hidden layer: absolute value, tent, affine map, one filter.

In a network with one filter the same weights read many parts of the input, and a mean is taken,

.. math:: f_w(x) = \frac1k \sum_{i=1}^k \sigma(\langle w, A_i x \rangle), \qquad
    \sigma(y) = \max(y, 0) + \alpha \min(y, 0).

A convolution with one filter and average pooling is the case where every :math:`A_i` selects a window.
The source poses the training of these networks as an open problem; here is only the construction.

Mukherjee 2020, section 1.2 (examples), Lemma 2.A.5 and Definition 16.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.circuits.arithmetic import Net, Number, alike, network
from pindown.network import ReluNetwork
from pindown.validation import integer, positive


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


def single_filter_network(weights: ArrayLike, matrices: ArrayLike, *, leak: float = 0.0) -> ReluNetwork:
    r"""Return the network of one filter, with k ReLUs, or 2 k if the activation leaks.

    With a leak, :math:`\sigma(y) = \rho(y) - \alpha \rho(-y)` takes two ReLUs.

    Args:
        weights: The filter w, of length r.
        matrices: :math:`A_1, \dots, A_k`, shape (k, r, n).
        leak: :math:`\alpha \ge 0`, the slope for negative arguments.

    Returns:
        The network, from n inputs to one output, without biases.

    Raises:
        ValueError: If the shapes do not fit, or the leak is negative.

    Example:
        One gate is the case k = 1 with the identity:

        >>> gate = single_filter_network([1.0, -2.0], [np.eye(2)])
        >>> gate([[5.0, 1.0], [1.0, 1.0]]).ravel()
        array([3., 0.])

    Mukherjee 2020, Definition 16.
    """
    w, A = np.asarray(weights, dtype=np.float64), np.asarray(matrices, dtype=np.float64)
    if w.ndim != 1 or A.ndim != 3 or A.shape[1] != len(w) or not A.size:
        raise ValueError(
            f"a filter (r,) and matrices (k, r, n) are needed; got {w.shape} and {A.shape}."
        )
    leak = positive("leak", leak, zero=True)
    rows = np.einsum("r,krn->kn", w, A)
    share = np.full(len(rows), 1 / len(rows))
    if leak == 0:
        return ReluNetwork.from_layers([(rows, np.zeros(len(rows))), (share[None], [0])])
    both = np.vstack([rows, -rows])
    readout = np.concatenate([share, -leak * share])
    return ReluNetwork.from_layers([(both, np.zeros(len(both))), (readout[None], [0])])


def window_matrices(n: int, kernel_size: int, *, stride: int = 1) -> Array:
    """Return the matrices that select the windows of a convolution in one dimension.

    Args:
        n: Length of the input.
        kernel_size: Length r of the windows.
        stride: Distance between windows.

    Returns:
        Zeros and ones, (k, r, n): one 1 in each row, at most one in each column.

    Example:
        >>> window_matrices(4, 2, stride=2).argmax(axis=2).tolist()
        [[0, 1], [2, 3]]

    Mukherjee 2020, Definition 16.
    """
    n, stride = integer("n", n), integer("stride", stride)
    kernel_size = integer("kernel_size", kernel_size, most=n)
    starts = np.arange(0, n - kernel_size + 1, stride)
    matrices = np.zeros((len(starts), kernel_size, n))
    window = np.arange(kernel_size)
    matrices[np.arange(len(starts))[:, None], window, starts[:, None] + window] = 1
    return matrices
