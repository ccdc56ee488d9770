r"""Loss and gradient of the tied autoencoder :math:`\hat y = W^\top \mathrm{relu}(W y - \epsilon)`."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array


def reconstruction_loss(W: ArrayLike, Y: ArrayLike, threshold: ArrayLike = 0.0) -> float:
    r"""Return the mean of :math:`\frac12 \lVert W^\top \mathrm{relu}(W y - \epsilon) - y \rVert^2`.

    With an orthogonal dictionary, codes that are not negative and no threshold, the dictionary itself
    has loss zero.

    >>> reconstruction_loss(np.eye(2), [[1.0, 3.0]]), reconstruction_loss(np.eye(2), [[1.0, 3.0]], 1.0)
    (0.0, 1.0)

    Mukherjee 2020, (4.1).
    """
    return loss_and_gradient(W, Y, threshold)[0]


def loss_and_gradient(W: ArrayLike, Y: ArrayLike, threshold: ArrayLike = 0.0) -> tuple[float, Array]:
    r"""Return the mean loss and its gradient in W.

    For one signal, with :math:`F = \hat y - y`,

    .. math:: \frac{\partial L}{\partial W_i} = 1[W_i y > \epsilon_i]\,
              \big( (W_i y - \epsilon_i)\, F + \langle W_i, F \rangle\, y \big):

    the first part comes from the decoder, the second from the encoder.

    Args:
        W: Weights (h, n).
        Y: Signals, one per row.
        threshold: :math:`\epsilon`, one number or one per unit.

    Returns:
        The loss and the gradient (h, n).

    Mukherjee 2020, section 4.5.1.
    """
    V, signals, eps = checked(W, Y, threshold)
    R = np.maximum(signals @ V.T - eps, 0.0)
    F = R @ V - signals
    encoder = np.where(R > 0.0, F @ V.T, 0.0)
    gradient = (R.T @ F + encoder.T @ signals) / len(signals)
    return float(0.5 * np.mean(np.sum(F * F, axis=1))), gradient


def dead_fraction(W: ArrayLike, Y: ArrayLike, threshold: ArrayLike = 0.0) -> float:
    """Return the share of units that are off on every signal.

    >>> dead_fraction(np.eye(2), [[1.0, 0.0]])
    0.5
    """
    V, signals, eps = checked(W, Y, threshold)
    on = (signals @ V.T > eps).any(axis=0)
    return float(1.0 - on.mean())


def checked(W: ArrayLike, Y: ArrayLike, threshold: ArrayLike) -> tuple[Array, Array, Array]:
    """Return weights (h, n), signals (N, n) and the threshold as arrays that fit each other.

    Raises:
        ValueError: If they do not fit, or there is no signal.
    """
    V, signals = np.asarray(W, dtype=np.float64), np.atleast_2d(np.asarray(Y, dtype=np.float64))
    eps = np.asarray(threshold, dtype=np.float64)
    if V.ndim != 2 or signals.ndim != 2 or V.shape[1:] != signals.shape[1:] or 0 in signals.shape:
        raise ValueError(f"W (h, n) and signals (N, n) must match; got {V.shape} and {signals.shape}.")
    if eps.shape not in ((), (1,), (len(V),)):
        raise ValueError(f"threshold must be one number, or {len(V)}; got shape {eps.shape}.")
    return V, signals, eps
