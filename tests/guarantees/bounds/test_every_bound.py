"""Every public bound moves the right way in every argument; the corollaries hold by Monte Carlo."""

import math
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import binom

from pindown import ReluNetwork
from pindown.guarantees import bounds
from pindown.guarantees.bounds import AngularProfile, WeightList
from pindown.guarantees.bounds.linear_distillation import projected

SIGN = np.where(np.arange(400) % 2, 1.0, -1.0)[:, None]
LINE = WeightList("given", (np.array([[1.0]]),))
CHAIN = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, -1.0], [-1.0, 1.0]], [0, 0])])
PEAK = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[-1.0, -1.0]], [0])])
MEMBER = ReluNetwork.from_layers([([[0.0]], [1.0]), ([[1.0]], [0.0])])
RISK = {"risk": 0.1, "kl": 10.0, "n": 1000, "delta": 0.05}
UP_DOWN = {"risk": [0.0, 0.1, 0.3], "kl": [0.0, 5.0, 50.0], "n": [2000, 1000, 300], "delta": [0.2, 0.01]}


def repeated(function, n, **settings):
    """Apply a bound for a sample to n copies of two points."""
    return function(X=SIGN[:n], y=(SIGN[:n, 0] > 0).astype(int), **settings)


def spectral(n, delta):
    y = (SIGN[:n, 0] < 0).astype(int)
    return bounds.spectral_margin_bound(CHAIN, SIGN[:n], y, delta=delta)


def mixture(n, delta, n_clusters):
    net = WeightList("given", (np.array([[1.0], [-1.0]]), np.array([[1.0, -1.0], [-1.0, 1.0]])))
    near = net.shifted(net.vector + 1e-9)
    y = (SIGN[:n, 0] < 0).astype(int)
    return bounds.mixture_bound(
        near, [near], [net], SIGN[:n], y, delta=delta, margin=0.1, least_distance=1e-10,
        n_clusters=n_clusters,
    )  # fmt: skip


def local_maxima(n, delta, first, second):
    return bounds.local_maxima_bound(
        PEAK, MEMBER, 0.0 * SIGN[:n], radius=0.1, margins=(first, second), delta=delta
    )


def information(entropy, low):
    return bounds.information_lower_bound([low, -1.0], entropy)


def table(delta):
    found = bounds.bound_table(CHAIN, SIGN, (SIGN[:, 0] < 0).astype(int), delta=delta)
    return next(bound for bound in found.bounds if bound.name == "spectral margin")


