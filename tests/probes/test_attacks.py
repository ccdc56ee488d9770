"""DeepFool and gradient attacks: how far they go, and what they promise."""

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.deadline import Deadline
from pindown.probes import Differentiable, attack, linear_distance
from pindown.relaxation.lp_balls import NORMS, lengths
from pindown.verification import minimum_distance
from pindown.verification.classes import classifier, margin_slopes
from pindown.verification.counterexamples import gradient_attack
from pindown.verification.linearised_boundaries import deepfool
from tests.verification.nets import random_network


@pytest.fixture(scope="module")
def digits():
    from sklearn.datasets import load_digits
    from sklearn.neural_network import MLPClassifier

    X, y = load_digits(return_X_y=True)
    model = MLPClassifier((24,), max_iter=30, random_state=0)
    with pytest.warns(Warning):  # it has not converged, which does not matter here
        model.fit(X / 16, y)
    return ReluNetwork.from_sklearn(model), X[:200] / 16, y[:200]


def test_gradients_are_those_of_finite_differences():
    rng = np.random.default_rng(0)
    net = random_network(rng, [3, 8, 7, 4])
    X, labels = rng.standard_normal((5, 3)), np.array([0, 1, 2, 3, 0])
    slopes = margin_slopes(net, X, labels)
    for i in range(3):
        step = np.zeros(3)
        step[i] = 1e-6
        change = margin_slopes(net, X + step, labels).margin - slopes.margin
        np.testing.assert_allclose(change / 1e-6, slopes.gradient[:, i], atol=1e-4)


@pytest.mark.parametrize("norm", NORMS)
def test_deepfool_is_exact_for_affine_models(norm):
    rng = np.random.default_rng(1)
    W, b, X = rng.standard_normal((4, 6)), rng.standard_normal(4), rng.standard_normal((9, 6))
    found = deepfool(ReluNetwork.from_layers([(W, b)]), X, norm=norm, overshoot=0.0)
    np.testing.assert_allclose(found.distance, linear_distance(W, b, X, norm=norm), rtol=1e-3)
    assert found.success.all() and found.n_gradients == 1


def ellipse(scale, level):
    """The score scale . x^2 - level of two functions of arrays."""
    return Differentiable(lambda X: X**2 @ scale - level, lambda a, X: 2 * a * scale * X)


def test_deepfool_ends_on_the_circle():
    found = attack(ellipse(np.ones(2), 4.0), [[5.0, 1.0]], norm="l2", method="deepfool")
    np.testing.assert_allclose(found.X[0], 2 * np.array([5.0, 1.0]) / np.sqrt(26), atol=1e-6)
    assert found.success[0] and found.distance[0] >= np.sqrt(26) - 2 - 1e-9


def test_deepfool_is_not_the_nearest_point_in_general_and_all_together_find_it():
    """On an ellipse each step projects from where the last one ended."""
    score, start = ellipse(np.array([1.0, 16.0]), 16.0), [[6.0, 1.0]]
    found, best = (attack(score, start, norm="l2", method=m) for m in ("deepfool", "auto"))
    angle = np.linspace(0, 2 * np.pi, 100_001)
    nearest = np.hypot(4 * np.cos(angle) - 6, np.sin(angle) - 1).min()
    assert found.distance[0] > nearest * 1.01
    assert nearest * (1 - 1e-6) <= best.distance[0] <= nearest * 1.002


def test_deepfool_stops_where_the_gradient_vanishes():
    flat = ReluNetwork.from_layers([(np.zeros((2, 2)), [1.0, 0.0])])
    assert not deepfool(flat, np.ones((3, 2))).success.any()


@pytest.mark.parametrize("norm", NORMS)
def test_deepfool_flips_nearly_all_digits(digits, norm):
    net, X, _ = digits
    found = deepfool(net, X, norm=norm)
    assert found.success.mean() > 0.95
    before, after = net(X).argmax(axis=1), net(found.X).argmax(axis=1)
    np.testing.assert_array_equal(found.success, before != after)


@pytest.mark.parametrize("norm", NORMS)
def test_gradient_attack_keeps_its_promises(digits, norm):
    net, X, y = digits
    radius = {"l1": 1.0, "l2": 0.3, "linf": 0.05}[norm]
    found = gradient_attack(net, X, y, radius=radius, norm=norm, box=(0, 1), restarts=2)
    assert (found.distance <= radius * (1 + 1e-12)).all()
    assert found.X.min() >= 0 and found.X.max() <= 1
    np.testing.assert_array_equal(found.success, net(found.X).argmax(axis=1) != y)
    assert (found.margin[found.success] <= 0).all()
    clean = (net(X).argmax(axis=1) != y).mean()
    assert found.success.mean() > clean
    again = gradient_attack(net, X, y, radius=radius, norm=norm, box=(0, 1), restarts=2)
    np.testing.assert_array_equal(found.X, again.X)


