"""The resampling encoder: k = 1 is the plain one, bound and draws improve with k."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.stats import kstest, norm

from pindown.learn.mutual_autoencoder._networks import (
    CategoricalDecoder,
    GaussianDecoder,
    GaussianEncoder,
    MixtureGuess,
    Numbers,
    Symbols,
    perceptron,
)
from pindown.learn.mutual_autoencoder._objective import (
    evidence_bound,
    information_surrogate,
    others_mean,
    proposals,
    resample,
)
from pindown.learn.mutual_autoencoder.evaluation import evidence

POINT, N = 1.5, 20_000


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def straight():
    """Decoder N(0.8 z, 0.36), encoder stuck at the prior; the posterior of x is N(0.8 x, 0.36)."""
    decoder = GaussianDecoder(1, 1, (), seeded()).double()
    encoder = GaussianEncoder(Numbers(1), 1, (), seeded()).double()
    with torch.no_grad():
        decoder.body[0].weight.copy_(torch.tensor([[0.8], [0.0]]))
        decoder.body[0].bias.copy_(torch.tensor([0.0, np.log(0.6)]))
        for parameter in encoder.parameters():
            parameter.zero_()
    return encoder, decoder


def test_one_proposal_is_the_plain_encoder():
    encoder, decoder = straight()
    x = torch.full((7, 1), POINT, dtype=torch.float64)
    drawn, _ = proposals(encoder, x, 1, seeded(4))
    assert torch.equal(resample(encoder, decoder, x, 1, seeded(4)), drawn[0])


def test_bounds_of_one_proposal_and_of_the_plain_encoder_agree():
    encoder, decoder = straight()
    x = torch.full((N, 1), POINT, dtype=torch.float64)
    with torch.no_grad():
        plain = evidence_bound(encoder, decoder, x, seeded(1)).numpy()
        one = evidence_bound(encoder, decoder, x, seeded(2), k=1).numpy()
    error = np.sqrt((plain.var() + one.var()) / N)
    assert abs(plain.mean() - one.mean()) < 5 * error


def test_the_bound_grows_with_k_towards_the_evidence():
    encoder, decoder = straight()
    x = torch.full((N, 1), POINT, dtype=torch.float64)
    with torch.no_grad():
        found = [evidence_bound(encoder, decoder, x, seeded(k), k=k).numpy() for k in (1, 2, 5, 50)]
    means, errors = [f.mean() for f in found], [f.std() / np.sqrt(N) for f in found]
    for a, b in pairwise(range(4)):
        assert means[b] > means[a] + 5 * (errors[a] + errors[b])
    truth = norm.logpdf(POINT, scale=1.0)
    assert means[-1] < truth + 5 * errors[-1]
    assert truth - means[-1] < 0.05


def test_draws_approach_the_posterior_as_k_grows():
    encoder, decoder = straight()
    x = torch.full((N, 1), POINT, dtype=torch.float64)
    posterior = norm(0.8 * POINT, 0.6).cdf
    distances = [
        kstest(resample(encoder, decoder, x, k, seeded(k)).numpy()[:, 0], posterior).statistic
        for k in (1, 3, 10, 40)
    ]
    noise = 3.0 / np.sqrt(N)
    for before, after in pairwise(distances):
        assert after < before - noise
    assert distances[-1] < 0.03


def test_symbols_have_the_same_bound():
    """With one symbol only nothing is to be told: the bound is minus the divergence of the codes."""
    decoder = CategoricalDecoder([1], 1, (), seeded()).double()
    encoder = GaussianEncoder(Symbols([1]), 1, (), seeded()).double()
    x = torch.zeros((4, 1), dtype=torch.int64)
    mean, log_std = encoder(x)
    expected = -0.5 * (mean**2 + (2 * log_std).exp() - 1 - 2 * log_std)[:, 0]
    torch.testing.assert_close(evidence_bound(encoder, decoder, x, seeded()), expected)


def test_the_weight_is_that_of_the_divergence():
    """With one symbol nothing else is left: exactly for the plain encoder, else on average."""
    decoder = CategoricalDecoder([1], 1, (), seeded()).double()
    encoder = GaussianEncoder(Symbols([1]), 1, (), seeded()).double()
    x = torch.zeros((N, 1), dtype=torch.int64)
    with torch.no_grad():
        mean, log_std = encoder(x[:1])
        cost = float(0.5 * (mean**2 + (2 * log_std).exp() - 1 - 2 * log_std))
        plain, drawn = (evidence_bound(encoder, decoder, x, seeded(), k, 0.3).numpy() for k in (None, 1))
    np.testing.assert_allclose(plain, -0.3 * cost)
    assert abs(drawn.mean() + 0.3 * cost) < 5 * drawn.std() / np.sqrt(N)


@torch.no_grad()
def test_evaluated_evidence_is_the_mean_of_the_bounds():
    """By quadrature, or in groups of shared draws, against fresh draws."""
    encoder = GaussianEncoder(Numbers(1), 1, (4,), seeded(2)).double()
    decoder = GaussianDecoder(1, 1, (4,), seeded(3)).double()
    rows = torch.tensor([[-1.0], [0.2], [2.0]], dtype=torch.float64)
    for k in (None, 3):
        drawn = evidence_bound(encoder, decoder, rows.repeat(N, 1), seeded(4), k).numpy().reshape(N, 3)
        found = evidence(encoder, decoder, rows, k)
        spread = drawn.std(0) * (1 / np.sqrt(N) if k is None else 1 / np.sqrt(80))
        assert (np.abs(found - drawn.mean(0)) < 5 * spread).all() and (spread < 0.3).all()


DRAWS = 300
SIGMAS = 5.0


def double(module):
    return module.double()


def categorical():
    random = torch.Generator().manual_seed(3)
    decoder = double(CategoricalDecoder([3], 1, (4,), random))
    guess = double(MixtureGuess(Symbols([3]), 1, (), 2, random))
    z = torch.randn((32, 1), generator=random, dtype=torch.float64)
    return decoder, guess, z


def enumerated(decoder, guess, z):
    """The mean of log r for these codes: all three symbols, by their probabilities."""
    total = 0.0
    for symbol in range(3):
        x = torch.full((len(z), 1), symbol)
        total = total + decoder.log_prob(x, z).exp() * guess.log_prob(z, x).detach()
    return total.mean()


def flat_gradient(value, module):
    parts = torch.autograd.grad(value, list(module.parameters()))
    return torch.cat([part.ravel() for part in parts]).numpy()


def estimates(decoder, guess, z, repeats=DRAWS, **options):
    random = torch.Generator().manual_seed(0)
    return np.array(
        [
            flat_gradient(information_surrogate(decoder, guess, z, random, **options), decoder)
            for _ in range(repeats)
        ]
    )


def check_unbiased(found, exact):
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    moving = error > 0
    assert moving.any()
    assert (np.abs(found.mean(axis=0) - exact)[moving] <= SIGMAS * error[moving]).all()
    np.testing.assert_allclose(found.mean(axis=0)[~moving], exact[~moving], atol=1e-12)


@pytest.mark.parametrize(("baseline", "draws"), [(True, 1), (False, 1), (True, 4), (False, 2)])
def test_the_score_function_estimate_is_unbiased_on_three_symbols(baseline, draws):
    decoder, guess, z = categorical()
    exact = flat_gradient(enumerated(decoder, guess, z), decoder)
    options = {"baseline": baseline, "draws": draws}
    check_unbiased(estimates(decoder, guess, z, **options), exact)


def estimates_of(decoder, guess, draws, codes):
    """Gradients from fresh codes each time, ``draws * codes`` samples each."""
    random = torch.Generator().manual_seed(0)
    found = []
    for _ in range(DRAWS):
        z = torch.randn((codes, 1), generator=random, dtype=torch.float64)
        value = information_surrogate(decoder, guess, z, random, draws=draws)
        found.append(flat_gradient(value, decoder))
    return np.array(found)


def test_a_baseline_per_code_lowers_the_variance_at_the_same_number_of_samples():
    decoder, guess, _ = categorical()
    with torch.no_grad():  # a sharp guess: log r depends on z far more than on x
        guess.body[0].bias.view(2, 3)[:, 2] = -1.5
    own, shared = (estimates_of(decoder, guess, m, 32 // m).var(axis=0).sum() for m in (4, 1))
    assert own < 0.5 * shared


def test_the_baseline_lowers_the_variance():
    decoder, guess, z = categorical()
    with torch.no_grad():  # a wide guess: log r is far below zero and nearly constant
        guess.body[0].bias.view(2, 3)[:, 2] = 1.5
    with_it, without = (
        estimates(decoder, guess, z, repeats=200, baseline=b).var(axis=0).sum() for b in (True, False)
    )
    assert with_it < 0.5 * without


def test_enumeration_agrees_with_finite_differences():
    decoder, guess, z = categorical()
    exact = flat_gradient(enumerated(decoder, guess, z), decoder)
    step, found = 1e-5, []
    for parameter in decoder.parameters():
        for i in range(parameter.numel()):
            values = []
            for sign in (1, -1):
                with torch.no_grad():
                    parameter.view(-1)[i] += sign * step
                    values.append(float(enumerated(decoder, guess, z)))
                    parameter.view(-1)[i] -= sign * step
            found.append((values[0] - values[1]) / (2 * step))
    np.testing.assert_allclose(found, exact, atol=1e-8)


def test_the_reparametrised_estimate_is_unbiased():
    """For a normal r with mean affine in x, three nodes of Gauss-Hermite quadrature are exact."""
    random = torch.Generator().manual_seed(1)
    decoder = double(GaussianDecoder(1, 1, (4,), random))
    guess = double(MixtureGuess(Numbers(1), 1, (), 1, random))
    with torch.no_grad():  # a deviation that does not depend on x keeps log r quadratic in x
        guess.body[0].weight[2] = 0.0
    z = torch.randn((32, 1), generator=random, dtype=torch.float64)
    nodes, weights = np.polynomial.hermite_e.hermegauss(3)
    mean, log_std = decoder(z)
    exact = sum(
        w * guess.log_prob(z, mean + log_std.exp() * e).mean()
        for e, w in zip(nodes, weights / weights.sum(), strict=True)
    )
    check_unbiased(estimates(decoder, guess, z), flat_gradient(exact, decoder))


def test_one_sample_has_no_others():
    assert others_mean(torch.tensor([2.0])).tolist() == [0.0]


def test_networks_leave_the_global_seed_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    perceptron(2, (3,), 1, torch.Generator().manual_seed(0))
    assert torch.equal(torch.rand(3), expected)
