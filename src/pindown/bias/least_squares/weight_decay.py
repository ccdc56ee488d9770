r"""What weight decay does to a minimum: each eigendirection of the Hessian is shrunk by its own factor.

.. math:: \hat J(w) = J(w^*) + \tfrac12(w - w^*)^\top H(w - w^*), \qquad
          \operatorname*{argmin}_w \hat J(w) + \tfrac\alpha2\lVert w\rVert^2
          = Q\,(\Lambda + \alpha I)^{-1}\Lambda\,Q^\top w^*.

The quadratic model :math:`\hat J` is the loss itself for a squared error and a linear model; for
networks it is an approximation, and the result says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.bias.least_squares.checks import number, vector

_MOST_PARAMETERS = 4_000  # the Hessian is written out: 128 MB at this size
# Eigenvalues above minus this share of the largest count as zero: rounding of a Hessian product.
_NEGATIVE = 1e-9
# A gradient below this share of Hessian times weights moves the predicted weights by as little.
_STATIONARY = 1e-3


@dataclass(frozen=True)
class WeightDecay:
    """What a penalty on the squared norm does to a minimiser.

    Attributes:
        predicted: The new minimiser.
        curvatures: Eigenvalues of the Hessian, smallest first.
        shrinkage: Factor in each eigendirection, in [0, 1].
        effective: Sum of the factors: how many parameters are left.
        penalty: The penalty alpha.
        kind: ``"exact"`` for a quadratic loss, ``"heuristic"`` for the quadratic model of another one.
        violated: Assumptions of the quadratic model that do not hold.
    """

    predicted: Array = field(repr=False)
    curvatures: Array = field(repr=False)
    shrinkage: Array = field(repr=False)
    effective: float
    penalty: float
    kind: str = "exact"
    violated: tuple[str, ...] = ()

    def __str__(self) -> str:
        note = f"; {', '.join(self.violated)}" if self.violated else ""
        return (
            f"penalty {self.penalty:.4g} leaves {self.effective:.4g} of {len(self.shrinkage)} "
            f"parameters ({self.kind}{note})"
        )


def weight_decay(hessian: ArrayLike, minimiser: ArrayLike, penalty: float) -> WeightDecay:
    r"""Return the minimiser of a quadratic loss with :math:`\frac\alpha2\lVert w\rVert^2` added.

    Args:
        hessian: Hessian (d, d), symmetric and positive semidefinite.
        minimiser: Minimiser (d,) without the penalty.
        penalty: The penalty alpha, zero or positive. With zero and a singular Hessian it is the limit of
            small penalties, which drops what lies in flat directions.

    Returns:
        A :class:`WeightDecay`.

    Raises:
        ValueError: If the matrix is not symmetric and positive semidefinite.

    Example:
        Curvatures 3 and 1, penalty 1: three quarters and a half are left.

        >>> weight_decay([[3.0, 0.0], [0.0, 1.0]], [4.0, 4.0], 1.0).predicted.round(9).tolist()
        [3.0, 2.0]

    Lecture course, slides on weight decay and the Hessian.
    """
    H = np.asarray(hessian, dtype=np.float64)
    if H.ndim != 2 or H.shape[0] != H.shape[1] or H.size == 0 or not np.isfinite(H).all():
        raise ValueError(f"hessian must be a finite square matrix; got shape {H.shape}.")
    w = vector("minimiser", minimiser, len(H))
    penalty = number("penalty", penalty, 0.0, np.inf)
    scale = float(np.abs(H).max())
    if float(np.abs(H - H.T).max()) > _NEGATIVE * scale:
        raise ValueError("hessian must be symmetric; give (H + H.T) / 2 if the difference is rounding.")
    values, Q = np.linalg.eigh((H + H.T) / 2)
    if values[0] < -_NEGATIVE * len(H) * max(scale, np.finfo(float).tiny):
        raise ValueError(
            f"hessian must be positive semidefinite, as at a minimum; its smallest eigenvalue is "
            f"{values[0]:.4g}."
        )
    values = np.where(values < np.finfo(float).eps * len(H) * scale, 0.0, values)
    with np.errstate(invalid="ignore"):
        shrinkage = np.where(values > 0, values / (values + penalty), 0.0)
    predicted = Q @ (shrinkage * (Q.T @ w))
    return WeightDecay(predicted, values, shrinkage, float(shrinkage.sum()), penalty)


def weight_decay_of_module(
    loss: Callable[[], Any], parameters: Iterable[Any], penalty: float
) -> WeightDecay:
    """Predict what weight decay does to a trained torch model, before it is trained again.

    The quadratic model of the loss at the present weights is used; ``predicted`` is the flat vector of
    the parameters in their order. Decay in the loss and decay of the weights are one thing for plain
    gradient descent only.

    Args:
        loss: Evaluates the loss without the penalty.
        parameters: The parameters that decay, a few thousand numbers at most.
        penalty: The penalty alpha; torch's ``weight_decay`` is the same number.

    Returns:
        A :class:`WeightDecay` of kind ``"heuristic"``, with what the quadratic model violates: a
        gradient that is not zero, or negative curvature (its directions are left as they are).

    Raises:
        ValueError: If there are too many parameters, or the loss is not one finite number.

    Lecture course, slides on weight decay and the Hessian.
    """
    import torch

    from pindown.optim.hessian import hessian_operator

    params = [p for p in parameters if p.requires_grad]
    size = sum(p.numel() for p in params)
    if size > _MOST_PARAMETERS:
        raise ValueError(
            f"the Hessian of {size} parameters is not written out, {_MOST_PARAMETERS} at most: pass the "
            "parameters of one layer."
        )
    H = np.asarray(hessian_operator(loss, params) @ np.eye(size))
    gradients = torch.autograd.grad(loss(), params, allow_unused=True)
    gradient = np.concatenate(
        [
            np.zeros(p.numel()) if g is None else g.double().numpy().ravel()
            for g, p in zip(gradients, params, strict=True)
        ]
    )
    w = np.concatenate([p.detach().double().numpy().ravel() for p in params])
    values, Q = np.linalg.eigh((H + H.T) / 2)
    scale = max(float(np.abs(values).max()), np.finfo(float).tiny)
    violated = []
    if np.linalg.norm(gradient) > _STATIONARY * np.linalg.norm(H @ w):
        violated.append(f"the gradient is not zero (norm {np.linalg.norm(gradient):.2g})")
    if values[0] < -_NEGATIVE * scale:
        violated.append(f"there is negative curvature ({values[0]:.2g}), left as it is")
    penalty = number("penalty", penalty, 0.0, np.inf)
    flat = np.where(np.abs(values) < np.finfo(float).eps * size * scale, 0.0, values)
    with np.errstate(invalid="ignore", divide="ignore"):
        shrinkage = np.where(flat > 0, flat / (flat + penalty), np.where(flat < 0, 1.0, 0.0))
    predicted = Q @ (shrinkage * (Q.T @ w))
    return WeightDecay(
        predicted, values, shrinkage, float(shrinkage.sum()), penalty, "heuristic", tuple(violated)
    )
