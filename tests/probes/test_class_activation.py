"""Maps divide scores exactly where the theory says so, and Grad-CAM is the same map there."""

import numpy as np
import pytest
import torch
from torch import nn

from pindown.probes import class_activation_maps


def pooled_network(seed=0, inplace=False, dtype=torch.float64):
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(inplace=inplace),
        nn.Conv2d(6, 5, 3), nn.ReLU(inplace=inplace),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(5, 4),
    ).to(dtype)  # fmt: skip


def images(n=7, seed=0):
    return np.random.default_rng(seed).standard_normal((n, 3, 9, 8))


@pytest.mark.parametrize("classes", [None, 2, [0, 1, 2, 3, 0, 1, 2]])
def test_mean_of_the_map_is_the_score_without_its_bias(classes):
    net, X = pooled_network(), images()
    found = class_activation_maps(net, X, layer="3", classes=classes)
    assert found.maps.shape == (7, 7, 6) and found.kind == "exact"
    np.testing.assert_allclose(found.maps.mean(axis=(1, 2)), found.scores - found.offsets, atol=1e-12)
    with torch.no_grad():
        scores = net(torch.from_numpy(X)).numpy()
    chosen = scores.argmax(axis=1) if classes is None else np.broadcast_to(classes, 7)
    np.testing.assert_array_equal(found.classes, chosen)
    np.testing.assert_allclose(found.scores, scores[np.arange(7), chosen])
    np.testing.assert_allclose(found.offsets, net[6].bias.detach().numpy()[chosen])


@pytest.mark.parametrize("inplace", [False, True])
def test_gradients_give_the_same_map_up_to_the_number_of_places(inplace):
    net, X = pooled_network(1, inplace), images(seed=1)
    cam = class_activation_maps(net, X, layer=net[3], classes=1)
    grad = class_activation_maps(net, X, layer=net[3], classes=1, method="grad-cam")
    np.testing.assert_allclose(grad.maps, np.maximum(cam.maps, 0) / (7 * 6), atol=1e-14)
    assert grad.kind == "heuristic" and np.isnan(grad.offsets).all()


def test_gradients_by_differences_in_a_network_of_another_form():
    torch.manual_seed(2)
    net = nn.Sequential(
        nn.Conv2d(1, 2, 2), nn.Tanh(), nn.Flatten(), nn.Linear(18, 5), nn.Tanh(), nn.Linear(5, 3)
    ).double()
    X = np.random.default_rng(2).standard_normal((1, 1, 4, 4))
    found = class_activation_maps(net, X, layer="1", classes=2, method="grad-cam")
    features = net[:2](torch.from_numpy(X)).detach()
    slopes, step = np.zeros((2, 3, 3)), 1e-6
    for k, i, j in np.ndindex(2, 3, 3):
        for sign in (1, -1):
            moved = features.clone()
            moved[0, k, i, j] += sign * step
            slopes[k, i, j] += sign * float(net[2:](moved)[0, 2].detach()) / (2 * step)
    expected = np.einsum("k,khw->hw", slopes.mean(axis=(1, 2)), features[0].numpy())
    np.testing.assert_allclose(found.maps[0], np.maximum(expected, 0), atol=1e-8)
    with pytest.raises(ValueError, match="grad-cam"):
        class_activation_maps(net, X, layer="1")


def test_map_points_at_the_object():
    """A bright spot is the only evidence; the map's largest place is where it is."""
    net = nn.Sequential(nn.Identity(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1, 2)).double()
    with torch.no_grad():
        net[3].weight.copy_(torch.tensor([[-1.0], [1.0]]))
    X = np.zeros((1, 1, 6, 6))
    X[0, 0, 4, 1] = 5.0
    found = class_activation_maps(net, X, layer="0", classes=1)
    assert np.unravel_index(found.maps[0].argmax(), (6, 6)) == (4, 1)
    larger = found.resized(12, 12)
    assert larger.shape == (1, 12, 12) and larger[0, 8:10, 2:4].mean() > 0.5 * larger.max()


