r"""How the size of a signal changes from layer to layer at random weights, for infinitely wide layers.

With weights of variance :math:`g^2/D_{in}` and no biases the mean square of the units follows

.. math:: q_{l+1} = g^2\,E\,\varphi(\sqrt{q_l}\,z)^2, \qquad z \sim N(0, 1),

so that :math:`g^2 = 1` keeps it for linear units and :math:`g^2 = 2` for ReLUs. The weights themselves
are drawn by :func:`pindown.bias.shrinkage.keep_variance`, and measured by
:func:`pindown.bias.shrinkage.signal_report`.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from pindown.affine import Array
from pindown.bias.least_squares.checks import count, number
from pindown.bias.shrinkage.initialisation import SignalReport, keep_variance, signal_report

__all__ = ["SignalReport", "keep_variance", "predicted_signal", "signal_report"]
_NODES = 200  # of Gauss-Hermite quadrature: tanh at q = 4 to eight digits


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
    depth = count("depth", depth, 1)
    gain = number("gain", gain, 0.0, np.inf)
    if nonlinearity not in ("linear", "relu", "tanh"):
        raise ValueError(f"nonlinearity must be 'linear', 'relu' or 'tanh'; got {nonlinearity!r}.")
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    weights = weights / weights.sum()
    squares = [gain * number("input_square", input_square, 0.0, np.inf)]
    for _ in range(depth - 1):
        q = squares[-1]
        if nonlinearity == "tanh":
            mean = float(weights @ np.tanh(np.sqrt(q) * nodes) ** 2)
        else:
            mean = q if nonlinearity == "linear" else q / 2
        squares.append(gain * mean)
    return np.array(squares)
