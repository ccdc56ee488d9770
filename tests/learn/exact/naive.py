"""Exact training as the theorem states it: one convex program for each choice of sides and signs."""

from itertools import combinations_with_replacement, product

import numpy as np
from scipy.optimize import linprog, minimize, nnls


def sides_by_linear_programs(X):
    """All divisions of the samples by a hyperplane, one linear program for each partial labelling."""
    lifted = np.column_stack([X, np.ones(len(X))])
    found = [()]
    for j in range(len(X)):
        longer = []
        for labels in found:
            for side in (1, -1):
                signs = np.array([*labels, side])
                rows = -signs[:, None] * lifted[: j + 1]
                zero = np.zeros(lifted.shape[1])
                if linprog(zero, rows, -np.ones(j + 1), bounds=(None, None)).status == 0:
                    longer.append((*labels, side))
        found = longer
    return np.array(found) > 0


def least_loss(X, y, width, loss, *, ridge=0.0, bias=False):
    """The least loss over all programs."""
    lifted = np.column_stack([X, np.ones(len(X))])
    best = np.inf
    for cells in combinations_with_replacement(sides_by_linear_programs(X), width):
        for signs in product((1, -1), repeat=width):
            features = [s * lifted * on[:, None] for s, on in zip(signs, cells, strict=True)]
            A = np.column_stack([*features, np.ones((len(X), int(bias)))])
            blocks = [np.where(on, 1, -1)[:, None] * lifted for on in cells]
            K = np.zeros((width * len(X), A.shape[1]))
            for u, block in enumerate(blocks):
                K[u * len(X) : (u + 1) * len(X), u * lifted.shape[1] : (u + 1) * lifted.shape[1]] = block
            penalty = np.zeros(A.shape[1])
            for u in range(width):
                penalty[u * lifted.shape[1] : (u + 1) * lifted.shape[1] - 1] = ridge
            best = min(best, PROGRAMS[loss](A, y, K, penalty))
    return best


def _squared(A, y, K, penalty):
    """The dual of a least-squares problem over a cone is a non-negative least-squares problem."""
    H = A.T @ A + np.diag(penalty)
    L = np.linalg.cholesky(H + 1e-13 * np.trace(H) * np.eye(len(H)) + 1e-300 * np.eye(len(H)))
    p = np.linalg.solve(L, A.T @ y)
    W = np.linalg.solve(L, K.T)
    weights, _ = nnls(W, -p, maxiter=10_000)
    theta = np.linalg.solve(L.T, p + W @ weights)
    return ((A @ theta - y) ** 2).sum() + penalty @ theta**2


def _absolute(A, y, K, penalty):
    n, m = A.shape
    rows = np.block([[A, -np.eye(n)], [-A, -np.eye(n)], [-K, np.zeros((len(K), n))]])
    limits = np.concatenate([y, -y, np.zeros(len(K))])
    return linprog(np.r_[np.zeros(m), np.ones(n)], rows, limits, bounds=(None, None)).fun


def _hinge(A, y, K, penalty):
    n, m = A.shape
    rows = np.block([[-y[:, None] * A, -np.eye(n)], [-K, np.zeros((len(K), n))]])
    limits = np.concatenate([-np.ones(n), np.zeros(len(K))])
    bounds = [(None, None)] * m + [(0, None)] * n
    return linprog(np.r_[np.zeros(m), np.ones(n)], rows, limits, bounds=bounds).fun


def _logistic(A, y, K, penalty):
    def value(theta):
        z = -y * (A @ theta)
        return np.logaddexp(0, z).sum() + penalty @ theta**2

    def slope(theta):
        z = -y * (A @ theta)
        return A.T @ (-y / (1 + np.exp(-z))) + 2 * penalty * theta

    cone = {"type": "ineq", "fun": lambda theta: K @ theta, "jac": lambda theta: K}
    options = {"maxiter": 1000, "ftol": 1e-14}
    start = np.zeros(A.shape[1])
    found = minimize(value, start, jac=slope, constraints=cone, method="SLSQP", options=options)
    return value(found.x) if (K @ found.x).min() >= -1e-9 else np.inf


PROGRAMS = {"squared": _squared, "absolute": _absolute, "hinge": _hinge, "logistic": _logistic}
