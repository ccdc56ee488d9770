"""Local improvement of a network on all samples, for problems with too many cells to walk over."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pindown.learn.exact.problem import Problem
from pindown.network import ReluNetwork

Array = npt.NDArray[np.float64]

_STEPS = 500


def refine(network: ReluNetwork, problem: Problem) -> ReluNetwork:
    """Descend from a network with output weights of size one by L-BFGS, its signs fixed."""
    from scipy.optimize import minimize

    hidden, output = network.layers
    signs = np.asarray(output.weight)[0]
    Z = np.column_stack([problem.coordinates, np.ones(len(problem.X))])
    slopes = np.asarray(hidden.weight) @ problem.axes * problem.scale
    biases = hidden.bias + np.asarray(hidden.weight) @ problem.centre
    start = np.append(np.column_stack([slopes, biases]).ravel(), output.bias[0])
    penalty = np.append(problem.penalty, 0.0)

    def value_and_slope(theta: Array) -> tuple[float, Array]:
        weights = theta[:-1].reshape(len(signs), -1)
        shift = theta[-1] if problem.biased else 0.0
        before = Z @ weights.T
        value, slope = problem.loss_and_slope(np.maximum(before, 0) @ signs + shift)
        inner = ((before > 0) * signs * slope[:, None]).T @ Z + 2 * penalty * weights
        total = value + float((penalty * weights**2).sum())
        return total, np.append(inner.ravel(), slope.sum() if problem.biased else 0.0)

    found = minimize(value_and_slope, start, jac=True, method="L-BFGS-B", options={"maxiter": _STEPS}).x
    phi = signs[:, None] * found[:-1].reshape(len(signs), -1)
    return problem.network(signs.astype(np.int64), phi.ravel(), float(found[-1]))
