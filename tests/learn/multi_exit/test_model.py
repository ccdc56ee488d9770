"""Networks with exits: interfaces, adapters, the multi-scale dense network, costs."""

import numpy as np
import pytest
import torch
from torch import nn

from pindown.learn.multi_exit import ExitProtocol, MSDNet, MultiExitModel, exit_costs
from pindown.learn.multi_exit.costs import ExitCosts
from pindown.learn.multi_exit.networks import multi_exit_cnn, multi_exit_mlp, seeded

IMAGES = torch.randn(3, 3, 16, 16, generator=torch.Generator().manual_seed(0))


class Counting(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner, self.calls = inner, 0

    def forward(self, x):
        self.calls += 1
        return self.inner(x)


def counted(model):
    model.stages = nn.ModuleList([Counting(stage) for stage in model.stages])
    model.heads = nn.ModuleList([Counting(head) for head in model.heads])
    return model


def calls(model):
    return [part.calls for part in model.stages], [part.calls for part in model.heads]


@pytest.mark.parametrize("make", [lambda: multi_exit_cnn(3, 4), lambda: MSDNet(4)])
def test_parts_of_the_network_agree_with_the_whole(make):
    model = seeded(make, 0).eval()
    with torch.no_grad():
        everything = model(IMAGES)
        for m in range(1, model.n_exits + 1):
            until = model.forward_until(IMAGES, m)
            assert len(until) == m and all(map(torch.equal, until, everything))
            assert torch.equal(model.exit_only(IMAGES, m), everything[m - 1])
            assert torch.equal(model.prefix(m)(IMAGES), everything[m - 1])


def test_what_is_not_needed_is_not_computed():
    model = counted(multi_exit_mlp(4, 2, hidden=(8, 8, 8, 8)).eval())
    model.exit_only(torch.zeros(2, 4), 2)
    assert calls(model) == ([1, 1, 0, 0], [0, 1, 0, 0])
    model.forward_until(torch.zeros(2, 4), 3)
    assert calls(model) == ([2, 2, 1, 0], [1, 2, 1, 0])


def test_a_chain_gets_exits_and_keeps_its_answer():
    torch.manual_seed(0)
    body = nn.Sequential(
        *(nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU()),
        *(nn.Conv2d(6, 8, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
        nn.Linear(8, 5),
    )
    before = body[1].running_mean.clone()
    model = MultiExitModel.from_sequential(body, after=[2, 4], example=IMAGES)
    assert body.training and torch.equal(body[1].running_mean, before)
    assert model.n_exits == 3
    model.eval()
    with torch.no_grad():
        first, second, last = model(IMAGES)
        assert torch.equal(last, body(IMAGES)) and first.shape == second.shape == (3, 5)
        pooled = torch.relu(body[1](body[0](IMAGES))).mean([2, 3])
        assert torch.allclose(first, model.heads[0].linear(pooled))
    alone = MultiExitModel.from_sequential(body[:5], after=[2, 4], example=IMAGES, n_classes=7)
    assert alone.n_exits == 2 and alone(IMAGES)[1].shape == (3, 7)


def test_transformer_blocks_get_exits_that_average_tokens():
    blocks = [nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0) for _ in range(3)]
    tokens = torch.randn(2, 5, 8)
    model = MultiExitModel.from_sequential(nn.Sequential(*blocks), [0, 2], tokens, n_classes=4).eval()
    with torch.no_grad():
        first, last = model(tokens)
        expected = blocks[2](blocks[1](blocks[0](tokens))).mean(1)
        assert torch.allclose(last, model.heads[1].linear(expected), atol=1e-6)
    assert first.shape == (2, 4)


# ---------------------------------------------------------------------- the multi-scale dense network


def test_published_network_has_its_published_structure():
    model = MSDNet.cifar(100)
    assert (model.n_scales, model.n_layers, model.n_exits) == (3, 24, 11)
    assert model.exit_layers == (4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24)
    # 16 channels and 6 more a layer, halved behind layers 9 and 17, where the finest scale goes; heads
    # read the coarsest scale, with 4 times as many.
    widths = [4 * w for w in (40, 52, 64, 41, 53, 65, 77, 47, 59, 71, 83)]
    assert [head.body[0][0].in_channels for head in model.heads] == widths
    states, state = [], torch.zeros(1, 3, 32, 32)
    with torch.no_grad():
        for stage in model.eval().stages:
            state = stage(state)
            states.append([tuple(part.shape[1:]) for part in state])
    assert states[0] == [(40, 32, 32), (80, 16, 16), (160, 8, 8)]
    assert states[2] == [(64, 32, 32), (128, 16, 16), (256, 8, 8)]
    assert states[3] == [(82, 16, 16), (164, 8, 8)]
    assert states[-1] == [(332, 8, 8)]
    assert model.heads[0].linear.out_features == 100


def test_published_network_for_large_images_has_its_published_structure():
    with torch.device("meta"):  # shapes only
        model = MSDNet.imagenet(1000)
        states, state = [], torch.zeros(1, 3, 224, 224)
        for stage in model.eval().stages:
            state = stage(state)
            states.append([tuple(part.shape[1:]) for part in state])
        outputs = model(torch.zeros(1, 3, 224, 224))
    assert (model.n_scales, model.n_layers, model.n_exits) == (4, 38, 5)
    assert model.exit_layers == ExitProtocol.imagenet().exits == (10, 17, 24, 31, 38)
    assert [tuple(z.shape) for z in outputs] == [(1, 1000)] * 5
    # 32 channels and 16 more a layer; the finest scale goes, with half the channels, behind layer 11.
    assert states[0] == [(192, 56, 56), (384, 28, 28), (768, 14, 14), (768, 7, 7)]
    assert states[1][0][1:] == (28, 28) and len(states[-1]) == 1


@pytest.mark.parametrize("protocol", [ExitProtocol.cifar(), ExitProtocol.imagenet()])
def test_the_protocol_draws_rows_once_and_the_same_number_of_each_class(protocol):
    y = np.repeat(np.arange(3), 750)
    split = protocol.split(y, 100, random_state=1)
    rows = np.concatenate(split)
    assert len(np.unique(rows)) == len(rows) == 3 * protocol.per_class
    held = 50 if protocol.name == "cifar" else 10
    counts = [np.bincount(y[part]).tolist() for part in split]
    assert counts == [[100 - held] * 3, [held] * 3, [protocol.per_class - 100] * 3]
    assert not np.array_equal(split.train, protocol.split(y, 100, random_state=2).train)
    with pytest.raises(ValueError, match="labels_per_class must exceed"):
        protocol.split(y, 751)


def test_the_protocol_lets_the_step_size_fall_when_the_source_does():
    assert ExitProtocol.cifar().drops == (0.5, 0.75) and ExitProtocol.imagenet().drops == (1 / 3, 2 / 3)
    descent = ExitProtocol.cifar().optimiser(MSDNet(3, n_exits=1)).param_groups[0]
    assert (descent["lr"], descent["momentum"], descent["nesterov"], descent["weight_decay"]) == (
        0.5,
        0.9,
        True,
        1e-4,
    )


def test_dense_layers_keep_what_was_there():
    model = MSDNet(3, n_exits=2, base=1, step=1, reduction=1.0, factors=(1, 2)).eval()
    with torch.no_grad():
        first = model.stages[0](IMAGES)
        second = model.stages[1](first)
    assert torch.equal(second[0][:, : first[1].shape[1]], first[1])  # the finest scale is gone by then
    alone = MSDNet(3, n_exits=2, factors=(1,)).eval()
    assert len(alone.stages[1](alone.stages[0](IMAGES))) == 1


@pytest.mark.parametrize("side", [8, 28, 31])
def test_any_size_of_image_will_do(side):
    with torch.no_grad():
        logits = MSDNet(4, in_channels=1).eval()(torch.zeros(2, 1, side, side))
    assert [tuple(z.shape) for z in logits] == [(2, 4)] * 4


# ---------------------------------------------------------------------- costs


def test_costs_are_counted_as_by_hand():
    model = multi_exit_cnn(3, 10, channels=(4, 6), halve=(1,), head_channels=5)
    costs = exit_costs(model.train(), IMAGES)
    assert model.training
    first = 2 * 16 * 16 * 9 * (3 * 4 + 4 * 4)
    second = 2 * 8 * 8 * 9 * (4 * 6 + 6 * 6)
    assert costs.stages == (first, second)
    assert costs.heads == (2 * (8 * 8 * 9 * 4 * 5 + 5 * 10), 2 * (4 * 4 * 9 * 6 * 5 + 5 * 10))
    assert costs.full == first + second + costs.heads[1]
    assert costs.on_the_way[1] == costs.full + costs.heads[0]


def test_costs_do_not_depend_on_the_batch():
    model = MSDNet(4)
    assert exit_costs(model, IMAGES) == exit_costs(model, IMAGES[:1])


# ---------------------------------------------------------------------- bad input


def test_bad_parts_are_refused():
    with pytest.raises(ValueError, match="got 2 stages and 1 heads"):
        MultiExitModel([nn.Identity(), nn.Identity()], [nn.Identity()])
    with pytest.raises(ValueError, match="got 0 stages"):
        MultiExitModel([], [])
    model = multi_exit_mlp(4, 2)
    for m in (0, 4, 1.0, True):
        with pytest.raises(ValueError, match="exit must be an integer of at least 1 and at most 3"):
            model.exit_only(torch.zeros(1, 4), m)
    chain = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
    for after in ([], [1, 0], [2], [-1], [0, 0]):
        with pytest.raises(ValueError, match="ascending places from 0 to 1"):
            MultiExitModel.from_sequential(chain, after, torch.zeros(1, 4), 2)
    with pytest.raises(ValueError, match="n_classes must be given"):
        MultiExitModel.from_sequential(chain, [1], torch.zeros(1, 4))
    with pytest.raises(ValueError, match=r"the chain returns \(3,\), not 2 classes"):
        MultiExitModel.from_sequential(chain, [0], torch.zeros(1, 4), 2)
    with pytest.raises(ValueError, match="a pooled head reads"):
        MultiExitModel.from_sequential(nn.Sequential(nn.Identity()), [0], torch.zeros(4), 2)


def test_bad_sizes_are_refused():
    with pytest.raises(ValueError, match="n_exits must be an integer of at least 1"):
        MSDNet(10, n_exits=0)
    with pytest.raises(ValueError, match="factors must be integers of at least 1"):
        MSDNet(10, factors=())
    with pytest.raises(ValueError, match="reduction must be a number above 0"):
        MSDNet(10, reduction=0.0)
    with pytest.raises(ValueError, match="must be at least 2"):
        MSDNet(10, growth=1, factors=(1, 1))
    with pytest.raises(ValueError, match="one number for each"):
        ExitCosts((1.0,), ())
    with pytest.raises(ValueError, match="not all zero"):
        ExitCosts((0.0,), (0.0,))
