"""Averaging over shifts multiplies frequencies by the corrected constant, not by the printed one."""

import numpy as np
import pytest
from scipy.integrate import quad

from pindown.symmetry.augmentation import box_average, grid_window_multiplier, window_multiplier


@pytest.mark.parametrize(("k", "a"), [(2.3, 0.7), (0.0, 1.5), (5.0, 0.1), (-3.0, 2.0)])
def test_the_multiplier_is_the_integral(k, a):
    assert window_multiplier(k, a) == pytest.approx(quad(lambda t: np.cos(k * t), -a, a)[0], abs=1e-12)


def test_printed_constant_of_the_window_is_wrong():
    """2a sinc(2ka) belongs to frequencies in cycles; at a = 0.7, k = 2.3 it has the wrong sign."""
    a, k = 0.7, 2.3
    exact = quad(lambda t: np.cos(k * t), -a, a)[0]
    normalised, plain = 2 * a * np.sinc(2 * k * a), 2 * a * np.sin(2 * k * a) / (2 * k * a)
    assert window_multiplier(k, a) == pytest.approx(exact) == pytest.approx(0.8689, abs=1e-4)
    assert normalised == pytest.approx(-0.088, abs=1e-3) and plain == pytest.approx(-0.034, abs=1e-3)
    cycles = quad(lambda t: np.cos(2 * np.pi * k * t), -a, a)[0]
    assert normalised == pytest.approx(cycles)  # where the printed one is right


@pytest.mark.parametrize(("n", "half_width"), [(32, 3), (33, 0), (33, 16), (7, 20)])
def test_box_averages_multiply_the_spectrum(n, half_width):
    signal = np.random.default_rng(0).standard_normal(n)
    multiplier = grid_window_multiplier(np.arange(n), half_width, n) / (2 * half_width + 1)
    spectrum = np.fft.fft(box_average(signal, half_width))
    assert np.abs(spectrum - multiplier * np.fft.fft(signal)).max() < 1e-10


def test_the_whole_circle_leaves_the_mean_and_fine_grids_the_integral():
    signal = np.random.default_rng(1).standard_normal(9)
    assert np.allclose(box_average(signal, 4), signal.mean())
    # A window of fixed width on ever finer grids: the Dirichlet kernel tends to the sinc.
    a, k, n = 0.5, 3, 20_000
    half_width = round(a * n / (2 * np.pi))
    assert grid_window_multiplier(k, half_width, n) * 2 * np.pi / n == pytest.approx(
        float(window_multiplier(k, a)), abs=1e-3
    )


def test_bad_windows_are_refused():
    with pytest.raises(ValueError, match="half the width"):
        window_multiplier(1.0, -1.0)
    with pytest.raises(ValueError, match="from 0"):
        grid_window_multiplier(1, -1, 4)
    with pytest.raises(ValueError, match="half_width"):
        box_average([1.0], -1)
