"""Restrictions: what is left agrees with the whole, and gates collapse as often as the lemma says."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from pindown.circuits.boolean import (
    LinearForm,
    Restriction,
    ThresholdGate,
    collapse_probability,
    collapse_rate,
    gate_fate,
    random_restriction,
    restrict_form,
    restrict_network,
    vertices,
)
from tests.geometry.fold_nets import gaussian


def integer_form(rng, n, kind=LinearForm):
    return kind.of(rng.integers(-5, 6, n).tolist(), int(rng.integers(-9, 10)))


def test_restrictions_are_balanced():
    rng = np.random.default_rng(0)
    drawn = [random_restriction(12, 3, rng) for _ in range(3000)]
    free = np.array([rho.free for rho in drawn])
    assert (free // 4 == [0, 1, 2]).all()  # one in each part
    np.testing.assert_allclose(np.bincount(free.ravel(), minlength=12) / 3000, 1 / 4, atol=0.04)
    fixed = [value for rho in drawn for value in rho.values if value is not None]
    assert abs(np.mean(fixed)) < 0.03
    parts = [[0, 3], [1, 2]]
    rho = random_restriction(4, 2, rng, parts=parts)
    assert all(len(set(part) & set(rho.free)) == 1 for part in parts)


@pytest.mark.parametrize("seed", range(10))
def test_restricted_forms_and_networks_agree_with_the_whole(seed):
    rng = np.random.default_rng(seed)
    rho = random_restriction(8, 4, rng)
    Y = vertices(4)
    form = integer_form(rng, 8)
    assert restrict_form(form, rho).values(Y).tolist() == form.values(rho.complete(Y)).tolist()
    gate = integer_form(rng, 8, ThresholdGate)
    assert restrict_form(gate, rho)(Y).tolist() == gate(rho.complete(Y)).tolist()
    net = gaussian(rng, (8, 5, 4, 2))
    np.testing.assert_allclose(restrict_network(net, rho)(Y), net(rho.complete(Y)), atol=1e-12)
    exact, y = net.as_fractions(), Y[3].tolist()
    assert restrict_network(exact, rho)(y) == exact(rho.complete(y).tolist())


@pytest.mark.parametrize("n", [1, 3, 5])
def test_fates_agree_with_enumeration(n):
    rng = np.random.default_rng(n)
    seen = set()
    for _ in range(200):
        form = integer_form(rng, n)
        z = form.values(vertices(n))
        relu = "zero" if (z <= 0).all() else "linear" if (z >= 0).all() else "active"
        threshold = "plus" if (z >= 0).all() else "minus" if (z < 0).all() else "active"
        assert (gate_fate(form), gate_fate(form, gate="threshold")) == (relu, threshold)
        seen.add((relu, threshold))
    assert {"active", "zero", "linear"} == {fate for fate, _ in seen}


def test_printed_conditions_of_collapse_are_not_identical():
    """Mukherjee 2020, section 2.6: where a ReLU is zero, a threshold need not be constant."""
    form = LinearForm.of([1, 1], -2)
    assert gate_fate(form) == "zero"
    assert set(ThresholdGate.of([1, 1], -2)(vertices(2)).tolist()) == {-1, 1}


def test_measured_rates_are_the_quoted_ones():
    quoted = {256: 0.300, 1024: 0.159, 4096: 0.082}
    for n, rate in quoted.items():
        found = collapse_rate(None, 8, n=n, samples=4000, seed=n)
        assert abs(found.surviving - rate) < 4 * found.standard_error + 0.0005
        # Gaussian weights with random signs are Gaussian: a normal sum must stay below the free reach.
        reach = np.abs(np.random.default_rng(0).standard_normal((50_000, 8))).sum(axis=1)
        expected = np.mean(2 * norm.cdf(reach / np.sqrt(n - 8)) - 1)
        assert abs(found.surviving - expected) < 4 * found.standard_error
        assert 0.55 < found.surviving / found.shape < 0.7  # about 0.65 |P| / sqrt(n)


def test_rate_falls_as_one_over_the_root_of_n():
    """Mukherjee 2020, Lemma 2.6.1: the slope of log P against log n is -1/2."""
    sizes = [256, 512, 1024, 2048, 4096]
    rates = [collapse_rate(None, 4, n=n, samples=3000, seed=n).surviving for n in sizes]
    slope = np.polyfit(np.log(sizes), np.log(rates), 1)[0]
    assert abs(slope + 0.5) < 0.1


def test_rate_grows_with_the_number_of_parts():
    rates = [collapse_rate(None, p, n=1024, samples=4000, seed=p).surviving for p in (2, 4, 8, 16)]
    np.testing.assert_allclose(np.divide(rates[1:], rates[:-1]), 2, atol=0.5)


@pytest.mark.parametrize("gate", ["relu", "threshold"])
@pytest.mark.parametrize("bias", [0, 2, -3])
def test_estimates_agree_with_exact_probabilities(gate, bias):
    weights = [3, 1, 2, 1, 1, 4, 0, 2]
    exact = collapse_probability(LinearForm.of(weights, bias), 2, gate=gate)
    found = collapse_rate(weights, 2, bias=bias, gate=gate, samples=20_000)
    assert abs(found.surviving - exact) < 4 * found.standard_error
    assert "estimate" in repr(found)


def test_standard_error_is_the_spread_of_repeated_estimates():
    weights = [3, 1, 2, 1, 1, 4, 0, 2]
    runs = [collapse_rate(weights, 2, samples=100, seed=seed) for seed in range(300)]
    spread = np.std([run.surviving for run in runs], ddof=1)
    assert np.mean([run.standard_error for run in runs]) == pytest.approx(spread, rel=0.15)


def test_majority_of_four_by_hand():
    # Two fixed signs: they cancel half of the time, and then the two free ones decide.
    majority = LinearForm.of([1, 1, 1, 1])
    assert collapse_probability(majority, 2) == Fraction(1, 2)
    # A threshold gate at -2 + 2 = 0 counts zero as positive: not constant after two minus signs, either.
    assert collapse_probability(majority, 2, gate="threshold") == Fraction(3, 4)


def test_bad_input():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="must divide"):
        random_restriction(10, 3, rng)
    with pytest.raises(ValueError, match="once"):
        random_restriction(4, 2, rng, parts=[[0, 1], [1, 2]])
    with pytest.raises(ValueError, match="equal sizes"):
        random_restriction(4, 2, rng, parts=[[0], [1, 2, 3]])
    with pytest.raises(ValueError, match=r"written with"):
        Restriction.parse("01*")
    with pytest.raises(ValueError, match="None"):
        Restriction((0, 1))
    with pytest.raises(ValueError, match="2 inputs are free"):
        Restriction.parse("*+*").complete([1])
    with pytest.raises(ValueError, match="about 2 inputs"):
        restrict_form(LinearForm.of([1, 2, 3]), Restriction.parse("+*"))
    with pytest.raises(ValueError, match="none free"):
        restrict_network(gaussian(rng, (2, 2, 1)), Restriction.parse("+-"))
    with pytest.raises(ValueError, match="gate"):
        gate_fate(LinearForm.of([1]), gate="sigmoid")
    with pytest.raises(ValueError, match="n for Gaussian"):
        collapse_rate(None, 2)
    with pytest.raises(ValueError, match="finite"):
        collapse_rate([1, np.nan], 1)
    with pytest.raises(ValueError, match="bias must be a finite number"):
        collapse_rate([1, 2], 1, bias=np.nan)
    with pytest.raises(ValueError, match="samples"):
        collapse_rate([1, 2], 1, samples=1)
    with pytest.raises(ValueError, match="estimate"):
        collapse_probability(LinearForm.of([1] * 20), 4)
