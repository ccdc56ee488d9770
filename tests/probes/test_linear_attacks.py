"""Attacks on linear models: closed forms against solvers and against chance."""

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from pindown.probes.linear_attacks import (
    linear_distance,
    linear_maximum_allowable_attack,
    linear_minimum_norm_attack,
    linear_regularised_attack,
)
from pindown.relaxation.lp_balls import DUALS, NORMS, lengths, project, steepest_step
from pindown.verification.least_distance import nearest_point
from tests.verification.nets import random_changes


def model(seed, k=4, d=5):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((k, d)), rng.standard_normal(k), rng.standard_normal((6, d)), rng


@pytest.mark.parametrize("norm", NORMS)
def test_dual_norm_is_what_a_unit_step_gains_at_most(norm):
    rng = np.random.default_rng(0)
    w = rng.standard_normal((20, 4))
    step = steepest_step(w, norm)
    best = np.einsum("nd,nd->n", w, step)
    np.testing.assert_allclose(best, lengths(w, DUALS[norm]), rtol=1e-12)
    np.testing.assert_allclose(lengths(step, norm), 1.0)
    chance = random_changes(rng, 5000, 4, norm) @ w.T
    assert (chance.max(axis=0) <= best + 1e-12).all()


@pytest.mark.parametrize("norm", NORMS)
def test_projection_onto_a_ball_is_the_nearest_point(norm):
    rng = np.random.default_rng(1)
    X, radius = 2 * rng.standard_normal((10, 4)), rng.uniform(0.1, 8, 10)
    P = project(X, radius, norm)
    assert (lengths(P, norm) <= radius * (1 + 1e-12)).all()
    inside = 0.9 * P  # stays where it is
    np.testing.assert_allclose(project(inside, radius, norm), inside, rtol=1e-12)
    for x, p, r in zip(X, P, radius, strict=True):
        others = r * random_changes(rng, 2000, 4, norm)
        assert np.linalg.norm(others - x, axis=1).min() >= np.linalg.norm(p - x) - 1e-12


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("k", [1, 2, 5])
def test_nothing_shorter_changes_the_class(norm, k):
    W, b, X, rng = model(k, k)
    found = linear_minimum_norm_attack(W, b, X, norm=norm)
    assert found.exact and found.success.all() and (found.margin <= 0).all()
    radius = linear_distance(W, b, X, norm=norm)
    np.testing.assert_allclose(found.distance, radius, rtol=1e-5)

    def classes(points):
        scores = points @ W.T + b
        return scores[:, 0] > 0 if k == 1 else scores.argmax(axis=1)

    assert (classes(found.X) != classes(X)).all()
    for x, r in zip(X, radius, strict=True):
        near = x + 0.9999 * r * random_changes(rng, 2000, 5, norm)
        assert (classes(near) == classes(x[None])[0]).all()


def least_by_program(W, b, x, target, norm):
    """The shortest change to a target class, by a program of another form."""
    k, d = W.shape
    others = [j for j in range(k) if j != target]
    A, room = W[others] - W[target], b[target] - b[others] - (W[others] - W[target]) @ x
    if norm == "l2":
        start = np.linalg.lstsq(A, np.minimum(room, 0) - 1, rcond=None)[0]
        limits = {"type": "ineq", "fun": lambda r: room - A @ r, "jac": lambda r: -A}
        found = minimize(
            lambda r: r @ r, start, jac=lambda r: 2 * r, constraints=[limits], method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )  # fmt: skip
        return np.sqrt(found.fun)
    size = np.ones((d, 1)) if norm == "linf" else np.eye(d)
    n = size.shape[1]
    rows = np.block([[A, np.zeros((k - 1, n))], [np.eye(d), -size], [-np.eye(d), -size]])
    limits = np.concatenate([room, np.zeros(2 * d)])
    cost = np.concatenate([np.zeros(d), np.ones(n)])
    return linprog(cost, rows, limits, bounds=[(None, None)] * d + [(0, None)] * n).fun


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("target", [0, 3])
def test_target_is_reached_by_the_shortest_way(norm, target):
    W, b, X, _ = model(7)
    found = linear_minimum_norm_attack(W, b, X, target=target, norm=norm, overshoot=0.0)
    expected = [least_by_program(W, b, x, target, norm) for x in X]
    np.testing.assert_allclose(found.distance, expected, rtol=1e-5, atol=1e-9)
    there = linear_minimum_norm_attack(W, b, X, target=target, norm=norm)
    assert ((there.X @ W.T + b).argmax(axis=1) == target).all()
    inside = (X @ W.T + b).argmax(axis=1) == target
    np.testing.assert_array_equal(found.X[inside], X[inside])


