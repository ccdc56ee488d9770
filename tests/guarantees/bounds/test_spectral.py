"""The spectral margin bound holds on simulated samples, is monotone, and says when it is vacuous."""

import math

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.guarantees.bounds import WeightList, margin_risk, spectral_margin_bound
from pindown.guarantees.bounds.spectral_source import beta_interval, source_scale


def separator(scale=1.0):
    """Two outputs that tell the sign of the first coordinate."""
    W = scale * np.array([[1.0, 0.0], [-1.0, 0.0]])
    return ReluNetwork.from_layers([(W, [0, 0]), (np.array([[1.0, -1.0], [-1.0, 1.0]]), [0, 0])])


def sample(rng, m, noise=0.1):
    side = rng.integers(0, 2, m)
    X = np.column_stack(
        [np.where(side, -1.0, 1.0) * rng.uniform(0.5, 1, m), 0.1 * rng.standard_normal(m)]
    )
    wrong = rng.random(m) < noise
    return X, np.where(wrong, 1 - side, side)


def test_holds_for_the_noisy_networks_it_is_about():
    rng = np.random.default_rng(0)
    net, below = separator(), 0
    X_new, y_new = sample(rng, 20_000)
    for _ in range(5):
        X, y = sample(rng, 3000)
        bound = spectral_margin_bound(net, X, y, delta=0.2)
        assert not bound.vacuous
        weights = WeightList("given", tuple(W.weight for W in net.layers))
        risks = [
            margin_risk(
                weights.shifted(weights.vector + bound.terms["scale"] * rng.standard_normal(8))(X_new),
                y_new,
            )
            for _ in range(5)
        ]
        below += np.mean(risks) <= bound.value
    assert below == 5


@pytest.mark.parametrize("form", ["sharp", "corrected"])
def test_monotone(form):
    X, y = sample(np.random.default_rng(1), 2000, noise=0.0)
    net = separator()
    base = spectral_margin_bound(net, X, y, form=form).formula_value
    assert spectral_margin_bound(net, X, y, form=form, delta=0.001).formula_value > base
    assert spectral_margin_bound(net, np.vstack([X, X]), np.append(y, y), form=form).formula_value < base
    noisy = y.copy()
    noisy[:600] = 1 - noisy[:600]
    assert spectral_margin_bound(net, X, noisy, form=form).formula_value > base


def test_scaling_inputs_changes_nothing_in_the_sharp_form():
    X, y = sample(np.random.default_rng(2), 500)
    ours, theirs = (spectral_margin_bound(separator(), s * X, y).formula_value for s in (1.0, 1000.0))
    assert ours == pytest.approx(theirs, rel=0.05)


def test_sharp_is_below_the_corrected_source():
    X, y = sample(np.random.default_rng(3), 2000, noise=0.0)
    sharp, corrected = (spectral_margin_bound(separator(), X, y, form=f) for f in ("sharp", "corrected"))
    assert sharp.value < 0.5
    assert corrected.formula_value > 3 * sharp.formula_value


def test_printed_lower_end_of_the_grid_is_too_high():
    """A network below the printed end still has margins above gamma / 2; below ours none has."""
    gamma, B, d = 1.0, 1.0, 2
    printed, _ = beta_interval(gamma, 100, d, B, printed=True)
    ours, _ = beta_interval(gamma, 100, d, B)
    assert ours < printed
    for beta, reached in ((0.999 * printed, True), (0.999 * ours, False)):
        out = beta / math.sqrt(2)  # outputs (z, -z) with Euclidean norm beta**2: the largest margin
        net = WeightList("given", (np.array([[beta]]), np.array([[out], [-out]])))
        margin = float(net(np.array([[B]]))[0] @ [1, -1])
        assert (margin > gamma / 2) == reached


def test_printed_form_uses_a_grid_point_far_from_the_network_and_says_so():
    """Glorot weights, depth 3, width 80: beta is far above the printed grid."""
    rng = np.random.default_rng(4)
    shapes = [(80, 20), (80, 80), (2, 80)]
    net = WeightList("given", tuple(rng.uniform(-1, 1, s) * math.sqrt(6 / sum(s)) for s in shapes))
    X = rng.standard_normal((300, 20))
    y = net(X).argmax(axis=1)
    bound = spectral_margin_bound(net, X, y, form="printed", margin=1.0)
    assert bound.kind == "heuristic"
    assert bound.terms["value at beta"] > 10 * bound.formula_value
    assert any("grid" in a.text and a.status == "violated" for a in bound.assumptions)
    strict = spectral_margin_bound(net, X, y, form="corrected", margin=1.0)
    assert strict.value == 1.0 and strict.vacuous and strict.kind == "probability"


