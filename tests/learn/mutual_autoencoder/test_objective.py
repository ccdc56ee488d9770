"""The resampling encoder: k = 1 is the plain one, bound and draws improve with k."""

from itertools import pairwise

import numpy as np
import torch
from scipy.stats import kstest, norm

from pindown.learn.mutual_autoencoder.evaluation import evidence
from pindown.learn.mutual_autoencoder.networks import (
    CategoricalDecoder,
    GaussianDecoder,
    GaussianEncoder,
    Numbers,
    Symbols,
)
from pindown.learn.mutual_autoencoder.objective import evidence_bound, proposals, resample

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
