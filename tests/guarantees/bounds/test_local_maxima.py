"""Local maxima: balls bounded from above, the bound holds, the printed tolerance goes the wrong way."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import rel_entr
from scipy.stats import binom

from pindown import ReluNetwork
from pindown.guarantees.bounds import local_maxima_bound
from pindown.guarantees.bounds._samples import read_sample
from pindown.guarantees.bounds.local_maxima import ball_maxima, mistakes, spectral_complexity
from pindown.guarantees.bounds.pac_bayes import risk_from_level
from pindown.guarantees.bounds.rescaled_weights import WeightList, homogeneous


def peak(height=1.0):
    """-height |x|."""
    return ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[-height, -height]], [0])])


def member():
    return ReluNetwork.from_layers([([[0.0]], [1.0]), ([[1.0]], [0.0])])


def random_net(rng, d):
    return ReluNetwork.from_layers(
        [(rng.standard_normal((8, d)), rng.standard_normal(8)), (rng.standard_normal((1, 8)), [0.3])]
    )


@pytest.mark.parametrize("d", [1, 2, 5])
def test_ball_maxima_are_never_below_what_is_found(d):
    rng = np.random.default_rng(d)
    net, X, eps = random_net(rng, d), rng.standard_normal((15, d)), 0.3
    steps = rng.standard_normal((2000, d))
    steps *= eps * rng.random((2000, 1)) ** (1 / d) / np.linalg.norm(steps, axis=1, keepdims=True)
    found = np.array([net(x + steps)[:, 0].max() for x in X])
    bound = ball_maxima(net, X, eps)
    assert (bound.upper >= found).all()
    assert (bound.upper >= net(X)[:, 0]).all()
    if d == 1:
        assert bound.method == "cells"
        np.testing.assert_allclose(bound.upper, found, atol=0.02)
        assert (ball_maxima(net, X, eps, exact=False).upper >= bound.upper - 1e-8).all()


@pytest.mark.parametrize("seed", range(40))
def test_units_that_cancel_do_not_hide_a_maximum(seed):
    """Weights of up to 1e15 that nearly cancel: values are lost in float64, bounds are not."""
    rng = np.random.default_rng(seed)
    n, size = int(rng.integers(1, 5)), 10.0 ** rng.integers(0, 16)
    W, b, out = rng.standard_normal((n, 1)), rng.standard_normal(n), size * rng.standard_normal(n)
    b_too, out_too = b * (1 + 1e-12 * rng.standard_normal(n)), rng.standard_normal(n) - out
    layers = (np.vstack([W, W]), np.r_[b, b_too]), (np.r_[out, out_too][None], [0.5])
    x, eps = rng.standard_normal(), abs(rng.standard_normal())
    upper = ball_maxima(ReluNetwork.from_layers(layers), [[x]], eps).upper[0]

    def exact(at):
        hidden = [
            max(Fraction(w) * at + Fraction(c), 0)
            for w, c in zip(layers[0][0][:, 0], layers[0][1], strict=True)
        ]
        return sum(Fraction(v) * z for v, z in zip(layers[1][0][0], hidden, strict=True)) + Fraction(0.5)

    folds = [-Fraction(c) / Fraction(w) for w, c in zip(layers[0][0][:, 0], layers[0][1], strict=True)]
    ends = Fraction(x) - Fraction(eps), Fraction(x) + Fraction(eps)
    assert upper >= max(exact(at) for at in (*ends, *folds) if ends[0] <= at <= ends[1])


@pytest.mark.parametrize("seed", range(30))
def test_margins_of_a_sample_are_rounded_down(seed):
    rng = np.random.default_rng(seed)
    size = 10.0 ** rng.integers(0, 16)
    W, out = rng.standard_normal((3, 2)), size * rng.standard_normal(3)
    matrices = np.vstack([W, W]), np.r_[out, rng.standard_normal(3) - out][None]
    X = rng.standard_normal((4, 2))
    found = read_sample(WeightList("given", matrices), X, np.ones(4)).margins
    for x, margin in zip(X, found, strict=True):
        hidden = [
            max(sum(Fraction(w) * Fraction(v) for w, v in zip(r, x, strict=True)), 0)
            for r in matrices[0]
        ]
        exact = sum(Fraction(w) * z for w, z in zip(matrices[1][0], hidden, strict=True))
        assert exact - Fraction(1e-13) * Fraction(1 + 10 * size) <= margin <= exact


def test_linear_functions_are_exact_on_the_ball():
    net = ReluNetwork.from_layers([([[3.0, 4.0]], [1.0])])
    assert ball_maxima(net, [[1.0, 1.0]], 0.1).upper[0] == pytest.approx(8.5)


def test_mistakes_by_hand():
    wrong, _ = mistakes(peak(), member(), [[0.0], [0.05], [1.0]], 0.1, 0.06, 0.5)
    assert wrong.tolist() == [False, False, True]


def test_members_need_their_margin():
    ramp = ReluNetwork.from_layers([([[1.0]], [0.0])])
    X = [[-0.1], [0.2], [0.5], [0.7]]
    for margin, wrong in ((0.0, 1), (0.5, 3), (0.6, 3)):
        assert mistakes(peak(0.0), ramp, X, 0.1, 0.06, margin)[0].tolist() == [True] * wrong + [
            False
        ] * (4 - wrong)


def scale_and_cost(deviation, reach, sides, each):
    """The largest of the scales 2^(i/16) under which one layer moves so little, and its weight."""
    level = math.sqrt(sides[0]) + math.sqrt(sides[1]) + math.sqrt(-2 * math.log(1 - each))
    i = math.floor(16 * math.log2(deviation / (reach * level)))
    return 2 ** (i / 16), math.log(2.3 * (1 + abs(i)) ** 2)


@pytest.mark.parametrize("m", [400, 1200])
def test_from_its_formula(m):
    """Two linear networks, for which the largest noise is known: v moves by a quarter of its margin.

    Inputs of v reach as far as the balls, c has a bias and so an input 1; both need small noise at once.
    """
    rng, eps, g1, g2, delta, reach = np.random.default_rng(0), 0.3, 0.4, 0.3, 0.1, 1.5
    X = rng.uniform(-1, 1, (m, 1))
    v = ReluNetwork.from_layers([([[0.2]], [0.0])])
    c = ReluNetwork.from_layers([([[0.4]], [0.35])])
    found = local_maxima_bound(v, c, X, radius=eps, margins=(g1, g2), delta=delta, input_norm=reach)
    risk, levels = float(np.mean(0.4 * X[:, 0] + 0.35 <= g2)), []
    assert 0.1 < risk == found.terms["empirical risk"]
    for Z in (0.5, 0.75, 0.9, 0.99, 0.999):
        s_v, cost_v = scale_and_cost(g1 / 4, reach + eps, (1, 1), math.sqrt(Z))
        s_c, cost_c = scale_and_cost(g2 / 2, math.sqrt(reach**2 + 1), (1, 2), math.sqrt(Z))
        kl = 0.2**2 / (2 * s_v**2) + (0.4**2 + 0.35**2) / (2 * s_c**2)
        truncated = (kl - Z * math.log(Z) - (1 - Z) * math.log(1 - Z)) / Z
        levels.append((truncated + cost_v + cost_c + math.log(2 * math.sqrt(m) / delta)) / m)
    assert found.terms["level"] == pytest.approx(min(levels), rel=1e-9)
    entropy = rel_entr(risk, found.value) + rel_entr(1 - risk, 1 - found.value)
    assert not found.vacuous and entropy == pytest.approx(min(levels), rel=1e-6)


def test_members_that_only_rounding_lifts_above_the_margin_are_mistakes():
    """Outputs whose terms cancel: where float64 is above the true value, a margin in between counts."""
    rng, found = np.random.default_rng(4), 0
    flat = ReluNetwork.from_layers([(np.zeros((1, 3)), [0.0])])
    for _ in range(40):
        x = rng.standard_normal(3)
        w = rng.standard_normal(3)
        w -= (w @ x) / (x @ x) * x
        net = ReluNetwork.from_layers([(w[None], [0.0])])
        true = sum(Fraction(float(a)) * Fraction(float(b)) for a, b in zip(w, x, strict=True))
        value = Fraction(float(net(x)[0]))
        margin = float((true + value) / 2)
        if true <= Fraction(margin) < value:
            found += 1
            assert mistakes(flat, net, x[None], 0.1, 1.0, margin)[0].all()
    assert found >= 5


def test_sample_counts_at_the_margins_and_not_at_what_is_concluded():
    """A slope of one falls short by the radius: by more than gamma, by less than 2 gamma."""
    v, X = ReluNetwork.from_layers([([[1.0]], [0.0])]), np.linspace(0.5, 1, 20)[:, None]
    assert not mistakes(v, member(), X, 0.1, 0.12, 0.0)[0].any()
    bound = local_maxima_bound(v, member(), X, radius=0.1, margins=(0.06, 0.5))
    assert bound.terms["empirical risk"] == 1.0 and "0.12" in bound.about


def test_holds_for_the_networks_themselves():
    rng = np.random.default_rng(0)
    v, c = peak(), member()
    for _ in range(3):
        X = np.where(rng.random((4_000, 1)) < 0.1, 0.5, 0.01 * rng.standard_normal((4_000, 1)))
        bound = local_maxima_bound(v, c, X, radius=0.1, margins=(0.05, 0.9), input_norm=1.0)
        true = 0.1  # points at 0.5 are below the maximum within 0.1 by 0.1
        assert bound.formula_value >= true - 1e-3
        assert bound.terms["empirical risk"] == pytest.approx(0.1, abs=0.03)


def test_can_say_something():
    X = 0.01 * np.random.default_rng(1).standard_normal((20_000, 1))
    bound = local_maxima_bound(peak(), member(), X, radius=0.1, margins=(1.0, 0.9), input_norm=0.1)
    assert bound.kind == "probability"
    assert 0 < bound.value < 0.5


def test_printed_tolerances_fail_for_weights_near_a_flat_top():
    """v = 0 makes no mistake at tolerance gamma, nor at 0; a tiny tilt errs everywhere at 0.

    The printed lemma bounds mistakes at tolerance 0 by those at gamma, for all v at once: the tilted v
    has population risk 1 at tolerance 0, none on the sample at gamma, and a divergence like flat v.
    """
    X, eps, gamma = np.linspace(-1, 1, 500)[:, None], 0.1, 0.05
    tilted = ReluNetwork.from_layers([([[1e-9]], [1.0]), ([[1.0]], [0.0])])
    at_zero, _ = mistakes(tilted, member(), X, eps, 0.0, 0.0)
    at_gamma, _ = mistakes(tilted, member(), X, eps, gamma, 0.5)
    at_twice, _ = mistakes(tilted, member(), X, eps, 2 * gamma, 0.0)
    assert at_zero.all()  # printed left side
    assert not at_gamma.any()  # printed right side, without the divergence
    assert not at_twice.any()  # ours


def test_fails_as_rarely_as_it_says_for_a_member_chosen_on_the_sample():
    """Inputs are coins, -1 or 1, so that every c(x) = w x is at most zero with probability 1/2 exactly.

    The sign of w is the luckier one. Values rise by a billionth: mistakes everywhere at the printed
    tolerance 0, nowhere at ours.
    """
    rng, delta, runs, m = np.random.default_rng(3), 0.2, 40, 400
    v = ReluNetwork.from_layers([([[1e-9]], [0.0])])
    failed = without = wrong = printed = 0
    for _ in range(runs):
        X = rng.choice([-1.0, 1.0], (m, 1))
        c = ReluNetwork.from_layers([([[1.0 if X.sum() > 0 else -1.0]], [0.0])])
        bound = local_maxima_bound(v, c, X, radius=0.1, margins=(0.5, 0.9), delta=delta, input_norm=1.1)
        assert bound.kind == "probability" and not bound.vacuous
        risk, level = bound.terms["empirical risk"], bound.terms["level"]
        failed += bound.value < 0.5
        without += risk < 0.5
        wrong += risk_from_level(risk, level / 1024) < 0.5
        printed += bound.value < 1.0  # the risk at tolerance 0
    allowed = binom.ppf(0.9999, runs, delta)
    assert failed <= allowed < wrong  # with a level that is much too small, it would show
    assert without > 0.9 * runs
    assert printed == runs


def test_monotone():
    X = np.zeros((500, 1))
    base = local_maxima_bound(peak(), member(), X, radius=0.1, margins=(0.1, 0.5)).formula_value
    assert local_maxima_bound(peak(), member(), X, radius=0.1, margins=(0.05, 0.5)).formula_value > base
    assert local_maxima_bound(peak(), member(), X, radius=0.1, margins=(0.1, 0.2)).formula_value > base
    assert (
        local_maxima_bound(peak(3.0), member(), X, radius=0.1, margins=(0.1, 0.5)).formula_value > base
    )
    assert (
        local_maxima_bound(peak(), member(), X, radius=0.1, margins=(0.1, 0.5), delta=1e-4).formula_value
        > base
    )
    assert (
        local_maxima_bound(peak(), member(), X[:100], radius=0.1, margins=(0.1, 0.5)).formula_value
        > base
    )


def test_every_term_is_there_and_assumptions_are_marked():
    bound = local_maxima_bound(
        peak(), member(), np.ones((50, 1)), radius=0.1, margins=(0.1, 0.5), input_norm=0.5
    )
    assert {"kl (v)", "kl (c)", "scale (v)", "scale (c)", "success", "level", "empirical risk"} <= set(
        bound.terms
    )
    assert bound.kind == "heuristic"  # inputs are longer than said
    assert any("fixed before" in a.text for a in bound.assumptions)


def test_spectral_complexity():
    net = ReluNetwork.from_layers([(np.diag([3.0, 1.0]), [0, 0]), ([[2.0, 0.0]], [0])])
    assert spectral_complexity(net) == pytest.approx(9 * 4 * (10 / 9 + 1))
    assert spectral_complexity(homogeneous(net)) == pytest.approx(spectral_complexity(net))


@pytest.mark.parametrize(
    "change",
    [{"margins": (0.0, 1.0)}, {"radius": -1.0}, {"delta": 0.0}, {"input_norm": 0.0}],
)
def test_refuses(change):
    with pytest.raises(ValueError, match="must"):
        local_maxima_bound(
            peak(), member(), np.zeros((5, 1)), **({"radius": 0.1, "margins": (0.1, 0.1)} | change)
        )


def test_shapes():
    two = ReluNetwork.from_layers([(np.eye(2), [0, 0])])
    with pytest.raises(ValueError, match="one output"):
        local_maxima_bound(two, member(), np.zeros((5, 2)), radius=0.1, margins=(0.1, 0.1))
    with pytest.raises(ValueError, match="empty"):
        local_maxima_bound(peak(), member(), np.zeros((0, 1)), radius=0.1, margins=(0.1, 0.1))
    with pytest.raises(ValueError, match="one input"):
        ball_maxima(random_net(np.random.default_rng(0), 2), np.zeros((1, 2)), 0.1, exact=True)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_inputs", [2, 50])
def test_normalised_rows_are_no_longer_than_one(dtype, n_inputs):
    X = np.random.default_rng(0).standard_normal((200, n_inputs)).astype(dtype)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    exact = [sum(Fraction(float(entry)) ** 2 for entry in row) for row in X]
    assert max(exact) > 1  # rounding has made some of them too long
    linear = ReluNetwork.from_layers([(np.ones((1, n_inputs)), [1.0])])
    how = {"radius": 0.1, "margins": (0.1, 0.5)}
    bound = local_maxima_bound(linear, linear, X, input_norm=1.0, **how)
    assert {a.status for a in bound.assumptions} == {"assumed", "checked"}
    assert max(exact) <= Fraction(bound.terms["input norm"]) ** 2  # and the bound holds for these, too
    assert bound.terms["input norm"] <= 1 + 100 * np.finfo(dtype).eps
    longer = local_maxima_bound(linear, linear, X * dtype(1.001), input_norm=1.0, **how)
    assert longer.kind == "heuristic" and longer.terms["input norm"] == 1.0
    roomy = local_maxima_bound(linear, linear, X, input_norm=1.5, **how)
    assert roomy.terms["input norm"] == 1.5
