"""The validator passes what keeps a symmetry and names the layer that breaks it."""

import numpy as np
import pytest
import torch
from torch import nn

from pindown.symmetry import cyclic, dihedral, symmetric, validate_blueprint
from pindown.symmetry.actions import image_dihedral, image_translations
from pindown.symmetry.layers import (
    CosetPool,
    GroupConv,
    GroupLift,
    GroupPool,
    coset_representation,
)

torch.set_num_threads(1)


class MeanOverPlaces(nn.Module):
    def forward(self, x):
        return x.mean(-1)


def convolution(c_in, c_out):
    return nn.Conv1d(c_in, c_out, 3, padding=1, padding_mode="circular")


def samples(*shape):
    return np.random.default_rng(0).standard_normal(shape)


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


@pytest.mark.parametrize("precision", [torch.float32, torch.float64])
def test_circular_network_with_a_pool_is_valid(precision):
    net = nn.Sequential(
        convolution(2, 4), nn.ReLU(), convolution(4, 4), MeanOverPlaces(), nn.Linear(4, 3)
    )
    report = validate_blueprint(net.to(precision), cyclic(8).permuting(), samples(5, 2, 8))
    assert report.valid and report.invariant and report.broken_at is None
    assert [stage.behaviour.split(" (")[0] for stage in report.stages] == [
        *["moves like the inputs"] * 3,
        *["invariant"] * 2,
    ]
    assert "all 5 stages keep the symmetry" in str(report)


def test_flatten_passes_and_the_dense_layer_is_named():
    net = nn.Sequential(convolution(2, 4), nn.ReLU(), nn.Flatten(), nn.Linear(32, 8), nn.ReLU())
    report = validate_blueprint(net.double(), cyclic(8).permuting(), samples(5, 2, 8))
    assert report.broken_at == "3 Linear" and not report.invariant
    assert "in blocks" in report.stages[2].behaviour
    assert report.stages[3].error > 0.01 and "breaks at 3 Linear" in str(report)


@pytest.mark.parametrize(
    "breaks", [nn.Conv1d(1, 2, 3, padding=1), nn.Conv1d(1, 2, 3, padding=1, stride=2)]
)
def test_zero_padding_and_strides_break_shifts(breaks):
    report = validate_blueprint(nn.Sequential(breaks.double()), cyclic(8).permuting(), samples(4, 1, 8))
    assert report.broken_at == "0 Conv1d"


def test_group_network_goes_from_vectors_to_functions_to_invariants():
    group = dihedral(4).permuting()
    net = nn.Sequential(
        GroupLift(group, 1, 3), nn.ReLU(), GroupConv(group, 3, 2), GroupPool("max")
    ).double()
    report = validate_blueprint(net, group, samples(4, 1, 4))
    assert report.invariant
    assert all("functions on the group" in stage.behaviour for stage in report.stages[:3])


def test_transformer_without_positions_permutes_and_with_positions_does_not():
    group = symmetric(4)
    inverse = group.points[group.inverses]
    sets = group.acting_by(lambda g, X: X[:, inverse[g]])
    block = nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0, batch_first=True).double()
    assert validate_blueprint(block, sets, samples(3, 4, 6)).valid
    places = torch.as_tensor(samples(4, 6))
    broken = [("positions", lambda x: torch.as_tensor(x) + places), ("block", block)]
    assert validate_blueprint(broken, sets, samples(3, 4, 6)).broken_at == "positions"


def test_given_actions_and_large_groups():
    group = symmetric(5).permuting()
    report = validate_blueprint(
        [("sort", np.sort), ("halve", lambda x: x / 2)], group, samples(3, 5), actions={"halve": group}
    )
    assert report.n_elements >= 64
    assert report.stages[0].behaviour == "invariant" and report.broken_at == "halve"


def test_the_model_stays_in_its_mode_and_bad_input_is_refused():
    net = nn.Sequential(nn.Dropout(0.5), convolution(1, 1)).double().train()
    assert validate_blueprint(net, cyclic(6).permuting(), samples(3, 1, 6)).valid
    assert net[0].training
    with pytest.raises(ValueError, match="finite inputs"):
        validate_blueprint(net, cyclic(6), np.empty((0, 6)))
    with pytest.raises(ValueError, match="at least one"):
        validate_blueprint([], cyclic(6), samples(2, 6))


