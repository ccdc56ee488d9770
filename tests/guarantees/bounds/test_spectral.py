"""The spectral margin bound holds on simulated samples, is monotone, and says when it is vacuous."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import logsumexp

from pindown import ReluNetwork
from pindown.guarantees.bounds import WeightList, margin_risk, small_kl_inverse, spectral_margin_bound
from pindown.guarantees.bounds._samples import row_norms_up
from pindown.guarantees.bounds.spectral import beta_interval, source_scale
from pindown.guarantees.bounds.weight_noise import norm_level


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


@pytest.mark.parametrize("variant", ["sharp", "corrected"])
def test_monotone(variant):
    X, y = sample(np.random.default_rng(1), 2000, noise=0.0)
    net = separator()
    base = spectral_margin_bound(net, X, y, variant=variant).formula_value
    assert spectral_margin_bound(net, X, y, variant=variant, delta=0.001).formula_value > base
    assert (
        spectral_margin_bound(net, np.vstack([X, X]), np.append(y, y), variant=variant).formula_value
        < base
    )
    noisy = y.copy()
    noisy[:600] = 1 - noisy[:600]
    assert spectral_margin_bound(net, X, noisy, variant=variant).formula_value > base


def test_scaling_inputs_changes_nothing_in_the_sharp_form():
    X, y = sample(np.random.default_rng(2), 500)
    ours, theirs = (spectral_margin_bound(separator(), s * X, y).formula_value for s in (1.0, 1000.0))
    assert ours == pytest.approx(theirs, rel=0.05)


def test_sharp_is_below_the_corrected_source():
    X, y = sample(np.random.default_rng(3), 2000, noise=0.0)
    sharp, corrected = (
        spectral_margin_bound(separator(), X, y, variant=f) for f in ("sharp", "corrected")
    )
    assert sharp.value < 0.5
    assert corrected.formula_value > 3 * sharp.formula_value


def test_printed_lower_end_of_the_grid_is_too_high():
    """A network below the printed end still has margins above gamma / 2; below ours none has."""
    gamma, B, d = 1.0, 1.0, 2
    printed, _ = beta_interval(gamma, 100, d, B, variant="as_printed")
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
    bound = spectral_margin_bound(net, X, y, variant="as_printed", margin=1.0)
    assert bound.kind == "heuristic"
    assert bound.terms["value at beta"] > 10 * bound.formula_value
    assert any("grid" in a.text and a.status == "violated" for a in bound.assumptions)
    strict = spectral_margin_bound(net, X, y, variant="corrected", margin=1.0)
    assert strict.value == 1.0 and strict.vacuous and strict.kind == "probability"


def test_choosing_the_margin_is_paid_for_unlike_printed():
    X, y = sample(np.random.default_rng(5), 500)
    free = spectral_margin_bound(separator(), X, y, variant="corrected", margin=0.5)
    paid = spectral_margin_bound(separator(), X, y, variant="corrected")
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
    # So ours pays for the grid: each of its margins is a prior of its own.
    net = WeightList("given", tuple(0.5 * rng.standard_normal(s) for s in ((6, 3), (2, 6))))
    X = rng.standard_normal((m, 3))
    free = spectral_margin_bound(net, X, net(X).argmax(axis=1), variant="corrected")
    margin = free.terms["margin"]
    fixed = spectral_margin_bound(net, X, net(X).argmax(axis=1), variant="corrected", margin=margin)
    assert free.terms["priors"] == K * fixed.terms["priors"]
    assert free.terms["log terms"] - fixed.terms["log terms"] == pytest.approx(math.log(K))


def test_scale_of_the_source_is_admissible():
    """At a grid point within a factor of the norm, both conditions of the proof hold for the network."""
    d, h, B, gamma = 3, 10, 2.0, 1.0
    for beta in (0.1, 0.3, 0.9, 2.0):
        for point in (beta * (1 - 1 / d), beta * (1 + 1 / d)):
            t = source_scale(point, gamma, d, h, B) * math.sqrt(2 * h * math.log(4 * d * h))
            assert t <= beta / d * (1 + 1e-12)
            assert math.e * B * d * beta ** (d - 1) * t <= gamma / 4 * (1 + 1e-12)


def written_out(weights, sample, G, Z, delta, distances, extra=0.0):
    """Return risk, scale and level of the sharp form, with the scale from a root finder."""
    margins, lengths, m = sample
    s = [np.linalg.norm(W, 2) for W in weights.matrices]
    d = len(s)
    T = [sum(map(math.sqrt, W.shape)) + math.sqrt(2 * math.log(d / (1 - Z))) for W in weights.matrices]

    def growth(sigma):
        return math.prod(a + sigma * t for a, t in zip(s, T, strict=True)) - math.prod(s) - G

    i = math.floor(16 * math.log2(brentq(growth, 0, 1e3, xtol=1e-16, rtol=1e-14)))
    sigma = 2 ** (i / 16)
    kl = math.log(len(distances)) - logsumexp([-r * r / (2 * sigma**2) for r in distances])
    truncated = (kl - Z * math.log(Z) - (1 - Z) * math.log(1 - Z)) / Z
    cost = math.log(2 * math.sqrt(m) / delta) + math.log(2.3 * (1 + abs(i)) ** 2) + extra
    return np.mean(margins <= G * lengths), sigma, (truncated + cost) / m


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("around", [False, True])
def test_sharp_form_written_out(outputs, around):
    """A margin moves by sqrt 2 times what two outputs move, and by as much as one output moves."""
    rng = np.random.default_rng(10)
    X, y = sample(rng, 1500)
    X *= rng.uniform(0.5, 2, (1500, 1))
    weights = WeightList("given", tuple(np.asarray(W.weight) for W in separator().layers))
    if outputs == 1:
        weights = WeightList("given", (weights.matrices[0], weights.matrices[1][:1]))
    scores = weights(X)
    margins = np.where(y == 0, 1, -1) * (scores[:, 0] - scores[:, 1] if outputs == 2 else scores[:, 0])
    given = {}
    distances = [np.linalg.norm(weights.vector)]
    if around:
        centres = [weights.shifted(weights.vector + t) for t in (0.05, 0.06, 3.0)]
        distances = [np.linalg.norm(weights.vector - c.vector) for c in centres]
        given = {"centres": centres, "n_choices": 7}
    labels = y if outputs == 2 else 1 - y
    found = spectral_margin_bound(weights, X, labels, delta=0.1, representative="given", **given)
    lengths = math.sqrt(outputs) * np.linalg.norm(X, axis=1)
    extra = math.log(7) if around else 0.0

    def at(G, Z):
        return written_out(weights, (margins, lengths, 1500), G, Z, 0.1, distances, extra)

    G, Z = found.terms["normalised margin"], found.terms["success"]
    risk, sigma, level = at(G, Z)
    assert found.terms["scale"] == pytest.approx(sigma)
    assert found.terms["empirical risk"] == pytest.approx(risk)
    assert found.terms["level"] == pytest.approx(level, rel=1e-8)
    assert (
        found.value == pytest.approx(float(small_kl_inverse(risk, level)), rel=1e-6) and found.value < 1
    )
    quantiles = np.quantile(margins / lengths, np.arange(16) / 16)
    others = [at(g * (1 - 1e-9), z) for g in quantiles[quantiles > 0] for z in (0.5, 0.9, 0.99, 0.999)]
    assert found.value <= min(small_kl_inverse(r, c) for r, _, c in others) * (1 + 1e-6)


def test_copies_around_centres_are_paid_for_and_scaled_alike():
    """Layers scaled by 9 and 1/9, centres too: the copy of equal norms sees what was seen before."""
    rng = np.random.default_rng(11)
    X, y = sample(rng, 500)
    weights = WeightList("given", tuple(np.asarray(W.weight) for W in separator().layers))
    near = weights.shifted(weights.vector + 0.01 * rng.standard_normal(8))

    def scaled(net):
        return WeightList("given", (9 * net.matrices[0], net.matrices[1] / 9))

    one, other = (
        spectral_margin_bound(net, X, y, centres=[centre], representative="layers")
        for net, centre in ((weights, near), (scaled(weights), scaled(near)))
    )
    assert other.formula_value == pytest.approx(one.formula_value, rel=1e-6)
    two = spectral_margin_bound(scaled(weights), X, y, centres=[scaled(near)])
    assert two.terms["log terms"] - other.terms["log terms"] == pytest.approx(math.log(2))


@pytest.mark.parametrize("variant", ["corrected", "as_printed"])
def test_source_forms_written_out(variant):
    """Three layers of different norms, six inputs, three units, so that h and the copy matter."""
    rng = np.random.default_rng(12)
    shapes, m, B, delta, d = ((3, 6), (3, 3), (2, 3)), 10_000, 2.0, 0.1, 3
    weights = WeightList("given", tuple(rng.standard_normal(s) for s in shapes))
    norms = [np.linalg.norm(W, 2) for W in weights.matrices]
    beta = math.prod(norms) ** (1 / 3)
    margin = 1.05**-3 * 2 * math.sqrt(2) * B * beta**3  # beta is five percent above its lower end
    X = rng.standard_normal((m, 6))
    X *= B * rng.random((m, 1)) / np.linalg.norm(X, axis=1, keepdims=True)
    y = rng.integers(0, 2, m)
    scores = weights(X)[np.arange(m)[:, None], np.column_stack([y, 1 - y])]
    found = spectral_margin_bound(
        weights, X, y, delta=delta, variant=variant, margin=margin, input_norm=B, representative="given"
    )
    printed = variant == "as_printed"
    low = (margin / ((2 if printed else math.sqrt(8)) * B)) ** (1 / 3)
    high = (math.sqrt(m - 1) * margin / (4 * math.exp(3 - 2 / (d - 1)) * B)) ** (1 / 3)
    if printed:
        n_points = math.ceil(d * (high - low) / (2 * low))
        points = low + (np.arange(n_points) + 0.5) * (high - low) / n_points
    else:
        n_points = math.ceil(math.log(high / low) / math.log((d + 1) / (d - 1)))
        points = low * 2.0 ** np.arange(n_points) * (1 + 1 / d)
    assert n_points == 2
    point, h = points[np.argmin(abs(points - beta))], 3 if printed else 6
    assert found.terms["beta"] == pytest.approx(point) and found.terms["priors"] == n_points
    reach = min(margin / (4 * math.e**2 * B * point**2), point / math.sqrt(math.e))
    sigma = reach / d / norm_level(h, h, 1 / (2 * d), variant="as_printed")
    squares = sum(
        np.sum(W**2) * (1 if printed else beta / s) ** 2
        for W, s in zip(weights.matrices, norms, strict=True)
    )
    assert found.terms["scale"] == pytest.approx(sigma)
    assert found.terms["kl"] == pytest.approx(squares / (2 * sigma**2))
    risk = np.mean(scores[:, 0] - scores[:, 1] <= margin / 2)
    cost = math.log(3 * m / delta) + math.log(n_points)
    value = risk + math.sqrt((squares / (2 * sigma**2) + cost) / (m - 1))
    assert found.formula_value == pytest.approx(value, rel=1e-6)


def test_margins_count_as_mistakes_up_to_half():
    """Outputs that win by 0.3 are wrong at a margin of one and right at a margin of a half."""
    X, y = np.full((50, 2), [0.15, 0.0]), np.zeros(50, int)
    for margin, risk in ((1.0, 1.0), (0.61, 1.0), (0.5, 0.0)):
        for variant in ("corrected", "as_printed"):
            found = spectral_margin_bound(separator(), X, y, variant=variant, margin=margin)
            assert found.terms["empirical risk"] == risk


def test_norms_of_rows_are_rounded_up():
    rows = np.random.default_rng(13).standard_normal((300, 40))
    found = row_norms_up(np.vstack([rows, 1e-200 * rows[:1], 1e200 * rows[:1]]))
    for row, norm in zip(np.vstack([rows, 1e-200 * rows[:1], 1e200 * rows[:1]]), found, strict=True):
        square = sum(Fraction(float(x)) ** 2 for x in row)
        assert square <= Fraction(float(norm)) ** 2 <= square * (1 + Fraction(1, 10**12))


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
        {"variant": "other"},
        {"representative": "other"},
        {"variant": "as_printed"},
        {"delta": 0.0},
        {"variant": "corrected", "margin": -1.0},
        {"variant": "corrected", "centres": []},
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
        spectral_margin_bound(linear, np.ones((5, 2)), np.zeros(5, int), variant="corrected")


def test_zero_network_and_zero_input_are_vacuous():
    net = ReluNetwork.from_layers([(np.zeros((2, 2)), [0, 0]), (np.zeros((2, 2)), [0, 0])])
    for variant in ("sharp", "corrected"):
        assert spectral_margin_bound(
            net, np.zeros((4, 2)), [0, 1, 0, 1], variant=variant, input_norm=1.0
        ).vacuous


def test_normalised_rows_are_no_longer_than_one():
    X = np.random.default_rng(0).standard_normal((200, 2))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = (X[:, 0] < 0).astype(int)
    unit = spectral_margin_bound(separator(), X, y, variant="corrected", input_norm=1.0)
    assert all(a.status != "violated" for a in unit.assumptions)
    short = spectral_margin_bound(separator(), X, y, variant="corrected", input_norm=1.0 - 1e-9)
    assert any("no input is longer" in a.text and a.status == "violated" for a in short.assumptions)
