"""Mukherjee 2020, chapters 5 and 6: statements wrong as printed, beside the corrected ones."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from scipy.stats import norm

from pindown.guarantees.bounds import WeightList, mixture_bound, niceness, spectral_margin_bound
from pindown.guarantees.bounds.bound import half_square
from pindown.guarantees.bounds.spectral import beta_interval, source_scale
from pindown.guarantees.bounds.weight_noise import norm_level
from pindown.optim import RMSPropRule
from pindown.optim.path_geometry import TrainingPathGeometry
from pindown_reproduction.relu_thesis import pac_bayes_images


def test_the_first_step_of_fast_rmsprop_divides_by_zero():
    """Section 5.7.1: g / sqrt(beta_2 v_{t-1}) for t = 1, where v_0 = 0; from t = 2 on it is finite."""
    rule, state = RMSPropRule(0.1, 0.9, 1.0), {"v": np.zeros(1)}
    g = np.array([0.5])
    with np.errstate(divide="ignore"):
        assert np.isinf(g / np.sqrt(0.9 * state["v"])).all()
    rule.move(state, g, 1)
    assert np.isfinite(g / np.sqrt(0.9 * state["v"])).all()


@pytest.mark.parametrize("t", [2, 3, 10])
def test_geometric_sum_of_the_averages(t):
    """Section 5.A: (b - b^(t-1)) / (1 - b); at t = 2 that is 0, and the sum is b."""
    b = Fraction(9, 10)
    total = sum(b ** (t - k) for k in range(1, t))
    assert total == (b - b**t) / (1 - b) > (b - b ** (t - 1)) / (1 - b)
    # What the theorem needs is unharmed: with the weight of the newest, the weights stay below 1.
    assert (1 - b) * (1 + total) == 1 - b**t < 1
    # And so says the rule: with gradients of one its average is the sum of the weights.
    rule, state = RMSPropRule(0.1, 0.9, 0.0), {"v": np.zeros(1)}
    for k in range(1, t + 1):
        rule.move(state, np.ones(1), k)
    assert state["v"].item() == pytest.approx(float((1 - b) * (1 + total)), rel=1e-12)
    printed = (1 - b) * (1 + (b - b ** (t - 1)) / (1 - b))
    assert abs(state["v"].item() - float(printed)) > 0.01


def test_the_sum_of_squares_of_unit_matrices_is_a_multiple_of_the_identity():
    """Proofs of 6.6.1 and 6.D: called an all-ones matrix; the norm h sigma^2 is right all the same."""
    h, sigma = 4, 0.5
    total = np.zeros((h, h))
    for i in range(h):
        for j in range(h):
            B = np.zeros((h, h))
            B[i, j] = sigma
            total += B @ B.T
    assert np.array_equal(total, h * sigma**2 * np.eye(h))
    assert not np.array_equal(total, sigma**2 * np.ones((h, h)))
    assert np.linalg.norm(total, 2) == np.linalg.norm(sigma**2 * np.ones((h, h)), 2) == h * sigma**2
    # That norm is what the tail rests on, and it holds; with sigma^2, each entry's, it would not.
    level = norm_level(h, h, 0.05, variant="as_printed")
    assert level**2 == pytest.approx(2 * np.linalg.norm(total, 2) / sigma**2 * math.log(2 * h / 0.05))
    draws = np.random.default_rng(0).standard_normal((4_000, h, h))
    norms = np.linalg.norm(draws, 2, axis=(1, 2))
    assert (norms > level).mean() <= 0.05
    assert (norms > level / math.sqrt(h)).mean() > 8 * 0.05


def test_the_inequality_above_the_grid_has_the_wrong_exponent():
    """Section 6.D, (b): exp(-4/(d-1)) d^2 h log(4dh) > 1 fails at d = 2, h = 1; + is needed."""
    d, h = 2, 1
    rest = d**2 * h * math.log(4 * d * h)
    assert math.exp(-4 / (d - 1)) * rest < 1 < math.exp(4 / (d - 1)) * rest
    n, margin, B = 1_000, 0.7, 2.0
    for d in range(2, 9):
        for h in (1, 2, 50):
            ours = math.exp(4 / (d - 1)) * d**2 * h * math.log(4 * d * h)
            assert ours > 1
            # It says that above the interval of beta the square root of the bound exceeds one.
            _, high = beta_interval(margin, n, d, B)
            kl = half_square(math.sqrt(d) * high, source_scale(high, margin, d, h, B))
            assert kl / (n - 1) == pytest.approx(d * math.exp(-2) * ours, rel=1e-9)
            assert kl > n - 1
    assert 2 * math.exp(-2) * math.exp(-4) * rest < 1  # which the printed sign does not give


def test_points_of_the_grid_are_norms_and_no_scales():
    """Definition 26: noise of scale sigma in the grid; the grid holds values of beta, far too large."""
    depth, side, B, margin = 3, 20, 1.0, 1.0
    low, high = beta_interval(margin, 10_000, depth, B)
    for beta in np.linspace(low, high, 5):
        scale = source_scale(float(beta), margin, depth, side, B)
        level = beta / (depth * math.exp(1 / (depth - 1)))  # (6.50a): what the noise may reach
        assert scale * math.sqrt(2 * side * math.log(4 * depth * side)) <= level
        assert beta * math.sqrt(2 * side * math.log(4 * depth * side)) > 10 * level


def test_for_all_where_there_exists_is_meant():
    """End of the proof of Theorem 6.2.1: all x off at once is rarer than some x off.

    Two inputs, noise of scale one on a linear map: each output is off by more than t independently.
    """
    t = norm.isf(0.05)  # two sides: 0.1 for each input
    rng = np.random.default_rng(0)
    off = np.abs(rng.standard_normal((200_000, 2))) > t
    delta = 0.02
    assert off.all(axis=1).mean() < delta  # the printed event
    assert off.any(axis=1).mean() > 9 * delta  # what is to be excluded
    noise = rng.standard_normal((200_000, 2))
    level = norm_level(1, 2, delta)  # no input at all is off by more than this times its length
    assert (np.linalg.norm(noise, axis=1) > level).mean() <= delta
    assert (np.abs(noise) > level).any(axis=1).mean() <= delta


def test_given_niceness_is_not_niceness_implies():
    """Theorem 6.3.1: a probability given that S is nice; proved is: S is not nice, or the bound holds.

    Samples that fail the bound may be all of the nice ones: of 20 equally likely samples one is nice,
    and it is the one that the bound may miss.
    """
    nice = np.arange(20) == 0
    holds = np.arange(20) != 0
    assert holds.mean() == 0.95 == (holds | ~nice).mean()
    assert holds[nice].mean() == 0
    # Ours does not condition: where the sample is not nice it says 1, which holds.
    rng = np.random.default_rng(0)
    shapes = ((6, 3), (2, 6))
    draws = (tuple(0.5 * rng.standard_normal(s) for s in shapes) for _ in range(2))
    centre, far = (WeightList("given", matrices) for matrices in draws)
    X = rng.standard_normal((50, 3))
    margin = 0.5 * niceness(centre, [far], X).gaps.max()
    found = mixture_bound(centre, [far], [far], X, centre(X).argmax(axis=1), margin=margin)
    assert found.value == 1.0 and not any("nice" in a.text for a in found.assumptions)


def test_the_norm_of_the_path_is_that_of_all_weights_stacked():
    """Section 6.5: "sum of Frobenius norms"; layers of norm 3 and 4 have norm 5 together, not 7."""
    module = torch.nn.Sequential(torch.nn.Linear(1, 1, bias=False), torch.nn.Linear(1, 1, bias=False))
    with torch.no_grad():
        module[0].weight.fill_(3.0)
        module[1].weight.fill_(4.0)
    path = TrainingPathGeometry(module)
    with torch.no_grad():
        module[0].weight.fill_(6.0)
        module[1].weight.fill_(8.0)
    path.update()
    report = path.report()
    assert report.initial_norm == pytest.approx(5) != 7
    assert report.dilation == pytest.approx(2) and report.angle == pytest.approx(0, abs=1e-6)


def test_widths_of_the_image_experiment():
    """Section 6.4.1: widths between 100 and 200 in the text, 100 and 400 in the figures.

    Paper scale has all of them; quick scale, whose results are shown, has 50.
    """
    settings = pac_bayes_images.EXPERIMENT.settings
    widths = {
        scale: {cell["width"] for cell in pac_bayes_images.cells(settings[scale])}
        for scale in ("paper", "quick")
    }
    assert widths == {"paper": {100, 200, 400}, "quick": {50}}
    assert not all(100 <= width <= 200 for width in widths["paper"])  # as the text has it


def test_the_factor_eight_turns_the_comparison_of_the_two_bounds_round():
    """Section 6.4: the mixture bound is below the earlier one. A start unrelated to the end decides.

    By the printed forms it is below the spectral bound at the network's own beta; in the corrected
    forms it is above. All values are vacuous.
    """
    rng = np.random.default_rng(0)
    shapes = ((20, 20), (20, 20), (2, 20))

    def network():
        return WeightList("given", tuple(rng.standard_normal(s) / math.sqrt(s[1]) for s in shapes))

    end, start = network(), network()
    X = rng.standard_normal((200, 20))
    y = end(X).argmax(axis=1)
    common = {"margin": 0.1}
    mixture = [
        mixture_bound(end, [end], [start], X, y, variant=variant, **common)
        for variant in ("as_printed", "corrected")
    ]
    printed = spectral_margin_bound(end, X, y, variant="as_printed", **common).terms["value at beta"]
    corrected = spectral_margin_bound(end, X, y, variant="corrected", representative="layers", **common)
    assert mixture[0].formula_value < 0.8 * printed
    assert mixture[1].formula_value > 1.2 * corrected.formula_value
    assert mixture[1].vacuous and corrected.vacuous
