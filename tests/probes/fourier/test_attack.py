"""Attacks that are small in every frequency."""

import numpy as np
import pytest
import torch
from torch import nn

from pindown import ReluNetwork
from pindown.bias.margins import fourier_norm, spectrum
from pindown.probes.fourier import fourier_attack

from .planted import noise, planted

torch.set_num_threads(1)


@pytest.mark.parametrize("steps", [1, 7])
@pytest.mark.parametrize("shape", [(4, 6), (5, 5)])
def test_linear_classifiers_lose_what_duality_says(steps, shape):
    rng = np.random.default_rng(0)
    w, X = rng.standard_normal(shape), rng.standard_normal((8, *shape))
    net = ReluNetwork.from_layers([(w.reshape(1, -1), [0.3])], input_shape=shape)
    found = fourier_attack(net, X, radius=0.05, steps=steps)
    scores = np.abs(np.tensordot(X, w, 2) + 0.3)
    lost = 0.05 * fourier_norm(w.ravel(), 1.0, shape)
    np.testing.assert_allclose(found.margin, scores - lost, atol=1e-10)
    moduli = np.abs(spectrum((found.X - X).reshape(8, -1), shape))
    np.testing.assert_allclose(moduli, 0.05, atol=1e-12)  # flat
    assert (found.success == (scores < lost)).all()


def test_changes_stay_within_the_radius_and_do_no_worse_than_random_ones():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Flatten(), nn.Linear(64, 30), nn.ReLU(), nn.Linear(30, 4)).double()
    X = noise(20, side=8)
    found = fourier_attack(module, X, radius=0.3)
    change = (found.X - X).reshape(20, -1)
    assert np.abs(spectrum(change, (8, 8))).max() <= 0.3 * (1 + 1e-9)

    def margins(images):
        scores = module(torch.tensor(images)).detach().numpy()
        rows, own = np.arange(20), module(torch.tensor(X)).argmax(1).numpy()
        rest = scores.copy()
        rest[rows, own] = -np.inf
        return scores[rows, own] - rest.max(axis=1)

    np.testing.assert_allclose(margins(found.X), found.margin, atol=1e-9)
    rng = np.random.default_rng(0)
    for _ in range(50):
        drawn = np.fft.fft2(rng.standard_normal(X.shape))
        other = np.fft.ifft2(0.3 * drawn / np.abs(drawn), norm="ortho").real
        assert (margins(X + other) >= found.margin).all()


def test_steps_too_far_are_taken_back_and_more_steps_reach_farther():
    """The output |x| falls to zero and rises again: a step of one from 0.1 ends at 0.9."""
    hat = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
    X = np.array([[0.1], [-0.2]])
    far = fourier_attack(hat, X, radius=1.0, steps=1, image_shape=(1,))
    np.testing.assert_allclose(far.margin, [0.1, 0.2])
    np.testing.assert_array_equal(far.X, X)
    near = fourier_attack(hat, X, radius=1.0, steps=40, image_shape=(1,))
    assert (near.margin <= 0.05).all() and (near.margin < far.margin).all()


def test_radius_zero_changes_nothing_and_bad_input_is_refused():
    net, X = planted((1, 1), side=4), noise(3, side=4)
    assert np.array_equal(fourier_attack(net, X, radius=0.0).X, X)
    with pytest.raises(ValueError, match="radius"):
        fourier_attack(net, X, radius=-1.0)
    with pytest.raises(ValueError, match="steps"):
        fourier_attack(net, X, radius=1.0, steps=0)
    assert "3 images" in str(fourier_attack(net, X, radius=1.0))


def test_targets_are_led_to():
    """Of a linear classifier of three classes each loses, or wins, what duality says."""
    rng = np.random.default_rng(1)
    W, X = rng.standard_normal((3, 36)), rng.standard_normal((40, 6, 6))
    net = ReluNetwork.from_layers([(W, np.zeros(3))], input_shape=(6, 6))
    for target in range(3):
        found = fourier_attack(net, X, target=target, radius=0.2, steps=10)
        scores = found.X.reshape(40, -1) @ W.T
        np.testing.assert_array_equal(found.success, scores.argmax(axis=1) == target)
        ahead = np.delete(scores, target, axis=1).max(axis=1) - scores[:, target]
        np.testing.assert_allclose(found.margin, ahead, atol=1e-9)
        before = X.reshape(40, -1) @ W.T
        assert (
            found.margin <= np.delete(before, target, axis=1).max(axis=1) - before[:, target] + 1e-9
        ).all()
        assert found.success.mean() > (before.argmax(axis=1) == target).mean()
    with pytest.raises(ValueError, match="target"):
        fourier_attack(net, X, target=3, radius=0.2)