def test_target_attack_meets_the_optimality_conditions():
    """The change is a combination, with weights >= 0, of the rows that are tight."""
    W, b, X, _ = model(3, k=5)
    found = linear_minimum_norm_attack(W, b, X, target=2, overshoot=0.0)
    A = np.delete(W, 2, axis=0) - W[2]
    slack = (b[2] - np.delete(b, 2)) - found.X @ A.T
    for x, moved, room in zip(X, found.X, slack, strict=True):
        tight = np.abs(room) < 1e-9
        weights, *_ = np.linalg.lstsq(A[tight].T, x - moved, rcond=None)
        assert (weights >= -1e-9).all() and (room >= -1e-9).all()
        np.testing.assert_allclose(A[tight].T @ weights, x - moved, atol=1e-9)


@pytest.mark.parametrize("norm", NORMS)
def test_maximum_allowable_attack_is_the_strongest_within_the_radius(norm):
    W, b, X, rng = model(2)
    found = linear_maximum_allowable_attack(W, b, X, 0.3, norm=norm)
    np.testing.assert_allclose(found.distance, 0.3)
    labels = (X @ W.T + b).argmax(axis=1)
    for x, c, margin in zip(X, labels, found.margin, strict=True):
        scores = (x + 0.3 * random_changes(rng, 3000, 5, norm)) @ W.T + b
        others = np.delete(scores, c, axis=1).max(axis=1)
        assert (scores[:, c] - others).min() >= margin - 1e-9
    radius = linear_distance(W, b, X, norm=norm)
    for factor, hit in ((0.999, False), (1.001, True)):
        for i, r in enumerate(radius):
            attack = linear_maximum_allowable_attack(W, b, X[i], factor * r, norm=norm)
            assert attack.success[0] == hit


@pytest.mark.parametrize("norm", NORMS)
def test_regularised_attack_minimises_its_objective(norm):
    W, b, X, rng = model(5)
    strength = 0.4
    found = linear_regularised_attack(W, b, X, strength, norm=norm)
    labels = (X @ W.T + b).argmax(axis=1)
    for x, c, moved in zip(X, labels, found.X, strict=True):

        def objective(points, x=x, c=c):
            scores = points @ W.T + b
            margin = scores[:, c] - np.delete(scores, c, axis=1).max(axis=1)
            return 0.5 * lengths(points - x, norm) ** 2 + strength * margin

        tried = x + 3 * rng.random((3000, 1)) * random_changes(rng, 3000, 5, norm)
        assert objective(tried).min() >= objective(moved[None])[0] - 1e-9


def test_regularised_attack_chooses_the_class_with_the_least_objective():
    rng = np.random.default_rng(6)
    W, b = rng.standard_normal((6, 3)) * np.arange(1, 7)[:, None], rng.standard_normal(6)
    X = rng.standard_normal((100, 3))
    for strength in (0.1, 0.3, 1.0):
        found = linear_regularised_attack(W, b, X, strength).X
        for x, moved in zip(X, found, strict=True):
            c = int(np.argmax(W @ x + b))
            forms, offsets = W[c] - np.delete(W, c, axis=0), b[c] - np.delete(b, c)

            def objective(r, x=x, forms=forms, offsets=offsets, strength=strength):
                return 0.5 * r @ r + strength * np.min(forms @ (x + r) + offsets)

            # One class at a time, the minimum is where the gradient r + strength * form is 0.
            assert objective(moved - x) <= min(objective(-strength * w) for w in forms) + 1e-9


def test_regularised_attack_is_the_other_two_at_the_right_strength():
    w, x = np.array([1.0, -2.0, 2.0]), np.array([3.0, 0.0, 1.0])
    strength = (w @ x + 1.0) / (w @ w)
    found = linear_regularised_attack(w, 1.0, x, strength)
    shortest = linear_minimum_norm_attack(w, 1.0, x, overshoot=0.0)
    allowed = linear_maximum_allowable_attack(w, 1.0, x, strength * np.linalg.norm(w))
    np.testing.assert_allclose(found.X, shortest.X)
    np.testing.assert_allclose(found.X, allowed.X)
    lengths_found = [linear_regularised_attack(w, 1.0, x, s).distance[0] for s in (0.1, 0.2, 0.4)]
    assert lengths_found == sorted(lengths_found)


def test_printed_offsets_of_the_constraint_set_have_the_wrong_sign():
    """The set where class t wins is A x <= w_t0 - w_i0; printed is w_i0 - w_t0."""
    W, b = np.array([[1.0], [-1.0]]), np.array([0.0, 3.0])
    x, target = np.array([0.0]), 1  # class 1 wins already: 3 > 0
    A = W[0] - W[target]
    assert (W @ x + b).argmax() == target
    assert A @ x <= b[target] - b[0]
    assert not A @ x <= b[0] - b[target]
    np.testing.assert_array_equal(linear_minimum_norm_attack(W, b, x, target=1).X, [x])