@pytest.mark.parametrize("norm", NORMS)
def test_gradient_attack_is_exact_for_affine_models(norm):
    """Two classes: the least margin within the radius has a closed form."""
    rng = np.random.default_rng(2)
    W, b, X = rng.standard_normal((2, 5)), rng.standard_normal(2), rng.standard_normal((12, 5))
    radii = linear_distance(W, b, X, norm=norm) * rng.uniform(0.2, 0.9, 12)
    found = gradient_attack(ReluNetwork.from_layers([(W, b)]), X, radius=radii, norm=norm, steps=100)
    dual = {"l1": np.inf, "l2": 2, "linf": 1}[norm]
    best = np.abs((W[0] - W[1]) @ X.T + b[0] - b[1]) - radii * np.linalg.norm(W[0] - W[1], dual)
    np.testing.assert_allclose(found.margin, best, rtol=2e-2 if norm == "l1" else 1e-9)
    assert not found.success.any()


@pytest.mark.parametrize("norm", NORMS)
def test_margins_of_attacks_are_those_of_the_outputs(norm):
    rng = np.random.default_rng(5)
    net, X = random_network(rng, [4, 9, 3]), rng.standard_normal((20, 4))
    y = net(X).argmax(axis=1)
    for found in (deepfool(net, X, norm=norm), gradient_attack(net, X, radius=0.3, norm=norm)):
        outputs = net(found.X)
        right = outputs[np.arange(20), y]
        outputs[np.arange(20), y] = -np.inf
        np.testing.assert_allclose(found.margin, right - outputs.max(axis=1), atol=1e-12)
        np.testing.assert_allclose(found.distance, lengths(found.X - X, norm))


def test_random_starts_follow_the_seed():
    rng = np.random.default_rng(6)
    net, X = random_network(rng, [4, 9, 3]), rng.standard_normal((20, 4))
    first, again, other = (
        gradient_attack(net, X, radius=0.1, steps=0, restarts=2, seed=seed).X for seed in (1, 1, 2)
    )
    assert np.array_equal(first, again) and not np.array_equal(first, other)


def test_no_attack_is_nearer_than_the_exact_distance():
    rng = np.random.default_rng(3)
    for _ in range(2):
        net, x = random_network(rng, [2, 5, 3]), rng.standard_normal(2)
        for norm in NORMS:
            exact = minimum_distance(net, x, norm, method="cells", box=(x - 5, x + 5))
            fooled = deepfool(net, x, norm=norm)
            assert not fooled.success[0] or fooled.distance[0] >= exact.lower
            radius = 0.99 * min(exact.lower, 5.0)
            assert not gradient_attack(net, x, radius=radius, norm=norm).success[0]


def test_one_output_is_two_classes_by_sign():
    net = ReluNetwork.from_layers([([[1.0, 1.0]], [0])])
    np.testing.assert_array_equal(classifier(net)([[1.0, 2.0]]), [[0.0, 3.0]])
    found = gradient_attack(net, [[1.0, 2.0]], [1], radius=1.6)
    assert found.success[0] and net(found.X)[0, 0] <= 0


def test_attack_after_its_deadline_still_answers():
    rng = np.random.default_rng(0)
    net = random_network(rng, [4, 9, 3])
    found = gradient_attack(net, np.ones((5, 4)), radius=0.1, deadline=Deadline.after(0.0))
    assert np.isfinite(found.margin).all() and found.n_gradients <= 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"radius": -1.0}, "radius"),
        ({"radius": [1.0, 2.0, 3.0]}, "each of 2"),
        ({"radius": np.nan}, "radius"),
        ({"radius": 1.0, "norm": "max"}, "norm must be"),
        ({"radius": 1.0, "y": [0]}, "one class for each"),
        ({"radius": 1.0, "y": [0, 2]}, "classes 0 to 1"),
        ({"radius": 1.0, "y": [0.5, 1]}, "whole numbers"),
        ({"radius": 1.0, "box": (2, 3)}, "outside the box"),
    ],
)
def test_bad_attacks_are_refused(arguments, message):
    net = ReluNetwork.from_layers([(np.eye(2), np.zeros(2))])
    with pytest.raises(ValueError, match=message):
        gradient_attack(net, np.eye(2), **arguments)
