"""Margins, conditioned posteriors, and the sampler that turns them into a classifier."""

import math

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.stats import binom, norm

from pindown import ReluNetwork
from pindown.guarantees.bounds import margin_bound, margin_risk, mcallester_bound, truncated_posterior
from pindown.guarantees.bounds.pac_bayes_margins import conditioned_kl
from pindown.guarantees.bounds.rescaled_weights import WeightList, homogeneous
from pindown.guarantees.bounds.weight_noise import noise_scale


def test_margin_risk_by_a_loop():
    rng = np.random.default_rng(0)
    outputs, y = rng.integers(0, 4, (200, 3)).astype(float), rng.integers(0, 3, 200)
    for g in (0.0, 1.0, 2.5):
        wrong = sum(row[k] <= g + max(np.delete(row, k)) for row, k in zip(outputs, y, strict=True))
        assert margin_risk(outputs, y, g) == wrong / 200
    assert margin_risk(outputs, y, 0.0) >= np.mean(outputs.argmax(axis=1) != y)


def test_one_output():
    assert margin_risk([[1.0], [1.0], [0.0]], [1, 0, 1]) == pytest.approx(2 / 3)
    assert margin_risk([[1.0], [-1.0]], [1, -1]) == 0.0


@pytest.mark.parametrize("Z", [0.5, 0.8, 0.99])
def test_conditioning_by_quadrature(Z):
    """A normal conditioned on an interval, against a wider one: the divergence is within the bound."""
    half = norm.ppf(0.5 + Z / 2)
    x = np.linspace(-half, half, 200_001)
    density = norm.pdf(x) / Z
    true = trapezoid(density * (np.log(density) - norm.logpdf(x, 1.0, 2.0)), x)
    whole = 0.5 * (1 + 1) / 4 - 0.5 + math.log(2)
    assert true <= conditioned_kl(whole, Z) + 1e-9


def test_printed_sign_of_the_divergence_would_be_negative():
    """With the logarithm upside down the conditioned divergence is minus itself."""
    x = np.linspace(-1, 1, 10_001)
    Z = norm.cdf(1) - norm.cdf(-1)
    density = norm.pdf(x) / Z
    printed = trapezoid(density * (norm.logpdf(x) - np.log(density)), x)
    assert printed < 0 < conditioned_kl(0.0, Z)
    assert -printed <= conditioned_kl(0.0, Z)


def test_sharp_is_below_the_source_and_both_follow_from_the_base_form():
    for kl in (1.0, 30.0, 300.0):
        for n in (100, 10_000):
            sharp, source = (margin_bound(0.05, kl, n, variant=f).value for f in ("sharp", "as_printed"))
            base = mcallester_bound(0.05, conditioned_kl(kl, 0.5), n).value
            assert sharp <= source
            assert base <= source * (1 + 1e-12)


def test_source_form_solved_for_its_logarithm():
    for kl, n, delta in ((0.0, 100, 0.3), (20.0, 5000, 0.01)):
        square = (margin_bound(0.05, kl, n, delta, variant="as_printed").formula_value - 0.05) ** 2
        logarithm = math.log(3) + math.log(n) - math.log(delta)
        assert (n - 1) * square - kl == pytest.approx(logarithm)


def test_one_noisy_weight_is_accepted_as_often_as_a_normal_number_is_small():
    net = WeightList("given", (np.array([[1.0]]),))
    for scale in (0.1, 0.3):
        drawn = truncated_posterior(
            net, [[2.0], [-1.0]], scale=scale, margin=1.6, n_draws=4000, random_state=0
        )
        Z = 1 - 2 * norm.cdf(-1.6 / 4 / (2 * scale))
        assert drawn.acceptance == pytest.approx(Z, abs=5 * math.sqrt(Z * (1 - Z) / 4000))
        assert 0.99 * 0.4 < drawn.largest_moves.max() < 0.4
        rejected = 4000 - len(drawn.networks)  # Clopper and Pearson
        assert binom.cdf(rejected, 4000, 1 - drawn.success(0.03)) == pytest.approx(0.03, rel=1e-6)


def test_monotone():
    base = margin_bound(0.1, 10.0, 1000).value
    assert margin_bound(0.2, 10.0, 1000).value > base
    assert margin_bound(0.1, 20.0, 1000).value > base
    assert margin_bound(0.1, 10.0, 1000, success=0.9).value < base
    assert margin_bound(0.1, 10.0, 1000, 0.01).value > base


def test_accepted_networks_make_no_more_mistakes_than_the_margin_allows():
    rng = np.random.default_rng(1)
    net = ReluNetwork.from_layers(
        [
            (rng.standard_normal((6, 3)), rng.standard_normal(6)),
            (rng.standard_normal((3, 6)), np.zeros(3)),
        ]
    )
    X = rng.standard_normal((50, 3))
    y = net(X).argmax(axis=1)
    gamma = 0.5
    drawn = truncated_posterior(net, X, scale=0.02, margin=gamma, n_draws=60, random_state=0)
    rows = np.hstack([X, np.ones((50, 1))])
    allowed = margin_risk(net(X), y, gamma / 2)
    assert 0 < len(drawn.networks) < 60
    assert all(margin_risk(each(rows), y) <= allowed for each in drawn.networks)
    assert 0 < drawn.success(0.05) < drawn.acceptance


def test_proved_scale_is_accepted_at_least_half_of_the_time():
    rng = np.random.default_rng(2)
    net = ReluNetwork.from_layers(
        [(rng.standard_normal((8, 4)), np.zeros(8)), (rng.standard_normal((3, 8)), np.zeros(3))]
    )
    X = rng.standard_normal((40, 4))
    weights, B = homogeneous(net), np.linalg.norm(X, axis=1).max()
    scale = noise_scale(weights.norms, weights.shapes, 0.25, input_norm=B)
    drawn = truncated_posterior(net, X, scale=scale, margin=1.0, n_draws=200, random_state=0)
    assert drawn.acceptance >= 0.5


def test_too_little_success_is_said():
    assert margin_bound(0.1, 1.0, 100, success=0.3, variant="as_printed").kind == "heuristic"


@pytest.mark.parametrize(
    "call",
    [
        lambda: margin_risk(np.empty((0, 2)), []),
        lambda: margin_risk([[1.0, 2.0]], [2]),
        lambda: margin_risk([[1.0, np.nan]], [0]),
        lambda: margin_risk([[1.0, 2.0]], [0.5]),
        lambda: margin_risk([[1.0]], [3]),
        lambda: margin_risk([[1.0, 2.0]], [0, 1]),
        lambda: margin_risk([[1.0, 2.0]], ["a"]),
        lambda: margin_bound(0.1, 1.0, 1),
        lambda: margin_bound(0.1, 1.0, 10, variant="other"),
    ],
)
def test_refuses(call):
    with pytest.raises(ValueError, match="must"):
        call()
