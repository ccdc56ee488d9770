"""Experiments about figures of the course: their rules hold on what is right and fail on what is not."""

import copy

import numpy as np
import pytest

from pindown_reproduction import EXPERIMENTS


def results_of(name, **changes):
    experiment = EXPERIMENTS[name]
    cells = experiment.cells({**experiment.settings["quick"], **changes})
    return experiment, [(cell, experiment.run(cell)) for cell in cells]


def test_spectra_behind_activations_are_as_the_formulas_say():
    experiment, results = results_of("harmonic-distortion")
    assert experiment.compare(results).verdict == "reproduced"
    square = dict(zip((cell["activation"] for cell, _ in results), results, strict=True))
    amplitudes = square["square of two tones"][1]["amplitudes"]
    # (cos 3t + cos 7t)^2 = 1 + cos(6t)/2 + cos(14t)/2 + cos 10t + cos 4t
    assert np.flatnonzero(np.array(amplitudes) > 1e-9).tolist() == [3, 5, 9, 13]


@pytest.mark.parametrize("activation", range(5))
def test_a_wrong_harmonic_is_seen(activation):
    experiment, results = results_of("harmonic-distortion")
    spoilt = copy.deepcopy(results)
    spoilt[activation][1]["amplitudes"] = [a + 1e-3 for a in spoilt[activation][1]["amplitudes"]]
    assert experiment.compare(spoilt).verdict == "not reproduced"


def test_descent_takes_the_steps_that_the_condition_number_says():
    experiment, results = results_of(
        "feature-scaling", tables=["wine"], scales=[[1.0, 3.0], [1.0, 10.0]]
    )
    assert experiment.compare(results).verdict == "reproduced"
    for _, found in results[:2]:
        assert found["counted"][0] > 10 * found["counted"][1]
    assert results[2][1]["counted"][0] is None  # 3e9 steps are not run
    spoilt = copy.deepcopy(results)
    spoilt[0][1]["counted"][0] += 5
    assert experiment.compare(spoilt).verdict == "not reproduced"


def test_a_planted_band_is_found_without_noise():
    experiment, results = results_of("frequency-loop", noises=[0.0], seeds=3)
    assert [found["overlap"] for _, found in results] == [1.0] * 3
    assert all(found["queries"] <= 500 for _, found in results)
    assert experiment.compare(results).verdict == "no published number"


def cue(training, bias, accuracy=1.0):
    cell = {"training": training, "seed": 0}
    return cell, {"bias": bias, "accuracy": accuracy, "shape": 1, "texture": 1, "other": 0}


@pytest.mark.parametrize(
    ("agree", "control", "verdict"),
    [
        ((0.1,), (0.9,), "reproduced"),
        ((0.6,), (0.9,), "not reproduced"),
        ((0.1,), (0.4,), "not reproduced"),
        ((0.1, 0.5), (0.9,), "not reproduced"),
        ((0.1,), (0.9, 0.8), "not reproduced"),
    ],
)
def test_texture_has_to_win_and_the_control_to_follow_shape(agree, control, verdict):
    experiment = EXPERIMENTS["texture-shape"]
    found = [cue("cues agree", *agree), cue("outline is the label", *control)]
    assert experiment.compare(found).verdict == verdict
    assert experiment.stand_in([({}, {"data": "drawn images"})]) == "drawn images in place of ImageNet"
