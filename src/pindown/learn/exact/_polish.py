"""Better networks from good ones: programs solved again in full accuracy, and descent on all samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pindown.affine import Array, Integers
from pindown.learn.exact._problem import Problem, Table
from pindown.learn.exact.tuning import MAX_DESCENT_STEPS
from pindown.network import ReluNetwork
from pindown.programs import LP_TOLERANCE, Attempt, linear_program

if TYPE_CHECKING:
    from pindown.learn.exact._compiled.squared import Found


# A vertex, as exactly as the solver can.
_VERTEX = Attempt("highs-ds", LP_TOLERANCE)
# Margins at which the logistic loss of a sample is below rounding.
_CERTAIN = 50.0
_CORRECTIONS = 3  # the first leaves the rounding of a step that is already tiny


def polish(table: Table) -> ReluNetwork | None:
    """Solve the best network's program again, as accurately as its loss allows.

    Absolute and hinge loss: by the simplex method, the answer is a vertex. Squared loss: without the
    cones, by orthogonal factors instead of normal equations. Logistic loss: larger weights, if the
    network separates the classes.

    Returns:
        A network, better or not; None if there is none.
    """
    problem, best = table.problem, table.best
    if not best.signs.any():
        return None
    if problem.loss in ("absolute", "hinge"):
        solved = solve_linear(table, best.chosen, best.signs)
        return None if solved is None else solved[1]
    if problem.ridge > 0:
        return None
    phi, shift = best.phi, float(best.shift[0])
    if problem.loss == "squared":
        A, _ = _program(table, best.chosen, best.signs)
        root = np.sqrt(problem.mass)
        theta = np.asarray(
            np.linalg.lstsq(A * root[:, None], problem.y * root, rcond=None)[0], np.float64
        )
        phi, shift = theta[: len(phi)], float(theta[-1]) if problem.biased else 0.0
    else:
        network = problem.network(best.signs, phi, shift)
        margin = float((problem.y * network(problem.X)[:, 0]).min())
        factor = max(1.0, _CERTAIN / margin) if margin > 0 else 1.0
        phi, shift = factor * phi, factor * shift
    return problem.network(best.signs, phi, shift)


def close(table: Table, found: Found, upper: float) -> tuple[float, list[ReluNetwork]]:
    """Solve the programs that a slice left open, where they are linear.

    Returns:
        A lower bound on all of them, and the networks of those that were solved.
    """
    lower, networks = np.inf, []
    for place in range(min(int(found.counts[2]), len(found.open_bound))):
        bound = float(found.open_bound[place])
        full = found.counts[2] > len(found.open_bound) and place == len(found.open_bound) - 1
        if bound < upper and not full:
            solved = solve_linear(table, found.open_chosen[place], found.open_signs[place])
            if solved is not None:
                value, network = solved
                networks.append(network)
                bound = max(bound, value - table.problem.negligible)  # the solver has tolerances
        lower = min(lower, bound)
    return lower, networks


def solve_linear(table: Table, chosen: Integers, signs: Integers) -> tuple[float, ReluNetwork] | None:
    """Solve a cone program for absolute or hinge loss; None for others, and if it fails."""
    problem = table.problem
    if problem.loss not in ("absolute", "hinge") or problem.ridge > 0:
        return None
    A, K = _program(table, chosen, signs)
    n, m = A.shape
    y, slack = problem.y, np.eye(n)
    if problem.loss == "absolute":
        rows = np.block([[A, -slack], [-A, -slack], [-K, np.zeros((len(K), n))]])
        limits = np.concatenate([y, -y, np.zeros(len(K))])
    else:
        rows = np.block([[-y[:, None] * A, -slack], [-K, np.zeros((len(K), n))]])
        limits = np.concatenate([-np.ones(n), np.zeros(len(K))])
    cost = np.concatenate([np.zeros(m), problem.mass])
    lower = np.concatenate([np.full(m, -np.inf), np.zeros(n)])
    found = linear_program(cost, rows, limits, lower=lower, attempts=_VERTEX)
    if found.x is None:
        return None
    shift = float(found.x[m - 1]) if problem.biased else 0.0
    return found.value, problem.network(signs, found.x[: len(signs) * cells_rank(table)], shift)


def cells_rank(table: Table) -> int:
    """Return how many weights a unit has."""
    return int(table.cells.points.shape[1])


def _program(table: Table, chosen: Integers, signs: Integers) -> tuple[Array, Array]:
    """Return the features of all samples and the facets of the signed cones."""
    cells, rank = table.cells, cells_rank(table)
    on = np.unpackbits(cells.sides[chosen], axis=1, count=len(cells.points)).astype(bool)
    points = cells.points[table.rows.point]
    blocks = [points * on[u][table.rows.point, None] for u in range(len(chosen))]
    A = np.column_stack([*blocks, np.ones((len(points), int(table.problem.biased)))])
    facets = []
    for u, cell in enumerate(chosen):
        for point in cells.facets[cells.facet_start[cell] : cells.facet_start[cell + 1]]:
            row = np.zeros(A.shape[1])
            side = signs[u] if on[u, point] else -signs[u]
            row[u * rank : (u + 1) * rank] = side * cells.points[point]
            facets.append(row)
    return A, np.array(facets)


def round_weights(network: ReluNetwork, problem: Problem) -> Array:
    """Return each unit's slopes and bias in the coordinates in which the samples are round."""
    hidden = network.layers[0]
    slopes = np.asarray(hidden.weight) @ problem.axes * problem.scale
    return np.column_stack([slopes, hidden.bias + np.asarray(hidden.weight) @ problem.centre])