# name: the bound, its arguments, and for some arguments values along which it must grow strictly
GROWS = {
    "mcallester_bound": (bounds.mcallester_bound, RISK, UP_DOWN),
    "maurer_bound": (bounds.maurer_bound, RISK, UP_DOWN),
    "catoni_bound": (bounds.catoni_bound, RISK, UP_DOWN),
    "margin_bound": (
        bounds.margin_bound, RISK | {"success": 0.7}, UP_DOWN | {"success": [1.0, 0.8, 0.5]}
    ),
    "occam_bound": (
        bounds.occam_bound,
        {"risk": 0.1, "bits": 20.0, "n": 1000, "delta": 0.05},
        {"risk": [0.0, 0.1, 0.3], "bits": [1.0, 20.0, 90.0], "n": [2000, 300], "delta": [0.2, 0.01]},
    ),
    "held_out_bound": (
        bounds.held_out_bound,
        {"errors": 3, "n": 100, "delta": 0.05},
        {"errors": [0, 3, 50], "n": [500, 100, 20], "delta": [0.2, 0.01]},
    ),
    "linear_margin_bound": (
        bounds.linear_margin_bound,
        {"margin": 0.2, "largest_norm": 1.0, "n": 10**5, "delta": 0.05},
        {"margin": [0.9, 0.1], "largest_norm": [0.5, 2.0], "n": [10**6, 10**5], "delta": [0.2, 0.01]},
    ),
    "max_pooling_bound": (
        bounds.max_pooling_bound,
        {"n_patterns": 6, "n_second": 10**9, "delta": 0.05},
        {"n_patterns": [3, 6, 20], "n_second": [10**10, 10**9], "delta": [0.2, 0.01]},
    ),
    "large_margin_bound": (
        bounds.large_margin_bound, {"rate": 0.5, "n": 5}, {"rate": [0.1, 0.5, 0.9], "n": [9, 5, 1]}
    ),
    "polynomial_angle_bound": (
        bounds.polynomial_angle_bound,
        {"exponent": 2.0, "n": 50},
        {"exponent": [5.0, 2.0], "n": [99, 50, 9]},
    ),
    "transfer_risk_bound": (
        lambda kappa, n, r: bounds.transfer_risk_bound(AngularProfile.power(kappa), n, relative_error=r),
        {"kappa": 2.0, "n": 50, "r": 0.1},
        {"kappa": [5.0, 2.0], "n": [99, 50, 9], "r": [0.0, 0.1, 0.3]},
    ),
    "supermartingale_bound": (
        lambda rise, size, variance: bounds.supermartingale_bound(rise, [size] * 9, variance=variance),
        {"rise": 5.0, "size": 1.0, "variance": 2.0},
        {"rise": [9.0, 5.0, 3.0], "size": [0.5, 1.0, 3.0], "variance": [0.5, 2.0, 5.0]},
    ),
    "weight_noise_bound": (
        lambda n, delta: repeated(bounds.weight_noise_bound, n, net=LINE, delta=delta),
        {"n": 200, "delta": 0.05},
        {"n": [400, 200, 50], "delta": [0.2, 0.01]},
    ),
    "spectral_margin_bound": (
        spectral, {"n": 200, "delta": 0.05}, {"n": [400, 200, 100], "delta": [0.2, 0.01]}
    ),
    "mixture_bound": (
        mixture,
        {"n": 200, "delta": 0.05, "n_clusters": 9},
        {"n": [400, 200, 100], "delta": [0.2, 0.01], "n_clusters": [1, 9, 99]},
    ),
    "local_maxima_bound": (
        local_maxima,
        {"n": 200, "delta": 0.05, "first": 0.2, "second": 0.5},
        {"n": [400, 200], "delta": [0.2, 0.01], "first": [0.4, 0.2, 0.1], "second": [0.9, 0.5, 0.2]},
    ),
    "perturbation_bound": (
        lambda norm, move, size: bounds.perturbation_bound([norm, 2.0], [move, 0.1], size),
        {"norm": 1.0, "move": 0.1, "size": 1.0},
        {"norm": [0.5, 1.0, 3.0], "move": [0.0, 0.1, 1.0], "size": [0.1, 1.0, 2.0]},
    ),
    "mixture_kl_bound": (
        lambda distance, prior: bounds.mixture_kl_bound(
            [0.0, distance], 1.0, [[0.0, 0.0], [9.0, 0.0]], prior_scale=prior
        ),
        {"distance": 1.0, "prior": 1.0},
        {"distance": [0.0, 1.0, 3.0], "prior": [2.0, 4.0, 9.0]},
    ),
    "information_lower_bound": (
        information, {"entropy": 1.0, "low": -2.0}, {"entropy": [0.5, 1.0], "low": [-3.0, -2.0]}
    ),
    "bound_table": (table, {"delta": 0.05}, {"delta": [0.2, 0.01]}),
}  # fmt: skip


def value_of(found):
    return getattr(found, "formula_value", getattr(found, "value", found))


@pytest.mark.parametrize(
    ("name", "argument"), [(name, argument) for name, row in GROWS.items() for argument in row[2]]
)
def test_grows_along(name, argument):
    function, given, directions = GROWS[name]
    values = [value_of(function(**given | {argument: value})) for value in directions[argument]]
    assert all(a < b for a, b in pairwise(values)), values


