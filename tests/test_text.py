"""Few digits of a bound are still a bound: what is printed is on the safe side of what is proved."""

from dataclasses import replace

import numpy as np
import pytest

from pindown import ReluNetwork, diff
from pindown.report.equivalence import diff_lines, values_answer
from pindown.text import interval_text, rounded_down, rounded_up


@pytest.mark.parametrize("digits", [1, 2, 3, 4, 6])
def test_printed_ends_enclose_and_are_near(digits):
    rng = np.random.default_rng(digits)
    for value in (rng.choice([-1, 1], 300) * 10.0 ** rng.uniform(-320, 300, 300)).tolist():
        low, high = float(rounded_down(value, digits)), float(rounded_up(value, digits))
        assert low <= value <= high
        if abs(value) > 1e-307:  # below, float64 itself has fewer digits
            assert high - low <= abs(value) * 10.0 ** (1 - digits) * (1 + 1e-9)


def test_numbers_that_are_short_already_stay():
    for text in ("0", "2", "0.2", "0.125", "1e-05", "-3.5", "123000", "inf"):
        assert rounded_up(float(text)) == rounded_down(float(text)) == text


def test_a_proved_gap_is_never_printed_smaller_than_it_is():
    net = ReluNetwork.from_layers([([[1.0]], [0.0]), ([[1.0]], [0.0])])
    answer = replace(diff(net, net, box=(0, 1)), gap_lower=1.23451e-6, gap_upper=1.23452e-6)
    assert "at most 1.24e-06" in values_answer(answer)
    assert "between 1.234e-06 and 1.235e-06" in str(answer)
    assert "between 1.23451e-06 and 1.23452e-06" in diff_lines(answer)[0]
    assert "and 1.23452e-06" in answer.to_html()
    assert interval_text(1.23451e-6, 1.23451e-6) == "[1.23e-06, 1.24e-06]"
