"""One step, the horizon, the risk under adversarial and benign noise, and the gates it can learn."""

import math
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from pindown.learn.gates import (
    GLMTron,
    as_link,
    benign_risk,
    glmtron_excess,
    glmtron_gain,
    glmtron_horizon,
    one_step_bound,
)
from tests.learn.gates.problems import DISTRIBUTIONS, gaussian

LINKS = ["relu", "leaky_relu", "identity", "sigmoid", "tanh", "softplus"]


def unit_ball(rng, n, d):
    X = rng.standard_normal((n, d))
    return X / np.linalg.norm(X, axis=1).max()


def step_once(link, w, X, y, s):
    return w + s * (y - link(X @ w)) @ X / len(X)


def effective_risk(link, w, true, X):
    return float(np.mean((link(X @ w) - link(X @ true)) ** 2))


@pytest.mark.parametrize("name", LINKS)
@pytest.mark.parametrize("share", [0.3, 1.0, 1.9])
def test_one_step(name, share):
    """For any weights, any reference, any labels; steps up to the limit of two over the constant."""
    link = as_link(name)
    s = share / link.lipschitz
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = unit_ball(rng, 15, 3)
        w, reference = rng.standard_normal((2, 3)) * rng.uniform(0.1, 10)
        y = link(X @ reference) + rng.uniform(-1, 1, 15) * rng.choice([0, 0.1, 3])
        noise = float(np.linalg.norm((y - link(X @ reference)) @ X / len(X)))
        distance = float(np.linalg.norm(w - reference))
        bound = one_step_bound(
            distance**2,
            effective_risk(link, w, reference, X),
            noise=noise,
            distance=distance,
            lipschitz=link.lipschitz,
            step=s,
        )
        assert np.linalg.norm(step_once(link, w, X, y, s) - reference) ** 2 <= bound + 1e-9 * (1 + bound)


@pytest.mark.parametrize("name", LINKS)
def test_some_iterate_within_the_horizon_is_good(name):
    link = as_link(name)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = unit_ball(rng, 40, 4)
        true = rng.standard_normal(4) * rng.uniform(0.5, 3)
        theta = rng.choice([0.0, 0.05, 0.3])
        y = link(X @ true) + theta * np.sign(X @ rng.standard_normal(4))  # aligned with a direction
        norm, eps = float(np.linalg.norm(true)), 0.02
        bound = glmtron_excess(eps, noise_bound=theta, norm=norm, lipschitz=link.lipschitz)
        w, best = np.zeros(4), np.inf
        for _ in range(glmtron_horizon(norm, eps) + 1):
            best = min(best, effective_risk(link, w, true, X))
            w = step_once(link, w, X, y, 1.0)
        assert best < bound


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("name", LINKS)
def test_returned_weights_keep_every_bound(distribution, name):
    """Excess of the weights that are returned, chosen by training error; inputs of any size."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, true = distribution(rng, 60, 3), rng.standard_normal(3)
        link, theta = as_link(name), [0.0, 0.1, 0.5][seed % 3]
        y = link(X @ true) + theta * np.where(rng.uniform(size=60) < 0.8, 1, -1)
        model = GLMTron(name, noise_bound=theta, norm_bound=np.linalg.norm(true), eps=0.1).fit(X, y)
        excess = float(np.mean((model.predict(X) - link(X @ true)) ** 2))
        assert excess <= model.excess_bound_ * (1 + 1e-9) + 1e-12
        assert model.loss_curve_.min() <= model.benign_bound_ * (1 + 1e-9) + 1e-12
        assert model.guarantee_.kind == "exact"
        assert model.n_iter_ <= model.horizon_


def test_realizable_labels_are_learned_to_the_weights():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, true = gaussian(rng, 200, 4), rng.standard_normal(4)
        model = GLMTron().fit(X, np.maximum(X @ true, 0))
        np.testing.assert_allclose(model.coef_, true, atol=1e-6)
        assert model.excess_bound_ < 1e-12


def test_noise_that_averages_out_costs_less_than_its_size():
    """With the length of the mean of noise times input the bound is sharper than with the largest."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        X = unit_ball(rng, 50, 5)
        true, theta = rng.standard_normal(5), 0.5
        xi = rng.uniform(-theta, theta, 50)
        eta = float(np.linalg.norm(xi @ X / 50))
        assert eta < theta / 4
        y, norm, eps = np.maximum(X @ true, 0) + xi, float(np.linalg.norm(true)), 0.05
        w, best = np.zeros(5), np.inf
        for _ in range(glmtron_horizon(norm, eps) + 1):
            best = min(best, effective_risk(as_link("relu"), w, true, X))
            w = step_once(as_link("relu"), w, X, y, 1.0)
        assert best < glmtron_excess(eps, noise_bound=eta, norm=norm)


