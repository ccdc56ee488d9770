r"""Dropout: what it does to a linear unit in closed form, averages over all masks.

And predictions with spread.

.. math:: E\,(y - \langle m\circ x, w\rangle)^2 = (y - q\langle w, x\rangle)^2 + q(1 -
          q)\sum_iw_i^2x_i^2, \qquad m_i \sim \mathrm{Bernoulli}(q).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array

_MOST_UNITS = 16  # masks are enumerated: two to this power of them


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
    keep = _probability(keep)
    X, y, w = (np.asarray(a, dtype=np.float64) for a in (X, y, w))
    if X.ndim != 2 or y.shape != (len(X),) or w.shape != X.shape[1:]:
        raise ValueError(f"X must be (n, d), y (n,) and w (d,), got {X.shape}, {y.shape} and {w.shape}")
    if not all(np.isfinite(a).all() for a in (X, y, w)):
        raise ValueError("X, y and w must be finite; got NaN or infinity")
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
    keep = _probability(keep)
    W, x = np.atleast_2d(np.asarray(W, dtype=np.float64)), np.asarray(x, dtype=np.float64)
    if x.ndim != 1 or W.shape[1] != len(x) or len(x) > _MOST_UNITS:
        raise ValueError(
            f"x must be a vector of {W.shape[1]} inputs, at most {_MOST_UNITS}, got shape {x.shape}"
        )
    masks = np.array(list(product((0.0, 1.0), repeat=len(x))))
    weights = keep ** masks.sum(axis=1) * (1 - keep) ** (len(x) - masks.sum(axis=1))
    outputs = (masks * x) @ W.T
    if average == "arithmetic":
        return np.asarray(weights @ outputs)
    if average != "geometric":
        raise ValueError(f"average must be 'arithmetic' or 'geometric', got {average!r}")
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

    Lecture course, slides on dropout.
    """
    import torch

    layers = [m for m in module.modules() if isinstance(m, torch.nn.modules.dropout._DropoutNd)]
    if not layers or n_masks < 2:
        raise ValueError("a module with dropout layers and at least two masks are needed")
    modes = [(m, m.training) for m in module.modules()]
    try:
        module.eval()
        for layer in layers:
            layer.train()
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            outputs = torch.stack([module(x) for _ in range(n_masks)]).double().numpy()
    finally:
        for m, mode in modes:
            m.training = mode
    return DropoutPrediction(outputs.mean(axis=0), outputs.std(axis=0, ddof=1), n_masks)


def _probability(keep: float) -> float:
    number: object = keep
    if not isinstance(number, Real) or not 0 <= keep <= 1:
        raise ValueError(f"keep must be a probability, got {keep!r}")
    return float(keep)
