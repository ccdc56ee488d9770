"""Reading torch modules, compared with the modules themselves, row by row in float64."""

import numpy as np
import torch
from torch import nn

from pindown import Model, ReluNetwork


def check_model(module: nn.Module, shape: tuple[int, ...], n: int = 4) -> Model:
    """Check values against the module in evaluation mode, row by row, and return the model."""
    module = module.double().eval()
    model = Model.from_torch(module, input_shape=shape)
    X = np.random.default_rng(0).normal(size=(n, *shape))
    with torch.no_grad():
        wanted = torch.cat([module(x[None]).reshape(1, -1) for x in torch.from_numpy(X)]).numpy()
    np.testing.assert_allclose(model(X), wanted, rtol=1e-9, atol=1e-9)
    return model


def check_counted(module: nn.Module, shape: tuple[int, ...], n: int = 4) -> Model:
    """Check values, and that trained numbers are counted as torch counts them."""
    model = check_model(module, shape, n)
    assert model.n_parameters == sum(p.numel() for p in module.parameters())
    return model


def check_agreement(module: nn.Module, shape: tuple[int, ...], n: int = 30) -> ReluNetwork:
    """Check the reading and its exact form, and return that."""
    model = check_model(module, shape, n)
    net = model.relu_network()
    X = np.random.default_rng(0).normal(size=(n, *shape))
    np.testing.assert_allclose(net(X), model(X), rtol=1e-9, atol=1e-9)
    return net


class Function(nn.Module):
    """A module whose forward is the given function of itself and its input, (1, 4, 6)."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.vector = nn.Parameter(torch.randn(6))
        self.matrix = nn.Parameter(torch.randn(6, 6))
        self.register_buffer("scale", torch.rand(6) + 0.5)
        self.register_buffer("lower", torch.tril(torch.ones(4, 4)))

    def forward(self, x):
        return self.function(self, x)