def test_steep_gates_below_two_are_learned_and_others_refused():
    rng = np.random.default_rng(0)
    X = unit_ball(rng, 100, 2)
    true = np.array([1.0, -0.5])

    def steep(slope):
        return lambda u: slope * np.maximum(u, 0)

    model = GLMTron(steep(1.9), lipschitz=1.9).fit(X, steep(1.9)(X @ true))
    np.testing.assert_allclose(model.coef_, true, atol=1e-6)
    with pytest.raises(ValueError, match=r"pass step=0\.4"):
        GLMTron(steep(2.5), lipschitz=2.5).fit(X, steep(2.5)(X @ true))
    slowed = GLMTron(steep(2.5), lipschitz=2.5, step=0.4).fit(X, steep(2.5)(X @ true))
    np.testing.assert_allclose(slowed.coef_, true, atol=1e-6)


def test_above_two_the_plain_step_can_diverge():
    x, true, slope = np.ones((1, 1)), 1.0, 2.5
    link = as_link(lambda u: slope * u, lipschitz=slope)
    w = np.zeros(1)
    for _ in range(50):
        w = step_once(link, w, x, link(x @ np.array([true])), 1.0)
    assert abs(w[0]) > 1e6


def test_faster_step_for_flat_links():
    assert glmtron_gain(0.25, 4.0) == 16.0
    rng = np.random.default_rng(1)
    X = unit_ball(rng, 100, 3)
    y = as_link("sigmoid")(X @ np.array([2.0, -1.0, 1.0]))
    slow, fast = (GLMTron("sigmoid", step=s, max_iter=200).fit(X, y) for s in (1.0, 4.0))
    assert fast.loss_curve_[-1] < slow.loss_curve_[-1]


def test_weights_of_samples_are_repetitions():
    rng = np.random.default_rng(0)
    X, true = gaussian(rng, 30, 3), rng.standard_normal(3)
    y = np.maximum(X @ true, 0) + 0.1 * rng.standard_normal(30)
    k = rng.integers(0, 4, 30)
    weighted = GLMTron(max_iter=300).fit(X, y, sample_weight=k)
    repeated = GLMTron(max_iter=300).fit(np.repeat(X, k, axis=0), np.repeat(y, k))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-8)


def test_validation_chooses_the_iterate():
    rng = np.random.default_rng(0)
    X, true = gaussian(rng, 12, 8), rng.standard_normal(8)
    y = np.maximum(X @ true, 0) + rng.standard_normal(12)
    held = gaussian(rng, 200, 8)
    held_y = np.maximum(held @ true, 0)
    plain = GLMTron(max_iter=2000).fit(X, y)
    early = GLMTron(max_iter=2000).fit(X, y, validation=(held, held_y))
    errors = [np.mean((m.predict(held) - held_y) ** 2) for m in (early, plain)]
    assert errors[0] <= errors[1]
    assert early.best_iter_ < plain.best_iter_
    with pytest.raises(ValueError, match="pair"):
        GLMTron().fit(X, y, validation=held)
    with pytest.raises(ValueError, match="validation must hold"):
        GLMTron().fit(X, y, validation=(held[:, :3], held_y))


