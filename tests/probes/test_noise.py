"""Random noise beside adversarial changes: formulas for planes, draws for networks."""

import numpy as np
import pytest
from scipy.stats import norm as normal

from pindown import ReluNetwork
from pindown.probes import (
    mean_noise_probability,
    noise_flip_probability,
    noise_tail_bound,
    noise_versus_adversarial,
)
from pindown.relaxation.lp_balls import lengths
from tests.verification.nets import random_network

LINE = ReluNetwork.from_layers([([[1.0]], [0.0])])


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
    plane = ReluNetwork.from_layers([(w[None], [0.5])])
    found = noise_versus_adversarial(plane, x, probability=probability)
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
        (lambda: noise_versus_adversarial(LINE, [1.0], probability=0.6), "probability"),
        (lambda: noise_versus_adversarial(LINE, [[1.0], [2.0]]), "one input"),
        (lambda: noise_versus_adversarial(LINE, [1.0], draws=0), "draws"),
        (lambda: mean_noise_probability(0, 1.0), "d must"),
    ],
)
def test_bad_noise_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_noise_on_a_network_is_that_of_the_plane_it_is():
    """relu(s) - relu(-s) = s: the same plane, written so that its scale has to be found by draws."""
    rng = np.random.default_rng(4)
    w, x = rng.standard_normal(30), rng.standard_normal(30)
    net = ReluNetwork.from_layers([(np.stack([w, -w]), [0.5, -0.5]), ([[1.0, -1.0]], [0.0])])
    exact = noise_versus_adversarial(ReluNetwork.from_layers([(w[None], [0.5])]), x, probability=0.1)
    found = noise_versus_adversarial(net, x, probability=0.1, draws=4000)
    assert exact.exact and not found.exact and found.kind == "estimate"
    assert found.margin == pytest.approx(exact.margin, rel=1e-4)
    assert found.sigma == pytest.approx(exact.sigma, rel=0.1)
    assert found.ratio == pytest.approx(np.sqrt(30) / -normal.ppf(0.1), rel=0.1)
    assert found.flips[0] <= 0.1 <= found.flips[1] and found.flips[1] - found.flips[0] < 0.03


def test_share_of_flips_is_inside_its_interval_as_often_as_said():
    rng = np.random.default_rng(5)
    inside = []
    for seed in range(6):
        net, x = random_network(rng, [6, 12, 3]), rng.standard_normal(6)
        found = noise_versus_adversarial(net, x, probability=0.2, draws=400, seed=seed)
        if np.isinf(found.sigma):
            continue
        draws = net(x + found.sigma * rng.standard_normal((4000, 6))).argmax(axis=1)
        share = (draws != net(x).argmax()).mean()
        inside.append(found.flips[0] - 0.02 <= share <= found.flips[1] + 0.02)
    assert len(inside) >= 3 and np.mean(inside) >= 0.6


def test_a_class_that_nothing_changes_is_said_to_be_one():
    one = ReluNetwork.from_layers([(np.eye(2), [0, 0]), (np.zeros((2, 2)), [1.0, 0.0])])
    found = noise_versus_adversarial(one, [0.0, 0.0], draws=10)
    assert np.isinf(found.sigma) and np.isinf(found.margin) and "no other was found" in str(found)
    flat = noise_versus_adversarial(ReluNetwork.from_layers([(np.zeros((2, 2)), [1.0, 0.0])]), [0, 0])
    assert np.isinf(flat.margin) and "all inputs have the same" in str(flat)
