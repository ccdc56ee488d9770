"""The last word on single programs, in full accuracy: linear programs, orthogonal factors, scaling."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pindown.learn.exact.tables import Table
from pindown.network import ReluNetwork

if TYPE_CHECKING:
    from pindown.learn.exact.kernels.squared import Found

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


# The strictest that the solver takes.
_TOLERANCES = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
# Margins at which the logistic loss of a sample is below rounding.
_CERTAIN = 50.0


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
        theta = np.asarray(np.linalg.lstsq(A * root[:, None], problem.y * root)[0], np.float64)
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
    from scipy.optimize import linprog

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
    bounds = [(None, None)] * m + [(0, None)] * n
    found = linprog(cost, rows, limits, bounds=bounds, method="highs-ds", options=_TOLERANCES)
    if found.x is None:
        return None
    shift = float(found.x[m - 1]) if problem.biased else 0.0
    return float(found.fun), problem.network(signs, found.x[: len(signs) * cells_rank(table)], shift)


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