def test_networks_of_piecewise_linear_links():
    rng = np.random.default_rng(0)
    X = gaussian(rng, 50, 3)
    for name in ("relu", "leaky_relu", "identity"):
        y = as_link(name)(X @ np.ones(3) + 0.5)
        model = GLMTron(name, fit_intercept=True).fit(X, y)
        assert model.intercept_ == pytest.approx(0.5, abs=1e-4)
        np.testing.assert_allclose(model.network_(X)[:, 0], model.predict(X), atol=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        sigmoid = GLMTron("sigmoid").fit(X, as_link("sigmoid")(X @ np.ones(3)))
    with pytest.raises(AttributeError, match="not piecewise linear"):
        _ = sigmoid.network_


def test_what_the_fit_says_about_its_assumptions():
    rng = np.random.default_rng(0)
    X, true = gaussian(rng, 80, 3), np.array([1.0, 2.0, -1.0])
    y = np.maximum(X @ true, 0)
    far = GLMTron(norm_bound=0.01, eps=1e-4).fit(X, y)
    assert far.guarantee_.kind == "heuristic"  # no gate with so small weights
    other = GLMTron().fit(X, np.abs(X[:, 0]) - 1)
    assert other.guarantee_.kind == "heuristic"  # no gate at all
    falling = GLMTron(lambda u: -np.maximum(u, 0), max_iter=5).fit(X, -np.maximum(X @ true, 0))
    assert falling.guarantee_.assumptions[0].status == "violated"
    wavy = GLMTron(lambda u: 3 * np.maximum(u, 0), max_iter=5).fit(X, 3 * y)
    assert wavy.guarantee_.assumptions[0].status == "violated"
    assert "rests on" in str(wavy.guarantee_)


def test_functions_by_hand():
    assert glmtron_horizon(0.0, 0.1) == 0
    assert glmtron_excess(0.5, noise_bound=0.0, norm=7.0, lipschitz=1.5) == pytest.approx(
        0.5 * 1.5 / 0.5
    )
    assert benign_risk(0.0, 0.3) == pytest.approx(0.3)
    assert math.isinf(GLMTron().fit([[1.0], [2.0]], [1.0, 2.0]).adversarial_bound_)


@pytest.mark.parametrize(
    "bad",
    [{"link": "cubic"}, {"leak": -1, "link": "leaky_relu"}, {"lipschitz": 0, "link": np.tanh},
     {"step": 0}, {"eps": 0}, {"norm_bound": -1}, {"noise_bound": -0.1}, {"max_iter": 0}, {"tol": -1}],
)  # fmt: skip
def test_bad_parameters_are_refused(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        GLMTron(**bad).fit([[1.0], [2.0]], [1.0, 2.0])


def test_a_link_that_changes_shapes_is_refused():
    with pytest.raises(ValueError, match="vectorise"):
        GLMTron(lambda u: 1.0).fit([[1.0], [2.0]], [1.0, 2.0])


def test_an_iterate_chosen_by_validation_has_its_own_training_bound():
    X = np.random.default_rng(11).normal(size=(100, 4))
    y = np.maximum(X @ [1.0, -1.0, 0.5, 2.0], 0)
    model = GLMTron(norm_bound=5.0, max_iter=500).fit(X, y, validation=(X, 0 * y))
    assert model.best_iter_ == 0
    assert np.mean((y - model.predict(X)) ** 2) <= model.benign_bound_
    assert model.adversarial_bound_ < model.benign_bound_  # of the best iterate, which is another


@pytest.mark.parametrize("link", ["softplus", "sigmoid", "tanh", "relu"])
def test_rounding_does_not_make_a_link_steep(link):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.standard_t(3, size=(30, 2)) * 10.0 ** rng.uniform(-12, 2)
        model = GLMTron(link, max_iter=20).fit(X, rng.uniform(0, 1, 30))
        assert model.guarantee_.assumptions[0].status == "checked"
