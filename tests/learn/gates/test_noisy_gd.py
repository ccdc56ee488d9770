"""The gradient never points away, plain descent never strays, and noise stays in the promised ball."""

import numpy as np
import pytest
from scipy.stats import chi

from pindown.learn.gates import (
    NoisyGDRegressor,
    best_radius,
    confinement,
    gate_gradient,
    gaussian_tail,
    largest_step,
)
from tests.learn.gates.problems import DISTRIBUTIONS, gaussian, relu_problem


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_the_gradient_never_points_away_from_the_true_weights(distribution):
    for seed in range(100):
        X, y, true = relu_problem(distribution, seed, n=12, d=4)
        w = np.random.default_rng(seed + 1000).standard_normal(4) * 3
        u = X @ w
        least = np.mean(np.where(u >= 0, (y - np.maximum(u, 0)) ** 2, 0))
        assert (w - true) @ gate_gradient(w, X, y) >= least - 1e-9 * (1 + least)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("share", [0.5, 1.0, 2.0])
def test_without_noise_the_distance_never_grows(distribution, share):
    for seed in range(5):
        X, y, true = relu_problem(distribution, seed, n=30, d=4)
        eta = share / np.max(np.sum(X**2, axis=1))
        w = np.random.default_rng(seed).standard_normal(4)
        for _ in range(50):
            before = np.linalg.norm(w - true)
            w = w - eta * gate_gradient(w, X, y)
            assert np.linalg.norm(w - true) <= before + 1e-12


def simulate(X, y, true, start, eta, S1, sigma, n_steps, runs, rng):
    """Largest distance to the true weights on the way, for many runs at once."""
    W = np.tile(start, (runs, 1))
    farthest = np.zeros(runs)
    for _ in range(n_steps):
        U = W @ X.T
        G = -np.where(U >= 0, y - U, 0) @ X / len(X)
        direction = rng.standard_normal(W.shape)
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        W = W - eta * (G + S1 * direction) + np.sqrt(eta) * sigma * rng.standard_normal(W.shape)
        farthest = np.maximum(farthest, np.linalg.norm(W - true, axis=1))
    return farthest


@pytest.mark.parametrize(
    "setting", [(1e-3, 0.1, 0.3), (1e-2, 0.5, 0.1), (5e-3, 0.0, 1.0), (1e-2, 1.0, 0.0)]
)
def test_runs_leave_the_ball_no_more_often_than_promised(setting):
    eta, S1, sigma = setting
    rng, runs, n_steps = np.random.default_rng(0), 500, 100
    X = rng.standard_normal((40, 3))
    X /= np.linalg.norm(X, axis=1).max()
    true, start = rng.standard_normal((2, 3))
    y = np.maximum(X @ true, 0)
    D = float(np.linalg.norm(start - true))
    farthest = simulate(X, y, true, start, eta, S1, sigma, n_steps, runs, rng)
    assert farthest.max() > D * 0.9
    for failure in (0.5, 0.1):
        ball = best_radius(
            failure,
            start_distance=D,
            largest_norm=1.0,
            step=eta,
            n_steps=n_steps,
            gradient_noise=S1,
            deviation=sigma,
            dimension=3,
        )
        assert ball.failure <= failure and np.isfinite(ball.radius)
        assert np.mean(farthest > ball.radius) <= failure + 3 * np.sqrt(failure / runs)


