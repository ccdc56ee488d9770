"""The certificate holds as often as it says, uses nothing it must not see, and is small where it can."""

import copy
from functools import partial

import numpy as np
import pytest
import torch
from scipy.special import rel_entr
from scipy.stats import binom, norm
from torch import nn

from pindown.guarantees import Bound
from pindown.guarantees import certify as certify_by
from pindown.guarantees.certificate import run as run_module

certify = partial(certify_by, method="pac-bayes")
QUICK = {"learning_rate": 0.02, "epochs": 15, "steps": 20, "draws": 5000}


def net(d=2, hidden=8, k=2):
    return nn.Sequential(nn.Linear(d, hidden), nn.ReLU(), nn.Linear(hidden, k))


def halves(n=600, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 2))
    return X, (X[:, 0] > X[:, 1]).astype(int)


def test_on_coin_flips_the_claim_is_below_one_half_at_most_as_often_as_delta():
    # Labels that have nothing to do with the inputs: every classifier has risk one half, exactly.
    delta, runs, failures = 0.2, 30, 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(60, 3)), rng.integers(2, size=60)
        y[:2] = 0, 1
        certificate = certify(
            net(3, 16),
            X,
            y,
            delta,
            learning_rate=0.02,
            epochs=15,
            steps=5,
            draws=500,
            random_state=seed,
            noise=0.1,
        )
        failures += certificate.value < 0.5
    assert failures <= binom.ppf(0.999, runs, delta)


def true_risk(posterior, flips, draws=20_000):
    """Risk of random half-lines on x ~ N(0, 1), y = [x > 0] flipped with a known probability."""
    rng = np.random.default_rng(1)
    w, b = (
        posterior.means[name].numpy().ravel()[0]
        + posterior.scales[name].numpy().ravel()[0] * rng.normal(size=draws)
        for name in ("weight", "bias")
    )
    between = np.abs(norm.cdf(-b / w) - 0.5)
    disagree = np.where(w > 0, between, 1.0 - between)
    return float(np.mean(flips + (1 - 2 * flips) * disagree))


def test_true_risk_of_random_half_lines_is_exceeded_as_rarely_as_delta():
    delta, runs, flips, failures, values = 0.3, 30, 0.1, 0, []
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(80, 1))
        y = (x[:, 0] > 0) ^ (rng.random(80) < flips)
        found = certify(
            nn.Linear(1, 1),
            x,
            y,
            delta,
            learning_rate=0.1,
            epochs=15,
            steps=10,
            draws=1000,
            noise=0.1,
            random_state=seed,
        )
        values.append(found.value)
        failures += found.value < true_risk(found.posterior, flips)
    assert failures <= binom.ppf(0.999, runs, delta)
    assert np.mean(values) < 0.45  # it says something all the same


def test_labels_of_the_certifying_part_decide():
    X, y = halves()
    honest = certify(net(), X, y, **QUICK)
    assert honest.value < 0.15 and not honest.vacuous
    poisoned = y.copy()
    poisoned[honest.rows] = 1 - poisoned[honest.rows]
    # The prior is the same network, and wrong everywhere: nothing small may be claimed.
    assert certify(net(), X, poisoned, **QUICK).value > 0.8
    shuffled = y.copy()
    shuffled[honest.rows] = np.random.default_rng(1).permutation(shuffled[honest.rows])
    assert certify(net(), X, shuffled, **QUICK).value > 0.45


def test_the_prior_does_not_change_with_the_certifying_part():
    X, y = halves()
    one = certify(net(), X, y, **QUICK)
    other_X, other_y = X.copy(), y.copy()
    other_X[one.rows], other_y[one.rows] = -X[one.rows], 1 - y[one.rows]
    two = certify(net(), other_X, other_y, **QUICK)
    np.testing.assert_array_equal(one.rows, two.rows)
    for a, b in zip(one.network.parameters(), two.network.parameters(), strict=True):
        assert torch.equal(a, b)
    assert one.posterior.prior_scales == two.posterior.prior_scales


def test_weights_of_the_module_are_forgotten_unless_given():
    X, y = halves()
    perfect = nn.Linear(2, 2)
    with torch.no_grad():
        perfect.weight.copy_(torch.tensor([[-3.0, 3.0], [3.0, -3.0]]))
        perfect.bias.zero_()
    untrained = certify(perfect, X, y, epochs=0, steps=0, draws=2000)
    given = certify(perfect, X, y, prior="given", steps=0, draws=100_000)
    assert given.terms["error of the prior network"] == 0.0 and given.value < 0.04
    assert untrained.terms["error of the prior network"] > 0.01
    assert "never saw" in str(given) and given.terms["n"] == 540


