"""One clock: a deadline keeps its moment wherever it is sent."""

import pickle
import time
from math import inf

import pytest

from pindown.deadline import NEVER, Deadline


def test_a_deadline_is_sent_as_the_time_of_day(monkeypatch):
    """On another machine the clock that never goes back began at another moment."""
    packed = pickle.dumps(Deadline.after(60.0))
    elsewhere = time.monotonic() + 1e6
    monkeypatch.setattr("pindown.deadline.time.monotonic", lambda: elsewhere)
    received = pickle.loads(packed)
    assert received.left == pytest.approx(60.0, abs=5.0)
    assert received.spent == pytest.approx(0.0, abs=5.0)


def test_no_limit_stays_none():
    assert pickle.loads(pickle.dumps(NEVER)).end == inf and not NEVER.passed
