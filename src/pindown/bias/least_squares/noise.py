r"""Noise on the inputs and dropout as penalties: ridge for linear models, a Jacobian penalty for others.

Noise of mean zero and standard deviation :math:`\sigma_i` on each input,

.. math:: E\,(\langle w, x + \varepsilon\rangle - t)^2 = (\langle w, x\rangle - t)^2
          + \sum_i\sigma_i^2w_i^2,

exactly, so that the sum over n samples has the ridge penalty :math:`n\sigma^2`. For a smooth function

.. math:: E\,(f(x + \varepsilon) - t)^2 = (f - t)^2 + \sigma^2\lVert\nabla f\rVert^2
          + \sigma^2(f - t)\,\Delta f + O(\sigma^4):

a penalty on the gradient, and a term of curvature that vanishes where the data are fitted.

Dropout that keeps each input with probability q,

.. math:: E\,(y - \langle m\circ x, w\rangle)^2 = (y - q\langle w, x\rangle)^2
          + q(1 - q)\sum_iw_i^2x_i^2, \qquad m_i \sim \mathrm{Bernoulli}(q),

is ridge in the scale of the inputs. The weights that are used in prediction (:math:`\bar w = q\,w`
where nothing was rescaled, w where the kept inputs were divided by q) are

.. math:: \bar w = \Big(X^\top X + \frac{1 - q}{q}\,\mathrm{diag}(X^\top X)\Big)^{-1}X^\top y,

which, unlike ridge, does not depend on the units of the inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.bias.least_squares.gradient_descent import Reduction, gradient_factor, scaled_squares
from pindown.bias.tuning import MAX_MASKED_INPUTS
from pindown.errors import ParameterError
from pindown.evidence import Kind
from pindown.torch_modules import in_evaluation
from pindown.validation import array, choice, integer, labelled, number, positive, refuse, share, vector


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
    sigma, n = positive("sigma", sigma, zero=True), integer("n", n)
    return n * sigma**2 * gradient_factor(reduction, n) / 2


def ridge_to_noise(penalty: float, n: int, reduction: Reduction = "sum") -> float:
    r"""Return the standard deviation of input noise that a penalty :math:`\lVert w\rVert^2` amounts to.

    >>> ridge_to_noise(2.0, 8)
    0.5
    """
    penalty, n = positive("penalty", penalty, zero=True), integer("n", n)
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
    kind: Kind = "heuristic"

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
    from pindown.extras import torch

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

    >>> import torch
    >>> found = noise_expansion(lambda X: X[:, 0], torch.tensor([[3.0]]), torch.tensor([1.0]), sigma=0.5)
    >>> found
    NoiseExpansion(error=4.0, jacobian=0.25, curvature=0.0, kind='heuristic')

    Lecture course, slides on noisy inputs: its question about deeper nets.
    """
    from pindown.extras import torch

    sigma = positive("sigma", sigma, zero=True)
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
    values = array("sigma", sigma)
    values = np.full(d, float(values)) if values.ndim == 0 else values
    values = vector("sigma", values, d)
    if (values < 0).any():
        refuse("sigma", "not negative", sigma)
    return values**2


@dataclass(frozen=True)
class DropoutFit:
    """What dropout trains a linear model to.

    Attributes:
        weights: Weights to predict with, all inputs kept.
        trained: The weights during training, where dropped inputs are zero and kept ones as they are.
        loss: Expected sum of squared errors at ``trained``.
        penalties: The ridge penalty on each of ``weights``.
        keep: Probability that an input is kept.
        kind: ``"exact"``, up to rounding.
    """

    weights: Array = field(repr=False)
    trained: Array = field(repr=False)
    loss: float
    penalties: Array = field(repr=False)
    keep: float
    kind: Kind = "exact"

    def __str__(self) -> str:
        return (
            f"dropout that keeps {self.keep:g} of the inputs: ridge penalties "
            f"{self.penalties.min():.4g} to {self.penalties.max():.4g}, expected loss {self.loss:.6g}"
        )


def dropout_least_squares(X: ArrayLike, y: ArrayLike, keep: float) -> DropoutFit:
    """Return the weights that minimise the expected squared error under dropout of the inputs.

    Args:
        X: Inputs (n, d) of any rank; weights of inputs that are always zero are zero.
        y: Targets (n,).
        keep: Probability that an input is kept, in (0, 1].

    Returns:
        A :class:`DropoutFit`.

    Raises:
        ValueError: If values are not finite, shapes differ, or ``keep`` is not in (0, 1].

    Example:
        One input: dropping half of the time halves the weight to predict with.

        >>> dropout_least_squares([[1.0]], [1.0], 0.5).weights.round(12).tolist()
        [0.5]

    Lecture course, slides on dropout; the closed form is ours.
    """
    X, y = labelled(X, y)
    keep = number("keep", keep, 0.0, 1.0, above=True)
    with np.errstate(over="ignore", under="ignore"):
        lengths = np.linalg.norm(X, axis=0)
    scaled_squares(np.abs(X).max(axis=0), 1.0)  # refused where penalties leave the floats
    # Unit columns first: the penalty follows the scale of each input, so only rounding changes.
    scale = np.where(lengths > 0, lengths, 1.0)
    rows = np.sqrt((1 - keep) / keep) * np.diag((lengths > 0).astype(np.float64))
    stacked, target = np.vstack([X / scale, rows]), np.concatenate([y, np.zeros(X.shape[1])])
    weights = np.linalg.lstsq(stacked, target, rcond=None)[0] / scale
    trained = weights / keep
    loss = float(dropout_squared_error(X, y, trained, keep).sum())
    return DropoutFit(weights, trained, loss, (1 - keep) / keep * lengths**2, keep)