def on_its_pattern(network: ReluNetwork, problem: Problem) -> ReluNetwork | None:
    """Return the least-squares fit in which the same units are on at the same samples; None: penalised.

    It is better only if its units are on there.
    """
    if problem.loss != "squared" or problem.ridge > 0:
        return None
    Z = np.column_stack([problem.coordinates, np.ones(len(problem.X))])
    signs = np.asarray(network.layers[1].weight)[0].astype(np.int64)
    on = Z @ round_weights(network, problem).T > 0
    A = (on[:, :, None] * Z[:, None, :]).reshape(len(Z), -1)
    A = np.column_stack([A, np.ones((len(Z), int(problem.biased)))])
    root = np.sqrt(problem.mass)
    theta = np.asarray(np.linalg.lstsq(A * root[:, None], problem.y * root, rcond=None)[0], np.float64)
    phi = theta[: on.shape[1] * Z.shape[1]]
    return problem.network(signs, phi, float(theta[-1]) if problem.biased else 0.0)


def refine(network: ReluNetwork, problem: Problem) -> ReluNetwork:
    """Descend from a network with output weights of size one by L-BFGS, its signs fixed."""
    from scipy.optimize import minimize

    output = network.layers[1]
    signs = np.asarray(output.weight)[0]
    Z = np.column_stack([problem.coordinates, np.ones(len(problem.X))])
    start = np.append(round_weights(network, problem).ravel(), output.bias[0])
    penalty = np.append(problem.penalty, 0.0)

    def value_and_slope(theta: Array) -> tuple[float, Array]:
        weights = theta[:-1].reshape(len(signs), -1)
        shift = theta[-1] if problem.biased else 0.0
        before = Z @ weights.T
        value, slope = problem.loss_and_slope(np.maximum(before, 0) @ signs + shift)
        inner = ((before > 0) * signs * slope[:, None]).T @ Z + 2 * penalty * weights
        total = value + float((penalty * weights**2).sum())
        return total, np.append(inner.ravel(), slope.sum() if problem.biased else 0.0)

    found = minimize(
        value_and_slope, start, jac=True, method="L-BFGS-B", options={"maxiter": MAX_DESCENT_STEPS}
    ).x
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
        change = np.linalg.lstsq(A, errors, rcond=None)[0]
        phi = np.repeat(signs, Z.shape[1]) * change[: len(signs) * Z.shape[1]]
        step = problem.network(signs.astype(np.int64), phi, float(change[-1]) * problem.biased)
        network = ReluNetwork.from_layers(
            [
                (slopes + step.layers[0].weight, biases + step.layers[0].bias),
                (output, shift + step.layers[1].bias),
            ]
        )
    return network