def test_same_seed_same_answer_and_nothing_else_is_touched():
    X, y = halves(200)
    module, threads = net(), torch.get_num_threads()
    before, state = copy.deepcopy(module.state_dict()), torch.get_rng_state()
    one, two = (certify(module, X, y, random_state=3, **QUICK) for _ in range(2))
    other = certify(module, X, y, random_state=4, **QUICK)
    assert one.value == two.value and one.terms == two.terms
    assert other.terms["counted risk"] != one.terms["counted risk"]
    assert torch.get_num_threads() == threads and torch.equal(torch.get_rng_state(), state)
    assert module.training
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())


def test_the_certificate_from_its_terms():
    """Errors counted over draws, their confidence limit, the divergence and the inverse: each anew."""
    X, y = halves(400)
    delta = 0.1
    found = certify(net(), X, y, delta, prior_share=0.3, epochs=1, noise=0.5, steps=80, draws=40_000)
    terms, n = found.terms, len(found.rows)
    assert terms["n"] == n == 280 and terms["prior examples"] == 120
    kl = sum(
        float(
            torch.distributions.kl_divergence(
                torch.distributions.Normal(mean.double(), found.posterior.scales[name].double()),
                torch.distributions.Normal(p.detach().double(), found.posterior.prior_scales[name]),
            ).sum()
        )
        for name, p in found.network.named_parameters()
        for mean in [found.posterior.means[name]]
    )
    assert kl == pytest.approx(terms["kl"], rel=1e-5) and kl > 0.5

    def nats(q, p):
        return float(rel_entr(q, p) + rel_entr(1 - q, 1 - p))

    counted, above = terms["counted risk"], terms["counted risk, bounded"]
    assert terms["draws"] * nats(counted, above) == pytest.approx(-np.log(0.1 * delta))
    level = kl + np.log(2 * np.sqrt(n) / (0.9 * delta))
    assert n * nats(above, found.value) == pytest.approx(level, rel=1e-6)
    rows = np.tile(found.rows, 100)
    fresh = np.mean(found.posterior.predict(X[rows], random_state=5) != y[rows])
    assert counted == pytest.approx(fresh, abs=5 * np.sqrt(counted / len(rows)) + 1e-3)
    held_out = binom.cdf(terms["error of the prior network"] * n, n, found.test_set.value)
    assert held_out == pytest.approx(delta, rel=1e-6)
    assert len(set(found.rows.tolist())) == n


def test_smaller_delta_larger_value_and_never_below_the_count():
    X, y = halves(300)
    found = [certify(net(), X, y, delta, epochs=15, steps=0, draws=5000) for delta in (0.2, 0.05, 1e-3)]
    assert found[0].value < found[1].value < found[2].value
    for certificate in found:
        terms = certificate.terms
        assert terms["counted risk"] < terms["counted risk, bounded"] < certificate.value


def test_two_examples_are_honestly_vacuous():
    certificate = certify(net(), [[0.0, 1.0], [1.0, 0.0]], [0, 1], **QUICK)
    assert certificate.value > 0.9
    assert certificate.terms["n"] == 1.0


def test_held_out_errors_bound_the_network_that_is_returned():
    X, y = halves()
    found = certify_by(net(), X, y, prior_share=0.5, **QUICK)  # by default
    with torch.no_grad():
        held_out = torch.tensor(X[found.rows], dtype=torch.float32)
        errors = int((found.network(held_out).argmax(1).numpy() != y[found.rows]).sum())
    assert binom.cdf(errors, len(found.rows), found.value) == pytest.approx(0.05, rel=1e-6)
    assert isinstance(found, Bound) and found.posterior is None
    assert found.value == certify(net(), X, y, **QUICK).test_set.value
    assert found.value == certify_by(net(), X, y, method="holdout", prior_share=0.5, **QUICK).value


@pytest.mark.parametrize(("n", "held_out"), [(40, 20), (900, 300), (2500, 500)])
def test_what_is_held_out_depends_on_the_number_of_examples_alone(n, held_out):
    X, y = halves(n)
    assert len(certify_by(net(), X, y, epochs=1).rows) == held_out


def test_given_weights_are_held_against_all_examples():
    X, y = halves(200)
    module = net()
    found = certify_by(module, X, y, prior="given")
    with torch.no_grad():
        errors = int((module(torch.tensor(X, dtype=torch.float32)).argmax(1).numpy() != y).sum())
    assert len(found.rows) == 200
    assert binom.cdf(errors, 200, found.value) == pytest.approx(0.05, rel=1e-6)
    assert "never saw these examples" in str(found)


