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


@pytest.mark.parametrize("L", [0.25, 1.0, 1.7])
def test_bounds_are_those_of_the_source(L):
    """The one-step lemma and the theorem, with step one."""
    eta, W, risk, eps = 0.3, 2.5, 0.7, 0.01
    lost = (2 / L - 1) * risk
    noise = eta**2 + 2 * eta * W * (L + 1)
    assert one_step_bound(4.0, risk, noise=eta, distance=W, lipschitz=L) == pytest.approx(
        4.0 - lost + noise
    )
    assert glmtron_excess(eps, noise_bound=eta, norm=W, lipschitz=L) == pytest.approx(
        L / (2 - L) * (eps + noise)
    )
    assert glmtron_horizon(W, eps) == 625 and glmtron_horizon(W, 0.99 * eps) == 632
    # A step s is a step of one for s times the link and the labels.
    for s in (0.4, 1.1):
        assert one_step_bound(4.0, risk, noise=eta, distance=W, lipschitz=L, step=s) == pytest.approx(
            one_step_bound(4.0, s**2 * risk, noise=s * eta, distance=W, lipschitz=s * L)
        )
        assert glmtron_excess(eps, noise_bound=eta, norm=W, lipschitz=L, step=s) == pytest.approx(
            glmtron_excess(eps, noise_bound=s * eta, norm=W, lipschitz=s * L) / s**2
        )


def test_one_step_is_an_equality_without_noise():
    """One input of length one, a straight link: nothing is lost in the lemma."""
    for L, s in ((0.5, 1.0), (1.5, 1.0), (1.0, 0.3)):
        away = 2.0
        after = (1 - s * L) ** 2 * away**2
        bound = one_step_bound(away**2, (L * away) ** 2, noise=0.0, distance=away, lipschitz=L, step=s)
        assert bound == pytest.approx(after)


@pytest.mark.parametrize("name", LINKS)
def test_declared_constants_are_the_steepest_slopes(name):
    link, u = as_link(name, leak=0.3), np.linspace(-8, 8, 4001)
    slopes = np.diff(link(u)) / np.diff(u)
    assert slopes.max() == pytest.approx(link.lipschitz, rel=1e-3) and slopes.min() >= 0
    assert as_link("leaky_relu", leak=3.0).lipschitz == 3.0
    assert not link.is_steeper_than_declared(u)
    lower = as_link(link.function, lipschitz=0.98 * link.lipschitz)
    assert lower.is_steeper_than_declared(u)


def test_bounds_of_a_fit_are_in_the_units_of_the_labels():
    """Inputs of norm 5 and weights of norm 2 are inputs of norm 1 and weights of norm 10."""
    rng = np.random.default_rng(4)
    X = 5 * unit_ball(rng, 40, 3)
    true = 2 * np.array([0.6, 0.8, 0.0])
    y = np.maximum(X @ true, 0)
    model = GLMTron(norm_bound=2.0, noise_bound=0.1, max_iter=50).fit(X, y)
    assert model.scale_ == pytest.approx(5)
    expected = glmtron_excess(100 / 50, noise_bound=0.1, norm=10.0)
    assert model.n_iter_ == 50 and model.adversarial_bound_ == pytest.approx(expected)
    assert GLMTron(norm_bound=2.0, eps=0.5).fit(X, y).horizon_ == 200


def test_labels_that_are_all_raised_touch_the_bound():
    """Every label too high by theta: the fit has no error, the answers are off by theta."""
    X, theta = np.array([[1.0], [2.0], [0.5]]), 0.25
    model = GLMTron("identity", noise_bound=theta, max_iter=3000, fit_intercept=True).fit(
        X, 2 * X[:, 0] + 1 + theta
    )
    excess = float(np.mean((model.predict(X) - 2 * X[:, 0] - 1) ** 2))
    assert excess == pytest.approx(theta**2, rel=1e-6)
    assert excess <= model.excess_bound_ * (1 + 1e-9) and model.excess_bound_ < 1.01 * theta**2


def test_chosen_weights_may_be_off_by_the_noise_twice():
    """Training error chooses among iterates; its choice and the best one differ by 2 theta at most."""
    rng = np.random.default_rng(0)
    X = unit_ball(rng, 30, 2)
    for norm_bound in (0.5, 3.0):
        model = GLMTron(norm_bound=norm_bound, noise_bound=0.2, max_iter=400).fit(
            X, np.maximum(X @ [0.3, 0.2], 0) + 9.0
        )
        root = math.sqrt(model.adversarial_bound_)
        assert model.excess_bound_ == pytest.approx((root + 2 * 0.2) ** 2)
        assert model.benign_bound_ == pytest.approx((root + 0.2) ** 2)
        assert model.loss_curve_.min() > (root + 0.2) ** 2  # so there is no such gate
        assert model.guarantee_.assumptions[1].status == "violated"
