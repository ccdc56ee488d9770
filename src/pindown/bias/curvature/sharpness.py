r"""How sharp a minimum is: its largest curvature, and the loss around it.

.. math:: \lambda_{\max}(H), \qquad E\,J(w + \rho\,u) - J(w) = \frac{\rho^2}{2p}\operatorname{tr}H
          + O(\rho^4), \quad u \text{ uniform on the unit sphere}.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pindown.bias.curvature.directions import Loss, top_eigenvalues
from pindown.bias.least_squares.checks import count, number


@dataclass(frozen=True)
class Sharpness:
    """How sharp a point of the loss is.

    Attributes:
        largest: Largest eigenvalue of the Hessian.
        rise: Mean rise of the loss at a distance, over random directions.
        standard_error: Standard error of ``rise``.
        radius: The distance.
        probes: Random directions.
        step_limit: Two over the largest eigenvalue: gradient descent with a larger step leaves such a
            minimum; infinite where nothing curves upwards.
        kind: ``"estimate"``.
    """

    largest: float
    rise: float
    standard_error: float
    radius: float
    probes: int
    step_limit: float
    kind: str = "estimate"

    def __str__(self) -> str:
        return (
            f"largest curvature {self.largest:.4g} (steps below {self.step_limit:.4g} stay), loss rises "
            f"by {self.rise:.4g} +- {self.standard_error:.2g} at distance {self.radius:g}"
        )


def sharpness(
    loss: Loss, weights: Tensor, *, radius: float = 0.1, probes: int = 64, seed: int = 0
) -> Sharpness:
    """Measure how sharp a loss is around a point.

    Args:
        loss: From a vector of weights to a number, in torch operations.
        weights: The point (p,).
        radius: Distance at which the loss is averaged.
        probes: Random directions, at least one; each is used both ways.
        seed: Of the directions.

    Returns:
        A :class:`Sharpness`.

    Raises:
        ValueError: If the loss there is not finite.

    Example:
        >>> print(sharpness(lambda w: (w**2).sum(), torch.zeros(2, dtype=torch.float64)))
        largest curvature 2 (steps below 1 stay), loss rises by 0.01 +- 0 at distance 0.1

    Lecture course, slides on stochastic gradient descent and flat minima.
    """
    radius, probes = number("radius", radius, 0.0, np.inf, closed=False), count("probes", probes, 1)
    base = float(loss(weights))
    if not np.isfinite(base):
        raise ValueError(f"the loss at the point must be finite; got {base!r}.")
    largest = float(top_eigenvalues(loss, weights, 1, seed=seed).values[0])
    directions = np.random.default_rng(seed).standard_normal((probes, weights.numel()))
    directions *= radius / np.linalg.norm(directions, axis=1, keepdims=True)
    rises = []
    with torch.no_grad():
        for row in directions:
            move = torch.as_tensor(row).reshape(weights.shape).to(weights)
            # Both ways: the slope cancels, and curvature is left.
            rises.append((float(loss(weights + move)) + float(loss(weights - move))) / 2 - base)
    spread = float(np.std(rises, ddof=1) / np.sqrt(probes)) if probes > 1 else float("nan")
    spread = (
        0.0 if spread < np.finfo(float).eps * max(abs(base), float(np.max(np.abs(rises)))) else spread
    )
    limit = 2 / largest if largest > 0 else float("inf")
    return Sharpness(largest, float(np.mean(rises)), spread, radius, probes, limit)
