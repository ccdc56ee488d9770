r"""The start of training: initial weights that keep the size of signals, and inputs of one scale.

Weights of variance :math:`g^2/D_{in}` (Xavier's initialisation for :math:`g^2 = 1`, He's for 2) give

.. math:: \operatorname{Var}(y) = D_{in}\operatorname{Var}(w)\,E(x^2), \qquad
          q_{l+1} = g^2\,E\,\varphi(\sqrt{q_l}\,z)^2, \quad z \sim N(0, 1),

for the mean squares :math:`q_l` of wide layers without biases, so that :math:`g^2 = 1` keeps them for
linear units and :math:`g^2 = 2` for ReLUs.

The Hessian of the halved mean squared error is :math:`X^\top X/n`, with a column of ones for the
intercept. With the best step :math:`2/(\lambda_{\min} + \lambda_{\max})` gradient descent shrinks the
error by :math:`(\kappa - 1)/(\kappa + 1)` in each step, :math:`\kappa = \lambda_{\max}/\lambda_{\min}`,
which standardised inputs make small. Directions that the data do not see do not move and do not count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.bias.tuning import ERROR_LEFT, HERMITE_NODES, RANK_TOLERANCE
from pindown.evidence import Kind
from pindown.validation import choice, integer, positive, probability, table


@dataclass(frozen=True)
class SignalReport:
    """Mean squares of signals in each linear layer, forward and backward.

    Attributes:
        forward: Mean square of each linear layer's outputs, first layer first.
        backward: Mean square of the loss gradient at those outputs, for a random linear loss.
    """

    forward: Array = field(repr=False)
    backward: Array = field(repr=False)

    def __str__(self) -> str:
        f, b = self.forward, self.backward
        return f"{len(f)} layers: signal {f[0]:.3g} -> {f[-1]:.3g}, gradient {b[-1]:.3g} -> {b[0]:.3g}"


def keep_variance(module: Any, nonlinearity: str = "linear", *, seed: int = 0) -> Any:
    """Draw the weights of all linear layers with variance gain^2 / inputs, and set their biases to zero.

    Args:
        module: A torch module; its layers are changed in place.
        nonlinearity: ``"linear"`` for 1/inputs, ``"relu"`` for 2/inputs.
        seed: Seed of the weights.

    Returns:
        The module.

    Raises:
        ValueError: If the nonlinearity is another one, or there is no linear layer.

    The slides call this Xavier's initialisation; torch's function of that name divides by the mean of
    inputs and outputs.

    >>> import torch
    >>> layer = keep_variance(torch.nn.Linear(100, 1000), "relu")
    >>> round(100 * layer.weight.var().item(), 2), layer.bias.any().item()
    (2.0, False)

    Lecture course, slides on initialisation.
    """
    from pindown.extras import torch

    choice("nonlinearity", nonlinearity, ("linear", "relu"))
    generator = torch.Generator().manual_seed(seed)
    for layer in _linear_layers(module):
        torch.nn.init.kaiming_normal_(layer.weight, nonlinearity=nonlinearity, generator=generator)
        if layer.bias is not None:
            torch.nn.init.zeros_(layer.bias)
    return module


def signal_report(module: Any, X: Any, *, seed: int = 0) -> SignalReport:
    """Return how the size of signals and gradients changes from layer to layer.

    Args:
        module: A torch module.
        X: Inputs, a tensor.
        seed: Seed of the random loss.

    Returns:
        A :class:`SignalReport`.

    >>> import torch
    >>> layer = torch.nn.Linear(2, 2, bias=False)
    >>> layer.weight.data = 3 * torch.eye(2)
    >>> print(signal_report(torch.nn.Sequential(layer, layer), torch.eye(2)))
    2 layers: signal 4.5 -> 40.5, gradient 1.88 -> 16.9

    Lecture course, slides on initialisation.
    """
    from pindown.extras import torch

    outputs: list[Any] = []

    def keep(_: Any, __: Any, output: Any) -> None:
        outputs.append(output)

    handles = [layer.register_forward_hook(keep) for layer in _linear_layers(module)]
    try:
        result = module(X)
        noise = torch.randn(
            result.shape, generator=torch.Generator().manual_seed(seed), dtype=result.dtype
        )
        # This leaves the parameters' gradients alone.
        gradients = torch.autograd.grad((noise * result).sum(), outputs)
    finally:
        for handle in handles:
            handle.remove()
    forward = np.array([float(o.detach().double().pow(2).mean()) for o in outputs])
    return SignalReport(forward, np.array([float(g.double().pow(2).mean()) for g in gradients]))


def _linear_layers(module: Any) -> list[Any]:
    from pindown.extras import torch

    layers = [m for m in module.modules() if isinstance(m, torch.nn.Linear)]
    if not layers:
        raise ValueError("the module has no linear layer")
    return layers


def predicted_signal(
    depth: int,
    nonlinearity: Literal["linear", "relu", "tanh"] = "relu",
    *,
    gain: float = 1.0,
    input_square: float = 1.0,
) -> Array:
    r"""Return the mean square of each linear layer's outputs, before its nonlinearity, first first.

    Args:
        depth: Linear layers.
        nonlinearity: What stands between them.
        gain: The factor :math:`g^2`; weights have variance :math:`g^2/D_{in}`.
        input_square: Mean square of the inputs.

    Returns:
        The mean squares (depth,), in the limit of wide layers.

    Raises:
        ValueError: If the nonlinearity is another one.

    Example:
        ReLUs lose half of the signal in every layer unless the weights make up for it:

        >>> predicted_signal(3, "relu").tolist(), predicted_signal(3, "relu", gain=2.0).tolist()
        ([1.0, 0.5, 0.25], [2.0, 2.0, 2.0])

    Lecture course, slides on initialisation; the recursion for other units is ours.
    """
    depth = integer("depth", depth)
    gain = positive("gain", gain, zero=True)
    choice("nonlinearity", nonlinearity, ("linear", "relu", "tanh"))
    nodes, weights = np.polynomial.hermite_e.hermegauss(HERMITE_NODES)
    weights = weights / weights.sum()
    squares = [gain * positive("input_square", input_square, zero=True)]
    for _ in range(depth - 1):
        q = squares[-1]
        if nonlinearity == "tanh":
            mean = float(weights @ np.tanh(np.sqrt(q) * nodes) ** 2)
        else:
            mean = q if nonlinearity == "linear" else q / 2
        squares.append(gain * mean)
    return np.array(squares)


@dataclass(frozen=True)
class Conditioning:
    """Condition numbers before and after standardisation, and the steps of gradient descent they mean.

    Attributes:
        raw: Condition number of the loss's Hessian, inputs as they are.
        standardised: The same for inputs with mean zero and variance one.
        raw_steps: Steps that shrink every part of the error to the share asked for, best step size.
        standardised_steps: The same after standardisation.
        rank: Rank of the inputs with the intercept.
        constant: Inputs that never change; standardisation removes them.
        kind: ``"exact"``, up to rounding.
    """

    raw: float
    standardised: float
    raw_steps: int
    standardised_steps: int
    rank: int
    constant: tuple[int, ...] = ()
    kind: Kind = "exact"

    @property
    def speed_up(self) -> float:
        """How many times fewer steps the standardised inputs need."""
        return self.raw_steps / self.standardised_steps

    def __str__(self) -> str:
        return (
            f"condition number {self.raw:.3g} -> {self.standardised:.3g}, "
            f"{self.raw_steps} -> {self.standardised_steps} steps"
        )


def conditioning(X: ArrayLike, *, intercept: bool = True, shrink: float = ERROR_LEFT) -> Conditioning:
    """Return what standardising the inputs does to the conditioning of a squared loss.

    Args:
        X: Inputs (n, d).
        intercept: Whether a column of ones is added.
        shrink: Share of its error that descent is to be left with.

    Returns:
        A :class:`Conditioning`.

    Raises:
        ValueError: If inputs are not finite, or ``shrink`` is not in (0, 1).

    Example:
        Two uncorrelated inputs, one ten times as large: the condition number is the square of ten.

        >>> conditioning([[10, 1], [10, -1], [-10, 1], [-10, -1]]).raw
        100.0

    Lecture course, slides on data normalisation; the numbers are ours.
    """
    X = table(X)
    shrink = probability("shrink", shrink)
    largest = np.abs(X).max(axis=0)
    scaled = X / np.where(largest > 0, largest, 1.0)  # squares stay within the floats
    spread = scaled.std(axis=0)
    # A column of equal numbers has a spread of rounding errors, not of zero.
    still = spread <= np.finfo(float).eps * np.sqrt(len(X))
    Z = np.where(still, 0.0, (scaled - scaled.mean(axis=0)) / np.where(still, 1.0, spread))
    ones = np.ones((len(X), 1 if intercept else 0))
    raw, rank = _condition(np.hstack([X, ones]))
    standardised, _ = _condition(np.hstack([Z, ones]))
    return Conditioning(
        raw=raw,
        standardised=standardised,
        raw_steps=_steps(raw, shrink),
        standardised_steps=_steps(standardised, shrink),
        rank=rank,
        constant=tuple(int(i) for i in np.flatnonzero(still)),
    )


def _condition(X: Array) -> tuple[float, int]:
    singular = np.linalg.svd(X, compute_uv=False)
    if singular[0] == 0:
        return 1.0, 0
    kept = singular[singular > RANK_TOLERANCE * singular[0]]
    return float(round((kept[0] / kept[-1]) ** 2, 12)), len(kept)


def _steps(condition: float, shrink: float) -> int:
    if condition <= 1.0:
        return 1
    return max(1, math.ceil(math.log(shrink) / math.log1p(-2 / (condition + 1))))