def test_no_public_bound_is_left_out():
    public = {name for name in bounds.__all__ if "bound" in name and name.islower()}
    assert set(GROWS) == public - {"clusters_bound"}  # trains, then calls mixture_bound


# -- corollaries of the transfer bound ----------------------------------------------------------------


def angles_inputs(angles, d, rng):
    """Inputs at given angles to the first axis, otherwise in random directions."""
    v = rng.standard_normal((len(angles), d - 1))
    v /= np.linalg.norm(v, axis=1, keepdims=True)
    sign = rng.choice([-1.0, 1.0], len(angles))
    return sign[:, None] * np.column_stack([np.cos(angles), np.sin(angles)[:, None] * v])


def risk_of_students(draw, n, d, reps, rng):
    risks = []
    for _ in range(reps):
        student = projected(angles_inputs(draw(n), d, rng), np.eye(d)[0])
        X = angles_inputs(draw(300), d, rng)
        risks.append(np.mean((X @ student >= 0) != (X[:, 0] >= 0)))
    return np.mean(risks), np.std(risks) / math.sqrt(reps)


@pytest.mark.parametrize("n", [1, 2])
def test_large_margins_by_monte_carlo(n):
    """Angles are uniform up to 1.2, in the fewest dimensions in which the student can be wrong."""
    rng = np.random.default_rng(0)
    profile = AngularProfile(lambda t: np.clip(1 - t / 1.2, 0, 1))
    _, rate = bounds.fit_margin(profile)
    risk, error = risk_of_students(lambda m: rng.uniform(0, 1.2, m), n, n + 1, 400, rng)
    assert 0 < risk - 5 * error <= bounds.large_margin_bound(rate, n).value
    assert risk > bounds.large_margin_bound(rate, 8 * n).value  # a wrong power would show


@pytest.mark.parametrize("n", [2, 4])
def test_polynomial_angles_by_monte_carlo(n):
    rng = np.random.default_rng(1)

    def draw(m):
        return (np.pi / 2) * (1 - rng.random(m) ** (1 / 1.5))

    risk, error = risk_of_students(draw, n, n + 1, 400, rng)
    assert 0 < risk - 5 * error <= bounds.polynomial_angle_bound(1.5, n).formula_value
    assert risk > bounds.polynomial_angle_bound(1.5, 150 * n).formula_value


# -- the luckiest of many linear classifiers ----------------------------------------------------------


def test_weight_noise_around_the_luckiest_line_fails_as_rarely_as_it_says():
    """Labels are coins, so that the risk of every classifier is 1/2."""
    rng, delta, runs, failed, plain = np.random.default_rng(2), 0.2, 15, 0, 0
    for seed in range(runs):
        X, y = rng.standard_normal((50, 5)), rng.integers(0, 2, 50)
        W = rng.standard_normal((500, 5))
        best = W[np.argmin(np.mean((X @ W.T > 0) != y[:, None], axis=0))]
        found = bounds.weight_noise_bound(
            WeightList("given", (best[None],)), X, y, delta=delta, random_state=seed
        )
        failed += found.formula_value < 0.5
        plain += found.terms["error of the draws"] < 0.5
    assert failed <= binom.ppf(0.9999, runs, delta)
    assert plain > 0.9 * runs  # the errors that are seen are too few nearly always


def test_luckiest_separator_of_many_inputs():
    """More inputs than points: all are separated, and the bound does not believe it."""
    rng = np.random.default_rng(3)
    at = partial(bounds.linear_margin_bound, largest_norm=1.0, delta=0.2)
    for _ in range(20):
        X, y = rng.standard_normal((30, 60)), rng.choice([-1.0, 1.0], 30)
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        w = np.linalg.lstsq(X, y, rcond=None)[0]
        margin = float(np.min(y * (X @ w)) / np.linalg.norm(w))
        assert margin > 0.05  # no training error, risk 1/2
        found = at(margin, n=30)
        assert found.formula_value > 0.5
        assert found.terms["rademacher"] / 16 < 0.5  # a wrong constant would show
