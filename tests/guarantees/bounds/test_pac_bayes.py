"""Base forms hold as often as they say, agree with each other where they must, and are monotone."""

import math

import numpy as np
import pytest
from scipy.special import logsumexp, rel_entr
from scipy.stats import binom

from pindown.confidence import clopper_pearson
from pindown.guarantees.bounds import (
    catoni_bound,
    held_out_bound,
    maurer_bound,
    mcallester_bound,
    occam_bound,
    small_kl_inverse,
)
from pindown.guarantees.bounds.pac_bayes import risk_from_level

FORMS = (mcallester_bound, maurer_bound, catoni_bound)
DELTA, RUNS = 0.2, 400


def adversarial_runs(form, n=30, hypotheses=25, runs=RUNS):
    """Count samples on which the bound fails for any of several posteriors: it must hold for all."""
    rng = np.random.default_rng(0)
    risks = rng.uniform(0.05, 0.6, hypotheses)
    failures = 0
    for _ in range(runs):
        hat = rng.binomial(n, risks) / n
        failed = False
        for strength in (0.0, n / 4, n, 4 * n):
            logits = -strength * hat
            q = np.exp(logits - logsumexp(logits))
            kl = float(np.sum(q[q > 0] * np.log(q[q > 0] * hypotheses)))
            bound = form(float(np.clip(q @ hat, 0, 1)), max(kl, 0.0), n, DELTA)
            failed |= float(q @ risks) > bound.formula_value
        # the luckiest single hypothesis is a posterior, too
        best = int(np.argmin(hat - risks))
        bound = form(float(hat[best]), math.log(hypotheses), n, DELTA)
        failures += failed | (risks[best] > bound.formula_value)
    return failures


@pytest.mark.parametrize("form", [mcallester_bound, maurer_bound])
def test_fails_at_most_as_often_as_stated(form):
    failures = adversarial_runs(form, runs=100)
    assert failures <= binom.ppf(0.999, 100, DELTA)


def test_catoni_at_a_fixed_temperature_is_nearly_attained_but_not_broken():
    failures = adversarial_runs(lambda r, k, n, d: catoni_bound(r, k, n, d, temperature=1.0))
    assert failures <= binom.ppf(0.999, RUNS, DELTA)


def test_best_temperature_is_the_inverse_entropy():
    """An identity: the infimum over temperatures inverts kl, with log(1/delta) for the logarithm."""
    grid = np.geomspace(0.01, 50, 4000)
    for risk, kl in ((0.0, 3.0), (0.1, 10.0), (0.4, 1.0)):
        alone = [catoni_bound(risk, kl, 500, 0.05, temperature=float(c)).formula_value for c in grid]
        inverse = float(small_kl_inverse(risk, (kl + math.log(20)) / 500))
        assert min(alone) == pytest.approx(inverse, rel=1e-5)
        assert min(alone) >= inverse * (1 - 1e-12)


def test_mcallester_is_never_below_maurer():
    """Pinsker's inequality, and 2 sqrt(n) <= n from n = 4 on."""
    for risk in (0.0, 0.05, 0.3, 0.9):
        for kl in (0.0, 1.0, 50.0):
            for n in (8, 100, 10_000):
                assert mcallester_bound(risk, kl, n).value >= maurer_bound(risk, kl, n).value - 1e-12


@pytest.mark.parametrize("form", FORMS)
def test_monotone(form):
    base = form(0.1, 10.0, 1000, 0.05).formula_value
    assert form(0.2, 10.0, 1000, 0.05).formula_value > base
    assert form(0.1, 20.0, 1000, 0.05).formula_value > base
    assert form(0.1, 10.0, 2000, 0.05).formula_value < base
    assert form(0.1, 10.0, 1000, 0.01).formula_value > base


def test_moment_behind_maurer_holds_for_small_samples():
    """sum_k C(n,k) (k/n)^k (1-k/n)^(n-k) <= 2 sqrt(n), in exact integers."""
    for n in range(1, 60):
        moment = sum(math.comb(n, k) * k**k * (n - k) ** (n - k) for k in range(n + 1))
        assert moment**2 <= 4 * n * n ** (2 * n)


def test_description_length_by_simulation():
    rng = np.random.default_rng(1)
    risks, n, runs = rng.uniform(0, 0.5, 16), 40, 2000
    limits = np.array([occam_bound(k / n, 4, n, DELTA).formula_value for k in range(n + 1)])
    errors = rng.binomial(n, risks, size=(runs, 16))
    failures = int((risks > limits[errors]).any(axis=1).sum())
    assert failures <= binom.ppf(0.999, runs, DELTA)