def dropout_squared_error(X: ArrayLike, y: ArrayLike, w: ArrayLike, keep: float) -> Array:
    r"""Return the expected squared error of a linear unit whose inputs are dropped, for each sample.

    Args:
        X: Inputs (n, d).
        y: Targets (n,).
        w: Weights (d,).
        keep: Probability q that an input is kept; there is no rescaling.

    Returns:
        The expectations (n,): the error of the shrunk unit plus a ridge penalty scaled by the inputs.

    Example:
        One input of one, weight one, target zero: half of the time the error is one.

        >>> dropout_squared_error([[1.0]], [0.0], [1.0], 0.5).tolist()
        [0.5]

    Lecture course, slides on dropout; the identity is ours.
    """
    keep = share("keep", keep)
    X, y = labelled(X, y)
    w = vector("w", w, X.shape[1])
    return np.asarray((y - keep * (X @ w)) ** 2 + keep * (1 - keep) * (X**2 @ w**2))


def mask_average(W: ArrayLike, x: ArrayLike, keep: float, *, average: str = "arithmetic") -> Array:
    """Return the exact average over all masks of the outputs of a layer whose inputs are dropped.

    Args:
        W: Weights (k, d), with d at most 16.
        x: Input (d,).
        keep: Probability that an input is kept.
        average: ``"arithmetic"`` for the mean of the linear outputs; ``"geometric"`` for the normalised
            geometric mean of their softmax. Both are what scaling the weights by ``keep`` gives.

    Returns:
        The average (k,).

    Raises:
        ValueError: If there are too many inputs or the average is another one.

    Example:
        >>> mask_average([[2.0, 4.0]], [1.0, 1.0], 0.5).tolist()
        [3.0]

    Lecture course, slides on dropout as an ensemble.
    """
    keep = share("keep", keep)
    choice("average", average, ("arithmetic", "geometric"))
    W, x = np.atleast_2d(array("W", W)), array("x", x)
    if x.ndim != 1 or W.shape[1] != len(x) or len(x) > MAX_MASKED_INPUTS:
        wanted = f"a vector of {W.shape[1]} inputs, at most {MAX_MASKED_INPUTS}"
        raise ParameterError(f"x must be {wanted}; got shape {x.shape}.")
    masks = np.array(list(product((0.0, 1.0), repeat=len(x))))
    weights = keep ** masks.sum(axis=1) * (1 - keep) ** (len(x) - masks.sum(axis=1))
    outputs = (masks * x) @ W.T
    if average == "arithmetic":
        return np.asarray(weights @ outputs)
    from scipy.special import log_softmax, softmax

    return np.asarray(softmax(weights @ log_softmax(outputs, axis=1)))


@dataclass(frozen=True)
class DropoutPrediction:
    """Mean and spread of a network's outputs over random masks.

    Attributes:
        mean: Mean output.
        std: Standard deviation over masks.
        n_masks: Masks drawn.
    """

    mean: Array = field(repr=False)
    std: Array = field(repr=False)
    n_masks: int

    def __str__(self) -> str:
        return f"mean over {self.n_masks} masks, spread up to {self.std.max():.3g} (an estimate)"


def dropout_predict(module: Any, x: Any, n_masks: int = 100, *, seed: int = 0) -> DropoutPrediction:
    """Return the mean and spread of a torch module's outputs with its dropout left on.

    Other layers stay in evaluation mode, and the state of the module and of torch's generator is put
    back.

    Args:
        module: A torch module with dropout layers.
        x: Inputs, a tensor.
        n_masks: Masks to draw.
        seed: Seed of the masks.

    Returns:
        A :class:`DropoutPrediction`.

    Raises:
        ValueError: If the module has no dropout layer or fewer than two masks are asked for.

    >>> import torch
    >>> found = dropout_predict(torch.nn.Dropout(0.5), torch.ones(1, 1000), n_masks=200)
    >>> bool(abs(found.mean.mean() - 1) < 0.05)
    True

    Lecture course, slides on dropout.
    """
    from pindown.extras import torch

    n_masks = integer("n_masks", n_masks, least=2)
    layers = [m for m in module.modules() if isinstance(m, torch.nn.modules.dropout._DropoutNd)]
    if not layers:
        raise ParameterError("module must have dropout layers; got none.")
    with in_evaluation(module), torch.no_grad(), torch.random.fork_rng(devices=[]):
        for layer in layers:
            layer.train()
        torch.manual_seed(seed)
        outputs = torch.stack([module(x) for _ in range(n_masks)]).double().numpy()
    return DropoutPrediction(outputs.mean(axis=0), outputs.std(axis=0, ddof=1), n_masks)
