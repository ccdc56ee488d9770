"""The last correction: onto the target, the shortest way, and only from nearby."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from pindown.learn.mutual_autoencoder import MutualAutoencoder, linear_gaussian_optimum
from pindown.learn.mutual_autoencoder._networks import (
    CategoricalDecoder,
    GaussianDecoder,
    GaussianEncoder,
    MixtureGuess,
    Numbers,
)
from pindown.learn.mutual_autoencoder.information import (
    differentiable_information,
    exact_information,
    quick_information,
)
from pindown.learn.mutual_autoencoder.training import Networks, drop_idle_code, project_onto_target
from tests.learn.mutual_autoencoder.test_information import seeded, straight


def told_about(kind):
    """A decoder with some tenths of a nat."""
    if kind == "numbers":
        return straight([[0.8]], 0.6).requires_grad_(True)
    decoder = CategoricalDecoder([6], 1, (8,), seeded()).double()
    with torch.no_grad():
        decoder.body[-1].weight.mul_(4.0)
    return decoder


@pytest.mark.parametrize("kind", ["numbers", "symbols"])
@pytest.mark.parametrize("miss", [-0.1, 0.1])
def test_ends_on_the_target(kind, miss):
    decoder = told_about(kind)
    before = [p.detach().clone() for p in decoder.parameters()]
    target = quick_information(decoder) - miss
    project_onto_target(decoder, target)
    assert exact_information(decoder)[0] == pytest.approx(target, abs=2e-3)
    moved = sum(
        float(((a.detach() - b) ** 2).sum()) for a, b in zip(decoder.parameters(), before, strict=True)
    )
    assert 0 < moved < 1.0


def test_a_large_miss_is_left_alone():
    decoder = told_about("symbols")
    before = [p.detach().clone() for p in decoder.parameters()]
    project_onto_target(decoder, quick_information(decoder) + 0.5)
    assert all(torch.equal(a, b) for a, b in zip(decoder.parameters(), before, strict=True))


def test_nothing_to_move_along_is_no_error():
    """A decoder that ignores its code has information 0 and no slope there."""
    decoder = straight([[0.0]], 1.0).requires_grad_(True)
    project_onto_target(decoder, 0.1)
    assert quick_information(decoder) == pytest.approx(0.0, abs=1e-9)


def test_the_derivative_against_the_closed_form():
    """I = 0.5 log(1 + a^2 / s^2): dI/da = a / (a^2 + s^2)."""
    decoder = straight([[0.7]], 0.5).requires_grad_(True)
    assert isinstance(decoder, GaussianDecoder)
    value = differentiable_information(decoder)
    assert float(value.detach()) == pytest.approx(0.5 * math.log1p(0.49 / 0.25), abs=1e-8)
    (slope,) = torch.autograd.grad(value, [decoder.body[0].weight])
    assert float(slope[0, 0]) == pytest.approx(0.7 / (0.49 + 0.25), abs=1e-6)


QUICK = {"penalty": 0.0, "max_iter": 150, "learning_rate": 2e-2, "batch_size": 128, "random_state": 0}


def normal(n=1000):
    x = np.random.default_rng(0).standard_normal((n, 1))
    return (x - x.mean()) / x.std()


def analytic(information):
    """The best model of a standard normal that tells so many nats: same evidence at every number."""
    best = linear_gaussian_optimum(information)
    encoder = GaussianEncoder(Numbers(1), 1, (), seeded()).double()
    guess = MixtureGuess(Numbers(1), 1, (), 1, seeded()).double()
    with torch.no_grad():
        encoder.body[0].weight.copy_(torch.tensor([[best.slope], [0.0]]))
        encoder.body[0].bias.copy_(torch.tensor([0.0, math.log(best.std)]))
    return Networks(encoder, straight([[best.slope]], best.std), guess)


@pytest.mark.parametrize("information", [0.02, 0.5, 2.0])
def test_the_evidence_is_blind_to_information_on_the_normal(information):
    """Why training alone cannot collapse there: from 0.02 to 2 nats, the rows gain nothing."""
    parts = analytic(information)
    gain, dropped = drop_idle_code(parts, torch.as_tensor(normal()), None)
    assert abs(gain) < 1e-6 and dropped


def test_what_is_left_is_the_best_model_without_a_code():
    X = 3.0 * normal() + 1.0
    model = MutualAutoencoder(**QUICK).fit(X)
    assert model.code_dropped_ and model.information_ == pytest.approx(0.0, abs=1e-9)
    assert abs(model.code_gain_) <= math.log(len(X))
    assert model.score(X) == pytest.approx(-0.5 * math.log(2 * math.pi * math.e * 9.0), abs=1e-6)
    np.testing.assert_array_equal(model.transform(X), 0.0)
    np.testing.assert_allclose(model.inverse_transform([[-2.0], [2.0]]), 1.0, atol=1e-6)
    report = model.information_report(X)
    assert report.active == 0 and report.rate == 0
    assert report.rate == 0.0 and "code dropped, it gained" in str(report)


def test_symbols_keep_their_frequencies():
    X = np.repeat(["a", "b", "c"], [60, 30, 10])[:, None]
    model = MutualAutoencoder(decoder="categorical", **QUICK).fit(X)
    assert model.code_dropped_ and model.code_gain_ <= 1e-9  # nothing beats frequencies
    assert model.score(X) == pytest.approx(-model.entropy_, abs=1e-12)
    drawn = model.sample(20_000, random_state=0)
    assert (drawn == "a").mean() == pytest.approx(0.6, abs=5 * math.sqrt(0.24 / 20_000))


def test_a_code_that_pays_stays():
    """Two far clusters: naming one gains about a nat a row over the wide normal."""
    X = normal() * 0.1 + np.where(np.arange(1000) % 2, 1.0, -1.0)[:, None]
    found = [MutualAutoencoder(**{**QUICK, "max_iter": 300}, drop_code=d).fit(X) for d in (True, False)]
    assert not found[0].code_dropped_ and found[0].code_gain_ > 10 * math.log(1000)
    assert found[0].information_ == found[1].information_ > 0.5
    assert "dropped" not in str(found[0].information_report(X))
    assert found[1].code_gain_ is None and not found[1].code_dropped_


def test_what_is_not_learned_yet_and_what_has_a_target_stays():
    X = normal()
    early = MutualAutoencoder(**{**QUICK, "max_iter": 1}).fit(X)
    assert early.code_gain_ < -math.log(len(X)) and not early.code_dropped_
    dial = MutualAutoencoder(0.3, **{**QUICK, "penalty": 5.0}).fit(X)
    assert dial.code_gain_ is None and dial.information_ == pytest.approx(0.3, abs=0.05)


def test_a_constant_column_is_no_error():
    model = MutualAutoencoder(**{**QUICK, "max_iter": 5}).fit(np.full((20, 1), 7.0))
    assert np.isfinite(model.code_gain_) and np.isfinite(model.score(np.full((2, 1), 7.0)))


def test_bad_requests_are_explained():
    with pytest.raises(ValueError, match="drop_code must be True or False; got 'no'"):
        MutualAutoencoder(drop_code="no").fit(normal(10))


def test_without_a_code_the_best_model_is_that_of_greatest_likelihood():
    from scipy.stats import norm

    from pindown.learn.mutual_autoencoder._networks import CategoricalDecoder
    from pindown.learn.mutual_autoencoder.training import _best_without

    rows = 3 * np.random.default_rng(2).standard_normal((50, 2)) + [1.0, -4.0]
    outputs, evidence = _best_without(straight([[1.0], [1.0]], 1.0), torch.as_tensor(rows))
    best = [norm.fit(column) for column in rows.T]
    assert outputs.tolist() == pytest.approx([m for m, _ in best] + [math.log(s) for _, s in best])
    assert evidence == pytest.approx(
        sum(norm.logpdf(c, *fit).sum() for c, fit in zip(rows.T, best, strict=True))
    )
    symbols = torch.tensor([[0], [2], [2], [2], [0], [1]])
    outputs, evidence = _best_without(CategoricalDecoder([3], 1, (), seeded()), symbols)
    assert outputs.exp().tolist() == pytest.approx([2 / 6, 1 / 6, 3 / 6])
    assert evidence == pytest.approx(2 * math.log(2 / 6) + math.log(1 / 6) + 3 * math.log(3 / 6))
