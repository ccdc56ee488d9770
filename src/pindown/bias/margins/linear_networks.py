r"""Linear networks: one class of functions, and a bias of training for each form of network.

.. math:: \beta = W_1^T\cdots W_{L-1}^Tw_L \ \text{(fully connected)}, \qquad
          F\beta = \prod_l Fw_l \ \text{(full-width circular convolutions)}.

On separable samples with an exponential loss, gradient descent takes :math:`\beta` to the direction of
least Euclidean norm for every fully connected depth, and to a stationary point of the least Fourier
quasi-norm :math:`\lVert F\beta\rVert_{2/L}` for convolutions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.bias.flow import gradient_flow
from pindown.bias.margins.fourier import fourier_norm, max_fourier_margin
from pindown.bias.margins.hard_margin import labelled, max_margin
from pindown.bias.margins.steepest import log_loss_gradient
from pindown.bias.tuning import LINEAR_PACE, MAX_TURN
from pindown.evidence import Kind
from pindown.validation import choice, integer

Architecture = Literal["connected", "convolution"]
_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True)
class LinearLimit:
    r"""Where training of a linear network leads.

    Attributes:
        direction: :math:`\beta/\lVert\beta\rVert_2` (d,).
        objective: The (quasi-)norm of :math:`\beta` at margin 1.
        description: What is least.
        residual: Proved relative gap, or residual of the stationarity equations.
        kind: ``"exact"``, or ``"heuristic"`` for convolutions deeper than two: one stationary point of
            several.
    """

    direction: Array = field(repr=False)
    objective: float
    description: str
    residual: float
    kind: Kind

    def __str__(self) -> str:
        proof = f"(residual {self.residual:.1g}, {self.kind})"
        return f"{self.description}: {self.objective:.6g} at margin 1 {proof}"


def linear_network_limit(
    X: ArrayLike, y: ArrayLike, architecture: Architecture = "connected", depth: int = 2
) -> LinearLimit:
    """Predict the classifier that gradient descent gives a linear network on separable samples.

    Args:
        X: Samples (n, d), separable without offset.
        y: Labels of at most two classes.
        architecture: ``"connected"`` or ``"convolution"`` (circular, kernels as wide as the input, no
            offset).
        depth: Number of layers.

    Returns:
        A :class:`LinearLimit`.

    Example:
        >>> X, y = [[2.0, 1.0, 1.0, 0.0]], [1]
        >>> print(linear_network_limit(X, y, "convolution"))
        least Fourier norm, exponent 1: 0.5 at margin 1 (residual 0, exact)
        >>> linear_network_limit(X, y).direction.round(3).tolist()
        [0.816, 0.408, 0.408, 0.0]

    Lecture course, section on the implicit bias of linear networks.
    """
    choice("architecture", architecture, ("connected", "convolution"))
    depth = integer("depth", depth)
    if architecture == "connected" or depth == 1:
        plain = max_margin(X, y)
        residual = max(plain.gap, 0.0)
        return LinearLimit(
            plain.direction, 1.0 / plain.margin, "least Euclidean norm", residual, "exact"
        )
    found = max_fourier_margin(X, y, depth=depth)
    what = "least" if depth == 2 else "stationary"
    unit = found.w / float(np.abs(found.w).max())  # first: squares stay within the floats
    return LinearLimit(
        unit / float(np.linalg.norm(unit)), found.objective,
        f"{what} Fourier norm, exponent {found.exponent:.3g}", round(found.residual, 12), found.kind,
    )  # fmt: skip


@dataclass(frozen=True)
class LinearRun:
    r"""A trained linear network.

    Attributes:
        beta: End-to-end weights at the recorded steps (k, d).
        steps: Numbers of those steps (k,).
        margins: Smallest :math:`y_i\langle\beta, x_i\rangle` there (k,).
        architecture: ``"connected"`` or ``"convolution"``.
        depth: Number of layers.
        kind: ``"estimate"``.
    """

    beta: Array = field(repr=False)
    steps: Array = field(repr=False)
    margins: Array = field(repr=False)
    architecture: str
    depth: int
    kind: Kind = "estimate"

    def objective(self, exponent: float | None = None) -> Array:
        """Return the norm that theory says is least, at margin 1, along the run."""
        if self.architecture == "connected" or self.depth == 1:
            sizes = np.linalg.norm(self.beta, axis=1)
        else:
            p = 2.0 / self.depth if exponent is None else exponent
            sizes = np.array([fourier_norm(beta, p) for beta in self.beta])
        return np.asarray(np.where(self.margins > 0, sizes / np.abs(self.margins), np.inf))

    def __str__(self) -> str:
        return (
            f"linear network ({self.architecture}, depth {self.depth}) after {self.steps[-1]:.0f} "
            f"steps: "
            f"objective {self.objective()[-1]:.6g} at margin 1"
        )


def train_linear_network(
    X: ArrayLike,
    y: ArrayLike,
    architecture: Architecture = "connected",
    depth: int = 2,
    *,
    steps: int = 20_000,
    init: float = 0.1,
    seed: int = 0,
) -> LinearRun:
    r"""Train a linear network on the exponential loss by gradient descent with loss-normalised steps.

    Steps are one over a bound of the curvature of the logarithm of the loss, which follows from the
    operator norms of the layers: the same path as gradient flow, at a pace that keeps it stable while
    weights grow.

    Args:
        X: Samples (n, d), separable without offset.
        y: Labels of at most two classes.
        architecture: ``"connected"`` (hidden layers as wide as the input) or ``"convolution"``.
        depth: Number of layers.
        steps: How many.
        init: Scale of the first weights, which are Gaussian.
        seed: Seed of those.

    Returns:
        A :class:`LinearRun`.

    Example:
        >>> run = train_linear_network([[2.0, 1.0], [-1.0, -3.0]], [1, -1], depth=3, steps=3000)
        >>> limit = linear_network_limit([[2.0, 1.0], [-1.0, -3.0]], [1, -1], depth=3)
        >>> bool(run.objective()[-1] < 1.01 * limit.objective)
        True
    """
    points, labels = labelled(X, y)
    limit = linear_network_limit(points, labels, architecture, 1)  # refuses what cannot be separated
    assert limit.objective > 0
    Z = labels[:, None] * points
    d, reach = Z.shape[1], float(np.linalg.norm(Z, axis=1).max())
    shapes = [(d,)] * depth if architecture == "convolution" else [(d, d)] * (depth - 1) + [(d,)]
    rng = np.random.default_rng(seed)
    start = init * np.concatenate([rng.standard_normal(shape).ravel() for shape in shapes])
    sizes = _convolved_norms if architecture == "convolution" else _connected_norms
    product = _convolved if architecture == "convolution" else _connected
    outer = log_loss_gradient(Z)

    def gradient(theta: Array) -> Array:
        beta, back = product(theta, d, depth)
        slope = back(outer(beta))
        pace = 1.0 / _curvature(reach, sizes(theta, d, depth))
        longest = MAX_TURN * float(np.linalg.norm(theta)) / max(float(np.linalg.norm(slope)), _TINY)
        return slope * min(pace, longest)

    asked = np.unique(np.rint(np.geomspace(1, steps, 60))) * LINEAR_PACE
    asked[-1] = steps * LINEAR_PACE
    path = gradient_flow(
        gradient, start, time=steps * LINEAR_PACE, step=LINEAR_PACE, record=asked.tolist()
    )
    betas = np.array([product(theta, d, depth)[0] for theta in path.points])
    margins = (betas @ Z.T).min(axis=1)
    return LinearRun(betas, np.rint(path.times / LINEAR_PACE), margins, architecture, depth)


def _curvature(reach: float, norms: Array) -> float:
    """Bound the second derivative of the logarithm of the loss by the operator norms of the layers."""
    inverse = 1.0 / (norms + _TINY)
    total, squares = float(inverse.sum()), float(inverse @ inverse)
    product = float(norms.prod())
    pairs = product * 0.5 * (total**2 - squares)  # of all products that leave two layers out
    return reach**2 * product**2 * squares + reach * pairs + _TINY


def _connected_norms(theta: Array, d: int, depth: int) -> Array:
    hidden = theta[: (depth - 1) * d * d].reshape(depth - 1, d * d)
    return np.r_[np.linalg.norm(hidden, axis=1), np.linalg.norm(theta[(depth - 1) * d * d :])]


def _convolved_norms(theta: Array, d: int, depth: int) -> Array:
    return np.asarray(np.abs(np.fft.rfft(theta.reshape(depth, d), axis=1)).max(axis=1))


def _connected(theta: Array, d: int, depth: int) -> tuple[Array, Callable[[Array], Array]]:
    """Return the end-to-end weights, and the map from their gradient to that of the layers."""
    hidden = theta[: (depth - 1) * d * d].reshape(depth - 1, d, d)
    tails = [theta[(depth - 1) * d * d :]]  # W_{l+1}^T ... w_L, from the last layer down
    for matrix in hidden[::-1]:
        tails.append(matrix.T @ tails[-1])
    beta = tails[-1]

    def back(gradient: Array) -> Array:
        parts, head = [], gradient
        for matrix, tail in zip(hidden, tails[-2::-1], strict=True):
            parts.append(np.outer(tail, head).ravel())
            head = matrix @ head
        return np.concatenate([*parts, head])

    return beta, back


def _convolved(theta: Array, d: int, depth: int) -> tuple[Array, Callable[[Array], Array]]:
    """The same for filters that are convolved circularly, through their spectra."""
    spectra = np.fft.rfft(theta.reshape(depth, d), axis=1)
    # Products of all other layers, without dividing: a frequency may be zero.
    ones = np.ones((1, spectra.shape[1]))
    before = np.vstack([ones, np.cumprod(spectra[:-1], axis=0)])
    after = np.vstack([np.cumprod(spectra[:0:-1], axis=0)[::-1], ones])
    beta = np.fft.irfft(before[-1] * spectra[-1], n=d)

    def back(gradient: Array) -> Array:
        image = np.fft.rfft(gradient)
        return np.asarray(np.fft.irfft(np.conj(before * after) * image, n=d, axis=1).ravel())

    return beta, back