def test_held_out_is_exact_and_never_below():
    for errors, n, delta in (
        (0, 10, 0.05),
        (3, 50, 0.1),
        (499, 500, 0.01),
        (20, 10_000, 0.05),
        (0, 1, 0.5),
    ):
        p = held_out_bound(errors, n, delta).value
        assert binom.cdf(errors, n, p) <= delta
        assert binom.cdf(errors, n, p * (1 - 1e-6)) > delta
    assert held_out_bound(7, 7).value == 1.0
    assert clopper_pearson(0, 10, 0.05) == pytest.approx(1 - 0.05**0.1, rel=1e-9)


def test_held_out_fails_at_most_as_often_as_stated():
    n, p = 60, 0.13
    chances = binom.pmf(np.arange(n + 1), n, p)
    fails = np.array([held_out_bound(k, n, DELTA).value < p for k in range(n + 1)])
    assert chances[fails].sum() <= DELTA
    assert chances[fails].sum() > DELTA / 3  # and it is not far from it


def test_level_to_risk_never_below_the_inverse():
    for risk in (0.0, 0.2, 1.0):
        for level in (0.0, 0.01, 1.0, 40.0, math.inf):
            assert risk_from_level(risk, level) >= float(small_kl_inverse(risk, level))


def nats(risk, value):
    """Relative entropy of two coins."""
    return float(rel_entr(risk, value) + rel_entr(1 - risk, 1 - value))


@pytest.mark.parametrize("risk", [0.0, 0.12])
@pytest.mark.parametrize(("kl", "n", "delta"), [(0.0, 50, 0.3), (7.0, 900, 0.01)])
def test_every_form_solved_for_its_logarithm(risk, kl, n, delta):
    """What is left of n times the level without the divergence is a logarithm that names the theorem."""
    square = (mcallester_bound(risk, kl, n, delta).value - risk) ** 2
    assert 2 * (n - 1) * square - kl == pytest.approx(math.log(n) - math.log(delta))
    entropy = n * nats(risk, maurer_bound(risk, kl, n, delta).value)
    assert entropy - kl == pytest.approx(math.log(2) + math.log(n) / 2 - math.log(delta))
    entropy = n * nats(risk, occam_bound(risk, kl, n, delta).value)
    assert math.exp(-entropy) == pytest.approx(delta / 2**kl)  # a Kraft sum times delta
    for grid in ([2.0], [0.3, 2.0, 40.0]):
        catoni = catoni_bound(risk, kl, n, delta, temperature=grid)
        C = catoni.terms["temperature"]
        left = -math.log1p(-(1 - math.exp(-C)) * catoni.formula_value) - C * risk
        assert n * left - kl == pytest.approx(math.log(len(grid)) - math.log(delta))
        alone = [catoni_bound(risk, kl, n, delta / len(grid), temperature=c).formula_value for c in grid]
        assert catoni.formula_value == pytest.approx(min(alone))


def test_fixed_temperatures_are_paid_for():
    """The infimum over temperatures is the inverse entropy; a grid of 90 costs log 90, and no less."""
    for risk, kl in ((0.0, 3.0), (0.2, 30.0)):
        free = float(small_kl_inverse(risk, (kl + math.log(20)) / 500))
        paid = float(small_kl_inverse(risk, (kl + math.log(20 * 90)) / 500))
        assert free < paid <= catoni_bound(risk, kl, 500).formula_value <= paid * 1.005


def test_vacuous_levels_say_by_how_much():
    assert risk_from_level(0.25, 8.0) == pytest.approx(2.25)  # risk + sqrt(c / 2)
    assert risk_from_level(0.25, 50.0) == pytest.approx(5.25)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "bad",
    [
        (-0.1, 1, 10, 0.1),
        (1.5, 1, 10, 0.1),
        (0.1, -1, 10, 0.1),
        (0.1, 1, 0, 0.1),
        (0.1, 1, 10, 0.0),
        (0.1, math.nan, 10, 0.1),
    ],
)
def test_refuses(form, bad):
    with pytest.raises(ValueError, match="must"):
        form(*bad)


def test_infinite_divergence_is_vacuous():
    assert all(form(0.1, math.inf, 100).vacuous for form in FORMS)


def test_more_errors_than_examples_are_refused():
    with pytest.raises(ValueError, match="at most"):
        held_out_bound(11, 10)


def test_held_out_examples_at_a_confidence_beyond_rounding():
    # 1 - delta is 1 in float64, but delta**(1/n) is not 0.
    assert held_out_bound(0, 1000, 1e-30).value == pytest.approx(-np.expm1(np.log(1e-30) / 1000))


def test_no_temperature_is_refused():
    with pytest.raises(ValueError, match="empty list"):
        catoni_bound(0.1, 1.0, 100, temperature=[])
