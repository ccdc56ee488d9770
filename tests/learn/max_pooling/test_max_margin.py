"""Gradient descent against scikit-learn's support vector machine, and the rate it is said to have."""

import numpy as np
import pytest
from sklearn.svm import SVC

from pindown.datasets.synthetic import pattern_detection
from pindown.learn.max_pooling._max_margin import max_margin_descent
from pindown.learn.max_pooling.layerwise import layerwise_schedule
from pindown.learn.max_pooling.pooling import first_phase, initial_weights, pooled


def features(d, seed, m=160):
    """Pooled features of the second half after the first phase on the first."""
    X, y, _ = pattern_detection(2 * m, n_patterns=d, random_state=seed)
    schedule = layerwise_schedule(d)
    W, a = initial_weights(schedule, d, np.random.default_rng(seed))
    W = first_phase(X[:m], y[:m].astype(float), W, a, schedule)
    return pooled(X[m:], W), y[m:].astype(float), schedule


def svm_direction(Z, y):
    """Hard-margin solution through the origin: points are mirrored, which makes the intercept zero."""
    Z = Z / np.linalg.norm(Z, axis=1).max()
    model = SVC(kernel="linear", C=1e8, tol=1e-8).fit(np.r_[Z, -Z], np.r_[y, -y])
    return model.coef_[0] / np.linalg.norm(model.coef_[0])


@pytest.mark.parametrize("d", [3, 4])
@pytest.mark.parametrize("seed", range(3))
def test_descent_goes_to_the_support_vector_machine(d, seed):
    Z, y, _ = features(d, seed)
    found = max_margin_descent(Z, y, tol=1e-3, max_iter=20_000)
    best = svm_direction(Z, y)
    largest = (y * (Z @ best)).min()
    assert found.separated
    assert found.margin <= largest * (1 + 1e-6) <= found.upper * (1 + 1e-5)
    assert found.margin >= 0.998 * largest
    assert found.weights @ best / np.linalg.norm(found.weights) > 0.999
    assert (y * (Z @ found.weights)).min() == pytest.approx(1.0)


def test_constant_steps_go_there_too():
    Z, y, schedule = features(3, 0)
    best = svm_direction(Z, y)
    angles = []
    for steps in (10, 100, 3000):
        run = max_margin_descent(Z, y, step=schedule.output_step, max_iter=steps, tol=1e-9)
        angles.append(run.weights @ best / np.linalg.norm(run.weights))
    assert angles[0] <= angles[1] + 1e-9
    assert angles[2] >= angles[1] - 1e-9
    assert angles[2] > 0.99


@pytest.mark.parametrize("d", [3, 5])
def test_half_the_margin_after_order_d_steps(d):
    for seed in range(2):
        Z, y, _ = features(d, seed)
        path = []
        max_margin_descent(
            Z, y, tol=1e-3, max_iter=60, watch=lambda t, low, high, p=path: p.append((low, high))
        )
        upper = min(high for _, high in path)
        half = next(t for t, (low, _) in enumerate(path, 1) if low >= upper / 2)
        assert half <= 4 * d * np.log(len(y))


@pytest.mark.parametrize("shape", [(30, 4), (10, 40)])
def test_margin_is_between_the_bounds_on_random_points(shape):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        Z = rng.normal(size=shape)
        w = rng.normal(size=shape[1])
        y = np.sign(Z @ w)
        Z += 0.3 * y[:, None] * w / np.linalg.norm(w)
        found = max_margin_descent(Z, y, max_iter=5000)
        largest = (y * (Z @ svm_direction(Z, y))).min()
        assert found.separated
        assert found.margin <= largest + 1e-6 <= found.upper + 2e-6
        assert found.margin == pytest.approx(
            (y * (Z @ found.weights)).min() / np.linalg.norm(found.weights)
        )


def test_points_that_cannot_be_separated():
    Z = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    found = max_margin_descent(Z, np.array([1.0, -1.0, 1.0]))
    assert not found.separated
    assert np.isfinite(found.weights).all()
    assert "not separated" in str(found)
    assert not max_margin_descent(np.zeros((3, 2)), np.array([1.0, -1.0, 1.0])).separated


def test_steps_lower_the_loss_while_points_are_on_the_wrong_side():
    """Four over the largest squared norm inverts the steepest curvature: no step is too long."""
    rng = np.random.default_rng(0)
    Z, y = rng.normal(size=(60, 2)) + 0.2, np.where(rng.random(60) < 0.5, 1.0, -1.0)
    for scale in (1.0, 30.0):
        losses = [np.log(2)]
        for steps in range(1, 12):
            w = max_margin_descent(scale * Z, y, max_iter=steps).weights
            losses.append(np.logaddexp(0, -y * (scale * Z @ w)).mean())
        assert (np.diff(losses) < 0).all()


@pytest.mark.parametrize("features", [2, 5])
def test_points_that_nearly_cancel_keep_a_bound_above_their_margin(features):
    """More features than points: a length from products of points is a square, and can round to zero."""
    Z = np.zeros((2, features))
    Z[:, 0], Z[1, 1] = (1.0, -1.0), 1e-10
    found = max_margin_descent(Z, np.array([1, 1]), max_iter=50)
    margin = float((Z @ [5e-11, 1.0, *[0.0] * (features - 2)]).min())
    assert found.upper >= margin > 4e-11
