"""Redundant channels of convolutional networks go as a whole, borders and pooling notwithstanding."""

from __future__ import annotations

import numpy as np
import pytest
from torch import nn

from pindown import Box
from pindown.equivalence.comparison import diff
from pindown.equivalence.shrinking import engine, shrink
from tests.equivalence.shrinking import channels
from tests.equivalence.shrinking.channels import ConvNet

SHAPES = {
    "stride": ((1, 8, 8), [(3, {}), (4, {"stride": 2})]),
    "wide padding": ((1, 8, 8), [(3, {"stride": 2, "padding": 2}), (4, {"padding": 0})]),
    "three colours": ((3, 6, 6), [(3, {"padding": 0}), (4, {})]),
    "average pooling": ((1, 8, 8), [(3, {"pool": nn.AvgPool2d(2)}), (4, {})]),
    "max pooling": ((1, 8, 8), [(2, {"pool": nn.MaxPool2d(2)}), (3, {"pool": nn.MaxPool2d(2)})]),
    "overlapping windows": ((1, 6, 6), [(2, {"pool": nn.MaxPool2d(3, 2, 1)}), (3, {})]),
}
EVERYWHERE = (
    channels.dead,
    channels.constant,
    channels.duplicate,
    channels.proportional,
    channels.opposite_pairs,
    channels.split_layer,
    channels.identity_layer,
)
# Of what repeats as a whole channel; the others are found among the units of a ReLU network.
BY_CHANNELS = [
    kind for kind in EVERYWHERE if kind not in (channels.opposite_pairs, channels.identity_layer)
]


def built(name, kind, layer, seed=0):
    """Return a network and its copy with redundant channels, which are one function."""
    plain = ConvNet(np.random.default_rng(seed), *SHAPES[name])
    more = plain.copy()
    kind(more, layer, np.random.default_rng(seed + 1))
    first, second = plain.network(), more.network()
    X = np.random.default_rng(seed + 2).random((50, first.in_features))
    np.testing.assert_allclose(first(X), second(X), atol=1e-9)
    assert second.size > first.size
    return first, second


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("kind", EVERYWHERE, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("name", SHAPES)
def test_redundant_channels_go_without_a_box(name, kind, layer):
    first, second = built(name, kind, layer)
    before, after = shrink(first), shrink(second)
    # As narrow as the network without them, layer by layer, and never wider than it came.
    assert after.network.widths == before.network.widths
    assert after.network.size <= first.size
    X = np.random.default_rng(3).standard_normal((50, first.in_features))
    gaps = np.abs(after.network(X) - second(X)).max(axis=1)
    assert (gaps <= after.gap_upper * (1 + np.linalg.norm(X, axis=1)) + 1e-9).all()


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("kind", EVERYWHERE, ids=lambda kind: kind.__name__)
def test_networks_with_redundant_channels_are_proved_the_same(kind, layer):
    first, second = built("stride", kind, layer)
    for box in (None, Box.cube(first.in_features, 0, 1)):
        answer = diff(first, second, box=box, tol=1e-6, budget=60)
        assert answer.verdict == "same", answer


@pytest.mark.parametrize("kind", BY_CHANNELS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    ("name", "layer"), [("wide padding", 0), ("average pooling", 0), ("max pooling", 1)]
)
def test_redundant_channels_of_a_model_go_and_convolutions_stay(name, kind, layer):
    plain = ConvNet(np.random.default_rng(0), *SHAPES[name])
    more = plain.copy()
    kind(more, layer, np.random.default_rng(1))
    model, given = plain.model(), more.model()
    result = shrink(given)
    assert result.model.n_parameters <= model.n_parameters < given.n_parameters and result.steps
    assert [op.name for op in result.model.operations] == [op.name for op in model.operations]
    X = np.random.default_rng(3).standard_normal((20, model.in_features))
    gaps = np.abs(result.model(X) - given(X)).max(axis=1)
    assert (gaps <= result.gap_upper * (1 + np.linalg.norm(X, axis=1)) + 1e-9).all()


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("name", SHAPES)
def test_channels_that_are_always_on_go_on_a_box(monkeypatch, name, layer):
    # Intervals see it; a search for what else holds on the box would only take time.
    monkeypatch.setattr(engine, "prove_signs", lambda draft: False)
    first, second = built(name, channels.always_on, layer)
    box = Box.cube(first.in_features, 0, 1)
    before, after = (shrink(net, box=box, budget=30) for net in (first, second))
    assert after.network.size == before.network.size <= first.size
    X = box.sample(50, np.random.default_rng(3))
    assert np.abs(after.network(X) - second(X)).max() <= after.gap_upper + 1e-9


def test_a_channel_that_is_a_multiple_up_to_rounding_goes_with_a_tolerance():
    rng = np.random.default_rng(0)
    plain = ConvNet(rng, *SHAPES["stride"])
    more = plain.copy()
    channels.multiple(more, 0, rng, 1.7)  # 1.7 times a weight is rounded
    first, second = plain.network(), more.network()
    assert shrink(second).network.size > first.size  # not the same number for number
    after = shrink(second, box=(0, 1), tol=1e-6, budget=5)
    assert after.network.size <= first.size and after.gap_upper <= 1e-6


def test_a_channel_that_goes_is_one_line():
    rng = np.random.default_rng(0)
    net = ConvNet(rng, *SHAPES["stride"])
    channels.duplicate(net, 0, rng)
    (step,) = shrink(net.network()).steps
    assert str(step) == "layer 1, merged, units 192-255: copies of other units of the layer"