def test_one_step_of_the_stopped_process_is_bounded():
    """The largest change of the supermartingale, inside the ball and with noise cut, is below k."""
    rng, eta, S1, cut, n_steps = np.random.default_rng(0), 0.01, 0.4, 0.8, 50
    X = rng.standard_normal((20, 3))
    X /= np.linalg.norm(X, axis=1).max()
    true = rng.standard_normal(3)
    y = np.maximum(X @ true, 0)
    for v in (0.05, 0.3, 3.0):
        ball = confinement(
            0.5,
            start_distance=0.5,
            largest_norm=1.0,
            step=eta,
            n_steps=n_steps,
            gradient_noise=S1,
            second_moment=v,
            cut=cut,
            tail=0.0,
        )
        drift = 2 * eta**2 * (ball.radius**2 + S1**2) + eta * v
        worst = 0.0
        for _ in range(1500):
            inside, z1, z2 = (u / np.linalg.norm(u) for u in rng.standard_normal((3, 3)))
            w = true + inside * ball.radius * rng.choice([1.0, rng.uniform()])
            z2 = rng.choice([1, -1]) * inside if rng.uniform() < 0.5 else z2
            moved = w - eta * (gate_gradient(w, X, y) + S1 * z1) + np.sqrt(eta) * cut * z2
            change = np.sum((moved - true) ** 2) - np.sum((w - true) ** 2) - drift
            worst = max(worst, abs(change))
        assert ball.difference / 3 < worst <= ball.difference


def test_the_dimension_in_place_of_the_second_moment_is_the_printed_k():
    eta, S1, cut, n, r2 = 1e-3, 0.2, 1.5, 5, None
    ball = confinement(
        1.0,
        start_distance=1.0,
        largest_norm=2.0,
        step=eta,
        n_steps=100,
        gradient_noise=S1,
        second_moment=n,
        cut=cut,
        tail=0.0,
    )
    C, r = 2.0, ball.radius
    r2 = (1 + 1 + 100 * (eta * n + 2 * eta**2 * S1**2)) / (1 - 2 * 100 * eta**2 * C**4)
    k = 2 * np.sqrt(eta) * cut * (r + eta * (C**2 * r + S1))
    k += eta * (2 * S1 * r + n + 2 * C**2 * r**2 + 2 * eta * (C**4 * r**2 + S1**2))
    assert r == pytest.approx(np.sqrt(r2))
    assert ball.difference == pytest.approx(k)


def test_gaussian_tail_is_above_the_true_one():
    for n in (1, 3, 10):
        for sigma in (0.1, 1.0):
            for cut in np.linspace(0.1, 20, 40) * sigma:
                assert chi.sf(cut / sigma, n) <= gaussian_tail(cut, np.full(n, sigma)) + 1e-15
    assert gaussian_tail(1.0, np.zeros(3)) == 0.0


def test_the_fit_finds_the_weights_and_says_where_it_stayed():
    for seed in range(5):
        X, y, true = relu_problem(gaussian, seed, n=200, d=3)
        calm = NoisyGDRegressor().fit(X, y)
        np.testing.assert_allclose(calm.coef_, true, atol=1e-4)
        assert calm.guarantee_.kind == "exact"
        assert np.linalg.norm(true) <= calm.confinement_.radius
        noisy = NoisyGDRegressor(gradient_noise=0.1, weight_noise=0.02, random_state=seed).fit(X, y)
        assert noisy.guarantee_.kind == "probability"
        assert not noisy.confinement_.vacuous
        assert np.linalg.norm(noisy.coef_ - true) <= noisy.confinement_.radius
        assert "stay within" in str(noisy.confinement_)


def test_labels_of_no_gate_are_noticed():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    assert NoisyGDRegressor().fit(X, np.abs(X[:, 0])).guarantee_.kind == "heuristic"
    assert NoisyGDRegressor().fit(X, -np.ones(60)).guarantee_.kind == "heuristic"
    for seed in range(10):
        X, y, _ = relu_problem(gaussian, seed, n=40, d=3)
        for noise in (0.0, 0.05):
            model = NoisyGDRegressor(weight_noise=noise, n_iter=100, random_state=seed).fit(X, y)
            assert model.guarantee_.assumptions[0].status != "violated"


def test_the_fit_follows_the_algorithm_in_the_units_of_the_data():
    X, y, _ = relu_problem(gaussian, 0, n=50, d=3)
    model = NoisyGDRegressor(learning_rate=0.05, n_iter=40).fit(X, y)
    w = np.zeros(3)
    for loss in model.loss_curve_:
        assert loss == pytest.approx(np.mean((y - np.maximum(X @ w, 0)) ** 2), rel=1e-9)
        w = w - 0.05 * gate_gradient(w, X, y)


