r"""Noise on the inputs as a penalty: ridge for linear models, a penalty on the Jacobian for others.

.. math:: E\,(\langle w, x + \varepsilon\rangle - t)^2 = (\langle w, x\rangle - t)^2
          + \sum_i\sigma_i^2w_i^2,

exactly, so that the sum over n samples has the ridge penalty :math:`n\sigma^2`. For a smooth function

.. math:: E\,(f(x + \varepsilon) - t)^2 = (f - t)^2 + \sigma^2\lVert\nabla f\rVert^2
          + \sigma^2(f - t)\,\Delta f + O(\sigma^4):

a penalty on the gradient, and a term of curvature that vanishes where the data are fitted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.bias.least_squares.checks import Reduction, count, gradient_factor, labelled, number, vector


def noise_to_ridge(sigma: float, n: int, reduction: Reduction = "sum") -> float:
    r"""Return the factor of :math:`\lVert w\rVert^2` that input noise adds to a squared loss.

    Args:
        sigma: Standard deviation of the noise on each input.
        n: Samples.
        reduction: Which multiple of the squared error is the loss.

    >>> noise_to_ridge(0.5, 8), noise_to_ridge(0.5, 8, "mean")
    (2.0, 0.25)

    Lecture course, slides on noisy inputs; the factor n is ours.
    """
    sigma, n = number("sigma", sigma, 0.0, np.inf), count("n", n, 1)
    return n * sigma**2 * gradient_factor(reduction, n) / 2


def ridge_to_noise(penalty: float, n: int, reduction: Reduction = "sum") -> float:
    r"""Return the standard deviation of input noise that a penalty :math:`\lVert w\rVert^2` amounts to.

    >>> ridge_to_noise(2.0, 8)
    0.5
    """
    penalty, n = number("penalty", penalty, 0.0, np.inf), count("n", n, 1)
    return float(np.sqrt(penalty / noise_to_ridge(1.0, n, reduction)))


def noisy_squared_error(X: ArrayLike, y: ArrayLike, w: ArrayLike, sigma: ArrayLike) -> Array:
    """Return the expected squared error of a linear unit with noise on its inputs, for each sample.

    Args:
        X: Inputs (n, d).
        y: Targets (n,).
        w: Weights (d,).
        sigma: Standard deviation of the noise, one number or one for each input; any distribution of
            mean zero and independent parts.

    >>> noisy_squared_error([[1.0, 1.0]], [0.0], [1.0, 2.0], [1.0, 0.5]).tolist()
    [11.0]

    Lecture course, slides on noisy inputs.
    """
    X, y = labelled(X, y)
    w = vector("w", w, X.shape[1])
    return np.asarray((X @ w - y) ** 2 + float(_variances(sigma, X.shape[1]) @ w**2))


def noisy_least_squares(X: ArrayLike, y: ArrayLike, sigma: ArrayLike) -> Array:
    r"""Return the weights that minimise the expected squared error under noise on the inputs.

    .. math:: w = (X^\top X + n\,\mathrm{diag}(\sigma^2))^{-1}X^\top y

    Of several minimisers (noise of zero, or on some inputs only) it is the one of least norm.

    Args:
        X: Inputs (n, d) of any rank.
        y: Targets (n,).
        sigma: Standard deviation of the noise, one number or one for each input.

    >>> noisy_least_squares([[1.0]], [1.0], 1.0).round(12).tolist()
    [0.5]

    Lecture course, slides on noisy inputs.
    """
    X, y = labelled(X, y)
    rows = np.sqrt(len(X)) * np.diag(np.sqrt(_variances(sigma, X.shape[1])))
    # Stacked rows have the same normal equations without squaring the condition number.
    stacked, target = np.vstack([X, rows]), np.concatenate([y, np.zeros(X.shape[1])])
    return np.asarray(np.linalg.lstsq(stacked, target, rcond=None)[0], dtype=np.float64)


@dataclass(frozen=True)
class NoiseExpansion:
    """The squared error under small noise, in three terms; each is a mean over samples.

    Attributes:
        error: Squared error without noise.
        jacobian: Variance of the noise times the squared norm of the gradient.
        curvature: Variance of the noise times residual times Laplacian.
        kind: ``"heuristic"``: exact up to the fourth power of the noise.
    """

    error: float
    jacobian: float
    curvature: float
    kind: str = "heuristic"

    @property
    def total(self) -> float:
        """The sum."""
        return self.error + self.jacobian + self.curvature

    def __str__(self) -> str:
        return (
            f"{self.total:.6g} = error {self.error:.4g} + gradient {self.jacobian:.4g} "
            f"+ curvature {self.curvature:.4g}, up to sigma^4"
        )


def jacobian_penalty(function: Callable[[Any], Any], X: Any) -> Any:
    r"""Return the mean over samples of :math:`\lVert\nabla_xf(x)\rVert^2`, as a differentiable tensor.

    Args:
        function: A torch module or function of a batch (n, d); its outputs (n,) or (n, k) are summed in
            squares.
        X: Inputs (n, d), a tensor.

    Example:
        >>> import torch
        >>> float(jacobian_penalty(lambda x: x @ torch.tensor([3.0, 4.0]), torch.zeros(2, 2)))
        25.0

    Lecture course, slides on noisy inputs: its question about deeper nets.
    """
    import torch

    def one(x: Any) -> Any:
        return function(x[None])[0].reshape(-1)

    jacobians = torch.func.vmap(torch.func.jacrev(one))(torch.as_tensor(X))
    return jacobians.pow(2).sum(dim=tuple(range(1, jacobians.ndim))).mean()


def noise_expansion(function: Callable[[Any], Any], X: Any, y: Any, sigma: float) -> NoiseExpansion:
    """Expand the expected squared error of a smooth function under small noise on its inputs.

    Args:
        function: A torch module or function of a batch (n, d) with one output for each sample. It must
            be smooth: where a ReLU folds, the Laplacian is not a number and is taken as zero.
        X: Inputs (n, d), a tensor.
        y: Targets (n,), a tensor.
        sigma: Standard deviation of the noise on each input.

    Returns:
        A :class:`NoiseExpansion`.

    Raises:
        ValueError: If there is not one target and one output for each sample.

    Lecture course, slides on noisy inputs: its question about deeper nets.
    """
    import torch

    sigma = number("sigma", sigma, 0.0, np.inf)
    X, y = torch.as_tensor(X), torch.as_tensor(y).detach().reshape(-1)
    if len(y) != len(X):
        raise ValueError(f"y must hold one target for each of the {len(X)} samples; got {len(y)}.")

    def one(x: Any) -> Any:
        output = function(x[None])
        if output.numel() != 1:
            raise ValueError(f"function must have one output for each sample; got {output.numel()}.")
        return output.reshape(())

    value = torch.func.vmap(one)(X).detach()
    slope = torch.func.vmap(torch.func.grad(one))(X).detach()
    bends = torch.func.vmap(torch.func.jacrev(torch.func.grad(one)))(X).detach()
    bend = bends.diagonal(dim1=-2, dim2=-1).sum(-1)
    residual = value - y
    return NoiseExpansion(
        error=float(residual.pow(2).mean()),
        jacobian=float(sigma**2 * slope.pow(2).sum(-1).mean()),
        curvature=float(sigma**2 * (residual * bend).mean()),
    )


def _variances(sigma: ArrayLike, d: int) -> Array:
    values = np.asarray(sigma, dtype=np.float64)
    values = np.full(d, float(values)) if values.ndim == 0 else values
    values = vector("sigma", values, d)
    if (values < 0).any():
        raise ValueError(f"sigma must not be negative; got {sigma!r}.")
    return values**2