def test_model_is_not_changed_and_wrong_layers_are_told():
    net, X = pooled_network(3).train(), images(2)
    before = [p.clone() for p in net.parameters()]
    class_activation_maps(net, X, layer="3", method="grad-cam")
    assert net.training and all(p.requires_grad and p.grad is None for p in net.parameters())
    assert all(torch.equal(a, b) for a, b in zip(before, net.parameters(), strict=True))
    with pytest.raises(ValueError, match="means of the maps"):
        class_activation_maps(net, X, layer="2")  # before the rectifier
    for settings, words in (
        ({"layer": "9"}, "one of the model's modules"),
        ({"layer": "6"}, "channels, h, w"),
        ({"layer": "3", "classes": 4}, "0 to 3"),
        ({"layer": "3", "classes": [0]}, "one or 2"),
        ({"layer": "3", "method": "other"}, "method"),
    ):
        with pytest.raises(ValueError, match=words):
            class_activation_maps(net, X, **settings)
    with pytest.raises(ValueError, match="finite"):
        class_activation_maps(net, np.full((1, 3, 9, 8), np.nan), layer="3")
    with pytest.raises(TypeError, match="torch"):
        class_activation_maps(lambda x: x, X, layer="3")


def test_single_precision_and_no_bias():
    net = pooled_network(4, dtype=torch.float32)
    net[6] = nn.Linear(5, 4, bias=False)
    found = class_activation_maps(net, images(), layer="3")
    np.testing.assert_allclose(found.maps.mean(axis=(1, 2)), found.scores, rtol=1e-4, atol=1e-5)


class Residual(nn.Module):
    """A small residual network for colour images of any size."""

    def __init__(self, head):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 7, stride=2, padding=3, bias=False), nn.BatchNorm2d(8))
        self.pool = nn.MaxPool2d(3, stride=2, padding=1)
        self.a = nn.Conv2d(8, 8, 3, padding=1)
        self.b = nn.Conv2d(8, 8, 3, padding=1)
        self.head = head

    def forward(self, x):
        x = self.pool(torch.relu(self.stem(x)))
        return self.head(torch.relu(x + self.b(torch.relu(self.a(x)))))


MEAN = (nn.AdaptiveAvgPool2d(1), nn.Flatten())
HEADS = {
    "linear": ("head.0", lambda: (nn.Identity(), *MEAN, nn.Linear(8, 5))),
    "places": ("head.0", lambda: (nn.Identity(), MEAN[0], nn.Conv2d(8, 5, 1), MEAN[1])),
    "scores": ("head.1", lambda: (nn.Conv2d(8, 5, 1), nn.ReLU(), *MEAN)),
}


@pytest.mark.parametrize("kind", HEADS)
def test_networks_of_other_forms_on_larger_images(kind):
    """Colour images of 96 by 64, more than fit in one pass; heads of three kinds."""
    torch.manual_seed(5)
    layer, head = HEADS[kind]
    net = Residual(nn.Sequential(*head())).double()
    net.stem[1].running_mean.uniform_(-1, 1)
    X = np.random.default_rng(5).random((67, 3, 96, 64))
    found = class_activation_maps(net, X, layer=layer)
    assert found.maps.shape == (67, 24, 16) and found.resized(96, 64).shape == (67, 96, 64)
    with torch.no_grad():
        scores = net.eval()(torch.from_numpy(X)).numpy()
    np.testing.assert_array_equal(found.classes, scores.argmax(axis=1))
    np.testing.assert_allclose(found.maps.mean(axis=(1, 2)) + found.offsets, scores.max(axis=1))
    some = class_activation_maps(net, X[:3], layer=layer, method="grad-cam", classes=[0, 4, 2])
    whole = class_activation_maps(net, X[:3], layer=layer, classes=[0, 4, 2])
    np.testing.assert_allclose(some.maps, np.maximum(whole.maps, 0) / (24 * 16), atol=1e-14)
    with pytest.raises(ValueError, match="0 to 4"):
        class_activation_maps(net, X[:1], layer=layer, classes=5)