def test_one_score_and_signs_as_labels():
    X, y = halves()
    found = certify(net(k=1), X, 2 * y - 1, **QUICK)
    assert found.value < 0.15
    fresh, labels = halves(4000, seed=9)
    assert np.mean(found.posterior.predict(fresh) != labels) < found.value


def test_convolutions_are_certified_with_whole_draws():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 1, 5, 5))
    y = (X.mean(axis=(1, 2, 3)) > 0).astype(int)
    conv = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(36, 2)
    )
    found = certify(conv, X, y, epochs=30, steps=10, draws=2000)
    assert not found.posterior.local and found.value < 0.6
    assert found.terms["draws"] >= 2000
    assert found.posterior.draw(1)(torch.zeros(2, 1, 5, 5)).shape == (2, 2)


def test_a_frozen_part_stays_and_is_named():
    X, y = halves(200)
    module = net()
    module[0].requires_grad_(False)
    found = certify(module, X, y, **QUICK)
    assert torch.equal(found.network[0].weight, module[0].weight)
    assert "frozen parameters never saw" in str(found)


def test_the_posterior_learns_what_the_prior_did_not():
    X, y = halves(2000)
    blind = {"epochs": 0, "noise": 1.0, "draws": 20_000}
    prior, moved = (certify(net(), X, y, steps=steps, **blind) for steps in (0, 300))
    assert prior.terms["kl"] < 1e-9 and prior.value > 0.4
    assert moved.terms["kl"] > 5.0 and moved.value < 0.25


def test_budget_and_interrupts_leave_a_certificate(monkeypatch):
    X, y = halves()
    assert certify(net(), X, y, budget=0.05, draws=2000).interrupted
    looks = []

    def look(*args):
        looks.append(args)
        if len(looks) == 2:
            raise KeyboardInterrupt
        return 0.5

    monkeypatch.setattr(run_module.Run, "_look", look)
    with pytest.warns(UserWarning, match="best posterior so far"):
        found = certify(net(), X, y, **{**QUICK, "steps": 40})
    assert found.interrupted and found.value < 0.2


def test_an_interrupt_while_training_certifies_the_network_so_far(monkeypatch):
    X, y = halves()
    real, calls = nn.functional.cross_entropy, []

    def stop_after(*args):
        calls.append(1)
        if len(calls) > 60:
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(nn.functional, "cross_entropy", stop_after)
    with pytest.warns(UserWarning, match="the network so far"):
        found = certify(net(), X, y, **{**QUICK, "epochs": 100})
    assert found.interrupted and found.terms["kl"] < 1e-6 and found.value < 0.5


X0, Y0 = halves(20)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.full((20, 2), np.nan), Y0, "finite"),
        (X0 * 1e300, Y0, "finite"),
        (X0, np.zeros(20), "two classes"),
        (X0, Y0[:5], "one class per row"),
        (X0[:, 0], Y0, "shape"),
        (X0[:1], Y0[:1], "at least 2"),
        (X0, Y0 + 0.5, "integers"),
        (X0, np.where(Y0, np.nan, 0.0), "integers"),
        (X0, Y0 + 1, "classes, 0 to 1"),
        (X0, Y0 - 2, "0 to k - 1"),
        (np.ones((20, 3)), Y0, "does not take X"),
    ],
)
def test_bad_examples(X, y, message):
    with pytest.raises(ValueError, match=message):
        certify(net(), X, y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"delta": 0}, "delta"),
        ({"method": "magic"}, "method"),
        ({"prior": "mine"}, "prior"),
        ({"prior_share": 1.0}, "prior_share"),
        ({"steps": -1}, "steps"),
        ({"draws": 0}, "draws"),
        ({"budget": 0}, "budget"),
        ({"dropout": 1.0}, "dropout"),
        ({"learning_rate": 1e30}, "diverged"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        certify(net(), X0, Y0, **settings)


def test_words_are_no_labels():
    with pytest.raises(TypeError, match="real numbers"):
        certify(net(), X0, ["a", "b"] * 10)


@pytest.mark.parametrize(("n", "wanted"), [("digits", 0.15), ("cancer", 0.15)])
def test_small_real_data_are_not_vacuous(n, wanted):
    from sklearn.datasets import load_breast_cancer, load_digits

    X, y = (load_digits if n == "digits" else load_breast_cancer)(return_X_y=True)
    module = nn.Sequential(
        nn.BatchNorm1d(X.shape[1], affine=False),
        nn.Linear(X.shape[1], 32),
        nn.ReLU(),
        nn.Linear(32, 10 if n == "digits" else 2),
    )
    found = certify(module, X, y, epochs=30, steps=50, draws=100_000)
    assert found.value < wanted and found.kind == "probability"
