"""Relative entropy by other routes; noise at outputs is noise on weights; which modules allow it."""

import mpmath
import numpy as np
import pytest
import torch
from scipy.stats import ks_2samp
from torch import nn

from pindown.guarantees.certificate.descent import Moves, Prior
from pindown.guarantees.certificate.examples import read_examples
from pindown.guarantees.certificate.modules import only_linear, read_module, start_again
from pindown.guarantees.certificate.posterior import diagonal_kl

mpmath.mp.dps = 50


def small_net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2, bias=False)).eval()


def posterior(local=True, seed=0):
    network = small_net()
    prior = Prior(network, {name: 0.3 for name, _ in network.named_parameters()}, local)
    moves, generator = Moves.none(prior.means()), torch.Generator().manual_seed(seed)
    for tensor in [*moves.u.values(), *moves.v.values()]:
        tensor.copy_(0.5 * torch.randn(tensor.shape, generator=generator))
    return prior.moved(moves), moves


def exact_kl(mean, scale, prior_mean, prior_scale):
    total = mpmath.mpf(0)
    for numbers in zip(mean, scale, prior_mean, prior_scale, strict=True):
        a, s, b, t = (mpmath.mpf(float(x)) for x in numbers)
        total += mpmath.log(t / s) + (s**2 + (a - b) ** 2) / (2 * t**2) - mpmath.mpf(1) / 2
    return total


@pytest.mark.parametrize("spread", [1e-9, 1e-4, 0.1, 3.0])
def test_kl_is_never_below_fifty_digits_and_hardly_above(spread):
    rng = np.random.default_rng(0)
    for _ in range(20):
        prior_mean, prior_scale = rng.normal(size=50), np.exp(rng.normal(size=50))
        mean = prior_mean + spread * rng.normal(size=50)
        scale = prior_scale * np.exp(spread * rng.normal(size=50))
        found, truth = (
            diagonal_kl(mean, scale, prior_mean, prior_scale),
            exact_kl(mean, scale, prior_mean, prior_scale),
        )
        assert truth <= found <= truth * (1 + 1e-10) + 1e-12


def test_kl_of_a_posterior_agrees_with_torch_and_with_its_moves():
    found, moves = posterior()
    prior = dict(found.module.named_parameters())
    total = sum(
        float(
            torch.distributions.kl_divergence(
                torch.distributions.Normal(found.means[name].double(), found.scales[name].double()),
                torch.distributions.Normal(prior[name].detach().double(), 0.3),
            ).sum()
        )
        for name in found.means
    )
    assert found.kl() == pytest.approx(total, rel=1e-12)
    assert moves.kl() == pytest.approx(total, rel=1e-5)


def test_kl_is_the_mean_log_ratio_of_densities():
    found, _ = posterior()
    generator, n, total = torch.Generator().manual_seed(1), 20_000, 0.0
    for name, mean in found.means.items():
        w = mean + found.scales[name] * torch.randn((n, *mean.shape), generator=generator)
        q = torch.distributions.Normal(mean, found.scales[name]).log_prob(w)
        p = torch.distributions.Normal(dict(found.module.named_parameters())[name], 0.3).log_prob(w)
        total += float((q - p).detach().sum()) / n
    assert total == pytest.approx(found.kl(), rel=0.02)


def test_noise_at_outputs_has_the_distribution_of_drawn_weights():
    found, _ = posterior()
    x = torch.tensor([[1.0, -2.0, 0.5]])
    n = 1500
    local = found.scores(x.repeat(n, 1), torch.Generator().manual_seed(1)).numpy()
    drawn = np.array([found.draw(seed)(x)[0].detach().numpy() for seed in range(n)])
    for direction in ([1.0, 0.0], [0.0, 1.0], [1.0, -1.0], [1.0, 1.0]):
        assert ks_2samp(local @ np.array(direction), drawn @ np.array(direction)).pvalue > 1e-3


def test_rows_of_a_batch_have_weights_of_their_own():
    found, _ = posterior()
    x = torch.ones(5000, 2, 3).reshape(-1, 3)
    scores = found.scores(x, torch.Generator().manual_seed(0)).numpy().reshape(5000, 2, 2)
    assert abs(np.corrcoef(scores[:, 0, 0], scores[:, 1, 0])[0, 1]) < 0.06
    whole, _ = posterior(local=False)
    shared = whole.scores(torch.ones(2, 3), torch.Generator().manual_seed(0))
    assert torch.equal(shared[0], shared[1])


def test_mean_and_draws_are_networks_of_their_own():
    found, _ = posterior()
    assert not torch.equal(found.draw(0)[0].weight, found.draw(1)[0].weight)
    assert torch.equal(found.mean_module()[0].weight, found.means["0.weight"])
    assert torch.equal(found.module[0].weight, small_net()[0].weight)
    assert found.predict(np.zeros((0, 3))).shape == (0,)


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        return self.layer(torch.relu(self.layer(x)))


class Past(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x):
        return self.layer(x) + x @ self.layer.weight.T


class Positions(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 2)

    def forward(self, x):
        return self.layer(x.reshape(-1, 1)).reshape(len(x), -1, 2).sum(1)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(3, 3), nn.Linear(3, 3)
        self.two.weight = self.one.weight

    def forward(self, x):
        return self.two(self.one(x))


def test_noise_moves_to_outputs_only_where_each_weight_meets_an_example_once():
    examples = read_examples(np.eye(3), [0, 1, 0])
    assert only_linear(small_net(), examples)
    for module in (
        Twice(),
        Past(),
        Positions(),
        Tied(),
        nn.Sequential(nn.LayerNorm(3), nn.Linear(3, 2)),
    ):
        assert not only_linear(module, examples)


class Lonely(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, x):
        return x * self.scale


def test_modules_that_cannot_be_certified_are_refused():
    with pytest.raises(TypeError, match=r"nn\.Module"):
        read_module(lambda x: x)
    with pytest.raises(ValueError, match="nothing to certify"):
        read_module(nn.ReLU())
    with pytest.raises(TypeError, match="floating"):
        module = Lonely()
        module.scale = nn.Parameter(torch.ones(3, dtype=torch.int64), requires_grad=False)
        read_module(module)
    with pytest.raises(ValueError, match="other examples"):
        read_module(nn.Sequential(nn.BatchNorm1d(3, track_running_stats=False), nn.Linear(3, 2)))
    with pytest.raises(ValueError, match="NaN"):
        bad = nn.Linear(1, 2)
        bad.weight.data.fill_(np.nan)
        read_module(bad)
    with pytest.raises(ValueError, match="no shape yet"):
        read_module(nn.LazyLinear(2))
    with pytest.raises(ValueError, match="reset_parameters"):
        start_again(Lonely())
