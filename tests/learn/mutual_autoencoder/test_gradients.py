"""Both estimators of the information gradient against enumeration, quadrature and finite differences."""

import numpy as np
import pytest
import torch

from pindown.learn.mutual_autoencoder.gradients import information_surrogate, others_mean
from pindown.learn.mutual_autoencoder.networks import (
    CategoricalDecoder,
    GaussianDecoder,
    MixtureGuess,
    Numbers,
    Symbols,
    perceptron,
)

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
