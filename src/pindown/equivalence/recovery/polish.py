r"""Improve all parameters at once: least squares on values, by Gauss-Newton steps.

Peeling hands its errors from layer to layer. Near the truth the function is linear in the parameters
wherever no unit switches, so a few steps

.. math:: \theta \leftarrow \theta - J^{+} (f_\theta(y) - f(y))

on more points than parameters bring the error down to what the values' noise allows. The least-norm
solution leaves the free scales of the units alone.
"""

from __future__ import annotations

import numpy as np

from pindown.affine import Array
from pindown.equivalence.flat_directions import n_parameters, parameter_jacobian
from pindown.network import ReluNetwork

_STEPS = 12
_DROP = 1e-11  # directions with smaller singular values are the free scales


def polish(net: ReluNetwork, points: Array, values: Array, *, steps: int = _STEPS) -> ReluNetwork:
    """Return the network nearest to ``net`` that fits ``values`` (n, k) at ``points`` (n, d)."""
    if n_parameters(net) > 4_000:
        return net
    best, error = net, _error(net, points, values)
    for _ in range(steps):
        J = parameter_jacobian(best, points)
        size = np.linalg.norm(J, axis=0)
        size = np.where(size > 0.0, size, 1.0)
        rest = (best(points) - values).reshape(-1)
        step = np.linalg.lstsq(J / size, rest, rcond=_DROP)[0] / size
        for share in (1.0, 0.25, 0.05):
            trial = moved(best, -share * step)
            trial_error = _error(trial, points, values)
            if trial_error < error:
                break
        else:
            return best
        gain = error / max(trial_error, 1e-300)
        best, error = trial, trial_error
        if gain < 1.0 + 0.5 / steps:
            return best
    return best


def moved(net: ReluNetwork, step: Array) -> ReluNetwork:
    """Return the network with its parameters, in the Jacobian's order, moved by a step."""
    layers, start = [], 0
    for W, b in net.layers:
        parts = []
        for part in (W, b):
            parts.append(part + step[start : start + part.size].reshape(part.shape))
            start += part.size
        layers.append((parts[0], parts[1]))
    return ReluNetwork.from_layers(layers)


def _error(net: ReluNetwork, points: Array, values: Array) -> float:
    return float(np.sqrt(np.mean((net(points) - values) ** 2)))
