"""The helper for test suites fails where it should, and says where."""

import numpy as np
import pytest

from pindown import ReluNetwork, diff
from pindown.testing import assert_same_function


def pair(shift=0.5):
    """Classes differ between 0 and the shift."""
    return [ReluNetwork.from_layers([([[1.0], [-1.0]], [-c, c])]) for c in (0.0, shift)]


def test_without_data_the_verdict_counts():
    a, b = pair()
    assert assert_same_function(a, a).verdict == "same"
    with pytest.raises(AssertionError, match="DIFFERENT at tolerance"):
        assert_same_function(a, b, box=(-1, 1))
    assert assert_same_function(a, b, box=(-1, 1), tol=0.6).same
    with pytest.raises(ValueError, match="give data"):
        assert_same_function(a, a, fail_on="flips")


def test_on_data_the_conditions_count(tmp_path):
    a, b = pair()
    np.save(tmp_path / "rows.npy", [[-1.0], [0.1], [3.0]])
    with pytest.raises(AssertionError, match="1 of 3 rows that the two put into different classes: 1"):
        assert_same_function(a, b, data=tmp_path / "rows.npy")
    safe = [[-1.0], [3.0]]
    assert assert_same_function(a, b, data=safe).rows.flips.size == 0
    with pytest.raises(AssertionError, match="2 of 2 rows at which an output differs"):
        assert_same_function(a, b, data=safe, fail_on="gap")
    assert_same_function(a, b, data=safe, fail_on=("flips", "unproved"), radius=0.9, budget=5)
    with pytest.raises(AssertionError, match="1 of 2 rows around which"):
        assert_same_function(a, b, data=safe, fail_on=("flips", "unproved"), radius=1.1, budget=5)
    with pytest.raises(ValueError, match="'flips' or 'gap' or 'unproved'"):
        assert_same_function(a, b, data=safe, fail_on="all")


def test_one_output_is_compared_by_its_gap():
    a, b = (ReluNetwork.from_layers([([[1.0]], [c])]) for c in (0.0, 0.5))
    with pytest.raises(AssertionError, match="differs by more than the tolerance"):
        assert_same_function(a, b, data=[[1.0]])
    assert_same_function(a, b, data=[[1.0]], tol=0.6)


def test_what_rows_alone_decide_takes_seconds_and_what_is_given_counts(monkeypatch):
    asked = []

    def noted(a, b, **options):
        asked.append((options.get("budget"), options.get("precision")))
        return diff(a, b, **options)

    monkeypatch.setattr("pindown.testing.diff", noted)
    a, b = pair()
    assert_same_function(a, b, data=[[-1.0]])
    assert_same_function(a, b, data=[[-1.0]], budget=1.0, precision=0.5)
    assert_same_function(a, b, data=[[-1.0]], fail_on=("gap", "unproved"), radius=0.1, tol=1.0)
    assert_same_function(a, a)
    assert asked == [(2.0, 1.0), (1.0, 0.5), (None, 1.0), (None, None)]
