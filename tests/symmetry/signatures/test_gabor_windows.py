"""Windows of shifts and scales: exact inside, and which templates lose least at the edge."""

import numpy as np
import pytest

from pindown.symmetry.signatures import gabor, windowed_signature

D = 301
P = np.arange(D) - D // 2
SCALES = 2.0 ** np.linspace(-1, 1, 9)


def bumps(rng, n):
    """Smooth signals of length one and bounded support, in the middle."""
    out = np.zeros((n, D))
    for i in range(n):
        for _ in range(4):
            width = rng.uniform(1, 5)
            out[i] += rng.standard_normal() * np.exp(-((P - rng.uniform(-20, 20)) ** 2) / (2 * width**2))
    out *= np.abs(P) < 30
    return out / np.linalg.norm(out, axis=1, keepdims=True)


def test_shifts_that_stay_inside_the_window_change_nothing():
    signal = np.zeros(D)
    signal[D // 2 - 3 : D // 2 + 4] = np.random.default_rng(0).standard_normal(7)

    def box(p):
        return (np.abs(p) <= 5).astype(float)

    window = range(-60, 61)
    for shift in (-40, -7, 13, 50):
        moved = np.roll(signal, shift)
        change = windowed_signature([moved], box, shifts=window) - windowed_signature(
            [signal], box, shifts=window
        )
        assert abs(change[0]) < 1e-12
    # responses that leave the window are lost
    gone = windowed_signature([np.roll(signal, 60)], box, shifts=window)
    assert abs(gone - windowed_signature([signal], box, shifts=window))[0] > 0.1


def test_whole_pixels_of_response_agree_with_a_loop():
    rng = np.random.default_rng(1)
    signal = rng.standard_normal(21)
    p = np.arange(21) - 10
    expected = 0.0
    for size in (1.0, 2.0):
        for y in (-2.0, 0.0, 3.0):
            atom = gabor((p - y) / size, 2.0, 1.5) / np.sqrt(size)
            expected += abs(np.vdot(atom, signal))
    found = windowed_signature(signal, lambda q: gabor(q, 2.0, 1.5), shifts=[-2, 0, 3], scales=[1, 2])
    assert found == pytest.approx([expected])


def ratio(signals, template):
    """Mean change when signals are moved, over the mean difference between signals."""

    def features(X):
        return windowed_signature(X, template, shifts=range(-60, 61, 3), scales=SCALES)

    still = features(signals)
    moved = [np.roll(signals, shift, axis=1) for shift in (-30, -10, -4, 6, 12, 25)]
    for scale in (0.8, 1.25):
        moved.append(np.stack([np.interp(P / scale, P, x) / np.sqrt(scale) for x in signals]))
    within = np.mean([np.abs(features(X) - still).mean() for X in moved])
    return within / np.abs(still[:, None] - still)[np.triu_indices(len(still), 1)].mean()


def test_gabor_templates_beat_waves_and_noise_on_the_ratio():
    """A wave of one period or two under its window; a longer window is little better than none."""
    found = {"gabor": [], "wave": [], "noise": []}
    for seed in range(5):
        rng = np.random.default_rng(seed)
        signals, noise = bumps(rng, 10), rng.standard_normal(4001)
        found["gabor"].append(ratio(signals, lambda p: gabor(p, 4.0, 0.5)))
        found["wave"].append(ratio(signals, lambda p: np.exp(0.5j * p)))
        found["noise"].append(ratio(signals, lambda p, n=noise: n[np.round(p).astype(int) + 2000]))
    mean = {name: np.mean(values) for name, values in found.items()}
    assert mean["gabor"] < 0.8 * mean["wave"] < 0.8 * mean["noise"]


def test_gabor_is_a_wave_under_a_window():
    found = gabor([0.0, 2.0, -2.0], 2.0, np.pi)
    assert found == pytest.approx([1.0, np.exp(-0.5), np.exp(-0.5)])


def test_bad_windows_are_refused():
    with pytest.raises(ValueError, match="width"):
        gabor([0.0], 0.0, 1.0)
    with pytest.raises(ValueError, match="window needs"):
        windowed_signature([1.0, 2.0], np.abs, shifts=[])
    with pytest.raises(ValueError, match="window needs"):
        windowed_signature([1.0, 2.0], np.abs, shifts=[0], scales=[-1.0])
    with pytest.raises(ValueError, match="positions"):
        windowed_signature([1.0, 2.0], np.abs, shifts=[0], positions=[1.0])
