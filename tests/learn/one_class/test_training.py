"""What is trained, on which loss, with whose generator: the algorithm written out beside the library."""

import copy
import dataclasses
import math

import numpy as np
import pytest
import torch

from pindown.learn.one_class._negatives import generic_negatives, graded_pair
from pindown.learn.one_class._plan import INGREDIENTS, Plan
from pindown.learn.one_class._printed_algorithm import PrintedMember
from pindown.learn.one_class._training import Member

D = 3
NETS = ("c", "h", "g_c", "g_h")


def printed(ablation=None, symmetric=False, batch_size=64):
    critic = {"kind": "paper perceptron", "inputs": D, "hidden": [5], "outputs": 1}
    maker = critic | {"hidden": [4], "outputs": D}
    plan = Plan(True, critic, critic | {"inputs": 2 * D}, maker, 1, 1, batch_size, 0.01, 1.0,
                ablation=ablation, symmetric=symmetric)  # fmt: skip
    return PrintedMember(plan, torch.Generator().manual_seed(3))


def rows(n=12, seed=0):
    return torch.randn(n, D, generator=torch.Generator().manual_seed(seed))


def price(logit, member):
    """-log p for a member, -log(1 - p) for no member."""
    p = 1 / (1 + torch.exp(-logit))
    return -torch.log(p if member else 1 - p)


def by_hand(of, m, x, ablation, symmetric):
    """The four losses of Algorithm 1, with the ablations of Table 2."""
    g_c, g_h = m.g_c, m.g_h
    if ablation == "only_g_c":
        g_h = g_c
    if ablation == "only_g_h":
        g_c = g_h
    fake = (g_c if "membership" in of else g_h)(x)
    at_c = m.c(fake)[:, 0]
    at_h = m.h(torch.cat([fake, x], 1))[:, 0]
    by_c = 1.0 if ablation == "h" else price(at_c, member=False)
    by_h = 1.0 if ablation == "c" else price(at_h, member=False)
    told = (by_c * by_h).mean()
    if "membership" in of:
        return -told if "generator" in of else price(m.c(x)[:, 0], member=True).mean() + told
    if symmetric:
        back = m.h(torch.cat([x, fake], 1))[:, 0]
        told = told + (by_c * price(back, member=True)).mean()
    if "generator" in of:
        return ((x - fake) ** 2).sum(1).sqrt().mean() - told
    return price(m.h(torch.cat([x, x], 1))[:, 0], member=True).mean() + told


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("ablation", [None, "c", "h", "only_g_c", "only_g_h"])
def test_two_epochs_of_the_printed_algorithm(ablation, symmetric):
    """Generator of c, c, generator of h, h: each by Adam on its own loss, and nothing else moves."""
    member = printed(ablation, symmetric)
    other = copy.deepcopy(member)
    order = {"membership_generator": "g_c", "membership": "c",
             "comparator_generator": "g_h", "comparator": "h"}  # fmt: skip
    still = {None: (), "c": ("g_h", "h"), "h": ("g_c", "c"), "only_g_c": ("g_h",), "only_g_h": ("g_c",)}
    x = rows()
    learners = {
        name: torch.optim.Adam(getattr(other, name).parameters(), lr=0.01, betas=(0.5, 0.999))
        for name in NETS
    }
    for _ in range(2):
        record = member.epoch(x)
        for turn, name in order.items():
            if name in still[ablation]:
                continue
            batch = x[torch.randperm(len(x), generator=other.random)]
            loss = by_hand(turn, other, batch, ablation, symmetric)
            weights = list(getattr(other, name).parameters())
            for weight, slope in zip(weights, torch.autograd.grad(loss, weights), strict=True):
                weight.grad = slope
            learners[name].step()
            assert record[turn] == pytest.approx(float(loss.detach()), rel=1e-3)
    begun = printed(ablation, symmetric)
    for name in NETS:
        # Not the weights: a constant before batch statistics changes nothing, and Adam moves it anyhow.
        probe = torch.cat([x, x], 1) if name == "h" else x
        ours, theirs = (getattr(m, name)(probe).detach() for m in (member, other))
        if name == "g_c":  # c takes statistics of what it is given
            ours, theirs = ours - ours.mean(0), theirs - theirs.mean(0)
        assert torch.allclose(ours, theirs, atol=1e-4), name
        pairs = zip(getattr(member, name).parameters(), getattr(begun, name).parameters(), strict=True)
        assert all(torch.equal(a, b) for a, b in pairs) is (name in still[ablation]), name
    assert set(record) == {turn for turn, name in order.items() if name not in still[ablation]}


