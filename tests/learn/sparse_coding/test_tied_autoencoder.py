"""Tied autoencoders of any depth: gradients by finite differences, conversion, parameters."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from pindown.learn.sparse_coding import TiedAutoencoder, loss_and_gradient


def model_of(widths, rectified=False):
    torch.set_num_threads(1)
    model = TiedAutoencoder(widths, rectified_output=rectified, seed=1)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for bias in model.biases:
            bias.add_(0.3 * torch.randn(bias.shape, generator=generator, dtype=torch.float64))
    return model


@pytest.mark.parametrize("widths", [[4, 6], [4, 5, 3], [3, 4, 4, 2]])
@pytest.mark.parametrize("rectified", [False, True])
def test_finite_differences(widths, rectified):
    model = model_of(widths, rectified)
    y = torch.randn(5, widths[0], generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    def loss():
        return 0.5 * ((model(y) - y) ** 2).sum(dim=1).mean()

    loss().backward()
    step = 1e-6
    for parameter in model.parameters():
        slopes = torch.zeros_like(parameter)
        for index in np.ndindex(*parameter.shape):
            with torch.no_grad():
                parameter[index] += step
                up = loss().item()
                parameter[index] -= 2 * step
                down = loss().item()
                parameter[index] += step
            slopes[index] = (up - down) / (2 * step)
        np.testing.assert_allclose(parameter.grad.numpy(), slopes.numpy(), atol=1e-6)


@pytest.mark.parametrize("widths", [[4, 6], [4, 5, 3], [3, 4, 4, 2]])
@pytest.mark.parametrize("rectified", [False, True])
def test_conversion_and_counts(widths, rectified):
    model = model_of(widths, rectified)
    count = len(widths) - 1
    net = model.to_network()
    y = np.random.default_rng(0).normal(size=(50, widths[0]))
    np.testing.assert_allclose(net(y), model(torch.tensor(y)).detach().numpy(), atol=1e-12)
    assert len(net.hidden_widths) == 2 * count - 1 + rectified
    weights = sum(a * b for a, b in pairwise(widths))
    assert len(model.weights) == count
    assert len(model.biases) == 2 * count
    biases = sum(widths[1:]) + sum(widths[:-1])
    assert sum(p.numel() for p in model.parameters()) == weights + biases


def test_gradient_of_a_tied_matrix_is_the_sum_of_its_two_uses():
    model = model_of([4, 5])
    (W,), (b1, b2) = model.weights, model.biases
    y = torch.randn(6, 4, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    (0.5 * ((model(y) - y) ** 2).sum()).backward()
    encoder, decoder = (W.detach().clone().requires_grad_() for _ in range(2))
    loss = 0.5 * ((torch.relu(y @ encoder.T + b1) @ decoder + b2 - y) ** 2).sum()
    parts = torch.autograd.grad(loss, [encoder, decoder])
    np.testing.assert_allclose(W.grad.numpy(), (parts[0] + parts[1]).numpy(), atol=1e-12)


def test_one_layer_without_output_bias_is_the_sparse_coder():
    model = TiedAutoencoder([4, 6], seed=3)
    with torch.no_grad():
        model.biases[0] -= 0.1
    y = np.random.default_rng(0).normal(size=(8, 4))
    loss = 0.5 * ((model(torch.tensor(y)) - torch.tensor(y)) ** 2).sum(dim=1).mean()
    loss.backward()
    value, gradient = loss_and_gradient(model.weights[0].detach().numpy(), y, 0.1)
    assert value == pytest.approx(loss.item())
    np.testing.assert_allclose(model.weights[0].grad.numpy(), gradient, atol=1e-12)


def test_bad_widths_are_explained():
    for widths in ([4], [], [4, 0]):
        with pytest.raises(ValueError, match="widths need"):
            TiedAutoencoder(widths)
