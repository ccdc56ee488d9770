"""Distances and margins against an optimiser, invariances, dual norms."""

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from pindown.learn.margins import hyperplane_distance, margin, project_to_hyperplane


def problem(seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(6, 3)), rng.normal(size=3), float(rng.normal())


@pytest.mark.parametrize("seed", range(5))
def test_projection_is_the_nearest_point(seed):
    X, w, b = problem(seed)
    P = project_to_hyperplane(X, w, b)
    np.testing.assert_allclose(P @ w + b, 0, atol=1e-12)
    for x, p in zip(X, P, strict=True):
        found = minimize(
            lambda z, x=x: np.sum((z - x) ** 2),
            np.zeros(3),
            jac=lambda z, x=x: 2 * (z - x),
            constraints={"type": "eq", "fun": lambda z: z @ w + b, "jac": lambda z: w},
            options={"ftol": 1e-14},
        )
        np.testing.assert_allclose(found.x, p, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(X - P, axis=1), hyperplane_distance(X, w, b), atol=1e-12)


@pytest.mark.parametrize("norm", [1, np.inf])
@pytest.mark.parametrize("seed", range(3))
def test_other_norms_use_the_dual_norm(norm, seed):
    X, w, b = problem(seed)
    for x, distance in zip(X, hyperplane_distance(X, w, b, norm=norm), strict=True):
        d = len(x)  # z on the plane, t bounds |z - x| entry by entry or in the largest entry
        size = d if norm == 1 else 1
        spread = np.eye(d) if norm == 1 else np.ones((d, 1))
        A = np.vstack([np.hstack([np.eye(d), -spread]), np.hstack([-np.eye(d), -spread])])
        found = linprog(
            np.r_[np.zeros(d), np.ones(size)], A_ub=A, b_ub=np.r_[x, -x],
            A_eq=[np.r_[w, np.zeros(size)]], b_eq=[-b],
            bounds=[(None, None)] * d + [(0, None)] * size,
        )  # fmt: skip
        assert found.fun == pytest.approx(distance, abs=1e-9)


def test_margin_ignores_the_scale_of_the_weights():
    X, w, b = problem(0)
    y = np.sign(X @ w + b)
    for factor in (1e-200, 0.3, 1e200):
        assert margin(X, y, factor * w, factor * b) == pytest.approx(margin(X, y, w, b))
    assert margin(X, y, w, b) > 0
    assert margin(X, -y, w, b) < 0


def test_printed_margin_is_positive_without_separation():
    X, y = np.array([[-1.0], [1.0], [2.0]]), np.array([1, -1, 1])
    printed = np.min(np.abs(X[:, 0])) / 1.0
    assert printed > 0
    assert margin(X, y, [1.0]) < 0


@pytest.mark.parametrize(
    "call",
    [
        lambda: hyperplane_distance([[1.0]], [0.0]),
        lambda: hyperplane_distance([[1.0]], [1.0, 2.0]),
        lambda: hyperplane_distance([[1.0]], [1.0], norm=3),
        lambda: margin([[1.0]], [2], [1.0]),
        lambda: margin([[np.nan]], [1], [1.0]),
        lambda: margin([], [], [1.0]),
    ],
)
def test_bad_input(call):
    with pytest.raises(ValueError):
        call()
