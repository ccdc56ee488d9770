"""Training finds a normal distribution, does what its equations say, and can be stopped."""

import copy
import math

import numpy as np
import pytest
import torch
from torch import nn

from pindown.probes import train_gan
from pindown.probes.gan import GanHistory


def networks(seed, data_features=1, width=16):
    torch.manual_seed(seed)
    G = nn.Sequential(nn.Linear(1, width), nn.ReLU(), nn.Linear(width, data_features))
    D = nn.Sequential(nn.Linear(data_features, width), nn.ReLU(), nn.Linear(width, 1))
    return G, D


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("loss", "steps"),
    [("non-saturating", 1200), pytest.param("minimax", 5000, marks=pytest.mark.slow)],
)
def test_normal_data(loss, steps):
    data = 3 + 0.5 * np.random.default_rng(0).standard_normal((5000, 1))
    G, D = networks(0)
    history = train_gan(
        G, D, data, latent_features=1, steps=steps, generator_loss=loss, random_state=0, verbose=0
    )
    with torch.no_grad():
        made = G(torch.randn(5000, 1, generator=torch.Generator().manual_seed(1)))
    assert abs(float(made.mean()) - 3) < 0.2
    assert abs(history.balance - 0.5) < 0.1
    assert history.value[-100:].mean() == pytest.approx(-2 * math.log(2), abs=0.05)
    assert len(history.value) == steps and history.stopped == "steps"
    assert "optimum -1.386" in str(history)


@pytest.mark.parametrize("loss", ["non-saturating", "minimax"])
def test_losses_push_the_generator_the_same_way(loss):
    """One step from a fixed discriminator that likes large numbers: the generator's mean grows."""
    G, D = nn.Linear(1, 1), nn.Linear(1, 1)
    with torch.no_grad():
        for network, weight in ((G, 0.1), (D, 1.0)):
            network.weight.fill_(weight)
            network.bias.zero_()
    train_gan(
        G, D, np.full((4, 1), 5.0), latent_features=1, steps=1, discriminator_rate=1e-12,
        generator_loss=loss, verbose=0,
    )  # fmt: skip
    assert float(G.bias.detach()) > 0


def test_sure_discriminator_leaves_the_minimax_generator_without_slope():
    """The derivative of ln(1 - D) at a score of -20 is D, two in a billion; that of -ln D is one."""
    score = torch.tensor(-20.0, requires_grad=True)
    slopes = [
        float(torch.autograd.grad(loss, score)[0])
        for loss in (-nn.functional.softplus(score), nn.functional.softplus(-score))
    ]
    assert abs(slopes[0]) < 1e-8 and slopes[1] == pytest.approx(-1.0)


def test_equal_seeds_and_interruption():
    data = np.zeros((10, 1))
    values = []
    for _ in range(2):
        G, D = networks(3)
        values.append(train_gan(G, D, data, latent_features=1, steps=5, random_state=7, verbose=0).value)
    np.testing.assert_array_equal(*values)

    class Stops(nn.Linear):
        calls = 0

        def forward(self, x):
            Stops.calls += 1
            if Stops.calls > 8:
                raise KeyboardInterrupt
            return super().forward(x)

    G, _ = networks(4)
    with pytest.warns(UserWarning, match="interrupted"):
        history = train_gan(G, Stops(1, 1), data, latent_features=1, steps=50, verbose=0)
    assert history.stopped == "interrupted" and 0 < len(history.value) < 50


def test_divergence_is_told():
    G, D = networks(5)
    history = train_gan(
        G, D, 1e30 * np.ones((10, 1)), latent_features=1, steps=50, discriminator_rate=1e30, verbose=0
    )
    assert history.stopped == "diverged"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"steps": -1}, "steps"),
        ({"latent_features": 0}, "latent_features"),
        ({"generator_rate": math.nan}, "generator_rate"),
        ({"generator_loss": "other"}, "generator_loss"),
        ({"data": np.zeros((0, 1))}, "at least one finite"),
        ({"data": np.array([[math.nan]])}, "at least one finite"),
        ({"data": np.zeros((5, 2))}, "like the data"),
        ({"discriminator": nn.Linear(1, 3)}, "one score"),
    ],
)
def test_refuses(change, words):
    G, D = networks(6)
    given = {"generator": G, "discriminator": D, "data": np.zeros((5, 1)), "latent_features": 1}
    with pytest.raises(ValueError, match=words):
        train_gan(**given | change)
    with pytest.raises(TypeError, match="torch"):
        train_gan(None, D, np.zeros((5, 1)), latent_features=1)


@pytest.mark.parametrize("loss", ["non-saturating", "minimax"])
def test_two_rounds_by_hand(loss):
    """Three steps of the discriminator on fresh draws, then one of the generator, both by Adam."""
    data = torch.linspace(1, 3, 20)[:, None]
    G, D = networks(8)
    other_g, other_d = copy.deepcopy(G), copy.deepcopy(D)
    history = train_gan(
        G, D, data, latent_features=1, steps=2, inner_steps=3, batch_size=7, generator_rate=0.01,
        discriminator_rate=0.02, generator_loss=loss, random_state=5, verbose=0,
    )  # fmt: skip
    source = torch.Generator().manual_seed(5)
    torch.randn(7, 1, generator=source)  # one draw to check shapes
    for_d = torch.optim.Adam(other_d.parameters(), 0.02, (0.5, 0.999))
    for_g = torch.optim.Adam(other_g.parameters(), 0.01, (0.5, 0.999))
    for step in range(2):
        for _ in range(3):
            real = data[torch.randint(20, (7,), generator=source)]
            made = other_g(torch.randn(7, 1, generator=source)).detach()
            p, q = other_d(real).sigmoid(), other_d(made).sigmoid()
            value = p.log().mean() + (1 - q).log().mean()
            for_d.zero_grad()
            (-value).backward()
            for_d.step()
        assert history.value[step] == pytest.approx(float(value.detach()), rel=1e-4)
        assert history.real[step] == pytest.approx(float(p.detach().mean()), rel=1e-4)
        assert history.fake[step] == pytest.approx(float(q.detach().mean()), rel=1e-4)
        chance = other_d(other_g(torch.randn(7, 1, generator=source))).sigmoid()
        for_g.zero_grad()
        (-chance.log().mean() if loss == "non-saturating" else (1 - chance).log().mean()).backward()
        for_g.step()
    for ours, theirs in zip([*G.parameters(), *D.parameters()],
                            [*other_g.parameters(), *other_d.parameters()], strict=True):  # fmt: skip
        assert torch.allclose(ours, theirs, atol=1e-5)


def test_the_end_is_the_last_tenth():
    real, fake = np.linspace(0, 1, 50), np.linspace(1, 0.5, 50)
    history = GanHistory(np.zeros(50), real, fake)
    assert history.balance == pytest.approx((real[45:].mean() + fake[45:].mean()) / 2)
