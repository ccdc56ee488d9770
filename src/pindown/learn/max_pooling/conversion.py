"""A max-pooling network written exactly with ReLUs, so that everything else reads it."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from pindown.affine import Array, compact
from pindown.network import ReluNetwork


def max_pool_network(W: Array, a: Array, n_patches: int, *, bias: float = 0.0) -> ReluNetwork:
    r"""Return :math:`x \mapsto \sum_i a_i \max_j \mathrm{relu}(w_i \cdot x[j]) + b` as a ReLU network.

    Maxima are trees of :math:`\max(u, v) = u + \mathrm{relu}(v - u)` with
    :math:`\lceil \log_2(n + 1) \rceil` hidden layers; one of the numbers compared is 0.

    Args:
        W: Units (k, patch_dim).
        a: Output weights (k,).
        n_patches: Patches n; the input is their concatenation, and also taken as (n, patch_dim).
        bias: b.

    Returns:
        The network, with ``input_shape`` (n_patches, patch_dim).

    Example:
        >>> net = max_pool_network(np.array([[1.0], [-1.0]]), np.array([2.0, 1.0]), 3)
        >>> net([[5.0, -1.0, 2.0], [-4.0, -1.0, -2.0]]).ravel().tolist()  # 2 max(x, 0) + max(-x, 0)
        [11.0, 4.0]
    """
    from pindown.circuits.extrema import rectified_maxima

    k, d = W.shape
    # Scores of one unit lie side by side: row i * n + j is unit i on patch j.
    spread = sp.kron(sp.csr_array(W[:, None, :].reshape(k, d)), sp.eye_array(n_patches), format="csr")
    order = np.arange(n_patches * d).reshape(n_patches, d).T.ravel()
    columns = np.empty_like(order)
    columns[order] = np.arange(n_patches * d)
    scores = sp.csr_array(spread)[:, columns]
    (first, no_bias), *middle, (last, _) = rectified_maxima(n_patches, k).layers
    layers = [
        (compact(sp.csr_array(first) @ scores), no_bias),
        *middle,
        (a[None, :] @ last, [bias]),
    ]
    return ReluNetwork.from_layers(layers, input_shape=(n_patches, d))