def test_pictures_that_turn_and_shift():
    """A kernel that looks the same from all sides keeps turns; an ordinary one only shifts."""
    images = samples(2, 1, 6, 6)
    even = nn.Conv2d(1, 2, 3, padding=1, padding_mode="circular").double()
    turned = sum(torch.rot90(even.weight.data, k, (2, 3)) for k in range(4))
    flipped = turned + turned.flip(3)
    ordinary = nn.Conv2d(1, 2, 3, padding=1, padding_mode="circular").double()
    even.weight.data = flipped
    for group, layer, keeps in (
        (image_translations(6, 6, 2), ordinary, True),
        (image_dihedral(), even, True),
        (image_dihedral(), ordinary, False),
    ):
        assert validate_blueprint([layer, nn.ReLU()], group, images).valid is keeps


def test_a_broken_stage_is_one_that_moves_in_no_way_tried():
    """Cosets move by an action of their own: without it the verdict must not be called exact."""
    group = cyclic(4)
    layers = [("coset", CosetPool(group, [0, 2])), ("pool", GroupPool())]
    report = validate_blueprint(layers, group, samples(5, 4))
    assert report.broken_at == "coset"
    louder = validate_blueprint([lambda x: 1e6 * layers[0][1](torch.as_tensor(x))], group, samples(5, 4))
    assert louder.stages[0].error == pytest.approx(report.stages[0].error)  # relative to the outputs
    assert "no way tried" in str(report) and "exact" not in str(report)
    actions = {"coset": coset_representation(group, [0, 2])}
    assert validate_blueprint(layers, group, samples(5, 4), actions=actions).invariant


def test_every_part_is_left_in_the_mode_it_was_in():
    """A frozen part of a network in training must not start to train."""
    block = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)).double()
    block[1].eval()
    validate_blueprint([("block", block)], cyclic(4), samples(5, 4))
    assert block.training and block[0].training and not block[1].training


class Residual(nn.Module):
    """Goes its own way: a skip, a part that is called twice, and at the end a place that is picked."""

    def __init__(self, pick):
        super().__init__()
        self.lift, self.body, self.head = convolution(2, 4), convolution(4, 4), nn.Linear(4, 3)
        self.pick = pick

    def forward(self, x):
        x = self.lift(x).relu()
        x = x + self.body(x)
        x = x + self.body(x)
        return self.head(x[:, :, 0] if self.pick else x.mean(-1))


def test_first_layer_that_breaks_is_named_inside_any_module():
    kept, broken = (Residual(pick).double() for pick in (False, True))
    report = validate_blueprint(kept, cyclic(8).permuting(), samples(5, 2, 8))
    assert report.invariant
    assert [s.name for s in report.stages] == [
        "lift Conv1d",
        "body Conv1d",
        "body Conv1d call 2",
        "head Linear",
    ]
    named = validate_blueprint(broken, cyclic(8).permuting(), samples(5, 2, 8))
    assert named.broken_at == "head Linear" and named.stages[2].behaviour != "broken"
    deep = nn.Sequential(convolution(2, 2), nn.Sequential(nn.ReLU(), Residual(True)), nn.ReLU()).double()
    inside = validate_blueprint(deep, cyclic(8).permuting(), samples(5, 2, 8))
    assert inside.broken_at == "1.1.head Linear" and not deep._modules["1"]._forward_hooks


def test_what_a_module_does_after_its_last_part_is_seen():
    class Picks(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = convolution(2, 3)

        def forward(self, x):
            return self.layer(x)[:, :, 0]

    report = validate_blueprint(Picks().double(), cyclic(8).permuting(), samples(5, 2, 8))
    assert report.broken_at == "the answer of Picks"
    within = validate_blueprint(
        nn.Sequential(Picks(), nn.ReLU()).double(), cyclic(8).permuting(), samples(5, 2, 8)
    )
    assert within.broken_at == "0 Picks"
