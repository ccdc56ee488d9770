"""Which frequencies nonlinearities make."""

import mpmath
import numpy as np
import pytest
import torch

from pindown.bias.harmonic_distortion import (
    distortion_report,
    harmonic_spectrum,
    power_series_spectrum,
    relu_harmonics,
)

torch.set_num_threads(1)


def relu(u):
    return np.maximum(u, 0)


def test_relu_in_closed_form_and_by_integration():
    found = harmonic_spectrum(relu, 12)
    np.testing.assert_allclose(found.amplitudes, relu_harmonics(12), atol=1e-8)
    assert found.mean == pytest.approx(1 / np.pi, abs=1e-9)
    for k in (1, 2, 3, 4):  # an independent integral
        a = (
            mpmath.quad(lambda t, k=k: mpmath.sin(t) * mpmath.cos(k * t), [0, mpmath.pi / 2, mpmath.pi])
            / mpmath.pi
        )
        b = (
            mpmath.quad(lambda t, k=k: mpmath.sin(t) * mpmath.sin(k * t), [0, mpmath.pi / 2, mpmath.pi])
            / mpmath.pi
        )
        assert found.amplitudes[k - 1] == pytest.approx(float(mpmath.sqrt(a**2 + b**2)), abs=1e-8)


@pytest.mark.parametrize("function", [np.tanh, lambda u: np.clip(u, -0.5, 0.5), np.arctan])
def test_odd_functions_make_odd_harmonics(function):
    found = harmonic_spectrum(function, 10, amplitude=2.0)
    assert np.abs(found.amplitudes[1::2]).max() < 1e-12 and found.amplitudes[2] > 1e-3
    assert abs(found.mean) < 1e-12


def test_softplus_keeps_half_of_the_fundamental():
    found = harmonic_spectrum(lambda u: np.logaddexp(0, u), 9, amplitude=3.0)
    assert found.amplitudes[0] == pytest.approx(1.5, abs=1e-12)
    assert np.abs(found.amplitudes[2::2]).max() < 1e-12 and found.amplitudes[1] > 0.1


def test_two_tones_squared_as_in_the_slides():
    """The spectrum of (cos 3t + cos 7t)^2: mean 1, halves at 6 and 14, ones at 10 and 4."""
    x = np.zeros(15)
    x[[7 - 7, 7 - 3, 7 + 3, 7 + 7]] = 0.5
    found = power_series_spectrum([0, 0, 1], x).real
    expected = np.zeros(29)
    expected[14] = 1.0
    for frequency, amplitude in ((6, 0.5), (14, 0.5), (10, 1.0), (4, 1.0)):
        expected[[14 - frequency, 14 + frequency]] = amplitude / 2
    np.testing.assert_allclose(found, expected, atol=1e-15)


def test_powers_are_convolutions():
    coefficients = [0.3, -1.0, 0.5, 2.0, -0.7]
    spectrum = power_series_spectrum(coefficients, [0.5j, 0, -0.5j])  # of sin t
    direct = harmonic_spectrum(np.polynomial.Polynomial(coefficients), 4)
    np.testing.assert_allclose(2 * np.abs(spectrum[5:]), direct.amplitudes, atol=1e-12)
    assert spectrum[4].real == pytest.approx(direct.mean)
    assert power_series_spectrum([2.0], [1.0]).tolist() == [2.0]


def test_distortion():
    assert harmonic_spectrum(lambda u: 3 * u).distortion == pytest.approx(0.0, abs=1e-6)
    # sin^3 = (3 sin t - sin 3t) / 4
    assert harmonic_spectrum(lambda u: u**3).distortion == pytest.approx(1 / 3)
    assert harmonic_spectrum(np.square).distortion == np.inf
    assert harmonic_spectrum(np.zeros_like).distortion == 0.0
    assert harmonic_spectrum(np.tanh, amplitude=5.0).distortion > harmonic_spectrum(np.tanh).distortion


def test_report_of_a_network():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 6, bias=False), torch.nn.ReLU(), torch.nn.Linear(6, 2))
    net.train()
    found = distortion_report(net, torch.tensor([1.0, -2.0, 0.5]))
    assert found.layers == ("0", "1", "2") and net.training
    rest = np.sqrt((relu_harmonics(400)[1:] ** 2).sum()) / 0.5
    assert found.distortion[0] < 1e-5 and found.distortion[1] == pytest.approx(rest, rel=1e-3)
    with pytest.raises(ValueError, match="not zero"):
        distortion_report(net, torch.zeros(3))


@pytest.mark.parametrize(
    "call",
    [
        lambda: harmonic_spectrum(np.tanh, 0),
        lambda: harmonic_spectrum(np.tanh, 10**6),
        lambda: harmonic_spectrum(lambda u: u * np.nan),
        lambda: harmonic_spectrum(lambda u: 1.0),
        lambda: harmonic_spectrum(np.tanh, amplitude=np.inf),
        lambda: power_series_spectrum([], [1.0]),
        lambda: power_series_spectrum([1.0], [1.0, 2.0]),
        lambda: power_series_spectrum([np.nan], [1.0]),
    ],
)
def test_bad_input(call):
    with pytest.raises(ValueError, match=r"must|needed"):
        call()