def test_noise_has_the_size_that_was_asked_for():
    """With inputs of norm 5 the run is in other units inside; the moves must not be."""
    X, rng, eta = 5 * np.eye(4), np.random.default_rng(0), 1e-3
    jittery = NoisyGDRegressor(learning_rate=eta, weight_noise=2.0, n_iter=1).fit(X, np.ones(4))
    moves = np.array([jittery._noise(rng, 4, eta * 25) for _ in range(4000)]) / jittery.scale_
    assert moves.std() == pytest.approx(2.0 * np.sqrt(eta), rel=0.05)
    pushed = NoisyGDRegressor(learning_rate=eta, gradient_noise=3.0, n_iter=1).fit(X, np.ones(4))
    lengths = [np.linalg.norm(pushed._noise(rng, 4, eta * 25)) / pushed.scale_ for _ in range(5)]
    np.testing.assert_allclose(lengths, 3.0 * eta)


def test_steps_too_long_promise_nothing():
    X, y, _ = relu_problem(gaussian, 0)
    C = np.linalg.norm(X, axis=1).max()
    model = NoisyGDRegressor(learning_rate=2 * largest_step(C, 1000), weight_noise=0.1).fit(X, y)
    assert model.confinement_.vacuous
    assert model.guarantee_.kind == "heuristic"
    with pytest.raises(ValueError, match="step must be below"):
        confinement(
            1,
            start_distance=1,
            largest_norm=1,
            step=1,
            n_steps=9,
            gradient_noise=0,
            second_moment=0,
            cut=0,
            tail=0,
        )


@pytest.mark.parametrize(
    "bad",
    [{"learning_rate": 0}, {"gradient_noise": -1}, {"weight_noise": np.nan}, {"n_iter": 0},
     {"failure": 1}, {"norm_bound": -1}, {"start": [1.0]}],
)  # fmt: skip
def test_bad_parameters_are_refused(bad):
    X, y, _ = relu_problem(gaussian, 0)
    with pytest.raises(ValueError, match=next(iter(bad))):
        NoisyGDRegressor(**bad).fit(X, y)


def test_a_bound_given_by_hand_is_assumed_and_can_be_refuted():
    X = np.random.default_rng(0).normal(size=(80, 3))
    y = np.maximum(X @ [1.0, -2.0, 0.5], 0)
    good = NoisyGDRegressor(norm_bound=3.0).fit(X, y).guarantee_
    assert good.assumptions[2].status == "assumed" and good.kind == "exact"
    assert NoisyGDRegressor(norm_bound=1e-6).fit(X, y).guarantee_.kind == "heuristic"


def test_constants_of_the_confinement_are_those_of_the_source():
    for cut, variances in ((3.0, [1.0, 0.25]), (9.0, [4.0])):
        total = sum(variances)
        printed = 4 * np.exp(-(cut**2) / (8 * total))
        assert gaussian_tail(cut, np.sqrt(variances)) == pytest.approx(min(1, printed))
    C, T = 1.5, 40
    assert 1 - 2 * T * largest_step(C, T) ** 2 * C**4 == pytest.approx(0)
    known = {"start_distance": 1.0, "largest_norm": C, "step": largest_step(C, T) / 9, "n_steps": T,
             "gradient_noise": 0.1, "second_moment": 0.2, "cut": 0.3}  # fmt: skip
    pushed = {**known, "gradient_noise": 3.0}
    squared = confinement(2.0, **pushed, tail=0.0).radius ** 2
    eta = pushed["step"]
    expected = 2 + 1 + T * (eta * 0.2 + 2 * eta**2 * 9)
    assert squared * (1 - 2 * T * eta**2 * C**4) == pytest.approx(expected, rel=1e-12)
    once, all_steps = (confinement(30.0, **known, tail=1e-4, variant=v) for v in ("sharp", "corrected"))
    azuma = np.exp(-(30.0**2) / (2 * T * once.difference**2))
    assert 1e-8 < azuma < 1e-2
    assert once.failure == pytest.approx(T * 1e-4 + azuma)
    assert all_steps.failure == pytest.approx(T * (1e-4 + azuma))


