"""Distance to the true weights against the theorem's curve, corruption, streams, constants."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from pindown.learn.gates import ModifiedSGDRegressor, gate_moments, start_distance_bound
from pindown.learn.gates.modified_sgd_bounds import ErrorRecursion
from tests.learn.gates.problems import DISTRIBUTIONS, gaussian, relu_problem

CORRUPTIONS = {
    "random signs": lambda rng, X, w: rng.choice([-1.0, 1.0], len(X)),
    "always up": lambda rng, X, w: np.ones(len(X)),
    "away from the weights": lambda rng, X, w: np.sign(X @ np.roll(w, 1)),
}


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("variant", ["sharp", "as_printed"])
def test_weights_are_found_as_often_as_promised(distribution, variant):
    eps, delta, runs, found = 0.05, 0.2, 60, 0
    for seed in range(runs):
        X, y, w = relu_problem(distribution, seed)
        model = ModifiedSGDRegressor(eps=eps, delta=delta, variant=variant, random_state=seed).fit(X, y)
        found += np.linalg.norm(model.coef_ - w) <= eps
        assert model.guarantee_.kind == "probability"
        assert model.error_bound_ <= eps * (1 + 1e-9)
    assert found >= (1 - delta) * runs


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("variant", ["sharp", "as_printed"])
def test_mean_squared_error_stays_under_the_curve(distribution, variant):
    X, y, w = relu_problem(distribution, 7, n=120)
    moments = gate_moments(X, y)
    c1 = moments.sharp_fourth_moment if variant == "sharp" else moments.fourth_moment
    eta, rho = moments.smallest_eigenvalue / c1, 1 - moments.smallest_eigenvalue**2 / c1
    rng, runs = np.random.default_rng(0), 2000
    W = np.zeros((runs, X.shape[1]))
    for t in range(1, 200):
        rows = rng.integers(len(X), size=runs)
        residual = np.where(y[rows] > 0, y[rows] - np.einsum("ij,ij->i", X[rows], W), 0)
        W += eta * residual[:, None] * X[rows]
        errors = ((W - w) ** 2).sum(axis=1)
        assert errors.mean() <= rho**t * w @ w + 3 * errors.std() / np.sqrt(runs)


@pytest.mark.parametrize("name", CORRUPTIONS)
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_corrupted_labels_cost_what_the_recursion_says(name, distribution):
    delta, theta, runs, kept = 0.2, 0.1, 20, 0
    for seed in range(runs):
        X, y, w = relu_problem(distribution, seed)
        y = y + theta * CORRUPTIONS[name](np.random.default_rng(seed), X, w)
        model = ModifiedSGDRegressor(delta=delta, noise_bound=theta, random_state=seed).fit(X, y)
        kept += np.linalg.norm(model.coef_ - w) <= model.error_bound_
        assert model.guarantee_.kind == "probability"
        assert model.error_bound_ < 3 * np.linalg.norm(w) + 1
    assert kept >= (1 - delta) * runs


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_mean_squared_error_under_corruption_stays_under_its_curve(name):
    X, y, w = relu_problem(gaussian, 3, n=150)
    theta, rng, runs = 0.3, np.random.default_rng(0), 2000
    y = y + theta * CORRUPTIONS[name](rng, X, w)
    moments = gate_moments(X, y, threshold=theta)
    lam, kappa = moments.smallest_eigenvalue, moments.sharp_fourth_moment
    worst = ErrorRecursion.of(moments, lam / kappa, lam, kappa, theta)
    W, bound = np.zeros((runs, X.shape[1])), float(w @ w)
    for t in range(1, 301):
        rows = rng.integers(len(X), size=runs)
        residual = np.where(y[rows] > theta, y[rows] - np.einsum("ij,ij->i", X[rows], W), 0)
        W += worst.step * residual[:, None] * X[rows]
        bound = worst(bound)
        errors = ((W - w) ** 2).sum(axis=1)
        assert errors.mean() <= bound + 3 * errors.std() / np.sqrt(runs)
        assert bound <= worst.after(float(w @ w), t) * (1 + 1e-12)
    assert worst(worst.floor) == pytest.approx(worst.floor, rel=1e-9)


def test_the_recursion_is_increasing_and_concave():
    X, y, _ = relu_problem(gaussian, 0)
    moments = gate_moments(X, y, threshold=0.2)
    lam, kappa = moments.smallest_eigenvalue, moments.sharp_fourth_moment
    worst = ErrorRecursion.of(moments, lam / kappa, lam, kappa, 0.2)
    values = np.array([worst(s) for s in np.linspace(0, 5, 2001)])
    assert np.all(np.diff(values) > 0)
    assert np.all(np.diff(values, 2) <= 1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_without_the_threshold_corruption_reaches_the_wrong_side(seed):
    """Labels above zero but below the corruption may sit where the gate is flat."""
    X, y, w = relu_problem(gaussian, seed)
    theta = 0.5
    corrupted = y + theta
    wrong_side = (X @ w < 0) & (corrupted > 0)
    assert wrong_side.any()
    assert not np.any((X @ w < 0) & (corrupted > theta + 1e-12))


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_start_distance_is_bounded_by_the_data(distribution):
    for seed in range(20):
        X, y, w = relu_problem(distribution, seed)
        rng = np.random.default_rng(seed)
        theta = 0.2
        y = y + theta * rng.uniform(-1, 1, len(y))
        start = rng.standard_normal(len(w))
        bound = start_distance_bound(X, y, start, gate_moments(X, y, threshold=theta), noise_bound=theta)
        assert np.linalg.norm(start - w) <= bound


def test_moments_of_a_standard_normal():
    rng = np.random.default_rng(0)
    d, n = 5, 200_000
    X = rng.standard_normal((n, d))
    moments = gate_moments(X, np.maximum(X[:, 0], 0))
    assert moments.smallest_eigenvalue == pytest.approx(0.5, abs=0.01)
    assert moments.fourth_moment == pytest.approx(d * (d + 2) / 2, abs=4 * moments.fourth_moment_error)
    assert moments.sharp_fourth_moment == pytest.approx((d + 2) / 2, rel=0.03)
    assert moments.fourth_moment >= d**2 * moments.smallest_eigenvalue**2
    assert moments.sharp_fourth_moment >= moments.smallest_eigenvalue**2


def test_the_sharp_constant_saves_about_the_dimension():
    X, y, w = relu_problem(gaussian, 0, n=2000, d=12)
    slow, fast = (ModifiedSGDRegressor(variant=g).fit(X, y) for g in ("as_printed", "sharp"))
    assert 6 < slow.horizon_ / fast.horizon_ < 14
    for model in (slow, fast):
        assert np.linalg.norm(model.coef_ - w) <= model.eps


def test_a_stream_is_read_once_and_found():
    rng = np.random.default_rng(0)
    w, d = np.array([1.0, -2.0, 0.5]), 3
    given = ModifiedSGDRegressor(
        eps=0.01, smallest_eigenvalue=0.5, fourth_moment=d * (d + 2) / 2, norm_bound=3
    )
    learned = ModifiedSGDRegressor(eps=0.01)
    for _ in range(40):
        X = rng.standard_normal((50, d))
        y = np.maximum(X @ w, 0)
        given.partial_fit(X, y)
        learned.partial_fit(X, y)
    assert given.guarantee_.kind == "probability"
    assert given.guarantee_.assumptions[2].status == "assumed"
    assert learned.guarantee_.kind == "estimate"
    for model in (given, learned):
        assert model.n_iter_ == 2000
        assert np.linalg.norm(model.coef_ - w) <= model.error_bound_
    assert given.learning_rate_ == pytest.approx(1 / (d * (d + 2)))
    assert given.contraction_ == pytest.approx(1 - 1 / (2 * d * (d + 2)))


def test_a_stream_of_single_samples_is_found():
    rng, found, runs = np.random.default_rng(0), 0, 5
    for _ in range(runs):
        w = rng.standard_normal(3)
        model = ModifiedSGDRegressor(delta=0.2, pilot_size=60)
        for _ in range(600):
            x = rng.standard_normal((1, 3)) * 7
            model.partial_fit(x, np.maximum(x @ w, 0))
        assert model.guarantee_.kind == "estimate"
        assert np.isfinite(model.error_bound_)
        found += np.linalg.norm(model.coef_ - w) <= model.error_bound_
    assert found >= 0.8 * runs


def test_a_first_sample_promises_nothing_yet():
    model = ModifiedSGDRegressor().partial_fit([[1.0, 2.0]], [3.0])
    assert model.guarantee_.vacuous and model.guarantee_.kind == "heuristic"
    assert model.n_iter_ == 1


def test_a_stream_can_follow_a_fit():
    X, y, w = relu_problem(gaussian, 0)
    model = ModifiedSGDRegressor(eps=0.5).fit(X, y)
    before, steps = model.error_bound_, model.n_iter_
    for _ in range(5):
        model.partial_fit(X, y)
    assert model.n_iter_ == steps + 5 * len(X)
    assert np.linalg.norm(model.coef_ - w) <= model.error_bound_ < before


def test_streams_of_known_constants_succeed_as_often_as_promised():
    eps, delta, d, runs, found = 0.05, 0.1, 5, 200, 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        w = rng.standard_normal(d)
        w /= np.linalg.norm(w)
        model = ModifiedSGDRegressor(
            eps=eps, delta=delta, smallest_eigenvalue=0.5, fourth_moment=d * (d + 2) / 2, norm_bound=1
        )
        X = rng.standard_normal((560, d))
        model.partial_fit(X[:1], np.maximum(X[:1] @ w, 0))
        assert 540 <= model.horizon_ <= 600
        X = rng.standard_normal((model.horizon_ - 1, d))
        model.partial_fit(X, np.maximum(X @ w, 0))
        assert model.error_bound_ <= eps * (1 + 1e-9)
        found += np.linalg.norm(model.coef_ - w) <= eps
    assert found >= (1 - delta) * runs


def test_intercept_start_and_network():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 2))
    y = np.maximum(X @ [1.0, -1.0] + 0.7, 0)
    model = ModifiedSGDRegressor(fit_intercept=True, eps=1e-3, start=[5, 5, 5]).fit(X, y)
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), [1, -1, 0.7], atol=1e-3)
    np.testing.assert_allclose(model.network_(X)[:, 0], model.predict(X), atol=1e-12)
    assert model.network_.widths == (2, 1, 1) or model.network_.size == 1


def test_labels_of_no_gate_are_noticed():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    model = ModifiedSGDRegressor().fit(X, np.abs(X[:, 0]))
    assert model.guarantee_.kind == "heuristic"
    assert "violated" in str(model.guarantee_)


def test_directions_that_no_label_shows_are_noticed():
    X, y, _ = relu_problem(gaussian, 0, n=5, d=8)
    model = ModifiedSGDRegressor(max_iter=500).fit(X, y)
    assert model.guarantee_.vacuous
    assert model.guarantee_.kind == "heuristic"
    silent = ModifiedSGDRegressor().fit(X, -np.ones(5))
    assert silent.n_iter_ == 0
    assert not silent.coef_.any()


def test_nearly_dependent_inputs_need_forever_and_say_so():
    X, _, _ = relu_problem(gaussian, 0)
    X[:, 3] = X[:, 2] + 1e-5 * X[:, 3]
    with pytest.warns(ConvergenceWarning, match="steps are needed"):
        model = ModifiedSGDRegressor(max_iter=1000).fit(X, np.maximum(X @ np.ones(4), 0))
    assert model.horizon_ > 10**15
    assert np.linalg.norm(model.coef_ - 1) <= model.error_bound_


def test_too_few_steps_are_said():
    X, y, w = relu_problem(gaussian, 0)
    with pytest.warns(ConvergenceWarning, match="steps are needed"):
        model = ModifiedSGDRegressor(max_iter=10).fit(X, y)
    assert np.linalg.norm(model.coef_ - w) <= model.error_bound_


@pytest.mark.parametrize("factor", [1e-60, 1e-3, 1e4, 1e60])
def test_units_do_not_matter(factor):
    X, y, _ = relu_problem(gaussian, 1)
    plain = ModifiedSGDRegressor(eps=0.05, norm_bound=3.0).fit(X, y)
    scaled = ModifiedSGDRegressor(eps=0.05 / factor, norm_bound=3.0 / factor).fit(factor * X, y)
    np.testing.assert_allclose(scaled.coef_ * factor, plain.coef_, rtol=1e-6)
    assert scaled.n_iter_ == plain.n_iter_


@pytest.mark.parametrize(
    "bad",
    [{"eps": 0}, {"delta": 1}, {"noise_bound": -1}, {"norm_bound": np.inf}, {"variant": "fast"},
     {"max_iter": 0}, {"smallest_eigenvalue": 0}, {"fourth_moment": "x"}, {"start": [1.0]},
     {"start": [np.nan] * 4}],
)  # fmt: skip
def test_bad_parameters_are_refused(bad):
    X, y, _ = relu_problem(gaussian, 0)
    with pytest.raises(ValueError, match=next(iter(bad))):
        ModifiedSGDRegressor(**bad).fit(X, y)


def test_long_streams_promise_no_more_than_floats_hold():
    fails = 0
    for seed in range(20):
        rng = np.random.default_rng(seed + 77)
        w, model = rng.normal(size=3), ModifiedSGDRegressor(eps=0.1, delta=0.1)
        for _ in range(30):
            X = rng.normal(size=(100, 3))
            model.partial_fit(X, np.maximum(X @ w, 0))
        assert model.error_bound_ < 1e-10
        fails += np.linalg.norm(model.coef_ - w) > model.error_bound_
    assert fails <= 2


def test_small_noise_is_no_checked_gate():
    rng = np.random.default_rng(11)
    X = rng.normal(size=(200, 3))
    y = np.maximum(X @ [1.0, -2.0, 0.5], 0)
    clean = ModifiedSGDRegressor(eps=1e-12).fit(X, y)
    assert clean.guarantee_.assumptions[1].status == "checked"
    noisy = ModifiedSGDRegressor(eps=0.5).fit(X, y + 0.05 * rng.normal(size=200))
    assert noisy.guarantee_.assumptions[1].status != "checked"  # no gate gives these labels


@pytest.mark.parametrize("c", [0.8, 1.7])
def test_the_recursion_is_an_equality_for_one_input(c):
    """Half of the labels are used, all of them raised by theta: the mean square follows exactly."""
    theta, eta, share = 0.2, 0.3 / c**2, 0.5
    X = np.array([[c], [-c]])
    moments = gate_moments(X, np.array([2 * c + theta, 0.0]), threshold=theta)
    assert moments.smallest_eigenvalue == pytest.approx(share * c**2) == moments.second_moment
    assert moments.fourth_moment == pytest.approx(share * c**4) == moments.sharp_fourth_moment
    worst = ErrorRecursion.of(moments, eta, share * c**2, share * c**4, theta)
    assert worst.contraction == pytest.approx(1 - share + share * (1 - eta * c**2) ** 2)
    for e in (0.5, 1.0, 4.0):
        after = (1 - share) * e**2 + share * ((1 - eta * c**2) * e + eta * c * theta) ** 2
        assert worst(e**2) == pytest.approx(after)
    assert worst.floor == pytest.approx((theta / c) ** 2)  # there the error is what noise explains
    h = 1e-6
    slope = (worst(worst.floor + h) - worst(worst.floor)) / h
    assert worst.rate == pytest.approx(slope, rel=1e-4)
    steps = worst.steps_to(9.0, 0.5)
    assert worst.after(9.0, int(np.ceil(steps))) <= 0.5 < worst.after(9.0, int(steps))


def test_without_noise_the_recursion_is_geometric():
    X, y, _ = relu_problem(gaussian, 2)
    moments = gate_moments(X, y)
    lam, kappa = moments.smallest_eigenvalue, moments.sharp_fourth_moment
    calm = ErrorRecursion.of(moments, lam / kappa, lam, kappa, 0.0)
    assert calm.contraction == pytest.approx(1 - lam**2 / kappa)
    assert calm.after(3.0, 7) == pytest.approx(3 * (1 - lam**2 / kappa) ** 7)
    assert calm.floor == 0 and calm(2.0) == pytest.approx(2 * calm.contraction)


def test_moments_by_loops():
    rng = np.random.default_rng(3)
    X, y, theta = rng.normal(size=(40, 3)), rng.normal(size=40), 0.3
    found = gate_moments(X, y, threshold=theta)
    used = [x for x, label in zip(X, y, strict=True) if label > theta]
    n = len(X)
    assert found.share == len(used) / n
    assert found.second_moment == pytest.approx(sum(x @ x for x in used) / n)
    assert found.fourth_moment == pytest.approx(sum((x @ x) ** 2 for x in used) / n)
    weighted = sum((x @ x) * np.outer(x, x) for x in used) / n
    assert found.sharp_fourth_moment == pytest.approx(np.linalg.norm(weighted, 2))
    values, vectors = np.linalg.eigh(sum(np.outer(x, x) for x in used) / n)
    assert found.smallest_eigenvalue == pytest.approx(values[0])
    along = [(x @ vectors[:, 0]) ** 2 * (label > theta) for x, label in zip(X, y, strict=True)]
    fourth = [(x @ x) ** 2 * (label > theta) for x, label in zip(X, y, strict=True)]
    assert found.eigenvalue_error == pytest.approx(np.std(along) / np.sqrt(n))
    assert found.fourth_moment_error == pytest.approx(np.std(fourth) / np.sqrt(n))


def test_start_distance_is_reached():
    """Inputs in all directions alike: the pull is the distance; labels lowered by theta cost it all."""
    X = np.vstack([2 * np.eye(3), -2 * np.eye(3)])
    w, start = np.array([3.0, 4.0, 2.0]), np.array([-1.0, 0.5, 0.0])
    y = np.maximum(X @ w, 0)
    bound = start_distance_bound(X, y, start, gate_moments(X, y))
    assert bound == pytest.approx(np.linalg.norm(w - start))
    theta, X = 0.5, np.full((4, 1), 2.0)
    y = np.full(4, 6.0 - theta)
    moments = gate_moments(X, y, threshold=theta)
    assert start_distance_bound(X, y, np.zeros(1), moments, noise_bound=theta) == pytest.approx(3.0)


def test_horizon_and_bound_are_those_of_the_theorem():
    """Normal inputs: lambda = 1/2 and E = d(d + 2)/2, so rho = 1 - 1/(2 d (d + 2))."""
    d, eps, delta, reach, rng = 3, 0.1, 0.2, 2.0, np.random.default_rng(0)
    model = ModifiedSGDRegressor(
        eps=eps, delta=delta, norm_bound=reach,
        smallest_eigenvalue=0.5, fourth_moment=d * (d + 2) / 2,
    )  # fmt: skip
    X = rng.standard_normal((40, d))
    model.partial_fit(X, np.maximum(X @ [1.0, 1.0, 0.5], 0))
    rho = 1 - 1 / (2 * d * (d + 2))
    steps = np.log(reach**2 / (eps**2 * delta)) / -np.log(rho)
    assert model.horizon_ == np.ceil(steps)
    assert model.error_bound_ == pytest.approx(np.sqrt(rho**40 * reach**2 / delta), rel=1e-9)


def test_labels_below_the_noise_are_not_used():
    X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    y = np.array([0.9, 2.0, 3.0])
    model = ModifiedSGDRegressor(noise_bound=1.0, start=[5.0, 5.0], pilot_size=1).partial_fit(X, y)
    w, step = np.array([5.0, 5.0]), model.learning_rate_
    for x, label in list(zip(X, y, strict=True))[1:]:
        w = w + step * (label - x @ w) * x
    assert model.coef_ == pytest.approx(w)


def test_longer_inputs_in_a_stream_do_not_move_what_was_learned():
    """The run is in units of the longest input so far; its steps are those of the data all the same."""
    rng = np.random.default_rng(8)
    model, w = ModifiedSGDRegressor(pilot_size=100), np.zeros(2)
    for size in (1.0, 6.0, 2.0):
        X = size * rng.standard_normal((30, 2))
        y = np.maximum(X @ [1.0, -0.5], 0)
        model.partial_fit(X, y)
        for x, label in zip(X, y, strict=True):
            if label > 0:
                w = w + model.learning_rate_ * (label - x @ w) * x
        np.testing.assert_allclose(model.coef_, w, rtol=1e-9)