def test_printed_batches_cover_the_rows():
    member, seen = printed(batch_size=5), []
    member.loss_c = lambda x: seen.append(x) or PrintedMember.loss_c(member, x)
    member.epoch(rows(12))
    assert [len(batch) for batch in seen] == [5, 5, 2]
    assert torch.equal(torch.cat(seen).sort(0).values, rows(12).sort(0).values)


def member(ablation=None, symmetric=True, without=(), spacing=0.7, outputs=1):
    net = {"kind": "perceptron", "inputs": D, "hidden": [6], "outputs": 1, "bound": 8.0}
    maker = {"kind": "vector step", "inputs": D, "hidden": [6], "bound": 8.0, "reach": 1.0}
    plan = Plan(False, net | {"outputs": outputs}, net, maker, 1, 5, 64, 0.01, 1.0,
                frozenset(INGREDIENTS) - set(without), ablation, symmetric)  # fmt: skip
    return Member(plan, torch.Generator().manual_seed(1), spacing)


def moved(m, before):
    nets = {"c": m.c, "h": m.q, "g_c": m.g_c, "g_h": m.g_h}
    return {
        name
        for name, net in nets.items()
        if any(not torch.equal(a, b) for a, b in zip(net.parameters(), before[name], strict=True))
    }


def weights_of(m):
    nets = {"c": m.c, "h": m.q, "g_c": m.g_c, "g_h": m.g_h}
    return {name: [p.detach().clone() for p in net.parameters()] for name, net in nets.items()}


@pytest.mark.parametrize(
    ("ablation", "without", "first", "second"),
    [
        (None, (), {"c", "h", "g_c", "g_h"}, {"c", "h"}),
        ("c", (), {"c", "g_c"}, {"c"}),
        ("h", (), {"h", "g_h"}, {"h"}),
        ("only_g_c", (), {"c", "h", "g_c"}, {"c", "h"}),
        ("only_g_h", (), {"c", "h", "g_h"}, {"c", "h"}),
        (None, ("generators",), {"c", "h"}, {"c", "h"}),
        (None, ("comparator",), {"c", "g_c"}, {"c"}),
    ],
)
def test_a_step_trains_what_it_should(ablation, without, first, second):
    """Generators at every fourth step, beginning with the first."""
    m = member(ablation, without=without)
    for number in range(6):
        before = weights_of(m)
        losses = m.step(rows())
        assert moved(m, before) == (first if number in (0, 4) else second), number
        assert [loss != 0 for loss in losses] == [
            n in moved(m, before) for n in ("c", "h", "g_c", "g_h")
        ]


@pytest.mark.parametrize("ablation", [None, "only_g_c", "only_g_h"])
def test_each_network_learns_from_its_own_generator(ablation):
    m, x = member(ablation), rows()
    m.step(rows(seed=1))  # the second step trains no generator
    other = copy.deepcopy(m)
    g_c, g_h = (other.g_h if ablation == "only_g_h" else other.g_c,
                other.g_c if ablation == "only_g_c" else other.g_h)  # fmt: skip
    expected = [other.membership_loss(x, g_c(x).detach()), other.comparator_loss(x, g_h(x).detach())]
    assert m.step(x)[:2] == pytest.approx([float(loss) for loss in expected], rel=1e-6)


