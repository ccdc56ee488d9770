"""Kernels layer by layer are those of the whole Jacobian, and what has no rule is differentiated."""

import time

import numpy as np
import pytest
import torch
from torch import nn

from pindown.bias import empirical_ntk
from pindown.bias.tangent_kernel.layerwise import Gradients, Products, _Layers

RNG = np.random.default_rng(0)


class Residual(nn.Module):
    """Convolutions of several kinds, work in place, a skip, and norms."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(2, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.groups = nn.Conv2d(4, 4, 3, padding="same", groups=2, dilation=2, padding_mode="circular")
        self.wide = nn.Conv2d(4, 40, 3, stride=2)
        self.dense = nn.Linear(40, 3)
        self.last = nn.LayerNorm(3)

    def forward(self, x):
        h = torch.relu_(self.norm(self.first(x)))
        h = nn.functional.max_pool2d(h + nn.functional.gelu(self.groups(h)), 2)
        return self.last(torch.relu_(self.dense(nn.functional.relu(self.wide(h)).mean((2, 3)))))


def residual():
    torch.manual_seed(0)
    module = Residual()
    module(torch.randn(50, 2, 10, 10))  # sets the norm's means
    with torch.no_grad():
        module.last.weight.copy_(torch.tensor([1.0, 2.0, 3.0]))
    return module.eval()


@pytest.mark.parametrize("outputs", ["mean", "each", "full"])
@pytest.mark.parametrize("biases", [True, False])
def test_layers_of_every_kind_add_up_to_the_jacobian(outputs, biases):
    module = residual()
    X, Z = RNG.standard_normal((6, 2, 10, 10)), RNG.standard_normal((5, 2, 10, 10))
    for other in (None, Z):
        wanted = empirical_ntk(module, X, other, outputs=outputs, biases=biases, method="jacobian")
        for memory in (None, 1e5):  # whole, and in blocks of two rows
            found = empirical_ntk(
                module, X, other, outputs=outputs, biases=biases, method="closed", memory=memory
            )
            np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())


@pytest.mark.parametrize(
    "module",
    [
        nn.Sequential(nn.Conv1d(3, 5, 2, stride=2), nn.Tanh(), nn.Flatten(), nn.Linear(20, 1)),
        nn.Sequential(
            nn.Linear(8, 4), nn.Sigmoid(), nn.LayerNorm([3, 4]), nn.Flatten(), nn.Linear(12, 2)
        ),
        nn.Sequential(nn.Conv1d(3, 4, 3, bias=False), nn.BatchNorm1d(4), nn.ReLU(), nn.Flatten()).eval(),
    ],
    ids=["windows of a sequence", "dense layers at several places", "no bias"],
)
def test_sequences(module):
    X = RNG.standard_normal((4, 3, 8))
    wanted = empirical_ntk(module, X, outputs="full", method="jacobian")
    found = empirical_ntk(module, X, outputs="full", method="closed")
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())


def test_each_layer_takes_the_cheaper_form():
    """Windows are many where an image is large: the layer's own gradients then cost less than pairs."""
    layers = _Layers(residual(), True)
    parts = layers.checked(torch.as_tensor(RNG.standard_normal((2, 2, 10, 10))))
    kinds = dict(zip(layers._names, (type(part) for part in parts), strict=True))
    assert kinds["first.weight"] is Gradients and kinds["dense.weight"] is Products
    assert kinds["wide.weight"] is Products  # 16 pairs of places, 36 by 40 weights


class Elsewhere(nn.Module):
    """A weight that a layer's own rule does not know all uses of."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 3)

    def forward(self, x):
        return self.inner(x) + x @ self.inner.weight


class OfTheBatch(nn.Linear):
    """No layer that is known by its type."""


class Centred(nn.Module):
    """Rows that depend on each other."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 2)

    def forward(self, x):
        h = self.inner(x)
        return h - h.mean(0) + h * h


@pytest.mark.parametrize(
    "module",
    [Elsewhere(), OfTheBatch(3, 2), Centred(), nn.Sequential(nn.Linear(3, 2), nn.GroupNorm(1, 2))],
    ids=["used elsewhere", "another type", "rows depend on each other", "group norm"],
)
def test_what_no_rule_describes_is_differentiated(module):
    X = RNG.standard_normal((4, 3))
    wanted = empirical_ntk(module, X, method="jacobian")
    np.testing.assert_array_equal(empirical_ntk(module, X), wanted)
    with pytest.raises(ValueError, match="no closed form is known"):
        empirical_ntk(module, X, method="closed")


def test_a_module_is_as_it_was():
    """Also one that uses a layer twice, where torch's functional_call does not put everything back."""
    twice = nn.Linear(3, 3)
    for module in (nn.Sequential(twice, nn.Tanh(), twice), nn.Sequential(twice, nn.Tanh())):
        before = list(module.parameters())
        for method in ("auto", "jacobian", "products"):
            empirical_ntk(module, RNG.standard_normal((2, 3)), method=method)
        assert all(a is b for a, b in zip(before, module.parameters(), strict=True))


@pytest.mark.slow
def test_it_is_much_cheaper_than_jacobians():
    torch.manual_seed(0)
    module = nn.Sequential(
        nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, 120), nn.ReLU(), nn.Linear(120, 10),
    )  # fmt: skip
    X = RNG.standard_normal((200, 1, 28, 28))
    seconds = {}
    for method in ("jacobian", "closed"):
        empirical_ntk(module, X[:2], method=method)
        start = time.process_time()
        empirical_ntk(module, X, method=method)
        seconds[method] = time.process_time() - start
    assert seconds["jacobian"] > 3 * seconds["closed"]
