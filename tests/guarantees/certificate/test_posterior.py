"""Relative entropy by other routes; noise at outputs is noise on weights; which modules allow it."""

import mpmath
import numpy as np
import pytest
import torch
from scipy.optimize import brentq
from scipy.special import rel_entr
from scipy.stats import ks_2samp, norm
from torch import nn

from pindown.guarantees.certificate.modules import only_linear, read_examples, read_module, start_again
from pindown.guarantees.certificate.posterior import (
    Moves,
    Prior,
    WeightPosterior,
    _price,
    _step,
    diagonal_kl,
)
from pindown.guarantees.certificate.run import around

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


@pytest.mark.parametrize("bias", [True, False])
def test_noise_of_one_layer_has_the_variance_of_its_formula(bias):
    """Variances of weights count with the squares of inputs, that of the bias by itself."""
    network = nn.Linear(3, 2, bias=bias).eval()
    scales = {"weight": torch.tensor([[0.1, 0.4, 0.2], [0.3, 0.05, 0.6]])}
    if bias:
        scales["bias"] = torch.tensor([0.7, 0.2])
    means = {name: p.detach() for name, p in network.named_parameters()}
    found = WeightPosterior(network, dict.fromkeys(means, 1.0), means, scales, True)
    n = 20_000
    for x in torch.tensor([[[0.0, 0.0, 0.0]], [[1.0, -2.0, 0.5]]]):
        scores = found.scores(x.repeat(n, 1), torch.Generator().manual_seed(0)).numpy()
        variance = (scales["weight"] ** 2 @ x[0] ** 2 + (scales["bias"] ** 2 if bias else 0.0)).numpy()
        np.testing.assert_allclose(scores.var(axis=0), variance, rtol=0.05, atol=1e-12)
        away = scores.mean(axis=0) - network(x)[0].detach().numpy()
        assert (np.abs(away) <= 4 * np.sqrt(variance / n) + 1e-6).all()


def test_predictions_draw_weights_for_every_row():
    """At a scale far above the means half of the equal rows get each class, also with whole draws."""
    for local in (True, False):
        found, _ = posterior(local)
        wide = {name: torch.full_like(mean, 50.0) for name, mean in found.means.items()}
        fair = WeightPosterior(found.module, found.prior_scales, found.means, wide, local)
        classes = fair.predict(np.ones((400, 3)), random_state=1)
        assert 140 < classes.sum() < 260
        assert (classes == fair.predict(np.ones((400, 3)), random_state=1)).all()
        assert (classes != fair.predict(np.ones((400, 3)), random_state=2)).any()


def test_noise_of_the_prior_is_the_largest_that_costs_little():
    """A weight of one changes its sign with probability Phi(-1 / noise): the cost may be 0.001."""
    network = nn.Linear(1, 1, bias=False).eval()
    network.weight.data.fill_(3.0)
    X = np.random.default_rng(0).normal(size=(400, 1))
    examples = read_examples(X, X[:, 0] > 0)
    prior, level = around(network, examples, True, None, torch.Generator().manual_seed(0))
    allowed = 0.02 / np.sqrt(400)
    steps = 2.0 ** (-np.arange(21) / 2)
    assert level == max(steps[norm.cdf(-1 / steps) <= allowed]) == prior.scales["weight"] / 3.0
    wide = nn.Linear(5, 4)
    prior, _ = around(wide, examples, True, 0.1, torch.Generator())
    for name, p in wide.named_parameters():
        assert prior.scales[name] == pytest.approx(0.1 * float(p.detach().square().mean().sqrt()))


def bound_at(loss, kl, m, delta):
    """The bound that is lowered, by a root finder."""
    level = (kl + np.log(2 * np.sqrt(m) / delta)) / m
    return brentq(lambda p: rel_entr(loss, p) + rel_entr(1 - loss, 1 - p) - level, loss, 1 - 1e-12)


@pytest.mark.parametrize(("loss", "kl", "m"), [(0.1, 5.0, 300), (0.4, 40.0, 5000)])
def test_price_is_the_exchange_rate_of_loss_and_divergence(loss, kl, m):
    """The bound's slopes in the loss and in KL, by differences."""
    h = 1e-6
    in_loss = (bound_at(loss + h, kl, m, 0.05) - bound_at(loss - h, kl, m, 0.05)) / (2 * h)
    in_kl = (bound_at(loss, kl + 1e-3, m, 0.05) - bound_at(loss, kl - 1e-3, m, 0.05)) / 2e-3
    assert _price(loss, kl, m, 0.05) == pytest.approx(in_loss / in_kl, rel=1e-4)


def test_first_step_is_a_natural_gradient_step():
    """Minus the rate times the slope of price times loss plus KL, over the Hessian of KL: 1 and 2."""
    u, v = torch.tensor([0.3, -0.2]), torch.tensor([0.1, -0.4])
    slopes = torch.tensor([0.01, 0.02]), torch.tensor([-0.03, 0.01])
    moves = Moves({"w": u.clone()}, {"w": v.clone()})
    still = Moves({"w": torch.zeros(2)}, {"w": torch.zeros(2)})
    leaves = [u.clone().requires_grad_(), v.clone().requires_grad_()]
    kl = 0.5 * (leaves[0] ** 2 + torch.exp(2 * leaves[1]) - 1 - 2 * leaves[1]).sum()
    kl.backward()
    _step(moves, still, slopes, price=10.0, rate=1e-3)
    wanted = [
        p - 1e-3 * rate * (10 * s + leaf.grad)
        for p, s, leaf, rate in zip((u, v), slopes, leaves, (1.0, 0.5), strict=True)
    ]
    np.testing.assert_allclose(moves.u["w"], wanted[0], rtol=1e-6)
    np.testing.assert_allclose(moves.v["w"], wanted[1], rtol=1e-6)


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
