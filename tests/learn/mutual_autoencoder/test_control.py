"""The dial: limits, signs, no offset with the integral, no winding up."""

import pytest

from pindown.learn.mutual_autoencoder.control import Dial


def plant(dial, pull, steps=4000, gain=2e-3):
    """A quantity that drifts by ``pull`` per step unless pushed; returns where it settles."""
    value, largest = 0.0, 0.0
    for _ in range(steps):
        value += gain * (pull - dial.push(value))
        largest = max(largest, value)
    return value, largest


def test_the_integral_leaves_no_offset_and_the_clip_does():
    assert plant(Dial(1.0, 10.0), pull=-3.0)[0] == pytest.approx(1.0, abs=1e-3)
    assert plant(Dial(1.0, 10.0, "clip", width=0.5), pull=-3.0)[0] == pytest.approx(0.85, abs=1e-3)


def test_a_long_way_does_not_wind_the_integral_up():
    assert plant(Dial(2.0, 5.0), pull=-1.0)[1] < 2.2


@pytest.mark.parametrize("control", ["integral", "clip", "sign"])
def test_pushes_stay_within_the_penalty(control):
    dial = Dial(1.0, 0.5, control)
    assert all(abs(dial.push(value)) <= 0.5 for value in (-9.0, 0.0, 0.99, 1.0, 1.5, 80.0))
    assert Dial(1.0, 0.0, control).push(7.0) == 0.0


def test_a_negative_estimate_never_pushes_information_up_from_a_target_of_zero():
    for control in ("integral", "clip", "sign"):
        assert Dial(0.0, 10.0, control).push(-0.3) == 0.0