def test_the_best_radius_is_the_least_over_slack_and_cut():
    known = {"start_distance": 1.0, "largest_norm": 1.0, "step": 2e-3, "n_steps": 100,
             "gradient_noise": 0.3}  # fmt: skip
    found = best_radius(0.1, **known, deviation=2.0, dimension=3)
    radii = []
    for share in np.geomspace(1e-3, 0.9, 20):
        tail = 0.1 * share / 100
        cut = 2.0 * chi.isf(tail, 3)
        for slack in np.geomspace(100, 1000, 300):
            ball = confinement(slack, **known, second_moment=3 * 2.0**2, cut=cut, tail=tail)
            if ball.failure <= 0.1:
                radii.append(ball.radius)
                break
    assert found.failure <= 0.1
    grown = found.slack + 1 + 100 * (2e-3 * 3 * 2.0**2 + 2 * 2e-3**2 * 0.3**2)
    assert found.radius**2 * (1 - 200 * 2e-3**2) == pytest.approx(grown, rel=1e-12)
    assert min(radii) * 0.98 <= found.radius <= min(radii) * 1.01


def test_the_ball_of_a_fit_is_that_of_its_data():
    X, y, _ = relu_problem(gaussian, 1, n=60, d=3)
    rate = 0.1 * largest_step(np.linalg.norm(X, axis=1).max(), 50)
    model = NoisyGDRegressor(
        learning_rate=rate, gradient_noise=0.2, weight_noise=0.3, n_iter=50, norm_bound=2.0
    ).fit(X, y)
    R = np.linalg.norm(X, axis=1).max()
    same = best_radius(
        0.05, start_distance=2.0 * R, largest_norm=1.0, step=rate * R**2, n_steps=50,
        gradient_noise=0.2 / R, deviation=0.3, dimension=3,
    )  # fmt: skip
    assert model.confinement_.radius == pytest.approx(same.radius / R)
    calm = NoisyGDRegressor(norm_bound=2.0, n_iter=50).fit(X, y)
    assert calm.confinement_.radius == pytest.approx(2.0)
    assert calm.learning_rate_ == pytest.approx(1 / R**2)
    for rate, kind in ((1.99 / R**2, "exact"), (2.01 / R**2, "heuristic")):
        found = NoisyGDRegressor(norm_bound=2.0, n_iter=50, learning_rate=rate).fit(X, y)
        assert found.guarantee_.kind == kind


def test_another_seed_is_another_run():
    X, y, _ = relu_problem(gaussian, 1, n=60, d=3)
    runs = [
        NoisyGDRegressor(weight_noise=0.1, n_iter=20, random_state=seed).fit(X, y).loss_curve_
        for seed in (0, 0, 1)
    ]
    assert np.array_equal(runs[0], runs[1]) and not np.array_equal(runs[0], runs[2])


def test_the_gradient_is_the_slope_of_half_the_mean_square():
    X, y, _ = relu_problem(gaussian, 3, n=15, d=3)
    w = np.random.default_rng(1).standard_normal(3)

    def loss(v):
        return np.mean((y - np.maximum(X @ v, 0)) ** 2) / 2

    slopes = [(loss(w + e) - loss(w - e)) / 2e-6 for e in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(gate_gradient(w, X, y), slopes, atol=1e-8)


def test_the_best_iterate_is_kept():
    X, y, _ = relu_problem(gaussian, 4, n=60, d=3)
    model = NoisyGDRegressor(weight_noise=0.5, n_iter=60, random_state=2).fit(X, y)
    assert 0 < model.best_iter_ == model.loss_curve_.argmin() < 60
    assert np.mean((model.predict(X) - y) ** 2) == pytest.approx(model.loss_curve_.min())


def test_a_negative_label_is_no_gates():
    X, y, true = relu_problem(gaussian, 5, n=60, d=3)
    y[np.argmin(X @ true)] = -1.0  # where the gate is off: the descent does not feel it
    found = NoisyGDRegressor().fit(X, y).guarantee_
    assert found.assumptions[0].status == "violated"
    assert [a.status for a in found.assumptions[1:]] == ["checked", "checked"]