def test_choosing_the_margin_is_paid_for_unlike_printed():
    X, y = sample(np.random.default_rng(5), 500)
    free = spectral_margin_bound(separator(), X, y, form="corrected", margin=0.5)
    paid = spectral_margin_bound(separator(), X, y, form="corrected")
    assert paid.terms["priors"] == pytest.approx(146 * free.terms["priors"])
    assert any("paid for" in a.text and a.status == "checked" for a in paid.assumptions)


def test_choosing_a_margin_on_the_sample_for_free_breaks_a_bound():
    """At a fixed margin the bound holds, at the luckiest of many it fails too often."""
    rng = np.random.default_rng(6)
    m, K, delta = 200, 146, 0.2
    slack = math.sqrt(math.log(1 / delta) / (2 * m))
    gaps = 0.5 - rng.binomial(m, 0.5, size=(2000, K)) / m  # risk minus empirical risk at K margins
    assert np.mean(gaps[:, 0] > slack) <= delta
    assert np.mean(gaps.max(axis=1) > slack) > 0.9
    assert np.mean(gaps.max(axis=1) > math.sqrt(math.log(K / delta) / (2 * m))) <= delta


def test_scale_of_the_source_is_admissible():
    """At a grid point within a factor of the norm, both conditions of the proof hold for the network."""
    d, h, B, gamma = 3, 10, 2.0, 1.0
    for beta in (0.3, 0.9, 2.0):
        for point in (beta * (1 - 1 / d), beta * (1 + 1 / d)):
            t = source_scale(point, gamma, d, h, B) * math.sqrt(2 * h * math.log(4 * d * h))
            assert t <= beta / d * (1 + 1e-12)
            assert math.e * B * d * beta ** (d - 1) * t <= gamma / 4 * (1 + 1e-12)


def test_centres_near_the_network_help():
    rng = np.random.default_rng(7)
    X, y = sample(rng, 500)
    weights = WeightList("given", tuple(layer.weight for layer in separator(3.0).layers))
    near = weights.shifted(weights.vector + 0.01 * rng.standard_normal(8))
    far = weights.shifted(weights.vector + 100.0)
    around = spectral_margin_bound(weights, X, y, centres=[near])
    assert around.formula_value < spectral_margin_bound(weights, X, y).formula_value
    both = spectral_margin_bound(weights, X, y, centres=[near, far], n_choices=314)
    assert around.formula_value < both.formula_value < around.formula_value + 0.2


@pytest.mark.parametrize(
    "change",
    [
        {"form": "other"},
        {"representative": "other"},
        {"form": "printed"},
        {"delta": 0.0},
        {"form": "corrected", "margin": -1.0},
        {"form": "corrected", "centres": []},
        {"centres": []},
    ],
)
def test_refuses(change):
    X, y = sample(np.random.default_rng(8), 20)
    with pytest.raises(ValueError, match=r"must|takes|belong"):
        spectral_margin_bound(separator(), X, y, **change)


def test_bad_samples():
    net = separator()
    with pytest.raises(ValueError, match="at least 2 rows"):
        spectral_margin_bound(net, [[1.0, 0.0]], [0])
    with pytest.raises(ValueError, match="one class per row"):
        spectral_margin_bound(net, np.ones((3, 2)), [0, 1])
    linear = ReluNetwork.from_layers([(np.eye(2), [0, 0])])
    assert spectral_margin_bound(linear, np.ones((5, 2)), np.zeros(5, int)).vacuous
    with pytest.raises(ValueError, match="at least 2 layers"):
        spectral_margin_bound(linear, np.ones((5, 2)), np.zeros(5, int), form="corrected")


def test_zero_network_and_zero_input_are_vacuous():
    net = ReluNetwork.from_layers([(np.zeros((2, 2)), [0, 0]), (np.zeros((2, 2)), [0, 0])])
    for form in ("sharp", "corrected"):
        assert spectral_margin_bound(
            net, np.zeros((4, 2)), [0, 1, 0, 1], form=form, input_norm=1.0
        ).vacuous


def test_normalised_rows_are_no_longer_than_one():
    X = np.random.default_rng(0).standard_normal((200, 2))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = (X[:, 0] < 0).astype(int)
    unit = spectral_margin_bound(separator(), X, y, form="corrected", input_norm=1.0)
    assert all(a.status != "violated" for a in unit.assumptions)
    short = spectral_margin_bound(separator(), X, y, form="corrected", input_norm=1.0 - 1e-9)
    assert any("no input is longer" in a.text and a.status == "violated" for a in short.assumptions)