def test_trained_generators_make_what_is_taken_for_a_member():
    m, x = member(), rows(64)
    before = [float(m.generator_loss(x, of_h=of_h).detach()) for of_h in (False, True)]
    for _ in range(60):
        m._descend(2, m.generator_loss(x, of_h=False))
        m._descend(3, m.generator_loss(x, of_h=True))
    after = [float(m.generator_loss(x, of_h=of_h).detach()) for of_h in (False, True)]
    assert after[0] < 0.9 * before[0] and after[1] < 0.9 * before[1]


def softplus(values):
    return np.logaddexp(0, values.detach().double().numpy())


def novelty(x, fake, spacing):
    return np.minimum(1, np.linalg.norm((fake - x).detach().numpy(), axis=1) / spacing)


def test_generator_losses_by_hand():
    m, x = member(spacing=0.7), rows()
    for of_h, net in ((False, m.g_c), (True, m.g_h)):
        fake = net(x)
        far = np.linalg.norm((fake - x).detach().numpy(), axis=1) / 0.7
        if of_h:
            expected = softplus(-(2 * m.q(fake) - m.q(x))[:, 0]).mean() + far.mean()
        else:
            expected = softplus(-m.c(fake)[:, 0]).mean() + (1 - np.minimum(1, far)).mean()
            expected += 0.1 * far.mean()
        assert float(m.generator_loss(x, of_h=of_h).detach()) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("ablation", [None, "c", "only_g_c", "only_g_h"])
@pytest.mark.parametrize("with_negatives", [False, True])
def test_membership_loss_by_hand(ablation, with_negatives):
    m, x = member(ablation, without=() if with_negatives else ("negatives",)), rows()
    maker = m.g_h if ablation == "only_g_h" else m.g_c
    fake = maker(x).detach()
    assert torch.equal(m._fakes(x)[0], fake)
    assert torch.equal(m._fakes(x)[1], (m.g_c if ablation == "only_g_c" else m.g_h)(x).detach())
    weight = novelty(x, fake, 0.7)
    if ablation != "c":
        weight = weight * (1 + np.minimum(1, softplus((2 * m.q(fake) - m.q(x))[:, 0]))) / 2
    expected = softplus(-m.c(x)[:, 0]).mean()
    share = 1.0
    if with_negatives:
        made, _ = generic_negatives(x, torch.Generator().set_state(m.random.get_state()), 0.7)
        expected, share = expected + softplus(m.c(made)[:, 0]).mean(), 0.5
    expected += share * (weight * softplus(m.c(fake)[:, 0])).mean()
    assert float(m.membership_loss(x, fake).detach()) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("symmetric", [False, True])
def test_comparator_loss_by_hand(symmetric):
    """The row against less and more damage, less against more, and the row against the generator's."""
    m, x = member(symmetric=symmetric), rows()
    fake = m.g_h(x).detach()
    less, more = graded_pair(x, torch.Generator().set_state(m.random.get_state()))
    expected = softplus(-m.q(x)[:, 0]).mean()
    for better, worse, weight in (
        (x, less, 1.0), (x, more, 1.0), (less, more, 1.0), (x, fake, 0.5 * novelty(x, fake, 0.7)),
    ):  # fmt: skip
        high, low = m.q(better)[:, 0], m.q(worse)[:, 0]
        each = softplus(2 * low - high)  # "the worse is as good" is rejected
        if symmetric:
            each = each + softplus(low - 2 * high)  # "the better is as good" is accepted
        expected += (weight * each).mean()
    assert float(m.comparator_loss(x, fake).detach()) == pytest.approx(expected, rel=1e-5)


