"""DeepFool and gradient attacks, and random noise beside them."""

import numpy as np
import pytest
from scipy.stats import norm as normal

from pindown import ReluNetwork
from pindown.deadline import Deadline
from pindown.probes import (
    deepfool,
    deepfool_binary,
    gradient_attack,
    linear_distance,
    mean_noise_probability,
    noise_flip_probability,
    noise_tail_bound,
    noise_versus_adversarial,
)
from pindown.relaxation.lp_balls import NORMS, lengths
from pindown.verification import minimum_distance
from pindown.verification.classes import classifier, margin_slopes
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


def test_deepfool_ends_on_the_circle():
    found = deepfool_binary(lambda x: x @ x - 4, lambda x: 2 * x, [5.0, 1.0])
    start = np.array([5.0, 1.0])
    nearest = 2 * start / np.sqrt(26)
    np.testing.assert_allclose(found.X[0], start + 1.02 * (nearest - start), atol=1e-6)
    assert found.success[0] and found.distance[0] >= np.sqrt(26) - 2


def test_deepfool_is_not_the_nearest_point_in_general():
    """On an ellipse each step projects from where the last one ended."""
    scale = np.array([1.0, 16.0])
    found = deepfool_binary(
        lambda x: scale @ x**2 - 16, lambda x: 2 * scale * x, [6.0, 1.0], overshoot=0.0
    )
    angle = np.linspace(0, 2 * np.pi, 100_001)
    nearest = np.hypot(4 * np.cos(angle) - 6, np.sin(angle) - 1).min()
    assert abs(scale @ found.X[0] ** 2 - 16) < 1e-6
    assert found.distance[0] > nearest * 1.01


def test_deepfool_stops_where_the_gradient_vanishes():
    found = deepfool_binary(lambda x: 1.0, lambda x: np.zeros(2), [1.0, 1.0])
    assert not found.success[0] and found.n_gradients == 1
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


# ---------------------------------------------------------------------- noise


def test_mean_of_noise_exceeds_a_number_as_often_as_said():
    rng = np.random.default_rng(0)
    for d, eps in ((1, 0.5), (10, 0.3), (100, 0.1)):
        p = mean_noise_probability(d, eps)
        hits = (rng.standard_normal((20_000, d)).mean(axis=1) > eps).mean()
        assert abs(hits - p) <= 4 * np.sqrt(p * (1 - p) / 20_000)
    assert mean_noise_probability(100, 0.1) == pytest.approx(0.1587, abs=1e-4)


def test_tail_bound_is_above_the_probability():
    for d in (1, 10, 100):
        w = np.linspace(0.5, 2, d)
        for eps in (0.01, 0.1, 0.5, 2.0):
            truth = normal.sf(eps * d / np.linalg.norm(w))
            assert truth <= noise_tail_bound(w, eps) <= 0.5
    assert noise_tail_bound(np.zeros(3), 0.1) == 0.0


def test_tail_bound_is_near_the_probability_far_out():
    """Mills: the tail is at least 1 - 1 / t^2 of the bound."""
    for d, eps in ((1, 3.0), (10, 1.5), (100, 1.0)):
        w = np.linspace(0.5, 2, d)
        t = eps * d / np.linalg.norm(w)
        assert normal.sf(t) >= noise_tail_bound(w, eps) * (1 - 1 / t**2)


def test_printed_claim_that_a_positive_product_gets_rare_is_false():
    """P(w . r > 0) is one half in any dimension; what shrinks is the chance of a mean above eps."""
    rng = np.random.default_rng(1)
    shares = [(rng.standard_normal((20_000, d)) @ np.ones(d) > 0).mean() for d in (1, 30, 300)]
    assert all(abs(share - 0.5) < 4 * 0.5 / np.sqrt(20_000) for share in shares)
    assert mean_noise_probability(300, 0.1) < mean_noise_probability(30, 0.1) < 0.5


def test_printed_scale_of_the_mean_is_a_standard_deviation_not_a_variance():
    """Y = w . r / d has variance (|w| / d)^2, so sigma in N(mu, sigma) is not |w|^2 / d^2."""
    rng = np.random.default_rng(2)
    w = np.full(50, 2.0)
    sample = rng.standard_normal((20_000, 50)) @ w / 50
    assert sample.std() == pytest.approx(np.linalg.norm(w) / 50, rel=0.03)
    assert abs(sample.std() - np.linalg.norm(w) ** 2 / 50**2) > 0.1
    # Our tail takes the first as the standard deviation and holds; with the second it would not.
    happens, printed = (sample >= 0.4).mean(), np.linalg.norm(w) ** 2 / 50**2
    assert happens <= noise_tail_bound(w, 0.4) < 2 * happens
    assert np.exp(-(0.4**2) / (2 * printed**2)) * printed / (0.4 * np.sqrt(2 * np.pi)) < happens / 100


@pytest.mark.parametrize("probability", [0.05, 0.2])
def test_noise_flips_as_often_as_said_and_is_root_d_longer(probability):
    rng = np.random.default_rng(3)
    w, x = rng.standard_normal(64), rng.standard_normal(64)
    found = noise_versus_adversarial(w, 0.5, x, probability)
    noise = found.sigma * rng.standard_normal((20_000, 64))
    before = w @ x + 0.5 > 0
    flips = (((x + noise) @ w + 0.5 > 0) != before).mean()
    assert abs(flips - probability) <= 4 * np.sqrt(probability * (1 - probability) / 20_000)
    assert lengths(noise, "l2").mean() == pytest.approx(found.noise_norm, rel=0.05)
    assert found.noise_norm == pytest.approx(8 * found.margin / -normal.ppf(probability))
    assert noise_flip_probability(found.margin, found.sigma) == pytest.approx(probability)
    assert "shorter" in str(found)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: noise_flip_probability(-1.0, 1.0), "margins"),
        (lambda: noise_flip_probability(1.0, 0.0), "sigma"),
        (lambda: noise_tail_bound([1.0], 0.0), "eps"),
        (lambda: noise_tail_bound([np.inf], 1.0), "finite"),
        (lambda: noise_versus_adversarial([1.0], 0.0, [1.0], 0.6), "probability"),
        (lambda: mean_noise_probability(0, 1.0), "d must"),
    ],
)
def test_bad_noise_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
