"""Planted responses are predicted, shuffled ones are not, and noise is corrected for."""

import math

import numpy as np
import pytest
from scipy.stats import pearsonr

from pindown.probes import (
    behavioural_consistency,
    brain_likeness,
    layer_features,
    neural_predictivity,
    response_reliability,
)


def planted(seed=0, n=200, d=30, units=6):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, X @ rng.standard_normal((d, units)), rng


@pytest.mark.parametrize("method", ["pls", "ridge"])
def test_planted_and_shuffled(method):
    X, Y, rng = planted()
    assert neural_predictivity(X, Y, method=method).value > 0.99
    shuffled = neural_predictivity(X, Y[rng.permutation(200)], method=method)
    assert abs(shuffled.value) < 0.25  # 6 units, standard error 0.07 each
    assert "cross-validated" in str(shuffled)


def test_predictions_are_for_stimuli_left_out():
    """More features than stimuli fit any training response; left-out ones stay unpredictable."""
    rng = np.random.default_rng(1)
    X, Y = rng.standard_normal((60, 200)), rng.standard_normal((60, 8))
    assert abs(neural_predictivity(X, Y).value) < 0.35


def test_noise_is_corrected_for():
    X, Y, rng = planted(2, n=600, d=10)
    repeats = Y + 2.0 * Y.std() * rng.standard_normal((10, *Y.shape))
    rho = response_reliability(repeats)
    signal = Y.var(axis=0)
    np.testing.assert_allclose(rho, signal / (signal + 4 * Y.std() ** 2 / 10), atol=0.08)
    plain = neural_predictivity(X, repeats.mean(axis=0))
    fair = neural_predictivity(X, repeats.mean(axis=0), reliability=rho)
    assert plain.value < 0.9 and fair.value == pytest.approx(1.0, abs=0.03)


def test_corrected_correlations_are_those_of_responses_without_noise():
    """Noise divides a correlation by the root of the reliability, not by the reliability itself."""
    X, Y, rng = planted(4, n=4000, d=10)
    part = X[:, :5]  # half of what drives the units: far from a perfect fit, which clipping would hide
    clean = neural_predictivity(part, Y)
    noise = np.array([0.5, 1.0, 0.8, 1.0, 1.0, 0.7]) * Y.std(axis=0)
    noisy = Y + noise * rng.standard_normal(Y.shape)
    rho = Y.var(axis=0) / (Y.var(axis=0) + noise**2)
    fair = neural_predictivity(part, noisy, reliability=rho)
    np.testing.assert_allclose(fair.corrected, clean.correlations, atol=0.06)
    assert clean.correlations.max() < 0.95 and fair.value == np.median(fair.corrected)
    assert abs(np.mean(fair.corrected) - fair.value) > 1e-3


def test_reliability_of_noise_and_of_certainty():
    rng = np.random.default_rng(3)
    assert response_reliability(rng.standard_normal((8, 300, 5))).max() < 0.25
    same = np.broadcast_to(rng.standard_normal((1, 30, 2)), (4, 30, 2))
    np.testing.assert_allclose(response_reliability(same), 1.0)


def test_units_of_noise_and_silent_ones_are_taken_as_they_are_measured():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 3))
    repeats = np.stack([X + 0.1 * rng.standard_normal(X.shape) for _ in range(2)])
    repeats[:, :, 1] = 0.0
    repeats[1, :, 2] = -repeats[0, :, 2]
    rho = response_reliability(repeats)
    assert rho[0] > 0.9 and np.isnan(rho[1]) and rho[2] == 0.0
    fit = neural_predictivity(X, repeats.mean(axis=0), reliability=rho)
    assert fit.value == fit.corrected[0] > 0.9 and np.isnan(fit.corrected[1:]).all()


def test_units_that_do_not_vary_are_left_out():
    X, Y, _ = planted(4)
    Y = np.column_stack([Y, np.full(200, 0.1)])
    found = neural_predictivity(X, Y)
    assert math.isnan(found.correlations[-1]) and found.value > 0.99
    assert math.isnan(neural_predictivity(X, np.ones(200)).value)
    assert math.isnan(neural_predictivity(np.ones((200, 3)), np.ones((200, 1))).value)


def test_scale_and_shift_of_responses_change_nothing():
    X, Y, rng = planted(5)
    noisy = Y + rng.standard_normal(Y.shape) * 5
    first, second = neural_predictivity(X, noisy), neural_predictivity(X, 1e3 * noisy - 7)
    np.testing.assert_allclose(first.correlations, second.correlations, atol=1e-6)


def test_consistency_is_the_correlation_of_shares():
    rng = np.random.default_rng(6)
    a, b = rng.random(40), rng.random(40)
    assert behavioural_consistency(a, b) == pytest.approx(pearsonr(a, b).statistic)
    assert behavioural_consistency(a > 0.5, a > 0.5) == pytest.approx(1.0)
    assert math.isnan(behavioural_consistency(np.ones(5), a[:5]))


def test_mean_over_benchmarks():
    assert brain_likeness([0.2, math.nan], [0.4]) == pytest.approx(0.2)
    with pytest.raises(ValueError, match="at least one"):
        brain_likeness([])
    with pytest.raises(ValueError, match="between -1 and 1"):
        brain_likeness([1.2])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: neural_predictivity(np.ones((5, 2)), np.ones((6, 2))), "same stimuli"),
        (lambda: neural_predictivity(np.ones((3, 2)), np.ones((3, 2))), "at least 5"),
        (lambda: neural_predictivity(np.full((9, 2), np.nan), np.ones((9, 2))), "finite"),
        (lambda: neural_predictivity(np.eye(9), np.eye(9), method="other"), "method"),
        (lambda: neural_predictivity(np.eye(9), np.eye(9), reliability=0.0), "reliability"),
        (lambda: neural_predictivity(np.eye(9), np.eye(9), n_splits=1), "n_splits"),
        (lambda: response_reliability(np.ones((1, 9, 2))), "repeats"),
        (lambda: behavioural_consistency([1.0], [1.0]), "at least 2"),
        (lambda: behavioural_consistency([1.0, 2.0], [1.0, 0.0]), "between 0 and 1"),
    ],
)
def test_refuses(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_features_of_a_layer_predict_what_it_drives():
    """Units that read one layer of a network on colour images: that layer's features predict them."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 6, 5, stride=4), torch.nn.BatchNorm2d(6), torch.nn.ReLU(inplace=True),
        torch.nn.Conv2d(6, 4, 3), torch.nn.Flatten(), torch.nn.Linear(4 * 13 * 9, 2),
    )  # fmt: skip
    X = (
        np.random.default_rng(0).standard_normal((130, 3, 64, 48))
        + np.linspace(-1, 1, 130)[:, None, None, None]
    )
    before = layer_features(net, X, "1")
    with torch.no_grad():
        exact = net.eval()[:2](torch.from_numpy(X).float()).double().numpy()
    np.testing.assert_allclose(before, exact.reshape(130, -1), atol=1e-6)  # not rectified in place
    mean = layer_features(net, X, "1", average=True)
    np.testing.assert_allclose(mean, exact.mean(axis=(2, 3)), atol=1e-6)
    responses = mean @ np.random.default_rng(1).standard_normal((6, 4))
    assert neural_predictivity(mean, responses).value > 0.99
    with pytest.raises(ValueError, match="name submodules"):
        layer_features(net, X, "7")
    with pytest.raises(ValueError, match="no tensor"):
        layer_features(torch.nn.LSTM(3, 2), np.zeros((2, 4, 3), np.float32), "")
