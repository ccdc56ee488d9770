"""Fitting a network to another one's outputs by Levenberg-Marquardt: to the last digits, no torch."""

from __future__ import annotations

import numpy as np
from scipy.optimize import least_squares

from pindown.affine import Array, dense
from pindown.equivalence.flat_directions import parameter_jacobian
from pindown.network import ReluNetwork


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
