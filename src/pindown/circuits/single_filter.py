r"""Networks with one filter: the same weights read many parts of the input, and a mean is taken.

.. math:: f_w(x) = \frac1k \sum_{i=1}^k \sigma(\langle w, A_i x \rangle), \qquad
    \sigma(y) = \max(y, 0) + \alpha \min(y, 0)

A convolution with one filter and average pooling is the case where every :math:`A_i` selects a window.
The source poses the training of these networks as an open problem; here is only the construction.

Mukherjee 2020, Definition 16.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.network import ReluNetwork


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
    if not (leak >= 0 and np.isfinite(leak)):
        raise ValueError(f"the leak must be finite and not negative; got {leak}.")
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
    if not 1 <= kernel_size <= n or stride < 1:
        raise ValueError(
            f"1 <= kernel_size <= n and stride >= 1 are needed; got {kernel_size}, {n}, {stride}."
        )
    starts = np.arange(0, n - kernel_size + 1, stride)
    matrices = np.zeros((len(starts), kernel_size, n))
    window = np.arange(kernel_size)
    matrices[np.arange(len(starts))[:, None], window, starts[:, None] + window] = 1
    return matrices