def test_kinds_of_negatives_are_told_apart():
    """With more outputs the log-odds are of the first against all others, and kinds are learned."""
    m, x = member(without=("generators", "comparator"), outputs=6), rows(16)
    made, kinds = generic_negatives(x, torch.Generator().set_state(m.random.get_state()), 0.7)
    own, negative = m.c(x).detach().double().numpy(), m.c(made).detach().double().numpy()

    def odds(outputs):
        return np.log(np.exp(outputs[:, 0]) / np.exp(outputs[:, 1:]).sum(1))

    named = negative[:, 1:-1] - np.log(np.exp(negative[:, 1:-1]).sum(1, keepdims=True))
    expected = np.logaddexp(0, -odds(own)).mean() + np.logaddexp(0, odds(negative)).mean()
    expected -= named[np.arange(16), kinds.numpy()].mean()
    assert float(m.membership_loss(x, None).detach()) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("averaging", [True, False])
def test_means_of_weights(averaging):
    m = member(without=() if averaging else ("averaging",))
    means = [p.clone() for p in m.means[0].parameters()]
    for number in range(1, 8):
        m.step(rows())
        decay = number / (number + 10) if averaging else 0.0
        means = [decay * a + (1 - decay) * b for a, b in zip(means, m.c.parameters(), strict=True)]
        assert all(torch.allclose(a, b) for a, b in zip(means, m.means[0].parameters(), strict=True))
    pairs = zip(m.means[0].parameters(), m.c.parameters(), strict=True)
    assert any(torch.equal(a, b) for a, b in pairs) is not averaging


def test_held_out_rows_are_judged_by_the_means_and_always_the_same_draws():
    m = member()
    m.step(rows())
    for _ in range(2):
        alike = copy.deepcopy(m)
        alike.c, alike.q, alike.random = *m.means, torch.Generator().manual_seed(5)
        expected = alike.membership_loss(rows(8, 2), None) + alike.comparator_loss(rows(8, 2), None)
        assert m.held_out_loss(rows(8, 2), seed=5) == pytest.approx(float(expected), rel=1e-6)


def test_training_ends_when_held_out_rows_say_so():
    m, losses = member(), iter([3.0, 2.0, 2.5, 2.5, 2.5, 2.5, 1.0])
    m.plan = dataclasses.replace(m.plan, epochs=50, batch_size=4)
    m.held_out_loss = lambda inputs, seed: next(losses)
    m.train(rows(40), rows(4, 1), lambda: None)
    looks = [record["held_out"] for record in m.history if "held_out" in record]
    assert looks == [3.0, 2.0, 2.5, 2.5, 2.5, 2.5]


def test_negatives_are_not_the_rows():
    x = rows(400)
    made, kinds = generic_negatives(x, torch.Generator().manual_seed(0), 0.7)
    assert sorted(np.bincount(kinds.numpy())) == [100] * 4
    off = torch.linalg.vector_norm(made - x, dim=1)
    assert float((off == 0).float().mean()) < 0.1
    exchanged = made[kinds == 1]  # every feature is one that some row has
    assert all(bool(torch.isin(exchanged[:, j], x[:, j]).all()) for j in range(D))
    beyond, start = made[kinds == 2], x[kinds == 2]
    for one, first in zip(beyond[:20], start[:20], strict=True):  # away from another row
        steps = (one - first) / (first - x)
        spread = (steps - steps.mean(1, keepdim=True)).abs().amax(1)
        assert bool(((spread < 1e-3) & (steps.mean(1) >= 0)).any()) or torch.equal(one, first)


def test_damage_is_graded_and_of_the_levels_it_says():
    x = torch.zeros(4000, 2)
    less, more = graded_pair(x, torch.Generator().manual_seed(0))
    small, large = (torch.linalg.vector_norm(d, dim=1) for d in (less, more))
    assert bool((small <= large).all()) and float(small.median()) < 0.5 * float(large.median())
    # Levels are log-uniform from 0.03 to 1.5: the larger of two is the root of a uniform number away.
    ratio = torch.log((large / small)[small > 0]) / math.log(50)
    assert float(ratio.mean()) == pytest.approx(1 / 3, abs=0.02)
