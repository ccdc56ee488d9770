"""Segments are walked as time allows, and a short piece tells what a whole one takes."""

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.findings.question_budget import TooLong, Turn
from pindown.findings.subject import Subject
from pindown.findings.which_function import _segments
from pindown.geometry.slices.segment import along_segments

FOLDS = 400
ENDS = np.zeros((30, 1)), np.full((30, 1), float(FOLDS))


class Steady:
    """A clock by which every piece takes a second."""

    seconds = 1.0


def subject(seconds=60.0):
    """A network that folds at 0.5, 1.5, ..."""
    layers = [(np.ones((FOLDS, 1)), -0.5 - np.arange(FOLDS)), (np.ones((1, FOLDS)), [0])]
    turn = Turn.lasting(seconds)
    return Subject.of(ReluNetwork.from_layers(layers), None, None, None, None, turn, 0)


def test_a_quarter_of_a_segment_tells_its_price(monkeypatch):
    monkeypatch.setattr(_segments, "Stopwatch", Steady)
    start, end = ENDS[0][:1], ENDS[1][:1]
    assert _segments._price(subject(), start, end) == 4.0  # a sixteenth crosses 25 cells of 50
    assert _segments._price(subject(), start, end / 10) == 1.0  # too few cells on all of it
    with pytest.raises(TooLong) as late:
        _segments.walked(subject(3.0), start, end, 0.9)
    assert late.value.seconds == 4.0 and late.value.left < 3.0


def test_all_segments_are_walked_where_they_fit(monkeypatch):
    whole = along_segments(subject().net, *ENDS)
    for price in (1e-3, 1.0):  # several at once, one by one
        monkeypatch.setattr(Steady, "seconds", price / 4.0)
        monkeypatch.setattr(_segments, "Stopwatch", Steady)
        found = _segments.walked(subject(), *ENDS, 0.9)
        assert len(found) == (3 if price < 0.1 else 30)
        assert np.array_equal(np.concatenate([part.n_cells for part in found]), whole.n_cells)
