"""Networks as training begins with, and after some training."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy.optimize import least_squares

from pindown.affine import Array, dense
from pindown.box import Box
from pindown.equivalence.flat_directions import parameter_jacobian
from pindown.network import ReluNetwork


def random_network(widths: Sequence[int], seed: int) -> ReluNetwork:
    r"""Draw :math:`W \sim N(0, 2 / n)` and biases uniform in :math:`\pm 1/\sqrt{n}`, n the fan-in.

    >>> random_network((2, 3, 1), 0).widths
    (2, 3, 1)
    """
    rng = np.random.default_rng([seed, *widths])
    return ReluNetwork.from_layers(
        (
            rng.normal(0.0, np.sqrt(2.0 / n), (m, n)),
            rng.uniform(-1.0 / np.sqrt(n), 1.0 / np.sqrt(n), m),
        )
        for n, m in pairwise(widths)
    )


def trained_network(widths: Sequence[int], seed: int, *, evaluations: int = 60) -> ReluNetwork:
    """Fit a random network to a smooth function on [-1, 1]^d."""
    start = random_network(widths, seed)
    rng = np.random.default_rng([seed, 1, *widths])
    X = Box.cube(widths[0], -1, 1).sample(1_000, rng)
    frequencies = rng.normal(0.0, 1.5, (widths[0], widths[-1]))
    return fit_student(start, X, np.sin(X @ frequencies), evaluations=evaluations)


def parameters(net: ReluNetwork) -> Array:
    """Return all weights and biases, layer by layer, as one vector.

    >>> parameters(ReluNetwork.from_layers([([[1.0, 2.0]], [3.0])]))
    array([1., 2., 3.])
    """
    parts = [np.append(dense(W).ravel(), b) for W, b in net.layers]
    return np.concatenate(parts)


def with_parameters(net: ReluNetwork, values: Array) -> ReluNetwork:
    """Return a network of the same widths with these weights and biases."""
    layers, at = [], 0
    for layer in net.layers:
        n, m = layer.out_features, layer.in_features
        W = values[at : at + n * m].reshape(n, m)
        layers.append((W, values[at + n * m : at + n * m + n]))
        at += n * m + n
    return ReluNetwork.from_layers(layers)


def fit_student(student: ReluNetwork, X: Array, y: Array, *, evaluations: int) -> ReluNetwork:
    r"""Minimise :math:`\sum_n \|f_\theta(x_n) - y_n\|^2` from the student's own parameters.

    Args:
        student: Where to start.
        X: Inputs (n, d).
        y: Wanted outputs (n, k).
        evaluations: How often the function may be evaluated.
    """

    def residual(theta: Array) -> Array:
        return np.ravel(with_parameters(student, theta)(X) - y)

    def jacobian(theta: Array) -> Array:
        return parameter_jacobian(with_parameters(student, theta), X)

    found = least_squares(
        residual,
        parameters(student),
        jac=jacobian,
        method="trf",
        x_scale="jac",
        max_nfev=evaluations,
        ftol=1e-15,
        xtol=1e-15,
        gtol=1e-15,
    )
    return with_parameters(student, found.x)
