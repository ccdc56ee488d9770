"""Local improvement of a network on all samples, for problems with too many cells to walk over."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pindown.learn.exact.problem import Problem
from pindown.network import ReluNetwork

Array = npt.NDArray[np.float64]

_STEPS = 500
_CORRECTIONS = 3  # the first leaves the rounding of a step that is already tiny


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


def interpolate(network: ReluNetwork, problem: Problem) -> ReluNetwork:
    """Take a network that almost fits all samples the rest of the way, as far as rounding allows.

    Regression: the least change of weights that removes the errors, while the same units stay on.
    Hinge: larger weights. Logistic loss is left as it is.
    """
    if problem.loss in ("squared", "absolute"):
        # Samples that lie on a fold almost do so exactly, or not at all.
        errors = problem.y - network(problem.X)[:, 0]
        both = (_corrected(network, problem, near) for near in (0.0, float(np.abs(errors).max()) ** 0.5))
        return min(both, key=problem.loss_of)
    least = float((problem.y * network(problem.X)[:, 0]).min())
    grow = 1 / least if problem.loss == "hinge" and least > 0 else 1.0
    (slopes, biases), (signs, shift) = network.layers
    return ReluNetwork.from_layers([(grow * slopes, grow * biases), (signs, grow * shift)])


def _corrected(network: ReluNetwork, problem: Problem, near: float) -> ReluNetwork:
    """Remove a network's errors; samples that reach a unit with no more than this go on its fold."""
    Z = np.column_stack([problem.coordinates, np.ones(len(problem.X))])
    signs = np.asarray(network.layers[1].weight)[0]
    for _ in range(_CORRECTIONS):
        (slopes, biases), (output, shift) = network.layers
        before = problem.X @ np.asarray(slopes).T + biases
        sample, unit = np.nonzero(np.abs(before) <= near)
        units = np.concatenate([(before > near) * signs, np.eye(len(signs))[unit]])
        points = np.concatenate([Z, Z[sample]])
        A = (units[:, :, None] * points[:, None]).reshape(len(units), len(signs) * Z.shape[1])
        if problem.biased:
            A = np.column_stack([A, np.arange(len(A)) < len(Z)])
        errors = np.append(problem.y - network(problem.X)[:, 0], -before[sample, unit])
        change = np.linalg.lstsq(A, errors)[0]
        phi = np.repeat(signs, Z.shape[1]) * change[: len(signs) * Z.shape[1]]
        step = problem.network(signs.astype(np.int64), phi, float(change[-1]) * problem.biased)
        network = ReluNetwork.from_layers(
            [
                (slopes + step.layers[0].weight, biases + step.layers[0].bias),
                (output, shift + step.layers[1].bias),
            ]
        )
    return network
