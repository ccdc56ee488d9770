"""Which directions augmentation forbids to the gradient, and how gradients move with the weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.symmetry.measure.families import Family


def orbit_gradient_component(
    loss: Callable[[Any], Any], weights: ArrayLike, generator: ArrayLike
) -> float:
    r"""Return the cosine between the gradient and the direction along the orbit.

    If :math:`L(e^{\alpha A} w) = L(w)` for all :math:`\alpha`, then :math:`\langle \nabla L(w), A w
    \rangle = 0`: gradient flow, :math:`\dot w = -\nabla L`, never moves along the orbit.

    Args:
        loss: Takes a float64 tensor of weights, gives a scalar tensor.
        weights: One weight vector ``(d,)``, or rows ``(k, d)``.
        generator: The matrix A, ``(d, d)``.

    Returns:
        The cosine; 0 if the gradient or the direction vanishes.

    >>> turn = [[0.0, -1.0], [1.0, 0.0]]
    >>> orbit_gradient_component(lambda w: (w**2).sum() ** 2, [3.0, 4.0], turn)
    0.0
    >>> round(orbit_gradient_component(lambda w: w[1], [1.0, 0.0], turn), 12)
    1.0

    Lecture course, slides on augmentation, with the sign of gradient flow corrected.
    """
    W, A = np.asarray(weights, dtype=float), np.asarray(generator, dtype=float)
    if W.ndim not in (1, 2) or A.shape != (W.shape[-1],) * 2:
        raise ValueError(
            f"weights are (d,) or (k, d) and the generator (d, d); got {W.shape} and {A.shape}."
        )
    along = W @ A.T
    gradient = loss_gradient(loss, W)
    length = float(np.linalg.norm(gradient) * np.linalg.norm(along))
    return float(np.sum(gradient * along)) / length if length else 0.0


def gradient_equivariance_error(loss: Callable[[Any], Any], weights: ArrayLike, group: Family) -> float:
    r"""Return the largest relative difference of :math:`\nabla L(g W)` and :math:`g \nabla L(W)`.

    It vanishes for the augmented loss of a network whose first layer has the rows W, under an
    orthogonal action on each row and whole orbits of data.

    Args:
        loss: Takes a float64 tensor of weights, gives a scalar tensor.
        weights: Rows ``(k, d)``.
        group: The group with its action on rows.

    Returns:
        The largest difference over elements, divided by the length of the gradient.

    >>> from pindown.symmetry import cyclic
    >>> gradient_equivariance_error(lambda W: (W**4).sum(), [[1.0, 2.0, 3.0]], cyclic(3))
    0.0

    Lecture course, slides on gradient equivariance.
    """
    W = np.asarray(weights, dtype=float)
    if W.ndim != 2:
        raise ValueError(f"weights are rows (k, d); got shape {W.shape}.")
    here = loss_gradient(loss, W)
    length = float(np.linalg.norm(here))
    gaps = [
        float(np.linalg.norm(loss_gradient(loss, group.act(i, W)) - group.act(i, here)))
        for i in range(group.order)
    ]
    return max(gaps) / length if length else max(gaps)


def loss_gradient(loss: Callable[[Any], Any], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the gradient of a loss at some weights, in float64.

    >>> loss_gradient(lambda w: (w**2).sum(), np.array([1.0, 2.0])).tolist()
    [2.0, 4.0]
    """
    import torch

    w = torch.tensor(weights, dtype=torch.float64, requires_grad=True)
    value = loss(w)
    if not isinstance(value, torch.Tensor) or value.numel() != 1 or not value.requires_grad:
        raise ValueError("the loss must give one number that depends on its tensor by torch operations.")
    (gradient,) = torch.autograd.grad(value.reshape(()), w)
    return np.asarray(gradient.numpy())