def test_printed_regularised_objectives_do_not_give_the_printed_step():
    """x - lambda w minimises half the squared length; not the square, and not the length itself."""
    w, x, strength = np.array([3.0, 4.0]), np.zeros(2), 0.1

    def best(objective):
        grid = -np.linspace(0, 2, 20001)[:, None] * w
        return grid[np.argmin(objective(np.linalg.norm(grid, axis=1)) + strength * grid @ w)]

    printed = x - strength * w
    np.testing.assert_allclose(best(lambda r: r**2 / 2), printed, atol=1e-3)
    np.testing.assert_allclose(best(lambda r: r**2), printed / 2, atol=1e-3)
    np.testing.assert_allclose(best(lambda r: r), x)  # 0.1 * 5 < 1: no change at all
    np.testing.assert_allclose(linear_regularised_attack(w, 1.0, x, strength).X[0], printed)


def test_printed_direction_raises_the_score():
    w, x = np.array([3.0, 4.0]), np.array([3.0, 4.0])
    moved = linear_maximum_allowable_attack(w, 0.0, x, 1.0).X[0]
    assert w @ (x + 0.2 * w) > w @ x > w @ moved
    np.testing.assert_allclose(moved, x - 0.2 * w)


def test_equal_rows_cannot_be_attacked_and_ties_need_no_change():
    W = np.array([[1.0, 0.0], [1.0, 0.0]])
    far = linear_minimum_norm_attack(W, [1.0, 0.0], [1.0, 1.0])
    assert not far.success[0] and far.distance[0] == np.inf and "none of 1" in repr(far)
    assert linear_distance(W, [0.0, 0.0], [1.0, 1.0])[0] == 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: linear_distance([1.0, 2.0], 0.0, [1.0]), "shape"),
        (lambda: linear_distance([1.0, np.nan], 0.0, [1.0, 1.0]), "finite"),
        (lambda: linear_distance([1.0], 0.0, [np.nan]), "finite"),
        (lambda: linear_distance([1.0], 0.0, [1.0], norm="l3"), "norm must be"),
        (lambda: linear_minimum_norm_attack([1.0], 0.0, [1.0], target=2), "classes 0 to 1"),
        (lambda: linear_maximum_allowable_attack([1.0], 0.0, [1.0], -1.0), "radius"),
        (lambda: linear_regularised_attack([1.0], 0.0, [1.0], np.nan), "strength"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("norm", NORMS)
def test_contradictory_rows_have_no_nearest_point(norm):
    G = np.array([[1.0, 0.0], [-1.0, 0.0]])
    assert nearest_point(G, np.array([-1.0, -1.0]), np.zeros(2), norm) is None
    assert nearest_point(np.zeros((1, 2)), np.array([-1.0]), np.zeros(2), norm) is None


# ---------------------------------------------------------------------- targets


def lead(W, b, points, target):
    """How far the best other class is ahead of the target."""
    scores = points @ W.T + b
    return np.delete(scores, target, axis=1).max(axis=1) - scores[:, target]


@pytest.mark.parametrize("norm", NORMS)
def test_maximum_allowable_attack_on_a_target_is_the_strongest_within_the_radius(norm):
    W, b, X, rng = model(8)
    X = X[:3]
    found = linear_maximum_allowable_attack(W, b, X, 0.4, target=2, norm=norm)
    assert (found.distance <= 0.4 * (1 + 1e-6)).all()
    np.testing.assert_allclose(found.margin, lead(W, b, found.X, 2), atol=1e-9)
    for x, margin in zip(X, found.margin, strict=True):
        others = x + 0.4 * random_changes(rng, 4000, 5, norm)
        assert lead(W, b, others, 2).min() >= margin - 1e-6
    # At the radius of the shortest change the target is just reached.
    shortest = linear_minimum_norm_attack(W, b, X, target=2, norm=norm, overshoot=0.0)
    for x, r in zip(X, shortest.distance, strict=True):
        if r > 0:
            there = linear_maximum_allowable_attack(W, b, x, 1.001 * r, target=2, norm=norm)
            before = linear_maximum_allowable_attack(W, b, x, 0.999 * r, target=2, norm=norm)
            assert there.success[0] and not before.success[0]


@pytest.mark.parametrize("norm", NORMS)
def test_regularised_attack_on_a_target_minimises_its_objective(norm):
    W, b, X, rng = model(9)
    strength = 0.4
    found = linear_regularised_attack(W, b, X[:4], strength, target=1, norm=norm)
    for x, moved in zip(X, found.X, strict=False):
        tried = np.concatenate(
            [
                x + 3 * rng.random((3000, 1)) * random_changes(rng, 3000, 5, norm),
                moved + 0.01 * rng.standard_normal((1000, 5)),
            ]
        )

        def objective(points, x=x):
            return 0.5 * lengths(points - x, norm) ** 2 + strength * lead(W, b, points, 1)

        assert objective(tried).min() >= objective(moved[None])[0] - 1e-6


def test_with_two_classes_a_target_is_the_other_class():
    w, x = np.array([1.0, -2.0, 2.0]), np.array([3.0, 0.0, 1.0])
    for attack, value in ((linear_maximum_allowable_attack, 0.7), (linear_regularised_attack, 0.3)):
        free, aimed = attack(w, 1.0, x, value), attack(w, 1.0, x, value, target=0)
        np.testing.assert_allclose(aimed.X, free.X, atol=1e-6)
